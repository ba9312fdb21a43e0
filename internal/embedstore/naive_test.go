package embedstore

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// naive evaluates the algebra bottom up, as section 18 of the specification
// defines it, over all quads in memory: nothing is pushed, ordered or indexed.
// It shares the parser and the functions with the executor, nothing else.
type naive struct {
	x     *exec
	quads []quad
	slots int
	work  int
}

// in is the graph that patterns look at: -1 the default graph, else a graph id.
func (v *naive) eval(n node, g int64) [][]id {
	switch n := n.(type) {
	case *tripleNode:
		return v.triple(n, g)
	case *joinNode:
		rows := [][]id{make([]id, v.slots)}
		for _, p := range n.parts {
			rows = v.join(rows, v.eval(p, g))
		}
		return v.filter(rows, n.filters)
	case *unionNode:
		var rows [][]id
		for _, p := range n.parts {
			rows = append(rows, v.eval(p, g)...)
		}
		return rows
	case *optionalNode:
		var rows [][]id
		right := v.eval(n.right, g)
		for _, l := range v.eval(n.left, g) {
			got := v.filter(v.join([][]id{l}, right), n.filters)
			if len(got) == 0 {
				got = [][]id{l}
			}
			rows = append(rows, got...)
		}
		return rows
	case *minusNode:
		var rows [][]id
		right := v.eval(n.right, g)
		for _, l := range v.eval(n.left, g) {
			if !slices.ContainsFunc(right, func(r []id) bool {
				shared := false
				for i := range l {
					if l[i] != 0 && r[i] != 0 {
						if l[i] != r[i] {
							return false
						}
						shared = true
					}
				}
				return shared
			}) {
				rows = append(rows, l)
			}
		}
		return rows
	case *bindNode:
		rows := v.eval(n.in, g)
		for _, r := range rows {
			v.x.row = r
			val, err := v.x.exprs.exprID(n.e)
			if err != nil {
				panic(err)
			}
			r[n.slot] = val
		}
		return rows
	case *valuesNode:
		var rows [][]id
		for _, vals := range n.rows {
			r := make([]id, v.slots)
			for i, t := range vals {
				r[n.slots[i]], _ = v.x.idOf(t)
			}
			rows = append(rows, r)
		}
		return rows
	case *graphNode:
		var rows [][]id
		for _, gr := range v.graphs() {
			if !n.g.isVar() {
				if want, _ := lookup(v.x.v, n.g.term); want == gr {
					rows = append(rows, v.eval(n.in, int64(gr))...)
				}
				continue
			}
			only := make([]id, v.slots)
			only[n.g.slot] = gr
			rows = append(rows, v.join([][]id{only}, v.eval(n.in, int64(gr)))...)
		}
		return rows
	case *selectNode:
		var rows [][]id
		for _, r := range v.run(n.q, g) {
			out := make([]id, v.slots)
			for i := range n.inner {
				out[n.outer[i]] = r[n.inner[i]]
			}
			rows = append(rows, out)
		}
		return rows
	}
	panic(fmt.Sprintf("naive: %T", n))
}

type tooLarge struct{}

// bounded is run, given up when there are too many rows on the way.
func (v *naive) bounded(q *query) (rows [][]id, ok bool) {
	defer func() {
		if r := recover(); r != nil {
			if r != (tooLarge{}) {
				panic(r)
			}
			rows, ok = nil, false
		}
	}()
	return v.run(q, -1), true
}

// run is a SELECT without grouping.
func (v *naive) run(q *query, g int64) [][]id {
	rows := v.eval(q.where, g)
	for _, r := range rows {
		for _, p := range q.vars {
			if p.e != nil {
				v.x.row = r
				r[p.slot], _ = v.x.exprs.exprID(p.e)
			}
		}
	}
	cols := q.columns()
	var out [][]id
	seen := map[string]bool{}
	for _, r := range rows {
		o := make([]id, v.slots)
		for _, c := range cols {
			o[c] = r[c]
		}
		if q.distinct {
			k := fmt.Sprint(o)
			if seen[k] {
				continue
			}
			seen[k] = true
		}
		out = append(out, o)
	}
	return out
}

func (v *naive) graphs() []id {
	var gs []id
	for _, q := range v.quads {
		if q[posG] != 0 && !slices.Contains(gs, q[posG]) && (v.x.ds.named == nil || v.x.ds.named[q[posG]]) {
			gs = append(gs, q[posG])
		}
	}
	return gs
}

func (v *naive) triple(n *tripleNode, g int64) [][]id {
	var rows [][]id
	seen := map[[3]id]bool{}
	for _, q := range v.quads {
		if g >= 0 && q[posG] != id(g) || g < 0 && !slices.Contains(v.x.ds.defaults, q[posG]) {
			continue
		}
		k := [3]id{q[0], q[1], q[2]}
		if seen[k] {
			continue
		}
		seen[k] = true
		r := make([]id, v.slots)
		ok := true
		for i, t := range [3]pterm{n.s, n.p, n.o} {
			if !t.isVar() {
				want, _ := lookup(v.x.v, t.term)
				ok = ok && want == q[i]
			} else if r[t.slot] != 0 && r[t.slot] != q[i] {
				ok = false
			} else {
				r[t.slot] = q[i]
			}
		}
		if ok {
			rows = append(rows, r)
		}
	}
	return rows
}

func (v *naive) join(a, b [][]id) [][]id {
	var rows [][]id
	if v.work += len(a) * len(b); v.work > 200_000 {
		panic(tooLarge{})
	}
	for _, l := range a {
	next:
		for _, r := range b {
			m := slices.Clone(l)
			for i := range r {
				if r[i] == 0 {
					continue
				}
				if m[i] != 0 && m[i] != r[i] {
					continue next
				}
				m[i] = r[i]
			}
			rows = append(rows, m)
		}
	}
	return rows
}

func (v *naive) filter(rows [][]id, es []expr) [][]id {
	return slices.DeleteFunc(rows, func(r []id) bool {
		v.x.row = r
		for _, e := range es {
			if ok, err := v.x.exprs.test(e); err != nil || !ok {
				return true
			}
		}
		return false
	})
}

// ---- random data and queries

type gen struct{ *rand.Rand }

func (g gen) pick(s ...string) string { return s[g.IntN(len(s))] }

func (g gen) data(n int) string {
	var b strings.Builder
	for range n {
		s := g.pick("<http://x/a>", "<http://x/b>", "<http://x/c>", "<http://x/d>", "_:m", "_:n")
		p := g.pick("<http://x/p>", "<http://x/q>", "<http://x/r>")
		o := g.pick("<http://x/a>", "<http://x/b>", "<http://x/c>", "_:m", "_:n", `"1"^^<http://www.w3.org/2001/XMLSchema#integer>`,
			`"2"^^<http://www.w3.org/2001/XMLSchema#integer>`, `"x"`, `"x"@en`, `"y"`, `"2.0"^^<http://www.w3.org/2001/XMLSchema#decimal>`)
		gr := g.pick("", "", "<http://x/g>", "<http://x/h>", "<http://x/a>")
		fmt.Fprintf(&b, "%s %s %s %s .\n", s, p, o, gr)
	}
	return b.String()
}

func (g gen) variable() string { return "?" + g.pick("a", "b", "c", "d", "e") }

func (g gen) iri() string { return "<http://x/" + g.pick("a", "b", "c", "d", "zz") + ">" }

func (g gen) term() string {
	switch g.IntN(4) {
	case 0:
		return g.iri()
	case 1:
		return g.pick("1", "2", `"x"`, `"x"@en`, "2.0")
	}
	return g.variable()
}

func (g gen) triple() string {
	s := g.variable()
	if g.IntN(4) == 0 {
		s = g.iri()
	}
	p := "<http://x/" + g.pick("p", "q", "r") + ">"
	if g.IntN(3) == 0 {
		p = g.variable()
	}
	return s + " " + p + " " + g.term() + " . "
}

func (g gen) expr() string {
	v, w := g.variable(), g.variable()
	switch g.IntN(12) {
	case 0:
		return "bound(" + v + ")"
	case 1:
		return "!bound(" + v + ")"
	case 2:
		return v + " = " + w
	case 3:
		return v + " != " + g.pick("1", "2", `"x"`, "<http://x/a>")
	case 4:
		return "isBlank(" + v + ")"
	case 5:
		return v + " IN (<http://x/a>, <http://x/b>)"
	case 6:
		return v + " < " + g.pick("2", w)
	case 7:
		return "(" + g.expr() + " || " + g.expr() + ")"
	case 8:
		return "(" + g.expr() + " && " + g.expr() + ")"
	case 9:
		return `STRSTARTS(STR(` + v + `), "http://x/")`
	case 10:
		return v + " = <http://x/" + g.pick("a", "b") + ">"
	}
	return "isIRI(" + v + ")"
}

func (g gen) group(depth int) string {
	var b strings.Builder
	b.WriteString("{ ")
	for range 1 + g.IntN(3) {
		kind := g.IntN(14)
		if depth <= 0 {
			kind = g.IntN(4)
		}
		switch kind {
		default:
			b.WriteString(g.triple())
		case 2:
			if g.IntN(2) == 0 {
				b.WriteString("FILTER(" + g.expr() + ") ")
			} else {
				b.WriteString(g.triple())
			}
		case 3:
			fmt.Fprintf(&b, "VALUES (%s %s) { (%s %s) (%s UNDEF) } ", "?a", "?b", g.iri(), g.iri(), g.iri())
		case 4, 5:
			b.WriteString("OPTIONAL " + g.group(depth-1) + " ")
		case 6, 7:
			b.WriteString(g.group(depth-1) + " UNION " + g.group(depth-1) + " ")
		case 8:
			// A variable of GRAPH that is also used within: by the letter of the
			// specification filters and OPTIONAL in it do not see the graph. As in
			// other stores here they do, so only patterns are compared.
			if g.IntN(4) == 0 {
				b.WriteString("GRAPH ?a { " + g.triple() + g.triple() + "} ")
				break
			}
			b.WriteString("GRAPH " + g.pick("?g", "<http://x/g>", "<http://x/zz>") + " " + g.group(depth-1) + " ")
		case 9:
			b.WriteString("MINUS " + g.group(depth-1) + " ")
		case 10:
			b.WriteString(g.group(depth-1) + " ")
		case 11:
			fmt.Fprintf(&b, "BIND(%s AS ?z%d) ", g.pick("?a", "STR(?b)", "?c + 1", "1"), g.IntN(1e6))
		case 12:
			fmt.Fprintf(&b, "{ SELECT %s %s %s %s } ", g.pick("", "DISTINCT"), g.variable(), g.pick("?f", "(1 AS ?one)", "(STR(?a) AS ?f)"), g.group(depth-1))
		}
	}
	b.WriteString("}")
	return b.String()
}

func (g gen) query() string {
	from := g.pick("", "", "", "FROM <http://x/g>", "FROM <http://x/g> FROM <http://x/h>", "FROM <http://x/g> FROM NAMED <http://x/h>", "FROM NAMED <http://x/a>")
	return "SELECT " + g.pick("", "", "DISTINCT") + " " + g.pick("*", "?a ?b ?c ?d ?e", "?a ?b", "?c") + " " + from + " WHERE " + g.group(2) + g.pick("", "", fmt.Sprintf(" VALUES (?a ?c) { (%s UNDEF) (UNDEF %s) (%s %s) }", g.iri(), g.iri(), g.iri(), g.iri()))
}

// TestAgainstNaive compares the executor with the definitions on random data
// and queries.
func TestAgainstNaive(t *testing.T) {
	rounds, queries := 12, 120
	if testing.Short() {
		rounds = 3
	}
	answered, nonEmpty := 0, 0
	for round := range rounds {
		g := gen{rand.New(rand.NewPCG(uint64(round), 7))}
		s := openTest(t, t.TempDir())
		loadText(t, s, "", g.data(6+g.IntN(40)))
		snap, err := s.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		var quads []quad
		if err := scan(snap.v, nil, access{3, 0}, &quad{}, false, func(q *quad) bool { quads = append(quads, *q); return true }); err != nil {
			t.Fatal(err)
		}
		for range queries {
			text := g.query()
			q, err := parseQuery(text, "")
			if err != nil {
				if strings.Contains(err.Error(), "bound") {
					continue // BIND to what is bound: the generator does not look
				}
				t.Fatalf("%s: %v", text, err)
			}
			x := s.newExec(context.Background(), snap.v, q.slots, *s.budget.Load())
			if err := x.setDataset(q.from, QueryOptions{}); err != nil {
				t.Fatal(err)
			}
			v := &naive{x: x, quads: quads, slots: q.slots}
			var want []string
			rows, ok := v.bounded(q)
			for _, r := range rows {
				want = append(want, rowText(t, x, q, r))
			}
			x.close()
			if !ok {
				continue // products too large for the naive way
			}
			got, err := idRows(s, snap, q)
			if err != nil {
				t.Fatalf("round %d: %s: %v", round, text, err)
			}
			slices.Sort(want)
			answered++
			if len(want) > 0 {
				nonEmpty++
			}
			if !slices.Equal(got, want) {
				t.Fatalf("round %d: %s\ndata:\n%s\n got %d rows %.2000q\nwant %d rows %.2000q", round, text, strings.Join(content(t, s), "\n"), len(got), got, len(want), want)
			}
		}
		snap.Close()
	}
	t.Logf("%d queries, %d with rows", answered, nonEmpty)
}

func rowText(t testing.TB, x *exec, q *query, r []id) string {
	var b strings.Builder
	for _, c := range q.columns() {
		term, err := x.terms.term(r[c])
		if err != nil {
			t.Fatal(err)
		}
		b.WriteString(term + "|")
	}
	return b.String()
}

func idRows(s *Store, snap *Snapshot, q *query) ([]string, error) {
	x := s.newExec(context.Background(), snap.v, q.slots, Budget{Time: 3 * time.Second}.or(*s.budget.Load()))
	defer x.close()
	if err := x.setDataset(q.from, QueryOptions{}); err != nil {
		return nil, err
	}
	var out []string
	err := x.runSelect(q, func() error {
		var b strings.Builder
		for _, c := range q.columns() {
			term, err := x.terms.term(x.row[c])
			if err != nil {
				return err
			}
			b.WriteString(term + "|")
		}
		out = append(out, b.String())
		return nil
	})
	slices.Sort(out)
	return out, err
}
