// Package retained tells what the retention of a set keeps, and when it runs.
package retained

import (
	"context"
	"encoding/json"
	"time"

	"github.com/rsbridge/rsbridge/bridge/tables"
	"github.com/rsbridge/rsbridge/changetrack"
	"github.com/rsbridge/rsbridge/internal/jobs"
)

// Retained is the retention of a set in its status.
type Retained struct {
	Changes  string     `json:"changes"`            // how long changes are kept
	Versions string     `json:"versions"`           // likewise superseded representations
	Archives string     `json:"archives"`           // likewise archives
	After    uint64     `json:"after"`              // the log begins after this sequence
	Begins   *time.Time `json:"begins,omitempty"`   // of the last change that has gone; without it none has
	LastRun  *time.Time `json:"last_run,omitempty"` // of the retention
	Dropped  int64      `json:"dropped"`            // changes and versions, by the last run
	NextRun  *time.Time `json:"next_run,omitempty"`
}

// Of is the retention of a set, run by a job.
func Of(ctx context.Context, c tables.Retention, v *changetrack.View, runner *jobs.Runner, job string) (*Retained, error) {
	r := &Retained{Changes: c.Changes.String(), Versions: c.Versions.String(), Archives: c.Archives.String()}
	after, at := v.Tail()
	if r.After = after; after > 0 {
		r.Begins = &at
	}
	if next := runner.Next(job); !next.IsZero() {
		next = next.UTC()
		r.NextRun = &next
	}
	for run, err := range runner.Runs(ctx, job) {
		if err != nil {
			return nil, err
		}
		if run.State != jobs.Done {
			continue
		}
		var done struct {
			Dropped int64 `json:"dropped"`
		}
		_ = json.Unmarshal(run.Result, &done) // of a run by an earlier version
		r.LastRun, r.Dropped = &run.Ended, done.Dropped
		break
	}
	return r, nil
}
