package sparqlsrc

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/internal/embedstore"
	"github.com/rsbridge/rsbridge/internal/sparql"
	"github.com/rsbridge/rsbridge/rdfres"
)

// The embedded store, in this process, answers every kind of question that a
// source asks, and what comes out is what rdfres computes in memory.
func TestEmbeddedStore(t *testing.T) {
	store, err := embedstore.Open(t.TempDir(), embedstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	client, err := sparql.New(sparql.Endpoint{
		Name: "embedded", Query: "http://embedded/query", Update: "http://embedded/update", GraphStore: "http://embedded/data",
		Transport: store.Transport(), RetryPause: time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx := context.Background()
	put := func(graph string, ts []rdfres.Triple) {
		t.Helper()
		if err := client.PutGraph(ctx, graph, rdfres.NTriples, ntriples(ts)); err != nil {
			t.Fatal(err)
		}
	}
	caps, err := client.Probe(ctx, sparql.ProbeOptions{Write: true})
	if err != nil {
		t.Fatal(err)
	}
	if !caps.Writable || !caps.Transactional || caps.UnionDefault || !slices.Equal(caps.NormalForm.Rules, []string{"language-case"}) || len(caps.Unexplained) != 0 || caps.RowLimit != 0 || len(caps.Readings) != 4 {
		t.Errorf("probe: %+v", caps)
	}
	seeds := uint64(4)
	if testing.Short() {
		seeds = 1 // one question after the other: the race detector sees no more in more of them
	}
	for seed := range seeds {
		rng := rand.New(rand.NewPCG(seed, 77))
		ts := randomGraph(rng, 150)
		put("http://example.org/g", ts)
		put("", []rdfres.Triple{{S: "<http://example.org/d>", P: "<http://example.org/p>", O: `"default"`}})
		put("urn:rsbridge:state", []rdfres.Triple{{S: "<http://example.org/never>", P: "<http://example.org/p>", O: `"own"`}})
		for i, cfg := range []Config{
			{Graphs: []string{"http://example.org/g"}},
			{Graphs: []string{"http://example.org/g"}, Strategy: "batches", BatchSize: 20},
			{Graphs: []string{"http://example.org/g"}, Describe: "scbd"},
			{Graphs: []string{"http://example.org/g", "http://example.org/none"}},
			{Graphs: []string{"*"}},
			{Graphs: []string{"*"}, Strategy: "batches"},
		} {
			cfg.TempDir = t.TempDir()
			s, err := New(client, cfg)
			if err != nil {
				t.Fatal(err)
			}
			c := caps
			c.Readings = slices.Clone(c.Readings)
			rng.Shuffle(len(c.Readings), func(a, b int) { c.Readings[a], c.Readings[b] = c.Readings[b], c.Readings[a] })
			s.SetCapabilities(c)
			want := ts
			if cfg.Graphs[0] == "*" {
				want = append(slices.Clone(ts), rdfres.Triple{S: "<http://example.org/d>", P: "<http://example.org/p>", O: `"default"`})
			}
			got, st := scanAll(t, s)
			what := fmt.Sprintf("seed %d config %d by %s", seed, i, st.Way)
			diff(t, what, got, expected(t, want, cfg.Describe == "scbd"))
			if st.Covered != int64(len(want)) || st.Triples != st.Covered {
				t.Errorf("%s: %d triples, %+v", what, len(want), st)
			}
			var ask []string
			for e := range got {
				if rng.IntN(3) == 0 {
					ask = append(ask, e)
				}
			}
			ds, err := s.Describe(ctx, append(ask, "http://example.org/never"))
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			for _, d := range ds {
				if !slices.Equal(d.Triples, got[d.Entity]) {
					t.Fatalf("%s: describe %s:\n got %v\nwant %v", what, d.Entity, d.Triples, got[d.Entity])
				}
			}
		}
	}
	// Selections and a CONSTRUCT.
	put("", nameTriples(20))
	for _, cfg := range []Config{
		{Describe: constructText},
		{Select: Select{Query: `SELECT DISTINCT ?entity WHERE { ?entity <http://example.org/name> ?n FILTER(CONTAINS(?n, "1-")) }`}},
		{Select: Select{Prefixes: []string{"http://example.org/e1"}}},
	} {
		cfg.TempDir = t.TempDir()
		s, err := New(client, cfg)
		if err != nil {
			t.Fatal(err)
		}
		if got, st := scanAll(t, s); len(got) == 0 {
			t.Errorf("%+v: %+v", cfg, st)
		}
	}
}
