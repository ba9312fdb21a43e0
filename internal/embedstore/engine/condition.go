package engine

import (
	"strings"

	"github.com/tggo/goRDFlib/sparql"
	"github.com/tggo/goRDFlib/term"
)

// Expressions. goRDFlib takes errors for false nearly everywhere, which a
// negation turns to true, and compares literals by their letters. Conditions
// are written without negations of && and ||, each comparison guarded so that
// an error is false; without negation above it, false serves as well as error.

func hasExists(x sparql.Expr) bool {
	switch x := x.(type) {
	case *sparql.ExistsExpr:
		return true
	case *sparql.BinaryExpr:
		return hasExists(x.Left) || hasExists(x.Right)
	case *sparql.UnaryExpr:
		return hasExists(x.Arg)
	case *sparql.FuncExpr:
		for _, a := range x.Args {
			if hasExists(a) {
				return true
			}
		}
	}
	return false
}

func call(name string, args ...sparql.Expr) sparql.Expr {
	return &sparql.FuncExpr{Name: name, Args: args}
}

func and(xs ...sparql.Expr) sparql.Expr {
	x := xs[0]
	for _, y := range xs[1:] {
		x = &sparql.BinaryExpr{Op: "&&", Left: x, Right: y}
	}
	return x
}

func not(x sparql.Expr, neg bool) sparql.Expr {
	if neg {
		return &sparql.UnaryExpr{Op: "!", Arg: x}
	}
	return x
}

var negated = map[string]string{"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}

// condition rewrites x, or its negation.
func (m *mender) condition(x sparql.Expr, neg bool, s *scope) (sparql.Expr, error) {
	switch x := x.(type) {
	case *sparql.UnaryExpr:
		if x.Op == "!" {
			return m.condition(x.Arg, !neg, s)
		}
	case *sparql.BinaryExpr:
		switch x.Op {
		case "&&", "||":
			l, err := m.condition(x.Left, neg, s)
			if err != nil {
				return nil, err
			}
			r, err := m.condition(x.Right, neg, s)
			op := x.Op
			if neg {
				op = map[string]string{"&&": "||", "||": "&&"}[op]
			}
			return &sparql.BinaryExpr{Op: op, Left: l, Right: r}, err
		case "=", "!=", "<", ">", "<=", ">=":
			return m.comparison(x, neg)
		}
	case *sparql.LiteralExpr:
		if l, ok := x.Value.(term.Literal); ok && (l.Lexical() == "true" || l.Lexical() == "false") && l.Datatype().Value() == xsdNS+"boolean" {
			return not(x, neg), nil
		}
	case *sparql.ExistsExpr:
		b, ok := x.Pattern.(*sparql.BGP)
		if !ok {
			return nil, refuse("EXISTS of more than triple patterns")
		}
		if !within(b, set{}).and(s.all).subset(s.certain) {
			// An unbound variable is free in the pattern, for goRDFlib too, but
			// tests need to know what is bound.
			b2, err := m.bgp(b, set{})
			return &sparql.ExistsExpr{Pattern: b2, Not: x.Not != neg}, err
		}
		b, err := m.bgp(b, s.certain.and(within(b, set{})))
		return &sparql.ExistsExpr{Pattern: b, Not: x.Not != neg}, err
	case *sparql.FuncExpr:
		return m.test(x, neg)
	}
	if m.e.o.lenient {
		return not(x, neg), nil
	}
	return nil, refuse("a condition that is neither a comparison nor a test")
}

// plainVar gives the variable of an expression that is one.
func plainVar(x sparql.Expr) (*sparql.VarExpr, bool) { v, ok := x.(*sparql.VarExpr); return v, ok }

// text is STR(?x): the variable, with the guard that makes it no error.
func (m *mender) text(x sparql.Expr) (guard sparql.Expr, ok bool) {
	f, ok := x.(*sparql.FuncExpr)
	if !ok || f.Name != "STR" || len(f.Args) != 1 {
		return nil, false
	}
	if _, ok = plainVar(f.Args[0]); !ok {
		return nil, false
	}
	m.e.content = true
	return &sparql.BinaryExpr{Op: "||", Left: call("ISIRI", f.Args[0]), Right: call("ISLITERAL", f.Args[0])}, true
}

func isString(x sparql.Expr) bool {
	l, ok := x.(*sparql.LiteralExpr)
	if !ok {
		return false
	}
	lit, ok := l.Value.(term.Literal)
	return ok && lit.Language() == "" && lit.Datatype().Value() == xsdNS+"string"
}

func (m *mender) comparison(x *sparql.BinaryExpr, neg bool) (sparql.Expr, error) {
	op := x.Op
	if neg {
		op = negated[op]
	}
	out := &sparql.BinaryExpr{Op: op, Left: x.Left, Right: x.Right}
	l, r := x.Left, x.Right
	if _, ok := l.(*sparql.IRIExpr); ok || isString(l) {
		l, r = r, l
	}
	if op == "=" || op == "!=" {
		if _, ok := r.(*sparql.IRIExpr); ok {
			if _, ok := plainVar(l); ok {
				return and(call("BOUND", l), out), nil
			}
		}
		if guard, ok := m.text(l); ok && isString(r) {
			return and(guard, out), nil
		}
	}
	if !m.e.o.lenient {
		return nil, refuse("the comparison %s of values other than a variable and an IRI, or STR(?x) and a string", x.Op)
	}
	m.e.content = true
	parts := []sparql.Expr{}
	for v := range mentioned(x, set{}) {
		parts = append(parts, call("BOUND", &sparql.VarExpr{Name: v}))
	}
	return and(append(parts, out)...), nil
}

func (m *mender) test(f *sparql.FuncExpr, neg bool) (sparql.Expr, error) {
	switch f.Name {
	case "BOUND":
		return not(f, neg), nil
	case "ISIRI", "ISURI", "ISBLANK", "ISLITERAL":
		if len(f.Args) == 1 {
			if _, ok := plainVar(f.Args[0]); ok {
				return and(call("BOUND", f.Args[0]), not(f, neg)), nil
			}
		}
	case "SAMETERM":
		if len(f.Args) == 2 {
			parts := []sparql.Expr{}
			for _, a := range f.Args {
				switch a.(type) {
				case *sparql.VarExpr:
					parts = append(parts, call("BOUND", a))
				case *sparql.IRIExpr, *sparql.LiteralExpr:
				default:
					return nil, refuse("sameTerm of more than variables and constants")
				}
			}
			return and(append(parts, not(f, neg))...), nil
		}
	case "STRSTARTS", "STRENDS", "CONTAINS":
		if len(f.Args) == 2 && isString(f.Args[1]) {
			if guard, ok := m.text(f.Args[0]); ok {
				return and(guard, not(f, neg)), nil
			}
		}
	}
	if m.e.o.lenient {
		m.e.content = true
		return not(f, neg), nil
	}
	return nil, refuse("the function %s here", strings.ToLower(f.Name))
}

// value rewrites the expression of BIND and of a projection.
func (m *mender) value(x sparql.Expr) (sparql.Expr, error) {
	switch y := x.(type) {
	case *sparql.VarExpr, *sparql.IRIExpr, *sparql.LiteralExpr:
		return x, nil
	case *sparql.FuncExpr:
		if guard, ok := m.text(x); ok {
			never := &sparql.VarExpr{Name: m.e.fresh()[1:]}
			// An IF without its condition is an error.
			return call("IF", call("COALESCE", &sparql.FuncExpr{Name: "IF", Args: []sparql.Expr{guard, &sparql.LiteralExpr{Value: term.NewLiteral(true)}, never}}), x, never), nil
		}
		if y.Name == "COUNT" {
			return x, nil
		}
	}
	if m.e.o.lenient {
		m.e.content = true
		return x, nil
	}
	return nil, refuse("a computed value other than a term, STR(?x) and COUNT")
}

// query finishes a SELECT.
func (m *mender) query(q *sparql.ParsedQuery, sub bool) (*sparql.ParsedQuery, error) {
	out := *q
	var err error
	if sub && len(q.OrderBy) > 0 {
		if q.Limit >= 0 || q.Offset > 0 {
			return nil, refuse("ORDER BY with LIMIT or OFFSET in a sub-select")
		}
		out.OrderBy = nil
	}
	if out.Where, err = m.pattern(q.Where, set{}); err != nil {
		return nil, err
	}
	out.ProjectExprs = nil
	for _, pe := range q.ProjectExprs {
		x, err := m.value(pe.Expr)
		if err != nil {
			return nil, err
		}
		if f, ok := x.(*sparql.FuncExpr); ok && f.Name == "COUNT" && f.Star && f.Distinct {
			return nil, refuse("COUNT(DISTINCT *)")
		} else if ok && f.Name == "COUNT" && len(f.Args) == 1 {
			if _, ok := plainVar(f.Args[0]); !ok && !m.e.o.lenient {
				return nil, refuse("COUNT of an expression")
			}
		}
		out.ProjectExprs = append(out.ProjectExprs, sparql.ProjectExpr{Expr: x, Var: pe.Var})
	}
	if q.Having != nil && !m.e.o.lenient {
		return nil, refuse("HAVING")
	}
	if grouped(q) {
		keys := set{}
		for _, g := range q.GroupBy {
			v, ok := plainVar(g)
			if !ok {
				return nil, refuse("GROUP BY an expression")
			}
			keys[v.Name] = true
		}
		for _, pe := range q.ProjectExprs {
			if !hasAggregate(pe.Expr) && !mentioned(pe.Expr, set{}).subset(keys) {
				return nil, refuse("an expression over what is not grouped")
			}
		}
	}
	return &out, nil
}
