package embedstore

import (
	"encoding/binary"
	"strings"
)

// group is the aggregates of one group under way.
type group struct {
	keys []id
	aggs []aggState
}

type aggState struct {
	n      int64
	failed bool
	seen   map[string]struct{}
	best   value
	text   *strings.Builder
}

// runGroups evaluates the pattern, groups it and calls emit per group with the
// keys bound; aggExpr finds the results in x.exprs.aggs.
func (x *exec) runGroups(q *query, emit next) error {
	groups := map[string]*group{}
	var order []*group
	keys := make([]id, len(q.groupBy))
	var buf []byte
	err := x.evalPart(q.where, func() error {
		if err := x.meter.tick(); err != nil {
			return err
		}
		buf = buf[:0]
		for i, k := range q.groupBy {
			keys[i] = 0
			if k.e == nil {
				keys[i] = x.row[k.slot]
			} else {
				v, err := x.exprs.exprID(k.e)
				if err != nil {
					return err
				}
				keys[i] = v
			}
			buf = binary.AppendUvarint(buf, uint64(keys[i]))
		}
		g, ok := groups[string(buf)]
		if !ok {
			g = &group{keys: append([]id(nil), keys...), aggs: make([]aggState, len(q.aggs))}
			groups[string(buf)] = g
			order = append(order, g)
			if err := x.meter.hold(1, int64(len(buf)+8*len(keys)+120*len(q.aggs)+100)); err != nil {
				return err
			}
		}
		for i := range q.aggs {
			if err := x.aggregate(q, &q.aggs[i], &g.aggs[i]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if len(order) == 0 && len(q.groupBy) == 0 {
		order = append(order, &group{aggs: make([]aggState, len(q.aggs))})
	}
	rows := func(emit next) error {
		old := x.exprs.aggs
		defer func() { x.exprs.aggs = old }()
		for _, g := range order {
			if err := x.meter.tick(); err != nil {
				return err
			}
			vals := make([]aggResult, len(q.aggs))
			for i := range q.aggs {
				vals[i] = g.aggs[i].result(&q.aggs[i])
			}
			x.exprs.aggs = vals
			var saved [8]id
			bound := saved[:0]
			for i, k := range q.groupBy {
				if k.slot >= 0 {
					bound = append(bound, x.row[k.slot])
					x.row[k.slot] = g.keys[i]
				}
			}
			err := emit()
			n := 0
			for _, k := range q.groupBy {
				if k.slot >= 0 {
					x.row[k.slot] = bound[n]
					n++
				}
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	if len(q.having) > 0 {
		rows = x.filtered(q.having, rows)
	}
	if q.values != nil {
		in := rows
		rows = func(emit next) error {
			return in(func() error { return x.evalValues(q.values, emit) })
		}
	}
	return rows(emit)
}

// aggregate takes the row into one aggregate of its group.
func (x *exec) aggregate(q *query, a *aggregate, st *aggState) error {
	var v value
	var key string
	switch {
	case a.arg == nil:
		if a.distinct {
			var b []byte
			for _, s := range x.plans.visibleOf(q.where) {
				b = binary.AppendUvarint(b, uint64(x.row[s]))
			}
			key = string(b)
		}
	default:
		if e, ok := a.arg.(*varExpr); ok && a.name == "COUNT" {
			n := x.row[e.slot]
			if n == 0 {
				return nil
			}
			if a.distinct {
				key = string(binary.AppendUvarint(nil, uint64(n)))
			}
			break
		}
		var err error
		x.exprs.fault = ""
		v, err = x.exprs.expr(a.arg)
		if err == errType {
			x.exprs.noteFault()
			if a.name != "COUNT" && a.name != "SAMPLE" {
				st.failed = true
			}
			return nil
		}
		if err != nil {
			return err
		}
		if a.distinct {
			key = v.asTerm()
		}
	}
	if a.distinct {
		if _, ok := st.seen[key]; ok {
			return nil
		}
		if st.seen == nil {
			st.seen = map[string]struct{}{}
		}
		st.seen[key] = struct{}{}
		if err := x.meter.hold(1, int64(len(key))+40); err != nil {
			return err
		}
	}
	st.n++
	switch a.name {
	case "SUM", "AVG":
		if st.failed {
			return nil
		}
		if st.n == 1 {
			st.best = intValue(0)
		}
		sum, err := arithmetic("+", &st.best, &v)
		if err != nil {
			st.failed = true
			x.exprs.failed(a.name, v)
			x.exprs.noteFault()
			return nil
		}
		st.best = sum
	case "MIN":
		if st.n == 1 || orderValues(&v, &st.best) < 0 {
			st.best = v
		}
	case "MAX":
		if st.n == 1 || orderValues(&v, &st.best) > 0 {
			st.best = v
		}
	case "SAMPLE":
		if st.n == 1 {
			st.best = v
		}
	case "GROUP_CONCAT":
		if v.kind == vBlank {
			st.failed = true
			return nil
		}
		if st.text == nil {
			st.text = &strings.Builder{}
		} else {
			st.text.WriteString(a.sep)
		}
		st.text.WriteString(v.lex)
		return x.meter.hold(0, int64(len(v.lex)+len(a.sep)))
	}
	return nil
}

type aggResult struct {
	v  value
	ok bool
}

func (st *aggState) result(a *aggregate) aggResult {
	if st.failed {
		return aggResult{}
	}
	switch a.name {
	case "COUNT":
		return aggResult{intValue(st.n), true}
	case "SUM":
		if st.n == 0 {
			return aggResult{intValue(0), true}
		}
		return aggResult{st.best, true}
	case "AVG":
		if st.n == 0 {
			return aggResult{intValue(0), true}
		}
		n := intValue(st.n)
		v, err := arithmetic("/", &st.best, &n)
		return aggResult{v, err == nil}
	case "GROUP_CONCAT":
		if st.text == nil {
			return aggResult{stringValue(""), true}
		}
		return aggResult{stringValue(st.text.String()), true}
	}
	return aggResult{st.best, st.n > 0}
}

// visibleOf are the variables in scope after n, in order.
func (p *plans) visibleOf(n node) []int {
	if s, ok := p.shown[n]; ok {
		return s
	}
	if p.shown == nil {
		p.shown = map[node][]int{}
	}
	s := sortedSlots(visible(n))
	p.shown[n] = s
	return s
}
