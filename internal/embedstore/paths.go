package embedstore

// evalPath evaluates negated sets and repeated paths; repeated ones have each end once (section
// 18.4). The parser translates sequences, alternatives and inverses of plain steps into patterns.
func (x *exec) evalPath(n *pathNode, emit next) error {
	s, sOpen, err := x.pathEnd(n.s)
	if err != nil {
		return err
	}
	o, oOpen, err := x.pathEnd(n.o)
	if err != nil {
		return err
	}
	if x.g.mode == 2 && x.row[x.g.slot] == 0 {
		return unsupported("a property path before any pattern of its GRAPH")
	}
	if rp, ok := n.path.(*repeatPath); ok && rp.min == 0 && n.s.isVar() && n.o.isVar() && !(sOpen && oOpen) {
		// Between two variables a path of no step links the nodes of the graph only, not terms
		// bound elsewhere.
		start := s
		if sOpen {
			start = o
		}
		if ok, err := x.isNode(start); err != nil || !ok {
			return err
		}
	}
	give := func(a, b id) error {
		if n.s.isVar() && n.o.isVar() && n.s.slot == n.o.slot && a != b {
			return nil
		}
		if sOpen {
			x.row[n.s.slot] = a
		}
		if oOpen {
			x.row[n.o.slot] = b
		}
		err := emit()
		if sOpen {
			x.row[n.s.slot] = 0
		}
		if oOpen {
			x.row[n.o.slot] = 0
		}
		return err
	}
	switch {
	case !sOpen:
		return x.walk(n.path, s, true, func(b id) error {
			if !oOpen && b != o {
				return nil
			}
			return give(s, b)
		})
	case !oOpen:
		return x.walk(n.path, o, false, func(a id) error { return give(a, o) })
	}
	// Both ends open: from every node of the graph.
	if np, ok := n.path.(*notPath); ok {
		return x.walkAll(np, give)
	}
	seen := map[id]struct{}{}
	var starts []id
	pat := quad{}
	err = x.match(&pat, func(q *quad) error {
		for _, v := range [2]id{q[posS], q[posO]} {
			if _, ok := seen[v]; !ok {
				seen[v] = struct{}{}
				starts = append(starts, v)
				if err := x.meter.hold(1, 40); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, a := range starts {
		if err := x.walk(n.path, a, true, func(b id) error { return give(a, b) }); err != nil {
			return err
		}
	}
	return x.meter.hold(-int64(len(starts)), -40*int64(len(starts)))
}

// isNode tells whether the active graph has a triple of n.
func (x *exec) isNode(n id) (bool, error) {
	if n.isLocal() {
		return false, nil
	}
	found := &stopSign{}
	for _, pat := range [...]quad{{posS: n}, {posO: n}} {
		err := x.match(&pat, func(*quad) error { return found })
		if err == error(found) {
			return true, nil
		}
		if err != nil {
			return false, err
		}
	}
	return false, nil
}

// pathEnd is the id of an end of a path; open is true for a free variable.
func (x *exec) pathEnd(t pterm) (n id, open bool, err error) {
	if t.isVar() {
		n = x.row[t.slot]
		return n, n == 0, nil
	}
	n, err = x.idOf(t.term)
	return n, false, err
}

// walk calls fn for each node at the end of the path from start; backwards it follows the path from
// its end.
func (x *exec) walk(p path, start id, forward bool, fn func(id) error) error {
	if err := x.meter.tick(); err != nil {
		return err
	}
	switch p := p.(type) {
	case *linkPath:
		pred, err := lookup(x.v, p.iri)
		if err != nil || pred == 0 || start.isLocal() {
			return err
		}
		pat := quad{posP: pred}
		from, to := posS, posO
		if !forward {
			from, to = posO, posS
		}
		pat[from] = start
		return x.match(&pat, func(q *quad) error { return fn(q[to]) })
	case *inversePath:
		return x.walk(p.in, start, !forward, fn)
	case *seqPath:
		a, b := p.a, p.b
		if !forward {
			a, b = b, a
		}
		return x.walk(a, start, forward, func(mid id) error { return x.walk(b, mid, forward, fn) })
	case *altPath:
		if err := x.walk(p.a, start, forward, fn); err != nil {
			return err
		}
		return x.walk(p.b, start, forward, fn)
	case *repeatPath:
		return x.walkRepeat(p, start, forward, fn)
	case *notPath:
		return x.walkNot(p, start, forward, fn)
	}
	return unsupported("this property path")
}

// walkRepeat gives each reached node once, nearest first.
func (x *exec) walkRepeat(p *repeatPath, start id, forward bool, fn func(id) error) error {
	seen := map[id]struct{}{}
	var queue []id
	reach := func(n id) error {
		if _, ok := seen[n]; ok {
			return nil
		}
		seen[n] = struct{}{}
		queue = append(queue, n)
		if err := x.meter.hold(1, 40); err != nil {
			return err
		}
		return fn(n)
	}
	defer func() { x.meter.hold(-int64(len(seen)), -40*int64(len(seen))) }()
	if p.min == 0 {
		if err := reach(start); err != nil {
			return err
		}
	}
	if err := x.walk(p.in, start, forward, reach); err != nil || p.once {
		return err
	}
	for len(queue) > 0 {
		n := queue[0]
		queue = queue[1:]
		if n == start && p.min == 0 {
			continue
		}
		if err := x.walk(p.in, n, forward, reach); err != nil {
			return err
		}
	}
	return nil
}

func (x *exec) walkNot(p *notPath, start id, forward bool, fn func(id) error) error {
	if start.isLocal() {
		return nil
	}
	way := func(not []string, forward bool) error {
		pat := quad{}
		from, to := posS, posO
		if !forward {
			from, to = posO, posS
		}
		pat[from] = start
		ids, err := x.idsOf(not)
		if err != nil {
			return err
		}
		return x.match(&pat, func(q *quad) error {
			if has(ids, q[posP]) {
				return nil
			}
			return fn(q[to])
		})
	}
	if len(p.forward) > 0 || len(p.backward) == 0 {
		if err := way(p.forward, forward); err != nil {
			return err
		}
	}
	if len(p.backward) > 0 {
		return way(p.backward, !forward)
	}
	return nil
}

// walkAll is a negated set with both ends open.
func (x *exec) walkAll(p *notPath, give func(a, b id) error) error {
	way := func(not []string, a, b int) error {
		ids, err := x.idsOf(not)
		if err != nil {
			return err
		}
		pat := quad{}
		return x.match(&pat, func(q *quad) error {
			if has(ids, q[posP]) {
				return nil
			}
			return give(q[a], q[b])
		})
	}
	if len(p.forward) > 0 || len(p.backward) == 0 {
		if err := way(p.forward, posS, posO); err != nil {
			return err
		}
	}
	if len(p.backward) > 0 {
		return way(p.backward, posO, posS)
	}
	return nil
}

func (x *exec) idsOf(terms []string) ([]id, error) {
	var out []id
	for _, t := range terms {
		n, err := lookup(x.v, t)
		if err != nil {
			return nil, err
		}
		if n != 0 {
			out = append(out, n)
		}
	}
	return out, nil
}
