package sparqlsrc

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rsbridge/rsbridge/internal/sparql"
	"github.com/rsbridge/rsbridge/internal/sparql/sparqltest"
	"github.com/rsbridge/rsbridge/rdfres"
)

// TestReplicas: whatever replicas do, a scan gives what the store holds.
func TestReplicas(t *testing.T) {
	var many []rdfres.Triple // of twelve predicates
	for i := range 360 {
		many = append(many, rdfres.Triple{S: rdfres.NewIRI(fmt.Sprint("http://a.example/e", i/12)), P: rdfres.NewIRI(fmt.Sprint("http://a.example/p", i%12)), O: `"x"`})
	}
	isBunch := func(q string) bool {
		return strings.Contains(q, "VALUES ?p") && !strings.Contains(q, "COUNT")
	}
	for _, c := range []struct {
		name    string
		cfg     Config
		many    int64
		replica func(*sparqltest.Store) // what is wrong with the second one
		told    string
		unasked bool
		lacks   int // triples
		ts      []rdfres.Triple
	}{
		{name: "equal"},
		{name: "symmetric", cfg: Config{Describe: "scbd"}},
		{name: "strategy", cfg: Config{Strategy: "predicates"}, many: 1 << 40},
		{name: "few triples", many: 1 << 40, unasked: true},
		{name: "another strategy", cfg: Config{Strategy: "batches"}, unasked: true},
		{name: "refuses", told: "left out", replica: func(st *sparqltest.Store) {
			st.Fault = func(string, string) *sparqltest.Fault { return &sparqltest.Fault{Status: 400, Body: "no"} }
		}},
		{name: "breaks off", replica: func(st *sparqltest.Store) {
			st.Fault = func(string, string) *sparqltest.Fault { return &sparqltest.Fault{CutAfter: 700} }
		}},
		{name: "lacks triples", told: "left out", lacks: 1},
		{name: "lacks many triples", told: "left out", lacks: 1000},
		{name: "sends too few", told: "left out", ts: many, replica: func(st *sparqltest.Store) {
			st.Rewrite = func(_, q string, answer []byte) []byte {
				if isBunch(q) {
					return answer[:bytes.IndexByte(answer, '\n')+1]
				}
				return answer
			}
		}},
		{name: "lags in a piece", told: "the store is read alone", replica: func(st *sparqltest.Store) {
			st.Rewrite = func(_, q string, answer []byte) []byte {
				if strings.Contains(q, "MD5") {
					return answer[:bytes.IndexByte(answer, '\n')+1]
				}
				return answer
			}
		}},
		{name: "takes few triples an answer", replica: func(st *sparqltest.Store) {
			st.Fault = func(_, q string) *sparqltest.Fault {
				if isBunch(q) && !strings.Contains(q, "STRSTARTS") {
					return &sparqltest.Fault{Status: 500, Body: "FRVEC: array in for vectored over max vector length"}
				}
				return nil
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var stores [3]*sparqltest.Store
			var log bytes.Buffer
			ts := c.ts
			if ts == nil {
				ts = divided(300)
			}
			c.cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
			for i := range stores {
				stores[i] = sparqltest.New(ts...)
				if i == 2 {
					stores[i] = sparqltest.New(ts[c.lacks:]...)
				}
				stores[i].Relabel, stores[i].Shuffle = true, true
				if i > 0 {
					c.cfg.Replicas = append(c.cfg.Replicas, serve(t, stores[i]))
				}
			}
			if c.replica != nil {
				c.replica(stores[2])
			}
			var asked sync.WaitGroup // each server is asked for a bunch
			asked.Add(len(stores))
			for _, st := range stores {
				first, fault := sync.OnceFunc(asked.Done), st.Fault
				st.Fault = func(op, q string) *sparqltest.Fault {
					if isBunch(q) || fault != nil || c.lacks > 0 {
						first()
					}
					if isBunch(q) && !c.unasked {
						asked.Wait()
					}
					if fault != nil {
						return fault(op, q)
					}
					return nil
				}
			}
			s := known(source(t, stores[0], c.cfg), stores[0])
			s.many = c.many
			got, stats := scanAll(t, s)
			diff(t, c.name, got, expected(t, ts, s.scbd))
			if stats.Triples != int64(len(ts)) || stats.Covered != stats.Triples {
				t.Errorf("%d triples: %+v", len(ts), stats)
			}
			for i, st := range stores[1:] {
				if c.unasked && slices.ContainsFunc(st.Queries(), isBunch) {
					t.Errorf("replica %d is asked", i+1)
				}
				if q := st.Queries(); slices.ContainsFunc(q, func(q string) bool { return strings.Contains(q, "isBlank(?s) ||") }) {
					t.Errorf("replica %d is asked for blank nodes: %s", i+1, q)
				}
			}
			if said := strings.Count(log.String(), "level=WARN"); !strings.Contains(log.String(), c.told) || (said > 0) != (c.told != "") {
				t.Errorf("%d warnings, want %q:\n%s", said, c.told, log.String())
			}
		})
	}
}

// TestReplicasGraphs: also with graphs that share triples.
func TestReplicasGraphs(t *testing.T) {
	ts, more := divided(120), nameTriples(150)
	var stores [2]*sparqltest.Store
	for i := range stores {
		stores[i] = sparqltest.New(ts...)
		stores[i].Relabel = true
		stores[i].Add("http://g.example/1", more[:100]...)
		stores[i].Add("http://g.example/2", more[50:]...)
		stores[i].Add(stateGraph, more[:5]...)
	}
	s := known(source(t, stores[0], Config{Graphs: []string{"*"}, Replicas: []*sparql.Client{serve(t, stores[1])}}), stores[0])
	s.many = 0
	got, stats := scanAll(t, s)
	diff(t, "graphs", got, expected(t, append(slices.Clone(ts), more...), false))
	if stats.Way != "predicates" {
		t.Errorf("read by %s", stats.Way)
	}
}

// TestReplicasEnd: a scan that is ended ends its requests to replicas.
func TestReplicasEnd(t *testing.T) {
	ts := divided(60)
	st, other := sparqltest.New(ts...), sparqltest.New(ts...)
	ctx, cancel := context.WithCancel(t.Context())
	other.Fault = func(string, string) *sparqltest.Fault { cancel(); return nil }
	s := known(source(t, st, Config{Strategy: "predicates", Replicas: []*sparql.Client{serve(t, other)}}), st)
	if sc, err := s.Scan(ctx); err == nil || ctx.Err() == nil {
		t.Errorf("%v, %v", sc, err)
	}
}

// TestPieces: the pieces of a predicate have each hash once.
func TestPieces(t *testing.T) {
	for n := int64(1); n < 40; n++ {
		got := inPieces([]bunch{{predicates: []string{"<p>"}, total: 1000}, {predicates: []string{"<q>", "<r>"}, total: 5000}}, 1000/n)
		pieces := got[:len(got)-1]
		if want := min(max(1, (1000+1000/n-1)/(1000/n)), 16); int64(len(pieces)) != want || got[len(pieces)].piece != "" {
			t.Errorf("%d: %d pieces, want %d", n, len(pieces), want)
		}
		for _, digit := range hexDigits {
			in := 0
			for _, b := range pieces {
				low, high := "", "g"
				for bound := range strings.SplitSeq(strings.Trim(b.piece, "FILTER() "), " && ") {
					if at, ok := strings.CutPrefix(bound, `MD5(STR(?s)) > `); ok {
						low = strings.Trim(at, `"`)
					} else if at, ok := strings.CutPrefix(bound, `MD5(STR(?s)) < `); ok {
						high = strings.Trim(at, `"`)
					}
				}
				if hash := fmt.Sprintf("%c0", digit); hash > low && hash < high {
					in++
				}
			}
			if in != 1 {
				t.Errorf("%d: hashes with %c are in %d pieces", n, digit, in)
			}
		}
	}
}
