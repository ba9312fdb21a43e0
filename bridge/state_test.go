package bridge

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/bridge/lastruns"
	"github.com/rsbridge/rsbridge/changetrack"
	"github.com/rsbridge/rsbridge/destination"
	"github.com/rsbridge/rsbridge/internal/jobs"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/sparqlsrc/dumpfile"
)

// TestStateWords: the word of every standing, and whether anything is not well.
func TestStateWords(t *testing.T) {
	failed, lost := &jobs.Run{Error: "no\nroom"}, &jobs.Run{Error: "refused", Unreachable: true}
	for _, tc := range []struct {
		name string
		s    standing
		want State
		why  string
	}{
		{"well", standing{}, StateOK, ""},
		{"well, and at it", standing{Last: lastruns.Last{Busy: true}}, StateRunning, ""},
		{"well, and resting", standing{paused: "p"}, StatePaused, "p"},
		{"never run", standing{never: "n"}, StateNever, "n"},
		{"first run", standing{never: "n", Last: lastruns.Last{Busy: true}}, StateRunning, "n"},
		{"first run failed", standing{never: "n", Last: lastruns.Last{Failed: failed}}, StateFailing, "no room"},
		{"first run reached nothing, now another", standing{never: "n", Last: lastruns.Last{Failed: lost, Busy: true}}, StateUnreachable, "refused"},
		{"a store does not answer", standing{Last: lastruns.Last{Busy: true, Waiting: &jobs.Waiting{Attempt: 3, Why: "store a:\n refused"}}}, StateRunning, "it tries again, attempt 3: store a: refused"},
		{"nor did it before", standing{Last: lastruns.Last{Failed: lost, Busy: true, Waiting: &jobs.Waiting{Attempt: 3}}}, StateUnreachable, "refused"},
		{"now it answers", standing{Last: lastruns.Last{Failed: lost, Busy: true, Answers: true}}, StateRunning, "the run before failed: refused"},
		{"it answers, and failed otherwise", standing{Last: lastruns.Last{Failed: failed, Busy: true, Answers: true}}, StateFailing, "no room"},
		{"pending", standing{undone: "u", Last: lastruns.Last{Busy: true}}, StateFailing, "u"},
		{"pending and resting", standing{undone: "u", paused: "p"}, StatePaused, "p; u"},
		{"held and failed", standing{held: "h", Last: lastruns.Last{Failed: lost}}, StateHeld, "h"},
		{"held and at it", standing{held: "h", Last: lastruns.Last{Busy: true}}, StateHeld, "h"},
		{"not opened", standing{fault: "f", held: "h", paused: "p"}, StateFailing, "f"},
	} {
		if state, why := tc.s.state(); state != tc.want || why != tc.why {
			t.Errorf("%s: %s %q, want %s %q", tc.name, state, why, tc.want, tc.why)
		}
	}
	now := time.Now()
	for _, tc := range []struct {
		name string
		d    DestinationStatus
		want State
		why  string
	}{
		{"an audit found differences", DestinationStatus{Status: destination.Status{LastSync: &now, Held: "an audit found more"}}, StateFailing, "an audit found more"},
		{"deletions wait", DestinationStatus{Status: destination.Status{LastSync: &now, Held: "too many", Decision: true}}, StateHeld, "too many"},
		{"some are pending", DestinationStatus{Status: destination.Status{LastSync: &now, Pending: 2, Problems: []destination.Problem{{Location: "http://l", Reason: "404"}}}}, StateFailing, "2 resources are pending or failed, as http://l: 404"},
		{"not published", DestinationStatus{Status: destination.Status{LastSync: &now, Unpublished: 23}}, StateOK, "the source has changes up to 23 in none of its lists and dumps yet"},
		{"of a time", DestinationStatus{Status: destination.Status{LastSync: &now, Until: &time.Time{}}}, StatePaused, "the mirror is of 0001-01-01T00:00:00Z, until the next sync without --until"},
		{"of an older error", DestinationStatus{Status: destination.Status{InSync: true, LastSync: &now, LastError: "no"}}, StateFailing, "no"},
		{"heard of newer changes", DestinationStatus{Status: destination.Status{LastSync: &now, Behind: true}}, StateOK, ""},
	} {
		if tc.d.judge(lastruns.Last{}); tc.d.State != tc.want || tc.d.Why != tc.why {
			t.Errorf("%s: %s %q, want %s %q", tc.name, tc.d.State, tc.d.Why, tc.want, tc.why)
		}
	}
	for _, tc := range []struct {
		name string
		s    SetStatus
		want State
	}{
		{"held", SetStatus{Held: &changetrack.Held{Reason: "r"}}, StateHeld},
		{"some entities failed", SetStatus{Failed: 1}, StateFailing},
		{"the newest dump is cut", SetStatus{Dump: &DumpStatus{Incomplete: []dumpfile.Incomplete{{}}}}, StateFailing},
		{"well", SetStatus{}, StateOK},
	} {
		if tc.s.judge(false, lastruns.Last{}); tc.s.State != tc.want {
			t.Errorf("%s: %s, want %s", tc.name, tc.s.State, tc.want)
		}
	}
}

// TestStates: one bridge on its way. A dry run changes no word, nor does a pause hide
// what is not well.
func TestStates(t *testing.T) {
	cfg := small(t.TempDir())
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone := NewDestination()
	gone.Source, gone.Store, gone.GraphIRI = "http://"+l.Addr().String(), "mirror", "http://e.example/gone"
	l.Close()
	cfg.Destinations["gone"] = gone
	b := mustOpen(t, cfg)
	defer b.Close()
	words := func(unwell int) string {
		st, err := b.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		said := string(st.Sets[0].State)
		for _, d := range st.Destinations {
			said += " " + string(d.State)
		}
		if ready, named := b.Readiness(t.Context()); !ready || len(named) != unwell {
			t.Errorf("%s: ready %t, named are %v", said, ready, named)
		}
		return said
	}
	try := func(action, name string, args any, unwell int, want string) {
		t.Helper()
		_ = b.Do(t.Context(), action, name, args, nil) // the words tell
		if got := words(unwell); got != want {
			t.Errorf("after %s %s: %s, want %s", action, name, got, want)
		}
	}
	if got := words(3); got != "never never never" {
		t.Errorf("at first: %s", got)
	}
	const triple = "<http://e.example/%d> <http://e.example/p> \"1\" .\n"
	all := ""
	for i := range 20 {
		all += fmt.Sprintf(triple, i)
	}
	fill(t, b, "source", all)
	try("scan", "data", nil, 2, "ok never never")
	try("sync", "copy", SyncArgs{DryRun: true}, 2, "ok never never")
	try("sync", "copy", nil, 1, "ok ok never")
	try("sync", "gone", nil, 1, "ok ok unreachable")
	for _, name := range []string{"copy", "gone"} {
		if err := b.Pause(t.Context(), name, true); err != nil {
			t.Fatal(err)
		}
	}
	if got := words(2); got != "ok paused paused" {
		t.Errorf("paused: %s", got)
	}
	fill(t, b, "source", fmt.Sprintf(triple, 1))
	try("scan", "data", nil, 3, "held paused paused")
	fill(t, b, "source", all)
	try("scan", "data", nil, 2, "ok paused paused")
	if err := b.Pause(t.Context(), "copy", false); err != nil {
		t.Fatal(err)
	}
	if got := words(1); got != "ok ok paused" {
		t.Errorf("resumed: %s", got)
	}
}

// fullDisk is a state on a disk without room.
type fullDisk struct{ kv.Store }

func (s fullDisk) Batch() kv.Batch { return noRoom{s.Store.Batch()} }

type noRoom struct{ kv.Batch }

func (noRoom) Commit(context.Context, bool) error { return errors.New("no space\nleft on device") }

// TestStateWithoutRoom: while the state takes no records no run begins, and the runs of before
// say nothing of now.
func TestStateWithoutRoom(t *testing.T) {
	b := mustOpen(t, small(t.TempDir()))
	defer b.Close()
	fill(t, b, "source", "<http://e.example/1> <http://e.example/p> \"1\" .\n")
	for _, job := range [][2]string{{"scan", "data"}, {"sync", "copy"}} {
		if err := b.Do(t.Context(), job[0], job[1], nil, &struct{}{}); err != nil {
			t.Fatal(err)
		}
	}
	said := func(state State, why string) {
		t.Helper()
		st, err := b.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		s, d := st.Sets[0], st.Destinations[0]
		if s.State != state || s.Why != why || d.State != state || d.Why != why {
			t.Errorf("set: %s %q, destination: %s %q, want %s %q", s.State, s.Why, d.State, d.Why, state, why)
		}
	}
	said(StateOK, "")
	room := b.records
	b.records = fullDisk{room}
	said(StateFailing, "no run can begin: no space left on device")
	b.records = room
	said(StateOK, "")
}
