package destination

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/internal/teststores"
)

// cached is a cache before the source: of some documents it gives what they were.
type cached struct {
	bodies map[string][]byte
	header map[string]http.Header
	stiff  bool // it does not ask the source, whatever a request says
	asked  int  // it was asked to
}

func (c *cached) before(s *testSource) {
	s.hook = func(w http.ResponseWriter, r *http.Request) bool {
		body := c.bodies[r.URL.Path]
		fresh := r.Header.Get("Cache-Control") == "no-cache"
		if body != nil && fresh {
			c.asked++
		}
		if body == nil || fresh && !c.stiff {
			return false
		}
		if m := c.header[r.URL.Path].Get("Last-Modified"); m != "" {
			w.Header().Set("Last-Modified", m)
		}
		w.Write(body)
		return true
	}
}

func (c *cached) take(t *testing.T, s *testSource, paths ...string) {
	t.Helper()
	for _, p := range paths {
		resp, err := http.Get(s.url(p))
		if err != nil {
			t.Fatal(err)
		}
		if c.bodies[p], err = io.ReadAll(resp.Body); err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if c.header == nil {
			c.header = map[string]http.Header{}
		}
		c.header[p] = resp.Header
	}
}

// A cache gives an index as it is and its parts as they were: what they lack is not
// taken for gone, nor for applied.
func TestPartsOutOfACache(t *testing.T) {
	for _, kind := range []string{"list", "changes"} {
		for _, stiff := range []bool{false, true} {
			t.Run(fmt.Sprint(kind, stiff), func(t *testing.T) {
				b := newBench(t)
				s := b.src
				s.ours = true
				c := &cached{bodies: map[string][]byte{}, stiff: stiff}
				fill(s, 7)
				var before []string
				if kind == "list" {
					s.parts = 2
					c.take(t, s, "/set/resourcelist-0.xml", "/set/resourcelist-1.xml")
				} else {
					s.changeParts = 4
					b.sync()
					before = b.mir.lines(graphA)
					c.take(t, s, "/set/changelist-1.xml")
				}
				c.before(s)
				s.put("e1.nt", nt("e1", "second"))
				s.put("new.nt", nt("new", "x"))
				if stiff {
					rep, err := b.open().Sync(context.Background(), SyncOptions{})
					if err == nil || !strings.Contains(err.Error(), "a cache between here and the source") {
						t.Fatalf("%+v %v", rep, err)
					}
					b.same(b.mir.lines(graphA), before)
					c.stiff = false
				}
				if rep := b.sync(); !rep.InSync {
					t.Fatalf("%+v", rep)
				}
				b.equal()
				if c.asked == 0 {
					t.Error("the cache was not asked for what is")
				}
			})
		}
	}
}

// An answer of success that is not 200 does not have the whole of a resource.
func TestAnswerIsTheWhole(t *testing.T) {
	for _, code := range []int{http.StatusPartialContent, http.StatusAccepted, http.StatusNoContent, http.StatusResetContent} {
		b := newBench(t)
		s := b.src
		s.noHash = true
		fill(s, 3)
		s.put("e1.nt", nt("e1", "a", "b"))
		b.sync()
		s.put("e1.nt", nt("e1", "c", "d"))
		answerAt(s, "/set/r/e1.nt", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/n-triples")
			w.WriteHeader(code)
			if code < 204 || code > 205 {
				io.WriteString(w, nt("e1", "c"))
			}
		})
		if rep := b.sync(); rep.InSync || rep.Pending != 1 {
			t.Fatalf("%d: %+v", code, rep)
		}
		if got := strings.Join(b.mir.lines(graphA), ""); strings.Count(got, "/e1>") != 2 {
			t.Fatalf("%d: %s", code, got)
		}
		s.hook = nil
		b.clock = b.clock.AddDate(0, 0, 1)
		if rep := b.sync(); !rep.InSync {
			t.Fatalf("%d: %+v", code, rep)
		}
		b.equal()
	}
}

// A Resource Dump that is older than the mirror, and to which the changes do not reach
// back, is no help for a gap: what was applied since stays.
func TestGapWithAnOldDump(t *testing.T) {
	for _, changeDump := range []bool{false, true} {
		for _, ours := range []bool{false, true} {
			b := newBench(t)
			s := b.src
			s.ours, s.list, s.dump = ours, false, true
			if changeDump {
				s.changes, s.changeDump, s.packed = false, true, 2
			}
			fill(s, 6)
			s.freezeDump()
			b.sync()
			s.put("new.nt", nt("new", "x"))
			s.put("e1.nt", nt("e1", "second"))
			if rep := b.sync(); !rep.InSync {
				t.Fatalf("%+v", rep)
			}
			b.same(b.mir.lines(graphA), s.want())
			s.put("e2.nt", nt("e2", "lost"))
			s.put("e4.nt", nt("e4", "lost"))
			s.put("e3.nt", nt("e3", "second"))
			s.put("e5.nt", nt("e5", "second"))
			s.drop = len(s.log) - 2
			for range 2 {
				if rep := b.sync(); rep.InSync || !strings.Contains(rep.Held, "gap: ") || rep.Deleted+rep.Failed+rep.Pending > 0 {
					t.Fatalf("%+v", rep)
				}
				if got := strings.Join(b.mir.lines(graphA), ""); !strings.Contains(got, "/new>") || strings.Count(got, "second") != 3 || strings.Contains(got, "lost") {
					t.Fatal(got)
				}
			}
			s.dumped = nil
			if rep := b.sync(); !rep.InSync || rep.Updated != 2 {
				t.Fatalf("%+v", rep)
			}
			b.equal()
		}
	}
}

// Lists of before 0.9 do not tell where they begin. A list or dump that is older than the
// mirror, and than the first of them, is neither taken for what the source has nor does it
// close a gap: what was applied since stays, and an audit does not find it missing.
func TestOldListWithoutBeginning(t *testing.T) {
	for _, dialect := range []string{"0.5", "D-Lib"} {
		for _, dump := range []bool{false, true} {
			b := newBench(t)
			s := b.src
			s.dialect, s.list, s.dump = dialect, !dump, dump
			fill(s, 6)
			s.freezeDump()
			s.frozen, s.listSeq, s.listAt = maps.Clone(s.bodies), len(s.log), s.now
			b.sync()
			s.put("new.nt", nt("new", "x"))
			s.remove("e0.nt")
			s.put("e1.nt", nt("e1", "second"))
			if rep := b.sync(); !rep.InSync {
				t.Fatalf("%+v", rep)
			}
			s.drop = len(s.log) - 1
			b.same(b.mir.lines(graphA), s.want())
			b.older(true)
			if !dump { // what it says of others counts
				s.frozen["e5.nt"] = []byte(nt("e5", "other"))
				if a, err := b.open().Audit(context.Background(), AuditOptions{}); err != nil || a.Equal || a.Different != 1 {
					t.Fatalf("%s: %+v %v", dialect, a, err)
				}
				s.frozen["e5.nt"] = s.bodies["e5.nt"]
			}
			s.put("e2.nt", nt("e2", "lost"))
			s.put("e4.nt", nt("e4", "lost"))
			s.put("e3.nt", nt("e3", "second"))
			s.drop = len(s.log) - 1
			for range 2 {
				if rep := b.sync(); rep.InSync || !strings.Contains(rep.Held, "gap: ") || rep.Created+rep.Deleted+rep.Failed+rep.Pending > 0 {
					t.Fatalf("%s, dump %v: %+v", dialect, dump, rep)
				}
				if got := strings.Join(b.mir.lines(graphA), ""); !strings.Contains(got, "/new>") || strings.Contains(got, "/e0>") || strings.Count(got, "second") != 2 {
					t.Fatalf("%s, dump %v: %s", dialect, dump, got)
				}
			}
			s.frozen, s.listAt, s.dumped = nil, time.Time{}, nil
			s.tick()
			if rep := b.sync(); !rep.InSync || rep.Updated != 2 {
				t.Fatalf("%s, dump %v: %+v", dialect, dump, rep)
			}
			b.equal()
			b.older(false)
		}
	}
}

// older fails unless an audit tells so of the source's list, which proves nothing of now then.
func (b *bench) older(want bool) {
	b.t.Helper()
	if rep, err := b.open().Audit(context.Background(), AuditOptions{}); err != nil || rep.SourceOlder != want || rep.Equal == want || (rep.ProvenUntil != nil) != want {
		b.t.Fatalf("%+v %v", rep, err)
	}
}

// A Change Dump is made at other times than the list or Resource Dump beside it: where it
// ends before them nothing is missing; a source that was set back is told from that.
func TestChangeDumpBehind(t *testing.T) {
	for _, list := range []bool{false, true} {
		for _, back := range []bool{false, true} {
			b := newBench(t)
			s := b.src
			s.ours, s.list, s.dump, s.changes, s.changeDump, s.packed = true, list, !list, false, true, 3
			fill(s, 8)
			clear(s.requests)
			if rep := b.sync(); !rep.InSync || s.requests["/set/dump.zip"] > 1 {
				t.Fatalf("%+v %v", rep, s.requests)
			}
			b.equal()
			if rep, err := b.open().Sync(context.Background(), SyncOptions{Full: true}); err != nil || !rep.InSync {
				t.Fatalf("%+v %v", rep, err)
			}
			if back {
				s.restore(7)
			} else {
				s.put("e1.nt", nt("e1", "in the next package"))
			}
			rep := b.sync()
			if !rep.InSync || strings.Contains(rep.Why, "gap: ") != back {
				t.Fatalf("list %v, back %v: %+v", list, back, rep)
			}
			b.equal()
			s.put("e2.nt", nt("e2", "x"))
			s.put("e3.nt", nt("e3", "x"))
			s.put("e4.nt", nt("e4", "x"))
			if rep := b.sync(); !rep.InSync || rep.Updated == 0 {
				t.Fatalf("list %v, back %v: %+v", list, back, rep)
			}
		}
	}
}

// A comparison is cut off, and the source has the list again that was processed before
// it: that is compared, as little as it has changed.
func TestListComesBack(t *testing.T) {
	for _, dump := range []bool{false, true} {
		b := newBench(t)
		s := b.src
		s.changes, s.list, s.dump = false, !dump, dump
		fill(s, 60)
		s.listAt = s.now
		at := s.now
		s.freezeDump()
		first := s.dumped
		b.sync()
		for i := range 60 {
			s.put(fmt.Sprintf("e%d.nt", i), nt(fmt.Sprintf("e%d", i), "second"))
		}
		s.listAt, s.dumped = s.now, nil
		d := b.open()
		d.mem.Crash = cutAt("recorded")
		if _, err := d.Sync(context.Background(), SyncOptions{}); !errors.Is(err, errInjected) {
			t.Fatal(err)
		}
		s.restore(60)
		s.listAt, s.dumped = at, first
		if rep := b.sync(); !rep.InSync {
			t.Fatalf("%+v", rep)
		}
		b.equal()
	}
}

// A run is cut off while changes are applied, and the source is set back to where the
// last one ended: what stands in the mirror of them goes.
func TestSetBackAfterACut(t *testing.T) {
	store, folder := []string{"intent", "written", "recorded", "file"}, []string{"written", "checkpoint", "recorded"} // the steps of each
	for kind, points := range map[string][]string{"ours": store, "foreign": store, "parts": store, "another way": store, "folder": folder} {
		for _, point := range points {
			if teststores.Unraced(t, 4) {
				continue
			}
			t.Run(point+" "+kind, func(t *testing.T) {
				b := newBench(t)
				s := b.src
				s.ours = kind != "foreign" && kind != "parts"
				s.types["a.pdf"], s.types["b.pdf"] = "application/pdf", "application/pdf"
				b.cfg.Files, b.cfg.MaxDeleteRatio = t.TempDir(), 1
				open, dir := b.open, b.cfg.Files
				if kind == "folder" {
					open = b.intoFolder(dir)
				}
				run := func(d *Destination) (SyncReport, error) { return d.Sync(context.Background(), SyncOptions{}) }
				if kind == "parts" {
					s.changeParts = 4
				}
				fill(s, 5)
				s.put("a.pdf", "%PDF a")
				if _, err := run(open()); err != nil {
					t.Fatal(err)
				}
				if _, err := run(open()); err != nil {
					t.Fatal(err)
				}
				want := maps.Clone(s.bodies)
				for i := range 60 { // more than one batch
					s.put(fmt.Sprintf("n%d.nt", i), nt("n", fmt.Sprint(i)))
				}
				s.put("e1.nt", nt("e1", "second"))
				s.put("a.pdf", "%PDF a, second")
				s.put("b.pdf", "%PDF b")
				s.remove("e2.nt")
				d := open()
				d.mem.Crash = cutAt(point)
				if _, err := run(d); !errors.Is(err, errInjected) {
					t.Fatalf("it was not cut off there: %v", err)
				}
				s.restore(6)
				if kind == "another way" {
					s.put("e3.nt", nt("e3", "after"))
					want = maps.Clone(s.bodies)
				}
				for range 2 {
					if rep, err := run(open()); err != nil || !rep.InSync {
						t.Fatalf("%+v %v", rep, err)
					}
				}
				if rep, err := open().Audit(context.Background(), AuditOptions{}); err != nil || !rep.Equal {
					t.Fatalf("%+v %v", rep, err)
				}
				if kind != "folder" {
					b.equal()
				}
				files := 0
				for name, body := range filesIn(t, dir) {
					if string(want[strings.TrimPrefix(name, "set/r/")]) != body {
						t.Errorf("%s is %q", name, body)
					}
					files++
				}
				if n := 1; kind == "folder" && files != len(want) || kind != "folder" && files != n {
					t.Errorf("%d files", files)
				}
			})
		}
	}
}
