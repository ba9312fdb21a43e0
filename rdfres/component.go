package rdfres

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// NameOptions steer the naming. Scope is mixed into every digest. It is "" for the triples of one
// whole graph with global names (our sources), and the document's address for labels without a
// meaning outside it (foreign ones).
type NameOptions struct {
	Scope     string
	WorkLimit int // bound of the work on similar nodes; 0: DefaultWorkLimit, negative: none. ErrWorkLimit beyond it
}

// ComponentNames are the canonical positions of the blank nodes of one component and its digest.
// Isomorphic components have equal digests, and positions that an isomorphism maps to each other.
// Components that are not isomorphic have different digests.
type ComponentNames struct {
	Digest   Digest
	Position map[Term]int // every blank node of the component: 0, 1, 2, ...
	Orphan   bool         // no IRI leads to it
}

// Name is the blank node's name: label "rsb" + the first 40 hexadecimal digits of the digest + "n"
// + position, and "d" + ordinal when it is not 0. "" for a node outside the component.
func (c ComponentNames) Name(node Term, ordinal int) Term {
	position, ok := c.Position[node]
	if !ok {
		return ""
	}
	return Term(c.appendName(make([]byte, 0, 64), position, ordinal))
}

func (c ComponentNames) appendName(b []byte, position, ordinal int) []byte {
	b = append(b, "_:"+wirePrefix...)
	b = appendHex(b, c.Digest[:20])
	b = strconv.AppendInt(append(b, 'n'), int64(position), 10)
	if ordinal != 0 {
		b = strconv.AppendInt(append(b, 'd'), int64(ordinal), 10)
	}
	return b
}

func appendHex(dst, raw []byte) []byte {
	const digits = "0123456789abcdef"
	for _, x := range raw {
		dst = append(dst, digits[x>>4], digits[x&15])
	}
	return dst
}

// OrphanEntity is the IRI of an orphan component as a resource: urn:rsbridge:component:HEX-ORDINAL,
// all 64 digits of the digest.
func OrphanEntity(d Digest, ordinal int) string {
	return "urn:rsbridge:component:" + d.String() + "-" + strconv.Itoa(ordinal)
}

// CutOrphan takes such an IRI apart; ok is false for any other.
func CutOrphan(iri string) (d Digest, ordinal int, ok bool) {
	digest, rest, ok := strings.Cut(strings.TrimPrefix(iri, "urn:rsbridge:component:"), "-")
	if !ok {
		return d, 0, false
	}
	raw, err := hex.DecodeString(digest)
	if err != nil || copy(d[:], raw) != len(d) || len(raw) != len(d) {
		return d, 0, false
	}
	ordinal, err = strconv.Atoi(rest)
	return d, ordinal, err == nil && OrphanEntity(d, ordinal) == iri
}

// ErrNotComponent reports triples given to LabelComponent that are not exactly one blank-node
// component.
var ErrNotComponent = errors.New("not one blank-node component")

// LabelComponent computes the names of one blank-node component. ts holds every triple with one of
// its nodes as subject or as object, and nothing else, in any order; doubles do not matter; ts is
// not changed. The result does not depend on the labels.
//
// Every node is hashed with its triples to and from IRIs and literals.
//
//  1. A tree (one node without blank parent, each other node with exactly one
//     triple from another blank node to it) is hashed bottom-up. The
//     digest is made of the root's hash; positions are preorder, children
//     sorted by predicate and hash.
//  2. Of anything else the branches are hashed in the same way and cut off
//     (nodes with one remaining triple to another blank node, from the outside
//     inwards). The rest, the core, is refined: nodes with different
//     neighbours are told apart, until nothing changes. Nodes still alike are
//     ordered by RDFC-1.0 within o.WorkLimit. The digest is made of the core's
//     hashes and edges in this order.
//
// All of it is iterative, and n log n in the number of triples but for the last step.
func LabelComponent(ts []Triple, o NameOptions) (ComponentNames, error) {
	var n naming
	if err := n.load(ts); err != nil {
		return ComponentNames{}, err
	}
	names := ComponentNames{Orphan: n.near == "", Position: make(map[Term]int, len(n.nodes))}
	if root, order := n.tree(); order != nil {
		n.hashTree(order)
		names.Digest = n.digest("tree", o.Scope, n.hash[root][:])
		n.number(names.Position, []int32{root})
		return names, nil
	}
	core, err := n.core(o.WorkLimit)
	if err != nil {
		return ComponentNames{}, err
	}
	names.Digest = n.digest("core", o.Scope, n.coreBytes(core))
	n.number(names.Position, core)
	return names, nil
}

// naming is one run of LabelComponent. Blank nodes are numbers in it.
type naming struct {
	nodes   []Term
	ids     map[Term]int32
	content []entry  // triples to and from IRIs and literals; sorted by node and bytes
	from    []int32  // by node: begin of its content; one more at the end
	edges   []edge   // triples between blank nodes; sorted, no doubles
	kids    [][]kid  // by node: the branches cut off from it
	hash    []Digest // by node, once it is known
	near    Term     // the least IRI linking to the component
	buf     []byte
}

type entry struct {
	node  int32
	bytes []byte
}

type edge struct {
	from, to int32
	pred     Term
}

// kid is a branch: its first node, and the triple joining it.
type kid struct {
	node int32
	up   bool // the triple leads from the branch
	pred Term
}

func (n *naming) load(ts []Triple) error {
	n.ids = make(map[Term]int32)
	size := 0
	for _, t := range ts {
		size += len(t.S) + len(t.P) + len(t.O) + 8
	}
	arena := make([]byte, 0, size)
	add := func(node int32, tag byte, a, b Term) {
		start := len(arena)
		arena = appendField(appendField(append(arena, tag), string(a)), string(b))
		n.content = append(n.content, entry{node, arena[start:len(arena):len(arena)]})
	}
	n.content = make([]entry, 0, len(ts))
	for _, t := range ts {
		s, o := t.S.Kind(), t.O.Kind()
		if t.P.Kind() != KindIRI || s != KindIRI && s != KindBlank || o == KindNone {
			return fmt.Errorf("rdfres: name blank nodes: %s %s %s is no triple", t.S, t.P, t.O)
		}
		switch {
		case s == KindBlank && o == KindBlank:
			n.edges = append(n.edges, edge{n.id(t.S), n.id(t.O), t.P})
		case s == KindBlank:
			add(n.id(t.S), 'a', t.P, t.O)
		case o == KindBlank:
			add(n.id(t.O), 'c', t.S, t.P)
			if n.near == "" || t.S < n.near {
				n.near = t.S
			}
		default:
			return fmt.Errorf("rdfres: name blank nodes: %w: %s %s %s has no blank node", ErrNotComponent, t.S, t.P, t.O)
		}
	}
	slices.SortFunc(n.content, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.node, b.node), bytes.Compare(a.bytes, b.bytes))
	})
	n.content = slices.CompactFunc(n.content, func(a, b entry) bool { return a.node == b.node && bytes.Equal(a.bytes, b.bytes) })
	slices.SortFunc(n.edges, compareEdges)
	n.edges = slices.Compact(n.edges)
	n.from = make([]int32, len(n.nodes)+1)
	for _, e := range n.content {
		n.from[e.node+1]++
	}
	for i := range n.nodes {
		n.from[i+1] += n.from[i]
	}
	n.hash = make([]Digest, len(n.nodes))
	n.kids = make([][]kid, len(n.nodes))
	return n.connected()
}

func (n *naming) id(t Term) int32 {
	id, known := n.ids[t]
	if !known {
		id = int32(len(n.nodes))
		n.ids[t] = id
		n.nodes = append(n.nodes, t)
	}
	return id
}

func compareEdges(a, b edge) int {
	return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.pred, b.pred), cmp.Compare(a.to, b.to))
}

// connected checks that the triples are of one component.
func (n *naming) connected() error {
	if len(n.nodes) == 0 {
		return fmt.Errorf("rdfres: name blank nodes: %w: no triples", ErrNotComponent)
	}
	var sets unionFind
	sets.grow(len(n.nodes))
	left := len(n.nodes)
	for _, e := range n.edges {
		if sets.join(e.from, e.to) {
			left--
		}
	}
	if left > 1 {
		return fmt.Errorf("rdfres: name blank nodes: %w: %d components, one of them with %s", ErrNotComponent, left, n.nodes[0])
	}
	return nil
}

// tree tells whether the component is a tree: its root, and its nodes with
// every parent before its children; nil when it is not.
func (n *naming) tree() (root int32, order []int32) {
	if len(n.edges) != len(n.nodes)-1 {
		return 0, nil
	}
	parents := make([]bool, len(n.nodes))
	for _, e := range n.edges {
		if parents[e.to] {
			return 0, nil
		}
		parents[e.to] = true
	}
	// Connected, one edge fewer than nodes, at most one leading to each: a
	// tree, and exactly one node has no parent.
	root = int32(slices.Index(parents, false))
	for _, e := range n.edges {
		n.kids[e.from] = append(n.kids[e.from], kid{e.to, false, e.pred})
	}
	order = make([]int32, 0, len(n.nodes))
	order = append(order, root)
	for i := 0; i < len(order); i++ {
		for _, k := range n.kids[order[i]] {
			order = append(order, k.node)
		}
	}
	return root, order
}

func (n *naming) hashTree(order []int32) {
	for _, node := range slices.Backward(order) {
		n.hashNode(node)
	}
}

// hashNode hashes a node with all its kids known and hashed. The bytes follow; str(x) is the length
// of x as an unsigned varint (encoding/binary) and x:
//
//	"rsbridge blank node 1" 0x00
//	uvarint(number of entries), then each entry, sorted bytewise, without doubles:
//	    'a' str(P) str(O)    triple to an IRI or a literal O
//	    'c' str(S) str(P)    triple from an IRI S
//	uvarint(number of kids), then each kid, sorted by P, hash, letter; equal ones repeated:
//	    'b' str(P) hash      triple to the kid, 32 bytes
//	    'd' str(P) hash      triple from the kid
func (n *naming) hashNode(node int32) {
	content, kids := n.content[n.from[node]:n.from[node+1]], n.kids[node]
	if len(kids) > 1 {
		slices.SortFunc(kids, n.compareKids)
	}
	b := append(n.buf[:0], "rsbridge blank node 1\x00"...)
	b = binary.AppendUvarint(b, uint64(len(content)))
	for _, e := range content {
		b = append(b, e.bytes...)
	}
	b = binary.AppendUvarint(b, uint64(len(kids)))
	for _, k := range kids {
		tag := byte('b')
		if k.up {
			tag = 'd'
		}
		b = appendField(append(b, tag), string(k.pred))
		b = append(b, n.hash[k.node][:]...)
	}
	n.hash[node] = sha256.Sum256(b)
	n.buf = b
}

func (n *naming) compareKids(a, b kid) int {
	if d := cmp.Compare(a.pred, b.pred); d != 0 {
		return d
	}
	if d := bytes.Compare(n.hash[a.node][:], n.hash[b.node][:]); d != 0 {
		return d
	}
	switch {
	case a.up == b.up:
		return 0
	case b.up:
		return -1
	}
	return 1
}

func appendField(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// digest is SHA-256 of "rsbridge component 1" 0x00 str(algorithm) str(scope)
// payload; algorithm is "tree" (payload: the root's hash) or "core" (coreBytes).
func (n *naming) digest(algorithm, scope string, payload []byte) Digest {
	b := append(n.buf[:0], "rsbridge component 1\x00"...)
	b = appendField(appendField(b, algorithm), scope)
	return sha256.Sum256(append(b, payload...))
}

// number gives positions: each of tops in order, with its branches in preorder.
func (n *naming) number(position map[Term]int, tops []int32) {
	var stack []int32
	for _, top := range tops {
		stack = append(stack[:0], top)
		for len(stack) > 0 {
			node := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			position[n.nodes[node]] = len(position)
			for _, k := range slices.Backward(n.kids[node]) {
				stack = append(stack, k.node)
			}
		}
	}
}
