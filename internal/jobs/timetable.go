package jobs

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/rsbridge/rsbridge/internal/kv"
)

// timing is when a job is due. A period (@every) is measured by the monotonic clock, which
// nobody sets; a fixed time (five fields, @daily) is compared with the clock on the wall.
type timing struct {
	fixed cron.Schedule // nil: a period
	every time.Duration
	due   time.Time // of a period: with its monotonic reading; of a fixed time: without
	mark  mark
}

// mark records the last run that the schedule began, so that the next process knows what
// was missed.
type mark struct {
	Schedule string    `json:"schedule"`
	Last     time.Time `json:"last"`           // when it began; of a new schedule: when it was first seen
	Open     bool      `json:"open,omitempty"` // the run has not ended by itself, or the first one has not begun
	Tries    int       `json:"tries,omitempty"`
}

const (
	longestWait = time.Minute      // between two looks at the clock
	jump        = 2 * time.Second  // the clock was set, and does not only drift
	settling    = 10 * time.Second // how long a clock that was set must stay before fixed times follow it
)

// newTiming reads a schedule.
func newTiming(text string) (*timing, error) {
	s, err := parseSchedule(text)
	if err != nil {
		return nil, err
	}
	if every, ok := s.(cron.ConstantDelaySchedule); ok {
		return &timing{every: every.Delay}, nil
	}
	return &timing{fixed: s}, nil
}

// begin says when the job is due first. A run missed while no process ran, and a run
// interrupted by the end of a process, is due at once, and once; a run that took its process
// with it twice waits for its schedule.
func (t *timing) begin(m mark, wall, mono time.Time) {
	t.mark = m
	last := m.Last
	if last.After(wall) { // the clock was ahead then
		last = wall
	}
	again := m.Open && m.Tries < 2
	switch {
	case t.fixed != nil && again:
		t.due = wall
	case t.fixed != nil:
		t.due = t.fixed.Next(last)
	case again:
		t.due = mono
	default:
		t.due = mono.Add(min(max(t.every-wall.Sub(last), 0), t.every))
	}
}

// wait is how long the job is not due yet; 0: it is due.
func (t *timing) wait(wall, mono, settled time.Time) time.Duration {
	if t.fixed == nil {
		return max(t.due.Sub(mono), 0)
	}
	return max(t.due.Sub(wall), settled.Sub(mono), 0)
}

// advance sets the time after a past one.
func (t *timing) advance(wall, mono time.Time) {
	if t.fixed != nil {
		t.due = t.fixed.Next(wall)
		return
	}
	if t.due = t.due.Add(t.every); t.due.Before(mono) {
		t.due = mono.Add(t.every)
	}
}

// next is when the job is due by the clock on the wall.
func (t *timing) next(wall, mono time.Time) time.Time {
	if t.fixed != nil {
		return t.due
	}
	return wall.Add(t.due.Sub(mono)).Round(time.Second)
}

// clocks reads both clocks. A time in UTC has no monotonic reading.
func (r *Runner) clocks() (wall, mono time.Time) { return r.now().UTC(), time.Now() }

// Schedule starts the schedules; they end with Close.
func (r *Runner) Schedule() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.scheduled {
		return
	}
	r.scheduled = true
	r.setTimes()
	r.wg.Go(r.keepTime)
}

// setTimes gives a time to each job without one.
func (r *Runner) setTimes() {
	wall, mono := r.clocks()
	for _, name := range r.order {
		e := r.jobs[name]
		if e.timing == nil || !e.timing.due.IsZero() {
			continue
		}
		m, err := r.readMark(name)
		if err != nil {
			r.log.Error("the last run of a schedule is not known; the schedule begins anew", "job", name, "error", err)
		}
		if m.Schedule != e.job.Schedule {
			m = mark{Schedule: e.job.Schedule, Last: wall, Open: m.Schedule == "" && e.job.First && err == nil}
			r.writeMark(name, m)
		}
		e.timing.begin(m, wall, mono)
	}
}

// keepTime begins due jobs, until Close.
func (r *Runner) keepTime() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	lastWall, lastMono := r.clocks()
	var settled time.Time
	for {
		select {
		case <-r.ctx.Done():
			return
		case <-r.changed:
		case <-timer.C:
		}
		wall, mono := r.clocks()
		set := wall.Sub(lastWall) - mono.Sub(lastMono)
		lastWall, lastMono = wall, mono
		if set.Abs() > jump {
			r.log.Warn("the clock was set; schedules with fixed times follow it when it stays", "by", set.Round(time.Second), "now", wall)
			settled = mono.Add(settling)
		}
		timer.Reset(r.beginDue(wall, mono, settled, set < -jump))
	}
}

// beginDue begins due jobs, and tells the time until the next. back: the clock
// was set back, so that fixed times lie too far ahead.
func (r *Runner) beginDue(wall, mono, settled time.Time, back bool) time.Duration {
	wait := longestWait
	var due []string
	r.mu.Lock()
	for _, name := range r.order {
		t := r.jobs[name].timing
		if t == nil || r.closed || t.due.IsZero() {
			continue
		}
		if back && t.fixed != nil {
			t.due = t.fixed.Next(wall)
		}
		if t.wait(wall, mono, settled) == 0 {
			t.advance(wall, mono)
			due = append(due, name)
		}
		wait = min(wait, t.wait(wall, mono, settled))
	}
	r.mu.Unlock()
	for _, name := range due {
		if _, busy := r.Busy(name); busy {
			continue // one run of a job at a time: the next time will do
		}
		if r.leaves(name) {
			continue
		}
		if _, _, err := r.Start(name, BySchedule, nil); err != nil && !errors.Is(err, ErrClosed) {
			r.log.Warn("scheduled run not started", "job", name, "error", err)
		}
	}
	return wait
}

// leaves tells whether a due run is left out.
func (r *Runner) leaves(name string) bool {
	r.mu.Lock()
	job := r.jobs[name].job
	r.mu.Unlock()
	return job.Leaves != nil && job.Leaves()
}

// Next is when the job is begun again, by its schedule or after a failed run; zero for never, now if it is due.
func (r *Runner) Next(job string) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.jobs[job]
	if e == nil {
		return time.Time{}
	}
	wall, mono := r.clocks()
	next := e.retries(wall, mono)
	if e.timing == nil || e.timing.due.IsZero() {
		return next
	}
	if at := e.timing.next(wall, mono); next.IsZero() || at.Before(next) {
		next = at
	}
	if next.Before(wall) {
		return wall
	}
	return next
}

// markBegun records a run begun by the schedule.
func (r *Runner) markBegun(e *entry) {
	t := e.timing
	if t == nil || t.due.IsZero() {
		return
	}
	t.mark.Last, t.mark.Open = r.now().UTC(), true
	t.mark.Tries++
	r.writeMark(e.job.Name, t.mark)
}

// markEnded records that a run of the schedule ended. One that was stopped with the
// process is made up for by the next one.
func (r *Runner) markEnded(job string, stopped bool) {
	e := r.jobs[job]
	if e == nil || e.timing == nil || e.timing.due.IsZero() {
		return
	}
	e.timing.mark.Open, e.timing.mark.Tries = stopped, 0
	r.writeMark(job, e.timing.mark)
}

func markKey(job string) []byte { return append([]byte{'s'}, job...) }

func (r *Runner) readMark(job string) (m mark, err error) {
	raw, err := r.store.Get(r.kept(), markKey(job))
	if errors.Is(err, kv.ErrNotFound) {
		return m, nil
	}
	if err == nil {
		err = json.Unmarshal(raw, &m)
	}
	return m, err
}

func (r *Runner) writeMark(job string, m mark) {
	raw, err := json.Marshal(m)
	if err == nil {
		b := r.store.Batch()
		defer b.Close()
		b.Set(markKey(job), raw)
		err = b.Commit(r.kept(), false)
	}
	if err != nil {
		r.log.Error("last run of a schedule not recorded", "job", job, "error", fmt.Errorf("write mark: %w", err))
	}
}
