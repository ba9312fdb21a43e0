package rdfres

import (
	"bytes"
	"fmt"
	"slices"
)

// Component is one blank-node component found by NameBlanks.
type Component struct {
	Names   ComponentNames // Position is by the labels of the input
	Ordinal int            // among the components of equal digest: 0, 1, 2, ...
	Triples []Triple       // with wire names; sorted and unique
}

// NameBlanks gives every blank node of a graph held in memory its wire name. The graph must hold
// each component whole. Components come in the order of their digests, equal ones by ordinal. named
// is sorted and unique, and isomorphic to ts. ts is not changed. Isomorphic graphs give equal
// results.
//
// A component beyond o.WorkLimit is a *WorkLimitError.
func NameBlanks(ts []Triple, o NameOptions) (named []Triple, comps []Component, err error) {
	groups, named := Components(ts)
	comps = make([]Component, len(groups))
	for i, g := range groups {
		names, err := LabelComponent(g, o)
		if err != nil {
			return nil, nil, err
		}
		comps[i] = Component{Names: names, Triples: g}
	}
	slices.SortStableFunc(comps, func(a, b Component) int { return bytes.Compare(a.Names.Digest[:], b.Names.Digest[:]) })
	for i := range comps {
		c := &comps[i]
		if i > 0 && comps[i-1].Names.Digest == c.Names.Digest {
			c.Ordinal = comps[i-1].Ordinal + 1
		}
		if c.Triples, err = c.Names.Rename(c.Triples, c.Ordinal); err != nil {
			return nil, nil, err
		}
		named = append(named, c.Triples...)
	}
	return SortUnique(named), comps, nil
}

// Rename gives the triples of the component their wire names: sorted, unique,
// ts itself unchanged.
func (c ComponentNames) Rename(ts []Triple, ordinal int) ([]Triple, error) {
	names := make(map[Term]Term, len(c.Position))
	for node, position := range c.Position {
		names[node] = Term(c.appendName(make([]byte, 0, 64), position, ordinal))
	}
	out := make([]Triple, len(ts))
	for i, t := range ts {
		for _, term := range [2]*Term{&t.S, &t.O} {
			if term.Kind() == KindBlank {
				name, ok := names[*term]
				if !ok {
					return nil, fmt.Errorf("rdfres: name blank nodes: %s is not in component %s", *term, c.Digest)
				}
				*term = name
			}
		}
		out[i] = t
	}
	return SortUnique(out), nil
}

// Components splits a graph into the triples of each of its blank-node components, and the ground
// triples without blank nodes. Components come in the order of their first triples in ts, triples
// in the order of ts.
func Components(ts []Triple) (comps [][]Triple, ground []Triple) {
	ids := make(map[Term]int32)
	var sets unionFind
	id := func(t Term) int32 {
		i, known := ids[t]
		if !known {
			i = int32(len(ids))
			ids[t] = i
			sets.grow(len(ids))
		}
		return i
	}
	node := make([]int32, len(ts)) // by triple: one of its blank nodes, -1: ground
	for i, t := range ts {
		node[i] = -1
		if t.S.Kind() == KindBlank {
			node[i] = id(t.S)
		}
		if t.O.Kind() == KindBlank {
			o := id(t.O)
			if node[i] >= 0 {
				sets.join(node[i], o)
			}
			node[i] = o
		}
	}
	// Lay the groups out in one array.
	slot := make([]int32, len(ids)) // by root: 1 + the number of its component
	var sizes []int
	for _, n := range node {
		if n >= 0 {
			root := sets.find(n)
			if slot[root] == 0 {
				sizes = append(sizes, 0)
				slot[root] = int32(len(sizes))
			}
			sizes[slot[root]-1]++
		}
	}
	total := 0
	for _, n := range sizes {
		total += n
	}
	array := make([]Triple, total)
	comps = make([][]Triple, len(sizes))
	for i, n := range sizes {
		comps[i], array = array[:0:n], array[n:]
	}
	for i, t := range ts {
		if n := node[i]; n < 0 {
			ground = append(ground, t)
		} else {
			c := slot[sets.find(n)] - 1
			comps[c] = append(comps[c], t)
		}
	}
	return comps, ground
}

// unionFind holds disjoint sets of the numbers below len(parent).
type unionFind struct{ parent []int32 }

func (u *unionFind) grow(n int) {
	for len(u.parent) < n {
		u.parent = append(u.parent, int32(len(u.parent)))
	}
}

func (u *unionFind) find(x int32) int32 {
	for u.parent[x] != x {
		u.parent[x] = u.parent[u.parent[x]]
		x = u.parent[x]
	}
	return x
}

// join unites the sets of a and b; false when they were one.
func (u *unionFind) join(a, b int32) bool {
	a, b = u.find(a), u.find(b)
	if a == b {
		return false
	}
	u.parent[max(a, b)] = min(a, b)
	return true
}
