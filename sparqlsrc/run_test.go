package sparqlsrc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rsbridge/rsbridge/rdfres"
)

// digestAhead stands in for what the tracker makes of a description.
func digestAhead(context.Context) Ahead {
	return func(_ string, ts []rdfres.Triple) []byte {
		digest := rdfres.GraphDigest(ts)
		return digest[:]
	}
}

// TestForesight: of a store that gives the triples of a subject in a row all is made
// ahead that leads to no blank node and for which the workers had time, and never is a
// download held up by workers that have none; of one that gives them here and there
// hardly anything is tried.
func TestForesight(t *testing.T) {
	const n = 3000
	lines := bytes.Split(bytes.TrimSpace(benchData(n)), []byte("\n"))
	for _, c := range []struct {
		name     string
		shuffled bool
		stuck    bool
	}{{name: "in rows"}, {name: "here and there", shuffled: true}, {name: "stuck", stuck: true}} {
		t.Run(c.name, func(t *testing.T) {
			given := slices.Clone(lines)
			if c.shuffled { // by predicate, some of which a subject has twice
				slices.SortStableFunc(given, func(a, b []byte) int {
					_, pa, _ := bytes.Cut(a, []byte(" "))
					_, pb, _ := bytes.Cut(b, []byte(" "))
					return bytes.Compare(pa[:40], pb[:40])
				})
			}
			var tried atomic.Int64
			open := make(chan struct{})
			cfg := Config{TempDir: t.TempDir(), MemoryBytes: 1 << 20, MaxDescriptionTriples: 1 << 20, MaxDepth: 100, Progress: func(string, int64, int64) {},
				Ahead: func(context.Context) Ahead {
					return func(e string, ts []rdfres.Triple) []byte {
						tried.Add(1)
						if c.stuck {
							<-open
						}
						return digestAhead(t.Context())(e, ts)
					}
				}}
			g, err := newGrouper(t.Context(), &cfg, false)
			if err != nil {
				t.Fatal(err)
			}
			in := rdfres.NewLines(bytes.NewReader(bytes.Join(given, []byte("\n"))), rdfres.NTriples, rdfres.ReadOptions{Lax: true})
			for in.Next() {
				if err := g.add(in.S, in.P, in.O); err != nil {
					t.Fatal(err)
				}
			}
			close(open) // only now: all came while they were stuck
			if err := errors.Join(in.Err(), g.finish(t.Context())); err != nil {
				t.Fatal(err)
			}
			sc := &Scan{cfg: &cfg, group: g}
			total, ahead := 0, 0
			for d, err := range sc.Descriptions() {
				if err != nil {
					t.Fatal(err)
				}
				total++
				if digest := rdfres.GraphDigest(d.Triples); d.Ahead != nil {
					if ahead++; string(d.Ahead) != string(digest[:]) {
						t.Errorf("what was made ahead of %s is of something else", d.Entity)
					}
				}
			}
			if total != n || sc.Stats().Triples != int64(len(lines)) {
				t.Errorf("%d entities, %+v", total, sc.Stats())
			}
			switch {
			case c.shuffled && (ahead > 0 || tried.Load() > n):
				t.Errorf("%d were tried, %d of use", tried.Load(), ahead)
			case c.stuck && (ahead == 0 || ahead > n/2), !c.shuffled && !c.stuck && ahead == 0, ahead > n*4/5:
				t.Errorf("of %d something was made ahead", ahead)
			}
			if err := sc.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestRuns: whatever the order in which the triples of a subject come, in a row or
// not, few or very many, once or twice, its description is the same, and doubles
// are counted. What was made of it ahead was made of just that description.
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
		cfg := Config{TempDir: t.TempDir(), MemoryBytes: 256 << 10, MaxDescriptionTriples: 1 << 20, MaxDepth: 100, Progress: func(string, int64, int64) {}, Ahead: digestAhead}
		g, err := newGrouper(t.Context(), &cfg, false)
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
			got, ahead := map[string][]rdfres.Triple{}, 0
			for d, err := range sc.Descriptions() {
				if err != nil {
					t.Fatal(err)
				}
				got[d.Entity] = slices.Clone(d.Triples)
				if digest := rdfres.GraphDigest(d.Triples); d.Ahead != nil {
					if ahead++; string(d.Ahead) != string(digest[:]) {
						t.Errorf("seed %d: what was made ahead of %s is of something else", seed, d.Entity)
					}
				}
			}
			if (ahead > 5) != (seed%3 != 1) {
				t.Errorf("seed %d: of %d descriptions something was made ahead", seed, ahead)
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
