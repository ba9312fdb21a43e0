package destination

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/internal/teststores"
)

// A cache gives an old Resource List or Dump of a source that tells no changes: nothing is deleted.
// One that can be asked past it is; else the run says so, until the right one is back. A source that
// was set back is followed a day later, or at once with Full.
func TestOldListOutOfACache(t *testing.T) {
	forms := map[string]func(*testSource){
		"list":  func(*testSource) {},
		"ours":  func(s *testSource) { s.ours = true },
		"parts": func(s *testSource) { s.parts = 2 },
		"dump":  func(s *testSource) { s.list, s.dump = false, true },
		"no time": func(s *testSource) {
			s.damage = func(doc string) string { return atOf.ReplaceAllString(doc, "") }
			s.modified = true
		},
		"no hashes": func(s *testSource) { s.noHash, s.noLastmod = true, true },
	}
	for name, set := range forms {
		for _, cache := range []string{"asks", "is stiff", "is stiff and says so"} {
			if teststores.Unraced(t, 5) {
				continue
			}
			t.Run(name+" "+cache, func(t *testing.T) {
				t.Parallel()
				b := newBench(t)
				s := b.src
				s.changes = false
				b.cfg.MaxDeleteRatio = 1
				set(s)
				s.now = b.clock
				fill(s, 6)
				paths := []string{"/set/resourcelist.xml", "/set/resourcelist-0.xml", "/set/resourcelist-1.xml"}[:1+s.parts]
				if s.dump {
					paths = []string{"/set/resourcedump.xml", "/set/dump.zip"}
				}
				playOldList(t, b, paths, cache)
			})
		}
	}
}

var atOf = regexp.MustCompile(` at="[^"]*"`)

func playOldList(t *testing.T, b *bench, paths []string, cache string) {
	s, stiff, aged := b.src, cache != "asks", cache == "is stiff and says so"
	pass := func(d time.Duration) {
		b.clock = b.clock.Add(d)
		s.now = b.clock
	}
	c := &cached{bodies: map[string][]byte{}, stiff: stiff}
	b.sync()
	c.take(t, s, paths...)
	was := maps.Clone(s.bodies)
	pass(time.Hour)
	s.put("new.nt", nt("new", "x"))
	s.put("e1.nt", nt("e1", "second"))
	pass(time.Minute)
	if rep := b.sync(); !rep.InSync || rep.Created != 1 {
		t.Fatalf("%+v", rep)
	}
	want := s.want()
	c.before(s)
	hook := s.hook
	if give := s.hook; aged {
		hook = func(w http.ResponseWriter, r *http.Request) bool {
			w.Header().Set("Age", "7200")
			return give(w, r)
		}
	}
	s.hook = hook
	for range 2 {
		pass(time.Minute)
		rep := b.sync()
		st, err := b.d.Status(context.Background())
		if told := strings.Contains(rep.Held, "that was taken: it is an old copy, or the source was set back"); err != nil || rep.InSync == stiff || told != stiff || st.InSync == stiff || rep.Held != st.Held {
			t.Fatalf("%+v %+v %v", rep, st, err)
		}
		b.same(b.mir.lines(graphA), want)
		audit, err := b.open().Audit(context.Background(), AuditOptions{Repair: true})
		if err != nil || audit.Findings()+audit.Repaired > 0 || (audit.Equal || untold(audit)) == stiff {
			t.Fatalf("%+v %v", audit, err)
		}
		b.same(b.mir.lines(graphA), want)
	}
	s.hook = nil
	if rep := b.sync(); !rep.InSync || rep.Held != "" {
		t.Fatalf("%+v", rep)
	}
	b.equal()
	if !stiff {
		return
	}
	s.hook, s.bodies = hook, was // the source itself was set back
	pass(time.Minute)
	b.sync()
	pass(25 * time.Hour)
	rep := b.sync()
	if aged { // it is a cache, whatever it answers
		if rep.InSync {
			t.Fatalf("%+v", rep)
		}
		if !s.noHash { // else the resources were asked for again, each by itself
			b.same(b.mir.lines(graphA), want)
		}
		var err error
		if rep, err = b.open().Sync(context.Background(), SyncOptions{Full: true}); err != nil {
			t.Fatal(err)
		}
	}
	if !rep.InSync || rep.Held != "" {
		t.Fatalf("%+v", rep)
	}
	b.same(b.mir.lines(graphA), s.want())
}

// Change Lists come out of a cache as they were: the source was not set back.
func TestOldChangesOutOfACache(t *testing.T) {
	for _, kind := range []string{"ours", "foreign", "no begin"} {
		for _, stiff := range []bool{false, true} {
			t.Run(fmt.Sprint(kind, stiff), func(t *testing.T) {
				b := newBench(t)
				s := b.src
				s.ours = kind == "ours"
				if kind == "no begin" {
					s.dialect = "0.5"
				}
				fill(s, 6)
				b.sync()
				s.put("e1.nt", nt("e1", "second"))
				b.sync()
				c := &cached{bodies: map[string][]byte{}, stiff: stiff}
				c.take(t, s, "/set/changelist.xml")
				s.put("e2.nt", nt("e2", "second"))
				s.put("new.nt", nt("new", "x"))
				b.sync()
				c.before(s)
				rep := b.sync()
				if !rep.InSync && !stiff { // else the Resource List may have told
					t.Fatalf("%+v", rep)
				}
				b.same(b.mir.lines(graphA), s.want())
				s.hook = nil
				s.put("e3.nt", nt("e3", "second"))
				if rep := b.sync(); !rep.InSync {
					t.Fatalf("%+v", rep)
				}
				b.equal()
			})
		}
	}
}

// A source whose clock was ahead tells earlier times once it is right: its lists are no old copies.
func TestListOfAClockThatWasAhead(t *testing.T) {
	b := newBench(t)
	s := b.src
	s.changes = false
	s.now = b.clock.Add(3 * time.Hour)
	fill(s, 6)
	b.sync()
	b.clock = b.clock.Add(time.Hour)
	s.now = b.clock
	s.put("e1.nt", nt("e1", "second"))
	s.remove("e2.nt")
	if rep := b.sync(); !rep.InSync || rep.Deleted != 1 {
		t.Fatalf("%+v", rep)
	}
	b.equal()
}

// An older Resource Dump that has what is mirrored is taken at once. Another one waits, and its
// packages are read once to tell.
func TestOldDumpOfTheSame(t *testing.T) {
	for _, same := range []bool{true, false} {
		b := newBench(t)
		s := b.src
		s.changes, s.list, s.dump = false, false, true
		s.now = b.clock
		fill(s, 6)
		at := s.now
		b.sync()
		b.clock = b.clock.Add(time.Hour)
		s.now = b.clock
		s.put("e1.nt", nt("e1", "second"))
		if rep := b.poll(); !rep.InSync || rep.Updated != 1 {
			t.Fatalf("%+v", rep)
		}
		if s.now = at; !same {
			s.bodies["e1.nt"] = []byte(nt("e1", "first"))
		}
		before := s.requests["/set/dump.zip"]
		for range 3 {
			if rep := b.poll(); rep.InSync != same || (rep.Held == "") != same {
				t.Errorf("same %t: %+v", same, rep)
			}
		}
		if n := s.requests["/set/dump.zip"] - before; n > 1 {
			t.Errorf("same %t: the package was read %d times", same, n)
		}
		if same {
			b.equal()
		}
	}
}
