package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/rsbridge/rsbridge/destination"
	"github.com/rsbridge/rsbridge/internal/jobs"
	"github.com/rsbridge/rsbridge/internal/kv"
)

// mirror is one configured destination.
type mirror struct {
	bridge *Bridge
	name   string
	cfg    Destination
	dest   *destination.Destination

	mu  sync.Mutex // guards run
	run *jobs.Run  // under way, for progress
}

// SyncArgs are the arguments of a sync.
type SyncArgs struct {
	Full   bool `json:"full,omitempty"`    // a baseline, whatever the cursor says
	DryRun bool `json:"dry_run,omitempty"` // say what would be done, and its cost
}

// AuditArgs are the arguments of an audit.
type AuditArgs struct {
	Repair bool   `json:"repair,omitempty"`
	Depth  string `json:"depth,omitempty"` // inventory, store (default), origin
}

func (m *mirror) subject() string { return "destination:" + m.name }

func (m *mirror) progress(stage string, done, total int64) {
	m.mu.Lock()
	run := m.run
	m.mu.Unlock()
	if run != nil {
		run.Progress(stage, done, total)
	}
}

// begin decodes the arguments of a run and lets progress reach it.
func (m *mirror) begin(run *jobs.Run, args any) (end func(), err error) {
	if len(run.Args) > 0 {
		if err := json.Unmarshal(run.Args, args); err != nil {
			return nil, fmt.Errorf("%s: arguments: %w", run.Job, err)
		}
	}
	m.mu.Lock()
	m.run = run
	m.mu.Unlock()
	return func() {
		m.mu.Lock()
		m.run = nil
		m.mu.Unlock()
	}, nil
}

func (m *mirror) sync(ctx context.Context, run *jobs.Run) (any, error) {
	if run.Cause == "schedule" {
		if paused, err := m.paused(); paused || err != nil {
			return nil, err
		}
	}
	var o SyncArgs
	end, err := m.begin(run, &o)
	if err != nil {
		return nil, err
	}
	defer end()
	rep, err := m.dest.Sync(ctx, destination.SyncOptions{Full: o.Full, DryRun: o.DryRun, Retry: run.Cause != "schedule"})
	if err != nil {
		return rep, err
	}
	if rep.Created+rep.Updated+rep.Deleted+rep.Failed+rep.Pending > 0 || rep.Mode == "baseline" {
		m.bridge.log.Info("synced", "destination", m.name, "mode", rep.Mode, "why", rep.Why, "created", rep.Created, "updated", rep.Updated,
			"deleted", rep.Deleted, "failed", rep.Failed, "pending", rep.Pending, "in_sync", rep.InSync, "seconds", rep.Seconds)
	}
	return rep, nil
}

func (m *mirror) audit(ctx context.Context, run *jobs.Run) (any, error) {
	var o AuditArgs
	end, err := m.begin(run, &o)
	if err != nil {
		return nil, err
	}
	defer end()
	rep, err := m.dest.Audit(ctx, destination.AuditOptions(o))
	if err != nil {
		return rep, err
	}
	m.bridge.log.Info("audited", "destination", m.name, "equal", rep.Equal, "missing", rep.Missing, "extra", rep.Extra,
		"different", rep.Different, "rewritten", rep.Rewritten, "repaired", rep.Repaired, "seconds", rep.Seconds)
	return rep, nil
}

func (m *mirror) pauseKey() []byte { return []byte("paused/" + m.name) }

func (m *mirror) paused() (bool, error) {
	_, err := m.bridge.records.Get(m.pauseKey())
	if errors.Is(err, kv.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// Pause stops the schedule of a destination until Resume; runs that are asked
// for still run. It outlives restarts.
func (b *Bridge) Pause(name string, paused bool) error {
	m := b.dests[name]
	if m == nil {
		return fmt.Errorf("destination %s: %w", name, ErrUnknown)
	}
	batch := b.records.Batch()
	defer batch.Close()
	if paused {
		batch.Set(m.pauseKey(), []byte{1})
	} else {
		batch.Delete(m.pauseKey())
	}
	return batch.Commit(true)
}
