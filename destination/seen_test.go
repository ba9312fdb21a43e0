package destination

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// insert logs a change of a resource at a place of the log and a time.
func (s *testSource) insert(place int, at time.Time, name, body string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := logged{name: name, kind: "updated", at: at, body: []byte(body), typ: s.typeOf(name), folder: s.folder}
	s.bodies[name] = []byte(body)
	if body == "" {
		l.kind, l.body = "deleted", nil
		delete(s.bodies, name)
	}
	s.log = slices.Insert(s.log, place, l)
	s.now = s.now.Add(time.Millisecond)
}

// A source without numbers and with coarse times writes changes before the one
// at which we stand: those of the same time are applied, and nothing else is;
// one of an earlier time makes everything be compared.
func TestChangesBeforeTheCursor(t *testing.T) {
	for _, parts := range []int{0, 100, 13} {
		for _, bare := range []bool{false, true} {
			t.Run(fmt.Sprint(parts, bare), func(t *testing.T) {
				b := newBench(t)
				s := b.src
				s.changeParts, s.noHash, s.noLastmod = parts, bare, bare
				fill(s, 10)
				b.sync()
				s.put("e5.nt", nt("e5", "at the second"))
				at := s.now
				b.sync()
				step := func(what string, updated, deleted int64, mode string) {
					t.Helper()
					rep := b.sync()
					if !rep.InSync || rep.Mode != mode || rep.Deleted != deleted || !bare && rep.Updated != updated {
						t.Fatalf("%s: %+v", what, rep)
					}
					b.equal()
					if rep := b.sync(); rep.Mode != "none" || !rep.InSync {
						t.Fatalf("%s, and again: %+v", what, rep)
					}
				}
				s.insert(10, at, "e4.nt", nt("e4", "before it"))
				step("before", 1, 0, "incremental")
				s.insert(12, at, "e6.nt", nt("e6", "behind it"))
				step("behind", 1, 0, "incremental")
				if parts != 13 { // the list is closed now
					s.insert(11, at, "e7.nt", nt("e7", "between"))
					s.insert(10, at, "e8.nt", "")
					step("between", 1, 1, "incremental")
				} else {
					s.put("e9.nt", nt("e9", "later"))
					step("later", 1, 0, "incremental")
				}
				s.insert(3, at.Add(-time.Second), "e1.nt", nt("e1", "late"))
				rep := b.sync()
				if parts != 13 && (!rep.InSync || rep.Mode != "baseline" || !strings.Contains(rep.Why, "has new entries (1) of before ")) {
					t.Fatalf("%+v", rep)
				}
				b.equal()
				s.put("e2.nt", nt("e2", "last"))
				step("last", 1, 0, "incremental")
			})
		}
	}
}

// Lists that lose their oldest entries are not taken for such.
func TestListLosesItsBeginning(t *testing.T) {
	b := newBench(t)
	s := b.src
	fill(s, 10)
	b.sync()
	s.put("e1.nt", nt("e1", "a"))
	b.sync()
	for i := range 6 {
		s.mu.Lock()
		s.drop += 1 + i%2
		s.mu.Unlock()
		s.put("e2.nt", nt("e2", fmt.Sprint(i)))
		s.insert(len(s.log), s.now, "e3.nt", nt("e3", fmt.Sprint(i)))
		if rep := b.sync(); rep.Mode != "incremental" || !rep.InSync || rep.Updated != 2 {
			t.Fatalf("%d: %+v", i, rep)
		}
	}
	b.equal()
}
