// Package inventory keeps the tree of digests over the entities of a set, for each
// publication, in a key-value store.
//
// Nodes are below the key "i", by path and publication. A node keeps the publication of
// each of its children: unchanged children are shared. A leaf is kept as the count and digest in
// its parent; [Entries] reads it from the log. [Tree.Write] makes the tree of the next
// publication; [Read] reads any kept one.
package inventory

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/rdfres"
)

const (
	recordVersion = 2
	batchBytes    = 4 << 20 // written ahead of the caller's own commit
	cachedDepth   = 3
	digits        = "0123456789abcdef"
)

// Node is a node as it is kept.
type Node struct {
	rdfres.InventoryNode
	Made *[16]uint64 // publications of the children; nil in a leaf
}

// nodeKey is the key of the node at path of a publication, the newest first.
func nodeKey(path string, sequence uint64) []byte {
	k := append([]byte{'i', byte(len(path))}, path...)
	return binary.BigEndian.AppendUint64(k, ^sequence)
}

// Errors of Read and Entries.
var (
	ErrNoNode = errors.New("the tree has no such node")
	ErrGrown  = errors.New("the leaf has grown too much to be read as it was")

	// ErrDamaged comes from a tree that does not fit its entities.
	ErrDamaged = errors.New("the inventory is damaged")
)

// MostKnown is how many known entities are looked at for one leaf of before, at a cost for each.
const MostKnown = 64 * rdfres.InventoryLeaf

// Read gives the node at path in the tree of a publication; a leaf is without its entries.
// kv.ErrNotFound: there is no such publication. ErrNoNode: its tree has no such node.
func Read(ctx context.Context, r kv.Reader, path string, publication uint64) (Node, error) {
	n, err := read(ctx, r, "", publication)
	for i := 0; err == nil && i < len(path); i++ {
		digit := strings.IndexByte(digits, path[i])
		if digit < 0 || n.Children == nil || n.Children[digit].Count == 0 {
			return Node{}, ErrNoNode
		}
		c, made := n.Children[digit], n.Made[digit]
		if n = (Node{}); c.Count <= rdfres.InventoryLeaf {
			n.InventoryChild = c
			continue
		}
		if n, err = read(ctx, r, path[:i+1], made); errors.Is(err, kv.ErrNotFound) {
			err = fmt.Errorf("%w: %v", errRecord, err) // there is such a publication
		}
	}
	return n, err
}

// Entries gives the entries of the leaf n at path: of the known entities below the path, those
// with a graph. They have the digest of the leaf. ErrGrown: more than most are known; 0 is any number.
func Entries(path string, n Node, most int, known func(lo, hi rdfres.Digest) iter.Seq2[rdfres.InventoryEntry, error]) (entries []rdfres.InventoryEntry, err error) {
	looked := 0
	for e, err := range known(bounds(path)) {
		if looked++; err == nil && most > 0 && looked > most {
			err = ErrGrown
		}
		if err != nil {
			return nil, fmt.Errorf("inventory leaf %q: %w", path, err)
		}
		if !e.Graph.IsZero() {
			entries = append(entries, e)
		}
	}
	leaf, err := rdfres.BuildInventory(path, entries, nil)
	if err == nil && leaf.Digest != n.Digest {
		err = fmt.Errorf("%w: the log has other entities than those of its digest", ErrDamaged)
	}
	if err != nil {
		return nil, fmt.Errorf("inventory leaf %q: %w", path, err)
	}
	return entries, nil
}

// read gives an inner node, or a root, made by a publication.
func read(ctx context.Context, r kv.Reader, path string, made uint64) (n Node, err error) {
	data, err := r.Get(ctx, nodeKey(path, made))
	if err == nil {
		n, err = decode(data)
	}
	if err != nil {
		err = fmt.Errorf("inventory node %q of %d: %w", path, made, err)
	}
	return n, err
}

// Entities are the entities of a publication.
type Entities struct {
	Count   int64
	Between func(ctx context.Context, lo, hi rdfres.Digest) iter.Seq2[rdfres.InventoryEntry, error] // by key; hi zero: to the end
}

// Tree writes trees. It keeps the upper inner nodes in memory, at most 4,369 of them.
// Not safe for concurrent use.
type Tree struct {
	store kv.Store
	cache map[string]cached
	doubt atomic.Bool
}

// Doubt has the next Write make the tree anew. It may be called at any time.
func (t *Tree) Doubt() { t.doubt.Store(true) }

// Doubted tells whether the next Write makes the tree anew.
func (t *Tree) Doubted() bool { return t.doubt.Load() }

type cached struct {
	made uint64
	node Node
}

// New makes a Tree over the records of a store.
func New(store kv.Store) *Tree { return &Tree{store: store, cache: map[string]cached{}} }

func (t *Tree) keep(path string, made uint64, n Node) {
	if len(path) <= cachedDepth && n.Children != nil {
		t.cache[path] = cached{made, n}
	}
}

// Write puts the tree of the publication `to` into a batch and gives its root. changed are
// the entities changed since the publication `from`. Without them (nil) the whole tree is made
// anew. An unchanged node is not written.
//
// Records that do not fit the entities are told in damage; the tree is made anew then.
func (t *Tree) Write(ctx context.Context, b kv.Batch, now Entities, from, to uint64, changed map[rdfres.Digest]struct{}) (root rdfres.Digest, damage, err error) {
	var all [16]uint64 // of a new node, children and all
	for i := range all {
		all[i] = to
	}
	made := map[string]*[16]uint64{} // of a node with unchanged children
	put := func(path string, n rdfres.InventoryNode) error {
		if n.Children == nil && path != "" { // a leaf, or unchanged
			return nil
		}
		children := made[path]
		if delete(made, path); children == nil {
			children = &all
		}
		t.keep(path, to, Node{n, children})
		b.Set(nodeKey(path, to), encode(&n, children))
		if b.Size() >= batchBytes {
			return b.Commit(ctx, false)
		}
		return nil
	}
	var top rdfres.InventoryNode
	anew := changed == nil || t.doubt.Swap(false)
	if !anew {
		u := &update{tree: t, now: now, next: to, put: put, made: made}
		keys := slices.SortedFunc(maps.Keys(changed), func(a, b rdfres.Digest) int { return bytes.Compare(a[:], b[:]) })
		top, err = u.node(ctx, "", from, keys)
		if errors.Is(err, kv.ErrNotFound) || errors.Is(err, errRecord) || err == nil && top.Count != now.Count {
			if damage = err; err == nil {
				damage = fmt.Errorf("%d entities are in its records, %d are there", top.Count, now.Count)
			}
			clear(made)
			anew = true
		}
	}
	if anew {
		top, err = build(ctx, now, put)
	}
	switch {
	case err != nil:
		return root, damage, fmt.Errorf("inventory: %w", err)
	case top.Count != now.Count:
		return root, damage, fmt.Errorf("inventory: it has %d entities, %d are there", top.Count, now.Count)
	}
	return top.Digest, damage, put("", top)
}

// encode: version byte, kind, digest, then for a leaf its uvarint count, for an inner node
// the count of each child and, unless that is 0, its digest and the uvarint sequence of its
// publication.
func encode(n *rdfres.InventoryNode, made *[16]uint64) []byte {
	b := make([]byte, 2, 34+16*44)
	b[0], b[1] = recordVersion, leaf
	if n.Children != nil {
		b[1] = inner
	}
	b = append(b, n.Digest[:]...)
	if n.Children == nil {
		return binary.AppendUvarint(b, uint64(n.Count))
	}
	for i, c := range n.Children {
		if b = binary.AppendUvarint(b, uint64(c.Count)); c.Count > 0 {
			b = binary.AppendUvarint(append(b, c.Digest[:]...), made[i])
		}
	}
	return b
}

// The kinds of nodes as they are kept.
const (
	leaf  = 1 // of a root only
	inner = 3
)

var errRecord = errors.New("the record cannot be read")

func decode(b []byte) (n Node, err error) {
	if len(b) < 34 || b[0] != recordVersion || b[1] != leaf && b[1] != inner {
		return n, errRecord
	}
	kind := b[1]
	copy(n.Digest[:], b[2:])
	b = b[34:]
	number := func() uint64 {
		v, w := binary.Uvarint(b)
		if w <= 0 {
			b, err = nil, errRecord
			return 0
		}
		b = b[w:]
		return v
	}
	if kind == leaf {
		n.Count = int64(number())
	} else {
		n.Children = new([16]rdfres.InventoryChild)
		n.Made = new([16]uint64)
		for i := range n.Children {
			c := &n.Children[i]
			if c.Count = int64(number()); c.Count > 0 {
				b = b[copy(c.Digest[:], b):] // a short one leaves no number
				n.Made[i] = number()
			}
			n.Count += c.Count
		}
	}
	if err == nil && (len(b) > 0 || n.Children != nil && joined(n.Children) != n.Digest) {
		err = errRecord
	}
	return n, err
}

// joined is the digest of an inner node.
func joined(children *[16]rdfres.InventoryChild) rdfres.Digest {
	var parts [16]rdfres.InventoryNode
	for i := range parts {
		parts[i].InventoryChild = children[i]
	}
	n, err := rdfres.JoinInventory("", &parts, nil)
	if err != nil {
		panic(err) // of emit alone
	}
	return n.Digest
}

// Check reads the whole tree of a publication, and compares it with its entities, ordered by key. It gives the digest
// of the entities. A difference is an ErrDamaged.
func Check(ctx context.Context, r kv.Reader, publication uint64, all iter.Seq2[rdfres.InventoryEntry, error]) (rdfres.Digest, error) {
	want, err := rdfres.Inventory(all, nil)
	if err != nil {
		return want.Digest, fmt.Errorf("inventory: %w", err)
	}
	var walk func(path string, made uint64, c rdfres.InventoryChild) error
	walk = func(path string, made uint64, c rdfres.InventoryChild) error {
		n, err := read(ctx, r, path, made)
		if errors.Is(err, kv.ErrNotFound) || errors.Is(err, errRecord) || err == nil && n.InventoryChild != c {
			return fmt.Errorf("%w: the node %q of the publication %d is not that of the log (%w)", ErrDamaged, path, made, cmp.Or(err, errRecord))
		}
		if err != nil || n.Children == nil {
			return err
		}
		for i, c := range n.Children {
			if c.Count > rdfres.InventoryLeaf {
				if err := walk(path+digits[i:i+1], n.Made[i], c); err != nil {
					return err
				}
			}
		}
		return nil
	}
	return want.Digest, walk("", publication, want)
}

// below makes the node at path of the entities that are there.
func (now *Entities) below(ctx context.Context, path string, put func(string, rdfres.InventoryNode) error) (rdfres.InventoryNode, error) {
	var entries []rdfres.InventoryEntry
	lo, hi := bounds(path)
	for e, err := range now.Between(ctx, lo, hi) {
		if err != nil {
			return rdfres.InventoryNode{}, err
		}
		entries = append(entries, e)
	}
	return rdfres.BuildInventory(path, entries, put)
}

// build makes the whole tree.
func build(ctx context.Context, now Entities, put func(string, rdfres.InventoryNode) error) (rdfres.InventoryNode, error) {
	depth := 0
	for n := now.Count; n > 2000 && depth < 6; n /= 16 {
		depth++
	}
	var at func(path string) (rdfres.InventoryNode, error)
	at = func(path string) (rdfres.InventoryNode, error) {
		if len(path) == depth {
			return now.below(ctx, path, put)
		}
		var parts [16]rdfres.InventoryNode
		for i := range parts {
			var err error
			if parts[i], err = at(path + digits[i:i+1]); err != nil {
				return rdfres.InventoryNode{}, err
			}
		}
		return rdfres.JoinInventory(path, &parts, put)
	}
	return at("")
}

// bounds is the range of keys below path, lower-case hexadecimal digits; hi is zero at the end.
func bounds(path string) (lo, hi rdfres.Digest) {
	half := func(i int, digit byte) byte { return digit << (4 * (1 - i%2)) }
	for i := range len(path) {
		lo[i/2] |= half(i, byte(strings.IndexByte(digits, path[i])))
	}
	hi = lo
	for i := len(path) - 1; i >= 0; i-- {
		if path[i] != 'f' {
			hi[i/2] += half(i, 1)
			return lo, hi
		}
		hi[i/2] &^= half(i, 15)
	}
	return lo, rdfres.Digest{}
}

// update changes a tree, path by path.
type update struct {
	tree *Tree
	now  Entities
	next uint64 // the publication that is written
	put  func(path string, n rdfres.InventoryNode) error
	made map[string]*[16]uint64 // for put: publications of the children of a node
}

// read is read from the cache if the node is there.
func (u *update) read(ctx context.Context, path string, made uint64) (Node, error) {
	if c, ok := u.tree.cache[path]; ok && c.made == made {
		return c.node, nil
	}
	n, err := read(ctx, u.tree.store, path, made)
	if err == nil {
		u.tree.keep(path, made, n)
	}
	return n, err
}

// node gives the node at path after the changes; their keys are sorted and lie below it. It is the
// root, or was an inner node made by a publication.
func (u *update) node(ctx context.Context, path string, made uint64, changed []rdfres.Digest) (rdfres.InventoryNode, error) {
	old, err := u.read(ctx, path, made)
	if err != nil {
		return old.InventoryNode, err
	}
	if old.Children == nil {
		return u.now.below(ctx, path, u.put)
	}
	next := new([16]uint64)
	*next = *old.Made
	var parts [16]rdfres.InventoryNode
	var count int64
	for i := range parts {
		n := 0
		for n < len(changed) && rdfres.InventoryDigit(&changed[n], len(path)) == i {
			n++
		}
		child := path + digits[i:i+1]
		switch {
		case n == 0:
			parts[i].InventoryChild = old.Children[i]
		case old.Children[i].Count <= rdfres.InventoryLeaf:
			parts[i], err = u.now.below(ctx, child, u.put)
		default:
			parts[i], err = u.node(ctx, child, next[i], changed[:n])
		}
		if err != nil {
			return old.InventoryNode, err
		}
		if n > 0 {
			next[i] = u.next
		}
		count += parts[i].Count
		changed = changed[n:]
	}
	if count <= rdfres.InventoryLeaf { // all become one leaf
		return u.now.below(ctx, path, u.put)
	}
	u.made[path] = next
	return rdfres.JoinInventory(path, &parts, u.put)
}

// Trim drops nodes that no tree of a publication from first on needs.
func (t *Tree) Trim(ctx context.Context, first uint64) error {
	b := t.store.Batch()
	defer b.Close()
	var last []byte // prefix of the path whose newest node at or before first was seen
	for pair, err := range t.store.Scan(ctx, []byte("i"), []byte("j")) {
		if err != nil {
			return err
		}
		prefix := pair.Key[:len(pair.Key)-8]
		if ^binary.BigEndian.Uint64(pair.Key[len(prefix):]) > first {
			continue
		}
		if bytes.Equal(prefix, last) {
			b.Delete(bytes.Clone(pair.Key))
			if b.Size() >= batchBytes {
				if err := b.Commit(ctx, false); err != nil {
					return err
				}
			}
			continue
		}
		last = bytes.Clone(prefix)
	}
	return b.Commit(ctx, true)
}
