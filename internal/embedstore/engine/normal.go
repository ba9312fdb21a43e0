package engine

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/tggo/goRDFlib/paths"
	"github.com/tggo/goRDFlib/sparql"
	"github.com/tggo/goRDFlib/term"
)

// normalizer makes the parser's tree plain: the positions of triples become
// variables ("?x") or canonical terms, blank nodes become variables, sequences
// and inverses of paths become triples, relative IRIs absolute ones.
type normalizer struct {
	e        *evaluation
	prefixes map[string]string
	base     string
}

func isVar(s string) bool { return strings.HasPrefix(s, "?") }

// fresh gives a variable that no text can have.
func (e *evaluation) fresh() string {
	e.names++
	return fmt.Sprintf("?__%d", e.names)
}

func (n *normalizer) iri(iri string) (string, error) {
	if u, err := url.Parse(iri); err == nil && u.Scheme != "" || n.base == "" {
		if err == nil && u.Scheme == "" {
			return "", fmt.Errorf("the relative IRI <%s> has no base: add BASE", iri)
		}
		return iri, nil
	} else if b, berr := url.Parse(n.base); err == nil && berr == nil {
		return b.ResolveReference(u).String(), nil
	}
	return "", fmt.Errorf("the relative IRI <%s> cannot be resolved against <%s>", iri, n.base)
}

// position reads a token of the parser.
func (n *normalizer) position(s string) (string, error) {
	switch {
	case s == "":
		return "", refuse("a pattern that goRDFlib's parser does not understand")
	case isVar(s):
		if strings.HasPrefix(s, "?_coll") || strings.HasPrefix(s, "?_reifier") {
			return "", refuse("collections and reifiers in patterns")
		}
		return s, nil
	case strings.HasPrefix(s, "_:"):
		return "?_bnode_" + s[2:], nil
	case strings.HasPrefix(s, "<<"):
		return "", refuse("triple terms")
	case s[0] == '<':
		iri, err := n.iri(s[1 : len(s)-1])
		return string(rdfres.NewIRI(iri)), err
	case s[0] == '"' || s[0] == '\'':
		return n.literal(s)
	case s == "true" || s == "false":
		return string(rdfres.NewLiteral(s, "", xsdNS+"boolean")), nil
	case strings.IndexByte("+-.0123456789", s[0]) >= 0 && !strings.Contains(s, ":"):
		dt := "integer"
		if strings.ContainsAny(s, "eE") {
			dt = "double"
		} else if strings.Contains(s, ".") {
			dt = "decimal"
		}
		return string(rdfres.NewLiteral(s, "", xsdNS+dt)), nil
	}
	return n.name(s)
}

func (n *normalizer) name(s string) (string, error) {
	prefix, local, ok := strings.Cut(s, ":")
	ns, known := n.prefixes[prefix]
	if !ok || !known {
		return "", fmt.Errorf("the prefix of %q is not declared", s)
	}
	iri, err := n.iri(ns + local)
	return string(rdfres.NewIRI(iri)), err
}

// literal reads a string without escapes: checkText has refused those.
func (n *normalizer) literal(s string) (string, error) {
	quote := s[:1]
	if len(s) >= 6 && s[1] == s[0] && s[2] == s[0] {
		quote = s[:3]
	}
	lexical, rest, ok := strings.Cut(s[len(quote):], quote)
	switch {
	case !ok:
		return "", refuse("the literal %s", s)
	case rest == "":
		return string(rdfres.NewLiteral(lexical, "", "")), nil
	case rest[0] == '@':
		return string(rdfres.NewLiteral(lexical, rest[1:], "")), nil
	case strings.HasPrefix(rest, "^^<"):
		iri, err := n.iri(rest[3 : len(rest)-1])
		return string(rdfres.NewLiteral(lexical, "", iri)), err
	case strings.HasPrefix(rest, "^^"):
		t, err := n.name(rest[2:])
		return string(rdfres.NewLiteral(lexical, "", rdfres.Term(t).IRI())), err
	}
	return "", refuse("the literal %s", s)
}

func (n *normalizer) triple(t sparql.Triple) ([]sparql.Triple, error) {
	s, err := n.position(t.Subject)
	if err != nil {
		return nil, err
	}
	o, err := n.position(t.Object)
	if err != nil {
		return nil, err
	}
	if t.PredicatePath == nil {
		p, err := n.position(t.Predicate)
		return []sparql.Triple{{Subject: s, Predicate: p, Object: o}}, err
	}
	return n.path(s, t.PredicatePath, o)
}

// path translates what section 18.2.2.4 translates; the rest is ours (closure)
// or goRDFlib's.
func (n *normalizer) path(s string, p paths.Path, o string) ([]sparql.Triple, error) {
	switch p := p.(type) {
	case paths.URIRefPath:
		iri, err := n.iri(p.URI.Value())
		return []sparql.Triple{{Subject: s, Predicate: string(rdfres.NewIRI(iri)), Object: o}}, err
	case *paths.InvPath:
		return n.path(o, p.Arg, s)
	case *paths.SequencePath:
		var out []sparql.Triple
		for i, part := range p.Args {
			to := o
			if i < len(p.Args)-1 {
				to = n.e.fresh()
			}
			ts, err := n.path(s, part, to)
			if err != nil {
				return nil, err
			}
			out = append(out, ts...)
			s = to
		}
		return out, nil
	}
	step, err := n.e.stepOf(n, p)
	if err != nil {
		return nil, err
	}
	return []sparql.Triple{{Subject: s, Object: o, PredicatePath: &walk{e: n.e, step: step, literals: fromLiteral(p)}}}, nil
}

func (n *normalizer) pattern(p sparql.Pattern) (sparql.Pattern, error) {
	var err error
	sub := func(in sparql.Pattern) (out sparql.Pattern) {
		if err == nil {
			out, err = n.pattern(in)
		}
		return out
	}
	expr := func(in sparql.Expr) (out sparql.Expr) {
		if err == nil {
			out, err = n.expr(in)
		}
		return out
	}
	switch p := p.(type) {
	case nil:
		return &sparql.BGP{}, nil
	case *sparql.BGP:
		out := &sparql.BGP{}
		for _, t := range p.Triples {
			ts, err := n.triple(t)
			if err != nil {
				return nil, err
			}
			out.Triples = append(out.Triples, ts...)
		}
		return out, nil
	case *sparql.JoinPattern:
		return &sparql.JoinPattern{Left: sub(p.Left), Right: sub(p.Right)}, err
	case *sparql.OptionalPattern:
		return &sparql.OptionalPattern{Main: sub(p.Main), Optional: sub(p.Optional)}, err
	case *sparql.UnionPattern:
		return &sparql.UnionPattern{Left: sub(p.Left), Right: sub(p.Right)}, err
	case *sparql.MinusPattern:
		return &sparql.MinusPattern{Left: sub(p.Left), Right: sub(p.Right)}, err
	case *sparql.FilterPattern:
		return &sparql.FilterPattern{Pattern: sub(p.Pattern), Expr: expr(p.Expr)}, err
	case *sparql.BindPattern:
		return &sparql.BindPattern{Pattern: sub(p.Pattern), Expr: expr(p.Expr), Var: p.Var}, err
	case *sparql.ValuesPattern:
		out := &sparql.ValuesPattern{Vars: p.Vars}
		for _, row := range p.Values {
			var to []term.Term
			for _, t := range row {
				if u, ok := t.(term.URIRef); ok {
					iri, err := n.iri(u.Value())
					if err != nil {
						return nil, err
					}
					t = n.e.to(rdfres.NewIRI(iri))
				} else if t != nil {
					t = n.e.to(n.e.from(t))
				}
				to = append(to, t)
			}
			out.Values = append(out.Values, to)
		}
		return out, nil
	case *sparql.GraphPattern:
		name, err2 := n.position(p.Name)
		if err2 != nil {
			return nil, err2
		}
		return &sparql.GraphPattern{Name: name, Pattern: sub(p.Pattern)}, err
	case *sparql.SubqueryPattern:
		q, err := n.query(p.Query)
		return &sparql.SubqueryPattern{Query: q}, err
	}
	return nil, refuse("the pattern %T", p)
}

func (n *normalizer) expr(x sparql.Expr) (sparql.Expr, error) {
	switch x := x.(type) {
	case *sparql.IRIExpr:
		iri, err := n.iri(x.Value)
		t := rdfres.NewIRI(iri)
		return &sparql.IRIExpr{Value: string(t[1 : len(t)-1])}, err
	case *sparql.LiteralExpr:
		if u, ok := x.Value.(term.URIRef); ok {
			return n.expr(&sparql.IRIExpr{Value: u.Value()})
		}
		return &sparql.LiteralExpr{Value: n.e.to(n.e.from(x.Value))}, nil
	case *sparql.BinaryExpr:
		l, err := n.expr(x.Left)
		if err != nil {
			return nil, err
		}
		r, err := n.expr(x.Right)
		return &sparql.BinaryExpr{Op: x.Op, Left: l, Right: r}, err
	case *sparql.UnaryExpr:
		a, err := n.expr(x.Arg)
		return &sparql.UnaryExpr{Op: x.Op, Arg: a}, err
	case *sparql.FuncExpr:
		out := *x
		out.Args = nil
		for _, a := range x.Args {
			a, err := n.expr(a)
			if err != nil {
				return nil, err
			}
			out.Args = append(out.Args, a)
		}
		return &out, nil
	case *sparql.ExistsExpr:
		p, err := n.pattern(x.Pattern)
		return &sparql.ExistsExpr{Pattern: p, Not: x.Not}, err
	}
	return x, nil
}

// query normalizes a SELECT and tells the columns of SELECT *.
func (n *normalizer) query(q *sparql.ParsedQuery) (*sparql.ParsedQuery, error) {
	out := *q
	var err error
	if out.Where, err = n.pattern(q.Where); err != nil {
		return nil, err
	}
	out.ProjectExprs, out.GroupBy, out.OrderBy = nil, nil, nil
	for _, pe := range q.ProjectExprs {
		x, err := n.expr(pe.Expr)
		if err != nil {
			return nil, err
		}
		out.ProjectExprs = append(out.ProjectExprs, sparql.ProjectExpr{Expr: x, Var: pe.Var})
	}
	for _, g := range q.GroupBy {
		x, err := n.expr(g)
		if err != nil {
			return nil, err
		}
		out.GroupBy = append(out.GroupBy, x)
	}
	for _, ob := range q.OrderBy {
		x, err := n.expr(ob.Expr)
		if err != nil {
			return nil, err
		}
		out.OrderBy = append(out.OrderBy, sparql.OrderExpr{Expr: x, Desc: ob.Desc})
	}
	if q.Having != nil {
		if out.Having, err = n.expr(q.Having); err != nil {
			return nil, err
		}
	}
	if out.Variables == nil {
		out.Variables = []string{}
		for _, v := range scopeOf(out.Where).order {
			if !strings.HasPrefix(v, "_bnode") && !strings.HasPrefix(v, "__") {
				out.Variables = append(out.Variables, v)
			}
		}
	}
	out.BaseURI = ""
	return &out, nil
}
