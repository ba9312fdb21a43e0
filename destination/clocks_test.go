package destination

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
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

// Documents that say they are of a time to come, or end then, and changes of such times:
// what comes until then is not passed over, and what is lost until then is told.
func TestTimesToCome(t *testing.T) {
	day := time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)
	minute := func(n int) time.Time { return day.Add(time.Duration(n) * time.Minute) }
	now := func(b *bench, n int) { b.src.date, b.clock = minute(n), minute(n) }
	for name, c := range map[string]struct {
		at    int // of the first Resource List
		gap   bool
		steps []func(b *bench, s *testSource)
	}{
		"a Resource List of a later time": {at: 150, steps: []func(b *bench, s *testSource){
			func(b *bench, s *testSource) {
				now(b, 40)
				s.made(madeList{1, 0, []logged{s.change(35, "e1", "a")}})
			},
		}},
		"a Resource List of next year": {at: 365 * 1440, steps: []func(b *bench, s *testSource){
			func(b *bench, s *testSource) {
				now(b, 40)
				s.made(madeList{1, 0, []logged{s.change(35, "e1", "a")}})
			},
		}},
		"a Resource List of next year, and then a hole": {at: 365 * 1440, gap: true, steps: []func(b *bench, s *testSource){
			func(b *bench, s *testSource) {
				now(b, 40)
				s.change(10, "e2", "lost")
				s.made(madeList{30, 0, []logged{s.change(35, "e1", "a")}})
			},
		}},
		"a list of the day, gone with what came later": {at: 4, gap: true, steps: []func(b *bench, s *testSource){
			func(b *bench, s *testSource) {
				now(b, 62)
				s.made(madeList{1, 1440, []logged{s.change(61, "e1", "a")}})
			},
			func(b *bench, s *testSource) {
				now(b, 1502)
				s.change(900, "e2", "lost")
				s.made(madeList{1440, 0, []logged{s.change(1500, "e3", "a")}})
			},
		}},
		"a list of the day, empty at noon": {at: 4, steps: []func(b *bench, s *testSource){
			func(b *bench, s *testSource) {
				now(b, 62)
				s.made(madeList{1, 60, nil}, madeList{60, 1440, nil})
			},
			func(b *bench, s *testSource) {
				now(b, 1502)
				s.made(madeList{1, 60, nil}, madeList{60, 1440, []logged{s.change(900, "e2", "a")}}, madeList{1440, 0, []logged{s.change(1500, "e3", "a")}})
			},
		}},
		"a list of before is written anew": {at: 4, gap: true, steps: []func(b *bench, s *testSource){
			func(b *bench, s *testSource) {
				now(b, 62)
				s.made(madeList{1, 60, nil}, madeList{60, 1440, []logged{s.change(61, "e1", "a")}})
			},
			func(b *bench, s *testSource) {
				now(b, 100)
				s.made(madeList{1, 60, nil}, madeList{60, 80, []logged{s.change(71, "e2", "a")}}, madeList{80, 0, []logged{s.change(90, "e3", "a")}})
			},
		}},
		"a deletion of next year before a creation": {at: 4, steps: []func(b *bench, s *testSource){
			func(b *bench, s *testSource) {
				now(b, 70)
				first := s.change(60, "e3", "a")
				s.remove("e1.nt")
				wrong := s.log[len(s.log)-1]
				wrong.at = day.AddDate(1, 0, 0)
				list := madeList{1, 0, []logged{first, wrong, s.change(62, "e1", "a"), s.change(63, "e2", "a")}}
				s.made(list)
			},
		}},
		"the last change is of next year": {at: 4, steps: []func(b *bench, s *testSource){
			func(b *bench, s *testSource) {
				now(b, 70)
				wrong := s.change(61, "e1", "a")
				wrong.at = day.AddDate(1, 0, 0)
				s.made(madeList{1, 0, []logged{s.change(60, "e3", "a"), wrong}})
			},
			func(b *bench, s *testSource) {
				now(b, 80)
				first, wrong := s.log[len(s.log)-1], s.log[len(s.log)-2]
				first.at, wrong.at = minute(60), day.AddDate(1, 0, 0)
				s.made(madeList{1, 0, []logged{first, wrong, s.change(75, "e2", "a")}})
			},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			s := b.src
			now(b, 5)
			s.now = day.Add(-time.Hour)
			fill(s, 4)
			s.made(madeList{1, 0, nil})
			s.listAt = minute(c.at)
			b.sync()
			why := ""
			for _, step := range c.steps {
				step(b, s)
				rep := b.sync()
				if !rep.InSync {
					t.Fatalf("%+v", rep)
				}
				why += rep.Why
				b.equal()
			}
			if strings.Contains(why, "gap: ") != c.gap {
				t.Error(why)
			}
		})
	}
}

// A source whose clock is years ahead, behind a web server whose clock is not: its changes
// are followed by its own clock, and one that it does not tell any more is missed.
func TestSourceYearsAhead(t *testing.T) {
	b := newBench(t)
	s := b.src
	fill(s, 4)
	const years = 10 * 365 * 1440
	list := func(served, from, at int, cs ...logged) {
		day := time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)
		s.date = day.Add(time.Duration(served) * time.Minute)
		b.clock = s.date
		s.made(madeList{years + from, 0, cs})
		s.listAt = day.Add(time.Duration(years+at) * time.Minute)
	}
	follow := func(gap bool) {
		t.Helper()
		rep := b.sync()
		if !rep.InSync || strings.Contains(rep.Why, "gap: ") != gap {
			t.Fatalf("%+v", rep)
		}
		b.equal()
	}
	list(5, 1, 4)
	follow(false)
	list(15, 1, 4)
	follow(false)
	first := s.change(years+20, "e1", "a")
	list(25, 1, 4, first)
	follow(false)
	second := s.change(years+30, "e2", "a")
	list(35, 1, 31, first, second)
	follow(false)
	s.change(years+40, "e3", "lost")
	last := s.change(years+55, "e1", "b")
	list(65, 50, 60, last)
	follow(true)
	list(75, 50, 60, last)
	follow(false)
}

// The same, and what it does not tell any more came before its first change.
func TestSourceYearsAheadLosesItsFirstChange(t *testing.T) {
	b := newBench(t)
	s := b.src
	fill(s, 4)
	const years = 10 * 365 * 1440
	day := time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)
	s.date, b.clock = day, day
	s.made(madeList{years + 1, 0, nil})
	s.listAt = day.Add((years + 4) * time.Minute)
	b.sync()
	s.change(years+10, "e1", "lost")
	s.made(madeList{years + 20, 0, nil})
	s.listAt = day.Add((years + 21) * time.Minute)
	if rep := b.sync(); !rep.InSync || !strings.Contains(rep.Why, "gap: ") {
		t.Fatalf("%+v", rep)
	}
	b.equal()
}

// Lists that do not tell where they begin, and have only later changes than the one at
// which we stand.
func TestListsWithoutABeginning(t *testing.T) {
	b := newBench(t)
	s := b.src
	fill(s, 4)
	day := time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)
	s.listAt = day
	index := func(lists map[string][]logged) {
		s.hook = nil
		text := urlset
		for _, name := range slices.Sorted(maps.Keys(lists)) {
			text += "<sitemap><loc>" + s.url("/set/"+name) + "</loc></sitemap>"
			list := urlset + `<rs:md capability="changelist"/>`
			for _, c := range lists[name] {
				list += fmt.Sprintf(`<url><loc>%s</loc><rs:md change="%s" datetime="%s"/></url>`, s.url("/set/r/"+c.name), c.kind, c.at.Format(time.RFC3339))
			}
			xmlAt(s, "/set/"+name, list+"</urlset>")
		}
		head := strings.Replace(urlset, "<urlset", "<sitemapindex", 1) + `<rs:md capability="changelist"/>`
		xmlAt(s, "/set/changelist.xml", strings.Replace(text, urlset, head, 1)+"</sitemapindex>")
	}
	index(map[string][]logged{"c1.xml": nil})
	b.sync()
	index(map[string][]logged{"c1.xml": {s.change(10, "e1", "a")}})
	if rep := b.sync(); !rep.InSync || !strings.Contains(rep.Why, "do not reach back") {
		t.Fatalf("%+v", rep)
	}
	b.equal()
	s.change(20, "e2", "lost")
	index(map[string][]logged{"c3.xml": {s.change(30, "e3", "a")}, "c4.xml": nil})
	if rep := b.sync(); !rep.InSync || !strings.Contains(rep.Why, "does not tell where it begins") {
		t.Fatalf("%+v", rep)
	}
	b.equal()
	index(map[string][]logged{"c3.xml": {s.change(30, "e3", "a")}, "c4.xml": {s.change(40, "e1", "b")}})
	if rep := b.sync(); !rep.InSync || strings.Contains(rep.Why, "gap") {
		t.Fatalf("%+v", rep)
	}
	b.equal()
}

// A source whose clock was ahead, or is set back for any other reason, appends changes of
// earlier times to its list: they are what is new, one by one.
func TestClockSetBackInOneList(t *testing.T) {
	for _, ahead := range []time.Duration{0, 90 * time.Minute, 300 * 24 * time.Hour} {
		for _, list := range []bool{true, false} {
			b := newBench(t)
			s := b.src
			s.list = list
			day := time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)
			at := func(minute int, by time.Duration) {
				s.now, s.date = day.Add(time.Duration(minute)*time.Minute+by), day.Add(time.Duration(minute+1)*time.Minute+by)
				b.clock = day.Add(time.Duration(minute+1) * time.Minute)
			}
			s.changesFrom = day.Add(-time.Hour)
			at(200, ahead)
			fill(s, 4)
			b.sync()
			b.equal()
			at(201, ahead)
			s.put("e1.nt", nt("e1", "before"))
			s.put("e2.nt", nt("e2", "before"))
			b.sync()
			b.equal()
			for i := range 3 { // two hours back and on
				at(202+i, -2*time.Hour)
				s.put("e1.nt", nt("e1", "after", fmt.Sprint(i)))
				if i%2 == 0 {
					s.remove("e2.nt")
				} else {
					s.put("e2.nt", nt("e2", "again"))
				}
				if rep := b.sync(); !rep.InSync {
					t.Fatalf("%s ahead, list %v: %+v", ahead, list, rep)
				}
				b.equal()
			}
			at(600, 0)
			s.put("e3.nt", nt("e3", "later"))
			if rep := b.sync(); !rep.InSync {
				t.Fatalf("%s ahead, list %v: %+v", ahead, list, rep)
			}
			b.equal()
		}
	}
}

// A list that has its newest first and stays as it is for a poll is no such list.
func TestNewestFirstTwice(t *testing.T) {
	b := newBench(t)
	s := b.src
	s.now = time.Date(2026, 2, 1, 1, 0, 0, 0, time.UTC)
	fill(s, 4)
	newestFirst := func() {
		l := madeList{from: 1}
		for i := len(s.log) - 1; i >= 0; i-- {
			l.changes = append(l.changes, s.log[i])
		}
		s.made(l)
		s.listAt = s.now
	}
	newestFirst()
	b.sync()
	for i := range 3 {
		s.put("e1.nt", nt("e1", fmt.Sprint("new ", i)))
		s.remove("e2.nt")
		s.put("e2.nt", nt("e2", fmt.Sprint("again ", i)))
		newestFirst()
		for range 2 {
			if rep := b.sync(); !rep.InSync {
				t.Fatalf("%+v", rep)
			}
			b.same(b.mir.lines(graphA), s.want())
		}
	}
}
