// Package jobs runs named functions on cron schedules, one run on a subject at a
// time, and records every run.
//
// A [Job] has a name ("scan:books") and a subject ("set:books"). Runs on one
// subject exclude each other whatever their job, so that a scan, an accept and a
// dump of one set never overlap; runs on different subjects go side by side.
//
// A [Runner] owns all jobs of a process. [Runner.Start] queues a run that begins
// after the call; [Runner.Wait] waits for its end. Every run is recorded in the
// key space before it begins and when it ends, so that history survives
// restarts; a run cut off by the end of its process is found again as
// "interrupted". Panics are caught and recorded as failures, a timeout ends the
// run's context. [Runner.Replace] exchanges the jobs while the process goes on.
//
// Periods (@every 5m) are measured by the monotonic clock, so that nobody stops them by
// setting the clock. The last run of each schedule is recorded: runs missed while no
// process ran, or was interrupted by the end of one, is made up for once, at the start.
//
// The work of a job is not known here.
package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"
)

// Job is a named piece of work on a subject.
type Job struct {
	Name     string        // unique, "scan:books"
	Subject  string        // "set:books"; runs on one subject exclude each other
	Schedule string        // robfig/cron syntax; "" for none
	Timeout  time.Duration // of one run; 0: none
	First    bool          // the schedule of a new job begins with a run at once
	Leaves   func() bool   // tells whether a run that is due by its schedule is left out; nil: none is
	Again    bool          // beside schedules, a failed run is begun again after a second, then after growing pauses
	// Run does the work. Its result is recorded as JSON, also beside an error.
	// The context ends on cancel, timeout and Close.
	Run func(ctx context.Context, run *Run) (result any, err error)
}

// The states of a run.
const (
	Queued      = "queued"
	Running     = "running"
	Done        = "done"
	Failed      = "failed"
	Cancelled   = "cancelled"
	Interrupted = "interrupted" // the process was stopped, or died, before the run had ended
)

// Run is one execution of a job. Copies handed out are snapshots.
type Run struct {
	ID      uint64          `json:"id"`
	Job     string          `json:"job"`
	Subject string          `json:"subject"`
	Cause   string          `json:"cause"` // schedule, notification, poll, api, command, again
	Args    json.RawMessage `json:"args,omitempty"`
	State   string          `json:"state"`
	Queued  time.Time       `json:"queued"`
	Started time.Time       `json:"started,omitzero"`
	Ended   time.Time       `json:"ended,omitzero"`
	Stage   string          `json:"stage,omitempty"`
	Done    int64           `json:"done,omitempty"`
	Total   int64           `json:"total,omitempty"`
	// Began is when the present stage began; Stages are those before it, and all once the run has
	// ended.
	Began  time.Time `json:"stage_began,omitzero"`
	Stages []Stage   `json:"stages,omitempty"`
	// Plan names the stages in their order, the past ones too, if the job has told them. A stage without work may
	// be left out. One that comes without a plan, or again, is added where it comes.
	Plan []string `json:"plan,omitempty"`
	// At is the number of the present stage in Plan, from 1; 0: it comes before the plan.
	At int `json:"stage_number,omitempty"`
	// Waiting tells of the failed request that has waited longest, until its server answers or the
	// request is given up.
	Waiting *Waiting        `json:"waiting,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   string          `json:"error,omitempty"`
	// Unreachable tells that it failed because a server did not answer: the job
	// returned an error with Unreachable() bool.
	Unreachable bool `json:"unreachable,omitempty"`

	progress func(stage string, done, total int64)
	plan     func(stages []string)
}

// Stage is a past stage of a run. One that came several times stands at its first place.
type Stage struct {
	Name    string  `json:"name"`
	Done    int64   `json:"done,omitempty"`
	Total   int64   `json:"total,omitempty"`
	Seconds float64 `json:"seconds"`
}

// Waiting is the pause before the next attempt of a request.
type Waiting struct {
	Attempt int       `json:"attempt"` // the next one
	At      time.Time `json:"at"`      // of the next one
	Why     string    `json:"why"`
}

// mostStages bounds the stages told of a run.
const mostStages = 30

// enter begins a stage, if it is another one.
func (r *Run) enter(stage string, now time.Time) {
	if stage == r.Stage && !r.Began.IsZero() {
		return
	}
	r.leave(now)
	r.Stage, r.Began = stage, now
	if len(r.Plan) == 0 {
		return
	}
	i := slices.Index(r.Plan[r.At:], stage)
	if i < 0 {
		r.Plan, i = slices.Insert(slices.Clone(r.Plan), r.At, stage), 0
	}
	r.At += i + 1
}

// plans ends the present stage, and has others follow it in place of those planned before.
func (r *Run) plans(stages []string, now time.Time) {
	r.leave(now)
	r.Plan = slices.Concat(r.Plan[:r.At], stages)
}

// leave ends the present stage. The list is made anew: others hold the former one.
func (r *Run) leave(now time.Time) {
	if r.Began.IsZero() {
		return
	}
	s := Stage{r.Stage, r.Done, r.Total, now.Sub(r.Began).Seconds()}
	r.Stages, r.Began = slices.Clone(r.Stages), time.Time{}
	for i, old := range r.Stages {
		if old.Name == s.Name {
			s.Seconds += old.Seconds
			r.Stages[i] = s
			return
		}
	}
	if len(r.Stages) < mostStages {
		r.Stages = append(r.Stages, s)
	}
}

// Over tells whether the run has ended.
func (r Run) Over() bool { return r.State != Queued && r.State != Running }

// Progress records how far the run is. It is cheap and may be called often;
// total 0 means unknown.
func (r *Run) Progress(stage string, done, total int64) {
	if r.progress != nil {
		r.progress(stage, done, total)
	}
}

// Plans records the names of all stages to come, in their order. The present one ends. A run may plan anew at any
// time. A stage without work may be left out.
func (r *Run) Plans(stages ...string) {
	if r.plan != nil {
		r.plan(stages)
	}
}

var (
	// ErrUnknown comes for a missing job or run.
	ErrUnknown = errors.New("no such job or run")
	// ErrClosed comes from a closing Runner.
	ErrClosed = errors.New("rsbridge is being stopped and begins no more runs")
	// ErrPanicked is in the error of a run that panicked.
	ErrPanicked = errors.New("panicked")

	errStopped   = errors.New("rsbridge was stopped before the run had ended")
	errCancelled = errors.New("the run was cancelled on request")
)

// BySchedule is the cause of runs begun by a schedule.
const BySchedule = "schedule"
