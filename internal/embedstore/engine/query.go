package engine

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/tggo/goRDFlib/sparql"
)

func (e *evaluation) query(text string) (*Result, error) {
	q, err := sparql.Parse(text)
	if err != nil {
		return nil, err
	}
	n := &normalizer{e: e, prefixes: q.Prefixes, base: q.BaseURI}
	if n.base == "" {
		n.base = e.o.Base
	}
	switch q.Type {
	case "ASK":
		s, err := e.solve(n, &sparql.ParsedQuery{Type: "SELECT", Variables: []string{}, Where: q.Where, Limit: -1})
		if err != nil {
			return nil, err
		}
		return &Result{Kind: Boolean, Bool: len(s.rows) > 0}, nil
	case "CONSTRUCT":
		return e.construct(n, q)
	}
	s, err := e.solve(n, q)
	if err != nil {
		return nil, err
	}
	return &Result{Kind: Solutions, Vars: s.vars, Rows: s.rows}, nil
}

type solutions struct {
	vars []string
	rows [][]rdfres.Term
}

// solve evaluates a SELECT. ORDER BY is done here, and OFFSET and LIMIT after it.
func (e *evaluation) solve(n *normalizer, q *sparql.ParsedQuery) (*solutions, error) {
	q, err := n.query(q)
	if err != nil {
		return nil, err
	}
	vars := q.Variables
	var keys []string
	limit, offset := q.Limit, q.Offset
	if len(q.OrderBy) > 0 {
		if e.o.Compare == nil {
			return nil, refuse("ORDER BY: the terms are compared by their letters")
		}
		all := append([]string(nil), vars...)
		for _, ob := range q.OrderBy {
			v, ok := plainVar(ob.Expr)
			if !ok {
				return nil, refuse("ORDER BY an expression")
			}
			if q.Distinct && !slices.Contains(vars, v.Name) {
				return nil, refuse("DISTINCT with ORDER BY a variable that is not selected")
			}
			keys = append(keys, v.Name)
			if !slices.Contains(all, v.Name) {
				all = append(all, v.Name)
			}
		}
		q.Variables, q.Limit, q.Offset = all, -1, 0
	}
	order := q.OrderBy
	q.OrderBy = nil
	e.rowBytes = int64(128 + 64*len(within(q.Where, set{})))
	if !e.o.noPush {
		q.Where = (&pusher{e: e}).pattern(q.Where)
	}
	m := &mender{e: e, literal: set{}, odd: set{}, ends: map[string]int{}}
	m.look(q.Where)
	columns := q.Variables
	if q, err = m.query(q, false); err != nil {
		return nil, err
	}
	if len(columns) == 0 {
		// The evaluator takes no columns for all columns.
		q.Variables = []string{e.fresh()[1:]}
	}
	q.NamedGraphs = e.named
	q.Prefixes = nil
	e.alive()
	r, err := sparql.EvalQuery(e.def, q, nil)
	if err != nil {
		return nil, err
	}
	e.alive()
	if e.content && len(e.byLabel) > 0 {
		return nil, refuse("functions over literals that it cannot hold (as %s)", e.byLabel[0])
	}
	out := &solutions{vars: vars}
	for _, b := range r.Bindings {
		row := make([]rdfres.Term, len(columns))
		for i, v := range columns {
			row[i] = e.from(b[v])
		}
		e.spend(1)
		out.rows = append(out.rows, row)
	}
	if len(order) > 0 {
		at := make([]int, len(keys))
		for i, k := range keys {
			at[i] = slices.Index(columns, k)
		}
		slices.SortStableFunc(out.rows, func(a, b []rdfres.Term) int {
			for i, k := range at {
				c := e.o.Compare(a[k], b[k])
				if order[i].Desc {
					c = -c
				}
				if c != 0 {
					return c
				}
			}
			return 0
		})
		out.rows = out.rows[min(offset, len(out.rows)):]
		if limit >= 0 {
			out.rows = out.rows[:min(limit, len(out.rows))]
		}
		for i := range out.rows {
			out.rows[i] = out.rows[i][:len(vars)]
		}
	}
	return out, nil
}

// template is what CONSTRUCT and updates make of each solution.
type template struct {
	quads [][4]string // subject, predicate, object, graph: "?x", a canonical term, or "" for the default graph
}

func (n *normalizer) template(t *template, triple [3]string, graph string) error {
	q := [4]string{3: graph}
	for i, s := range triple {
		var err error
		if q[i], err = n.position(s); err != nil {
			return err
		}
	}
	t.quads = append(t.quads, q)
	return nil
}

func (t *template) vars() (out []string) {
	for _, q := range t.quads {
		for _, x := range q {
			if isVar(x) && !strings.HasPrefix(x, "?_bnode") && !slices.Contains(out, x[1:]) {
				out = append(out, x[1:])
			}
		}
	}
	return out
}

// each instantiates the template for every row (section 16.2): blank nodes are
// new in each, what is no triple is left out.
func (t *template) each(s *solutions, give func(rdfres.Quad)) {
	for i, row := range s.rows {
		get := func(x string) rdfres.Term {
			switch {
			case strings.HasPrefix(x, "?_bnode"):
				return rdfres.Term(fmt.Sprintf("_:rsbnew%d%s", i, strings.ReplaceAll(x[7:], "_", "x")))
			case isVar(x):
				return row[slices.Index(s.vars, x[1:])]
			}
			return rdfres.Term(x)
		}
		for _, q := range t.quads {
			s, p, o, g := get(q[0]), get(q[1]), get(q[2]), rdfres.Term("")
			if q[3] != "" {
				if g = get(q[3]); g.Kind() != rdfres.KindIRI && g.Kind() != rdfres.KindBlank {
					continue
				}
			}
			if s == "" || s.Kind() == rdfres.KindLiteral || p.Kind() != rdfres.KindIRI || o == "" {
				continue
			}
			give(rdfres.Quad{Triple: rdfres.Triple{S: s, P: p, O: o}, G: g})
		}
	}
}

func (e *evaluation) construct(n *normalizer, q *sparql.ParsedQuery) (*Result, error) {
	t := &template{}
	if len(q.Construct) == 0 {
		b, ok := q.Where.(*sparql.BGP)
		if !ok {
			return nil, refuse("CONSTRUCT WHERE of more than triple patterns")
		}
		for _, x := range b.Triples {
			if x.PredicatePath != nil {
				return nil, refuse("CONSTRUCT WHERE with a path")
			}
			for _, pos := range []string{x.Subject, x.Object} {
				if strings.HasPrefix(pos, "_:") || strings.HasPrefix(pos, "?_bnode") {
					return nil, refuse("CONSTRUCT WHERE with blank nodes")
				}
			}
			if err := n.template(t, [3]string{x.Subject, x.Predicate, x.Object}, ""); err != nil {
				return nil, err
			}
		}
	}
	for _, x := range q.Construct {
		if err := n.template(t, [3]string{x.Subject, x.Predicate, x.Object}, ""); err != nil {
			return nil, err
		}
	}
	s, err := e.solve(n, &sparql.ParsedQuery{Type: "SELECT", Variables: t.vars(), Where: q.Where, OrderBy: q.OrderBy, Limit: q.Limit, Offset: q.Offset})
	if err != nil {
		return nil, err
	}
	out := &Result{Kind: Graph}
	seen := map[rdfres.Triple]bool{}
	t.each(s, func(q rdfres.Quad) {
		if !seen[q.Triple] {
			seen[q.Triple] = true
			e.spend(1)
			out.Triples = append(out.Triples, q.Triple)
		}
	})
	return out, nil
}
