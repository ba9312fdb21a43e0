package embedstore

import (
	"container/heap"
	"encoding/binary"
	"slices"
)

// runSelect evaluates a query's pattern and modifiers, and calls emit for each
// solution with the selected variables bound in the row.
func (x *exec) runSelect(q *query, emit next) error {
	if ok, err := x.shortcut(q, emit); ok || err != nil {
		return err
	}
	rows := x.solutions(q)
	if q.form == formSelect {
		rows = x.computed(q, rows)
	}
	switch distinct := q.distinct || q.reduced; {
	case distinct && q.sortsByColumns():
		// Equal rows have equal keys: fewer rows to sort, and with LIMIT no more
		// to keep than are asked for.
		rows = x.ordered(q, x.distinct(q, rows), true)
	case distinct:
		rows = x.distinct(q, x.ordered(q, rows, false))
	default:
		rows = x.ordered(q, rows, true)
	}
	if q.offset > 0 || q.limit >= 0 {
		rows = x.sliced(q, rows)
	}
	return rows(emit)
}

// rowSource pushes rows.
type rowSource func(emit next) error

// solutions are those of the WHERE, grouped if the query has groups.
func (x *exec) solutions(q *query) rowSource {
	if q.grouped {
		return func(emit next) error { return x.runGroups(q, emit) }
	}
	rows := func(emit next) error { return x.evalPart(q.where, emit) }
	if len(q.having) > 0 {
		return x.filtered(q.having, rows)
	}
	return rows
}

func (x *exec) filtered(es []expr, in rowSource) rowSource {
	return func(emit next) error {
		return in(func() error {
			for _, e := range es {
				if ok, err := x.exprs.test(e); err != nil || !ok {
					return err
				}
			}
			return emit()
		})
	}
}

// computed binds the expressions of the SELECT.
func (x *exec) computed(q *query, in rowSource) rowSource {
	if !slices.ContainsFunc(q.vars, func(v projection) bool { return v.e != nil }) {
		return in
	}
	return func(emit next) error {
		return in(func() error {
			for _, v := range q.vars {
				if v.e == nil {
					continue
				}
				n, err := x.exprs.exprID(v.e)
				if err != nil {
					return err
				}
				x.row[v.slot] = n
			}
			err := emit()
			for _, v := range q.vars {
				if v.e != nil {
					x.row[v.slot] = 0
				}
			}
			return err
		})
	}
}

// columns are the slots of the result; for CONSTRUCT and DESCRIBE those of the template.
func (q *query) columns() []int {
	var out []int
	add := func(t pterm) {
		if t.isVar() && !slices.Contains(q.construct.blanks, t.slot) && !slices.Contains(out, t.slot) {
			out = append(out, t.slot)
		}
	}
	switch q.form {
	case formSelect:
		for _, v := range q.vars {
			out = append(out, v.slot)
		}
	case formConstruct:
		for _, t := range q.construct.triples {
			add(t.s)
			add(t.p)
			add(t.o)
		}
	case formDescribe:
		for _, t := range q.describe {
			add(t)
		}
	}
	return out
}

// ---- DISTINCT

func (x *exec) distinct(q *query, in rowSource) rowSource {
	cols := q.columns()
	if len(cols) == 1 && (len(q.orderBy) == 0 || q.sortsByColumns()) && x.inSubjectOrder(q, cols[0]) {
		// Equal rows are neighbours: nothing has to be remembered.
		return func(emit next) error {
			last := id(0)
			return in(func() error {
				if x.row[cols[0]] == last {
					return nil
				}
				last = x.row[cols[0]]
				return emit()
			})
		}
	}
	return func(emit next) error {
		seen := newRowSet(len(cols))
		key := make([]id, len(cols))
		defer func() { x.meter.hold(-seen.rows, -seen.bytes) }()
		return in(func() error {
			for i, c := range cols {
				key[i] = x.row[c]
			}
			rows, bytes := seen.rows, seen.bytes
			if !seen.add(key) {
				return nil
			}
			if err := x.meter.hold(seen.rows-rows, seen.bytes-bytes); err != nil {
				return err
			}
			return emit()
		})
	}
}

// inSubjectOrder tells whether the rows come in the order of the subject in slot: from one pattern,
// ?s ?p ?o or ?s <p> <o>.
func (x *exec) inSubjectOrder(q *query, slot int) bool {
	j, ok := q.where.(*joinNode)
	if !ok || len(j.parts) != 1 || q.grouped || q.form != formSelect || q.vars[0].e != nil {
		return false
	}
	if g, ok := j.parts[0].(*graphNode); ok && !g.g.isVar() {
		if j, ok = g.in.(*joinNode); !ok || len(j.parts) != 1 {
			return false
		}
	}
	t, ok := j.parts[0].(*tripleNode)
	if !ok || t.s.slot != slot || x.row[slot] != 0 || len(x.valuesOfFilters(j, j.filters)) > 0 {
		return false
	}
	return x.isEverything(t) || !t.p.isVar() && !t.o.isVar()
}

// rowSet is a set of rows of ids.
type rowSet struct {
	one   map[id]struct{}
	many  map[string]struct{}
	last  []id
	buf   []byte
	rows  int64
	bytes int64
}

func newRowSet(width int) *rowSet {
	s := &rowSet{}
	if width == 1 {
		s.one = map[id]struct{}{}
	} else {
		s.many = map[string]struct{}{}
	}
	return s
}

// add tells whether the row is new.
func (s *rowSet) add(row []id) bool {
	if s.last != nil && slices.Equal(s.last, row) {
		return false
	}
	s.last = append(s.last[:0], row...)
	if s.one != nil {
		if _, ok := s.one[row[0]]; ok {
			return false
		}
		s.one[row[0]] = struct{}{}
		s.rows++
		s.bytes += 24
		return true
	}
	s.buf = s.buf[:0]
	for _, v := range row {
		s.buf = binary.AppendUvarint(s.buf, uint64(v))
	}
	if _, ok := s.many[string(s.buf)]; ok {
		return false
	}
	s.many[string(s.buf)] = struct{}{}
	s.rows++
	s.bytes += int64(len(s.buf)) + 40
	return true
}

// ---- OFFSET and LIMIT

func (x *exec) sliced(q *query, in rowSource) rowSource {
	return func(emit next) error {
		if q.limit == 0 {
			return nil
		}
		stop := &stopSign{}
		skip, left := q.offset, q.limit
		err := in(func() error {
			if skip > 0 {
				skip--
				return nil
			}
			if err := emit(); err != nil {
				return err
			}
			if left > 0 {
				if left--; left == 0 {
					return stop
				}
			}
			return nil
		})
		if err == error(stop) {
			return nil
		}
		return err
	}
}

// ---- ORDER BY

// sortRow is a row waiting for its place.
type sortRow struct {
	keys []*value
	row  []id
	n    int64 // order of arrival, kept among equals
}

// sortsByColumns tells whether the order depends on nothing but the columns.
func (q *query) sortsByColumns() bool {
	cols := q.columns()
	ok := true
	for _, k := range q.orderBy {
		ok = ok && !hasExists(k.e)
		eachVar(k.e, func(v int) { ok = ok && slices.Contains(cols, v) })
		ok = ok && !hasAggregate(k.e)
	}
	return ok
}

func hasAggregate(e expr) bool {
	switch e := e.(type) {
	case *aggExpr:
		return true
	case *callExpr:
		return slices.ContainsFunc(e.args, hasAggregate)
	}
	return false
}

// ordered sorts. With LIMIT it keeps no more rows than will be asked for, if
// nothing after it drops rows (last).
func (x *exec) ordered(q *query, in rowSource, last bool) rowSource {
	if len(q.orderBy) == 0 {
		return in
	}
	cols := q.columns()
	keep := int64(-1)
	if q.limit >= 0 && last && q.limit+q.offset < 1<<20 {
		keep = q.limit + q.offset
	}
	return func(emit next) error {
		h := sortHeap{q: q}
		seen := map[id]*value{}
		n := int64(0)
		rowBytes := int64(8*len(cols)+8*len(q.orderBy)) + 64
		err := in(func() error {
			if err := x.meter.tick(); err != nil {
				return err
			}
			if keep == 0 {
				return nil
			}
			r := sortRow{n: n}
			n++
			for _, k := range q.orderBy {
				v, err := x.sortKey(k.e, seen)
				if err != nil {
					return err
				}
				r.keys = append(r.keys, v)
			}
			if keep >= 0 && int64(len(h.rows)) == keep {
				if h.compare(&r, &h.rows[0]) >= 0 {
					return nil
				}
				r.row = h.rows[0].row
				h.rows[0] = r
				for i, c := range cols {
					r.row[i] = x.row[c]
				}
				heap.Fix(&h, 0)
				return nil
			}
			r.row = make([]id, len(cols))
			for i, c := range cols {
				r.row[i] = x.row[c]
			}
			if err := x.meter.hold(1, rowBytes); err != nil {
				return err
			}
			if keep >= 0 {
				heap.Push(&h, r)
			} else {
				h.rows = append(h.rows, r)
			}
			return nil
		})
		if err != nil {
			return err
		}
		seen = nil
		slices.SortFunc(h.rows, func(a, b sortRow) int { return h.compare(&a, &b) })
		for i := range h.rows {
			if err := x.meter.tick(); err != nil {
				return err
			}
			for k, c := range cols {
				x.row[c] = h.rows[i].row[k]
			}
			if err := emit(); err != nil {
				return err
			}
			for _, c := range cols {
				x.row[c] = 0
			}
		}
		return x.meter.hold(-int64(len(h.rows)), -rowBytes*int64(len(h.rows)))
	}
}

// sortKey is the value for sorting a row; nil when there is none.
func (x *exec) sortKey(e expr, seen map[id]*value) (*value, error) {
	if v, ok := e.(*varExpr); ok {
		n := x.row[v.slot]
		if n == 0 {
			return &value{}, nil
		}
		if p, ok := seen[n]; ok {
			return p, nil
		}
		t, err := x.terms.term(n)
		if err != nil {
			return nil, err
		}
		p := new(value)
		*p = parseValue(t)
		if len(seen) < 100_000 {
			seen[n] = p
		}
		return p, x.meter.hold(0, 200)
	}
	v, err := x.exprs.expr(e)
	if err == errType {
		return &value{}, nil
	}
	if err != nil {
		return nil, err
	}
	return &v, x.meter.hold(0, 200)
}

// sortHeap has the last row on top.
type sortHeap struct {
	q    *query
	rows []sortRow
}

func (h *sortHeap) compare(a, b *sortRow) int {
	for i, k := range h.q.orderBy {
		c := orderValues(a.keys[i], b.keys[i])
		if c == 0 {
			continue
		}
		if k.desc {
			return -c
		}
		return c
	}
	switch {
	case a.n < b.n:
		return -1
	case a.n > b.n:
		return 1
	}
	return 0
}

func (h *sortHeap) Len() int           { return len(h.rows) }
func (h *sortHeap) Less(i, j int) bool { return h.compare(&h.rows[i], &h.rows[j]) > 0 }
func (h *sortHeap) Swap(i, j int)      { h.rows[i], h.rows[j] = h.rows[j], h.rows[i] }
func (h *sortHeap) Push(r any)         { h.rows = append(h.rows, r.(sortRow)) }
func (h *sortHeap) Pop() any {
	r := h.rows[len(h.rows)-1]
	h.rows = h.rows[:len(h.rows)-1]
	return r
}

// ---- sub-selects

func (x *exec) evalSelectNode(n *selectNode, emit next) error {
	outer := x.row
	inner := make([]id, len(outer))
	for i, o := range n.outer {
		inner[n.inner[i]] = outer[o]
	}
	g := x.g
	if g.mode == 2 {
		if outer[g.slot] == 0 {
			// The sub-select stands alone in an open GRAPH: evalGraph never does this.
			return unsupported("a sub-select before any pattern of its GRAPH")
		}
		x.g = activeGraph{mode: 1, g: outer[g.slot]}
	}
	innerG := x.g
	defer func() { x.row, x.g = outer, g }()
	x.row = inner
	return x.runSelect(n.q, func() error {
		got := x.row
		x.row, x.g = outer, g
		err := x.merge(n.outer, func(i int) id { return got[n.inner[i]] }, emit)
		x.row, x.g = got, innerG
		return err
	})
}

// ---- shortcuts

// shortcut answers from the counts or one walk of an index, without evaluating the pattern.
func (x *exec) shortcut(q *query, emit next) (bool, error) {
	if q.form != formSelect || len(q.having) > 0 || q.values != nil {
		return false, nil
	}
	j, ok := q.where.(*joinNode)
	if !ok || len(j.parts) != 1 || len(j.filters) > 0 {
		return false, nil
	}
	if t, ok := j.parts[0].(*tripleNode); ok && x.g.mode < 2 && x.isEverything(t) {
		graphs := x.ds.defaults
		if x.g.mode == 1 {
			graphs = []id{x.g.g}
		}
		if len(graphs) == 1 {
			return x.shortcutCount(q, t, graphs[0], emit)
		}
	}
	if g, ok := j.parts[0].(*graphNode); ok && x.g.mode == 0 {
		if !g.g.isVar() {
			return x.shortcutNamed(q, g, emit)
		}
		return x.shortcutGraphs(q, g, emit)
	}
	return false, nil
}

// shortcutNamed is SELECT (COUNT(*) AS ?n) { GRAPH <g> { ?s ?p ?o } }.
func (x *exec) shortcutNamed(q *query, n *graphNode, emit next) (bool, error) {
	j, ok := n.in.(*joinNode)
	if !ok || len(j.parts) != 1 || len(j.filters) > 0 || q.distinct {
		return false, nil
	}
	t, ok := j.parts[0].(*tripleNode)
	if !ok || !x.isEverything(t) {
		return false, nil
	}
	g, err := lookup(x.v, n.g.term)
	if err != nil || g == 0 || x.ds.named != nil && !x.ds.named[g] {
		return false, err
	}
	return x.shortcutCount(q, t, g, emit)
}

// isEverything tells whether t is ?s ?p ?o with three free variables.
func (x *exec) isEverything(t *tripleNode) bool {
	for _, v := range []pterm{t.s, t.p, t.o} {
		if !v.isVar() || x.row[v.slot] != 0 {
			return false
		}
	}
	return t.s.slot != t.p.slot && t.p.slot != t.o.slot && t.s.slot != t.o.slot
}

// shortcutCount is SELECT (COUNT(*) AS ?n) { ?s ?p ?o } and SELECT DISTINCT of
// one of the three.
func (x *exec) shortcutCount(q *query, t *tripleNode, g id, emit next) (bool, error) {
	if len(q.vars) != 1 {
		return false, nil
	}
	v := q.vars[0]
	if a, ok := v.e.(*aggExpr); ok && len(q.groupBy) == 0 && len(q.aggs) == 1 && q.limit != 0 && q.offset == 0 {
		agg := q.aggs[a.n]
		if agg.name != "COUNT" || agg.distinct {
			return false, nil
		}
		if e, ok := agg.arg.(*varExpr); agg.arg != nil && (!ok || e.slot != t.s.slot && e.slot != t.p.slot && e.slot != t.o.slot) {
			return false, nil
		}
		n, err := x.countOf(g)
		if err != nil {
			return true, err
		}
		return true, x.emitCount(v.slot, n, emit)
	}
	if !q.distinct || v.e != nil || q.grouped || len(q.orderBy) > 0 || v.slot != t.p.slot {
		return false, nil
	}
	// Predicates are few: leap from one to the next.
	rows := func(emit next) error { return x.eachPredicate(g, v.slot, emit) }
	if q.offset > 0 || q.limit >= 0 {
		rows = x.sliced(q, rows)
	}
	return true, rows(emit)
}

func (x *exec) emitCount(slot int, n int64, emit next) error {
	v := intValue(n)
	c, err := x.idOf(v.asTerm())
	if err != nil {
		return err
	}
	x.row[slot] = c
	err = emit()
	x.row[slot] = 0
	return err
}

func (x *exec) eachPredicate(g id, slot int, emit next) error {
	cur, err := x.cursor(1)
	if err != nil {
		return err
	}
	defer x.giveBack(1, cur)
	key := [6]byte{spacePOSG}
	var q quad
	for ok := cur.SeekGE(key[:]); ok; {
		decodeQuad(cur.Key(), 1, &q)
		p, found := q[posP], false
		for ok && q[posP] == p {
			if err := x.meter.tick(); err != nil {
				return err
			}
			if q[posG] == g {
				found = true
				break
			}
			if ok = cur.Next(); ok {
				decodeQuad(cur.Key(), 1, &q)
			}
		}
		if found {
			x.row[slot] = p
			err := emit()
			x.row[slot] = 0
			if err != nil {
				return err
			}
		}
		putID(key[1:], p+1)
		ok = cur.SeekGE(key[:])
	}
	return cur.Error()
}

// shortcutGraphs is SELECT DISTINCT ?g { GRAPH ?g { ?s ?p ?o } } and the counts
// by graph.
func (x *exec) shortcutGraphs(q *query, n *graphNode, emit next) (bool, error) {
	j, ok := n.in.(*joinNode)
	if !ok || !n.g.isVar() || x.row[n.g.slot] != 0 || len(j.parts) != 1 || len(j.filters) > 0 {
		return false, nil
	}
	t, ok := j.parts[0].(*tripleNode)
	if !ok || !x.isEverything(t) || t.s.slot == n.g.slot || t.p.slot == n.g.slot || t.o.slot == n.g.slot || len(q.orderBy) > 0 {
		return false, nil
	}
	count := -1
	switch {
	case q.distinct && !q.grouped && len(q.vars) == 1 && q.vars[0].e == nil && q.vars[0].slot == n.g.slot:
	case q.grouped && len(q.groupBy) == 1 && q.groupBy[0].e == nil && q.groupBy[0].slot == n.g.slot && len(q.aggs) == 1 &&
		q.aggs[0].name == "COUNT" && q.aggs[0].arg == nil && !q.aggs[0].distinct:
		for _, v := range q.vars {
			if v.e == nil {
				continue
			}
			if _, ok := v.e.(*aggExpr); !ok || count >= 0 {
				return false, nil
			}
			count = v.slot
		}
	default:
		return false, nil
	}
	rows := func(emit next) error {
		var inner error
		err := graphCounts(x.v, func(g id, c int64) bool {
			if g == 0 || x.ds.named != nil && !x.ds.named[g] {
				return true
			}
			x.row[n.g.slot] = g
			if count >= 0 {
				inner = x.emitCount(count, c, emit)
			} else {
				inner = emit()
			}
			x.row[n.g.slot] = 0
			return inner == nil
		})
		if inner != nil {
			return inner
		}
		return err
	}
	if q.offset > 0 || q.limit >= 0 {
		rows = x.sliced(q, rows)
	}
	return true, rows(emit)
}
