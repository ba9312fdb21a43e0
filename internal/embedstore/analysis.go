package embedstore

import (
	"fmt"
	"maps"
)

func unsupported(what string) error { return fmt.Errorf("%w: %s", ErrUnsupported, what) }

type slotSet map[int]bool

func (s slotSet) add(t pterm) {
	if t.isVar() {
		s[t.slot] = true
	}
}

// visible are the variables in scope after n (section 18.2.1).
func visible(n node) slotSet {
	s := slotSet{}
	addVisible(n, s)
	return s
}

func addVisible(n node, s slotSet) {
	switch x := n.(type) {
	case *joinNode:
		for _, p := range x.parts {
			addVisible(p, s)
		}
	case *tripleNode:
		s.add(x.s)
		s.add(x.p)
		s.add(x.o)
	case *pathNode:
		s.add(x.s)
		s.add(x.o)
	case *optionalNode:
		addVisible(x.left, s)
		addVisible(x.right, s)
	case *unionNode:
		for _, p := range x.parts {
			addVisible(p, s)
		}
	case *minusNode:
		addVisible(x.left, s)
	case *graphNode:
		s.add(x.g)
		addVisible(x.in, s)
	case *bindNode:
		addVisible(x.in, s)
		s[x.slot] = true
	case *valuesNode:
		for _, v := range x.slots {
			s[v] = true
		}
	case *selectNode:
		for _, v := range x.outer {
			s[v] = true
		}
	}
}

// eachVar calls fn for the variables of an expression, those of EXISTS among them.
func eachVar(e expr, fn func(slot int)) {
	switch x := e.(type) {
	case *varExpr:
		fn(x.slot)
	case *callExpr:
		for _, a := range x.args {
			eachVar(a, fn)
		}
	case *existsExpr:
		for s := range mentioned(x.in) {
			fn(s)
		}
	}
}

// mentioned are all variables of n, also in its filters, except those hidden in a sub-select.
func mentioned(n node) slotSet {
	s := slotSet{}
	addMentioned(n, s)
	return s
}

func addMentioned(n node, s slotSet) {
	exprs := func(es []expr) {
		for _, e := range es {
			eachVar(e, func(v int) { s[v] = true })
		}
	}
	switch x := n.(type) {
	case *joinNode:
		for _, p := range x.parts {
			addMentioned(p, s)
		}
		exprs(x.filters)
	case *optionalNode:
		addMentioned(x.left, s)
		addMentioned(x.right, s)
		exprs(x.filters)
	case *unionNode:
		for _, p := range x.parts {
			addMentioned(p, s)
		}
	case *minusNode:
		addMentioned(x.left, s)
		addMentioned(x.right, s)
	case *graphNode:
		s.add(x.g)
		addMentioned(x.in, s)
	case *bindNode:
		addMentioned(x.in, s)
		exprs([]expr{x.e})
		s[x.slot] = true
	default:
		addVisible(n, s)
	}
}

// facts are known of a node before its evaluation.
type facts struct {
	vars    slotSet // visible
	certain slotSet // bound in every solution
	// blocked are variables whose value from outside may not be put into the node: the result would
	// differ from comparing afterwards. Cases are an OPTIONAL with more or fewer solutions, a
	// filter on variables outside its group, a sub-select with groups or a limit.
	blocked slotSet
}

// plans keeps the facts computed once per query.
type plans struct {
	facts map[node]*facts
	joins map[*joinNode]map[string]*joinPlan
	slots map[*joinNode][]int
	shown map[node][]int
}

func (p *plans) of(n node) *facts {
	if f, ok := p.facts[n]; ok {
		return f
	}
	f := p.analyse(n)
	if p.facts == nil {
		p.facts = map[node]*facts{}
	}
	p.facts[n] = f
	return f
}

func (p *plans) analyse(n node) *facts {
	f := &facts{vars: visible(n), certain: slotSet{}, blocked: slotSet{}}
	// A filter over variables its group may leave unbound.
	filter := func(es []expr, certain slotSet) {
		for _, e := range es {
			eachVar(e, func(v int) {
				if !certain[v] {
					f.blocked[v] = true
				}
			})
		}
	}
	switch x := n.(type) {
	case *tripleNode, *pathNode:
		f.certain = f.vars
	case *joinNode:
		for _, part := range x.parts {
			pf := p.of(part)
			maps.Copy(f.certain, pf.certain)
			maps.Copy(f.blocked, pf.blocked)
		}
		filter(x.filters, f.certain)
	case *unionNode:
		for i, part := range x.parts {
			pf := p.of(part)
			maps.Copy(f.blocked, pf.blocked)
			if i == 0 {
				maps.Copy(f.certain, pf.certain)
				continue
			}
			for v := range f.certain {
				if !pf.certain[v] {
					delete(f.certain, v)
				}
			}
		}
	case *optionalNode:
		l, r := p.of(x.left), p.of(x.right)
		maps.Copy(f.certain, l.certain)
		maps.Copy(f.blocked, l.blocked)
		in := mentioned(x.right)
		for _, e := range x.filters {
			eachVar(e, func(v int) { in[v] = true })
		}
		for v := range in {
			if !l.certain[v] {
				f.blocked[v] = true
			}
		}
		maps.Copy(f.blocked, r.blocked)
	case *minusNode:
		l := p.of(x.left)
		maps.Copy(f.certain, l.certain)
		maps.Copy(f.blocked, l.blocked)
		for v := range mentioned(x.right) {
			if !l.certain[v] {
				f.blocked[v] = true
			}
		}
	case *graphNode:
		in := p.of(x.in)
		maps.Copy(f.certain, in.certain)
		maps.Copy(f.blocked, in.blocked)
		if x.g.isVar() {
			f.certain[x.g.slot] = true
			// Its filters see the graph of the moment.
			delete(f.blocked, x.g.slot)
		}
	case *bindNode:
		in := p.of(x.in)
		maps.Copy(f.certain, in.certain)
		maps.Copy(f.blocked, in.blocked)
		filter([]expr{x.e}, in.certain)
		f.blocked[x.slot] = true
	case *valuesNode:
		for i, v := range x.slots {
			f.certain[v] = true
			for _, row := range x.rows {
				if row[i] == "" {
					delete(f.certain, v)
				}
			}
		}
	case *selectNode:
		q := x.q
		cut := q.grouped || q.limit >= 0 || q.offset > 0
		in := p.of(q.where)
		for i, s := range x.inner {
			bound := in.certain[s] && !q.grouped
			if q.grouped {
				for _, k := range q.groupBy {
					if k.slot == s && k.e == nil && in.certain[s] {
						bound = true
					}
				}
			}
			if bound && q.vars[i].e == nil {
				f.certain[x.outer[i]] = true
			}
			blocked := cut || q.vars[i].e != nil || in.blocked[s] || q.values != nil
			for _, v := range q.vars {
				if v.e != nil && !in.certain[s] {
					eachVar(v.e, func(u int) { blocked = blocked || u == s })
				}
			}
			if blocked {
				f.blocked[x.outer[i]] = true
			}
		}
	}
	return f
}
