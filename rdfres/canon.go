package rdfres

import (
	"bytes"
	"crypto"
	"fmt"
	"slices"
	"strconv"

	_ "crypto/sha256" // registers SHA-256
	_ "crypto/sha512" // registers SHA-384
)

// CanonOptions choose the hash and bound the work. The zero value is RDFC-1.0
// as it is by default.
type CanonOptions struct {
	Hash      string // "SHA256" (also for ""), "SHA384"
	WorkLimit int    // 0: DefaultWorkLimit; negative: none
}

// Canonicalize is RDFC-1.0 (W3C Recommendation "RDF Dataset Canonicalization"): the canonical
// N-Quads document of the dataset, and the issued identifiers (label in the input to canonical
// label, both without "_:"). Doubles in qs count once; qs is not changed.
//
// With blank nodes as graph names RDFC-1.0 is not always canonical: its hash of a related blank
// node leaves out the position of the node itself. In
//
//	_:a <p> _:a _:x .  _:x <p> _:b .  _:a <p> _:b _:y .  _:y <p> _:a .
//
// it cannot tell _:x from _:y, and the order of the input decides. Canonicalize follows the
// Recommendation here; rsbridge never names graphs by blank nodes.
//
// A dataset beyond o.WorkLimit gives an error with errors.Is(err, ErrWorkLimit).
func Canonicalize(qs []Quad, o CanonOptions) (nquads []byte, issued map[string]string, err error) {
	c, err := newCanonizer(qs, o)
	if err != nil {
		return nil, nil, err
	}
	if err := c.run(); err != nil {
		return nil, nil, err
	}
	lines := make([][]byte, 0, len(qs))
	var arena []byte
	for _, q := range qs {
		start := len(arena)
		arena = c.appendCanonical(arena, q)
		lines = append(lines, arena[start:len(arena):len(arena)])
	}
	slices.SortFunc(lines, bytes.Compare)
	lines = slices.CompactFunc(lines, bytes.Equal)
	nquads = make([]byte, 0, len(arena))
	for _, l := range lines {
		nquads = append(nquads, l...)
	}
	issued = make(map[string]string, len(c.labels))
	for id, label := range c.labels {
		issued[label.Label()] = c.canonicalLabel(id)
	}
	return nquads, issued, nil
}

// canonPrefix begins every canonical identifier.
const canonPrefix = "c14n"

// canonizer is the canonicalization state of RDFC-1.0, section 4.2. Blank nodes are numbers, in the
// order of their first mention in the input.
type canonizer struct {
	hash   crypto.Hash
	limit  int
	work   int
	depth  int
	tied   int
	near   Term
	labels []Term       // by node
	ids    map[Term]int // node by label
	quads  []Quad       // without doubles
	of     [][]int32    // by node: the quads with it
	refs   [][]related  // by node: its related blank nodes
	first  [][]byte     // by node: hex of hash first degree
	canon  []int32      // by node: the number of its canonical identifier, -1: none yet
	next   int32        // next canonical number
	temp   issuer
	buf    []byte
}

// related is one mention of another blank node in a quad of a node.
type related struct {
	node int32
	pos  byte // 's', 'o', 'g': position of the other node
	pred Term
}

func newCanonizer(qs []Quad, o CanonOptions) (*canonizer, error) {
	c := &canonizer{limit: o.WorkLimit, ids: map[Term]int{}}
	switch o.Hash {
	case "", "SHA256":
		c.hash = crypto.SHA256
	case "SHA384":
		c.hash = crypto.SHA384
	default:
		return nil, fmt.Errorf("rdfres: canonicalize: no hash %q; there are SHA256 and SHA384", o.Hash)
	}
	if c.limit == 0 {
		c.limit = DefaultWorkLimit
	}
	seen := make(map[Quad]struct{})
	for _, q := range qs {
		if q.S.Kind() != KindBlank && q.O.Kind() != KindBlank && q.G.Kind() != KindBlank {
			continue
		}
		if _, double := seen[q]; double {
			continue
		}
		seen[q] = struct{}{}
		c.add(q)
	}
	c.first = make([][]byte, len(c.labels))
	c.canon = make([]int32, len(c.labels))
	for i := range c.canon {
		c.canon[i] = -1
	}
	c.temp.number = slices.Clone(c.canon)
	return c, nil
}

// add enters a quad with a blank node. (4.4.3, step 2)
func (c *canonizer) add(q Quad) {
	at := int32(len(c.quads))
	c.quads = append(c.quads, q)
	s, o, g := c.node(q.S), c.node(q.O), c.node(q.G)
	for i, n := range [3]int32{s, o, g} {
		if n < 0 || i > 0 && n == s || i > 1 && n == o {
			continue
		}
		c.of[n] = append(c.of[n], at)
		for _, r := range [3]related{{s, 's', q.P}, {o, 'o', q.P}, {g, 'g', ""}} {
			if r.node >= 0 && r.node != n {
				c.refs[n] = append(c.refs[n], r)
			}
		}
	}
	if c.near == "" {
		if q.S.Kind() == KindIRI {
			c.near = q.S
		} else if q.O.Kind() == KindIRI {
			c.near = q.O
		}
	}
}

func (c *canonizer) node(t Term) int32 {
	if t.Kind() != KindBlank {
		return -1
	}
	id, known := c.ids[t]
	if !known {
		id = len(c.labels)
		c.ids[t] = id
		c.labels = append(c.labels, t)
		c.of = append(c.of, nil)
		c.refs = append(c.refs, nil)
	}
	return int32(id)
}

// run issues the canonical identifiers. (4.4.3, steps 3 to 5)
func (c *canonizer) run() error {
	nodes := make([]int32, len(c.labels))
	for i := range nodes {
		nodes[i] = int32(i)
		c.first[i] = c.hashFirstDegree(int32(i))
	}
	slices.SortFunc(nodes, func(a, b int32) int { return bytes.Compare(c.first[a], c.first[b]) })
	var ties [][]int32
	for group := range groups(nodes, func(a, b int32) bool { return bytes.Equal(c.first[a], c.first[b]) }) {
		if len(group) == 1 {
			c.issue(group[0])
		} else {
			ties = append(ties, group)
			c.tied += len(group)
		}
	}
	type path struct {
		hash  []byte
		order []int32
	}
	for _, group := range ties {
		var paths []path
		for _, n := range group {
			if c.canon[n] >= 0 {
				continue
			}
			c.temp.cut(0)
			c.temp.issue(n)
			hash, err := c.hashNDegree(n)
			if err != nil {
				return err
			}
			paths = append(paths, path{hash, slices.Clone(c.temp.order)})
		}
		slices.SortStableFunc(paths, func(a, b path) int { return bytes.Compare(a.hash, b.hash) })
		for _, p := range paths {
			for _, n := range p.order {
				c.issue(n)
			}
		}
	}
	return nil
}

// groups yields the runs of equal neighbours.
func groups(nodes []int32, equal func(a, b int32) bool) func(yield func([]int32) bool) {
	return func(yield func([]int32) bool) {
		for len(nodes) > 0 {
			n := 1
			for n < len(nodes) && equal(nodes[0], nodes[n]) {
				n++
			}
			if !yield(nodes[:n:n]) {
				return
			}
			nodes = nodes[n:]
		}
	}
}

func (c *canonizer) issue(n int32) {
	if c.canon[n] < 0 {
		c.canon[n] = c.next
		c.next++
	}
}

func (c *canonizer) canonicalLabel(n int) string {
	return canonPrefix + strconv.Itoa(int(c.canon[n]))
}

// spend counts work and stops it at the limit.
func (c *canonizer) spend(units int) error {
	if c.work += units; c.limit > 0 && c.work > c.limit {
		return &WorkLimitError{Limit: c.limit, Nodes: c.tied, Near: c.near}
	}
	return nil
}

// hashFirstDegree is RDFC-1.0, section 4.6.
func (c *canonizer) hashFirstDegree(n int32) []byte {
	self := c.labels[n]
	rename := func(t Term) Term {
		switch {
		case t.Kind() != KindBlank:
			return t
		case t == self:
			return "_:a"
		}
		return "_:z"
	}
	var arena []byte
	lines := make([][]byte, 0, len(c.of[n]))
	for _, at := range c.of[n] {
		q, start := c.quads[at], len(arena)
		q.S, q.O, q.G = rename(q.S), rename(q.O), rename(q.G)
		arena = q.AppendLine(arena)
		lines = append(lines, arena[start:len(arena):len(arena)])
	}
	slices.SortFunc(lines, bytes.Compare)
	c.buf = c.buf[:0]
	for _, l := range lines {
		c.buf = append(c.buf, l...)
	}
	return c.sum(c.buf)
}

// sum is the hash of b in lower-case hexadecimal.
func (c *canonizer) sum(b []byte) []byte {
	h := c.hash.New()
	h.Write(b)
	const digits = "0123456789abcdef"
	raw := h.Sum(nil)
	hex := make([]byte, 0, 2*len(raw))
	for _, x := range raw {
		hex = append(hex, digits[x>>4], digits[x&15])
	}
	return hex
}

// appendCanonical appends the line of q with canonical labels.
func (c *canonizer) appendCanonical(dst []byte, q Quad) []byte {
	rename := func(t Term) Term {
		if t.Kind() != KindBlank {
			return t
		}
		return Term("_:" + c.canonicalLabel(c.ids[t]))
	}
	q.S, q.O, q.G = rename(q.S), rename(q.O), rename(q.G)
	return q.AppendLine(dst)
}
