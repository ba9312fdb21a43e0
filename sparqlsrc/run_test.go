package sparqlsrc

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/rdfres"
)

// TestRuns: whatever the order in which the triples of a subject come, in a row or
// not, few or very many, once or twice, its description is the same, and doubles
// are counted.
func TestRuns(t *testing.T) {
	seeds := uint64(30)
	if testing.Short() {
		seeds = 6 // each kind of order twice
	}
	for seed := range seeds {
		rng := rand.New(rand.NewPCG(seed, 77))
		want := map[string][]rdfres.Triple{}
		var all []rdfres.Triple
		repeated := int64(0)
		for e := range 40 {
			n := 1 + rng.IntN(12)
			if e == 7 {
				n = 2500 // more than a run holds
			}
			entity := fmt.Sprintf("http://example.org/e%d", e)
			for i := range n {
				x := rdfres.Triple{S: rdfres.NewIRI(entity), P: rdfres.NewIRI(fmt.Sprintf("http://example.org/p%d", rng.IntN(3))), O: rdfres.NewLiteral(fmt.Sprint("value ", i), "en", "")}
				if rng.IntN(20) == 0 {
					x.O = rdfres.NewBlank(fmt.Sprintf("b%d-%d", e, i))
				}
				all = append(all, x)
				if rng.IntN(30) == 0 && x.O.Kind() == rdfres.KindLiteral {
					all = append(all, x)
					repeated++
				}
			}
		}
		all = append(all, rdfres.Triple{S: "<http://example.org/long>", P: "<http://example.org/p>", O: rdfres.NewLiteral(strings.Repeat("x", 3*runBytes), "", "")})
		named, _, err := rdfres.NameBlanks(rdfres.SortUnique(slices.Clone(all)), rdfres.NameOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range named {
			want[x.S.IRI()] = append(want[x.S.IRI()], x)
		}
		switch seed % 3 {
		case 1: // as it comes from an index of another order
			rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		case 2: // most of it in rows, of which some come back
			for range 10 {
				at := rng.IntN(len(all))
				all = append(slices.Clone(all[at:]), all[:at]...)
				i, j := rng.IntN(len(all)), rng.IntN(len(all))
				all[i], all[j] = all[j], all[i]
			}
		}
		cfg := Config{TempDir: t.TempDir(), MemoryBytes: 256 << 10, MaxDescriptionTriples: 1 << 20, MaxDepth: 100, Progress: func(string, int64, int64) {}}
		g, err := newGrouper(&cfg, false)
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range all {
			if err := g.add([]byte(x.S), []byte(x.P), []byte(x.O)); err != nil {
				t.Fatal(err)
			}
		}
		if err := g.finish(t.Context()); err != nil {
			t.Fatal(err)
		}
		sc := &Scan{cfg: &cfg, group: g}
		twice := int64(-1)
		sc.verify = func(_ int64, d *doubles) error { twice = d.n; return nil }
		for range 2 { // it can be read again
			for e, why := range sc.Failed() {
				t.Fatalf("%s: %v", e, why)
			}
			got := map[string][]rdfres.Triple{}
			for d, err := range sc.Descriptions() {
				if err != nil {
					t.Fatal(err)
				}
				got[d.Entity] = slices.Clone(d.Triples)
			}
			if !maps.EqualFunc(got, want, slices.Equal) {
				t.Fatalf("seed %d: %d entities, want %d, or they differ", seed, len(got), len(want))
			}
			if twice != repeated || sc.Stats().Triples != int64(len(named)) {
				t.Errorf("seed %d: %d triples and %d doubles, want %d and %d", seed, sc.Stats().Triples, twice, len(named), repeated)
			}
		}
		if err := sc.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
