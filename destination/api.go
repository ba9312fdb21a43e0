// Package destination follows a ResourceSync source, verifies what it fetches,
// keeps a target store equal to it, and proves it.
package destination

import (
	"context"
	"iter"
	"log/slog"
	"net/http"
	"time"

	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/internal/sparql"
)

// Config of a destination.
type Config struct {
	Name           string
	Source         string  // site, well-known address, Source Description, Capability List, Resource List, Change List
	Set            string  // name or address of the set when the source has several
	Graph          string  // "single" (default) or "per-entity"
	GraphIRI       string  // single: the graph, "" the default graph; per-entity: template with {entity}
	MaxDeleteRatio float64 // default 0.2
	Adopt          bool
	OnGap          string   // "baseline" (default) or "stop"
	Keep           string   // "current" (default), "deleted", "versions"
	Allow          []string // hosts (host or host:port) beside the source's own
	Select         struct{ Classes, Prefixes []string }
	Concurrency    int // fetches at once; default 8
	TempDir        string
	MemoryBytes    int64
}

// Options of Open.
type Options struct {
	Transport http.RoundTripper // nil: its own
	Now       func() time.Time
	Logger    *slog.Logger
	Progress  func(stage string, done, total int64)
}

// Destination keeps one mirror. One of Sync, Audit at a time (the caller locks).
type Destination struct{}

// Open opens the records of a destination in store. target is the mirror.
func Open(ctx context.Context, store kv.Store, target *sparql.Client, cfg Config, o Options) (*Destination, error) {
	panic("stub")
}
func (d *Destination) Close() error { panic("stub") }

type SyncOptions struct{ Full, DryRun bool }

// SyncReport is the JSON of `sync --json` for one destination.
type SyncReport struct {
	Name          string    `json:"name"`
	Mode          string    `json:"mode"` // baseline, incremental, none
	Why           string    `json:"why"`
	Created       int64     `json:"created"`
	Updated       int64     `json:"updated"`
	Deleted       int64     `json:"deleted"`
	Unchanged     int64     `json:"unchanged"`
	Failed        int64     `json:"failed"`
	Pending       int64     `json:"pending"`
	Bytes         int64     `json:"bytes"`
	InSync        bool      `json:"in_sync"`
	BehindSeconds *float64  `json:"behind_seconds"`
	Seconds       float64   `json:"seconds"`
	Held          string    `json:"held,omitempty"`
	Problems      []Problem `json:"problems,omitempty"` // at most 100
}

// Problem names a resource that is pending or failed.
type Problem struct {
	Location string    `json:"location"`
	Entity   string    `json:"entity,omitempty"`
	State    string    `json:"state"` // pending, failed
	Reason   string    `json:"reason"`
	Tries    int       `json:"tries"`
	Next     time.Time `json:"next,omitempty"`
}

func (d *Destination) Sync(ctx context.Context, o SyncOptions) (SyncReport, error) { panic("stub") }

type AuditOptions struct {
	Repair bool
	Depth  string // "inventory", "store" (default), "origin"
}

// AuditReport is the JSON of `audit --json` for one destination.
type AuditReport struct {
	Name      string       `json:"name"`
	Equal     bool         `json:"equal"`
	Resources int64        `json:"resources"`
	Missing   int64        `json:"missing"`
	Extra     int64        `json:"extra"`
	Different int64        `json:"different"`
	Rewritten int64        `json:"rewritten"`
	Repaired  int64        `json:"repaired"`
	Depth     string       `json:"depth"`
	Seconds   float64      `json:"seconds"`
	Time      time.Time    `json:"time"`
	Named     []Difference `json:"differences,omitempty"` // at most 100
}

// Difference names what differs.
type Difference struct {
	Entity   string `json:"entity"`
	Location string `json:"location,omitempty"`
	Kind     string `json:"kind"` // missing, extra, different, rewritten
	Detail   string `json:"detail"`
}

func (d *Destination) Audit(ctx context.Context, o AuditOptions) (AuditReport, error) { panic("stub") }

// Status is the destination's part of `status --json` that it knows itself.
type Status struct {
	InSync        bool         `json:"in_sync"`
	BehindSeconds *float64     `json:"behind_seconds"`
	Resources     int64        `json:"resources"`
	Sequence      *uint64      `json:"sequence"`
	LastPoll      *time.Time   `json:"last_poll"`
	LastSync      *time.Time   `json:"last_sync"`
	LastAudit     *AuditReport `json:"last_audit"`
	Pending       int64        `json:"pending"`
	LastError     string       `json:"last_error"`
}

func (d *Destination) Status(ctx context.Context) (Status, error) { panic("stub") }

// Differences yields pending and failed resources and what the last audit found.
func (d *Destination) Differences(ctx context.Context) iter.Seq2[Difference, error] { panic("stub") }

var _ = slog.Default
