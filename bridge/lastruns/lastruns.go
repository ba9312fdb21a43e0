// Package lastruns reads how a set or destination stands from its newest runs. Runs that did nothing,
// were cut off, or only looked tell nothing.
package lastruns

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/rsbridge/rsbridge/internal/jobs"
)

// Last is what the newest runs tell.
type Last struct {
	Failed  *jobs.Run     // the last run of a job has failed; nil: none has
	Busy    bool          // a run is under way
	Answers bool          // a run under way, begun after the failed one, has read something, and no request of it waits
	Waiting *jobs.Waiting // for the next attempt of a request, of a run under way; nil: none waits
}

// Of looks at jobs of one name: Failed is of the first kind with a failed last run. A failure to
// reach the server counts until a later run ends well.
func Of(ctx context.Context, runner *jobs.Runner, kinds []string, name string) (last Last, err error) {
	var lost *jobs.Run // the newest failure to reach the server
	var well uint64    // the newest run with a good end
	var reads uint64   // the newest run under way that has read something
	for _, run := range runner.Active() {
		// of one job one run may be under way while another is queued
		if run.State == jobs.Running && slices.ContainsFunc(kinds, func(kind string) bool { return run.Job == kind+name }) {
			last.Busy, last.Waiting = true, cmp.Or(run.Waiting, last.Waiting)
			if run.Waiting == nil && (run.Done > 0 || slices.ContainsFunc(run.Stages, func(s jobs.Stage) bool { return s.Done > 0 })) {
				reads = max(reads, run.ID)
			}
		}
	}
	for _, kind := range kinds {
		for run, err := range runner.Runs(ctx, kind+name) {
			if err != nil {
				return Last{}, err
			}
			switch {
			case !ended(run):
				continue
			case run.State == jobs.Done:
				well = max(well, run.ID)
			case looks(run) && run.Unreachable && (lost == nil || lost.ID < run.ID):
				lost = &run
			}
			if looks(run) {
				continue
			}
			if run.State == jobs.Failed && last.Failed == nil {
				last.Failed = &run
			}
			break
		}
	}
	if last.Failed == nil && lost != nil && lost.ID > well {
		last.Failed = lost
	}
	last.Answers = last.Failed != nil && reads > last.Failed.ID
	return last, nil
}

// CutOff tells whether the last begun run of a job had no end of its own, as after a kill, and nothing has
// done its work since: read is when the last complete one began. A run under way says nothing yet.
func CutOff(ctx context.Context, runner *jobs.Runner, job string, read *time.Time) (bool, error) {
	for run, err := range runner.Runs(ctx, job) {
		if err != nil {
			return false, err
		}
		if class := Class(run); class != "" {
			return class == "interrupted" && (read == nil || read.Before(run.Started)), nil
		}
	}
	return false, nil
}

// Class keeps the runs behind a state beside those that did nothing, or only looked: it is for
// jobs.Options.
func Class(run jobs.Run) string {
	switch {
	case looks(run):
	case ended(run):
		return "ended"
	case run.State == jobs.Interrupted && !run.Started.IsZero():
		return "interrupted"
	}
	return ""
}

// ended tells whether a run came to its own end: not cut off, and not of a resting schedule.
func ended(run jobs.Run) bool {
	var result struct{ Paused bool }
	return run.State == jobs.Failed || run.State == jobs.Done && (json.Unmarshal(run.Result, &result) != nil || !result.Paused)
}

// looks tells whether a run only looked since a person asked: a dry run, or an audit beside
// the schedule.
func looks(run jobs.Run) bool {
	switch kind, _, _ := strings.Cut(run.Job, ":"); kind {
	case "sync":
		var args struct {
			DryRun bool `json:"dry_run"`
		}
		_ = json.Unmarshal(run.Args, &args) // none are none
		return args.DryRun
	case "audit":
		return run.Cause != jobs.BySchedule
	}
	return false
}
