package destination

import (
	"context"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/destination/feed"
	rs "github.com/rsbridge/rsbridge/resourcesync"
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
			s.date, b.clock = s.date.Add(24*time.Hour), b.clock.Add(24*time.Hour)
			b.sync() // the mirror has rested on this list for a day
			b.sync()
			clear(s.requests)
			b.sync()
			if n := s.requests["/set/resourcelist-0.xml"] + s.requests["/set/dump.zip"]; n > 0 {
				t.Errorf("an unchanged list of the day before is read again: %v", s.requests)
			}
		})
	}
}

// An index tells the minute in which its list was begun. Another list of that minute, which
// takes longer to be made, or which a source has that is set back, has an index of the same
// bytes: the parts are asked for too, for a day while the mirror rests on this list alone, which
// costs little where they are as they were.
func TestIndexOfTheSameBytes(t *testing.T) {
	for name, set := range map[string]func(s *testSource){
		"list":            func(*testSource) {},
		"list by lastmod": func(s *testSource) { s.noHash = true },
		"list without at": func(s *testSource) {
			at := regexp.MustCompile(` at="[^"]*"`)
			s.damage = func(doc string) string { return at.ReplaceAllString(doc, "") }
		},
		"dump": func(s *testSource) {
			s.list, s.dump, s.alone = false, true, true
			s.hook = func(w http.ResponseWriter, r *http.Request) bool {
				s.mu.Lock()
				defer s.mu.Unlock()
				switch r.URL.Path {
				case "/set/resourcedump.xml":
					h := s.head(rs.ResourceDump, rs.Meta{At: s.stateTime()})
					h.Index = true
					s.serveXML(w, r, s.document(h, []rs.Entry{{Loc: s.url("/set/resourcedump-0.xml")}}))
				case "/set/resourcedump-0.xml":
					s.requests[r.URL.Path]++
					s.serveXML(w, r, s.dumpDocument())
				default:
					return false
				}
				return true
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			s := b.src
			at := time.Date(2026, 2, 1, 10, 0, 0, 0, time.UTC)
			s.changes, s.parts, s.listAt = false, 2, at
			set(s)
			parts := 2
			if s.dump {
				parts = 1
			}
			s.date = at.Add(7 * time.Minute)
			fill(s, 4)
			b.sync()
			s.put("e1.nt", nt("e1", "changed"))
			s.date = s.date.Add(time.Minute)
			if rep := b.sync(); !rep.InSync || rep.Updated != 1 {
				t.Fatalf("%+v", rep)
			}
			b.equal()
			poll := func(want int) {
				t.Helper()
				clear(s.requests)
				s.notModified = 0
				rep := b.sync()
				n := 0
				for path, of := range s.requests {
					if strings.Contains(path, "resourcelist-") || strings.Contains(path, "dump") {
						n += of
					}
				}
				if !rep.InSync || rep.Mode != "none" || n != want || s.notModified < n {
					t.Errorf("at %s: %+v, %d requests, %d not modified, want %d: %v", feed.Stamp(s.date), rep, n, s.notModified, want, s.requests)
				}
			}
			poll(parts)
			s.date = at.Add(8 * time.Hour)
			poll(parts)
			b.clock = b.clock.Add(24 * time.Hour) // the mirror has rested on this list for a day
			poll(parts)
			poll(parts)
			if s.damage == nil { // else nothing tells ever
				parts = 0
			}
			poll(parts)
			s.put("e2.nt", nt("e2", "changed")) // the times of the source come again
			s.date = at.Add(9 * time.Minute)
			if rep := b.sync(); !rep.InSync || rep.Updated != 1 {
				t.Errorf("%+v", rep)
			}
			b.equal()
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
		t.Fatalf("a list of %s closes the gap behind it: %+v", feed.Stamp(at), rep)
	}
	if got := b.mir.lines(graphA); !strings.Contains(strings.Join(got, ""), nt("e3", "3")) {
		t.Errorf("what was changed in the second of the list was taken out: %v", got)
	}
	if audit, err := b.open().Audit(context.Background(), AuditOptions{}); err != nil || !audit.SourceOlder || audit.Findings() > 0 {
		t.Errorf("%+v %v", audit, err)
	}
}
