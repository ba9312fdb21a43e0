package bridge_test

import (
	"testing"

	"github.com/rsbridge/rsbridge/bridge"
	"github.com/rsbridge/rsbridge/internal/jobs"
	"github.com/rsbridge/rsbridge/internal/teststores"
)

// TestFirstRuns: where a schedule says an hour, the first scan and then the first sync
// begin with the daemon; without a schedule, and once they have been, nothing does.
func TestFirstRuns(t *testing.T) {
	source, mirror := embedded(t, "source"), embedded(t, "mirror")
	cfg := config(t, source, mirror)
	set, copied := cfg.Sets["data"], cfg.Destinations["copy"]
	quiet := set
	set.Schedule, copied.Schedule = "@every 1h", "@every 1h"
	quiet.Schedule = ""
	cfg.Sets["data"], cfg.Sets["quiet"], cfg.Destinations["copy"] = set, quiet, copied
	copied.Set = "data"
	cfg.Destinations["copy"] = copied
	b := open(t, cfg)
	source.put(t, b, "application/n-triples", []byte("<http://ex.org/1> <http://ex.org/p> \"1\" .\n"))
	ran := func(b *bridge.Bridge) (n int) {
		t.Helper()
		for r, err := range b.Runner().Runs("") {
			if err != nil {
				t.Fatal(err)
			}
			if r.Cause != jobs.Scheduled {
				t.Errorf("%+v", r)
			}
			n++
		}
		return n
	}
	runs := b.Runner().Watch(t.Context())
	b.Start()
	for r := range runs {
		if r.Over() && r.State != jobs.Done {
			t.Fatalf("%s: %s", r.Job, r.Error)
		}
		if r.Over() && r.Job == "sync:copy" {
			break
		}
	}
	teststores.Equal(t, source.get(t, b), mirror.get(t, b))
	if n := ran(b); n != 2 {
		t.Errorf("%d runs, want the scan and the sync", n)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	b = open(t, cfg)
	b.Start()
	if n := ran(b); n != 2 {
		t.Errorf("%d runs after another start", n)
	}
}
