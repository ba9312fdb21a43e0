package sparqlsrc

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/rsbridge/rsbridge/internal/extsort"
	"github.com/rsbridge/rsbridge/rdfres"
)

// components finds the components of blank nodes and describes each of them. Its memory
// grows by four bytes a blank node, and otherwise not with the graph:
//
//  1. The blanks sorter brings all mentions of a label together: labels get the
//     numbers 0, 1, 2, ... in that order.
//  2. The two ends of each triple between blank nodes meet by sorting them by
//     the number of the triple; a union-find over the numbers joins them.
//  3. All lines are sorted by the root of their node: components, one by one.
func (g *grouper) components(ctx context.Context) (err error) {
	nodes, err := g.join(ctx)
	if err != nil {
		return err
	}
	comps, err := extsort.New(g.dir, g.cfg.MemoryBytes/8)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, comps.Close()) }()
	n := 0
	err = g.eachMention(ctx, func(id uint32, value []byte) error {
		var line []byte
		switch value[0] {
		case blankLine:
			line = value[1:]
		case edgeSubject:
			line = value[9:]
		default:
			return nil
		}
		n++
		var key [4]byte
		binary.BigEndian.PutUint32(key[:], nodes.root(id))
		return comps.Add(key[:], line)
	})
	if err != nil {
		return err
	}
	nodes = nil
	return g.describeComponents(ctx, comps, int64(n))
}

// join numbers the labels and joins the ends of all edges.
func (g *grouper) join(ctx context.Context) (nodes unionFind, err error) {
	ends, err := extsort.New(g.dir, g.cfg.MemoryBytes/16)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, ends.Close()) }()
	count := uint32(0)
	err = g.eachMention(ctx, func(id uint32, value []byte) error {
		count = id + 1
		if value[0] == blankLine {
			return nil
		}
		var id4 [4]byte
		binary.BigEndian.PutUint32(id4[:], id)
		return ends.Add(value[1:9], id4[:])
	})
	if err != nil {
		return nil, err
	}
	nodes = newUnionFind(count)
	var edge [8]byte
	var first uint32
	half := false
	for r, err := range ends.Sort() {
		if err != nil {
			return nil, err
		}
		id := binary.BigEndian.Uint32(r.Value)
		if half && bytes.Equal(edge[:], r.Key) {
			nodes.union(first, id)
			half = false
			continue
		}
		copy(edge[:], r.Key)
		first, half = id, true
	}
	return nodes, nil
}

// eachMention goes through the blanks sorter; id is the number of the label.
func (g *grouper) eachMention(ctx context.Context, f func(id uint32, value []byte) error) error {
	var last [16]byte
	id, n := int64(-1), 0
	for r, err := range g.blanks.Sort() {
		if err != nil {
			return err
		}
		if n++; n&0xfff == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if id < 0 || !bytes.Equal(last[:], r.Key) {
			if id++; id >= math.MaxUint32 {
				return fmt.Errorf("more than %d blank nodes", uint32(math.MaxUint32))
			}
			copy(last[:], r.Key)
		}
		if err := f(uint32(id), r.Value); err != nil {
			return err
		}
	}
	return nil
}

// unionFind joins numbers; the parent of a root is itself. Smaller numbers
// become roots and paths are halved: near to linear without ranks.
type unionFind []uint32

func newUnionFind(n uint32) unionFind {
	u := make(unionFind, n)
	for i := range u {
		u[i] = uint32(i)
	}
	return u
}

func (u unionFind) root(i uint32) uint32 {
	for u[i] != i {
		u[i] = u[u[i]]
		i = u[i]
	}
	return i
}

func (u unionFind) union(a, b uint32) {
	a, b = u.root(a), u.root(b)
	switch {
	case a < b:
		u[b] = a
	case b < a:
		u[a] = b
	}
}

// describeComponents goes through the components, names their nodes, and gives
// each owner the triples in its reach. Ordinals of equal components come from a second
// sort, by digest.
func (g *grouper) describeComponents(ctx context.Context, comps *extsort.Sorter, total int64) (err error) {
	named, err := extsort.New(g.dir, g.cfg.MemoryBytes/8)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, named.Close()) }()
	if g.touch != nil {
		err := g.eachComponent(ctx, comps, false, func(c *component) error {
			g.touch(c.owners, func() rdfres.Digest {
				names, err := rdfres.LabelComponent(c.triples, rdfres.NameOptions{WorkLimit: g.cfg.WorkLimit})
				if err != nil || c.tooLarge {
					return rdfres.Digest{} // it will be told when it is described
				}
				return names.Digest
			})
			return nil
		})
		if err != nil {
			return err
		}
	}
	seq, done := uint64(0), int64(0)
	err = g.eachComponent(ctx, comps, true, func(c *component) error {
		seq++
		g.distinctBlank += c.distinct
		if done += c.distinct; seq&0xff == 0 {
			g.cfg.Progress("group", done, total)
		}
		return g.describeComponent(c, seq, named)
	})
	if err != nil {
		return err
	}
	return g.nameComponents(ctx, named)
}

// component is one blank-node component, with the labels of the store.
type component struct {
	triples  []rdfres.Triple // sorted, without doubles; cut when tooLarge
	owners   []string        // IRIs with a way to it, as canonical terms in order; always all
	distinct int64
	tooLarge bool
}

// eachComponent gathers the components one after the other; doubles are noted
// the first time.
func (g *grouper) eachComponent(ctx context.Context, comps *extsort.Sorter, first bool, f func(*component) error) error {
	var key [4]byte
	var last []byte
	c := &component{}
	flush := func() error {
		if c.distinct == 0 {
			return nil
		}
		err := f(c)
		*c = component{triples: c.triples[:0], owners: c.owners[:0]}
		return err
	}
	n := 0
	for r, err := range comps.Sort() {
		if err != nil {
			return err
		}
		if n++; n&0xfff == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if c.distinct > 0 && !bytes.Equal(key[:], r.Key) {
			if err := flush(); err != nil {
				return err
			}
		}
		if c.distinct > 0 && bytes.Equal(last, r.Value) {
			if first {
				g.doubles.add(last)
			}
			continue
		}
		copy(key[:], r.Key)
		last = append(last[:0], r.Value...)
		c.distinct++
		if last[0] == '<' {
			end := termEnd(last, 0)
			if k := len(c.owners); k == 0 || c.owners[k-1] != string(last[:end]) {
				c.owners = append(c.owners, string(last[:end]))
			}
		}
		if c.tooLarge = c.distinct > int64(g.cfg.MaxDescriptionTriples); !c.tooLarge {
			c.triples = append(c.triples, tripleOf(string(last)))
		}
	}
	return flush()
}
