package destination

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/destination/keep"
	"github.com/rsbridge/rsbridge/internal/teststores"
)

// errorInRDF is an error page as some servers write it.
const errorInRDF = `<http://errors.example/500> <http://errors.example/message> "try again later" .
`

// bare is a bench of a source that promises nothing of its resources, with n of them mirrored
// and confirmed.
func bare(t *testing.T, n int) *bench {
	b := newBench(t)
	b.src.noHash, b.src.noLastmod = true, true
	fill(b.src, n)
	b.poll()
	b.poll()
	return b
}

// poll syncs a minute later.
func (b *bench) poll() SyncReport {
	b.t.Helper()
	b.clock = b.clock.Add(time.Minute)
	return b.sync()
}

func (b *bench) audited(depth string) keep.AuditReport {
	b.t.Helper()
	rep, err := b.open().Audit(context.Background(), AuditOptions{Depth: depth})
	if err != nil {
		b.t.Fatal(err)
	}
	return rep
}

// wrongly answers with a body for some resources.
func wrongly(s *testSource, typ, body string, names ...string) (rightly func()) {
	before := s.hook
	for _, name := range names {
		answerAt(s, "/set/r/"+name, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", typ)
			io.WriteString(w, body)
		})
	}
	return func() { s.hook = before }
}

// A wrong body of which nothing is promised, served for one poll, leaves no trace, and no audit
// calls it equal meanwhile. A changed resource, a new one and several at once are met.
func TestWrongBodyForOnePoll(t *testing.T) {
	type wrong struct{ typ, body string }
	const triples, page = "application/n-triples", "text/html"
	for name, w := range map[string]wrong{
		"an error in RDF":     {triples, errorInRDF},
		"another resource":    {triples, nt("e5", "a")},
		"an old state":        {triples, nt("e1", "first of all")},
		"no triples":          {triples, "# nothing\n"},
		"nothing":             {triples, ""},
		"a page":              {page, "<!DOCTYPE html><html><body>Please log in</body></html>"},
		"subjects and others": {triples, nt("e1", "b") + errorInRDF},
	} {
		for _, of := range [][]string{{"e1.nt"}, {"new.nt"}, {"e1.nt", "e2.nt", "e3.nt", "new.nt"}} {
			for _, changes := range []bool{true, false} {
				if teststores.Unraced(t, 5) {
					continue
				}
				t.Run(fmt.Sprint(name, of, changes), func(t *testing.T) {
					t.Parallel()
					b := newBench(t)
					s := b.src
					s.noHash, s.noLastmod, s.changes = true, true, changes
					fill(s, 8)
					b.poll()
					b.poll()
					for _, name := range of {
						s.put(name, nt(strings.TrimSuffix(name, ".nt"), "second"))
					}
					rightly := wrongly(s, w.typ, w.body, of...)
					b.poll()
					rightly()
					if rep := b.audited(""); rep.Equal {
						t.Errorf("EQUAL: %+v", rep)
					}
					if rep := b.poll(); !rep.InSync {
						t.Fatalf("%+v", rep)
					}
					b.equal()
					if rep := b.audited("origin"); !rep.Equal {
						t.Fatalf("%+v", rep)
					}
				})
			}
		}
	}
}

// What an audit finds of an answer without a promise is the source's word: it asks once more.
func TestAuditConfirmsWhatWasTaken(t *testing.T) {
	for _, depth := range []string{"store", "inventory"} {
		for _, now := range []string{"right", "absent", "same"} {
			t.Run(fmt.Sprint(depth, now), func(t *testing.T) {
				b := bare(t, 8)
				s := b.src
				s.put("e1.nt", nt("e1", "second"))
				rightly := wrongly(s, "application/n-triples", nt("e1", "wrong"), "e1.nt")
				if rep := b.poll(); !rep.InSync {
					t.Fatalf("%+v", rep)
				}
				switch now {
				case "right":
					rightly()
				case "absent":
					answerAt(s, "/set/r/e1.nt", http.NotFound)
				}
				want := map[string]string{"right": "different", "absent": "not proven", "same": "equal"}
				if rep := b.audited(depth); rep.Verdict != want[now] {
					t.Fatalf("%+v", rep)
				}
				if now == "right" {
					if rep := b.poll(); !rep.InSync {
						t.Fatalf("%+v", rep)
					}
					b.equal()
				}
			})
		}
	}
}

// An odd answer that a later run receives too is taken, and asked for again each time that it
// has stood twice as long: so it goes, however long it was wrong.
func TestOddAnswerForLong(t *testing.T) {
	for name, body := range map[string]string{"empty": "", "an error in RDF": errorInRDF} {
		for _, polls := range []int{2, 3, 7} {
			t.Run(fmt.Sprint(name, polls), func(t *testing.T) {
				b := bare(t, 8)
				s := b.src
				s.put("e1.nt", nt("e1", "second"))
				rightly := wrongly(s, "application/n-triples", body, "e1.nt")
				if rep := b.poll(); rep.InSync || rep.Pending != 1 {
					t.Fatalf("%+v", rep)
				}
				for range polls - 1 {
					if rep := b.poll(); !rep.InSync {
						t.Fatalf("%+v", rep)
					}
				}
				rightly()
				if rep := b.audited(""); rep.Equal {
					t.Errorf("EQUAL: %+v", rep)
				}
				for range polls {
					b.poll()
				}
				b.equal()
			})
		}
	}
}

// Of a source that promises nothing each answer is asked for once more, by its ETag where it
// has one; of one that promises hashes or tells the times of its files nothing is.
func TestAskedOnceMore(t *testing.T) {
	for name, c := range map[string]struct {
		set       func(s *testSource)
		tag       string
		modified  bool
		again     int
		unchanged int
	}{
		"nothing":  {func(s *testSource) { s.noHash = true }, "", false, 8, 0},
		"tags":     {func(s *testSource) { s.noHash = true }, `"1"`, false, 8, 8},
		"hashes":   {func(s *testSource) {}, `"1"`, false, 0, 0},
		"lastmods": {func(s *testSource) { s.noHash = true }, "", true, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			s := b.src
			c.set(s)
			fill(s, 8)
			var asked, unchanged atomic.Int64
			s.hook = func(w http.ResponseWriter, r *http.Request) bool {
				name, ok := strings.CutPrefix(r.URL.Path, "/set/r/")
				if !ok {
					return false
				}
				asked.Add(1)
				if c.modified {
					_, at := s.lastOf(name, len(s.log))
					w.Header().Set("Last-Modified", at.UTC().Format(http.TimeFormat))
				}
				w.Header().Set("ETag", c.tag)
				if c.tag != "" && r.Header.Get("If-None-Match") == c.tag {
					unchanged.Add(1)
					w.WriteHeader(http.StatusNotModified)
					return true
				}
				return false
			}
			b.poll()
			if asked.Load() < 8 {
				t.Fatal(asked.Load())
			}
			for _, again := range []int{c.again, 0, 0} {
				asked.Store(0)
				b.poll()
				if asked.Load() != int64(again) {
					t.Fatalf("%d asked, want %d", asked.Load(), again)
				}
			}
			if unchanged.Load() != int64(c.unchanged) {
				t.Fatalf("%d unchanged, want %d", unchanged.Load(), c.unchanged)
			}
			b.equal()
		})
	}
}

// Resources that share a document change together, and are taken at once.
func TestSharedDocumentIsNoError(t *testing.T) {
	b := newBench(t)
	s := b.src
	s.noHash, s.noLastmod = true, true
	both := func(v string) string { return nt("a", v) + nt("b", v) }
	for _, v := range []string{"1", "2", "3"} {
		s.put("a.nt", both(v))
		s.put("b.nt", both(v))
		if rep := b.poll(); !rep.InSync {
			t.Fatalf("%+v", rep)
		}
		b.same(b.mir.lines(graphA), strings.SplitAfter(both(v), "\n")[:2])
	}
}

// A plausible wrong body may come twice, and nothing tells that the right one is back. It is asked
// for again whenever it has stood twice as long: it stays at most as long as it was served, and an
// hour. Requests grow rarer all the same.
func TestWrongBodyForSomePolls(t *testing.T) {
	teststores.Sequential(t)
	for _, changes := range []bool{true, false} {
		for _, stood := range []time.Duration{3 * time.Minute, 40 * time.Hour} {
			b := bare(t, 8)
			b.src.changes = changes
			b.poll()
			rightly := wrongly(b.src, "application/n-triples", nt("e1", "wrong"), "e1.nt", "new.nt")
			b.src.put("e1.nt", nt("e1", "right"))
			for passed := time.Duration(0); passed < stood; passed += stood / 3 {
				b.poll()
				b.clock = b.clock.Add(stood / 3)
			}
			if got := b.mir.lines(graphA); !slices.Contains(got, nt("e1", "wrong")) {
				t.Fatalf("changes %t, %s: it was not believed: %v", changes, stood, got)
			}
			rightly()
			for passed := time.Duration(0); passed < stood+time.Hour; passed += stood / 4 {
				b.poll()
				b.clock = b.clock.Add(stood / 4)
			}
			b.poll()
			b.equal()
			clear(b.src.requests)
			for range 30 * 24 {
				b.clock = b.clock.Add(time.Hour)
				b.poll()
			}
			if n := b.src.requests["/set/r/e1.nt"]; n == 0 || n > 12 {
				t.Errorf("changes %t, %s: %d requests in a month", changes, stood, n)
			}
		}
	}
}
