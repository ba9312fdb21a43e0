package jobs_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rsbridge/rsbridge/internal/attempts"
	"github.com/rsbridge/rsbridge/internal/jobs"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/internal/kv/kvtest"
	"github.com/rsbridge/rsbridge/internal/kv/memkv"
)

func open(t *testing.T, store kv.Store, list ...jobs.Job) *jobs.Runner {
	t.Helper()
	r, err := jobs.Open(t.Context(), store, list, jobs.Options{Keep: 3})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func start(t *testing.T, r *jobs.Runner, job string, args any) (jobs.Run, bool) {
	t.Helper()
	run, joined, err := r.Start(job, "test", args)
	if err != nil {
		t.Fatal(err)
	}
	return run, joined
}

func wait(t *testing.T, r *jobs.Runner, id uint64) jobs.Run {
	t.Helper()
	run, err := r.Wait(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func job(name, subject string, run func(ctx context.Context, run *jobs.Run) (any, error)) jobs.Job {
	return jobs.Job{Name: name, Subject: subject, Run: run}
}

// TestOutcomes holds how results, errors, panics, timeouts and cancels are recorded.
func TestOutcomes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		forever := func(ctx context.Context, _ *jobs.Run) (any, error) { <-ctx.Done(); return nil, ctx.Err() }
		slow := job("slow", "d", forever)
		slow.Timeout = time.Minute
		r := open(t, memkv.New(),
			job("good", "a", func(_ context.Context, run *jobs.Run) (any, error) {
				run.Progress("half", 1, 2)
				return map[string]int{"n": 7}, nil
			}),
			job("bad", "b", func(context.Context, *jobs.Run) (any, error) { return "so far", errors.New("broken") }),
			job("panic", "c", func(context.Context, *jobs.Run) (any, error) { panic("ouch") }),
			slow,
			job("endless", "e", forever),
			job("stubborn", "f", func(ctx context.Context, _ *jobs.Run) (any, error) {
				<-ctx.Done()
				return nil, errors.New("the connection broke")
			}),
		)
		defer r.Close(0)
		for _, c := range []struct{ job, state, result, err string }{
			{"good", jobs.Done, `{"n":7}`, ""},
			{"bad", jobs.Failed, `"so far"`, "broken"},
			{"panic", jobs.Failed, ``, "ouch"},
			{"slow", jobs.Failed, ``, "longer than its timeout of 1m0s"},
		} {
			run, _ := start(t, r, c.job, nil)
			got := wait(t, r, run.ID)
			if got.State != c.state || string(got.Result) != c.result || !strings.Contains(got.Error, c.err) || (c.err == "") != (got.Error == "") {
				t.Errorf("%s: %+v", c.job, got)
			}
		}
		for _, name := range []string{"endless", "stubborn"} {
			run, _ := start(t, r, name, nil)
			synctest.Wait()
			if err := r.Cancel(run.ID); err != nil {
				t.Fatal(err)
			}
			if got := wait(t, r, run.ID); got.State != jobs.Cancelled {
				t.Errorf("cancelled run %s is %s", name, got.State)
			}
			if err := r.Cancel(run.ID); !errors.Is(err, jobs.ErrUnknown) {
				t.Errorf("cancel of an ended run gives %v", err)
			}
		}
	})
}

// TestSubjects holds that runs on one subject exclude each other, in the order
// in which they were asked for at most one queued of a kind, and others do not.
func TestSubjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		busy := map[string]int{}
		work := func(subject string) func(context.Context, *jobs.Run) (any, error) {
			return func(context.Context, *jobs.Run) (any, error) {
				mu.Lock()
				busy[subject]++
				if busy[subject] > 1 {
					t.Errorf("two runs on %s at once", subject)
				}
				mu.Unlock()
				time.Sleep(time.Second) // virtual
				mu.Lock()
				busy[subject]--
				mu.Unlock()
				return nil, nil
			}
		}
		r := open(t, memkv.New(), job("scan", "set", work("set")), job("dump", "set", work("set")), job("sync", "dest", work("dest")))
		defer r.Close(time.Hour)
		began := time.Now()
		first, joined := start(t, r, "scan", nil)
		if joined {
			t.Error("the first run joined another")
		}
		synctest.Wait()
		second, joined := start(t, r, "scan", nil)
		if joined || second.ID == first.ID {
			t.Error("a run that had begun was joined: it did not start after the call")
		}
		third, joined := start(t, r, "scan", nil)
		if !joined || third.ID != second.ID {
			t.Error("a queued run was not joined")
		}
		if _, joined := start(t, r, "scan", map[string]string{"accept": "x"}); joined {
			t.Error("a run with other arguments was joined")
		}
		start(t, r, "dump", nil)
		other, _ := start(t, r, "sync", nil)
		wait(t, r, other.ID)
		if d := time.Since(began); d != time.Second {
			t.Errorf("a run on another subject took %v", d)
		}
		if err := r.Close(time.Hour); err != nil {
			t.Fatal(err)
		}
	})
}

// TestHistory holds that runs survive restarts, that what a dead process left is
// marked, and that old ones are dropped.
func TestHistory(t *testing.T) {
	store := memkv.New()
	ok := job("ok", "a", func(context.Context, *jobs.Run) (any, error) { return 1, nil })
	r := open(t, store, ok)
	var last uint64
	for range 5 {
		run, _ := start(t, r, "ok", nil)
		last = wait(t, r, run.ID).ID
	}
	if err := r.Close(0); err != nil {
		t.Fatal(err)
	}
	// a run that a dead process left: as it is recorded when it begins
	raw, err := json.Marshal(jobs.Run{ID: last + 1, Job: "ok", Subject: "a", State: jobs.Running})
	if err != nil {
		t.Fatal(err)
	}
	b := store.Batch()
	b.Set([]byte{'r', 0, 0, 0, 0, 0, 0, 0, byte(last + 1)}, raw)
	b.Set([]byte{'o', 0, 0, 0, 0, 0, 0, 0, byte(last + 1)}, nil)
	if err := b.Commit(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	r = open(t, store, ok)
	defer r.Close(0)
	var states []string
	for run, err := range r.Runs(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		states = append(states, run.State)
	}
	if got := strings.Join(states, " "); got != "interrupted done done done" {
		t.Errorf("after a restart the runs are %q", got)
	}
	run, _ := start(t, r, "ok", nil)
	if run.ID != last+2 {
		t.Errorf("the next run is %d after %d", run.ID, last+1)
	}
}

// TestSchedule holds that schedules fire, one run of a job at a time, and end
// with Close.
func TestSchedule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		j := job("tick", "a", func(context.Context, *jobs.Run) (any, error) {
			n++
			time.Sleep(90 * time.Second) // virtual
			return nil, nil
		})
		j.Schedule = "@every 1m"
		r := open(t, memkv.New(), j)
		r.Schedule()
		synctest.Wait()
		if next := time.Until(r.Next("tick")); next <= 0 || next > time.Minute {
			t.Errorf("next in %v", next)
		}
		time.Sleep(10*time.Minute + time.Second) // virtual
		if err := r.Close(time.Hour); err != nil {
			t.Fatal(err)
		}
		if n != 5 { // every second tick finds the job busy
			t.Errorf("%d runs in ten minutes of 90 seconds each", n)
		}
		if _, _, err := r.Start("tick", "test", nil); !errors.Is(err, jobs.ErrClosed) {
			t.Errorf("a closed runner starts: %v", err)
		}
	})
	if _, err := jobs.Open(t.Context(), memkv.New(), []jobs.Job{{Name: "x", Schedule: "never"}}, jobs.Options{}); err == nil {
		t.Error("a wrong schedule was taken")
	}
}

// TestEndNotRecorded: who waits learns why a run failed, also when the state cannot
// take its end.
func TestEndNotRecorded(t *testing.T) {
	s := kvtest.Full{Store: memkv.New(), Left: 100}
	r := open(t, &s, job("fills", "a", func(context.Context, *jobs.Run) (any, error) {
		s.Left = 0
		return nil, errors.New("the disk is full")
	}))
	run, _ := start(t, r, "fills", nil)
	for _, run := range []jobs.Run{wait(t, r, run.ID), wait(t, r, run.ID)} {
		if run.State != jobs.Failed || run.Error != "the disk is full" {
			t.Errorf("the run is told as %s, %q", run.State, run.Error)
		}
	}
	if err := r.Close(time.Minute); err != nil {
		t.Error(err)
	}
}

// TestOpenAfterFullDisk: a run whose end could not be recorded is dropped with the other
// old ones, and does not keep the next process from opening the history.
func TestOpenAfterFullDisk(t *testing.T) {
	s := kvtest.Full{Store: memkv.New(), Left: 1000}
	full := true
	list := job("fills", "a", func(context.Context, *jobs.Run) (any, error) {
		if full {
			s.Left, full = 0, false
		}
		return nil, nil
	})
	r := open(t, &s, list)
	run, _ := start(t, r, "fills", nil)
	wait(t, r, run.ID)
	s.Left = 1000
	for range 5 {
		run, _ := start(t, r, "fills", nil)
		wait(t, r, run.ID)
	}
	if err := r.Close(time.Minute); err != nil {
		t.Fatal(err)
	}
	for range 2 { // as it is left now, and as it was left before
		r := open(t, &s, list)
		for run, err := range r.Runs(t.Context(), "") {
			if err != nil || run.State != jobs.Done {
				t.Errorf("%v %v", run, err)
			}
		}
		if err := r.Close(time.Minute); err != nil {
			t.Fatal(err)
		}
		b := s.Batch()
		b.Set([]byte{'o', 0, 0, 0, 0, 0, 0, 0, 1}, nil)
		if err := b.Commit(t.Context(), true); err != nil {
			t.Fatal(err)
		}
	}
}

// TestStages: a run tells its stages with their times, one that comes twice at its first place, and
// waits with a failed request until it is answered.
func TestStages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		step := make(chan struct{})
		r := open(t, memkv.New(), job("work", "a", func(ctx context.Context, run *jobs.Run) (any, error) {
			run.Progress("read", 5, 10)
			time.Sleep(2 * time.Second) // of the bubble
			run.Progress("write", 1, 0)
			time.Sleep(time.Second) // of the bubble
			run.Progress("read", 10, 10)
			time.Sleep(3 * time.Second) // of the bubble
			store := attempts.Begin(ctx, "store a")
			store.Fail(attempts.Failed{Attempt: 4, At: time.Now().Add(5 * time.Second), Why: "refused"})
			run.Progress("read", 10, 10) // as by fetchers that go on
			attempts.Begin(ctx, "web b").End(true)
			<-step
			store.End(true)
			<-step
			store.Fail(attempts.Failed{Attempt: 5, Why: "refused"})
			store.End(false)
			run.Progress("write", 2, 0)
			<-step
			return nil, nil
		}))
		defer r.Close(time.Minute)
		run, _ := start(t, r, "work", nil)
		now := func() jobs.Run {
			t.Helper()
			time.Sleep(10 * time.Second) // of the bubble
			synctest.Wait()
			if active := r.Active(); len(active) != 1 || active[0].ID != run.ID {
				t.Fatalf("active are %+v", active)
			}
			return r.Active()[0]
		}
		got := now()
		if w := got.Waiting; w == nil || w.Attempt != 4 || w.Why != "refused" {
			t.Errorf("waiting %+v", w)
		}
		if want := []jobs.Stage{{Name: "read", Done: 5, Total: 10, Seconds: 2}, {Name: "write", Done: 1, Seconds: 1}}; !slices.Equal(got.Stages, want) || got.Stage != "read" {
			t.Errorf("at %s after %+v", got.Stage, got.Stages)
		}
		for range 2 {
			step <- struct{}{}
			if got := now(); got.Waiting != nil {
				t.Errorf("still waiting %+v", got.Waiting)
			}
		}
		step <- struct{}{}
		if got := wait(t, r, run.ID); len(got.Stages) != 2 || got.Stages[0] != (jobs.Stage{Name: "read", Done: 10, Total: 10, Seconds: 19}) || got.Stages[1].Done != 2 || !got.Began.IsZero() {
			t.Errorf("at the end %+v", got)
		}
		if n := len(r.Active()); n != 0 {
			t.Errorf("%d are active at the end", n)
		}
	})
}
