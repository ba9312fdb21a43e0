package destination

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// cached is a cache before the source: of some documents it gives what they were.
type cached struct {
	bodies map[string][]byte
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
