package destination

import (
	"time"

	"github.com/rsbridge/rsbridge/destination/keep"
)

// SyncReport is the JSON of `sync --json` for one destination.
type SyncReport struct {
	Name          string     `json:"name"`
	Mode          string     `json:"mode"` // baseline, incremental, none
	Why           string     `json:"why"`
	Created       int64      `json:"created"`
	Updated       int64      `json:"updated"`
	Deleted       int64      `json:"deleted"`
	Accepted      int64      `json:"accepted,omitempty"` // shown and accepted, to be deleted or to become empty; max_delete_ratio allows the others
	Unchanged     int64      `json:"unchanged"`
	Moved         int64      `json:"moved,omitempty"`   // entities that got another location, neither created nor deleted
	Patched       int64      `json:"patched,omitempty"` // updates that were fetched as patches
	Failed        int64      `json:"failed"`
	Pending       int64      `json:"pending"`
	Unselected    int64      `json:"unselected,omitempty"` // resources outside of what is selected, met in this run and not counted above
	Unmapped      int64      `json:"unmapped,omitempty"`   // descriptions of which map makes nothing, met in this run
	MapErrors     int64      `json:"map_errors,omitempty"` // descriptions for which an expression of map had no value: a FILTER dropped something, or a variable stayed unbound
	MapError      string     `json:"map_error,omitempty"`  // one of them, and the expression
	NotRDF        int64      `json:"not_rdf,omitempty"`    // resources that are no RDF, met in this run
	Store         string     `json:"store,omitempty"`      // address of the mirror, for people
	Files         string     `json:"files,omitempty"`      // folder beside it, with the files of what is no RDF
	Bytes         int64      `json:"bytes"`                // received from the source; of a dry run: of packages and representations that would be
	InSync        bool       `json:"in_sync"`
	BehindSeconds *float64   `json:"behind_seconds"`
	Seconds       float64    `json:"seconds"`
	Until         *time.Time `json:"until,omitempty"`    // the mirror is what the source was then, and in_sync is about that
	Held          string     `json:"held,omitempty"`     // what waits for a person
	Plan          *Plan      `json:"plan,omitempty"`     // of a dry run: nothing was done, and the counts are what would be
	Problems      []Problem  `json:"problems,omitempty"` // at most 100
}

// Problem names a resource that is pending or failed.
type Problem struct {
	Location string    `json:"location"`
	Entity   string    `json:"entity,omitempty"`
	State    string    `json:"state"` // pending, failed
	Reason   string    `json:"reason"`
	Tries    int       `json:"tries"`
	Next     time.Time `json:"next,omitzero"`
}

// AuditOptions of Audit.
type AuditOptions struct {
	Repair bool
	Depth  string // "inventory", "store" (default), "origin"
}

// Status is the destination's part of `status --json` that it knows itself.
type Status struct {
	InSync        bool              `json:"in_sync"`
	BehindSeconds *float64          `json:"behind_seconds"`
	BehindChanges *uint64           `json:"behind_changes"`       // the source's changes that are not in the mirror yet; null: not known
	Resources     int64             `json:"resources"`            // of the source, as far as they are selected
	NotRDF        int64             `json:"not_rdf,omitempty"`    // of them, resources that are no RDF: Others lists them
	Unmapped      int64             `json:"unmapped,omitempty"`   // of them, descriptions of which map makes nothing: Differences names them
	Unselected    int64             `json:"unselected,omitempty"` // beside them, those of the source that are outside of what is selected
	Sequence      *uint64           `json:"sequence"`
	LastPoll      *time.Time        `json:"last_poll"`
	LastSync      *time.Time        `json:"last_sync"`
	LastAudit     *keep.AuditReport `json:"last_audit"`
	ProvenUntil   *time.Time        `json:"proven_until,omitempty"` // by the last audit: the mirror is equal to what the source was then
	ProvenSince   *time.Time        `json:"proven_since,omitempty"` // changes of before were lost, which was accepted, and no list or dump was taken since
	Pending       int64             `json:"pending"`                // failed ones included
	Problems      []Problem         `json:"problems,omitempty"`     // some of them; Differences names all
	LastError     string            `json:"last_error"`
	Behind        bool              `json:"-"`              // newer changes are known of; else it is in sync
	Interrupted   bool              `json:"-"`              // the last sync was stopped before its end, and has not failed
	Held          string            `json:"held,omitempty"` // why it is not in sync until somebody, or the source, does something
	Decision      bool              `json:"-"`              // that a person must decide
	Source        string            `json:"source,omitempty"`
	Unpublished   uint64            `json:"unpublished,omitempty"`     // Unpublished is the source's newest change, where no list or dump of it has that yet.
	Absent        []string          `json:"absent,omitempty"`          // Absent are lists and dumps that the source names and does not have. The mirror follows the others.
	Newest        uint64            `json:"source_sequence,omitempty"` // of the source's newest change, as last told by its lists
	Until         *time.Time        `json:"until,omitempty"`           // the mirror is what the source was then, as was asked for
}

// Config of a destination, Options of Open, and the report of an audit, as all rooms have them.
type (
	Config      = keep.Config
	Options     = keep.Options
	AuditReport = keep.AuditReport
	Difference  = keep.Difference
)
