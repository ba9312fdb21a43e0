package destination

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

// A resource beyond a bound fails and is told with the name of the setting, in each
// way that it may come; the others are mirrored.
func TestBounds(t *testing.T) {
	for _, kind := range []string{"list", "no-length", "dump"} {
		for _, bound := range []string{"max_resource_bytes", "max_resource_triples"} {
			t.Run(kind+"/"+bound, func(t *testing.T) {
				b := newBench(t)
				s := b.src
				switch kind {
				case "no-length":
					s.noHash = true
				case "dump":
					s.changes, s.list, s.dump = false, false, true
				}
				fill(s, 5)
				good := s.want()
				var many []string
				for i := range 400 {
					many = append(many, fmt.Sprint(i))
				}
				s.put("large.nt", nt("large", many...))
				if bound == "max_resource_bytes" {
					b.cfg.MaxResourceBytes = 10_000
				} else {
					b.cfg.MaxResourceTriples = 300
				}
				d := b.open()
				rep, err := d.Sync(t.Context(), SyncOptions{})
				if err != nil {
					t.Fatal(err)
				}
				told := ""
				for _, p := range rep.Problems {
					told += p.Location + ": " + p.Reason + "\n"
				}
				if rep.Failed+rep.Pending != 1 || !strings.Contains(told, "large.nt") || !strings.Contains(told, bound) {
					t.Errorf("%d failed, %d pending: %s", rep.Failed, rep.Pending, told)
				}
				if got := b.mir.lines(graphA); fmt.Sprint(got) != fmt.Sprint(good) {
					t.Errorf("the mirror has %d triples of %d", len(got), len(good))
				}
			})
		}
	}
}

// The largest numbers there are mean no bound.
func TestNoBounds(t *testing.T) {
	for _, kind := range []string{"list", "list-no-hash", "dump", "dump-no-hash"} {
		b := newBench(t)
		s := b.src
		s.noHash = strings.HasSuffix(kind, "no-hash")
		if strings.HasPrefix(kind, "dump") {
			s.changes, s.list, s.dump = false, false, true
		}
		fill(s, 5)
		b.cfg.MaxResourceBytes, b.cfg.MaxResourceTriples = math.MaxInt64, math.MaxInt64
		rep, err := b.open().Sync(t.Context(), SyncOptions{})
		if err != nil || !rep.InSync {
			t.Fatalf("%s: %v %+v", kind, err, rep)
		}
		if got, want := b.mir.lines(graphA), s.want(); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: the mirror has %d triples of %d", kind, len(got), len(want))
		}
	}
}
