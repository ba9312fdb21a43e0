package sparqlsrc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/internal/sparql"
	"github.com/rsbridge/rsbridge/internal/sparql/sparqltest"
	"github.com/rsbridge/rsbridge/rdfres"
)

// randomGraph makes a graph with blank nodes in all shapes: trees, shared
// nodes, cycles, self-loops, equal components, orphans, and parts that no IRI
// leads to.
func randomGraph(rng *rand.Rand, n int) []rdfres.Triple {
	var ts []rdfres.Triple
	iri := func() rdfres.Term { return rdfres.NewIRI(fmt.Sprintf("http://example.org/e%d", rng.IntN(n/4+2))) }
	blank := func() rdfres.Term { return rdfres.NewBlank(fmt.Sprintf("n%d", rng.IntN(n/3+2))) }
	pred := func() rdfres.Term { return rdfres.NewIRI(fmt.Sprintf("http://example.org/p%d", rng.IntN(3))) }
	for range n {
		s, o := iri(), iri()
		switch rng.IntN(6) {
		case 0:
			o = blank()
		case 1, 2:
			s = blank()
			o = rdfres.NewLiteral(fmt.Sprint(rng.IntN(3)), "", "")
		case 3:
			if rng.IntN(3) == 0 {
				s, o = blank(), blank()
			}
		case 4:
			o = rdfres.NewLiteral(fmt.Sprintf("wert \"%d\"\n", rng.IntN(50)), "de", "")
		}
		if rng.IntN(10) == 0 && s.Kind() == rdfres.KindIRI {
			ts = append(ts, rdfres.Triple{S: s, P: rdfType, O: rdfres.NewIRI(fmt.Sprintf("http://example.org/C%d", rng.IntN(2)))})
		}
		ts = append(ts, rdfres.Triple{S: s, P: pred(), O: o})
	}
	return rdfres.SortUnique(ts)
}

// expected is what a scan must give, by rdfres in memory.
func expected(t *testing.T, ts []rdfres.Triple, symmetric bool) map[string][]rdfres.Triple {
	t.Helper()
	named, comps, err := rdfres.NameBlanks(slices.Clone(ts), rdfres.NameOptions{})
	if err != nil {
		t.Fatal(err)
	}
	g := rdfres.NewGraph(named)
	out := map[string][]rdfres.Triple{}
	reached := map[rdfres.Term]bool{}
	for _, x := range named {
		if x.S.Kind() != rdfres.KindIRI || out[x.S.IRI()] != nil {
			continue
		}
		for _, y := range g.CBD(x.S) {
			reached[y.S], reached[y.O] = true, true
		}
		if symmetric {
			out[x.S.IRI()] = g.SCBD(x.S)
		} else {
			out[x.S.IRI()] = g.CBD(x.S)
		}
	}
	for _, c := range comps {
		var rest []rdfres.Triple
		for _, x := range c.Triples {
			if x.S.Kind() == rdfres.KindBlank && !reached[x.S] {
				rest = append(rest, g.CBD(x.S)...)
			}
		}
		if len(rest) > 0 {
			out[rdfres.OrphanEntity(c.Names.Digest, c.Ordinal)] = rdfres.SortUnique(rest)
		}
	}
	return out
}

func serve(t testing.TB, st *sparqltest.Store) *sparql.Client {
	t.Helper()
	srv := httptest.NewServer(st)
	t.Cleanup(srv.Close)
	c, err := sparql.New(sparql.Endpoint{
		Name: "test", Query: srv.URL + "/query", Update: srv.URL + "/update", GraphStore: srv.URL + "/data",
		RetryPause: time.Millisecond, Timeout: 20 * time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func source(t testing.TB, st *sparqltest.Store, cfg Config) *Source {
	t.Helper()
	if cfg.TempDir == "" {
		cfg.TempDir = t.TempDir()
	}
	s, err := New(serve(t, st), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// known spares the probe of a store whose habits the test has set.
func known(s *Source, st *sparqltest.Store) *Source {
	caps := sparql.Capabilities{Readings: []sparql.Reading{sparql.ReadGraphStore, sparql.ReadConstruct, sparql.ReadSelectTSV, sparql.ReadSelectJSON}, UnionDefault: st.UnionDefault, ValuesLimit: 5000}
	if st.NoTSV {
		caps.Readings = []sparql.Reading{sparql.ReadSelectJSON}
	} else if st.Shuffle {
		slices.Reverse(caps.Readings[:3])
	}
	if st.Table {
		caps.Readings = append(caps.Readings, sparql.ReadSelectBinary)
	}
	s.SetCapabilities(caps)
	return s
}

// read reads a scan, checks its order, and closes it.
func read(t testing.TB, sc *Scan) (map[string][]rdfres.Triple, Stats) {
	t.Helper()
	defer sc.Close()
	out := map[string][]rdfres.Triple{}
	var last rdfres.Digest
	for d, err := range sc.Descriptions() {
		if err != nil {
			t.Fatal(err)
		}
		key := rdfres.EntityKey(d.Entity)
		if slices.Compare(last[:], key[:]) >= 0 {
			t.Fatalf("%s is out of order", d.Entity)
		}
		last = key
		if !slices.IsSortedFunc(d.Triples, rdfres.Triple.Compare) {
			t.Fatalf("%s: triples are out of order", d.Entity)
		}
		out[d.Entity] = d.Triples
	}
	return out, sc.Stats()
}

func scanAll(t testing.TB, s *Source) (map[string][]rdfres.Triple, Stats) {
	t.Helper()
	sc, err := s.Scan(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return read(t, sc)
}

func diff(t testing.TB, what string, got, want map[string][]rdfres.Triple) {
	t.Helper()
	for e, ts := range want {
		if !slices.Equal(got[e], ts) {
			t.Errorf("%s: %s:\n got %v\nwant %v", what, e, got[e], ts)
			return
		}
	}
	for e := range got {
		if want[e] == nil {
			t.Errorf("%s: %s is too much: %v", what, e, got[e])
			return
		}
	}
}

// A scan equals what rdfres computes in memory, whatever the store's order and
// labels, the way of reading, and the memory; and it covers every triple.
func TestScanEqualsMemory(t *testing.T) {
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 99))
		ts := randomGraph(rng, 20+rng.IntN(200))
		st := sparqltest.New(ts...)
		st.Relabel, st.Shuffle = seed%2 == 0, seed%3 != 0
		st.NoTSV, st.NoConstruct = seed%4 == 1, seed%5 == 1
		cfg := Config{Name: "s"}
		if seed%4 == 0 {
			cfg.MemoryBytes = 64 << 10
		}
		if seed%7 == 3 {
			cfg.Strategy = "batches"
			cfg.BatchSize = 7
		}
		for _, symmetric := range []bool{false, true} {
			if symmetric {
				cfg.Describe = "scbd"
			}
			s := known(source(t, st, cfg), st)
			got, stats := scanAll(t, s)
			diff(t, fmt.Sprintf("seed %d symmetric %v", seed, symmetric), got, expected(t, ts, symmetric))
			if stats.Covered != int64(len(ts)) || stats.Triples != int64(len(ts)) || stats.LeftOut != 0 {
				t.Errorf("seed %d symmetric %v: %d triples: %+v", seed, symmetric, len(ts), stats)
			}
			if t.Failed() {
				return
			}
			left, _ := filepath.Glob(filepath.Join(s.cfg.TempDir, "*"))
			if len(left) > 0 {
				t.Fatalf("left behind: %v", left)
			}
		}
	}
}

// Describe gives what a scan gives, for the entities and the owners of what
// they touch.
func TestDescribeEqualsScan(t *testing.T) {
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 5))
		ts := randomGraph(rng, 20+rng.IntN(120))
		st := sparqltest.New(ts...)
		st.Relabel, st.Shuffle = true, true
		cfg := Config{Name: "s", BatchSize: 1 + rng.IntN(9)}
		if seed%5 == 4 {
			cfg.Describe = "scbd"
		}
		if seed%6 == 5 {
			cfg.Select.Classes = []string{"http://example.org/C0"}
		}
		s := known(source(t, st, cfg), st)
		all, _ := scanAll(t, s)
		var ask []string
		for e := range all {
			if rng.IntN(4) == 0 {
				ask = append(ask, e)
			}
		}
		ask = append(ask, "http://example.org/nobody")
		got, err := s.Describe(context.Background(), ask)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		seen := map[string]bool{}
		for _, d := range got {
			seen[d.Entity] = true
			if !slices.Equal(d.Triples, all[d.Entity]) {
				t.Fatalf("seed %d: %s:\n got %v\nwant %v", seed, d.Entity, d.Triples, all[d.Entity])
			}
		}
		// Everybody who has one of the same blank nodes was described too.
		touched := map[rdfres.Term]bool{}
		for _, e := range ask {
			if !seen[e] {
				t.Fatalf("seed %d: %s was asked for and is not there", seed, e)
			}
			for _, x := range all[e] {
				if x.O.Kind() == rdfres.KindBlank {
					touched[x.O] = true
				}
			}
		}
		for e, ts := range all {
			if seen[e] || cfg.Describe == "scbd" {
				continue
			}
			for _, x := range ts {
				if touched[x.S] || touched[x.O] {
					t.Fatalf("seed %d: %s shares %v and was not described", seed, e, x)
				}
			}
		}
	}
}

// A mirror that holds our own skolem IRIs is scanned as what it mirrors.
func TestScanOfMirror(t *testing.T) {
	for seed := range uint64(10) {
		rng := rand.New(rand.NewPCG(seed, 6))
		ts := randomGraph(rng, 120)
		want := expected(t, ts, false)
		named, _, err := rdfres.NameBlanks(slices.Clone(ts), rdfres.NameOptions{})
		if err != nil {
			t.Fatal(err)
		}
		st := sparqltest.New()
		for _, x := range named {
			x.S, x.O = rdfres.Skolemize(x.S, "http://src.example"), rdfres.Skolemize(x.O, "http://src.example")
			st.Add("http://example.org/g", x)
		}
		st.Shuffle = true
		s := known(source(t, st, Config{Name: "m", Graphs: []string{"http://example.org/g"}}), st)
		got, _ := scanAll(t, s)
		diff(t, "mirror", got, want)
		var ask []string
		for e := range want {
			if len(ask) < 5 {
				ask = append(ask, e)
			}
		}
		ds, err := s.Describe(context.Background(), ask)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range ds {
			if !slices.Equal(d.Triples, want[d.Entity]) {
				t.Fatalf("describe %s:\n got %v\nwant %v", d.Entity, d.Triples, want[d.Entity])
			}
		}
	}
}

// Two mirrors of equal data share one graph of a store: their nodes have the
// same names under two authorities, and stay two.
func TestScanOfTwoMirrors(t *testing.T) {
	for seed := range uint64(10) {
		rng := rand.New(rand.NewPCG(seed, 16))
		ts := randomGraph(rng, 120)
		named, _, err := rdfres.NameBlanks(slices.Clone(ts), rdfres.NameOptions{})
		if err != nil {
			t.Fatal(err)
		}
		st := sparqltest.New()
		var both []rdfres.Triple // with one label a node, whatever its authority
		for i, authority := range []string{"http://one.example", "http://two.example:8080"} {
			local := func(t rdfres.Term) rdfres.Term {
				if t.Kind() == rdfres.KindBlank {
					return rdfres.NewBlank(fmt.Sprintf("n%dx%s", i, t.Label()))
				}
				return t
			}
			for _, x := range named {
				st.Add("", rdfres.Triple{S: rdfres.Skolemize(x.S, authority), P: x.P, O: rdfres.Skolemize(x.O, authority)})
				both = append(both, rdfres.Triple{S: local(x.S), P: x.P, O: local(x.O)})
			}
		}
		// Labels of the store that look like ours are its own.
		for _, x := range named {
			if x.S.Kind() == rdfres.KindBlank {
				for _, label := range []string{x.S.Label(), "u" + x.S.Label(), x.S.Label() + "a687474703a2f2f6f6e652e6578616d706c65"} {
					own := rdfres.Triple{S: rdfres.NewBlank(label), P: "<http://example.org/own>", O: rdfres.NewLiteral(label, "", "")}
					st.Add("", own)
					both = append(both, rdfres.Triple{S: rdfres.NewBlank("own" + label), P: own.P, O: own.O})
				}
				break
			}
		}
		want := expected(t, rdfres.SortUnique(both), false)
		for _, strategy := range []string{"", "batches"} {
			s := source(t, st, Config{Strategy: strategy})
			got, stats := scanAll(t, s)
			diff(t, "two mirrors "+strategy, got, want)
			if stats.Covered != stats.Triples || stats.Triples != int64(len(st.Graph(""))) {
				t.Errorf("%d triples, %+v", len(st.Graph("")), stats)
			}
			var ask []string
			for e := range want {
				ask = append(ask, e)
			}
			ds, err := s.Describe(context.Background(), ask)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range ds {
				if !slices.Equal(d.Triples, want[d.Entity]) {
					t.Fatalf("describe %s:\n got %v\nwant %v", d.Entity, d.Triples, want[d.Entity])
				}
			}
		}
	}
}

// A mirror with a graph for each entity is a source of everything, the graphs
// of components included; only the bookkeeping is left out, and counted.
func TestScanOfGraphPerEntity(t *testing.T) {
	ts := randomGraph(rand.New(rand.NewPCG(3, 17)), 150)
	want := expected(t, ts, false)
	note := rdfres.Triple{S: "<urn:rsbridge:mirror:x>", P: "<urn:rsbridge:terms#seq>", O: `"7"`}
	for _, union := range []bool{false, true} {
		st := sparqltest.New()
		orphans := 0
		for e, x := range want {
			if strings.HasPrefix(e, orphanPrefix) {
				orphans++
			}
			for _, x := range x {
				st.Add(e, rdfres.Triple{S: rdfres.Skolemize(x.S, "http://src.example"), P: x.P, O: rdfres.Skolemize(x.O, "http://src.example")})
			}
		}
		if orphans == 0 {
			t.Fatal("no component without an owner in the test data")
		}
		for _, g := range []string{"urn:rsbridge:state", "urn:rsbridge:state:abc", "urn:rsbridge:probe:X", "urn:rsbridge:simulate"} {
			st.Add(g, note)
		}
		data := rdfres.Triple{S: "<urn:rsbridge:x>", P: "<http://example.org/p>", O: `"a user's own"`}
		st.Add("urn:rsbridge:x", data)
		all := maps.Clone(want)
		all["urn:rsbridge:x"] = []rdfres.Triple{data}
		st.UnionDefault, st.Shuffle = union, true
		for _, strategy := range []string{"", "batches"} {
			got, stats := scanAll(t, source(t, st, Config{Graphs: []string{"*"}, Strategy: strategy}))
			what := fmt.Sprintf("union %v %s", union, strategy)
			diff(t, what, got, all)
			if stats.Own != 4 || stats.Covered != stats.Triples || stats.Triples != int64(len(ts))+1 || stats.Orphans != int64(orphans) {
				t.Errorf("%s: %+v, want %d triples, %d orphans, 4 of the bookkeeping left out", what, stats, len(ts)+1, orphans)
			}
		}
	}
}

func chain(n int) []rdfres.Triple {
	p := rdfres.NewIRI("http://example.org/next")
	ts := []rdfres.Triple{{S: rdfres.NewIRI("http://example.org/head"), P: p, O: rdfres.NewBlank("c0")}}
	for i := range n {
		ts = append(ts, rdfres.Triple{S: rdfres.NewBlank(fmt.Sprintf("c%d", i)), P: p, O: rdfres.NewBlank(fmt.Sprintf("c%d", i+1))})
	}
	return append(ts, rdfres.Triple{S: rdfres.NewBlank(fmt.Sprintf("c%d", n)), P: p, O: rdfres.NewLiteral("end", "", "")})
}

// What is put in order on disk while blank nodes are grouped comes back with theirs,
// also where a subject's triples do not come in a row.
func TestGroupedOnDisk(t *testing.T) {
	var ts []rdfres.Triple
	p := rdfres.NewIRI("http://example.org/p")
	for i := range 1500 {
		e, b := rdfres.NewIRI(fmt.Sprintf("http://example.org/e%d", i)), rdfres.NewBlank(fmt.Sprintf("b%d", i))
		for j := range 4 {
			ts = append(ts, rdfres.Triple{S: e, P: p, O: rdfres.NewLiteral(fmt.Sprintf("literal %d of entity %d", j, i), "", "")})
		}
		ts = append(ts, rdfres.Triple{S: e, P: p, O: b}, rdfres.Triple{S: b, P: p, O: rdfres.NewLiteral(fmt.Sprint(i/2), "", "")})
	}
	want := expected(t, ts, false)
	for _, shuffle := range []bool{false, true} {
		st := sparqltest.New(ts...)
		st.Shuffle = shuffle
		got, stats := scanAll(t, known(source(t, st, Config{MemoryBytes: 64 << 10}), st))
		diff(t, fmt.Sprint("shuffled ", shuffle), got, want)
		if stats.Covered != int64(len(ts)) {
			t.Errorf("%+v, want %d triples", stats, len(ts))
		}
	}
}

// Deep chains are described whole, and beyond the bounds fail by name.
func TestDeepAndBounded(t *testing.T) {
	ts := chain(12_000)
	other := rdfres.Triple{S: "<http://example.org/other>", P: "<http://example.org/p>", O: `"x"`}
	st := sparqltest.New(append(ts, other)...)
	st.Relabel = true
	got, _ := scanAll(t, known(source(t, st, Config{MemoryBytes: 64 << 10}), st))
	if len(got["http://example.org/head"]) != len(ts) {
		t.Errorf("%d triples of %d", len(got["http://example.org/head"]), len(ts))
	}
	s := known(source(t, st, Config{}), st)
	ds, err := s.Describe(context.Background(), []string{"http://example.org/head"})
	if err != nil || len(ds) != 1 || !slices.Equal(ds[0].Triples, got["http://example.org/head"]) {
		t.Errorf("describe: %d descriptions, %v", len(ds), err)
	}
	for _, cfg := range []Config{{MaxDepth: 100}, {MaxDescriptionTriples: 100}} {
		sc, err := known(source(t, st, cfg), st).Scan(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		part, _ := read(t, sc)
		if len(part) != 1 || part["http://example.org/other"] == nil {
			t.Errorf("%+v: got %d entities, want the one that is not too deep", cfg, len(part))
		}
		if why := sc.Failed()["http://example.org/head"]; why == nil || !sc.IsFailed("http://example.org/head") {
			t.Errorf("%+v: the failure is not told", cfg)
		} else if !strings.Contains(why.Error(), "max_") {
			t.Errorf("%+v: %v", cfg, why)
		}
	}
}

func TestSelections(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	ts := randomGraph(rng, 300)
	all := expected(t, ts, false)
	class := func(e string) bool {
		return slices.Contains(all[e], rdfres.Triple{S: rdfres.NewIRI(e), P: rdfType, O: "<http://example.org/C1>"})
	}
	prefix := func(e string) bool { return strings.HasPrefix(e, "http://example.org/e1") }
	named := func(e string) bool {
		return slices.ContainsFunc(all[e], func(x rdfres.Triple) bool {
			return x.S == rdfres.NewIRI(e) && x.P == "<http://example.org/p1>"
		})
	}
	query := "SELECT ?entity WHERE { ?entity <http://example.org/p1> ?o }"
	for _, c := range []struct {
		name string
		sel  Select
		in   func(string) bool
	}{
		{"classes", Select{Classes: []string{"http://example.org/C1"}}, class},
		{"prefixes", Select{Prefixes: []string{"http://example.org/e1", "http://nowhere/"}}, prefix},
		{"query", Select{Query: query}, named},
		{"all three", Select{Classes: []string{"http://example.org/C1"}, Prefixes: []string{"http://example.org/e1"}, Query: query},
			func(e string) bool { return class(e) && prefix(e) && named(e) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := map[string][]rdfres.Triple{}
			covered := map[rdfres.Triple]bool{}
			for e, d := range all {
				if !strings.HasPrefix(e, orphanPrefix) && c.in(e) {
					want[e] = d
					for _, x := range d {
						covered[x] = true
					}
				}
			}
			if len(want) == 0 {
				t.Fatal("the test selects nothing")
			}
			st := sparqltest.New(ts...)
			got, stats := scanAll(t, source(t, st, Config{Select: c.sel}))
			diff(t, c.name, got, want)
			if stats.Covered != int64(len(covered)) || stats.LeftOut != int64(len(ts)-len(covered)) {
				t.Errorf("%d covered of %d: %+v", len(covered), len(ts), stats)
			}
			// Who names the entities has the same of them, by each way of describing.
			for describe, every := range map[string]map[string][]rdfres.Triple{"cbd": all, "scbd": expected(t, ts, true)} {
				ds, err := source(t, st, Config{Select: c.sel, Describe: describe}).Describe(t.Context(), slices.Collect(maps.Keys(every)))
				if err != nil {
					t.Fatal(err)
				}
				for _, d := range ds {
					var want []rdfres.Triple
					if !strings.HasPrefix(d.Entity, orphanPrefix) && c.in(d.Entity) {
						want = every[d.Entity]
					}
					if !slices.Equal(d.Triples, want) {
						t.Errorf("%s of %s has %d triples when it is named, want %d", describe, d.Entity, len(d.Triples), len(want))
					}
				}
			}
			// The user's CONSTRUCT is of the same entities.
			built, _ := scanAll(t, source(t, st, Config{Select: c.sel, Describe: "CONSTRUCT { ?entity ?p ?o } WHERE { ?entity ?p ?o }"}))
			if have, want := slices.Sorted(maps.Keys(built)), slices.Sorted(maps.Keys(want)); !slices.Equal(have, want) {
				t.Errorf("a CONSTRUCT describes %d entities, want %d:\n%s\n%s", len(have), len(want), have, want)
			}
		})
	}
}

// What a query selects has a symmetric description though nothing but others say
// anything of it, in a scan and when it is named.
func TestSelectedObject(t *testing.T) {
	ts := []rdfres.Triple{{S: "<http://example.org/a>", P: "<http://example.org/p1>", O: "<http://example.org/b>"}}
	s := source(t, sparqltest.New(ts...), Config{Describe: "scbd", Select: Select{Query: "SELECT ?entity WHERE { ?x <http://example.org/p1> ?entity }"}})
	got, _ := scanAll(t, s)
	diff(t, "scan", got, map[string][]rdfres.Triple{"http://example.org/b": ts})
	ds, err := s.Describe(t.Context(), []string{"http://example.org/b"})
	if err != nil || len(ds) != 1 || !slices.Equal(ds[0].Triples, ts) {
		t.Errorf("described: %v, %v", ds, err)
	}
}

func TestGraphs(t *testing.T) {
	mk := func(i int) rdfres.Triple {
		return rdfres.Triple{S: rdfres.NewIRI(fmt.Sprintf("http://example.org/e%d", i)), P: "<http://example.org/p>", O: rdfres.NewBlank("shared")}
	}
	shared := rdfres.Triple{S: "_:shared", P: "<http://example.org/q>", O: `"v"`}
	for _, union := range []bool{false, true} {
		st := sparqltest.New(mk(0), shared)
		st.Add("http://example.org/g1", mk(1), shared)
		st.Add("http://example.org/g2", mk(2), mk(1))
		st.Add("urn:rsbridge:state", rdfres.Triple{S: "<http://example.org/never>", P: "<http://example.org/p>", O: `"1"`})
		st.Relabel, st.UnionDefault = true, union
		for _, c := range []struct {
			graphs []string
			want   []rdfres.Triple
		}{
			{nil, map[bool][]rdfres.Triple{false: {mk(0), shared}, true: {mk(0), mk(1), mk(2), shared}}[union]},
			{[]string{"http://example.org/g1"}, []rdfres.Triple{mk(1), shared}},
			{[]string{"http://example.org/g2", "http://example.org/g1"}, []rdfres.Triple{mk(1), mk(2), shared}},
			{[]string{"*"}, []rdfres.Triple{mk(0), mk(1), mk(2), shared}},
		} {
			for _, strategy := range []string{"", "batches"} {
				s := source(t, st, Config{Graphs: c.graphs, Strategy: strategy})
				got, stats := scanAll(t, s)
				what := fmt.Sprintf("union %v graphs %v %s", union, c.graphs, strategy)
				diff(t, what, got, expected(t, c.want, false))
				if stats.Triples != int64(len(c.want)) || stats.Covered != stats.Triples {
					t.Errorf("%s: %+v", what, stats)
				}
				ds, err := s.Describe(context.Background(), []string{"http://example.org/e1", "http://example.org/never"})
				if err != nil {
					t.Fatalf("%s: %v", what, err)
				}
				for _, d := range ds {
					if !slices.Equal(d.Triples, got[d.Entity]) {
						t.Errorf("%s: describe %s: %v, want %v", what, d.Entity, d.Triples, got[d.Entity])
					}
				}
			}
		}
	}
}

// A store that cuts long answers with 200 OK is read in parts, or refused.
func TestTruncation(t *testing.T) {
	var ts []rdfres.Triple
	for i := range 700 {
		ts = append(ts, rdfres.Triple{S: rdfres.NewIRI(fmt.Sprintf("http://example.org/e%d", i/3)), P: "<http://example.org/p>", O: rdfres.NewLiteral(fmt.Sprint(i), "", "")})
	}
	for i := range 600 { // more than any of the limits: by the hash of its triples
		ts = append(ts, rdfres.Triple{S: "<http://example.org/large>", P: rdfres.NewIRI(fmt.Sprintf("http://example.org/p%d", i%3)), O: rdfres.NewLiteral(fmt.Sprint(i), "", "")})
	}
	blank := []rdfres.Triple{{S: "<http://example.org/e1>", P: "<http://example.org/b>", O: "_:x"}, {S: "_:x", P: "<http://example.org/p>", O: `"1"`}}
	ts = append(ts, blank...)
	limits := []int{137, 100, 250} // the first is nobody's limit
	if testing.Short() {
		limits = limits[:1]
	}
	for _, limit := range limits {
		for _, tell := range []bool{true, false} {
			st := sparqltest.New(ts...)
			st.RowLimit, st.TellLimit, st.TooMany, st.Relabel = limit, tell, 50, true
			s := source(t, st, Config{})
			got, stats := scanAll(t, s)
			diff(t, fmt.Sprintf("limit %d", limit), got, expected(t, ts, false))
			if stats.Way != "batches" {
				t.Errorf("limit %d: read by %s", limit, stats.Way)
			}
			if _, err := source(t, st, Config{Strategy: "whole"}).Scan(context.Background()); !errors.Is(err, ErrShort) {
				t.Errorf("limit %d, whole only: %v", limit, err)
			}
		}
	}
	// More blank nodes than one answer holds, but each led to by an IRI: entity
	// by entity. Equal ones and shared ones keep their names.
	var deep []rdfres.Triple
	for i := range 60 {
		e, a, b := rdfres.NewIRI(fmt.Sprintf("http://example.org/e%d", i)), rdfres.NewBlank(fmt.Sprintf("a%d", i)), rdfres.NewBlank(fmt.Sprintf("b%d", i))
		deep = append(deep, rdfres.Triple{S: e, P: "<http://example.org/p>", O: a}, rdfres.Triple{S: a, P: "<http://example.org/p>", O: b},
			rdfres.Triple{S: e, P: "<http://example.org/q>", O: `"plain"`},
			rdfres.Triple{S: b, P: "<http://example.org/v>", O: `"same"`}, rdfres.Triple{S: rdfres.NewIRI(fmt.Sprintf("http://example.org/e%d", (i+1)%60)), P: "<http://example.org/r>", O: b})
	}
	for range 2 {
		st := sparqltest.New(deep...)
		st.RowLimit, st.Relabel, st.Shuffle = 130, true, true
		got, stats := scanAll(t, known(source(t, st, Config{}), st))
		diff(t, "deep", got, expected(t, deep, false))
		if stats.Covered != int64(len(deep)) || stats.Triples != stats.Covered {
			t.Errorf("deep: %d triples, %+v", len(deep), stats)
		}
		deep = append(deep, rdfres.Triple{S: "<http://example.org/e0>", P: "<http://example.org/p>", O: "_:twin"}, rdfres.Triple{S: "<http://example.org/e0>", P: "<http://example.org/p>", O: "_:twin2"})
	}
	// What cannot be read in parts is an error.
	st := sparqltest.New()
	for i := range 200 {
		st.Add("", rdfres.Triple{S: rdfres.NewBlank(fmt.Sprintf("b%d", i)), P: "<http://example.org/p>", O: rdfres.NewLiteral(fmt.Sprint(i), "", "")})
	}
	st.RowLimit, st.Relabel = 100, true
	if sc, err := source(t, st, Config{}).Scan(context.Background()); !errors.Is(err, ErrShort) {
		t.Errorf("200 orphans through a limit of 100: %v, %v", sc, err)
	}
}

// A store, or a proxy, of whose long answers nothing comes is read in parts without
// asking for everything again and again.
func TestLongAnswersAreEmpty(t *testing.T) {
	ts := divided(300)
	want := expected(t, ts, false)
	for _, longest := range []int{8_000, 30_000} {
		for _, strategy := range []string{"", "batches", "select-json", "graph-store"} {
			st := sparqltest.New(ts...)
			st.Longest = longest
			s := known(source(t, st, Config{Strategy: strategy}), st)
			sc, err := s.Scan(t.Context())
			asked := map[string]int{}
			for _, q := range st.Queries() {
				if !strings.Contains(q, "COUNT") && !strings.Contains(q, "LIMIT") {
					asked[q]++
				}
			}
			for q, n := range asked {
				if n > 4 {
					t.Errorf("%q, %d: asked %d times: %s", strategy, longest, n, q)
				}
			}
			if ofOneGraph(sparql.Reading(strategy)) || sparql.Reading(strategy).Selects() {
				if err == nil || !strings.Contains(err.Error(), "without it what is cut is read in parts") {
					t.Errorf("%s, %d: %v", strategy, longest, err)
				}
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			got, stats := read(t, sc)
			diff(t, fmt.Sprint(strategy, longest), got, want)
			if stats.Way != "batches" {
				t.Errorf("%q, %d: read by %s", strategy, longest, stats.Way)
			}
		}
	}
}

// Lists and trees that are deeper than what is asked for at first are followed, where a
// store cuts answers and all blank nodes do not come in one: by a scan, and by hints.
func TestDeepThroughRowLimit(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 8))
	for round := range 6 {
		var ts []rdfres.Triple
		n := 0
		blank := func() rdfres.Term { n++; return rdfres.NewBlank(fmt.Sprintf("b%d", n)) }
		var all []string
		for i := range 20 {
			e := rdfres.NewIRI(fmt.Sprintf("http://example.org/e%d", i))
			all = append(all, e.IRI())
			node := blank()
			ts = append(ts, rdfres.Triple{S: e, P: "<http://example.org/list>", O: node})
			for k := range 3 + rng.IntN(9) {
				next, p := blank(), rdfres.NewIRI(fmt.Sprintf("http://example.org/p%d", rng.IntN(2)))
				ts = append(ts, rdfres.Triple{S: node, P: "<http://example.org/v>", O: rdfres.NewLiteral(fmt.Sprint(k%3), "", "")}, rdfres.Triple{S: node, P: p, O: next})
				switch round { // what hangs on the list beside
				case 1: // another entity leads to its middle
					if k == 5 {
						ts = append(ts, rdfres.Triple{S: rdfres.NewIRI(fmt.Sprintf("http://example.org/f%d", i)), P: p, O: node})
					}
				case 2: // a cycle
					if k == 4 {
						ts = append(ts, rdfres.Triple{S: next, P: p, O: node})
					}
				case 3: // branches
					side := blank()
					ts = append(ts, rdfres.Triple{S: node, P: p, O: side}, rdfres.Triple{S: side, P: p, O: rdfres.NewLiteral(fmt.Sprint(i), "", "")})
				case 4: // something that nobody leads to leads to it
					if k == 6 {
						ts = append(ts, rdfres.Triple{S: blank(), P: p, O: node})
					}
				}
				node = next
			}
			ts = append(ts, rdfres.Triple{S: node, P: "<http://example.org/v>", O: `"end"`})
		}
		ts = rdfres.SortUnique(ts)
		st := sparqltest.New(ts...)
		st.RowLimit, st.Relabel, st.Shuffle = 150, true, true
		s := known(source(t, st, Config{}), st)
		got, stats := scanAll(t, s)
		want := expected(t, ts, false)
		diff(t, fmt.Sprintf("round %d", round), got, want)
		if stats.Covered != int64(len(ts)) {
			t.Errorf("round %d: of %d triples %+v", round, len(ts), stats)
		}
		some, err := s.Describe(context.Background(), all[:3])
		if err != nil {
			t.Errorf("round %d: describe: %v", round, err)
		}
		for _, d := range some {
			if !slices.Equal(d.Triples, want[d.Entity]) {
				t.Errorf("round %d: describe %s: %v, want %v", round, d.Entity, d.Triples, want[d.Entity])
			}
		}
	}
	// What is farther than can be asked for is an error that says so.
	st := sparqltest.New(slices.Concat(chain(200), divided(50))...)
	st.RowLimit, st.Relabel = 100, true
	if _, err := known(source(t, st, Config{}), st).Scan(context.Background()); !errors.Is(err, ErrShort) {
		t.Errorf("a chain of 200 through a limit of 100: %v", err)
	}
}

// Faults end in an error that leaves nothing behind, or in a whole scan.
func TestFaults(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 8))
	ts := randomGraph(rng, 400)
	want := expected(t, ts, false)
	isWhole := func(body string) bool {
		return strings.Contains(body, "CONSTRUCT") || strings.HasPrefix(body, "SELECT ?s ?p ?o WHERE { ?s ?p ?o")
	}
	for name, fault := range map[string]func(n int) *sparqltest.Fault{
		"cut":        func(int) *sparqltest.Fault { return &sparqltest.Fault{CutAfter: 3000} },
		"clean cut":  func(int) *sparqltest.Fault { return &sparqltest.Fault{CutAfter: 3000, CutClean: true} },
		"500":        func(int) *sparqltest.Fault { return &sparqltest.Fault{Status: 500, Body: "out of memory"} },
		"503":        func(int) *sparqltest.Fault { return &sparqltest.Fault{Status: 503, RetryAfter: "0"} },
		"wrong type": func(int) *sparqltest.Fault { return &sparqltest.Fault{Type: "text/html", Body: "<html>sorry</html>"} },
	} {
		for _, always := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/%v", name, always), func(t *testing.T) {
				st := sparqltest.New(ts...)
				st.Relabel, st.Shuffle = true, true
				dir := t.TempDir()
				s := source(t, st, Config{TempDir: dir, Strategy: "whole"})
				if _, err := s.Capabilities(context.Background()); err != nil {
					t.Fatal(err)
				}
				n := 0
				st.Fault = func(op, body string) *sparqltest.Fault {
					if op == "data" || isWhole(body) {
						if n++; n <= 1 || always {
							return fault(n)
						}
					}
					return nil
				}
				sc, err := s.Scan(context.Background())
				switch {
				case always && err == nil:
					t.Error("a scan succeeded although every answer is faulty")
					sc.Close()
				case !always && err != nil:
					t.Errorf("one fault, and the scan gave up: %v", err)
				case !always:
					got, _ := read(t, sc)
					diff(t, name, got, want)
				default:
					t.Log(err)
				}
				if left, _ := os.ReadDir(dir); len(left) > 0 {
					t.Errorf("left behind: %v", left)
				}
			})
		}
	}
}

// A graph of the bridge's own that appears in a union after the probe is not
// published.
func TestOwnGraphAppears(t *testing.T) {
	ts := randomGraph(rand.New(rand.NewPCG(1, 4)), 60)
	st := sparqltest.New(ts...)
	st.UnionDefault = true
	s := source(t, st, Config{})
	want := expected(t, ts, false)
	got, _ := scanAll(t, s)
	diff(t, "before", got, want)
	st.Add("urn:rsbridge:state", rdfres.Triple{S: "<http://example.org/never>", P: "<http://example.org/p>", O: `"1"`})
	got, _ = scanAll(t, s)
	diff(t, "after", got, want)
}

// A named graph that is a copy of the default graph, as a mirror in the same store is,
// makes no union: what has left the default graph is gone although the copy has it, and
// what another named graph has alone is read.
func TestCopyOfTheDefaultGraph(t *testing.T) {
	triple := func(n int) rdfres.Triple {
		return rdfres.Triple{S: rdfres.NewIRI(fmt.Sprint("http://example.org/", n)), P: "<http://example.org/p>", O: `"1"`}
	}
	st := sparqltest.New()
	for n := range 300 {
		if n != 250 {
			st.Add("", triple(n))
		}
		st.Add("http://example.org/copy", triple(n))
	}
	state := rdfres.Triple{S: "<urn:rsbridge:mirror:00>", P: "<urn:rsbridge:terms#phase>", O: `"current"`}
	for _, c := range []struct {
		graphs []string
		own    bool
		want   int
	}{{nil, false, 299}, {nil, true, 299}, {[]string{"*"}, true, 301}, {[]string{"*"}, false, 301}} {
		if c.own {
			st.Add("urn:rsbridge:state", state)
		} else {
			st.Remove("urn:rsbridge:state", state)
		}
		if len(c.graphs) > 0 {
			st.Add("http://example.org/other", triple(300))
		}
		if got, _ := scanAll(t, source(t, st, Config{Graphs: c.graphs})); len(got) != c.want {
			t.Errorf("graphs %v, own %v: %d entities, want %d", c.graphs, c.own, len(got), c.want)
		}
	}
}

// A store that changes while it is read is accepted within its counts.
func TestLiveStore(t *testing.T) {
	ts := randomGraph(rand.New(rand.NewPCG(1, 8)), 300)
	st := sparqltest.New(ts...)
	s := source(t, st, Config{})
	if _, err := s.Capabilities(context.Background()); err != nil {
		t.Fatal(err)
	}
	add := func(n int) {
		st.Add("", rdfres.Triple{S: "<http://example.org/new>", P: "<http://example.org/p>", O: rdfres.NewLiteral(fmt.Sprint(n), "", "")})
	}
	reads := 0
	countFirst(st, func() { add(1) }, func() { // after the first count, and before the second
		if reads++; reads == 1 {
			add(2)
		}
	})
	got, _ := scanAll(t, s)
	want := expected(t, ts, false)
	want["http://example.org/new"] = []rdfres.Triple{{S: "<http://example.org/new>", P: "<http://example.org/p>", O: `"1"`}}
	diff(t, "live", got, want)
	if reads != 1 {
		t.Errorf("read %d times", reads)
	}
}

// countFirst makes the store answer the first count before everything is read, and
// calls functions after that count and after each reading of everything.
func countFirst(st *sparqltest.Store, counted, read func()) {
	first := make(chan struct{})
	once := sync.OnceFunc(func() {
		counted()
		close(first)
	})
	reads := func(op, body string) bool {
		return op == "data" || strings.HasPrefix(body, "CONSTRUCT") || strings.HasPrefix(body, "SELECT ?s ?p ?o")
	}
	st.Fault = func(op, body string) *sparqltest.Fault {
		if reads(op, body) {
			<-first
		}
		return nil
	}
	st.After = func(op, body string) {
		switch {
		case strings.HasPrefix(body, "SELECT (COUNT(*)"):
			once()
		case reads(op, body):
			read()
		}
	}
}

// TestCounted: a second count is asked for where it can make a difference, and
// only there.
func TestCounted(t *testing.T) {
	for _, c := range []struct {
		name    string
		changes bool
		want    int
	}{{"quiet", false, 1}, {"written to while it is counted", true, 2}} {
		st := sparqltest.New(randomGraph(rand.New(rand.NewPCG(3, 8)), 300)...)
		s := source(t, st, Config{})
		if _, err := s.Capabilities(t.Context()); err != nil {
			t.Fatal(err)
		}
		countFirst(st, func() {
			if c.changes {
				st.Add("", rdfres.Triple{S: "<http://example.org/new>", P: "<http://example.org/p>", O: `"1"`})
			}
		}, func() {})
		st.Queries()
		scanAll(t, s)
		counts := 0
		for _, q := range st.Queries() {
			if strings.HasPrefix(q, "SELECT (COUNT(*)") {
				counts++
			}
		}
		if counts != c.want {
			t.Errorf("%s: %d counts, want %d", c.name, counts, c.want)
		}
	}
}

// A store that answers one question at a time, and 429 to others, is read: what was
// refused, the count or the reading, is asked for again when the other has ended.
func TestOneAtATime(t *testing.T) {
	ts := randomGraph(rand.New(rand.NewPCG(3, 8)), 300)
	for _, refused := range []string{"SELECT (COUNT(*)", "SELECT ?s ?p ?o"} {
		st := sparqltest.New(ts...)
		s := source(t, st, Config{Strategy: "select-json"})
		if _, err := s.Capabilities(t.Context()); err != nil {
			t.Fatal(err)
		}
		over := make(chan struct{}) // what is not refused ends when the other was
		times := 0
		st.Fault = func(op, body string) *sparqltest.Fault {
			switch {
			case !strings.HasPrefix(body, "SELECT (COUNT(*)") && !strings.HasPrefix(body, "SELECT ?s ?p ?o"):
			case strings.HasPrefix(body, refused):
				if times++; times == 1 {
					defer close(over)
					return &sparqltest.Fault{Status: http.StatusBadRequest, Body: "one at a time"}
				}
			default:
				<-over
			}
			return nil
		}
		got, _ := scanAll(t, s)
		diff(t, refused, got, expected(t, ts, false))
		if times != 2 {
			t.Errorf("%s was asked %d times, want twice", refused, times)
		}
	}
}

// A store that is written to all the time, also while it is probed, can be read.
func TestBusyStore(t *testing.T) {
	for _, grows := range []bool{true, false} {
		st := sparqltest.New(randomGraph(rand.New(rand.NewPCG(2, 8)), 300)...)
		var mu sync.Mutex
		n := 0
		st.After = func(op, body string) {
			mu.Lock()
			defer mu.Unlock()
			n++
			busy := rdfres.Triple{S: rdfres.NewIRI(fmt.Sprintf("http://example.org/busy%d", n)), P: "<http://example.org/p>", O: `"1"`}
			if grows || n%3 != 0 {
				st.Add("", busy)
				return
			}
			for i := 1; i < 3; i++ { // the counts go up and down
				busy.S = rdfres.NewIRI(fmt.Sprintf("http://example.org/busy%d", n-i))
				st.Remove("", busy)
			}
		}
		s := source(t, st, Config{})
		caps, err := s.Capabilities(context.Background())
		if err != nil || len(caps.Readings) != 4 || caps.RowLimit != 0 {
			t.Errorf("grows %v: %+v, %v", grows, caps, err)
		}
		if grows {
			scanAll(t, s)
		}
	}
}

func TestCancel(t *testing.T) {
	st := sparqltest.New(randomGraph(rand.New(rand.NewPCG(1, 9)), 300)...)
	dir := t.TempDir()
	s := source(t, st, Config{TempDir: dir})
	if _, err := s.Capabilities(context.Background()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	st.Fault = func(op, body string) *sparqltest.Fault {
		if op == "data" || strings.Contains(body, "CONSTRUCT") || strings.HasPrefix(body, "SELECT ?s") {
			cancel()
			return &sparqltest.Fault{Hang: true}
		}
		return nil
	}
	if _, err := s.Scan(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled scan ends with %v", err)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	s = known(source(t, st, Config{Graphs: []string{"http://g.example/"}}), st)
	if _, err := s.Scan(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("one that was cancelled before it began: %v", err)
	}
}

// A store that holds IRIs which no query can name is scanned all the same: the
// entities that need them fail, with the IRI and the character, and the others
// do not.
func TestBadIRIs(t *testing.T) {
	const p = "<http://example.org/p>"
	iri := func(s string) rdfres.Term { return rdfres.NewIRI("http://example.org/" + s) }
	ts := []rdfres.Triple{
		{S: iri("good"), P: p, O: rdfres.NewLiteral("back\\slash \" {", "", "")},
		{S: iri("good"), P: p, O: "_:fine"}, {S: "_:fine", P: p, O: iri("x")},
		{S: iri("bad subject"), P: p, O: `"1"`},
		{S: iri("object"), P: p, O: iri("a{b")},
		{S: iri("predicate"), P: iri("a\\b"), O: `"1"`},
		{S: iri("datatype"), P: p, O: rdfres.NewLiteral("1", "", "http://example.org/a\"b")},
		{S: iri("nested"), P: p, O: "_:n"}, {S: "_:n", P: p, O: "_:m"}, {S: "_:m", P: p, O: iri("a<b")},
		{S: "_:orphan", P: p, O: iri("a`b")},
	}
	want := map[string]string{
		"http://example.org/bad subject": "a space (U+0020)", "http://example.org/object": "'{' (U+007B)", "http://example.org/predicate": "(U+005C)",
		"http://example.org/datatype": "(U+0022)", "http://example.org/nested": "'<' (U+003C)", "urn:rsbridge:component:unnamed": "'`' (U+0060)",
	}
	good := expected(t, ts[:3], false)
	st := sparqltest.New(ts...)
	for _, strategy := range []string{"", "batches"} {
		s := source(t, st, Config{Strategy: strategy})
		sc, err := s.Scan(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		got, stats := read(t, sc)
		diff(t, "bad IRIs "+strategy, got, good)
		if stats.Triples != int64(len(ts)) || stats.Covered != 3 || len(sc.Failed()) != len(want) {
			t.Errorf("%s: %+v, failed: %v", strategy, stats, sc.Failed())
		}
		for e, why := range want {
			found := false
			for f, err := range sc.Failed() {
				found = found || strings.HasPrefix(f, e) && sc.IsFailed(f) && strings.Contains(err.Error(), why)
			}
			if !found {
				t.Errorf("%s: %s did not fail with %s: %v", strategy, e, why, sc.Failed())
			}
		}
		sc.Close()
		if _, err := s.Describe(context.Background(), []string{"http://example.org/good"}); err != nil {
			t.Error(err)
		}
		if _, err := s.Describe(context.Background(), []string{"http://example.org/object"}); !errors.As(err, new(*rdfres.IRIError)) {
			t.Errorf("describe: %v", err)
		}
	}
	s := source(t, st, Config{Describe: "CONSTRUCT { ?entity " + p + " ?o } WHERE { ?entity " + p + " ?o }"})
	sc, err := s.Scan(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer sc.Close()
	got, _ := read(t, sc)
	if len(got) != 2 || !sc.IsFailed("http://example.org/bad subject") || !sc.IsFailed("http://example.org/object") {
		t.Errorf("by CONSTRUCT: %v, failed %v", got, sc.Failed())
	}
}

// An answer that repeats one triple and drops another has the right count, and
// is refused all the same. Doubles that the store itself has are none.
func TestDoubles(t *testing.T) {
	var ts []rdfres.Triple
	for i := range 60 {
		e, b := rdfres.NewIRI(fmt.Sprintf("http://example.org/e%d", i)), rdfres.NewBlank(fmt.Sprintf("b%d", i))
		ts = append(ts, rdfres.Triple{S: e, P: "<http://example.org/p>", O: rdfres.NewLiteral(fmt.Sprint("v", i), "", "")},
			rdfres.Triple{S: e, P: "<http://example.org/b>", O: b}, rdfres.Triple{S: b, P: "<http://example.org/p>", O: rdfres.NewLiteral(fmt.Sprint("c", i), "", "")})
	}
	try := func(st *sparqltest.Store, cfg Config, at int) error {
		s := source(t, st, cfg)
		if _, err := s.Capabilities(context.Background()); err != nil {
			t.Fatal(err)
		}
		st.Rewrite = func(op, body string, content []byte) []byte {
			lines := bytes.SplitAfter(content, []byte("\n"))
			if at == 0 || len(lines) <= 50 || strings.Contains(body, "DISTINCT") {
				return content
			}
			lines[at] = lines[at-1]
			return bytes.Join(lines, nil)
		}
		defer func() { st.Rewrite = nil }()
		sc, err := s.Scan(context.Background())
		if err != nil {
			return err
		}
		defer sc.Close()
		for _, err := range sc.Descriptions() {
			if err != nil {
				return err
			}
		}
		return nil
	}
	last := 14
	if testing.Short() {
		last = 11 // each of the three kinds once
	}
	for at := 8; at < last; at++ { // with blank nodes and without
		for _, way := range []string{"data", "construct", "select", "batches", "two graphs"} {
			st := sparqltest.New(ts...)
			cfg := Config{}
			switch way {
			case "construct", "select":
				st.NoConstruct = way == "select"
				st.Fault = func(op, body string) *sparqltest.Fault {
					if op == "data" {
						return &sparqltest.Fault{Status: 405, Body: "no"}
					}
					return nil
				}
			case "batches":
				cfg.Strategy = "batches"
			case "two graphs":
				st.Add("http://example.org/g", ts...)
				st.Add("http://example.org/h", ts[120:]...)
				cfg.Graphs = []string{"http://example.org/g", "http://example.org/h"}
			}
			if err := try(st, cfg, at); !errors.Is(err, ErrShort) {
				t.Errorf("%s, line %d doubled instead of the next: %v", way, at, err)
			}
			if err := try(st, cfg, 0); err != nil {
				t.Errorf("%s without a lie: %v", way, err)
			}
		}
	}
	st := sparqltest.New()
	st.Add("http://example.org/g", ts...)
	st.Add("http://example.org/h", ts...)
	grown := 0
	st.Fault = func(_, body string) *sparqltest.Fault {
		if strings.Contains(body, "COUNT") && strings.Contains(body, "DISTINCT ?s ?p ?o") {
			st.Add("http://example.org/g", rdfres.Triple{S: "<http://example.org/new>", P: "<http://example.org/p>", O: rdfres.NewLiteral(fmt.Sprint(grown), "", "")})
			grown++
		}
		return nil
	}
	if err := try(st, Config{Graphs: []string{"http://example.org/g", "http://example.org/h"}}, 0); err != nil || grown == 0 {
		t.Errorf("a store that grows while its different triples are counted: %v, %d", err, grown)
	}
	for _, twin := range []rdfres.Triple{{S: "<http://example.org/e1>", P: "<http://example.org/t>", O: `"twin"`}, {S: "_:b1", P: "<http://example.org/t>", O: `"twin"`}} {
		st := sparqltest.New(append(slices.Clone(ts), twin)...)
		st.Twins, st.NoConstruct = true, true
		for _, cfg := range []Config{{}, {Graphs: []string{"*"}}} {
			if err := try(st, cfg, 0); err != nil {
				t.Errorf("%v twice in the store, %v: %v", twin, cfg.Graphs, err)
			}
			if err := try(st, cfg, 9); !errors.Is(err, ErrShort) {
				t.Errorf("%v twice in the store, %v, and a triple doubled instead of another: %v", twin, cfg.Graphs, err)
			}
		}
	}
}

func TestConfigRefused(t *testing.T) {
	c := serve(t, sparqltest.New())
	for _, cfg := range []Config{
		{Graphs: []string{"urn:rsbridge:state"}},
		{Graphs: []string{"*", "http://example.org/g"}},
		{Graphs: []string{"no good<"}},
		{Graphs: []string{""}},
		{Select: Select{Classes: []string{"a b"}}},
		{Select: Select{Query: "ASK {}"}},
		{Describe: "everything"},
		{Describe: "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }"},
		{Strategy: "guess"},
	} {
		if _, err := New(c, cfg); err == nil {
			t.Errorf("%+v was accepted", cfg)
		}
	}
}

// ntriples is a body of triples, to be sent any number of times.
func ntriples(ts []rdfres.Triple) func() (io.ReadCloser, error) {
	var b []byte
	for _, x := range ts {
		b = x.AppendLine(b)
	}
	return func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b)), nil }
}
