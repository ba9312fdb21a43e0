package engine_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/internal/embedstore"
	. "github.com/rsbridge/rsbridge/internal/embedstore/engine"
	"github.com/rsbridge/rsbridge/rdfres"
)

// snapshot is the store as Data.
type snapshot struct{ *embedstore.Snapshot }

func (s snapshot) Match(p Pattern) iter.Seq2[rdfres.Quad, error] {
	return s.Snapshot.Match(embedstore.Pattern{S: p.S, P: p.P, O: p.O, G: p.G})
}

func (s snapshot) Graphs() (out []rdfres.Term, err error) {
	gs, err := s.Snapshot.Graphs()
	for _, g := range gs {
		if g.Graph != "" {
			out = append(out, g.Graph)
		}
	}
	return out, err
}

func open(t testing.TB, nquads string) (*embedstore.Store, snapshot) {
	t.Helper()
	s, err := embedstore.Open(t.TempDir(), embedstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	if _, err := s.Load(context.Background(), "", rdfres.NQuads, strings.NewReader(nquads), embedstore.LoadOptions{}); err != nil {
		t.Fatal(err)
	}
	n, err := s.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Close() })
	return s, snapshot{n}
}

// answer is a comparable form: rows sorted, or in order when ordered.
func answer(r *Result, ordered bool) []string {
	var out []string
	switch r.Kind {
	case Boolean:
		return []string{fmt.Sprint(r.Bool)}
	case Graph:
		var qs []rdfres.Quad
		for _, t := range r.Triples {
			qs = append(qs, rdfres.Quad{Triple: t})
		}
		lines, _, err := rdfres.Canonicalize(qs, rdfres.CanonOptions{})
		if err != nil {
			return []string{err.Error()}
		}
		return strings.Split(string(lines), "\n")
	}
	at := make([]int, len(r.Vars))
	for i := range at {
		at[i] = i
	}
	slices.SortFunc(at, func(a, b int) int { return strings.Compare(r.Vars[a], r.Vars[b]) })
	for _, row := range r.Rows {
		var b strings.Builder
		for _, i := range at {
			fmt.Fprintf(&b, "%s=%s ", r.Vars[i], row[i])
		}
		out = append(out, b.String())
	}
	if !ordered {
		slices.Sort(out)
	}
	return out
}

// own is the answer of the store's executor.
func own(s *embedstore.Store, text string, o embedstore.QueryOptions) (*Result, error) {
	r, err := s.Query(context.Background(), text, o)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	out := &Result{Kind: Kind(r.Kind), Vars: r.Vars, Bool: r.Bool}
	switch r.Kind {
	case embedstore.Solutions:
		for row, err := range r.Rows() {
			if err != nil {
				return nil, err
			}
			out.Rows = append(out.Rows, slices.Clone(row))
		}
	case embedstore.Graph:
		seen := map[rdfres.Triple]bool{}
		for t, err := range r.Triples() {
			if err != nil {
				return nil, err
			}
			if !seen[t] {
				seen[t] = true
				out.Triples = append(out.Triples, t)
			}
		}
	}
	return out, nil
}

type gen struct{ *rand.Rand }

func (g gen) pick(s ...string) string { return s[g.IntN(len(s))] }

func (g gen) data(n int) string {
	var b strings.Builder
	for range n {
		s := g.pick("<http://x/a>", "<http://x/b>", "<http://x/c>", "<http://x/d>", "<http://y/e>", "_:m", "_:n", "_:k")
		p := g.pick("<http://x/p>", "<http://x/q>", "<http://x/r>")
		o := g.pick("<http://x/a>", "<http://x/b>", "<http://x/c>", "_:m", "_:n", "_:k", `"1"^^<http://www.w3.org/2001/XMLSchema#integer>`,
			`"2"^^<http://www.w3.org/2001/XMLSchema#integer>`, `"01"^^<http://www.w3.org/2001/XMLSchema#integer>`, `"x"`, `"x"@en`, `"x"@EN`, `"y\n\""`)
		if g.IntN(4) == 0 {
			p, o = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>", g.pick("<http://x/C>", "<http://x/D>")
		}
		fmt.Fprintf(&b, "%s %s %s %s .\n", s, p, o, g.pick("", "", "<http://x/g>", "<http://x/h>", "<http://x/a>"))
	}
	return b.String()
}

func (g gen) variable() string { return "?" + g.pick("s", "p", "o", "a", "b") }
func (g gen) iri() string {
	return g.pick("<http://x/a>", "<http://x/b>", "<http://x/c>", "<http://y/e>", "<http://x/zz>")
}
func (g gen) pred() string { return "<http://x/" + g.pick("p", "q", "r") + ">" }

func (g gen) triple() string {
	s, p, o := g.variable(), g.pred(), g.variable()
	switch g.IntN(6) {
	case 0:
		s = g.iri()
	case 1:
		o = g.pick(g.iri(), "1", `"x"`, `"x"@en`, `'01'^^<http://www.w3.org/2001/XMLSchema#integer>`, "2")
	case 2:
		p = "a"
	}
	switch g.IntN(6) {
	case 0, 1:
		p = g.variable()
	case 2:
		p = g.pick("^"+p, p+"/"+g.pred(), "("+p+"|"+g.pred()+")", p+"+", "("+p+"|^"+g.pred()+")+")
	}
	return s + " " + p + " " + o + " . "
}

func (g gen) condition() string {
	v := g.variable()
	switch g.IntN(12) {
	case 0:
		return "bound(" + v + ")"
	case 1:
		return "!" + g.pick("bound", "isIRI", "isBlank", "isLiteral") + "(" + v + ")"
	case 2:
		return "isBlank(" + v + ")"
	case 3:
		return v + g.pick(" = ", " != ") + g.iri()
	case 4:
		return v + g.pick(" IN (", " NOT IN (") + g.iri() + ", " + g.iri() + ")"
	case 5:
		return "(" + g.condition() + " || " + g.condition() + ")"
	case 6:
		return "!(" + g.condition() + " && " + g.condition() + ")"
	case 7:
		return "STRSTARTS(STR(" + v + `), "http://x/")`
	case 8:
		return "sameTerm(" + v + ", " + g.pick(g.variable(), "<http://x/a>") + ")"
	case 9:
		return g.pick("", "NOT ") + "EXISTS { " + g.triple() + "}"
	case 10:
		return "STR(" + v + `) = "http://x/a"`
	}
	return "isIRI(" + v + ")"
}

func (g gen) values() string {
	if g.IntN(2) == 0 {
		return "VALUES " + g.variable() + " { " + g.iri() + " " + g.iri() + " } "
	}
	return fmt.Sprintf("VALUES (?s ?o) { (%s %s) (%s UNDEF) (UNDEF 1) } ", g.iri(), g.iri(), g.iri())
}

func (g gen) group(depth int) string {
	var b strings.Builder
	for range 1 + g.IntN(3) {
		kind := g.IntN(16)
		if depth <= 0 {
			kind = g.IntN(5)
		}
		switch kind {
		default:
			b.WriteString(g.triple())
		case 3:
			b.WriteString("FILTER(" + g.condition() + ") ")
		case 4:
			b.WriteString(g.values())
		case 5, 6:
			b.WriteString("OPTIONAL " + g.group(depth-1) + " ")
		case 7, 8:
			b.WriteString(g.group(depth-1) + " UNION " + g.group(depth-1) + " ")
		case 9, 10:
			if g.IntN(4) == 0 {
				b.WriteString("GRAPH ?s { " + g.triple() + g.triple() + "} ")
				break
			}
			b.WriteString("GRAPH " + g.pick("?g", "?g", "<http://x/g>", "<http://x/zz>") + " " + g.group(depth-1) + " ")
		case 11, 12:
			b.WriteString("MINUS " + g.group(depth-1) + " ")
		case 13:
			fmt.Fprintf(&b, "BIND(%s AS ?z%d) ", g.pick("?s", "STR(?o)", "<http://x/a>", `"k"`), g.IntN(1e6))
		case 14:
			switch g.IntN(3) {
			case 0:
				fmt.Fprintf(&b, "{ SELECT %s %s %s %s } ", g.pick("", "DISTINCT"), g.variable(), g.pick("?f", "(1 AS ?one)"), g.group(depth-1))
			case 1:
				fmt.Fprintf(&b, "{ SELECT ?s (COUNT(%s) AS ?n) %s GROUP BY ?s } ", g.pick("*", "?o", "DISTINCT ?o"), g.group(depth-1))
			case 2:
				fmt.Fprintf(&b, "{ SELECT * %s } ", g.group(depth-1))
			}
		case 15:
			b.WriteString(g.group(depth-1) + " ")
		}
	}
	return "{ " + b.String() + "}"
}

// query gives a text; ordered tells whether the order of its rows counts.
func (g gen) query() (text string, ordered bool) {
	from := g.pick("", "", "", "FROM <http://x/g>", "FROM <http://x/g> FROM <http://x/h>", "FROM <http://x/g> FROM NAMED <http://x/h>", "FROM NAMED <http://x/a>")
	vals := "VALUES ?s { " + g.iri() + " " + g.iri() + " " + g.iri() + " } "
	switch g.IntN(24) {
	case 0:
		return "CONSTRUCT { ?s ?p ?o } " + from + " WHERE { ?s ?p ?o }", false
	case 1:
		return "SELECT * " + from + " { ?s ?p ?o }", false
	case 2:
		return "SELECT ?p ?o " + from + " { " + g.iri() + " ?p ?o }", false
	case 3:
		return "SELECT * " + from + " { " + vals + g.triple() + g.triple() + "}", false
	case 4: // the closure of blank nodes, one step
		return "CONSTRUCT { ?s ?p ?o } " + from + " WHERE { { " + vals + "?s ?p ?o } UNION { " + strings.Replace(vals, "?s", "?e", 1) + "?e ?p1 ?s FILTER(isBlank(?s)) ?s ?p ?o } }", false
	case 5:
		return "SELECT DISTINCT ?s " + from + " { ?s a " + g.pick("<http://x/C>", "<http://x/D>", "?c") + " FILTER(isIRI(?s)) }", false
	case 6:
		return "SELECT DISTINCT ?s " + from + " { ?s ?p ?o FILTER(STRSTARTS(STR(?s), \"http://x/\")) }", false
	case 7:
		return "SELECT (COUNT(*) AS ?n) (COUNT(DISTINCT ?s) AS ?m) " + from + " " + g.group(1), false
	case 8:
		return "SELECT DISTINCT ?s " + from + " { ?s ?p ?o }", false
	case 9:
		return fmt.Sprintf("SELECT ?s ?p ?o %s { ?s ?p ?o FILTER(isIRI(?s) && isIRI(?o)) } ORDER BY ?s %s ?o LIMIT %d OFFSET %d", from, g.pick("?p", "DESC(?p)"), g.IntN(6), g.IntN(4)), true
	case 10, 11:
		return "ASK " + from + " " + g.group(2), false
	case 12:
		return "CONSTRUCT { ?s " + g.pred() + " _:b . _:b <http://x/of> ?o } " + from + " WHERE " + g.group(1), false
	case 13:
		return "SELECT ?p (COUNT(?o) AS ?n) " + from + " " + g.group(1) + " GROUP BY ?p", false
	case 14:
		return "SELECT ?g (COUNT(*) AS ?n) { GRAPH ?g " + g.group(1) + " } GROUP BY ?g", false
	}
	return "SELECT " + g.pick("", "", "DISTINCT ") + g.pick("*", "?s ?p ?o ?a ?b", "?s ?o") + " " + from + " WHERE " + g.group(2), false
}

// dataset reads FROM, which the engine is given as options.
func dataset(text string, o *Options) {
	words := strings.Fields(text)
	for i, w := range words {
		if w != "FROM" {
			continue
		}
		o.Dataset = true
		if words[i+1] == "NAMED" {
			o.NamedGraphs = append(o.NamedGraphs, rdfres.Term(words[i+2]))
		} else {
			o.DefaultGraphs = append(o.DefaultGraphs, rdfres.Term(words[i+1]))
		}
	}
}

// compare orders terms as the store's executor does, as far as the random data
// go: unbound, blank nodes, IRIs, literals.
func compare(a, b rdfres.Term) int {
	if a.Kind() != b.Kind() {
		rank := map[rdfres.TermKind]int{rdfres.KindNone: 0, rdfres.KindBlank: 1, rdfres.KindIRI: 2, rdfres.KindLiteral: 3}
		return rank[a.Kind()] - rank[b.Kind()]
	}
	return strings.Compare(string(a), string(b))
}

// TestAgainstTheExecutor compares the engine with the executor of the store on
// random data and queries: as it is, without the moving of joins, and through the
// store.
func TestAgainstTheExecutor(t *testing.T) {
	rounds, queries := 40, 150
	if testing.Short() {
		rounds = 3
	}
	answered, refused, nonEmpty, skipped := 0, map[string]int{}, 0, 0
	for round := range rounds {
		g := gen{rand.New(rand.NewPCG(uint64(round), 11))}
		s, snap := open(t, g.data(5+g.IntN(30)))
		for range queries {
			text, ordered := g.query()
			want, err := own(s, text, embedstore.QueryOptions{})
			if errors.Is(err, embedstore.ErrUnsupported) {
				t.Errorf("left to the engine: %s: %v", text, err)
			}
			if err != nil {
				skipped++
				continue // BIND to what is bound, for example: the generator does not look
			}
			o := Options{Compare: compare}
			dataset(text, &o)
			for i, ask := range []func() (*Result, error){
				func() (*Result, error) { return Query(context.Background(), snap, text, o) },
				func() (*Result, error) { return Query(context.Background(), snap, text, o.Unmoved()) },
				func() (*Result, error) { return own(s, text, embedstore.QueryOptions{Engine: true}) },
			} {
				got, err := ask()
				if errors.Is(err, ErrRefused) || errors.Is(err, embedstore.ErrUnsupported) {
					_, why, _ := strings.Cut(err.Error(), "for it: ")
					refused[why]++
					continue
				}
				if err != nil {
					t.Fatalf("round %d: %s: %v", round, text, err)
				}
				a, b := answer(got, ordered), answer(want, ordered)
				answered++
				if len(b) > 0 {
					nonEmpty++
				}
				if !slices.Equal(a, b) {
					t.Fatalf("round %d, way %d: %s\n got %d %.1500q\nwant %d %.1500q\ndata:\n%s", round, i, text, len(a), a, len(b), b, dump(snap))
				}
			}
		}
	}
	t.Logf("%d answers compared, %d with rows; %d texts not valid; refused: %v", answered, nonEmpty, skipped, refused)
}

func dump(s snapshot) string {
	var b strings.Builder
	for q, err := range s.Snapshot.Match(embedstore.Pattern{AnyGraph: true}) {
		if err == nil {
			fmt.Fprintln(&b, q.S, q.P, q.O, q.G)
		}
	}
	return b.String()
}
