package embedstore

import (
	"math"
	"slices"
)

// joinPlan is the evaluation order of the parts of a conjunction, and the earliest place of each
// filter.
type joinPlan struct {
	before []expr
	steps  []joinStep
}

type joinStep struct {
	part    node
	filters []expr
}

func (x *exec) evalJoin(n *joinNode, emit next) error {
	p, err := x.planJoin(n)
	if err != nil {
		return err
	}
	for _, f := range p.before {
		if ok, err := x.exprs.test(f); err != nil || !ok {
			return err
		}
	}
	return x.runSteps(p, 0, emit)
}

func (x *exec) runSteps(p *joinPlan, k int, emit next) error {
	if k == len(p.steps) {
		return emit()
	}
	st := &p.steps[k]
	return x.evalPart(st.part, func() error {
		for _, f := range st.filters {
			if ok, err := x.exprs.test(f); err != nil || !ok {
				return err
			}
		}
		return x.runSteps(p, k+1, emit)
	})
}

// planJoin orders the parts: the most selective first, then parts joined to bound variables. A plan
// is made once for each set of variables bound outside.
func (x *exec) planJoin(n *joinNode) (*joinPlan, error) {
	var kbuf [64]byte
	key := kbuf[:0]
	all := x.plans.slotsOf(n)
	for _, v := range all {
		b := byte('0')
		if x.row[v] != 0 {
			b = '1'
		}
		key = append(key, b)
	}
	openGraph := x.g.mode == 2 && x.row[x.g.slot] == 0
	if openGraph {
		key = append(key, 'g')
	}
	if p, ok := x.plans.joins[n][string(key)]; ok {
		return p, nil
	}
	bound := slotSet{}
	for _, v := range all {
		if x.row[v] != 0 {
			bound[v] = true
		}
	}
	p, err := x.makePlan(n, bound, openGraph)
	if err != nil {
		return nil, err
	}
	if x.plans.joins == nil {
		x.plans.joins = map[*joinNode]map[string]*joinPlan{}
	}
	if x.plans.joins[n] == nil {
		x.plans.joins[n] = map[string]*joinPlan{}
	}
	x.plans.joins[n][string(key)] = p
	return p, nil
}

// slotsOf are the variables of the plan of n.
func (p *plans) slotsOf(n *joinNode) []int {
	if s, ok := p.slots[n]; ok {
		return s
	}
	if p.slots == nil {
		p.slots = map[*joinNode][]int{}
	}
	s := sortedSlots(mentioned(n))
	p.slots[n] = s
	return s
}

func (x *exec) makePlan(n *joinNode, bound slotSet, openGraph bool) (*joinPlan, error) {
	p := &joinPlan{}
	parts := slices.Clone(n.parts)
	filters := slices.Clone(n.filters)
	if v := x.valuesOfFilters(n, filters); len(v) > 0 {
		parts = append(parts, v...)
	}
	certain := slotSet{}
	for v := range bound {
		certain[v] = true
	}
	mayLead := openGraph && slices.ContainsFunc(parts, leadsGraph)
	ready := func() (out []expr) {
		filters = slices.DeleteFunc(filters, func(e expr) bool {
			ok := !hasExists(e)
			eachVar(e, func(v int) { ok = ok && certain[v] })
			if ok {
				out = append(out, e)
			}
			return ok
		})
		return out
	}
	if !openGraph {
		p.before = ready()
	}
	for len(parts) > 0 {
		best, bestCost := -1, math.Inf(1)
		for i, part := range parts {
			if openGraph && mayLead {
				if _, ok := part.(*valuesNode); !ok && !leadsGraph(part) {
					continue
				}
			}
			c, err := x.cost(part, certain)
			if err != nil {
				return nil, err
			}
			if !x.joined(part, certain) && len(p.steps) > 0 {
				c *= 1000 // a product of rows
			}
			if best < 0 || c < bestCost {
				best, bestCost = i, c
			}
		}
		part := parts[best]
		parts = slices.Delete(parts, best, best+1)
		for v := range x.plans.of(part).certain {
			certain[v] = true
		}
		if openGraph && leadsGraph(part) {
			openGraph = false
			certain[x.g.slot] = true
		}
		st := joinStep{part: part}
		if !openGraph {
			st.filters = ready()
		}
		p.steps = append(p.steps, st)
	}
	if len(filters) > 0 {
		if len(p.steps) == 0 {
			p.before = append(p.before, filters...)
		} else {
			last := &p.steps[len(p.steps)-1]
			last.filters = append(last.filters, filters...)
		}
	}
	return p, nil
}

// joined tells whether a part shares a variable with the bound ones.
func (x *exec) joined(n node, certain slotSet) bool {
	vars := x.plans.of(n).vars
	if len(vars) == 0 {
		return true
	}
	for v := range vars {
		if certain[v] {
			return true
		}
	}
	return false
}

func hasExists(e expr) bool {
	switch e := e.(type) {
	case *existsExpr:
		return true
	case *callExpr:
		return slices.ContainsFunc(e.args, hasExists)
	}
	return false
}

// valuesOfFilters turns ?x = <iri> and ?x IN (<a>, <b>) into VALUES, if the conjunction binds ?x
// anyway. The filter stays: it costs little.
func (x *exec) valuesOfFilters(n *joinNode, filters []expr) (out []node) {
	certain := x.plans.of(n).certain
	for _, f := range filters {
		c, ok := f.(*callExpr)
		if !ok || c.name != "=" && c.name != "IN" || len(c.args) < 2 {
			continue
		}
		args := c.args
		if _, ok := args[0].(*constExpr); ok && c.name == "=" {
			args = []expr{args[1], args[0]}
		}
		v, ok := args[0].(*varExpr)
		if !ok || !certain[v.slot] {
			continue
		}
		vn := &valuesNode{slots: []int{v.slot}}
		seen := map[string]bool{}
		for _, a := range args[1:] {
			k, isConst := a.(*constExpr)
			if !isConst || k.v.kind != vIRI {
				vn = nil
				break
			}
			if t := k.v.asTerm(); !seen[t] {
				seen[t] = true
				vn.rows = append(vn.rows, []string{t})
			}
		}
		if vn != nil {
			out = append(out, vn)
		}
	}
	return out
}

// cost guesses the rows of a part with the variables of certain bound, and the effort of finding
// them.
func (x *exec) cost(n node, certain slotSet) (float64, error) {
	switch n := n.(type) {
	case *tripleNode:
		return x.costOfTriple(n, certain)
	case *valuesNode:
		if len(n.slots) == 1 && certain[n.slots[0]] {
			return 0.5, nil
		}
		return float64(len(n.rows)), nil
	case *joinNode:
		best := math.Inf(1)
		for _, p := range n.parts {
			c, err := x.cost(p, certain)
			if err != nil {
				return 0, err
			}
			best = min(best, c)
		}
		if len(n.parts) == 0 {
			best = 1
		}
		return best, nil
	case *unionNode:
		sum := 0.0
		for _, p := range n.parts {
			c, err := x.cost(p, certain)
			if err != nil {
				return 0, err
			}
			sum += c
		}
		return sum, nil
	case *optionalNode:
		c, err := x.cost(n.left, certain)
		return c + 1, err
	case *minusNode:
		c, err := x.cost(n.left, certain)
		return c + 1, err
	case *bindNode:
		return x.cost(n.in, certain)
	case *graphNode:
		return x.cost(n.in, certain)
	case *pathNode:
		c := 1e7
		if !n.s.isVar() || certain[n.s.slot] {
			c /= 1e4
		}
		if !n.o.isVar() || certain[n.o.slot] {
			c /= 1e4
		}
		return c, nil
	case *selectNode:
		if n.q.limit >= 0 {
			return float64(n.q.limit), nil
		}
		return 1e5, nil
	}
	return 1e6, nil
}

// peek is up to how many quads are counted to guess.
const peek = 200

func (x *exec) costOfTriple(t *tripleNode, certain slotSet) (float64, error) {
	ids, err := x.patternOf(t)
	if err != nil {
		return 0, err
	}
	if ids.none {
		return 0, nil
	}
	is := func(p pterm) bool { return p.isVar() && certain[p.slot] }
	s, p, o := is(t.s), is(t.p), is(t.o)
	c := ids.guess
	if c < 0 {
		if c, err = x.guess(ids); err != nil {
			return 0, err
		}
		ids.guess = c
	}
	// Bound variables reduce it by the usual factor.
	haveS, haveO := s || ids.pat[posS] != 0, o || ids.pat[posO] != 0
	haveP := p || ids.pat[posP] != 0
	switch {
	case haveS && haveP && haveO:
		c = min(c, 1)
	case s && haveO, haveS && o:
		c = min(c, 1.5)
	case s && haveP:
		c = min(c, 2)
	case s:
		c = min(c, 10)
	case o && haveP:
		c = min(c, 20)
	case o:
		c = min(c, 50)
	case p:
		c = c / 10
	}
	return c, nil
}

// guess counts the quads of a pattern's constants, and beyond a few asks the
// tables how much room they take.
func (x *exec) guess(ids *patternIDs) (float64, error) {
	given := [4]bool{ids.pat[0] != 0, ids.pat[1] != 0, ids.pat[2] != 0, false}
	a := chooseAccess(given, false)
	cur, err := x.cursor(a.index)
	if err != nil {
		return 0, err
	}
	defer x.giveBack(a.index, cur)
	n := 0
	most := peek
	if x.s.db == nil { // all is in memory
		most = math.MaxInt
	}
	err = scan(x.v, cur, a, &ids.pat, false, func(*quad) bool { n++; return n < most })
	if err != nil || n < most {
		return float64(n), err
	}
	if a.prefix == 0 {
		return 1e12, nil
	}
	var key [quadKeyLen]byte
	quadKey(&key, a.index, &ids.pat)
	lo := key[:1+a.prefix*idBytes]
	size, err := x.s.db.EstimateDiskUsage(lo, keyEnd(lo))
	if err != nil {
		return 0, err
	}
	return max(peek, float64(size)/4), nil
}
