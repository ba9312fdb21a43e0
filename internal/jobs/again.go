package jobs

import (
	"encoding/json"
	"errors"
	"time"
)

// Bounds of the pause before a failed run is begun again. It is never shorter than the run was.
const (
	leastAgain = time.Second
	mostAgain  = 5 * time.Minute
)

// retry is the next run after a failed one with the same arguments.
type retry struct {
	pause time.Duration
	due   time.Time // with its monotonic reading
	timer *time.Timer
}

// retryAfter plans the run after an ended one of a job with Again. Runs that others begin meanwhile
// do not move it, and a good one takes its place. The caller holds r.mu.
func (r *Runner) retryAfter(run Run) {
	e := r.jobs[run.Job]
	if e == nil || !e.job.Again || !r.scheduled {
		return
	}
	old, now := e.again[string(run.Args)], time.Now()
	next := &retry{pause: leastAgain}
	switch {
	case run.State != Failed:
		if old != nil {
			old.timer.Stop()
			delete(e.again, string(run.Args))
		}
		return
	case old != nil && now.Before(old.due):
		return
	case old != nil:
		next.pause = min(2*old.pause, mostAgain)
	}
	var args any
	if len(run.Args) > 0 {
		args = json.RawMessage(run.Args)
	}
	wait := max(next.pause, run.Ended.Sub(run.Started))
	next.due = now.Add(wait)
	next.timer = time.AfterFunc(wait, func() {
		if _, _, err := r.Start(run.Job, "again", args); err != nil && !errors.Is(err, ErrClosed) && !errors.Is(err, ErrUnknown) {
			r.log.Error("a failed run is not begun again", "job", run.Job, "error", err)
		}
	})
	e.again[string(run.Args)] = next
}

// retries is when a failed run of a job is begun again; zero for never.
func (e *entry) retries(wall, mono time.Time) (next time.Time) {
	for _, a := range e.again {
		if at := wall.Add(a.due.Sub(mono)).Round(time.Second); a.due.After(mono) && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	return next
}
