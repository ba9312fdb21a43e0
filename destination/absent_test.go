package destination

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// goneAt answers 404 or 410 at some paths.
func goneAt(s *testSource, status int, paths ...string) {
	s.hook = func(w http.ResponseWriter, r *http.Request) bool {
		if !slices.Contains(paths, r.URL.Path) {
			return false
		}
		http.Error(w, "not here", status)
		return true
	}
}

// A Capability List names a Change List or Change Dump without having it: the mirror follows the
// Resource List, or the dump, says so, and goes on with the changes when they are back.
func TestChangesAreNamedAndNotThere(t *testing.T) {
	for name, set := range map[string]func(*testSource){
		"ours":        func(s *testSource) { s.ours = true },
		"foreign":     func(*testSource) {},
		"parts":       func(s *testSource) { s.changeParts = 3 },
		"with a dump": func(s *testSource) { s.dump = true },
		"dump alone":  func(s *testSource) { s.dump, s.list = true, false },
		"change dump": func(s *testSource) { s.changes, s.changeDump = false, true },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			s := b.src
			set(s)
			root := "/set/changelist.xml"
			if s.changeDump {
				root = "/set/changedump.xml"
			}
			fill(s, 5)
			goneAt(s, http.StatusNotFound, root)
			told := func(what string, rep SyncReport) {
				t.Helper()
				st, err := b.d.Status(context.Background())
				if err != nil || rep.InSync || st.InSync || !strings.Contains(rep.Held, root+" is named and not there; the mirror follows the Resource ") || st.Held != rep.Held {
					t.Fatalf("%s: %+v %+v %v", what, rep, st, err)
				}
			}
			rep := b.sync()
			if told("baseline", rep); rep.Created != 5 {
				t.Fatalf("%+v", rep)
			}
			b.same(b.mir.lines(graphA), s.want())
			b.notProven("named and not there")
			s.put("e1.nt", nt("e1", "second"))
			s.remove("e2.nt")
			goneAt(s, http.StatusGone, root)
			told("by the list", b.sync())
			b.same(b.mir.lines(graphA), s.want())
			told("nothing new", b.sync())
			s.put("e3.nt", nt("e3", "second"))
			s.hook = nil
			if rep := b.sync(); !rep.InSync {
				t.Fatalf("%+v", rep)
			}
			b.equal()
			s.put("e4.nt", nt("e4", "second"))
			if rep := b.sync(); !rep.InSync || rep.Updated != 1 {
				t.Fatalf("%+v", rep)
			}
			goneAt(s, http.StatusNotFound, root) // of a mirror that has followed them
			s.put("e4.nt", nt("e4", "third"))
			told("again", b.sync())
			b.same(b.mir.lines(graphA), s.want())
			s.hook, s.changes, s.changeDump = nil, false, false // it is not named any more
			s.put("e0.nt", nt("e0", "second"))
			b.clock = b.clock.Add(time.Hour)
			s.now = b.clock
			if rep := b.sync(); !rep.InSync {
				t.Fatalf("%+v", rep)
			}
			b.equal()
		})
	}
}

// Of a Resource List and a Resource Dump one alone is there: it stands in for the other, and status
// tells which one is not.
func TestOneInventoryIsThere(t *testing.T) {
	for _, gone := range []string{"/set/resourcelist.xml", "/set/resourcedump.xml"} {
		for _, changes := range []bool{true, false} {
			b := newBench(t)
			s := b.src
			s.dump, s.changes = true, changes
			fill(s, 5)
			b.absent()
			goneAt(s, http.StatusNotFound, gone)
			if rep := b.sync(); !rep.InSync || rep.Created != 5 {
				t.Fatalf("%s: %+v", gone, rep)
			}
			s.put("e1.nt", nt("e1", "second"))
			if rep := b.sync(); !rep.InSync || rep.Updated != 1 {
				t.Fatalf("%s: %+v", gone, rep)
			}
			b.equal()
			rep, err := b.open().Sync(context.Background(), SyncOptions{Full: true})
			if err != nil || !rep.InSync {
				t.Fatalf("%s: %+v %v", gone, rep, err)
			}
			if gone == "/set/resourcelist.xml" { // of a dump nothing is asked where there is a list
				if b.absent(s.url(gone)); !strings.Contains(rep.Why, gone+" is named and not there") {
					t.Fatalf("%+v", rep)
				}
			}
			s.hook = nil
			s.put("e2.nt", nt("e2", "second"))
			if _, err := b.open().Sync(context.Background(), SyncOptions{Full: true}); err != nil {
				t.Fatal(err)
			}
			b.equal()
			if gone == "/set/resourcelist.xml" {
				b.absent()
			}
		}
	}
}

// absent fails unless status tells that these are not there.
func (b *bench) absent(want ...string) {
	b.t.Helper()
	st, err := b.open().Status(context.Background())
	if err != nil || !slices.Equal(st.Absent, want) {
		b.t.Fatalf("%v %v, want %v", st.Absent, err, want)
	}
}

// notProven fails unless an audit of every depth says so, for a reason.
func (b *bench) notProven(why string) {
	b.t.Helper()
	for _, depth := range depths {
		rep, err := b.open().Audit(context.Background(), AuditOptions{Depth: depth})
		if err != nil || rep.Verdict != "not proven" || !strings.Contains(rep.SourceError, why) {
			b.t.Fatalf("%s: %s, %+v %v", depth, rep.Verdict, rep, err)
		}
	}
}

// A Change List that is broken or out of order for a time stops no baseline: the Resource List is
// taken, the run says why it is not in sync, and the changes come when they can be read.
func TestBaselineWithoutItsChanges(t *testing.T) {
	for name, h := range map[string]http.HandlerFunc{
		"failing": func(w http.ResponseWriter, r *http.Request) { http.Error(w, "down", http.StatusInternalServerError) },
		"a page":  func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "<!DOCTYPE html><html>log in</html>") },
		"cut":     func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, urlset) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			s := b.src
			fill(s, 5)
			answerAt(s, "/set/changelist.xml", h)
			rep, err := b.open().Sync(context.Background(), SyncOptions{})
			if err == nil || !strings.Contains(err.Error(), "Change List") || rep.Created != 5 || rep.InSync {
				t.Fatalf("%+v, %v", rep, err)
			}
			b.same(b.mir.lines(graphA), s.want())
			st, err := b.d.Status(context.Background())
			if err != nil || st.InSync || st.Resources != 5 || !strings.Contains(st.LastError, "changelist.xml") {
				t.Fatalf("%+v, %v", st, err)
			}
			s.put("e1.nt", nt("e1", "second"))
			s.remove("e2.nt")
			s.hook = nil
			if rep := b.sync(); !rep.InSync || rep.Updated != 1 || rep.Deleted != 1 {
				t.Fatalf("%+v", rep)
			}
			b.equal()
		})
	}
}

// A missing Change List has another address. If it begins before all that is mirrored, nothing is
// missing any more; without a begin the gap stays told.
func TestMissingListHasAnotherAddress(t *testing.T) {
	for from, closed := range map[string]bool{` from="2020-01-01T00:00:00Z"`: true, ``: false} {
		b := newBench(t)
		s := b.src
		fill(s, 5)
		goneAt(s, http.StatusNotFound, "/set/changelist.xml")
		if rep := b.sync(); rep.InSync || rep.Held == "" {
			t.Fatalf("%+v", rep)
		}
		xmlAt(s, s.caps, urlset+`<rs:md capability="capabilitylist"/><url><loc>`+s.url(listXML)+`</loc><rs:md capability="resourcelist"/></url><url><loc>`+s.url("/other.xml")+`</loc><rs:md capability="changelist"/></url></urlset>`)
		xmlAt(s, "/other.xml", urlset+`<rs:ln rel="up" href="`+s.url(s.caps)+`"/><rs:md capability="changelist"`+from+`/></urlset>`)
		if rep := b.sync(); rep.InSync != closed || (rep.Held == "") != closed {
			t.Fatalf("%s: %+v", from, rep)
		}
		b.same(b.mir.lines(graphA), s.want())
	}
}
