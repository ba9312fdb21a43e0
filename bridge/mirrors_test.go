package bridge

import (
	"fmt"
	"testing"
)

// TestNoShareOfDeletions: max_delete_ratio 0 is no share at all, in a set as in a
// mirror, and not the default.
func TestNoShareOfDeletions(t *testing.T) {
	cfg := small(t.TempDir())
	d := cfg.Destinations["copy"]
	d.MaxDeleteRatio = 0
	cfg.Destinations["copy"] = d
	s := cfg.Sets["data"]
	s.Publish = []string{"resourcelist"} // deletions follow from what is not listed
	cfg.Sets["data"] = s
	b := mustOpen(t, cfg)
	defer func() { b.Close() }()
	var names []string
	for i := range 100 {
		names = append(names, fmt.Sprint(i))
	}
	for _, step := range []struct {
		left, deleted int
		held          bool
	}{{100, 0, false}, {90, 10, false}, {79, 0, true}} {
		fill(t, b, "source", sayings(names[:step.left]...))
		do[ScanReport](t, b, "scan", "data")
		rep := do[SyncReport](t, b, "sync", "copy")
		if int(rep.Deleted) != step.deleted || (rep.Held != "") != step.held {
			t.Errorf("%d left: %d deleted, held %q", step.left, rep.Deleted, rep.Held)
		}
	}
}
