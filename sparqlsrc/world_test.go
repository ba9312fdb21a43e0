package sparqlsrc

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/internal/sparql"
	"github.com/rsbridge/rsbridge/internal/teststores"
	"github.com/rsbridge/rsbridge/rdfres"
)

// world is what a store holds, by graph, "" the default one. Blank nodes of one label are
// one node, also in two graphs.
type world map[string][]rdfres.Triple

const stateGraph = "urn:rsbridge:state"

// worldGraphs may be in a world.
var worldGraphs = []string{"", "http://g.example/1", "http://g.example/2", "http://g.example/a/../é?x='1'&y=%20#z", "urn:x-g:a~b(c)*[]", stateGraph}

var worldTerms = []rdfres.Term{"<http://example.org/a/../b>", "<http://example.org/é?x=1#y>", "<http://example.org/it's(%20)>", "<http://EXAMPLE.org/e1>", rdfres.NewLiteral("tab\tquote\"back\\slash\nnew\r", "", ""), rdfres.NewLiteral("x", "en-US", ""), rdfres.NewLiteral("_:b0 <http://x> .", "", ""), `""`}

// newWorld draws one.
func newWorld(r *rand.Rand) world {
	w := world{}
	for _, g := range worldGraphs {
		w.draw(r, g)
	}
	return w
}

// draw draws what a graph holds, which may be nothing. Small numbers let graphs share
// entities, triples and blank nodes.
func (w world) draw(r *rand.Rand, g string) {
	delete(w, g)
	if r.IntN(3) == 0 {
		return
	}
	ts := randomGraph(r, []int{10, 40, 120, 300}[r.IntN(4)])
	if g == stateGraph {
		ts = []rdfres.Triple{{S: "<http://example.org/never>", P: "<http://example.org/p0>", O: `"own"`}}
	}
	one := func(of int) bool { return g != stateGraph && r.IntN(of) == 0 }
	if one(3) {
		ts = slices.DeleteFunc(ts, func(x rdfres.Triple) bool { return x.S[0] == '_' || x.O[0] == '_' })
	} else if one(2) { // not those of other graphs
		for i := range ts {
			for _, x := range []*rdfres.Term{&ts[i].S, &ts[i].O} {
				if x.Kind() == rdfres.KindBlank {
					*x = rdfres.NewBlank(fmt.Sprint("g", slices.Index(worldGraphs, g), x.Label()))
				}
			}
		}
	}
	if one(2) {
		for range 1 + r.IntN(10) {
			s, o := worldTerms[r.IntN(4)], worldTerms[r.IntN(len(worldTerms))]
			ts = append(ts, rdfres.Triple{S: s, P: "<http://example.org/p0>", O: o}, rdfres.Triple{S: "<http://example.org/e1>", P: "<http://example.org/p1>", O: s})
		}
	}
	if one(3) { // an entity of many triples
		for i := range 50 + r.IntN(1500) {
			ts = append(ts, rdfres.Triple{S: "<http://example.org/big>", P: rdfres.NewIRI(fmt.Sprint("http://example.org/p", i%3)), O: rdfres.NewLiteral(fmt.Sprint("v", i), "", "")})
		}
	}
	if one(3) { // many entities, of many classes
		for i := range 50 + r.IntN(800) {
			ts = append(ts, rdfres.Triple{S: rdfres.NewIRI(fmt.Sprint("http://many.example/", i)), P: rdfType, O: rdfres.NewIRI(fmt.Sprint("http://example.org/K", i%70))})
		}
	}
	w[g] = rdfres.SortUnique(ts)
}

// change takes triples away, adds some, and draws a graph anew now and then.
func (w world) change(r *rand.Rand) {
	for _, g := range slices.Sorted(maps.Keys(w)) {
		ts := slices.Clone(w[g])
		for range r.IntN(10) {
			if g == stateGraph || len(ts) == 0 {
				continue
			}
			x := ts[r.IntN(len(ts))]
			switch r.IntN(3) {
			case 0:
				ts = slices.DeleteFunc(ts, func(y rdfres.Triple) bool { return x == y })
			case 1:
				ts = slices.DeleteFunc(ts, func(y rdfres.Triple) bool { return x.S == y.S })
			default:
				ts = append(ts, rdfres.Triple{S: x.S, P: "<http://example.org/p1>", O: rdfres.NewLiteral(fmt.Sprint("new", r.IntN(100)), "", "")})
			}
		}
		if w[g] = rdfres.SortUnique(ts); len(ts) == 0 {
			delete(w, g)
		}
	}
	if r.IntN(2) == 0 {
		w.draw(r, worldGraphs[r.IntN(len(worldGraphs))])
	}
}

// load makes a store hold the world; with union its default graph shows what the others hold.
func (w world) load(ctx context.Context, c *sparql.Client, union bool) error {
	var b strings.Builder
	b.WriteString("DROP ALL ; INSERT DATA {")
	for g, ts := range w {
		var lines []byte
		for _, x := range ts {
			lines = x.AppendLine(lines)
		}
		if g != "" {
			fmt.Fprintf(&b, " GRAPH <%s> { %s }", g, lines)
		}
		if g == "" || union {
			b.Write(lines)
		}
	}
	b.WriteString("}")
	return c.Update(ctx, b.String())
}

// of is what a set over graphs is made of, by graph.
func (w world) of(cfg Config, union bool) world {
	out := world{}
	for g, ts := range w {
		every := len(cfg.Graphs) > 0 && cfg.Graphs[0] == "*" || len(cfg.Graphs) == 0 && (union || cfg.Describe == "graph")
		if g != stateGraph && (every || len(cfg.Graphs) == 0 && g == "" || slices.Contains(cfg.Graphs, g)) && (g != "" || cfg.Describe != "graph") {
			out[g] = ts
		}
	}
	return out
}

// merged are the triples of all graphs.
func (w world) merged() (ts []rdfres.Triple) {
	for _, of := range w {
		ts = append(ts, of...)
	}
	return rdfres.SortUnique(ts)
}

// What entities are selected by, and described as.
const (
	byP0       = "SELECT ?entity WHERE { ?entity <http://example.org/p0> ?x }"
	byObject   = "SELECT DISTINCT ?entity ?x WHERE { ?x <http://example.org/p1> ?entity }"
	byGraphs   = "SELECT ?entity WHERE { GRAPH ?entity { ?s <http://example.org/p2> ?o } }"
	ownTriples = "CONSTRUCT { ?entity ?p ?o } WHERE { ?entity ?p ?o }"
)

// says is what a scan must give, by rdfres in memory.
func (w world) says(t *testing.T, cfg Config, union bool) map[string][]rdfres.Triple {
	of := w.of(cfg, union)
	all, ts := map[string][]rdfres.Triple{}, of.merged()
	chosen := map[string]bool{} // by class
	named := map[string]bool{}  // by the query
	for g, ts := range of {
		for _, x := range ts {
			e := x.S
			if cfg.Describe == "graph" {
				e = rdfres.NewIRI(g)
			}
			if x.S[0] == '<' && x.P == rdfType && x.O[0] == '<' && slices.Contains(cfg.Select.Classes, x.O.IRI()) {
				chosen[e.IRI()] = true
			}
			switch {
			case cfg.Select.Query == byP0 && x.P == "<http://example.org/p0>", cfg.Select.Query == byGraphs && x.P == "<http://example.org/p2>":
			case cfg.Select.Query == byObject && x.P == "<http://example.org/p1>":
				e = x.O
			default:
				continue
			}
			if e[0] == '<' {
				named[e.IRI()] = true
			}
		}
	}
	switch cfg.Describe {
	case "graph":
		all = asGraphs(t, of)
	case ownTriples:
		for _, x := range ts {
			if x.S[0] == '<' {
				all[x.S.IRI()] = append(all[x.S.IRI()], x)
			}
		}
		all = asGraphs(t, all)
	case "scbd":
		all = expected(t, ts, true)
		bare, _, err := rdfres.NameBlanks(ts, rdfres.NameOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for e := range named { // that others only lead to
			if all[e] == nil {
				all[e] = rdfres.NewGraph(bare).SCBD(rdfres.NewIRI(e))
			}
		}
	default:
		all = expected(t, ts, false)
	}
	maps.DeleteFunc(all, func(e string, _ []rdfres.Triple) bool {
		if strings.HasPrefix(e, orphanPrefix) {
			return !cfg.Select.isZero() || cfg.Describe == ownTriples
		}
		return len(cfg.Select.Classes) > 0 && !chosen[e] || cfg.Select.Query != "" && !named[e] || !hasPrefix(e, cfg.Select.Prefixes)
	})
	return all
}

// newConfig draws what a set is of a world.
func newConfig(r *rand.Rand) Config {
	cfg := Config{Name: "s", BatchSize: []int{0, 0, 1, 3, 20}[r.IntN(5)]}
	one := func(of int) bool { return r.IntN(of) == 0 }
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	switch r.IntN(4) {
	case 0:
	case 1:
		cfg.Graphs = []string{"*"}
	default:
		for _, i := range r.Perm(4)[:1+r.IntN(3)] { // one or several of those with names
			cfg.Graphs = append(cfg.Graphs, worldGraphs[1+i])
		}
	}
	if one(3) {
		cfg.Select.Classes = []string{"http://example.org/C0", "http://example.org/K3"}[:1+r.IntN(2)]
	}
	cfg.Describe = pick("cbd", "cbd", "scbd", ownTriples, "graph", "graph")
	if one(4) {
		cfg.Select.Prefixes = []string{"http://example.org/e1", "http://many.example/1", "http://g.example/", "urn:x-g:a~"}
	}
	if one(4) {
		if cfg.Select.Query = pick(byP0, byObject); cfg.Describe == "graph" {
			cfg.Select.Query = byGraphs
		}
	}
	cfg.Strategy = Strategies[r.IntN(len(Strategies))]
	ofOne := cfg.Strategy == "graph-store" || cfg.Strategy == "construct"
	ofSeveral := cfg.Strategy == "graphs" && cfg.Describe != "graph"
	several := len(cfg.Graphs) > 1 || len(cfg.Graphs) == 1 && cfg.Graphs[0] == "*"
	if one(2) || cfg.Strategy == "select-binary" || ofOne && several || ofSeveral && !several || CheckStrategy(cfg.Strategy, cfg.Describe) != nil {
		cfg.Strategy = ""
	}
	if one(3) {
		cfg.MemoryBytes = 64 << 10
	}
	return cfg
}

// errWrong is of an answer that is not what the world holds.
var errWrong = errors.New("wrong")

// hints asks which classes there are, what is of one, and for descriptions of some entities.
func (w world) hints(t *testing.T, r *rand.Rand, s *Source, cfg Config, union bool, want map[string][]rdfres.Triple) error {
	classes := map[string]map[string]bool{}
	for g, ts := range w.of(cfg, union) {
		for _, x := range ts {
			if x.P != rdfType || x.O[0] != '<' {
				continue
			}
			if classes[x.O.IRI()] == nil {
				classes[x.O.IRI()] = map[string]bool{}
			}
			if cfg.Describe == "graph" {
				classes[x.O.IRI()][g] = true
			} else if x.S[0] == '<' {
				classes[x.O.IRI()][x.S.IRI()] = true
			}
		}
	}
	parts, err := s.Partitions(t.Context(), ByClass)
	if err != nil {
		return err
	}
	for class, of := range classes {
		if only := s.cfg.Select.Classes; !s.byGraph && len(only) > 0 && !slices.Contains(only, class) {
			if parts[class].Entities > 0 {
				return fmt.Errorf("%w: class %s is counted, and not selected", errWrong, class)
			}
			continue
		}
		if parts[class].Entities == 0 {
			return fmt.Errorf("%w: class %s of %v is not counted", errWrong, class, of)
		}
		if r.IntN(10) > 0 {
			continue
		}
		got := map[string]bool{}
		if err := s.OfPartition(t.Context(), ByClass, class, func(e string) error { got[e] = true; return nil }); err != nil {
			return err
		}
		for e := range of {
			if !got[e] {
				return fmt.Errorf("%w: %s is not named as one of class %s", errWrong, e, class)
			}
		}
	}
	ask := slices.Sorted(maps.Keys(want))
	r.Shuffle(len(ask), func(i, j int) { ask[i], ask[j] = ask[j], ask[i] })
	ask = append(ask[:min(len(ask), 30)], "http://example.org/nobody", "http://example.org/e0", "http://g.example/2", orphanPrefix+strings.Repeat("0", 64)+"-0")
	ds, err := s.Describe(t.Context(), ask)
	if err != nil {
		return err
	}
	got := map[string]bool{}
	for _, d := range ds {
		if got[d.Entity] = true; !slices.Equal(d.Triples, want[d.Entity]) {
			return fmt.Errorf("%w: described %s:\n got %v\nwant %v", errWrong, d.Entity, d.Triples, want[d.Entity])
		}
	}
	for _, e := range ask {
		if !got[e] {
			return fmt.Errorf("%w: %s was asked for and did not come", errWrong, e)
		}
	}
	return nil
}

// TestWorlds: one set over one, several or all graphs, which come, change and go, gives by
// every strategy, rule and selection what a plain reading says.
// RSBRIDGE_HISTORIES is the number of worlds, for campaigns.
func TestWorlds(t *testing.T) {
	client := embedded(t)
	for seed := range teststores.Histories(2, 10) {
		r := rand.New(rand.NewPCG(uint64(seed), 22))
		w, cfg, union := newWorld(r), newConfig(r), false
		what := fmt.Sprintf("seed %d, graphs %q, describe %s, select %+v, strategy %s, batch %d", seed, cfg.Graphs, cfg.Describe, cfg.Select, cfg.Strategy, cfg.BatchSize)
		cfg.TempDir = t.TempDir()
		s, err := New(client, cfg)
		if err != nil {
			t.Fatal(what, err)
		}
		for round := range 3 {
			if union && cfg.Describe == "graph" || slices.Equal(cfg.Graphs, []string{"*"}) && (cfg.Select.Query != "" || cfg.Describe == ownTriples) {
				delete(w, "") // no query is asked over it and all others
			}
			if err := w.load(t.Context(), client, union); err != nil {
				t.Fatal(err)
			}
			want := w.says(t, cfg, union)
			sc, err := s.Scan(t.Context())
			if err != nil {
				t.Fatal(what, round, err)
			}
			diff(t, fmt.Sprint(what, ", round ", round), readScan(t, sc), want)
			if err := w.hints(t, r, s, cfg, union, want); err != nil || t.Failed() {
				t.Fatal(what, ", round ", round, ": ", err)
			}
			w.change(r)
		}
	}
}
