package sparqlsrc

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/rsbridge/rsbridge/internal/extsort"
	"github.com/rsbridge/rsbridge/rdfres"
)

// fail notes an entity without a description.
func (g *grouper) fail(entity string, err error) {
	g.failed.add(entity, fmt.Errorf("describe %s: %w", entity, err))
}

// failAll notes it for all owners of the component. An orphan has no name yet: its
// provisional name says so.
func (g *grouper) failAll(c *component, seq uint64, err error) {
	for _, o := range c.owners {
		g.fail(rdfres.Term(o).IRI(), err)
	}
	if len(c.owners) == 0 {
		g.orphanFailed = true
		g.fail(fmt.Sprintf("%sunnamed:%d", orphanPrefix, seq), err)
	}
}

// orphanPrefix begins every rdfres.OrphanEntity.
const orphanPrefix = "urn:rsbridge:component:"

// Receivers of a record of the named sorter.
const (
	toEntity = 0 // 32 bytes of entity key, the line, its flag
	toOrphan = 1 // the line, its flag
	toTarget = 2 // as toEntity for the inbound part: 32 bytes, four of length, the IRI, the line, its flag
)

// describeComponent names the nodes of one component and writes, for each
// owner, the triples in its reach. Names have the ordinal 0.
func (g *grouper) describeComponent(c *component, seq uint64, out *extsort.Sorter) error {
	if c.tooLarge {
		g.failAll(c, seq, fmt.Errorf("a component of connected blank nodes has %d triples, more than %d (%s)", c.distinct, g.cfg.MaxDescriptionTriples, g.cfg.Names.Of("max_description_triples")))
		return nil
	}
	if err := checkAll(c.triples); err != nil {
		g.failAll(c, seq, err)
		return nil
	}
	names, err := rdfres.LabelComponent(c.triples, rdfres.NameOptions{WorkLimit: g.cfg.WorkLimit})
	if err != nil {
		g.failAll(c, seq, fmt.Errorf("name its blank nodes within %s: %w", g.cfg.Names.Of("max_naming_work"), err))
		return nil
	}
	if g.wanted != nil && !g.wanted(c.owners, names.Digest) {
		return nil
	}
	x := newIndex(c.triples, names)
	var key [40]byte
	copy(key[:], names.Digest[:])
	binary.BigEndian.PutUint64(key[32:], seq)
	emit := func(head []byte, i int, flag byte) error {
		g.value = append(append(append(g.value[:0], head...), x.lines[i]...), flag)
		return out.Add(key[:], g.value)
	}

	// Nodes beyond the reach of all owners are an orphan, or a part of one.
	reachedByAny := make([]bool, len(x.out))
	var head [33]byte
	type span struct{ from, to int } // triples of an owner: they stand in a row
	var owners []span
	for i := 0; i < len(c.triples) && c.triples[i].S[0] == '<'; {
		j := i + 1
		for j < len(c.triples) && c.triples[j].S == c.triples[i].S {
			j++
		}
		owners = append(owners, span{i, j})
		i = j
	}
	for _, o := range owners {
		for i := o.from; i < o.to; i++ {
			reachedByAny[x.object[i]] = true
		}
	}
	x.spread(reachedByAny)
	var rest []int // nodes out of reach of any IRI
	for n, ok := range reachedByAny {
		if !ok {
			rest = append(rest, n)
		}
	}
	flag := byte(flagShared)
	if !g.scbd && ((len(owners) == 1 && len(rest) == 0) || len(owners) == 0) {
		flag = flagBlank
	}
	ownFlag := byte(flagBlank)
	if g.scbd {
		ownFlag = flagShared
	}
	for _, o := range owners {
		entity := c.triples[o.from].S.IRI()
		var starts []int
		for i := o.from; i < o.to; i++ {
			starts = append(starts, x.object[i])
		}
		found, depth := x.reach(starts)
		if depth > g.cfg.MaxDepth {
			g.fail(entity, fmt.Errorf("its blank nodes are nested deeper than %d (%s)", g.cfg.MaxDepth, g.cfg.Names.Of("max_depth")))
			continue
		}
		ek := rdfres.EntityKey(entity)
		head[0] = toEntity
		copy(head[1:], ek[:])
		for i := o.from; i < o.to; i++ {
			if err := emit(head[:], i, ownFlag); err != nil {
				return err
			}
		}
		for _, n := range found {
			for _, i := range x.out[n] {
				if err := emit(head[:], i, flag); err != nil {
					return err
				}
			}
		}
	}
	if len(rest) > 0 {
		found, _ := x.reach(rest)
		for _, n := range found {
			for _, i := range x.out[n] {
				if err := emit([]byte{toOrphan}, i, flag); err != nil {
					return err
				}
			}
		}
	}
	if g.scbd {
		return x.inbound(c.triples, func(target string, i int) error {
			ek := rdfres.EntityKey(target)
			head := append(append([]byte{toTarget}, ek[:]...), 0, 0, 0, 0)
			binary.BigEndian.PutUint32(head[33:], uint32(len(target)))
			return emit(append(head, target...), i, flagInbound)
		})
	}
	return nil
}

// index is a component's triples by node.
type index struct {
	lines   []string // of the triples, with the names of ordinal 0
	out     [][]int  // triples by subject node
	in      [][]int  // triples by object node
	subject []int    // node, -1 for an IRI
	object  []int    // node, -1 for an IRI or a literal
	mark    []int    // of reach: the node's last round
	round   int
}

func newIndex(ts []rdfres.Triple, names rdfres.ComponentNames) *index {
	x := &index{lines: make([]string, len(ts)), subject: make([]int, len(ts)), object: make([]int, len(ts))}
	number := make(map[rdfres.Term]int, len(names.Position))
	var wire []rdfres.Term
	node := func(t rdfres.Term) int {
		if t[0] != '_' {
			return -1
		}
		n, ok := number[t]
		if !ok {
			n = len(wire)
			number[t] = n
			wire = append(wire, names.Name(t, 0))
			x.out, x.in = append(x.out, nil), append(x.in, nil)
		}
		return n
	}
	var buf []byte
	for i, t := range ts {
		if n := node(t.S); n >= 0 {
			x.out[n] = append(x.out[n], i)
			t.S = wire[n]
			x.subject[i] = n
		} else {
			x.subject[i] = -1
		}
		if n := node(t.O); n >= 0 {
			x.in[n] = append(x.in[n], i)
			t.O = wire[n]
			x.object[i] = n
		} else {
			x.object[i] = -1
		}
		buf = appendTriple(buf[:0], t)
		x.lines[i] = string(buf)
	}
	x.mark = make([]int, len(x.out))
	return x
}

// reach gives the nodes in reach of the starts, these included, and the steps to the
// farthest (1: only the starts).
func (x *index) reach(starts []int) (found []int, depth int) {
	x.round++
	for _, n := range starts {
		if x.mark[n] != x.round {
			x.mark[n] = x.round
			found = append(found, n)
		}
	}
	for from := 0; from < len(found); depth++ {
		to := len(found)
		for _, n := range found[from:to] {
			for _, i := range x.out[n] {
				if o := x.object[i]; o >= 0 && x.mark[o] != x.round {
					x.mark[o] = x.round
					found = append(found, o)
				}
			}
		}
		from = to
	}
	return found, depth
}

// spread completes a set of nodes by the nodes in their reach.
func (x *index) spread(set []bool) {
	var starts []int
	for n, ok := range set {
		if ok {
			starts = append(starts, n)
		}
	}
	found, _ := x.reach(starts)
	for _, n := range found {
		set[n] = true
	}
}

// inbound gives, for each IRI in reach of the component, the triples on the way to it:
// directly, or through blank nodes backwards (rdfres.Graph.SCBD).
func (x *index) inbound(ts []rdfres.Triple, f func(target string, i int) error) error {
	targets := map[rdfres.Term][]int{}
	var order []rdfres.Term
	for i, t := range ts {
		if x.subject[i] >= 0 && t.O[0] == '<' {
			if targets[t.O] == nil {
				order = append(order, t.O)
			}
			targets[t.O] = append(targets[t.O], i)
		}
	}
	for _, o := range order {
		target := o.IRI()
		x.round++
		var queue []int
		visit := func(i int) error {
			if n := x.subject[i]; n >= 0 && x.mark[n] != x.round {
				x.mark[n] = x.round
				queue = append(queue, n)
			}
			return f(target, i)
		}
		for _, i := range targets[o] {
			if err := visit(i); err != nil {
				return err
			}
		}
		for len(queue) > 0 {
			n := queue[len(queue)-1]
			queue = queue[:len(queue)-1]
			for _, i := range x.in[n] {
				if err := visit(i); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// nameComponents reads the described components in the order of the digests, numbers
// equal ones, and gives the lines to the entities. The order of two equal components does
// not matter: they are equal in everything, also in their owners.
func (g *grouper) nameComponents(ctx context.Context, named *extsort.Sorter) error {
	var last [40]byte
	var orphan string
	var orphanKey rdfres.Digest
	ordinal, first, n := 0, true, 0
	for r, err := range named.Sort() {
		if err != nil {
			return err
		}
		if n++; n&0xfff == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if first || !bytes.Equal(last[:], r.Key) {
			if !first && bytes.Equal(last[:32], r.Key[:32]) {
				ordinal++
			} else {
				ordinal = 0
			}
			copy(last[:], r.Key)
			first, orphan = false, ""
		}
		value := r.Value
		switch value[0] {
		case toEntity:
			line := withOrdinal(value[33:], ordinal)
			if err := g.entities.Add(value[1:33], line); err != nil {
				return err
			}
		case toTarget:
			k := 37 + int(binary.BigEndian.Uint32(value[33:]))
			if err := g.entities.Add(value[1:33], append([]byte{recordEntity}, value[37:k]...)); err != nil {
				return err
			}
			if err := g.entities.Add(value[1:33], withOrdinal(value[k:], ordinal)); err != nil {
				return err
			}
		case toOrphan:
			if orphan == "" {
				orphan = rdfres.OrphanEntity(rdfres.Digest(last[:32]), ordinal)
				orphanKey = rdfres.EntityKey(orphan)
				if err := g.entities.Add(orphanKey[:], append([]byte{recordEntity}, orphan...)); err != nil {
					return err
				}
			}
			if err := g.entities.Add(orphanKey[:], withOrdinal(value[1:], ordinal)); err != nil {
				return err
			}
		}
	}
	return nil
}

// withOrdinal renames the blank nodes of a line, all of one component, from ordinal 0.
func withOrdinal(line []byte, ordinal int) []byte {
	if ordinal == 0 {
		return line
	}
	flag := line[len(line)-1]
	t := tripleOf(string(line[:len(line)-1]))
	suffix := fmt.Sprintf("d%d", ordinal)
	for _, term := range []*rdfres.Term{&t.S, &t.O} {
		if strings.HasPrefix(string(*term), "_:") {
			*term += rdfres.Term(suffix)
		}
	}
	return append(appendTriple(nil, t), flag)
}
