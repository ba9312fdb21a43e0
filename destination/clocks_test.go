package destination

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	rs "github.com/rsbridge/rsbridge/resourcesync"
)

// madeList is a Change List as a test writes it: the minutes of the day at which it begins
// and ends (0: it is open), and its changes.
type madeList struct {
	from, until int
	changes     []logged
}

// made puts Change Lists without numbers in the place of those of the log: one at the
// address of all, or an index of them.
func (s *testSource) made(lists ...madeList) {
	day := time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)
	at := func(minute int) time.Time {
		if minute == 0 {
			return time.Time{}
		}
		return day.Add(time.Duration(minute) * time.Minute)
	}
	document := func(l madeList) []byte {
		var es []rs.Entry
		for _, c := range l.changes {
			es = append(es, s.entryIn(s.folder, c.name, c.body, 0, rs.Meta{Change: c.kind, DateTime: c.at}))
		}
		return s.document(s.head(rs.ChangeList, rs.Meta{From: at(l.from), Until: at(l.until)}), es)
	}
	s.hook = nil
	answer := func(path string, doc func() []byte) {
		answerAt(s, path, func(w http.ResponseWriter, r *http.Request) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.serveXML(w, r, doc())
		})
	}
	if len(lists) == 1 {
		answer("/set/changelist.xml", func() []byte { return document(lists[0]) })
		return
	}
	answer("/set/changelist.xml", func() []byte {
		h := s.head(rs.ChangeList, rs.Meta{From: at(lists[0].from)})
		h.Index = true
		var es []rs.Entry
		for i, l := range lists {
			es = append(es, rs.Entry{Loc: s.url(fmt.Sprintf("/set/made%d.xml", i)), HasMeta: true, Meta: rs.Meta{From: at(l.from), Until: at(l.until), Length: -1}})
		}
		return s.document(h, es)
	})
	for i, l := range lists {
		answer(fmt.Sprintf("/set/made%d.xml", i), func() []byte { return document(l) })
	}
}

// change changes a resource and gives the entry that a list has of it.
func (s *testSource) change(minute int, name, value string) logged {
	s.put(name+".nt", nt(name, value))
	l := s.log[len(s.log)-1]
	l.at = time.Date(2026, 2, 1, 0, minute, 0, 0, time.UTC)
	s.listAt = l.at
	return l
}

// A source without numbers whose lists end later than their changes, or whose clock is
// set back: nothing that it tells is passed over.
func TestTimesOfForeignLists(t *testing.T) {
	for name, steps := range map[string][]func(s *testSource){
		"a list that ends later is written anew": {
			func(s *testSource) { s.made(madeList{10, 1440, []logged{s.change(61, "e1", "a")}}) },
			func(s *testSource) { s.made(madeList{70, 1440, []logged{s.change(71, "e2", "a")}}) },
		},
		"a list that ends later grows": {
			func(s *testSource) {
				first := s.change(61, "e1", "a")
				s.made(madeList{10, 60, nil}, madeList{60, 1440, []logged{first}})
			},
			func(s *testSource) {
				first := s.log[len(s.log)-1]
				first.at = time.Date(2026, 2, 1, 0, 61, 0, 0, time.UTC)
				s.made(madeList{10, 60, nil}, madeList{60, 1440, []logged{first, s.change(90, "e2", "a")}}, madeList{1440, 0, []logged{s.change(1500, "e3", "a")}})
			},
		},
		"the clock is set back within closed lists": {
			func(s *testSource) { s.made(madeList{10, 900, []logged{s.change(900, "e1", "a")}}) },
			func(s *testSource) { s.made(madeList{70, 80, []logged{s.change(71, "e2", "a")}}) },
		},
		"the clock is set back behind a closed list": {
			func(s *testSource) {
				s.made(madeList{10, 60, nil}, madeList{60, 900, []logged{s.change(899, "e1", "a")}})
			},
			func(s *testSource) {
				first := s.log[len(s.log)-1]
				first.at = time.Date(2026, 2, 1, 0, 899, 0, 0, time.UTC)
				s.made(madeList{10, 60, nil}, madeList{60, 900, []logged{first}}, madeList{900, 0, []logged{s.change(780, "e2", "a")}})
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			fill(b.src, 4)
			b.src.made(madeList{10, 0, nil})
			b.src.listAt = time.Date(2026, 2, 1, 0, 20, 0, 0, time.UTC)
			b.sync()
			for _, step := range steps {
				step(b.src)
				if rep := b.sync(); !rep.InSync {
					t.Fatalf("%+v", rep)
				}
				b.equal()
			}
			if rep := b.sync(); !rep.InSync || rep.Mode != "none" {
				t.Fatalf("nothing changed: %+v", rep)
			}
		})
	}
}

// A list that is at another address now may have got a change of the very time at which
// the cursor stands, before it.
func TestChangeBeforeTheCursorAtAnotherAddress(t *testing.T) {
	b := newBench(t)
	s := b.src
	fill(s, 10)
	b.sync()
	s.put("e5.nt", nt("e5", "at the second"))
	at := s.now
	b.sync()
	s.insert(10, at, "e4.nt", nt("e4", "before it"))
	s.changeParts = 100
	if rep := b.sync(); !rep.InSync || rep.Updated != 1 {
		t.Fatalf("%+v", rep)
	}
	b.equal()
}
