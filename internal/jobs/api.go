// Package jobs runs named functions on cron schedules, one run on a subject at a
// time, and records every run.
package jobs

import (
	"context"
	"encoding/json"
	"iter"
	"log/slog"
	"time"

	"github.com/rsbridge/rsbridge/internal/kv"
)

// Job is a named piece of work on a subject ("set:books", "destination:copy").
type Job struct {
	Name     string // "scan:books"
	Subject  string // runs on one subject exclude each other, whatever the job
	Schedule string // robfig/cron; "" for none
	Timeout  time.Duration
	// Run does the work; its result is recorded as JSON. args come from Start.
	Run func(ctx context.Context, run *Run) (result any, err error)
}

// Run is one execution.
type Run struct {
	ID                     uint64          `json:"id"`
	Job                    string          `json:"job"`
	Subject                string          `json:"subject"`
	Cause                  string          `json:"cause"` // schedule, api, command
	Args                   json.RawMessage `json:"args,omitempty"`
	State                  string          `json:"state"` // queued, running, done, failed, cancelled, interrupted
	Queued, Started, Ended time.Time
	Stage                  string          `json:"stage,omitempty"`
	Done                   int64           `json:"done"`
	Total                  int64           `json:"total"`
	Result                 json.RawMessage `json:"result,omitempty"`
	Error                  string          `json:"error,omitempty"`
}

// Progress records how far the run is; cheap, may be called often.
func (r *Run) Progress(stage string, done, total int64) { panic("stub") }

// Runner owns the jobs. Start and Stop it.
type Runner struct{}

type Options struct {
	Now    func() time.Time
	Logger *slog.Logger
	Keep   int // runs kept per job; default 200
}

// Open reads the history; runs that were under way when the process died are marked interrupted.
func Open(store kv.Store, jobs []Job, o Options) (*Runner, error) { panic("stub") }

// Schedule starts the cron schedules; they end with Close.
func (r *Runner) Schedule() { panic("stub") }

// Start queues a run that will start after this call. If one of the same job is
// already queued (not started) that one is returned with joined true.
func (r *Runner) Start(job, cause string, args any) (run Run, joined bool, err error) { panic("stub") }

// Busy returns the run of this job that is under way or queued.
func (r *Runner) Busy(job string) (Run, bool) { panic("stub") }

// Wait waits for the end of a run; ending ctx detaches, it does not cancel.
func (r *Runner) Wait(ctx context.Context, id uint64) (Run, error) { panic("stub") }
func (r *Runner) Cancel(id uint64) error                           { panic("stub") }
func (r *Runner) Get(id uint64) (Run, error)                       { panic("stub") }

// Runs yields runs, newest first; job "" is all.
func (r *Runner) Runs(job string) iter.Seq2[Run, error] { panic("stub") }
func (r *Runner) Jobs() []Job                           { panic("stub") }

// Next is when the schedule starts the job again; zero for never.
func (r *Runner) Next(job string) time.Time { panic("stub") }

// Watch delivers every change of a run until ctx ends; slow readers lose progress, never ends.
func (r *Runner) Watch(ctx context.Context) <-chan Run { panic("stub") }

// Close stops schedules, cancels after grace, waits for all.
func (r *Runner) Close(grace time.Duration) error { panic("stub") }
