package bridge

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/changetrack"
	"github.com/rsbridge/rsbridge/destination"
	"github.com/rsbridge/rsbridge/internal/jobs"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/internal/kv/memkv"
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
		{"well, and at it", standing{busy: true}, StateRunning, ""},
		{"well, and resting", standing{paused: "p"}, StatePaused, "p"},
		{"never run", standing{never: "n"}, StateNever, "n"},
		{"first run", standing{never: "n", busy: true}, StateRunning, "n"},
		{"first run failed", standing{never: "n", failed: failed}, StateFailing, "no room"},
		{"first run reached nothing, now another", standing{never: "n", failed: lost, busy: true}, StateUnreachable, "refused"},
		{"pending", standing{undone: "u", busy: true}, StateFailing, "u"},
		{"pending and resting", standing{undone: "u", paused: "p"}, StatePaused, "p; u"},
		{"held and failed", standing{held: "h", failed: lost}, StateHeld, "h"},
		{"held and at it", standing{held: "h", busy: true}, StateHeld, "h"},
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
		if tc.d.judge(nil, false); tc.d.State != tc.want || tc.d.Why != tc.why {
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
		if tc.s.judge(false, nil, false); tc.s.State != tc.want {
			t.Errorf("%s: %s, want %s", tc.name, tc.s.State, tc.want)
		}
	}
}

// TestRunsThatCount: the state does not follow from runs that did nothing, were cut off, or
// only looked.
func TestRunsThatCount(t *testing.T) {
	for _, tc := range []struct {
		run         jobs.Run
		ended, look bool
		class       string
	}{
		{jobs.Run{Job: "sync:a", State: jobs.Done}, true, false, "ended"},
		{jobs.Run{Job: "sync:a", State: jobs.Failed}, true, false, "ended"},
		{jobs.Run{Job: "sync:a", State: jobs.Cancelled}, false, false, ""},
		{jobs.Run{Job: "sync:a", State: jobs.Interrupted}, false, false, ""},
		{jobs.Run{Job: "sync:a", State: jobs.Interrupted, Started: time.Unix(1, 0)}, false, false, "interrupted"},
		{jobs.Run{Job: "sync:a", State: jobs.Done, Args: []byte(`{"dry_run":true}`)}, true, true, ""},
		{jobs.Run{Job: "sync:a", State: jobs.Done, Result: []byte(`{"paused":true}`)}, false, false, ""},
		{jobs.Run{Job: "audit:a", State: jobs.Failed, Cause: "command"}, true, true, ""},
		{jobs.Run{Job: "audit:a", State: jobs.Failed, Cause: "schedule"}, true, false, "ended"},
		{jobs.Run{Job: "scan:a", State: jobs.Running}, false, false, ""},
	} {
		if ended(tc.run) != tc.ended || looks(tc.run) != tc.look || runClass(tc.run) != tc.class {
			t.Errorf("%+v: ended %t, looks %t, class %q", tc.run, ended(tc.run), looks(tc.run), runClass(tc.run))
		}
	}
}

// TestRunsThatStay: many runs of a resting schedule, and many dry runs, push no run out of the history
// that a state is judged by.
func TestRunsThatStay(t *testing.T) {
	store := memkv.New()
	began := make(chan struct{})
	var result any
	var fault error
	job := jobs.Job{Name: "sync:a", Subject: "a", Run: func(ctx context.Context, run *jobs.Run) (any, error) {
		if run.Cause == "endless" {
			began <- struct{}{}
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return result, fault
	}}
	open := func() *jobs.Runner {
		r, err := jobs.Open(t.Context(), store, []jobs.Job{job}, jobs.Options{Class: runClass, Keep: 4})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	start := func(r *jobs.Runner, cause string, args any) jobs.Run {
		run, _, err := r.Start("sync:a", cause, args)
		if err != nil {
			t.Fatal(err)
		}
		return run
	}
	r := open()
	fault = errors.New("broken")
	for range 5 {
		if _, err := r.Wait(t.Context(), start(r, "schedule", nil).ID); err != nil {
			t.Fatal(err)
		}
	}
	start(r, "endless", nil)
	<-began
	if err := r.Close(0); err != nil {
		t.Fatal(err)
	}
	r = open()
	defer r.Close(0)
	for i := range 10 {
		var args any
		if result, fault = (skipped{true}), nil; i%2 == 1 {
			result, args = nil, SyncArgs{DryRun: true}
		}
		if _, err := r.Wait(t.Context(), start(r, "schedule", args).ID); err != nil {
			t.Fatal(err)
		}
	}
	failed, _, err := lastRuns(t.Context(), r, destinationJobs, "a")
	if err != nil || failed == nil || failed.Error != "broken" {
		t.Errorf("the last run of its own end: %+v, %v", failed, err)
	}
	if cut, err := cutOff(t.Context(), r, "sync:a"); err != nil || !cut {
		t.Errorf("interrupted %t, %v", cut, err)
	}
	n := 0
	for range r.Runs(t.Context(), "sync:a") {
		n++
	}
	if n != 4+1+4 {
		t.Errorf("%d runs are kept", n)
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

// noAnswer is an error of a server that did not answer.
type noAnswer struct{ error }

func (noAnswer) Unreachable() bool { return true }

// TestLookReachesNothing: an audit or a dry run that a person asked for, and that reached no
// server, is told until a run ends well.
func TestLookReachesNothing(t *testing.T) {
	var fault error
	work := func(context.Context, *jobs.Run) (any, error) { return nil, fault }
	r, err := jobs.Open(t.Context(), memkv.New(), []jobs.Job{{Name: "sync:a", Subject: "a", Run: work}, {Name: "audit:a", Subject: "a", Run: work}}, jobs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close(0)
	down, wrong := noAnswer{errors.New("refused")}, errors.New("wrong")
	dry := SyncArgs{DryRun: true}
	for i, tc := range []struct {
		job   string
		cause string
		args  any
		fault error
		want  State
	}{
		{"audit:a", "command", nil, down, StateUnreachable},
		{"sync:a", "schedule", nil, nil, StateOK},
		{"audit:a", "api", AuditArgs{Repair: true}, down, StateUnreachable},
		{"audit:a", "api", nil, wrong, StateUnreachable},
		{"audit:a", "api", nil, nil, StateOK},
		{"audit:a", "api", nil, wrong, StateOK},
		{"sync:a", "command", dry, down, StateUnreachable},
		{"sync:a", "command", dry, nil, StateOK},
		{"sync:a", "schedule", nil, down, StateUnreachable},
		{"sync:a", "command", dry, nil, StateUnreachable}, // the sync is still to be done
		{"audit:a", "command", nil, down, StateUnreachable},
		{"sync:a", "command", nil, wrong, StateFailing},
		{"sync:a", "command", nil, nil, StateOK},
		{"audit:a", "schedule", nil, wrong, StateFailing},
		{"sync:a", "schedule", nil, nil, StateFailing}, // nobody has audited since
		{"audit:a", "schedule", nil, nil, StateOK},
	} {
		fault = tc.fault
		run, _, err := r.Start(tc.job, tc.cause, tc.args)
		if err == nil {
			_, err = r.Wait(t.Context(), run.ID)
		}
		if err != nil {
			t.Fatal(err)
		}
		failed, busy, err := lastRuns(t.Context(), r, destinationJobs, "a")
		if state, _ := (standing{failed: failed, busy: busy}).state(); err != nil || state != tc.want {
			t.Errorf("%d: after %+v: %s %v", i, tc, state, err)
		}
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
