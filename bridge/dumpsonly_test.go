package bridge_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/bridge"
	"github.com/rsbridge/rsbridge/internal/teststores"
)

// TestDumpsOnly: our own source with dumps and no lists is followed by a mirror,
// changes by the packages of the Change Dump.
func TestDumpsOnly(t *testing.T) {
	source, mirror := embedded(t, "source"), embedded(t, "mirror")
	cfg := config(t, source, mirror)
	set := cfg.Sets["data"]
	set.Publish = []string{"resourcedump", "changedump"}
	set.ChangeList.Entries = 4
	set.ResourceDump.Schedule, set.ChangeDump.Schedule = "@daily", "@daily"
	cfg.Sets["data"] = set
	b := open(t, cfg)
	put := func(version int, n int) {
		var data strings.Builder
		for i := range n {
			fmt.Fprintf(&data, "<http://ex.org/%d> <http://ex.org/p> \"%d\" .\n<http://ex.org/%d> <http://ex.org/q> _:b%d .\n_:b%d <http://ex.org/r> \"x\" .\n", i, i*version, i, i, i)
		}
		source.put(t, b, "application/n-triples", []byte(data.String()))
		if s := do[bridge.ScanReport](t, b, "scan", "data", nil); s.Failed > 0 || s.Held != nil {
			t.Fatalf("%+v", s)
		}
	}
	sync := func(inSync bool) bridge.SyncReport {
		s := do[bridge.SyncReport](t, b, "sync", "copy", nil)
		if s.InSync != inSync {
			t.Fatalf("%+v", s)
		}
		return s
	}
	put(1, 20)
	if s := sync(true); s.Mode != "baseline" || s.Created != 20 {
		t.Fatalf("%+v", s)
	}
	for step := range 3 {
		put(step+2, 20-step)
		put(step+9, 20-step)
		// A list is closed when its successor's first change arrives, so the last
		// changes of a step come in the package of the next one. Until then the
		// mirror is behind, and says so.
		run, _, err := b.Runner().Start("changedump:data", "test", nil)
		if err == nil {
			_, err = b.Runner().Wait(t.Context(), run.ID)
		}
		if err != nil {
			t.Fatal(err)
		}
		if s := sync(false); s.Mode != "incremental" || s.Updated == 0 {
			t.Fatalf("step %d: %+v", step, s)
		}
	}
	// Everything is packaged once enough follows.
	for i := range 5 {
		put(1, 10+i)
	}
	run, _, err := b.Runner().Start("dump:data", "test", nil)
	if err == nil {
		_, err = b.Runner().Wait(t.Context(), run.ID)
	}
	if err != nil {
		t.Fatal(err)
	}
	// The Resource Dump is newer than the Change Dump now, which is no gap.
	if s := do[bridge.SyncReport](t, b, "sync", "copy", map[string]bool{"full": true}); !s.InSync {
		t.Fatalf("%+v", s)
	}
	sync(true)
	teststores.Equal(t, source.get(t, b), mirror.get(t, b))
	if a := do[bridge.AuditReport](t, b, "audit", "copy", nil); !a.Equal {
		t.Fatalf("%+v", a)
	}
}
