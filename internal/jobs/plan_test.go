package jobs

import (
	"slices"
	"testing"
	"time"
)

// TestPlanAmended: the number of a stage grows with each one, and is never more than that of all, whatever comes
// without a plan, again, or not at all.
func TestPlanAmended(t *testing.T) {
	for _, tc := range []struct {
		name  string
		steps []any // a stage, or a plan
		plan  []string
		at    int
	}{
		{"as planned", []any{"wait", []string{"a", "b", "c"}, "a", "b", "c"}, []string{"a", "b", "c"}, 3},
		{"one is left out", []any{[]string{"a", "b", "c"}, "a", "c"}, []string{"a", "b", "c"}, 3},
		{"one is not planned", []any{[]string{"a", "b"}, "a", "x", "b"}, []string{"a", "x", "b"}, 3},
		{"one comes again", []any{[]string{"a", "b", "c"}, "a", "b", "a", "c"}, []string{"a", "b", "a", "c"}, 4},
		{"one comes behind the end", []any{[]string{"a"}, "a", "x"}, []string{"a", "x"}, 2},
		{"planned anew", []any{[]string{"dump", "b", "c"}, "dump", []string{"b", "c"}, "list", "b", "c"}, []string{"dump", "list", "b", "c"}, 4},
		{"the same again", []any{[]string{"a"}, "a", []string{"a"}, "a"}, []string{"a", "a"}, 2},
		{"no plan", []any{"a", "b"}, nil, 0},
	} {
		run, now, last := Run{}, time.Unix(1, 0), 0
		for _, step := range tc.steps {
			now = now.Add(time.Second)
			if stages, planned := step.([]string); planned {
				run.plans(stages, now)
			} else {
				run.enter(step.(string), now)
			}
			if run.At < last || run.At > len(run.Plan) || run.At > 0 && run.Plan[run.At-1] != run.Stage {
				t.Errorf("%s: stage %d of %v at %s", tc.name, run.At, run.Plan, run.Stage)
			}
			last = run.At
		}
		if !slices.Equal(run.Plan, tc.plan) || run.At != tc.at {
			t.Errorf("%s: %v at %d, want %v at %d", tc.name, run.Plan, run.At, tc.plan, tc.at)
		}
	}
}
