package lastruns

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/internal/attempts"
	"github.com/rsbridge/rsbridge/internal/jobs"
	"github.com/rsbridge/rsbridge/internal/kv/memkv"
)

// dry are the arguments of a dry run, rests is the result of a resting schedule.
var dry, rests = map[string]bool{"dry_run": true}, map[string]bool{"paused": true}

var ofDestination = []string{"sync:", "audit:"}

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
		if ended(tc.run) != tc.ended || looks(tc.run) != tc.look || Class(tc.run) != tc.class {
			t.Errorf("%+v: ended %t, looks %t, class %q", tc.run, ended(tc.run), looks(tc.run), Class(tc.run))
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
		r, err := jobs.Open(t.Context(), store, []jobs.Job{job}, jobs.Options{Class: Class, Keep: 4})
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
		if result, fault = any(rests), nil; i%2 == 1 {
			result, args = nil, dry
		}
		if _, err := r.Wait(t.Context(), start(r, "schedule", args).ID); err != nil {
			t.Fatal(err)
		}
	}
	last, err := Of(t.Context(), r, ofDestination, "a")
	if err != nil || last.Failed == nil || last.Failed.Error != "broken" {
		t.Errorf("the last run of its own end: %+v, %v", last.Failed, err)
	}
	later := time.Now().Add(time.Hour)
	for read, want := range map[*time.Time]bool{nil: true, {}: true, &later: false} {
		if cut, err := CutOff(t.Context(), r, "sync:a", read); err != nil || cut != want {
			t.Errorf("read at %v: interrupted %t, %v", read, cut, err)
		}
	}
	n := 0
	for range r.Runs(t.Context(), "sync:a") {
		n++
	}
	if n != 4+1+4 {
		t.Errorf("%d runs are kept", n)
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
	for i, tc := range []struct {
		job   string
		cause string
		args  any
		fault error
		want  string // the error of the failed run
	}{
		{"audit:a", "command", nil, down, "refused"},
		{"sync:a", "schedule", nil, nil, ""},
		{"audit:a", "api", map[string]bool{"repair": true}, down, "refused"},
		{"audit:a", "api", nil, wrong, "refused"},
		{"audit:a", "api", nil, nil, ""},
		{"audit:a", "api", nil, wrong, ""},
		{"sync:a", "command", dry, down, "refused"},
		{"sync:a", "command", dry, nil, ""},
		{"sync:a", "schedule", nil, down, "refused"},
		{"sync:a", "command", dry, nil, "refused"}, // the sync is still to be done
		{"audit:a", "command", nil, down, "refused"},
		{"sync:a", "command", nil, wrong, "wrong"},
		{"sync:a", "command", nil, nil, ""},
		{"audit:a", "schedule", nil, wrong, "wrong"},
		{"sync:a", "schedule", nil, nil, "wrong"}, // nobody has audited since
		{"audit:a", "schedule", nil, nil, ""},
	} {
		fault = tc.fault
		run, _, err := r.Start(tc.job, tc.cause, tc.args)
		if err == nil {
			_, err = r.Wait(t.Context(), run.ID)
		}
		if err != nil {
			t.Fatal(err)
		}
		last, err := Of(t.Context(), r, ofDestination, "a")
		got := ""
		if last.Failed != nil {
			got = last.Failed.Error
		}
		if err != nil || got != tc.want || last.Failed != nil && last.Failed.Unreachable != (got == "refused") {
			t.Errorf("%d: after %+v: %+v %v", i, tc, last.Failed, err)
		}
	}
}

// TestWaiting: a run under way tells which attempt of a request comes, until the request is answered.
// Another run in the queue does not hide it.
func TestWaiting(t *testing.T) {
	step := make(chan attempts.Failed)
	work := func(ctx context.Context, _ *jobs.Run) (any, error) {
		request := attempts.Begin(ctx, "store a")
		for f := range step {
			if f.Attempt > 0 {
				request.Fail(f)
			} else {
				request.End(true)
			}
		}
		return nil, nil
	}
	r, err := jobs.Open(t.Context(), memkv.New(), []jobs.Job{{Name: "sync:a", Subject: "a", Run: work}}, jobs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close(0)
	run, _, err := r.Start("sync:a", "test", nil)
	if err != nil {
		t.Fatal(err)
	}
	step <- attempts.Failed{} // it runs
	queued, _, err := r.Start("sync:a", "test", nil)
	if err != nil || queued.ID == run.ID {
		t.Error(queued.ID, err)
	}
	for attempt, told := range []bool{2: true, 3: true, 4: false} {
		f := attempts.Failed{Attempt: attempt, Why: "refused"}
		if !told {
			f = attempts.Failed{}
		}
		step <- f
		step <- f // the first one is told
		last, err := Of(t.Context(), r, ofDestination, "a")
		if err != nil || !last.Busy || (last.Waiting != nil) != told || told && (last.Waiting.Attempt != attempt || last.Waiting.Why != "refused") {
			t.Errorf("at attempt %d: %+v %+v %v", attempt, last, last.Waiting, err)
		}
	}
	close(step)
	if _, err := r.Wait(t.Context(), queued.ID); err != nil {
		t.Fatal(err)
	}
}

// TestAnswers: a run after an unanswered one tells when it has read something.
func TestAnswers(t *testing.T) {
	step := make(chan func(*jobs.Run))
	work := func(_ context.Context, run *jobs.Run) (any, error) {
		for do := range step {
			if do == nil {
				return nil, noAnswer{errors.New("refused")}
			}
			do(run)
		}
		return nil, nil
	}
	r, err := jobs.Open(t.Context(), memkv.New(), []jobs.Job{{Name: "sync:a", Subject: "a", Run: work}}, jobs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close(0)
	failed, _, err := r.Start("sync:a", "test", nil)
	if err != nil {
		t.Fatal(err)
	}
	step <- nil
	if _, err := r.Wait(t.Context(), failed.ID); err != nil {
		t.Fatal(err)
	}
	if _, _, err := r.Start("sync:a", "test", nil); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		stage string
		done  int64
		want  bool
	}{{"read", 0, false}, {"read", 5, true}, {"compare", 0, true}} {
		progress := func(run *jobs.Run) { run.Progress(tc.stage, tc.done, 0) }
		step <- progress
		step <- progress // the first one is told
		if last, err := Of(t.Context(), r, ofDestination, "a"); err != nil || last.Failed == nil || last.Answers != tc.want {
			t.Errorf("at %s %d: %+v %v", tc.stage, tc.done, last, err)
		}
	}
	close(step)
}
