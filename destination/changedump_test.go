package destination

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/internal/teststores"
	rs "github.com/rsbridge/rsbridge/resourcesync"
)

func (b *bench) resourceRequests() (n int) {
	for path, k := range b.src.requests {
		if strings.HasPrefix(path, "/set/r/") {
			n += k
		}
	}
	return n
}

// Many changes are fetched as one package, few one by one; what the package lacks
// or has otherwise is fetched by itself.
func TestChangeDump(t *testing.T) {
	for _, ours := range []bool{true, false} {
		b := newBench(t)
		s := b.src
		s.ours, s.changeDump = ours, true
		fill(s, 120)
		b.sync()
		change := func(n, step int) {
			for i := range n {
				s.put(fmt.Sprintf("e%d.nt", i), nt(fmt.Sprintf("e%d", i), fmt.Sprint("step", step)))
			}
		}
		change(10, 1)
		clear(s.requests)
		b.sync()
		if n := b.resourceRequests(); n != 10 || s.requests["/set/changes0.zip"] != 0 {
			t.Errorf("few changes: %v", s.requests)
		}
		b.equal()
		change(100, 2)
		s.remove("e119.nt")
		s.put("new.nt", nt("new", "x"))
		clear(s.requests)
		rep := b.sync()
		if n := b.resourceRequests(); n != 0 || s.requests["/set/changes0.zip"] != 1 || !rep.InSync || !strings.Contains(rep.Why, "101 changes came in 1 packages") {
			t.Errorf("many changes: %d, %+v", n, rep)
		}
		if rep.Updated != 100 || rep.Deleted != 1 || rep.Created != 1 {
			t.Errorf("%+v", rep)
		}
		b.equal()
		s.lie["e7.nt"] = true // in the package and at its own address
		change(100, 3)
		clear(s.requests)
		if rep := b.sync(); rep.Pending+rep.Failed != 1 || rep.InSync {
			t.Errorf("%+v", rep)
		}
		if n := s.requests["/set/changes0.zip"]; n != 1 {
			t.Errorf("%d packages", n)
		}
		s.lie["e7.nt"] = false
		b.sync()
		b.equal()
	}
}

// A Change Dump that cannot be used costs nothing but itself.
func TestBadChangeDump(t *testing.T) {
	for name, set := range map[string]func(s *testSource){
		"gone": func(s *testSource) { answerAt(s, "/set/changedump.xml", http.NotFound) },
		"page": func(s *testSource) { xmlAt(s, "/set/changedump.xml", "<html/>") },
		"no zip": func(s *testSource) {
			answerAt(s, "/set/changes0.zip", func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "PK") })
		},
		"too large": func(s *testSource) {
			xmlAt(s, "/set/changedump.xml", urlset+`<rs:md capability="changedump" from="2026-01-01T00:00:00Z"/><url><loc>`+s.url("/set/changes0.zip")+`</loc><rs:md type="application/zip" length="1125899906842624" from="2026-01-01T00:00:00Z"/></url></urlset>`)
		},
		"tar": func(s *testSource) {
			xmlAt(s, "/set/changedump.xml", urlset+`<rs:md capability="changedump" from="2026-01-01T00:00:00Z"/><url><loc>`+s.url("/set/changes.tar")+`</loc><rs:md type="application/x-tar" length="10" from="2026-01-01T00:00:00Z"/></url></urlset>`)
		},
		"elsewhere": func(s *testSource) {
			xmlAt(s, "/set/changedump.xml", urlset+`<rs:md capability="changedump" from="2026-01-01T00:00:00Z"/><url><loc>http://10.0.0.1/changes.zip</loc><rs:md type="application/zip" length="10" from="2026-01-01T00:00:00Z"/></url></urlset>`)
		},
	} {
		if teststores.Unraced(t, 5) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			s := b.src
			s.ours, s.changeDump = true, true
			fill(s, 80)
			b.sync()
			for i := range 80 {
				s.put(fmt.Sprintf("e%d.nt", i), nt(fmt.Sprintf("e%d", i), "changed"))
			}
			set(s)
			if rep := b.sync(); !rep.InSync || rep.Updated != 80 {
				t.Fatalf("%+v", rep)
			}
			b.equal()
		})
	}
}

// TestChangeIndexMoves: so is an index of Change Lists.
func TestChangeIndexMoves(t *testing.T) {
	b := newBench(t)
	s := b.src
	s.changeParts = 3
	fill(s, 20)
	b.sync()
	s.put("first.nt", nt("first", "x"))
	b.sync()
	s.put("e1.nt", nt("e1", "first"))
	s.remove("first.nt")
	answerAt(s, "/set/changelist.xml", http.NotFound)
	if rep := b.sync(); rep.InSync {
		t.Fatalf("%+v", rep)
	}
	s.moved = map[rs.Capability]string{rs.ChangeList: "/set/moved/changelist.xml"}
	for _, text := range []string{"second", "third", "fourth"} {
		if rep := b.sync(); !rep.InSync {
			t.Fatalf("%+v", rep)
		}
		b.equal()
		s.put("e2.nt", nt("e2", text))
	}
}

// TestChangeDumpMoves: a Change Dump that is not there and is named at another address is
// followed there, with Change Lists or without.
func TestChangeDumpMoves(t *testing.T) {
	for _, ours := range []bool{true, false} {
		for _, withList := range []bool{true, false} {
			for _, between := range []bool{true, false} { // a sync while it is not there
				if teststores.Unraced(t, 3) {
					continue
				}
				t.Run(fmt.Sprint(ours, withList, between), func(t *testing.T) {
					b := newBench(t)
					s := b.src
					s.ours, s.changeDump, s.changes = ours, true, withList
					fill(s, 80)
					b.sync()
					change := func(text string) {
						for i := range 80 {
							s.put(fmt.Sprintf("e%d.nt", i), nt(fmt.Sprintf("e%d", i), text))
						}
						s.remove(text + ".nt")
						s.put(text+"2.nt", nt(text+"2", text))
					}
					s.put("first.nt", nt("first", "x"))
					s.put("second.nt", nt("second", "x"))
					b.sync()
					b.equal()
					change("first")
					answerAt(s, "/set/changedump.xml", http.NotFound)
					if between {
						if rep, err := b.open().Sync(t.Context(), SyncOptions{}); err == nil && rep.InSync {
							b.equal()
						}
						b.clock = b.clock.Add(time.Minute)
					}
					s.moved = map[rs.Capability]string{rs.ChangeDump: "/set/moved/changedump.xml"}
					if rep := b.sync(); !rep.InSync {
						t.Fatalf("%+v", rep)
					}
					b.equal()
					change("second")
					if rep := b.sync(); !rep.InSync {
						t.Fatalf("%+v", rep)
					}
					b.equal()
				})
			}
		}
	}
}

// The last change of a package that is read as a list may be the first of those that are
// applied together: it is applied while the package is open.
func TestLastChangeOfAPackage(t *testing.T) {
	for keep, last := range map[string]string{"": "e3.nt", "versions": "e0.nt"} {
		b := newBench(t)
		s := b.src
		s.list, s.dump, s.changes, s.changeDump, s.alone, s.packed = false, true, false, true, true, 4
		b.cfg.Keep = keep
		fill(s, 4)
		b.sync()
		for i, name := range []string{"e0.nt", "e1.nt", "e2.nt", last} {
			s.put(name, nt("e", fmt.Sprint("changed ", i)))
		}
		d := b.open()
		if keep == "" {
			d.lim.window = 3
		}
		if rep, err := d.Sync(context.Background(), SyncOptions{}); err != nil || !rep.InSync || rep.Pending > 0 || rep.Updated != 4 {
			t.Fatalf("keep %q: %+v %v", keep, rep, err)
		}
		b.equal()
	}
}
