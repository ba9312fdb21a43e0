package engine

import (
	"github.com/tggo/goRDFlib/sparql"
	"github.com/tggo/goRDFlib/term"
)

// The evaluator looks up what a row of the left side holds only when the right
// side of a join is a BGP; any other right side is computed whole for each row.
// pusher moves joins inwards, to where they meet a BGP or VALUES. The rules hold
// for multisets of solutions; "safe" is that the variables which a part looks at
// and the newcomer has are surely bound in that part already, so that joining
// before or after is the same.
type pusher struct {
	e     *evaluation
	nodes int // made by distributing over UNION
	steps int
}

// maxNodes bounds the tree: each UNION doubles what is joined with it. It bounds
// the steps too.
const maxNodes = 2000

func (u *pusher) pattern(p sparql.Pattern) sparql.Pattern {
	switch p := p.(type) {
	case *sparql.JoinPattern:
		return u.join(u.pattern(p.Left), u.pattern(p.Right))
	case *sparql.UnionPattern:
		return &sparql.UnionPattern{Left: u.pattern(p.Left), Right: u.pattern(p.Right)}
	case *sparql.FilterPattern:
		return &sparql.FilterPattern{Pattern: u.pattern(p.Pattern), Expr: p.Expr}
	case *sparql.BindPattern:
		return &sparql.BindPattern{Pattern: u.pattern(p.Pattern), Expr: p.Expr, Var: p.Var}
	case *sparql.OptionalPattern:
		main := u.pattern(p.Main)
		if f, ok := p.Optional.(*sparql.FilterPattern); ok {
			return &sparql.OptionalPattern{Main: main, Optional: u.filters(f)}
		}
		return &sparql.OptionalPattern{Main: main, Optional: u.pattern(p.Optional)}
	case *sparql.MinusPattern:
		return u.minus(u.pattern(p.Left), u.pattern(p.Right))
	case *sparql.GraphPattern:
		return &sparql.GraphPattern{Name: p.Name, Pattern: u.pattern(p.Pattern)}
	case *sparql.SubqueryPattern:
		q := *p.Query
		q.Where = u.pattern(q.Where)
		return &sparql.SubqueryPattern{Query: &q}
	}
	return p
}

// filters keeps the filters of an OPTIONAL on its outside, where mender.conditions
// looks for them.
func (u *pusher) filters(f *sparql.FilterPattern) sparql.Pattern {
	if in, ok := f.Pattern.(*sparql.FilterPattern); ok {
		return &sparql.FilterPattern{Pattern: u.filters(in), Expr: f.Expr}
	}
	return &sparql.FilterPattern{Pattern: u.pattern(f.Pattern), Expr: f.Expr}
}

// minus becomes NOT EXISTS, which is looked up row by row, where both say the
// same: each row has all that the two sides share.
func (u *pusher) minus(l, r sparql.Pattern) sparql.Pattern {
	b, ok := r.(*sparql.BGP)
	if ok {
		ls := scopeOf(l)
		shared := scopeOf(b).all.and(ls.all)
		if len(shared) > 0 && shared.subset(ls.certain) {
			return &sparql.FilterPattern{Pattern: l, Expr: &sparql.ExistsExpr{Pattern: b, Not: true}}
		}
	}
	return &sparql.MinusPattern{Left: l, Right: r}
}

// safe tells whether joining p with what has the variables of other may come
// before a part that looks at vars.
func safe(vars set, other *scope, p *scope) bool { return vars.and(other.all).subset(p.certain) }

func (u *pusher) join(l, r sparql.Pattern) sparql.Pattern {
	if u.steps++; u.steps > maxNodes {
		return &sparql.JoinPattern{Left: l, Right: r}
	}
	lb, lBGP := l.(*sparql.BGP)
	rb, rBGP := r.(*sparql.BGP)
	lv, lValues := l.(*sparql.ValuesPattern)
	rv, rValues := r.(*sparql.ValuesPattern)
	switch {
	case lBGP && len(lb.Triples) == 0:
		return r
	case rBGP && len(rb.Triples) == 0:
		return l
	case lBGP && rBGP:
		return &sparql.BGP{Triples: append(append([]sparql.Triple(nil), lb.Triples...), rb.Triples...)}
	case lValues && rValues:
		return u.product(lv, rv)
	case lValues && rBGP:
		return &sparql.JoinPattern{Left: l, Right: r}
	case lBGP && rValues:
		return &sparql.JoinPattern{Left: r, Right: l}
	case rValues:
		l, r = r, l
	}
	ls, rs := scopeOf(l), scopeOf(r)
	// What stands around a side goes around the join.
	for range 2 {
		switch x := r.(type) {
		case *sparql.FilterPattern:
			if safe(mentioned(x.Expr, set{}), ls, scopeOf(x.Pattern)) {
				return &sparql.FilterPattern{Pattern: u.join(l, x.Pattern), Expr: x.Expr}
			}
		case *sparql.BindPattern:
			if !ls.all[x.Var] && safe(mentioned(x.Expr, set{}), ls, scopeOf(x.Pattern)) {
				return &sparql.BindPattern{Pattern: u.join(l, x.Pattern), Expr: x.Expr, Var: x.Var}
			}
		case *sparql.OptionalPattern:
			if safe(within(x.Optional, set{}), ls, scopeOf(x.Main)) {
				return &sparql.OptionalPattern{Main: u.join(l, x.Main), Optional: x.Optional}
			}
		case *sparql.MinusPattern:
			if safe(within(x.Right, set{}), ls, scopeOf(x.Left)) {
				return &sparql.MinusPattern{Left: u.join(l, x.Left), Right: x.Right}
			}
		case *sparql.UnionPattern:
			if u.nodes += size(l); u.nodes <= maxNodes {
				return &sparql.UnionPattern{Left: u.join(l, x.Left), Right: u.join(l, x.Right)}
			}
		case *sparql.GraphPattern:
			if y, ok := l.(*sparql.GraphPattern); ok && y.Name == x.Name {
				return &sparql.GraphPattern{Name: x.Name, Pattern: u.join(y.Pattern, x.Pattern)}
			}
			if _, ok := l.(*sparql.ValuesPattern); ok {
				return &sparql.GraphPattern{Name: x.Name, Pattern: u.join(l, x.Pattern)}
			}
		}
		l, r, ls, rs = r, l, rs, ls
	}
	// A chain of joins takes the newcomer at its near end when that is VALUES.
	if j, ok := r.(*sparql.JoinPattern); ok {
		if _, values := l.(*sparql.ValuesPattern); values {
			if v, ok := j.Right.(*sparql.ValuesPattern); ok {
				return &sparql.JoinPattern{Left: j.Left, Right: u.product(l.(*sparql.ValuesPattern), v)}
			}
			if v, ok := j.Left.(*sparql.ValuesPattern); ok {
				return &sparql.JoinPattern{Left: u.product(l.(*sparql.ValuesPattern), v), Right: j.Right}
			}
		}
		return u.join(u.join(l, j.Left), j.Right)
	}
	if _, ok := l.(*sparql.BGP); ok {
		l, r = r, l
	}
	if b, ok := r.(*sparql.BGP); ok {
		if j, ok := l.(*sparql.JoinPattern); ok {
			if jb, ok := j.Right.(*sparql.BGP); ok {
				return &sparql.JoinPattern{Left: j.Left, Right: u.join(jb, b)}
			}
		}
		return &sparql.JoinPattern{Left: l, Right: r}
	}
	if _, ok := l.(*sparql.ValuesPattern); ok {
		return &sparql.JoinPattern{Left: r, Right: l}
	}
	return &sparql.JoinPattern{Left: l, Right: r}
}

// product joins two VALUES now.
func (u *pusher) product(a, b *sparql.ValuesPattern) *sparql.ValuesPattern {
	out := &sparql.ValuesPattern{Vars: append([]string(nil), a.Vars...)}
	at := map[string]int{}
	for i, v := range a.Vars {
		at[v] = i
	}
	for _, v := range b.Vars {
		if _, ok := at[v]; !ok {
			at[v] = len(out.Vars)
			out.Vars = append(out.Vars, v)
		}
	}
	for _, x := range a.Values {
		u.e.alive()
	next:
		for _, y := range b.Values {
			row := make([]term.Term, len(out.Vars))
			copy(row, x)
			for i, t := range y {
				k := at[b.Vars[i]]
				if t == nil {
					continue
				}
				if row[k] != nil && term.TermKey(row[k]) != term.TermKey(t) {
					continue next
				}
				row[k] = t
			}
			u.e.spend(1)
			out.Values = append(out.Values, row)
		}
	}
	return out
}

func size(p sparql.Pattern) int {
	switch p := p.(type) {
	case *sparql.JoinPattern:
		return 1 + size(p.Left) + size(p.Right)
	case *sparql.UnionPattern:
		return 1 + size(p.Left) + size(p.Right)
	case *sparql.OptionalPattern:
		return 1 + size(p.Main) + size(p.Optional)
	case *sparql.MinusPattern:
		return 1 + size(p.Left) + size(p.Right)
	case *sparql.FilterPattern:
		return 1 + size(p.Pattern)
	case *sparql.BindPattern:
		return 1 + size(p.Pattern)
	case *sparql.GraphPattern:
		return 1 + size(p.Pattern)
	case *sparql.ValuesPattern:
		return 1
	}
	return 1
}
