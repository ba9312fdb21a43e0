package jobs_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rsbridge/rsbridge/internal/jobs"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/internal/kv/memkv"
)

// process is a process with one scheduled job, by a clock that can be set.
type process struct {
	*jobs.Runner
	mu  sync.Mutex      // guards ran
	ran []time.Duration // since the beginning of the test, by the clock that nobody sets
}

// startProcess starts the schedule of one job. ahead is added to the clock on the wall.
func startProcess(t *testing.T, store kv.Store, schedule string, ahead *atomic.Int64, began time.Time, run func(context.Context) error) *process {
	t.Helper()
	p := &process{}
	work := func(ctx context.Context, r *jobs.Run) (any, error) {
		p.mu.Lock()
		p.ran = append(p.ran, time.Since(began).Round(time.Second))
		p.mu.Unlock()
		return nil, run(ctx)
	}
	var err error
	p.Runner, err = jobs.Open(t.Context(), store, []jobs.Job{{Name: "scan", Subject: "a", Schedule: schedule, Run: work}}, jobs.Options{Now: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }})
	if err != nil {
		t.Fatal(err)
	}
	p.Schedule()
	synctest.Wait()
	return p
}

func (p *process) is(t *testing.T, what string, want ...time.Duration) {
	t.Helper()
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	if !slices.Equal(p.ran, want) {
		t.Errorf("%s: ran at %v, want %v", what, p.ran, want)
	}
}

func nothing(context.Context) error { return nil }

// TestClockIsSet: no schedule waits for a clock that was ahead, a period does not mind,
// and fixed times do not follow a clock that is wrong for a moment.
func TestClockIsSet(t *testing.T) {
	type step struct {
		after time.Duration
		ahead time.Duration // of the clock from then on
	}
	const h, m, s = time.Hour, time.Minute, time.Second
	for _, tc := range []struct {
		name, schedule string
		steps          []step
		until          time.Duration
		want           []time.Duration
	}{
		{"spike ahead", "@every 1s", []step{{2500 * time.Millisecond, h}, {3 * s, 0}}, 8500 * time.Millisecond, []time.Duration{s, 2 * s, 3 * s, 4 * s, 5 * s, 6 * s, 7 * s, 8 * s}},
		{"spike back", "@every 1s", []step{{2500 * time.Millisecond, -h}, {3 * s, 0}}, 6500 * time.Millisecond, []time.Duration{s, 2 * s, 3 * s, 4 * s, 5 * s, 6 * s}},
		{"set ahead", "@every 1h", []step{{30 * m, 24 * h}}, 2*h + m, []time.Duration{h, 2 * h}},
		{"set back", "@every 1h", []step{{30 * m, -24 * h}}, 2*h + m, []time.Duration{h, 2 * h}},
		{"fixed, spike ahead", "30 * * * *", []step{{10 * m, h}, {3 * s, 0}}, 2 * h, []time.Duration{30 * m, 90 * m}},
		{"fixed, spike of years", "0 12 * * *", []step{{10 * m, 20000 * h}, {3 * s, 0}}, 13 * h, []time.Duration{12 * h}},
		{"fixed, set back", "30 * * * *", []step{{10 * m, -30 * 24 * h}}, 2 * h, []time.Duration{30 * m, 90 * m}},
		{"fixed, set back over a run", "30 * * * *", []step{{40 * m, -20 * m}}, h, []time.Duration{30 * m, 50 * m}},
		{"fixed, set ahead over a run", "30 * * * *", []step{{10*m + 59*s, 40 * m}}, h, []time.Duration{11*m + 10*s, 50 * m}}, // noticed by the next look at the clock
	} {
		synctest.Test(t, func(t *testing.T) {
			began, ahead := time.Now(), new(atomic.Int64) // midnight
			p := startProcess(t, memkv.New(), tc.schedule, ahead, began, nothing)
			for _, st := range tc.steps {
				time.Sleep(st.after)
				ahead.Store(int64(st.ahead))
			}
			time.Sleep(tc.until - time.Since(began))
			p.is(t, tc.name, tc.want...)
			if next := time.Until(p.Next("scan").Add(-time.Duration(ahead.Load()))); next <= 0 || next > 24*h {
				t.Errorf("%s: the next run comes in %v", tc.name, next)
			}
			if err := p.Close(0); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestNextIsNotPast: a run that is due, and not begun yet, is told for now.
func TestNextIsNotPast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ahead := new(atomic.Int64)
		p := startProcess(t, memkv.New(), "30 * * * *", ahead, time.Now(), nothing)
		defer p.Close(0)
		ahead.Store(int64(time.Hour)) // not noticed yet
		if next := time.Until(p.Next("scan")); next != time.Hour {
			t.Errorf("a due run is told for %v beside the clock", next-time.Hour)
		}
	})
}

// TestMissed: what was missed while no process ran, or was interrupted by the end of one,
// is made up for at the start, once.
func TestMissed(t *testing.T) {
	const h, m = time.Hour, time.Minute
	synctest.Test(t, func(t *testing.T) { // restarted more often than its period
		store, ahead, began := memkv.New(), new(atomic.Int64), time.Now()
		var ran []time.Duration
		for range 10 {
			p := startProcess(t, store, "@every 3h", ahead, began, nothing)
			time.Sleep(h)
			if err := p.Close(0); err != nil {
				t.Error(err)
			}
			ran = append(ran, p.ran...)
		}
		if want := []time.Duration{3 * h, 6 * h, 9 * h}; !slices.Equal(ran, want) {
			t.Errorf("a period of three hours, an hour a process: ran at %v, want %v", ran, want)
		}
	})
	for _, tc := range []struct {
		name, schedule string
		down           time.Duration // after one hour
		ahead          time.Duration // of the clock afterwards
		want           []time.Duration
	}{
		{"a period that passed", "@every 2h", 10 * h, 0, []time.Duration{11 * h, 13 * h}},
		{"a period that did not pass", "@every 12h", 10 * h, 0, []time.Duration{12 * h}},
		{"a time that passed, several times", "0 * * * *", 10*h + m, 0, []time.Duration{11*h + m, 12 * h, 13 * h}},
		{"a time that did not pass", "0 12 * * *", 10 * h, 0, []time.Duration{12 * h}},
		{"no run before", "0 3 * * *", 10 * h, 0, []time.Duration{11 * h}},
		{"the clock was ahead", "@every 3h", 10 * h, -500 * h, []time.Duration{14 * h}},
	} {
		synctest.Test(t, func(t *testing.T) {
			store, ahead, began := memkv.New(), new(atomic.Int64), time.Now()
			p := startProcess(t, store, tc.schedule, ahead, began, nothing)
			time.Sleep(h - m)
			p.is(t, tc.name)
			p.Close(0)
			time.Sleep(tc.down + m)
			ahead.Store(int64(tc.ahead))
			p = startProcess(t, store, tc.schedule, ahead, began, nothing)
			time.Sleep(14*h - time.Since(began) - m)
			if tc.ahead != 0 {
				time.Sleep(m)
			}
			p.is(t, tc.name, tc.want...)
			p.Close(0)
		})
	}
	synctest.Test(t, func(t *testing.T) { // another schedule has missed nothing
		store, ahead, began := memkv.New(), new(atomic.Int64), time.Now()
		startProcess(t, store, "0 2 * * *", ahead, began, nothing).Close(0)
		time.Sleep(6 * h)
		p := startProcess(t, store, "0 5 * * *", ahead, began, nothing)
		p.is(t, "another schedule")
		p.Close(0)
	})
}

// TestStoppedRun: a run that was stopped with its process is made up for by the next; one
// that a person cancelled is not, nor one whose process died twice.
func TestStoppedRun(t *testing.T) {
	const h = time.Hour
	forever := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	synctest.Test(t, func(t *testing.T) {
		store, ahead, began := memkv.New(), new(atomic.Int64), time.Now()
		p := startProcess(t, store, "@every 24h", ahead, began, forever)
		time.Sleep(24 * h)
		p.is(t, "by its schedule", 24*h)
		p.Close(0)
		for run := range p.Runs(t.Context(), "scan") {
			if run.State != jobs.Interrupted || run.Error != "rsbridge was stopped before the run had ended" {
				t.Errorf("the run is told as %s: %s", run.State, run.Error)
			}
		}
		time.Sleep(h)
		p = startProcess(t, store, "@every 24h", ahead, began, forever)
		p.is(t, "made up for", 25*h)
		run, _ := p.Busy("scan")
		if err := p.Cancel(run.ID); err != nil {
			t.Fatal(err)
		}
		if run, err := p.Wait(t.Context(), run.ID); err != nil || run.State != jobs.Cancelled || run.Error != "the run was cancelled on request" {
			t.Errorf("%+v %v", run, err)
		}
		p.Close(0)
		p = startProcess(t, store, "@every 24h", ahead, began, forever)
		p.is(t, "cancelled")
		time.Sleep(24 * h)
		p.is(t, "by its schedule again", 49*h)
		p.Close(0)
	})
	synctest.Test(t, func(t *testing.T) { // the process dies: nothing more is written
		store, ahead, began := memkv.New(), new(atomic.Int64), time.Now()
		var starts []time.Duration
		for _, lives := range []time.Duration{25 * h, h, h, h} {
			dying := &deaf{Store: store}
			p := startProcess(t, dying, "@every 24h", ahead, began, forever)
			time.Sleep(lives)
			dying.dead.Store(true)
			p.Close(0)
			starts = append(starts, p.ran...)
		}
		if want := []time.Duration{24 * h, 25 * h}; !slices.Equal(starts, want) {
			t.Errorf("a run that takes its process with it was begun at %v, want %v", starts, want)
		}
	})
	synctest.Test(t, func(t *testing.T) { // the machine dies behind the end of a run: what was not synced is lost
		store, ahead, began := memkv.New(), new(atomic.Int64), time.Now()
		p := startProcess(t, store, "@every 24h", ahead, began, nothing)
		time.Sleep(24 * h)
		p.is(t, "by its schedule", 24*h)
		left := store.Crash(0)
		p.Close(0)
		p = startProcess(t, left, "@every 24h", ahead, began, nothing)
		p.is(t, "it had ended")
		p.Close(0)
	})
}

// deaf forgets all writes once it is dead.
type deaf struct {
	kv.Store
	dead atomic.Bool
}

func (d *deaf) Batch() kv.Batch {
	if d.dead.Load() {
		return memkv.New().Batch()
	}
	return d.Store.Batch()
}

// TestReplace: other jobs come when no run is under way; none is lost or cancelled, and
// none waits long for a long one.
func TestReplace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex // guards ran
		var ran []string
		began := time.Now()
		list := func(gen string, names ...string) (out []jobs.Job) {
			for _, name := range names {
				j := jobs.Job{Name: name, Subject: name, Run: func(context.Context, *jobs.Run) (any, error) {
					if name == "long" {
						time.Sleep(time.Hour) // virtual
					}
					mu.Lock()
					defer mu.Unlock()
					ran = append(ran, fmt.Sprintf("%s %s %v", gen, name, time.Since(began).Round(time.Minute)))
					return nil, nil
				}}
				if name == "tick" {
					j.Schedule = "@every 10m"
				}
				out = append(out, j)
			}
			return out
		}
		r := open(t, memkv.New(), list("old", "long", "tick", "gone")...)
		defer r.Close(0)
		r.Schedule()
		start(t, r, "long", nil)
		synctest.Wait()
		second, _ := start(t, r, "long", map[string]int{"second": 1}) // queued
		var told, queued []string
		var asked, gone jobs.Run
		err := r.Replace(t.Context(), func(runs []jobs.Run) {
			for _, run := range runs {
				told = append(told, run.Job)
			}
		}, func() ([]jobs.Job, error) {
			for job, run := range map[string]*jobs.Run{"tick": &asked, "gone": &gone} {
				*run, _ = start(t, r, job, nil)
			}
			synctest.Wait()
			for run := range r.Runs(t.Context(), "") {
				if run.State == jobs.Queued {
					queued = append(queued, run.Job)
				}
			}
			return list("new", "long", "tick", "more"), nil
		})
		if err != nil || strings.Join(told, " ") != "long" || len(queued) < 2 {
			t.Errorf("%v; waited for %q, queued while they were replaced: %q", err, told, queued)
		}
		if run := wait(t, r, asked.ID); run.State != jobs.Done {
			t.Errorf("a run that was asked for meanwhile: %+v", run)
		}
		if run := wait(t, r, gone.ID); run.State != jobs.Failed || run.Error != "job gone is no longer in the configuration" {
			t.Errorf("a run of a job that went: %+v", run)
		}
		wait(t, r, second.ID)
		more, _ := start(t, r, "more", nil)
		wait(t, r, more.ID)
		time.Sleep(30 * time.Minute)
		synctest.Wait()
		var ticks int
		for _, line := range ran {
			if strings.HasPrefix(line, "old tick") {
				ticks++
			}
		}
		if ticks < 5 { // during the hour of the long run
			t.Errorf("a schedule waited for a long run of another job: %q", ran)
		}
		all := strings.Join(ran, "\n")
		for _, want := range []string{"old long 1h", "new more", "new tick"} {
			if !strings.Contains(all, want) {
				t.Errorf("no %q in %q", want, ran)
			}
		}
		if strings.Count(all, "long") != 2 {
			t.Errorf("two long runs were asked for: %q", ran)
		}
		if err := r.Replace(t.Context(), nil, func() ([]jobs.Job, error) { return nil, context.DeadlineExceeded }); err != context.DeadlineExceeded || len(r.Jobs()) != 3 {
			t.Errorf("after a replacement that failed: %v, %d jobs", err, len(r.Jobs()))
		}
	})
}

// TestLeaves: a due run that its job leaves out is no run, and the schedule goes on.
func TestLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var leaves atomic.Bool
		var runs atomic.Int64
		r, err := jobs.Open(t.Context(), memkv.New(), []jobs.Job{{Name: "sync", Subject: "a", Schedule: "@every 1m", Leaves: leaves.Load, Run: func(context.Context, *jobs.Run) (any, error) {
			runs.Add(1)
			return nil, nil
		}}}, jobs.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close(time.Hour)
		r.Schedule()
		for _, c := range []struct {
			leaves bool
			want   int64
		}{{false, 3}, {true, 3}, {false, 6}} {
			leaves.Store(c.leaves)
			time.Sleep(3*time.Minute + time.Second)
			synctest.Wait()
			if got := runs.Load(); got != c.want {
				t.Errorf("leaves %t: %d runs, want %d", c.leaves, got, c.want)
			}
		}
		recorded := 0
		for _, err := range r.Runs(t.Context(), "sync") {
			if recorded++; err != nil {
				t.Error(err)
			}
		}
		if recorded != 6 {
			t.Errorf("%d runs are recorded", recorded)
		}
	})
}

// TestFirst: the schedule of a new job begins with a run at once, once; a job with another schedule is not new.
func TestFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, began := memkv.New(), time.Now()
		var ran []time.Duration
		open := func(schedule string) *jobs.Runner {
			t.Helper()
			r, err := jobs.Open(t.Context(), store, []jobs.Job{{Name: "scan", Subject: "a", Schedule: schedule, First: true, Run: func(context.Context, *jobs.Run) (any, error) {
				ran = append(ran, time.Since(began).Round(time.Second))
				return nil, nil
			}}}, jobs.Options{})
			if err != nil {
				t.Fatal(err)
			}
			r.Schedule()
			synctest.Wait()
			return r
		}
		for i, schedule := range []string{"@every 2d", "@every 2d", "@every 1w", "0 3 1 1 *"} {
			r := open(schedule)
			if len(ran) != 1 || ran[0] != 0 {
				t.Errorf("process %d: ran at %v, want once at 0s", i, ran)
			}
			if err := r.End(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Hour)
		}
		r := open("@every 2d")
		defer r.End()
		time.Sleep(48 * time.Hour)
		synctest.Wait()
		if want := []time.Duration{0, 52 * time.Hour}; !slices.Equal(ran, want) {
			t.Errorf("ran at %v, want %v", ran, want)
		}
	})
}
