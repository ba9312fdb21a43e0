package sparql_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rsbridge/rsbridge/internal/inproc"
	"github.com/rsbridge/rsbridge/internal/sparql"
	"github.com/rsbridge/rsbridge/internal/sparql/sparqltest"
	"github.com/rsbridge/rsbridge/rdfres"
)

// TestBusyProbe: a busy store that takes half a minute for its first write is written to.
func TestBusyProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := sparqltest.New(rdfres.Triple{S: "<http://example.org/e>", P: "<http://example.org/p>", O: `"1"`})
		var busy atomic.Bool
		st.Fault = func(op, body string) *sparqltest.Fault {
			if op == "update" && !busy.Swap(true) {
				time.Sleep(30 * time.Second)
			}
			return nil
		}
		c, err := sparql.New(sparql.Endpoint{Query: "http://store.example/query", Update: "http://store.example/update", Transport: inproc.Transport{Handler: st}, Retries: -1})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if caps, err := c.Probe(t.Context(), sparql.ProbeOptions{Write: true, Brief: true}); err != nil || !caps.Writable || caps.WriteError != nil || len(caps.Unanswered) > 0 {
			t.Errorf("writable %t, unanswered %v: %v, %v", caps.Writable, caps.Unanswered, caps.WriteError, err)
		}
	})
}

// A probe that writes leaves nothing behind: not when it is interrupted in any of
// its writes, not when any of them fails, and not when the store does a write that
// was given up only after the graph was removed.
func TestProbeLeavesNothing(t *testing.T) {
	one := rdfres.Triple{S: "<http://example.org/e>", P: "<http://example.org/p>", O: `"1"`}
	writes := 0
	run := func(name string, n int, meet func(cancel func()) *sparqltest.Fault) {
		t.Run(name, func(t *testing.T) {
			st := sparqltest.New(one)
			st.NotAtomic = true
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			writes = 0
			st.Fault = func(op, body string) *sparqltest.Fault {
				if op != "update" || strings.HasPrefix(body, "DROP") {
					return nil
				}
				writes++
				if writes != n {
					return nil
				}
				return meet(cancel)
			}
			_, err := connect(t, st, func(e *sparql.Endpoint) { e.Retries = -1 }).Probe(ctx, sparql.ProbeOptions{Write: true, Speed: true})
			if left := st.Graphs(); len(left) != 1 {
				t.Errorf("write %d: %v is left (%v)", n, left, err)
			}
		})
	}
	run("whole", 0, nil)
	all := writes
	if all < 8 {
		t.Fatalf("a probe writes %d times", all)
	}
	for _, n := range []int{1, all} {
		run("interrupted", n, func(cancel func()) *sparqltest.Fault {
			cancel()
			return nil
		})
		run("failed", n, func(func()) *sparqltest.Fault {
			return &sparqltest.Fault{Status: http.StatusInternalServerError, Body: "out of memory"}
		})
	}

	// bubbled probes a store of the same process, in a bubble: no time passes outside.
	bubbled := func(t *testing.T, ctx context.Context, st *sparqltest.Store) error {
		c, err := sparql.New(sparql.Endpoint{Query: "http://store.example/query", Update: "http://store.example/update", Transport: inproc.Transport{Handler: st}, Retries: -1})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_, err = c.Probe(ctx, sparql.ProbeOptions{Write: true})
		return err
	}

	// The store goes on with a write whose request has ended: no DROP comes before it.
	t.Run("interrupted, and done all the same", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			st := sparqltest.New(one)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			written := make(chan struct{})
			var once sync.Once
			st.Fault = func(op, body string) *sparqltest.Fault {
				if op == "update" && strings.HasPrefix(body, "INSERT DATA") {
					cancel()
					synctest.Wait() // the probe has done what it does at once
				}
				return nil
			}
			st.After = func(op, body string) {
				if strings.HasPrefix(body, "INSERT DATA") {
					once.Do(func() { close(written) })
				}
			}
			err := bubbled(t, ctx, st)
			<-written
			if left := st.Graphs(); len(left) != 1 || err == nil {
				t.Errorf("%v is left (%v)", left, err)
			}
		})
	})

	// The store takes its time over a write: it is there after the first DROP.
	t.Run("done late", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			st := sparqltest.New(one)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			late, done := "", false
			st.Fault = func(op, body string) *sparqltest.Fault {
				if op == "update" && strings.HasPrefix(body, "INSERT DATA") && late == "" {
					_, late, _ = strings.Cut(body, "GRAPH <")
					late, _, _ = strings.Cut(late, ">")
					cancel()
					return &sparqltest.Fault{Hang: true}
				}
				return nil
			}
			st.After = func(op, body string) {
				if strings.HasPrefix(body, "DROP") && !done {
					st.Add(late, one)
					done = true
				}
			}
			if bubbled(t, ctx, st) == nil {
				t.Error("a probe that was interrupted tells of no error")
			}
			if left := st.Graphs(); len(left) != 1 || !done {
				t.Errorf("%v is left after a write that came late: %t", left, done)
			}
		})
	})
}

// Where nothing may be written, that is what is told: there is no graph to drop by hand.
func TestProbeMayNotWrite(t *testing.T) {
	st := sparqltest.New(rdfres.Triple{S: "<http://example.org/e>", P: "<http://example.org/p>", O: `"1"`})
	updates := 0
	st.Fault = func(op, _ string) *sparqltest.Fault {
		if op != "update" {
			return nil
		}
		updates++
		return &sparqltest.Fault{Status: http.StatusForbidden, Body: "read only"}
	}
	var log bytes.Buffer
	x, err := connect(t, st, func(e *sparql.Endpoint) { e.Logger = slog.New(slog.NewTextHandler(&log, nil)) }).Examine(t.Context(), sparql.ProbeOptions{Write: true})
	if err != nil || x.Writable || !strings.Contains(x.WriteError, "read only") {
		t.Errorf("%+v, %v", x, err)
	}
	if updates != 1 || strings.Contains(log.String(), "by hand") {
		t.Errorf("%d updates; the log says %s", updates, &log)
	}
}

// A probe that was killed leaves its scratch graph: the next that may write removes it when
// it is old, of whatever version, and every one names it.
func TestProbeFindsLeftovers(t *testing.T) {
	literals := rdfres.ProbeTriples()[0]
	old, before, now := sparql.ScratchGraph(time.Now().Add(-2*time.Hour)), "urn:rsbridge:probe:ABCDEF", sparql.ScratchGraph(time.Now())
	st := sparqltest.New(rdfres.Triple{S: "<http://example.org/e>", P: "<http://example.org/p>", O: `"1"`})
	st.Add(old, sparql.ScratchMark)
	st.Add(before, literals)
	st.Add(now, sparql.ScratchMark, literals)
	st.Add("http://example.org/g", sparql.ScratchMark) // of somebody who mirrors what a probe has left
	for _, o := range []sparql.ProbeOptions{{}, {Write: true}} {
		x, err := connect(t, st, func(e *sparql.Endpoint) { e.Retries = -1 }).Examine(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		told := strings.Join(x.Could, "\n")
		for graph, removed := range map[string]bool{old: o.Write, before: o.Write, now: false} {
			if slices.Contains(x.Removed, graph) != removed || strings.Contains(told, graph) == removed || slices.Contains(st.Graphs(), graph) == removed {
				t.Errorf("writing %t: %s: removed %v, left %v; told %s", o.Write, graph, x.Removed, st.Graphs(), told)
			}
		}
		if strings.Contains(told, "http://example.org/g,") || !slices.Contains(st.Graphs(), "http://example.org/g") {
			t.Errorf("writing %t: left %v; told %s", o.Write, st.Graphs(), told)
		}
	}
}
