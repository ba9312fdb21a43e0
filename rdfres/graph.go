package rdfres

import (
	"fmt"
	"maps"
	"slices"
	"sync"
)

// TooLargeError is a description with more triples than it may have. It names the
// entity and the bound. errors.Is(err, ErrTooLarge).
type TooLargeError struct {
	Entity     Term
	MaxTriples int
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("rdfres: describe %s: %v: more than %d triples; raise the bound or choose a narrower description", e.Entity, ErrTooLarge, e.MaxTriples)
}

func (e *TooLargeError) Unwrap() error { return ErrTooLarge }

// Graph is an index of triples in memory, for closures. It is read only and
// safe for concurrent use. Doubles among its triples do not matter.
type Graph struct {
	bySubject map[Term][]Triple
	byObject  func() map[Term][]Triple // IRIs and blank nodes only; made once it is asked for
}

// NewGraph indexes ts. It neither keeps nor changes ts.
func NewGraph(ts []Triple) *Graph {
	g := &Graph{bySubject: index(ts, func(t Triple) Term { return t.S })}
	g.byObject = sync.OnceValue(func() map[Term][]Triple {
		return index(slices.Concat(slices.Collect(maps.Values(g.bySubject))...), func(t Triple) Term {
			if t.O.Kind() == KindLiteral {
				return ""
			}
			return t.O
		})
	})
	return g
}

// index groups ts by key in one array; triples with the key "" are left out.
func index(ts []Triple, key func(Triple) Term) map[Term][]Triple {
	slot := make(map[Term]int32)
	var counts []int
	total := 0
	for _, t := range ts {
		k := key(t)
		if k == "" {
			continue
		}
		i, known := slot[k]
		if !known {
			i = int32(len(counts))
			slot[k] = i
			counts = append(counts, 0)
		}
		counts[i]++
		total++
	}
	array := make([]Triple, total)
	lists := make([][]Triple, len(counts))
	at := 0
	for i, n := range counts {
		lists[i] = array[at : at : at+n]
		at += n
	}
	for _, t := range ts {
		if k := key(t); k != "" {
			i := slot[k]
			lists[i] = append(lists[i], t)
		}
	}
	out := make(map[Term][]Triple, len(slot))
	for k, i := range slot {
		out[k] = lists[i]
	}
	return out
}

// Subjects calls yield for each subject once, in no order.
func (g *Graph) Subjects(yield func(Term) bool) {
	for s := range g.bySubject {
		if !yield(s) {
			return
		}
	}
}

// CBD is the concise bounded description of node: every triple with it as subject and, recursively,
// every triple whose subject is a blank node and an object of the description. Reifications are not
// followed (step 3 of the W3C submission of 2004), as in all stores. Sorted, without doubles; nil
// when node is no subject.
func (g *Graph) CBD(node Term) []Triple {
	ts, _ := g.BoundedCBD(node, 0)
	return ts
}

// BoundedCBD is CBD with at most maxTriples triples (0: no bound); one more is a
// *TooLargeError. Doubles in the input of NewGraph count.
func (g *Graph) BoundedCBD(node Term, maxTriples int) ([]Triple, error) {
	c := closure{max: maxTriples, entity: node}
	if err := c.follow(node, g.bySubject, objectOf); err != nil {
		return nil, err
	}
	return SortUnique(c.out), nil
}

// SCBD is the symmetric concise bounded description of node: its CBD, and every triple with node as
// object and, recursively, every triple whose object is a blank node and a subject in this inbound
// part. The other properties of such a blank node, and reifications, are not in it. Sorted, without
// doubles.
func (g *Graph) SCBD(node Term) []Triple {
	var c closure
	_ = c.follow(node, g.bySubject, objectOf) // fails at a bound alone
	_ = c.follow(node, g.byObject(), subjectOf)
	return SortUnique(c.out)
}

func objectOf(t Triple) Term  { return t.O }
func subjectOf(t Triple) Term { return t.S }

type closure struct {
	out    []Triple
	max    int
	entity Term
}

// follow collects the triples of node in index, and of every blank node at the far end of a
// collected triple.
func (c *closure) follow(node Term, index map[Term][]Triple, far func(Triple) Term) error {
	var seen map[Term]struct{}
	stack := []Term{node}
	for len(stack) > 0 {
		n := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for _, t := range index[n] {
			if c.max > 0 && len(c.out) >= c.max {
				return &TooLargeError{Entity: c.entity, MaxTriples: c.max}
			}
			c.out = append(c.out, t)
			next := far(t)
			if next.Kind() != KindBlank || next == node {
				continue
			}
			if _, again := seen[next]; again {
				continue
			}
			if seen == nil {
				seen = make(map[Term]struct{})
			}
			seen[next] = struct{}{}
			stack = append(stack, next)
		}
	}
	return nil
}
