package embedstore

// patternIDs are the constants of a triple pattern.
type patternIDs struct {
	pat   quad
	none  bool // a constant unknown to the store
	guess float64
}

func (x *exec) patternOf(t *tripleNode) (*patternIDs, error) {
	if p, ok := x.consts[t]; ok {
		return p, nil
	}
	p := &patternIDs{guess: -1}
	for i, term := range [3]pterm{t.s, t.p, t.o} {
		if term.isVar() {
			continue
		}
		n, err := lookup(x.v, term.term)
		if err != nil {
			return nil, err
		}
		p.pat[i] = n
		p.none = p.none || n == 0
	}
	x.consts[t] = p
	return p, nil
}

// evalTriple matches a triple pattern in the active graph.
func (x *exec) evalTriple(t *tripleNode, emit next) error {
	ids, err := x.patternOf(t)
	if err != nil || ids.none {
		return err
	}
	pat := ids.pat
	// Variables bound by the match, by position.
	bind := [3]int{-1, -1, -1}
	for i, term := range [3]pterm{t.s, t.p, t.o} {
		if !term.isVar() {
			continue
		}
		if v := x.row[term.slot]; v != 0 {
			if v.isLocal() {
				return nil
			}
			pat[i] = v
		} else {
			bind[i] = term.slot
		}
	}
	// A variable twice in the pattern.
	sameSP := bind[0] >= 0 && bind[0] == bind[1]
	sameSO := bind[0] >= 0 && bind[0] == bind[2]
	samePO := bind[1] >= 0 && bind[1] == bind[2]

	// A variable also naming the graph of an open GRAPH.
	sameG := -1
	for i, slot := range bind {
		if slot >= 0 && x.g.mode == 2 && slot == x.g.slot {
			sameG = i
		}
	}

	return x.match(&pat, func(q *quad) error {
		if sameG >= 0 && q[sameG] != q[posG] {
			return nil
		}
		if sameSP && q[0] != q[1] || sameSO && q[0] != q[2] || samePO && q[1] != q[2] {
			return nil
		}
		for i, slot := range bind {
			if slot >= 0 {
				x.row[slot] = q[i]
			}
		}
		err := emit()
		for _, slot := range bind {
			if slot >= 0 {
				x.row[slot] = 0
			}
		}
		return err
	})
}

// match calls fn for each triple of the active graph with the ids of pat. In an open GRAPH ?g it
// binds the variable.
func (x *exec) match(pat *quad, fn func(q *quad) error) error {
	graphs := x.ds.defaults
	bindG := -1
	switch x.g.mode {
	case 1:
		graphs = []id{x.g.g}
	case 2:
		g := x.row[x.g.slot]
		if g == 0 {
			bindG = x.g.slot
			break
		}
		if g.isLocal() || x.ds.named != nil && !x.ds.named[g] {
			return nil
		}
		graphs = []id{g}
	}
	given := [4]bool{pat[0] != 0, pat[1] != 0, pat[2] != 0, false}
	one := bindG < 0 && len(graphs) == 1
	small := false
	if one {
		pat[posG], given[posG] = graphs[0], true
		if !given[0] {
			n, err := x.countOf(graphs[0])
			if err != nil || n == 0 {
				return err
			}
			small = n <= smallGraph
		}
	} else if bindG < 0 && len(graphs) == 0 {
		return nil
	}
	a := chooseAccess(given, small)
	allNamed := bindG >= 0 && !given[0] && !given[1] && !given[2]
	if allNamed {
		a.index = 3
	}
	cur, err := x.cursor(a.index)
	if err != nil {
		return err
	}
	var inner error
	var last quad
	each := func(q *quad) bool {
		if inner = x.meter.tick(); inner != nil {
			return false
		}
		switch {
		case one:
			inner = fn(q)
		case bindG >= 0:
			if q[posG] == 0 || x.ds.named != nil && !x.ds.named[q[posG]] {
				return true
			}
			x.row[bindG] = q[posG]
			inner = fn(q)
			x.row[bindG] = 0
		default:
			// The merge of several graphs holds a triple once; the graph comes last in these
			// indexes, so equal triples are neighbours.
			if !has(graphs, q[posG]) || last[0] == q[0] && last[1] == q[1] && last[2] == q[2] {
				return true
			}
			last = *q
			inner = fn(q)
		}
		return inner == nil
	}
	if allNamed {
		err = scanNamed(cur, each)
	} else {
		err = scan(x.v, cur, a, pat, one, each)
	}
	x.giveBack(a.index, cur)
	if inner != nil {
		return inner
	}
	return err
}

func has(sorted []id, g id) bool {
	for _, o := range sorted {
		if o == g {
			return true
		}
	}
	return false
}

// countOf is the number of triples of a graph.
func (x *exec) countOf(g id) (int64, error) {
	if n, ok := x.counts[g]; ok {
		return n, nil
	}
	n, err := graphCount(x.v, g)
	if err != nil {
		return 0, err
	}
	if x.counts == nil || len(x.counts) > 1000 {
		x.counts = map[id]int64{}
	}
	x.counts[g] = n
	return n, nil
}
