package dashboard

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/internal/jobs"
)

// TestNeverBack: by the stages of the last run, neither the number of the stage nor the bar goes back, whatever
// stages this one has.
func TestNeverBack(t *testing.T) {
	before := &jobs.Run{}
	for _, name := range strings.Fields("wait packages resources changes") {
		before.Stages = append(before.Stages, jobs.Stage{Name: name, Seconds: 10})
	}
	for stages, want := range map[string][2]int{
		"wait packages resources changes":                {4, 4},
		"wait resources changes":                         {4, 4},
		"wait packages list resources changes":           {5, 5},
		"wait packages resources list resources changes": {5, 5},
		"wait retry":                       {2, 5},
		"wait packages resources packages": {4, 5},
	} {
		run, now := jobs.Run{State: jobs.Running, Started: time.Unix(0, 0)}, time.Unix(0, 0)
		at, part := 0, 0.0
		for _, name := range strings.Fields(stages) {
			if run.Stage != "" && !slices.ContainsFunc(run.Stages, func(s jobs.Stage) bool { return s.Name == run.Stage }) {
				run.Stages = append(run.Stages, jobs.Stage{Name: run.Stage, Seconds: 5})
			}
			run.Stage, run.Began, run.Total = name, now, 10
			for run.Done = 0; run.Done < 10; run.Done += 3 {
				now = now.Add(time.Second)
				r := running(run, before, now)
				if r.At < at || r.At > r.Of || r.Part < part {
					t.Errorf("%s: at %s stage %d of %d after %d, bar %g after %g", stages, name, r.At, r.Of, at, r.Part, part)
				}
				at, part = r.At, r.Part
			}
		}
		if r := running(run, before, now); r.At != want[0] || r.Of != want[1] {
			t.Errorf("%s: stage %d of %d, want %v", stages, r.At, r.Of, want)
		}
	}
}
