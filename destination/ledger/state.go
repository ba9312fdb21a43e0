package ledger

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Stage names where a destination stands.
type Stage string

const (
	// None: nothing was mirrored yet.
	None Stage = ""
	// Baseline: a list or dump is being taken. The mirror has resources of several moments.
	Baseline Stage = "baseline"
	// Following: changes are applied as the source tells them.
	Following Stage = "following"
	// Comparing: records, mirror and source are compared before the next change.
	Comparing Stage = "comparing"
	// Held: a person decides. Other changes go on.
	Held Stage = "held"
)

// Stages are all of them.
var Stages = []Stage{None, Baseline, Following, Comparing, Held}

func (s Stage) String() string { return cmp.Or(string(s), "none") }

// steps are the allowed ones: a baseline comes first, and nothing leads back to none.
// Staying is always allowed.
var steps = map[Stage][]Stage{
	None:      {Baseline},
	Baseline:  {Following, Comparing, Held},
	Following: {Baseline, Comparing, Held},
	Comparing: {Baseline, Following, Held},
	Held:      {Baseline, Following, Comparing},
}

// Allowed tells whether a destination may go from one stage to another.
func Allowed(from, to Stage) bool { return from == to || slices.Contains(steps[from], to) }

// State is where a destination stands, with its reasons. Debts outlive a baseline: a mirror
// to be compared is compared after it.
type State struct {
	Stage         Stage      `json:"stage,omitempty"`          // None, Baseline or Following
	CompareMirror string     `json:"compare_mirror,omitempty"` // why the mirror is to be compared with the records
	CompareSource string     `json:"compare_source,omitempty"` // why the records are to be compared with the source
	HeldGap       string     `json:"held_gap,omitempty"`       // the gap that waits for a person
	HeldDeletions *Deletions `json:"held_deletions,omitempty"` // the deletions that wait for a person
}

// Deletions wait for a person.
type Deletions struct {
	ID        string    `json:"id"`
	Reason    string    `json:"reason"`
	Deletions int64     `json:"deletions"`
	Of        int64     `json:"of"`
	Implied   bool      `json:"implied,omitempty"` // some of them only because a list lacks them
	Since     time.Time `json:"since"`
}

// At is the stage: the next run compares before it goes on, and a person is asked last.
func (s *State) At() Stage {
	switch {
	case s.Stage != Following:
		return s.Stage
	case s.CompareMirror != "" || s.CompareSource != "":
		return Comparing
	case s.HeldGap != "" || s.HeldDeletions != nil:
		return Held
	}
	return Following
}

// OweMirror has the mirror compared before the next change. The first reason stays.
func (s *State) OweMirror(why string) { s.CompareMirror = cmp.Or(s.CompareMirror, why) }

// OweSource has the records compared with the source before the next change. The first reason
// stays.
func (s *State) OweSource(why string) { s.CompareSource = cmp.Or(s.CompareSource, why) }

// Why is the reason of the stage, "" for none.
func (s *State) Why() string {
	switch s.At() {
	case Comparing:
		return cmp.Or(s.CompareMirror, s.CompareSource)
	case Held:
		if s.HeldDeletions != nil {
			return s.HeldDeletions.Reason
		}
		return s.HeldGap
	}
	return ""
}

// step refuses a step that is not allowed.
func step(from, to *State) error {
	if a, b := from.At(), to.At(); !Allowed(a, b) {
		return fmt.Errorf("state: no step leads from %s to %s", a, b)
	}
	return nil
}
