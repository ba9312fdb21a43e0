package destination

import (
	"context"
	"fmt"
	"testing"

	"github.com/rsbridge/rsbridge/internal/teststores"
)

// A change that tells neither time nor number may come again, as another one, after its source
// was set back. What is before it tells them apart.
func TestLooksLikeTheNewestChange(t *testing.T) {
	for _, c := range []struct {
		name        string
		parts, bare int
		then        func(s *testSource) // after e0, e1 and e2 were created
		kept        int                 // changes that the backup has
		again       func(s *testSource)
	}{
		{"at the end of the list before", 3, 0, func(s *testSource) {
			s.put("e3.nt", nt("e3", "x"))
			s.put("e1.nt", nt("e1", "same"))
		}, 2, func(s *testSource) {
			s.put("e1.nt", nt("e1", "same"))
			s.put("e0.nt", nt("e0", "y"))
		}},
		{"at the beginning of its list", 3, 2, func(s *testSource) {
			s.put("e3.nt", nt("e3", "x"))
			s.put("e0.nt", nt("e0", "same"))
		}, 2, func(s *testSource) {
			s.put("e1.nt", nt("e1", "y"))
			s.put("e0.nt", nt("e0", "same"))
		}},
		{"in its list, and the one before is another", 2, 2, func(*testSource) {}, 1, func(s *testSource) {
			s.put("e0.nt", nt("e0", "y"))
			s.put("e2.nt", nt("e2", "a", "2"))
			s.remove("e0.nt")
		}},
		{"of other content before it", 0, 0, func(s *testSource) {
			s.put("e0.nt", nt("e0", "one"))
			s.remove("e1.nt")
		}, 3, func(s *testSource) {
			s.put("e0.nt", nt("e0", "two"))
			s.remove("e1.nt")
		}},
		{"behind the same changes as before", 0, 0, func(s *testSource) {
			s.put("lost.nt", nt("lost", "x"))
			for i := range 20 {
				s.put(fmt.Sprintf("e%d.nt", i), nt("e", fmt.Sprint(i)))
			}
		}, 3, func(s *testSource) {
			for i := range 20 {
				s.put(fmt.Sprintf("e%d.nt", i), nt("e", fmt.Sprint(i)))
			}
		}},
		{"in a list of before", 3, 1, func(s *testSource) {
			s.remove("e2.nt")
			s.put("e2.nt", nt("e2", "x"))
			s.put("e1.nt", nt("e1", "x"))
			s.remove("e2.nt")
		}, 6, func(s *testSource) {}},
	} {
		for _, list := range []bool{true, false} {
			if teststores.Unraced(t, 5) {
				continue
			}
			t.Run(fmt.Sprint(c.name, " ", list), func(t *testing.T) {
				b, _ := missingSource(t, c.bare)
				s := b.src
				s.noTimes, s.changeParts, b.cfg.MaxDeleteRatio = true, c.parts, 1
				fill(s, 3)
				b.freezeList()
				s.list = list
				b.syncNow()
				c.then(s)
				if rep := b.syncNow(); !rep.InSync {
					t.Fatalf("%+v", rep)
				}
				b.same(b.mir.lines(graphA), s.want())
				s.restore(c.kept)
				b.freezeList()
				c.again(s)
				for range 2 {
					rep := b.syncNow()
					audit, err := b.open().Audit(context.Background(), AuditOptions{})
					wrong := fmt.Sprint(b.mir.lines(graphA)) != fmt.Sprint(s.want())
					if err != nil || wrong && (rep.InSync || audit.Equal) || list && !rep.InSync {
						t.Errorf("wrong %v: %+v\n%+v %v", wrong, rep, audit, err)
					}
				}
			})
		}
	}
}

// A run that is cut off while changes without times are applied again does not forget the
// newest change.
func TestSetBackAfterUntimedCut(t *testing.T) {
	for cut := range 14 {
		t.Run(fmt.Sprint(cut), func(t *testing.T) {
			b, _ := missingSource(t, 0)
			s := b.src
			s.noTimes = true
			fill(s, 3)
			s.list = false
			b.syncNow()
			s.put("e3.nt", nt("e3", "x"))
			s.put("e0.nt", nt("e0", "same"))
			d := b.open()
			d.lim.window, d.mem.Crash = 1, cutAfter(cut)
			_, _ = d.Sync(context.Background(), SyncOptions{}) // may be cut off
			s.restore(1)
			s.put("e0.nt", nt("e0", "same"))
			s.put("e1.nt", nt("e1", "y"))
			s.put("e1.nt", nt("e1", "z"))
			if rep := b.syncNow(); rep.InSync && fmt.Sprint(b.mir.lines(graphA)) != fmt.Sprint(s.want()) {
				t.Errorf("%+v", rep)
			}
		})
	}
}
