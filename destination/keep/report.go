package keep

import (
	"cmp"
	"time"
)

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
	MirrorError string `json:"mirror_error,omitempty"` // why the mirror, not read at depth inventory, cannot be as recorded
	SourceOlder bool   `json:"source_older,omitempty"` // its list is older than the mirror: what was mirrored of later changes was not compared with it

	ProvenUntil *time.Time `json:"proven_until,omitempty"` // of a verdict not proven: the mirror is equal to what the source was then
	ProvenSince *time.Time `json:"proven_since,omitempty"` // of a source without list and dump: changes of before were lost, and a person let that pass
}

// Judge gives the verdict. The mirror is different where something is found, and equal where
// nothing is and the source tells all that it has now. Else nothing is proven of now.
func (r *AuditReport) Judge() {
	switch {
	case r.Findings() > 0:
		r.Verdict, r.ProvenUntil = "different", nil
	case r.SourceError != "" || r.MirrorError != "" || r.SourceOlder:
		r.Verdict = "not proven"
	default:
		r.Verdict = "equal"
	}
	r.Equal = r.Verdict == "equal"
}

// Findings counts what keeps a mirror from being equal.
func (r *AuditReport) Findings() int64 { return r.Missing + r.Extra + r.Different }

// MendedBy are the differences that a later audit does not find any more.
func (r *AuditReport) MendedBy(later *AuditReport) (gone []Difference) {
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
	Place    string `json:"-"` // in the list of Differences
}

// OrNil is a time as a report has it, nil for none.
func OrNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
