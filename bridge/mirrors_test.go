package bridge

import (
	"context"
	"fmt"
	"testing"

	"github.com/rsbridge/rsbridge/internal/jobs"
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

// TestSkipsAreTold: a run of the schedule that was not wanted says so; one that was asked
// for is none of those.
func TestSkipsAreTold(t *testing.T) {
	b := mustOpen(t, small(t.TempDir()))
	defer func() { b.Close() }()
	fill(t, b, "source", sayings("1"))
	do[ScanReport](t, b, "scan", "data")
	if err := b.Pause(t.Context(), "copy", true); err != nil {
		t.Fatal(err)
	}
	m := b.dests["copy"]
	for job, work := range map[string]func(context.Context, *jobs.Run) (any, error){"sync": m.sync, "audit": m.audit} {
		got, err := work(t.Context(), &jobs.Run{Job: job + ":copy", Cause: "schedule"})
		if err != nil || got != (skipped{Paused: true}) {
			t.Errorf("%s: %+v %v", job, got, err)
		}
	}
	if rep := do[SyncReport](t, b, "sync", "copy"); rep.Created != 1 {
		t.Errorf("%+v", rep)
	}
}

// An audit of the schedule repairs where that is configured, and names what it has put
// right; without, it only tells.
func TestScheduledAuditRepairs(t *testing.T) {
	for _, repair := range []bool{false, true} {
		cfg := small(t.TempDir())
		d := cfg.Destinations["copy"]
		d.Audit.Repair = repair
		cfg.Destinations["copy"] = d
		b := mustOpen(t, cfg)
		fill(t, b, "source", sayings("1", "2", "3"))
		do[ScanReport](t, b, "scan", "data")
		do[SyncReport](t, b, "sync", "copy")
		fill(t, b, "mirror", sayings("1", "3")) // as a store that has lost a write
		got, err := b.dests["copy"].audit(t.Context(), &jobs.Run{Job: "audit:copy", Cause: "schedule"})
		rep, _ := got.(AuditReport)
		if err != nil || rep.Equal != repair || rep.Repaired != map[bool]int64{true: 1}[repair] || len(rep.Mended) != int(rep.Repaired) {
			t.Errorf("repair %t: %+v %v", repair, rep, err)
		}
		if repair && rep.Mended[0].Kind != "missing" {
			t.Errorf("%+v", rep.Mended)
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}
}
