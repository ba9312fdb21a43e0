package destination

import (
	"cmp"
	"time"
)

// SyncReport is the JSON of `sync --json` for one destination.
type SyncReport struct {
	Name          string     `json:"name"`
	Mode          string     `json:"mode"` // baseline, incremental, none
	Why           string     `json:"why"`
	Created       int64      `json:"created"`
	Updated       int64      `json:"updated"`
	Deleted       int64      `json:"deleted"`
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

// AuditReport is the JSON of `audit --json` for one destination.
type AuditReport struct {
	Name      string       `json:"name"`
	Inventory string       `json:"inventory,omitempty"` // digest of the source's inventory, where it is that of the records
	Verdict   string       `json:"verdict"`             // equal (to what the source has now), different or not proven
	Equal     bool         `json:"equal"`               // the verdict is equal
	Resources int64        `json:"resources"`           // of the source, as far as they are selected
	Missing   int64        `json:"missing"`
	Extra     int64        `json:"extra"`
	Different int64        `json:"different"`
	Rewritten int64        `json:"rewritten"` // resources with literals that the store rewrites by itself
	Repaired  int64        `json:"repaired"`
	Depth     string       `json:"depth"`
	Bytes     int64        `json:"bytes"` // received from the source
	Seconds   float64      `json:"seconds"`
	Time      time.Time    `json:"time"`
	Origins   int64        `json:"origins,omitempty"`     // resources that were compared with the first source too (via)
	Unasked   int64        `json:"unasked,omitempty"`     // those whose first source is on a host that is not allowed
	Named     []Difference `json:"differences,omitempty"` // at most 100

	OtherGraphs int64 `json:"other_graphs,omitempty"` // per-entity: graphs of the store that are not this mirror's; whoever wrote them may have meant anything

	Mended []Difference `json:"mended,omitempty"` // what a repair has put right, at most 100

	Held        string `json:"held,omitempty"`         // what waits for a person: a repair leaves it as it is
	SourceError string `json:"source_error,omitempty"` // why the source could not be asked, or does not tell all that it has now
	SourceOlder bool   `json:"source_older,omitempty"` // its list is older than the mirror: what was mirrored of later changes was not compared with it

	ProvenUntil *time.Time `json:"proven_until,omitempty"` // of a verdict not proven: the mirror is equal to what the source was then
}

// judge gives the verdict. The mirror is different where something is found, and equal where
// nothing is and the source tells all that it has now. Else nothing is proven of now.
func (r *AuditReport) judge() {
	switch {
	case r.findings() > 0:
		r.Verdict, r.ProvenUntil = "different", nil
	case r.SourceError != "" || r.SourceOlder:
		r.Verdict = "not proven"
	default:
		r.Verdict = "equal"
	}
	r.Equal = r.Verdict == "equal"
}

// findings counts what keeps a mirror from being equal.
func (r *AuditReport) findings() int64 { return r.Missing + r.Extra + r.Different }

// mendedBy are the differences that a later audit does not find any more.
func (r *AuditReport) mendedBy(later *AuditReport) (gone []Difference) {
	left := map[string]bool{}
	for _, d := range later.Named {
		left[cmp.Or(d.Location, d.Entity)+" "+d.Graph] = true
	}
	for _, d := range r.Named {
		if d.Kind != "rewritten" && !left[cmp.Or(d.Location, d.Entity)+" "+d.Graph] {
			gone = append(gone, d)
		}
	}
	return gone
}

// Difference names what differs.
type Difference struct {
	Entity   string `json:"entity"`
	Location string `json:"location,omitempty"`
	Graph    string `json:"graph,omitempty"` // per-entity: the mirror's, of triples without an owner
	Kind     string `json:"kind"`            // missing, extra, different, rewritten; from Differences also pending, failed, unmapped
	Detail   string `json:"detail"`
}

// Status is the destination's part of `status --json` that it knows itself.
type Status struct {
	InSync        bool         `json:"in_sync"`
	BehindSeconds *float64     `json:"behind_seconds"`
	Resources     int64        `json:"resources"`            // of the source, as far as they are selected
	NotRDF        int64        `json:"not_rdf,omitempty"`    // of them, resources that are no RDF: Others lists them
	Unmapped      int64        `json:"unmapped,omitempty"`   // of them, descriptions of which map makes nothing: Differences names them
	Unselected    int64        `json:"unselected,omitempty"` // beside them, those of the source that are outside of what is selected
	Sequence      *uint64      `json:"sequence"`
	LastPoll      *time.Time   `json:"last_poll"`
	LastSync      *time.Time   `json:"last_sync"`
	LastAudit     *AuditReport `json:"last_audit"`
	Pending       int64        `json:"pending"`            // failed ones included
	Problems      []Problem    `json:"problems,omitempty"` // some of them; Differences names all
	LastError     string       `json:"last_error"`
	Interrupted   bool         `json:"-"`              // the last sync was stopped before its end, and has not failed
	Held          string       `json:"held,omitempty"` // why it is not in sync until somebody, or the source, does something
	Decision      bool         `json:"-"`              // that a person must decide
	Source        string       `json:"source,omitempty"`
	Unpublished   uint64       `json:"unpublished,omitempty"` // Unpublished is the source's newest change, where no list or dump of it has that yet.
	Absent        []string     `json:"absent,omitempty"`      // Absent are lists and dumps that the source names and does not have. The mirror follows the others.
	Until         *time.Time   `json:"until,omitempty"`       // the mirror is what the source was then, as was asked for
}
