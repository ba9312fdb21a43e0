package engine

import (
	"slices"

	"github.com/tggo/goRDFlib/sparql"
	"github.com/tggo/goRDFlib/term"
)

type set map[string]bool

func (s set) subset(of set) bool {
	for v := range s {
		if !of[v] {
			return false
		}
	}
	return true
}

func (s set) and(o set) set {
	out := set{}
	for v := range s {
		if o[v] {
			out[v] = true
		}
	}
	return out
}

// scope is what is known of the variables of a pattern.
type scope struct {
	all     set // in scope (section 18.2.1)
	certain set // bound in every solution
	order   []string
}

func (s *scope) add(v string, certain bool) {
	if !s.all[v] {
		s.all[v] = true
		s.order = append(s.order, v)
	}
	if certain {
		s.certain[v] = true
	}
}

func (s *scope) merge(o *scope, certain bool) {
	for _, v := range o.order {
		s.add(v, certain && o.certain[v])
	}
}

func scopeOf(p sparql.Pattern) *scope {
	s := &scope{all: set{}, certain: set{}}
	switch p := p.(type) {
	case *sparql.BGP:
		for _, t := range p.Triples {
			for _, x := range []string{t.Subject, t.Predicate, t.Object} {
				if isVar(x) {
					s.add(x[1:], true)
				}
			}
		}
	case *sparql.JoinPattern:
		s.merge(scopeOf(p.Left), true)
		s.merge(scopeOf(p.Right), true)
	case *sparql.OptionalPattern:
		s.merge(scopeOf(p.Main), true)
		s.merge(scopeOf(p.Optional), false)
	case *sparql.UnionPattern:
		l, r := scopeOf(p.Left), scopeOf(p.Right)
		s.merge(l, false)
		s.merge(r, false)
		s.certain = l.certain.and(r.certain)
	case *sparql.MinusPattern:
		return scopeOf(p.Left)
	case *sparql.FilterPattern:
		return scopeOf(p.Pattern)
	case *sparql.BindPattern:
		s.merge(scopeOf(p.Pattern), true)
		s.add(p.Var, false)
	case *sparql.GraphPattern:
		s.merge(scopeOf(p.Pattern), true)
		if isVar(p.Name) {
			s.add(p.Name[1:], true)
		}
	case *sparql.ValuesPattern:
		for i, v := range p.Vars {
			s.add(v, !slices.ContainsFunc(p.Values, func(row []term.Term) bool { return row[i] == nil }))
		}
	case *sparql.SubqueryPattern:
		in := scopeOf(p.Query.Where)
		made := set{}
		for _, pe := range p.Query.ProjectExprs {
			made[pe.Var] = true
		}
		grouped := grouped(p.Query)
		keys := set{}
		for _, g := range p.Query.GroupBy {
			if v, ok := g.(*sparql.VarExpr); ok {
				keys[v.Name] = true
			}
		}
		for _, v := range p.Query.Variables {
			s.add(v, in.certain[v] && !made[v] && (!grouped || keys[v]))
		}
	}
	return s
}

func grouped(q *sparql.ParsedQuery) bool {
	if len(q.GroupBy) > 0 || q.Having != nil {
		return true
	}
	return slices.ContainsFunc(q.ProjectExprs, func(pe sparql.ProjectExpr) bool { return hasAggregate(pe.Expr) })
}

func hasAggregate(x sparql.Expr) bool {
	switch x := x.(type) {
	case *sparql.FuncExpr:
		switch x.Name {
		case "COUNT", "SUM", "AVG", "MIN", "MAX", "GROUP_CONCAT", "SAMPLE":
			return true
		}
		return slices.ContainsFunc(x.Args, hasAggregate)
	case *sparql.BinaryExpr:
		return hasAggregate(x.Left) || hasAggregate(x.Right)
	case *sparql.UnaryExpr:
		return hasAggregate(x.Arg)
	}
	return false
}

// mentioned are the variables of an expression, those within EXISTS among them.
func mentioned(x sparql.Expr, out set) set {
	switch x := x.(type) {
	case *sparql.VarExpr:
		out[x.Name] = true
	case *sparql.BinaryExpr:
		mentioned(x.Left, out)
		mentioned(x.Right, out)
	case *sparql.UnaryExpr:
		mentioned(x.Arg, out)
	case *sparql.FuncExpr:
		for _, a := range x.Args {
			mentioned(a, out)
		}
	case *sparql.ExistsExpr:
		within(x.Pattern, out)
	}
	return out
}

// within are all variables of a pattern, those of its filters among them.
func within(p sparql.Pattern, out set) set {
	for v := range scopeOf(p).all {
		out[v] = true
	}
	switch p := p.(type) {
	case *sparql.JoinPattern:
		within(p.Left, out)
		within(p.Right, out)
	case *sparql.OptionalPattern:
		within(p.Main, out)
		within(p.Optional, out)
	case *sparql.UnionPattern:
		within(p.Left, out)
		within(p.Right, out)
	case *sparql.MinusPattern:
		within(p.Left, out)
		within(p.Right, out)
	case *sparql.FilterPattern:
		within(p.Pattern, out)
		mentioned(p.Expr, out)
	case *sparql.BindPattern:
		within(p.Pattern, out)
		mentioned(p.Expr, out)
	case *sparql.GraphPattern:
		within(p.Pattern, out)
	}
	return out
}
