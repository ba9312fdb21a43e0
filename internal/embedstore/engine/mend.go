package engine

import (
	"strings"

	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/tggo/goRDFlib/graph"
	"github.com/tggo/goRDFlib/paths"
	"github.com/tggo/goRDFlib/sparql"
	"github.com/tggo/goRDFlib/term"
)

// The evaluator of basic graph patterns answers wrongly when a variable stands
// twice in one pattern (the second place is not compared), when a variable that
// holds a literal stands as subject, or one that holds no IRI as predicate (the
// place is then taken for free), and it reads constants anew and wrongly. It
// lets paths in, though, and hands them what is bound: a path of ours that
// matches nothing or one pair is a test in the middle of a pattern.

// probe is such a path: ok sees what is bound to its object (and subject).
type probe struct {
	paths.URIRefPath
	ok func(s term.Subject, o term.Term) bool
}

func (p *probe) Eval(_ *graph.Graph, s term.Subject, o term.Term) func(func(term.Term, term.Term) bool) {
	return func(yield func(term.Term, term.Term) bool) {
		if p.ok(s, o) {
			yield(s, o)
		}
	}
}

// constant binds its object, a fresh variable, to a term.
type constant struct {
	paths.URIRefPath
	t term.Term
}

func (c *constant) Eval(_ *graph.Graph, s term.Subject, _ term.Term) func(func(term.Term, term.Term) bool) {
	return func(yield func(term.Term, term.Term) bool) { yield(s, c.t) }
}

const nowhere = "<urn:rsbridge:engine:probe>"

func test(v string, ok func(term.Term) bool) sparql.Triple {
	return sparql.Triple{Subject: nowhere, Object: v, PredicatePath: &probe{ok: func(_ term.Subject, o term.Term) bool { return ok(o) }}}
}

func notLiteral(t term.Term) bool { _, ok := t.(term.Literal); return !ok }
func isIRI(t term.Term) bool      { _, ok := t.(term.URIRef); return ok }

// mender finishes a tree for the evaluator.
type mender struct {
	e *evaluation
	// literal are the variables that may hold a literal, odd those that may
	// hold something that is no IRI; by name, whatever the scope.
	literal, odd set
	// ends counts the paths from a variable that may give literals to it (of
	// length zero, or backwards): another pattern would not take them.
	ends map[string]int
}

// look finds literal and odd.
func (m *mender) look(p sparql.Pattern) {
	put := func(v string) { m.literal[v], m.odd[v] = true, true }
	expr := func(x sparql.Expr) { m.exists(x, m.look) }
	switch p := p.(type) {
	case *sparql.BGP:
		for _, t := range p.Triples {
			if isVar(t.Subject) {
				m.odd[t.Subject[1:]] = true
			}
			if isVar(t.Object) {
				put(t.Object[1:])
			}
			if w, ok := t.PredicatePath.(*walk); ok && w.literals && isVar(t.Subject) {
				m.ends[t.Subject[1:]]++
			}
		}
	case *sparql.JoinPattern:
		m.look(p.Left)
		m.look(p.Right)
	case *sparql.OptionalPattern:
		m.look(p.Main)
		m.look(p.Optional)
	case *sparql.UnionPattern:
		m.look(p.Left)
		m.look(p.Right)
	case *sparql.MinusPattern:
		m.look(p.Left)
		m.look(p.Right)
	case *sparql.FilterPattern:
		m.look(p.Pattern)
		expr(p.Expr)
	case *sparql.BindPattern:
		m.look(p.Pattern)
		put(p.Var)
	case *sparql.GraphPattern:
		m.look(p.Pattern)
	case *sparql.ValuesPattern:
		for _, row := range p.Values {
			for i, t := range row {
				if t != nil && !isIRI(t) {
					m.odd[p.Vars[i]] = true
					m.literal[p.Vars[i]] = m.literal[p.Vars[i]] || !notLiteral(t)
				}
			}
		}
	case *sparql.SubqueryPattern:
		m.look(p.Query.Where)
		for _, pe := range p.Query.ProjectExprs {
			put(pe.Var)
		}
	}
}

func (m *mender) exists(x sparql.Expr, do func(sparql.Pattern)) {
	switch x := x.(type) {
	case *sparql.ExistsExpr:
		do(x.Pattern)
	case *sparql.BinaryExpr:
		m.exists(x.Left, do)
		m.exists(x.Right, do)
	case *sparql.UnaryExpr:
		m.exists(x.Arg, do)
	}
}

// pattern finishes p; bound are variables that surely hold something when the
// evaluator comes to a BGP that stands at p.
func (m *mender) pattern(p sparql.Pattern, bound set) (sparql.Pattern, error) {
	none := set{}
	var err error
	sub := func(in sparql.Pattern, bound set) (out sparql.Pattern) {
		if err == nil {
			out, err = m.pattern(in, bound)
		}
		return out
	}
	switch p := p.(type) {
	case *sparql.BGP:
		return m.bgp(p, bound)
	case *sparql.JoinPattern:
		return &sparql.JoinPattern{Left: sub(p.Left, none), Right: sub(p.Right, scopeOf(p.Left).certain)}, err
	case *sparql.OptionalPattern:
		main := scopeOf(p.Main)
		if f, ok := p.Optional.(*sparql.FilterPattern); ok {
			return m.conditions(p, f, main)
		}
		return &sparql.OptionalPattern{Main: sub(p.Main, none), Optional: sub(p.Optional, main.certain)}, err
	case *sparql.UnionPattern:
		return &sparql.UnionPattern{Left: sub(p.Left, none), Right: sub(p.Right, none)}, err
	case *sparql.MinusPattern:
		return &sparql.MinusPattern{Left: sub(p.Left, none), Right: sub(p.Right, none)}, err
	case *sparql.FilterPattern:
		x, err2 := m.condition(p.Expr, false, scopeOf(p.Pattern))
		if err2 != nil {
			return nil, err2
		}
		return &sparql.FilterPattern{Pattern: sub(p.Pattern, none), Expr: x}, err
	case *sparql.BindPattern:
		x, err2 := m.value(p.Expr)
		if err2 != nil {
			return nil, err2
		}
		return &sparql.BindPattern{Pattern: sub(p.Pattern, none), Expr: x, Var: p.Var}, err
	case *sparql.GraphPattern:
		in := none
		if isVar(p.Name) {
			in = set{p.Name[1:]: true}
		}
		return &sparql.GraphPattern{Name: p.Name, Pattern: sub(p.Pattern, in)}, err
	case *sparql.SubqueryPattern:
		q, err := m.query(p.Query, true)
		return &sparql.SubqueryPattern{Query: q}, err
	}
	return p, nil
}

// conditions finishes OPTIONAL { BGP FILTER ... }: the filters see the left
// side (LeftJoin of section 18.5), which the evaluator does not show them, so
// that they become tests within the BGP.
func (m *mender) conditions(p *sparql.OptionalPattern, f *sparql.FilterPattern, main *scope) (sparql.Pattern, error) {
	var exprs []sparql.Expr
	var in sparql.Pattern = f
	for {
		f, ok := in.(*sparql.FilterPattern)
		if !ok {
			break
		}
		exprs = append(exprs, f.Expr)
		in = f.Pattern
	}
	b, ok := in.(*sparql.BGP)
	for _, x := range exprs {
		if m.e.nested && !mentioned(x, set{}).subset(scopeOf(in).all) {
			return nil, refuse("an OPTIONAL whose FILTER may belong to a group within it: the parser does not tell")
		}
	}
	scope := scopeOf(&sparql.JoinPattern{Left: p.Main, Right: in})
	if !ok {
		for _, x := range exprs {
			if !mentioned(x, set{}).subset(scopeOf(in).certain) {
				return nil, refuse("the condition of an OPTIONAL with more than triple patterns, over variables that it does not surely bind")
			}
		}
		left, err := m.pattern(p.Main, set{})
		if err != nil {
			return nil, err
		}
		var right sparql.Pattern
		if right, err = m.pattern(in, main.certain); err != nil {
			return nil, err
		}
		for _, x := range exprs {
			if x, err = m.condition(x, false, scope); err != nil {
				return nil, err
			}
			right = &sparql.FilterPattern{Pattern: right, Expr: x}
		}
		return &sparql.OptionalPattern{Main: left, Optional: right}, nil
	}
	left, err := m.pattern(p.Main, set{})
	if err != nil {
		return nil, err
	}
	right, err := m.bgp(b, main.certain)
	if err != nil {
		return nil, err
	}
	for _, x := range exprs {
		vars := mentioned(x, set{})
		if !vars.subset(scope.certain) {
			// What neither side has is unbound; the rest must be there.
			if !vars.and(scope.all).subset(scope.certain) {
				return nil, refuse("the condition of an OPTIONAL over variables that may be unbound")
			}
		}
		if hasExists(x) {
			return nil, refuse("EXISTS in the condition of an OPTIONAL")
		}
		x, err := m.condition(x, false, scope)
		if err != nil {
			return nil, err
		}
		right.Triples = append(right.Triples, m.e.tests(x, vars.and(scope.all))...)
	}
	return &sparql.OptionalPattern{Main: left, Optional: right}, nil
}

// tests are triples that let a row pass when x is true. The values of the
// variables are caught one by one: the evaluator goes depth first.
func (e *evaluation) tests(x sparql.Expr, vars set) (out []sparql.Triple) {
	row := map[string]term.Term{}
	for v := range vars {
		out = append(out, test("?"+v, func(t term.Term) bool { row[v] = t; return true }))
	}
	values := &sparql.ValuesPattern{}
	for v := range vars {
		values.Vars = append(values.Vars, v)
	}
	out = append(out, sparql.Triple{Subject: nowhere, Object: e.fresh(), PredicatePath: &decide{e: e, row: row, x: x, vars: values.Vars}})
	return out
}

// decide evaluates an expression over what was caught.
type decide struct {
	paths.URIRefPath
	e    *evaluation
	row  map[string]term.Term
	vars []string
	x    sparql.Expr
}

func (d *decide) Eval(_ *graph.Graph, s term.Subject, _ term.Term) func(func(term.Term, term.Term) bool) {
	return func(yield func(term.Term, term.Term) bool) {
		var vals []term.Term
		for _, v := range d.vars {
			vals = append(vals, d.row[v])
		}
		r, err := sparql.EvalQuery(d.e.def, &sparql.ParsedQuery{Type: "ASK", Limit: -1, Where: &sparql.FilterPattern{
			Pattern: &sparql.ValuesPattern{Vars: d.vars, Values: [][]term.Term{vals}}, Expr: d.x}}, nil)
		if err == nil && r.AskResult {
			yield(s, s)
		}
	}
}

// bgp orders the triples, those with most that is known first, and puts
// constants and tests between them.
func (m *mender) bgp(b *sparql.BGP, bound set) (*sparql.BGP, error) {
	out := &sparql.BGP{}
	known := set{}
	for v := range bound {
		known[v] = true
	}
	rest := append([]sparql.Triple(nil), b.Triples...)
	is := func(x string) bool { return x == "" || !isVar(x) || known[x[1:]] }
	for len(rest) > 0 {
		best, bestScore := 0, -1
		for i, t := range rest {
			score := 0
			if is(t.Subject) {
				score += 8
			}
			if is(t.Object) {
				score += 6
			}
			if t.PredicatePath == nil {
				score++
				if is(t.Predicate) {
					score++
				}
			}
			if score > bestScore {
				best, bestScore = i, score
			}
		}
		t := rest[best]
		rest = append(rest[:best], rest[best+1:]...)
		if err := m.triple(out, t, known); err != nil {
			return nil, err
		}
		for _, x := range []string{t.Subject, t.Predicate, t.Object} {
			if isVar(x) {
				known[x[1:]] = true
			}
		}
	}
	return out, nil
}

func (m *mender) triple(out *sparql.BGP, t sparql.Triple, known set) error {
	var after []sparql.Triple
	guard := func(v string, ok func(term.Term) bool) {
		if known[v[1:]] {
			out.Triples = append(out.Triples, test(v, ok))
		} else {
			after = append(after, test(v, ok))
		}
	}
	same := func(first string) string {
		v := m.e.fresh()
		after = append(after, sparql.Triple{Subject: first, Object: v, PredicatePath: &probe{ok: func(s term.Subject, o term.Term) bool {
			return s != nil && term.TermKey(s) == term.TermKey(o)
		}}})
		return v
	}
	if w, ok := t.PredicatePath.(*walk); ok && w.literals && isVar(t.Subject) {
		if v := t.Subject[1:]; !m.literal[v] && m.ends[v] == 1 {
			out.Triples = append(out.Triples, t)
			return nil
		}
		return refuse("a path of length zero, or with steps backwards, from a variable that may hold a literal")
	}
	for _, c := range []*string{&t.Object, &t.Subject} {
		if strings.HasPrefix(*c, `"`) {
			v := m.e.fresh()
			out.Triples = append(out.Triples, sparql.Triple{Subject: nowhere, Object: v, PredicatePath: &constant{t: m.e.to(rdfres.Term(*c))}})
			*c = v
			if c == &t.Subject {
				out.Triples = append(out.Triples, test(v, notLiteral))
			}
		}
	}
	subject := t.Subject
	if isVar(t.Subject) && (m.literal[t.Subject[1:]] || m.ends[t.Subject[1:]] > 0) {
		guard(t.Subject, notLiteral)
	}
	if isVar(t.Predicate) {
		if m.odd[t.Predicate[1:]] {
			guard(t.Predicate, isIRI)
		}
		if t.Predicate == t.Object {
			t.Object = same(t.Predicate)
		}
		if t.Predicate == subject {
			t.Predicate = same(subject)
		}
	}
	if isVar(t.Object) && t.Object == subject {
		t.Object = same(subject)
	}
	out.Triples = append(append(out.Triples, t), after...)
	return nil
}
