package destination

import (
	"context"
	"strings"
	"testing"
	"time"
)

// A list or dump that tells its time as a day is published again on that day: an index, or a
// dump that promises nothing of its package, stays the same to the byte while what it names
// changes. After that day it stands for it.
func TestListOfTheSameTime(t *testing.T) {
	for name, set := range map[string]func(s *testSource){
		"index": func(s *testSource) { s.parts = 2 },
		"dump":  func(s *testSource) { s.list, s.dump, s.alone, s.noHash, s.noLength = false, true, true, true, true },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			s := b.src
			s.changes = false
			set(s)
			s.listAt = time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)
			s.date = s.listAt.Add(10 * time.Hour)
			fill(s, 4)
			b.sync()
			s.put("e1.nt", nt("e1", "changed"))
			s.date = s.date.Add(time.Hour)
			if rep := b.sync(); !rep.InSync || rep.Updated != 1 {
				t.Fatalf("%+v", rep)
			}
			b.equal()
			s.date = s.date.Add(24 * time.Hour)
			b.sync()
			clear(s.requests)
			b.sync()
			if n := s.requests["/set/resourcelist-0.xml"] + s.requests["/set/dump.zip"]; n > 0 {
				t.Errorf("an unchanged list of the day before is read again: %v", s.requests)
			}
		})
	}
}

// A stale list is of no use in closing a gap, also when its time is that of the last change
// that was applied: both may have been in the same second, or on the same day. And an audit by such a list says
// nothing of what was changed in it.
func TestStaleListOfTheSameTime(t *testing.T) {
	b := newBench(t)
	s := b.src
	s.now = time.Date(2026, 1, 2, 0, 0, -6, 0, time.UTC)
	fill(s, 4)
	at := s.now // midnight, which may mean the whole day
	s.frozen, s.listAt = map[string][]byte{"e0.nt": s.bodies["e0.nt"], "e1.nt": s.bodies["e1.nt"], "e2.nt": s.bodies["e2.nt"]}, at
	b.sync()
	s.put("e1.nt", nt("e1", "lost"))
	s.put("e2.nt", nt("e2", "new"))
	s.drop = len(s.log) - 1
	rep := b.sync()
	if rep.InSync || !strings.Contains(rep.Held, "no newer inventory") {
		t.Fatalf("a list of %s closes the gap behind it: %+v", stamp(at), rep)
	}
	if got := b.mir.lines(graphA); !strings.Contains(strings.Join(got, ""), nt("e3", "3")) {
		t.Errorf("what was changed in the second of the list was taken out: %v", got)
	}
	if audit, err := b.open().Audit(context.Background(), AuditOptions{}); err != nil || !audit.SourceOlder || audit.findings() > 0 {
		t.Errorf("%+v %v", audit, err)
	}
}
