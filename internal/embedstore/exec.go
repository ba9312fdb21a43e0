package embedstore

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// exec evaluates one query over one view. Solutions are pushed: each operator binds slots of the
// one row, calls the next operator, and unbinds them again. So nothing is held but the cursors of
// the patterns under way. It belongs to one goroutine.
type exec struct {
	s     *Store
	v     view
	terms *termReader
	local localTerms
	row   []id
	g     activeGraph
	ds    dataset
	plans plans

	exprs evaluator
	meter meter

	consts map[*tripleNode]*patternIDs
	counts map[id]int64
	values map[*valuesNode]*valueRows
	tables map[tableKey]*table
	pool   [4][]cursor
}

// dataset is the choice of FROM and FROM NAMED.
type dataset struct {
	defaults []id        // graphs; their merge is the default graph
	named    map[id]bool // nil: all named graphs
}

// activeGraph is the graph for matching patterns.
type activeGraph struct {
	mode byte // 0 default, 1 the graph g, 2 the named graph bound to slot
	g    id
	slot int
}

// next is called with the row bound. An error ends the evaluation.
type next func() error

// stopSign ends an evaluation with enough rows; its maker catches it.
type stopSign struct{ error }

func (s *Store) newExec(ctx context.Context, v view, slots int, b Budget) *exec {
	x := &exec{s: s, v: v, row: make([]id, slots), consts: map[*tripleNode]*patternIDs{}, ds: dataset{defaults: []id{0}}}
	x.meter = meter{ctx: ctx, budget: b, started: time.Now(), local: &x.local}
	x.exprs = evaluator{x: x, now: s.opts.Now()}
	x.terms = newTermReader(v, &x.local)
	return x
}

func (x *exec) close() {
	x.terms.close()
	for i := range x.pool {
		for _, c := range x.pool[i] {
			c.Close()
		}
		x.pool[i] = nil
	}
}

// idOf is the id of a term: the store's, or one of this query.
func (x *exec) idOf(term string) (id, error) {
	if term == "" {
		return 0, nil
	}
	if i, ok := x.local.ids[term]; ok {
		return i, nil
	}
	i, err := lookup(x.v, term)
	if err != nil || i != 0 {
		return i, err
	}
	i = x.local.intern(term)
	return i, x.meter.hold(0, 0)
}

func (x *exec) cursor(index int) (cursor, error) {
	if p := x.pool[index]; len(p) > 0 {
		c := p[len(p)-1]
		x.pool[index] = p[:len(p)-1]
		return c, nil
	}
	return x.v.iter(spaceSPOG + byte(index))
}

func (x *exec) giveBack(index int, c cursor) { x.pool[index] = append(x.pool[index], c) }

// eval evaluates n. Variables of n bound in the row are given. The caller made sure that none of
// them is blocked (see facts).
func (x *exec) eval(n node, emit next) error {
	switch n := n.(type) {
	case *joinNode:
		return x.evalJoin(n, emit)
	case *tripleNode:
		return x.evalTriple(n, emit)
	case *pathNode:
		return x.evalPath(n, emit)
	case *optionalNode:
		return x.evalOptional(n, emit)
	case *unionNode:
		for _, part := range n.parts {
			if err := x.eval(part, emit); err != nil {
				return err
			}
		}
		return nil
	case *minusNode:
		return x.eval(n.left, func() error {
			gone, err := x.minusHit(n)
			if err != nil || gone {
				return err
			}
			return emit()
		})
	case *graphNode:
		return x.evalGraph(n, emit)
	case *bindNode:
		return x.eval(n.in, func() error {
			v, err := x.exprs.exprID(n.e)
			if err != nil {
				return err
			}
			x.row[n.slot] = v
			err = emit()
			x.row[n.slot] = 0
			return err
		})
	case *valuesNode:
		return x.evalValues(n, emit)
	case *selectNode:
		return x.evalSelectNode(n, emit)
	}
	return fmt.Errorf("evaluate: unknown operator %T", n)
}

// evalPart evaluates n as a member of a conjunction: bindings not allowed inside n are compared
// afterwards instead.
func (x *exec) evalPart(n node, emit next) error {
	if t, ok := n.(*tripleNode); ok {
		return x.evalTriple(t, emit)
	}
	f := x.plans.of(n)
	for v := range f.blocked {
		if x.row[v] != 0 {
			return x.evalApart(n, f, emit)
		}
	}
	return x.eval(n, emit)
}

// evalApart evaluates n with a row of allowed bindings only.
func (x *exec) evalApart(n node, f *facts, emit next) error {
	outer := x.row
	inner := make([]id, len(outer))
	pushed := false
	for v := range mentioned(n) {
		if !f.blocked[v] && outer[v] != 0 {
			inner[v] = outer[v]
			pushed = pushed || f.vars[v]
		}
	}
	oldG := x.g
	if x.g.mode == 2 && outer[x.g.slot] != 0 {
		x.g = activeGraph{mode: 1, g: outer[x.g.slot]}
	}
	defer func() { x.row, x.g = outer, oldG }()
	if !pushed {
		t, err := x.table(n, f, outer)
		if err != nil {
			return err
		}
		x.row, x.g = outer, oldG
		return t.match(x, emit)
	}
	innerG := x.g
	vars := x.slotsHere(f, outer)
	x.row = inner
	return x.eval(n, func() error {
		got := x.row
		x.row, x.g = outer, oldG
		err := x.merge(vars, func(i int) id { return got[vars[i]] }, emit)
		x.row, x.g = got, innerG
		return err
	})
}

// merge binds the values of vars into the row and goes on, if they agree with it.
func (x *exec) merge(vars []int, value func(i int) id, emit next) error {
	var bound [16]int
	set := bound[:0]
	ok := true
	for i, v := range vars {
		val := value(i)
		switch {
		case val == 0 || x.row[v] == val:
		case x.row[v] != 0:
			ok = false
		default:
			x.row[v] = val
			set = append(set, v)
		}
		if !ok {
			break
		}
	}
	var err error
	if ok {
		err = emit()
	}
	for _, v := range set {
		x.row[v] = 0
	}
	return err
}

// slotsHere are the variables a node binds, an open GRAPH's included.
func (x *exec) slotsHere(f *facts, outer []id) []int {
	vars := sortedSlots(f.vars)
	if x.g.mode == 2 && outer[x.g.slot] == 0 && !f.vars[x.g.slot] {
		vars = append(vars, x.g.slot)
	}
	return vars
}

func sortedSlots(s slotSet) []int {
	out := make([]int, 0, len(s))
	for v := range s {
		out = append(out, v)
	}
	slices.Sort(out)
	return out
}

func (x *exec) evalOptional(n *optionalNode, emit next) error {
	return x.eval(n.left, func() error {
		found := false
		err := x.evalPart(n.right, func() error {
			for _, f := range n.filters {
				ok, err := x.exprs.test(f)
				if err != nil || !ok {
					return err
				}
			}
			found = true
			return emit()
		})
		if err != nil || found {
			return err
		}
		return emit()
	})
}

// minusHit tells whether MINUS takes the row away: a solution of its right side
// agrees with it and shares a variable.
func (x *exec) minusHit(n *minusNode) (bool, error) {
	f := x.plans.of(n.right)
	shared := false
	for v := range f.vars {
		shared = shared || x.row[v] != 0
	}
	if !shared {
		return false, nil
	}
	outer, oldG := x.row, x.g
	defer func() { x.row, x.g = outer, oldG }()
	if x.g.mode == 2 && outer[x.g.slot] != 0 {
		x.g = activeGraph{mode: 1, g: outer[x.g.slot]}
	}
	hit := &stopSign{}
	vars := sortedSlots(f.vars)
	check := func(value func(i int) id) error {
		overlap := false
		for i, v := range vars {
			if val := value(i); val != 0 && outer[v] != 0 {
				if val != outer[v] {
					return nil
				}
				overlap = true
			}
		}
		if overlap {
			return hit
		}
		return nil
	}
	inner := make([]id, len(outer))
	pushed := false
	for v := range f.certain {
		if !f.blocked[v] && outer[v] != 0 {
			inner[v], pushed = outer[v], true
		}
	}
	var err error
	if pushed {
		x.row = inner
		err = x.eval(n.right, func() error {
			return check(func(i int) id { return x.row[vars[i]] })
		})
	} else {
		var t *table
		if t, err = x.table(n.right, f, outer); err == nil {
			err = t.each(outer, func(r []id) error { return check(func(i int) id { return r[i] }) })
		}
	}
	if err == error(hit) {
		return true, nil
	}
	return false, err
}

// ---- tables instead of index walks

type tableKey struct {
	n node
	g activeGraph
}

// table is a node's solutions without any bindings from outside.
type table struct {
	vars  []int
	rows  []id // len(vars) values each
	n     int  // rows
	key   int  // position in vars for index; -1: none
	index map[id][]int32
}

// table evaluates n once per graph; outer is the row to compare.
func (x *exec) table(n node, f *facts, outer []id) (*table, error) {
	k := tableKey{n, x.g}
	t, ok := x.tables[k]
	if !ok {
		t = &table{vars: x.slotsHere(f, outer), key: -1}
		keep := x.row
		x.row = make([]id, len(outer))
		err := x.eval(n, func() error {
			for _, v := range t.vars {
				t.rows = append(t.rows, x.row[v])
			}
			t.n++
			return x.meter.hold(1, int64(8*len(t.vars)))
		})
		x.row = keep
		if err != nil {
			return nil, err
		}
		for i, v := range t.vars {
			if f.certain[v] && outer[v] != 0 {
				t.key = i
				break
			}
		}
		if t.key >= 0 {
			w := len(t.vars)
			t.index = map[id][]int32{}
			for r := 0; r*w < len(t.rows); r++ {
				v := t.rows[r*w+t.key]
				t.index[v] = append(t.index[v], int32(r))
			}
			if err := x.meter.hold(0, int64(len(t.rows)/max(w, 1)*16)); err != nil {
				return nil, err
			}
		}
		if x.tables == nil {
			x.tables = map[tableKey]*table{}
		}
		x.tables[k] = t
	}
	return t, nil
}

// each gives the rows that may agree with outer.
func (t *table) each(outer []id, fn func(row []id) error) error {
	w := len(t.vars)
	if t.key >= 0 && outer[t.vars[t.key]] != 0 {
		for _, r := range t.index[outer[t.vars[t.key]]] {
			if err := fn(t.rows[int(r)*w : int(r)*w+w]); err != nil {
				return err
			}
		}
		return nil
	}
	for r := range t.n {
		if err := fn(t.rows[r*w : r*w+w]); err != nil {
			return err
		}
	}
	return nil
}

func (t *table) match(x *exec, emit next) error {
	return t.each(x.row, func(r []id) error {
		if err := x.meter.tick(); err != nil {
			return err
		}
		return x.merge(t.vars, func(i int) id { return r[i] }, emit)
	})
}

// ---- VALUES

type valueRows struct {
	rows [][]id
	by   map[id]int // of one variable without UNDEF: how often it comes
}

func (x *exec) evalValues(n *valuesNode, emit next) error {
	vr, ok := x.values[n]
	if !ok {
		vr = &valueRows{}
		if len(n.slots) == 1 {
			vr.by = map[id]int{}
		}
		for _, row := range n.rows {
			ids := make([]id, len(row))
			for i, t := range row {
				var err error
				if ids[i], err = x.idOf(t); err != nil {
					return err
				}
			}
			vr.rows = append(vr.rows, ids)
			if vr.by != nil {
				if ids[0] == 0 {
					vr.by = nil
				} else {
					vr.by[ids[0]]++
				}
			}
		}
		if x.values == nil {
			x.values = map[*valuesNode]*valueRows{}
		}
		x.values[n] = vr
	}
	if vr.by != nil && x.row[n.slots[0]] != 0 {
		for range vr.by[x.row[n.slots[0]]] {
			if err := emit(); err != nil {
				return err
			}
		}
		return nil
	}
	for _, ids := range vr.rows {
		if err := x.meter.tick(); err != nil {
			return err
		}
		if err := x.merge(n.slots, func(i int) id { return ids[i] }, emit); err != nil {
			return err
		}
	}
	return nil
}

// ---- GRAPH

func (x *exec) evalGraph(n *graphNode, emit next) error {
	old := x.g
	defer func() { x.g = old }()
	outside := func() error {
		now := x.g
		x.g = old
		err := emit()
		x.g = now
		return err
	}
	within := func(g id) error {
		if g == 0 || g.isLocal() || x.ds.named != nil && !x.ds.named[g] {
			return nil
		}
		if c, err := graphCount(x.v, g); err != nil || c == 0 {
			return err
		}
		x.g = activeGraph{mode: 1, g: g}
		return x.eval(n.in, outside)
	}
	if !n.g.isVar() {
		g, err := lookup(x.v, n.g.term)
		if err != nil {
			return err
		}
		return within(g)
	}
	slot := n.g.slot
	if x.row[slot] != 0 {
		return within(x.row[slot])
	}
	if leadsGraph(n.in) {
		x.g = activeGraph{mode: 2, slot: slot}
		return x.eval(n.in, outside)
	}
	// No pattern tells the graph: one after the other.
	var graphs []id
	if err := graphCounts(x.v, func(g id, _ int64) bool {
		if g != 0 {
			graphs = append(graphs, g)
		}
		return true
	}); err != nil {
		return err
	}
	if err := x.meter.hold(int64(len(graphs)), int64(8*len(graphs))); err != nil {
		return err
	}
	for _, g := range graphs {
		if err := x.meter.tick(); err != nil {
			return err
		}
		x.row[slot] = g
		err := within(g)
		x.row[slot] = 0
		if err != nil {
			return err
		}
	}
	return x.meter.hold(-int64(len(graphs)), -int64(8*len(graphs)))
}

// leadsGraph tells whether n begins with a triple pattern. The pattern then binds the variable of
// GRAPH before anything else is looked at.
func leadsGraph(n node) bool {
	switch n := n.(type) {
	case *tripleNode:
		return true
	case *joinNode:
		return slices.ContainsFunc(n.parts, leadsGraph)
	case *optionalNode:
		return leadsGraph(n.left)
	case *minusNode:
		return leadsGraph(n.left)
	case *bindNode:
		return leadsGraph(n.in)
	case *unionNode:
		return !slices.ContainsFunc(n.parts, func(p node) bool { return !leadsGraph(p) })
	}
	return false
}
