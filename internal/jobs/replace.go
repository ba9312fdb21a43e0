package jobs

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// patience is how long runs are kept from beginning at first, so that those under way can end.
const patience = 10 * time.Second

// Replace gives the runner other jobs at a moment when no run is under way: swap makes
// them. Runs asked for meanwhile are queued and begin afterwards, by the new
// jobs; nothing is cancelled. Runs under way are waited for, and while a long one goes on
// the others are not kept waiting, but for some moments at a time. waiting, which may be
// nil, is told the runs it waits for. When swap fails the jobs stay as they are.
func (r *Runner) Replace(ctx context.Context, waiting func([]Run), swap func() ([]Job, error)) error {
	for hold := patience; ; hold *= 2 {
		if err := r.waitRunning(ctx, waiting); err != nil {
			return err
		}
		waiting = nil // told
		open, quiet := r.hold(ctx, hold)
		if !quiet {
			open()
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			continue
		}
		defer open()
		jobs, err := swap()
		if err != nil {
			return err
		}
		return r.exchange(jobs)
	}
}

// waitRunning waits for the runs under way now.
func (r *Runner) waitRunning(ctx context.Context, waiting func([]Run)) error {
	r.mu.Lock()
	var list []*active
	var runs []Run
	for _, a := range r.active {
		if a.run.State == Running {
			list, runs = append(list, a), append(runs, a.run)
		}
	}
	r.mu.Unlock()
	if len(runs) > 0 && waiting != nil {
		slices.SortFunc(runs, func(a, b Run) int { return int(a.ID) - int(b.ID) })
		waiting(runs)
	}
	for _, a := range list {
		select {
		case <-a.done:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// hold keeps runs from beginning until open is called. quiet tells whether none is under
// way, for which it waits for a time.
func (r *Runner) hold(ctx context.Context, most time.Duration) (open func(), quiet bool) {
	r.mu.Lock()
	shut, idle := make(chan struct{}), make(chan struct{})
	r.door.shut = shut
	if r.door.inside == 0 {
		close(idle)
	} else {
		r.door.idle = idle
	}
	r.mu.Unlock()
	open = func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.door.shut, r.door.idle = nil, nil
		close(shut)
	}
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-idle:
		return open, true
	case <-timer.C:
	case <-ctx.Done():
	}
	return open, false
}

// enter waits until runs may begin; one inside another may. It gives the job as it is then.
func (r *Runner) enter(ctx context.Context, name string, inside bool) (Job, error) {
	for {
		r.mu.Lock()
		shut, e := r.door.shut, r.jobs[name]
		if inside {
			shut = nil
		}
		if shut == nil && e != nil {
			r.door.inside++
		}
		r.mu.Unlock()
		switch {
		case shut == nil && e == nil:
			return Job{}, fmt.Errorf("job %s is no longer in the configuration", name)
		case shut == nil:
			return e.job, nil
		}
		select {
		case <-shut:
		case <-ctx.Done():
			return Job{}, ctx.Err()
		}
	}
}

// leave is the end of enter.
func (r *Runner) leave() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.door.inside--; r.door.inside == 0 && r.door.idle != nil {
		close(r.door.idle)
		r.door.idle = nil
	}
}

// exchange takes other jobs. A schedule in both goes on as it is, and so do the runs after failed ones.
func (r *Runner) exchange(list []Job) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	jobs, order := r.jobs, r.order
	r.jobs, r.order = map[string]*entry{}, nil
	for _, j := range list {
		if err := r.add(j); err != nil {
			r.jobs, r.order = jobs, order
			return err
		}
		old := jobs[j.Name]
		if old == nil {
			continue
		}
		r.jobs[j.Name].again = old.again
		if old.job.Schedule == j.Schedule {
			r.jobs[j.Name].timing = old.timing
		}
	}
	if r.scheduled {
		r.setTimes()
		select {
		case r.changed <- struct{}{}:
		default:
		}
	}
	return nil
}
