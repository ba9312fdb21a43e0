package bridge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/rsbridge/rsbridge/bridge/lastruns"
	"github.com/rsbridge/rsbridge/internal/jobs"
)

// State is how a set or a destination stands, in one word. Status, API, dashboard,
// metrics and /readyz all say this word.
type State string

// The states.
const (
	StateNever       State = "never"       // no run has ended well yet
	StateRunning     State = "running"     // a run is under way, and all was well before it; or a server answers again
	StateOK          State = "ok"          // the last run of every job ended well and left nothing undone
	StateHeld        State = "held"        // a person must decide
	StateFailing     State = "failing"     // a run failed, or left something undone
	StatePaused      State = "paused"      // the schedule rests
	StateUnreachable State = "unreachable" // a run failed because a server did not answer, and none has since
	StateRemoved     State = "removed"     // it is in the state and not in the configuration
)

// States are all of them, in the order of the contract.
var States = []State{StateNever, StateRunning, StateOK, StateHeld, StateFailing, StatePaused, StateUnreachable, StateRemoved}

// standing is the basis for the state of a set or a destination.
type standing struct {
	lastruns.Last
	fault  string // why it cannot be opened
	held   string // waiting for a person
	undone string // left by the last run
	behind string // not published by the source yet, or not reached by an interrupted run
	never  string // why nothing is known yet
	paused string // why the schedule rests
}

// state is the word, and a line about the fault, "" for none. A bad word stays until a run
// has ended well: "running" hides nothing. A server that answers again is not unreachable any more.
func (s standing) state() (State, string) {
	state, why := StateOK, ""
	switch {
	case s.fault != "":
		return StateFailing, s.fault
	case s.held != "":
		state, why = StateHeld, s.held
	case s.Failed != nil && s.Failed.Unreachable && s.Answers:
		state, why = StateRunning, "the run before failed: "+s.Failed.Error
	case s.Failed != nil && s.Failed.Unreachable:
		state, why = StateUnreachable, s.Failed.Error
	case s.Failed != nil:
		state, why = StateFailing, s.Failed.Error
	case s.never != "":
		state, why = StateNever, s.never
	case s.undone != "":
		state, why = StateFailing, s.undone
	case s.behind != "": // no run failed
		why = s.behind
	}
	switch {
	case s.paused != "":
		state, why = StatePaused, strings.Trim(s.paused+"; "+why, "; ")
	case s.Busy && (state == StateOK || state == StateNever):
		if state = StateRunning; s.Waiting != nil {
			why = fmt.Sprintf("it tries again, attempt %d: %s", s.Waiting.Attempt, s.Waiting.Why)
		}
	}
	return state, strings.Join(strings.Fields(why), " ")
}

// setJobs are the jobs behind the state of a set. A rebase is a person's.
var setJobs = []string{"scan:", "hint:", "dump:", "changedump:", "list:", "archive:", "retain:"}

// destinationJobs are those of a destination.
var destinationJobs = []string{"sync:", "audit:"}

// judge fills in the state of a set.
func (s *SetStatus) judge(never bool, last lastruns.Last) {
	st := standing{Last: last}
	if s.Held != nil {
		st.held = s.Held.Reason
	}
	if s.Paused {
		st.paused = "its scans are paused: resume them with the API or the dashboard"
	}
	if never {
		st.never = "it was never scanned"
	}
	switch {
	case s.missing != "":
		st.undone = "the published file " + s.missing + " is missing or damaged, and is made again"
	case s.Failed > 0:
		st.undone = counted(s.Failed, "entity", "entities") + " could not be described at the last scan"
	case s.Dump != nil && len(s.Dump.Incomplete) > 0:
		f := s.Dump.Incomplete[0]
		st.undone = fmt.Sprintf("the newest dump is not complete: %s: %s", f.Path, f.Why)
	}
	s.State, s.Why = st.state()
}

// judge fills in the state of a destination.
func (d *DestinationStatus) judge(last lastruns.Last) {
	st := standing{Last: last, fault: d.Fault}
	if d.Paused {
		st.paused = "its schedule is paused: resume it with the API or the dashboard"
	}
	if d.Decision {
		st.held = d.Held
	}
	if last.Failed == nil && d.LastError != "" {
		st.Failed = &jobs.Run{Error: d.LastError} // of a forgotten run
	}
	if d.LastSync == nil {
		st.never = "it was never synced"
		if d.Interrupted || d.Resources > 0 {
			st.never = "no sync has ended yet: what was mirrored stays, and the next one goes on from there"
		}
	}
	switch {
	case d.InSync:
	case d.Unpublished > 0 && d.Held == "" && d.Pending == 0:
		st.behind = fmt.Sprintf("the source has changes up to %d in none of its lists and dumps yet", d.Unpublished)
	case d.Interrupted && d.Held == "" && d.Pending == 0:
		st.behind = "the last sync was interrupted: what it wrote stays, and the next one goes on from there"
	case d.Behind: // as between any change and its sync
	default:
		st.undone = cmp.Or(d.Held, d.pending(), "the last sync did not finish")
	}
	if d.Until != nil {
		st.paused, st.undone = strings.Trim(st.paused+"; the mirror is of "+d.Until.UTC().Format(time.RFC3339)+", until the next sync without --until", "; "), ""
	}
	d.State, d.Why = st.state()
}

// pending tells the rest left by the last sync, and the first of it.
func (d *DestinationStatus) pending() string {
	if d.Pending == 0 {
		return ""
	}
	left := counted(d.Pending, "resource is", "resources are") + " pending or failed"
	if len(d.Problems) > 0 {
		left += fmt.Sprintf(", as %s: %s", d.Problems[0].Location, d.Problems[0].Reason)
	}
	return left
}

// counted is a number of things in words.
func counted(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// Unwell is a set, a destination or a declaration of the API with a fault.
type Unwell struct {
	Kind  string `json:"kind"` // set, destination, store, state, declaration
	Name  string `json:"name"`
	State State  `json:"state"`
	Why   string `json:"why"`
}

// String is one line.
func (u Unwell) String() string {
	what := u.Kind
	if u.Name != "" {
		what += " " + u.Name
	}
	return fmt.Sprintf("%s: %s: %s", u.State, what, u.Why)
}

// Unwell are the sets and destinations with faults, and the declarations of the API that are left out.
func (st Status) Unwell() (all []Unwell) {
	for _, s := range st.Sets {
		if s.Why != "" {
			all = append(all, Unwell{"set", s.Name, s.State, s.Why})
		}
	}
	for _, d := range st.Destinations {
		if d.Why != "" {
			all = append(all, Unwell{"destination", d.Name, d.State, d.Why})
		}
	}
	for _, f := range st.LeftOut {
		all = append(all, Unwell{"declaration", f.Key, StateFailing, "it is left out: " + f.String()})
	}
	return all
}

// Readiness tells all faults, and whether the bridge can work. It cannot without a writable
// state (the disk is full, say) or without an embedded store (its folder was removed, say).
func (b *Bridge) Readiness(ctx context.Context) (ready bool, all []Unwell) {
	fault := func(kind, name string, err error) {
		all = append(all, Unwell{kind, name, StateFailing, strings.Join(strings.Fields(err.Error()), " ")})
	}
	faults := b.StoreFaults()
	for _, name := range slices.Sorted(maps.Keys(faults)) {
		fault("store", name, faults[name])
	}
	err := b.StateFault(ctx)
	var st Status
	if err == nil {
		st.Sets, err = b.SetStatuses(ctx)
	}
	if err == nil {
		st.Destinations, err = b.DestinationStatuses(ctx)
	}
	if err != nil {
		fault("state", "", err)
	}
	ready = len(all) == 0
	switch since, vain := Vacant(b); {
	case vain != nil:
		fault("state", "", fmt.Errorf("%s, and this process cannot go on: %w", LeaderNow(b), vain))
	case !since.IsZero():
		fault("state", "", errors.New(LeaderNow(b)))
	}
	st.LeftOut, _ = b.cfg.LeftOut()
	return ready, append(all, st.Unwell()...)
}
