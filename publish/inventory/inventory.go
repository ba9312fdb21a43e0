// Package inventory keeps the tree of digests over the entities of a set, for each
// publication, in a key-value store.
//
// Nodes are below the key "i", by path and publication. A node keeps the publication of
// each of its children: unchanged children are shared. [Tree.Write] makes the tree
// of the next publication; [Read] reads any kept one.
package inventory

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/rdfres"
)

const (
	recordVersion = 1
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

// Read gives the node at path made by a publication; kv.ErrNotFound if there is none.
// The root of a publication is at the path "".
func Read(ctx context.Context, r kv.Reader, path string, made uint64) (n Node, err error) {
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
}

type cached struct {
	made uint64
	node Node
}

// New makes a Tree over the records of a store.
func New(store kv.Store) *Tree { return &Tree{store, map[string]cached{}} }

func (t *Tree) keep(path string, made uint64, n Node) {
	if len(path) <= cachedDepth && n.Children != nil {
		t.cache[path] = cached{made, n}
	}
}

// Write puts the tree of the publication `to` into a batch and gives its root. changes are
// those since the publication `from`: the graph of each changed entity, zero for a deleted
// one. Without changes (nil) the whole tree is made anew. An unchanged node is not written.
//
// Records that do not fit the entities are told in damage; the tree is made anew then.
func (t *Tree) Write(ctx context.Context, b kv.Batch, now Entities, from, to uint64, changes map[rdfres.Digest]rdfres.Digest) (root rdfres.Digest, damage, err error) {
	var all [16]uint64 // of a new node, children and all
	for i := range all {
		all[i] = to
	}
	made := map[string]*[16]uint64{} // of a node with unchanged children
	put := func(path string, n rdfres.InventoryNode) error {
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
	if changes != nil {
		u := &update{tree: t, next: to, put: put, made: made}
		sorted := make([]rdfres.InventoryEntry, 0, len(changes))
		for key, graph := range changes {
			sorted = append(sorted, rdfres.InventoryEntry{Key: key, Graph: graph})
		}
		slices.SortFunc(sorted, func(a, b rdfres.InventoryEntry) int { return bytes.Compare(a.Key[:], b.Key[:]) })
		top, err = u.node(ctx, "", from, sorted)
		if errors.Is(err, kv.ErrNotFound) || err == nil && top.Count != now.Count {
			if damage = err; err == nil {
				damage = fmt.Errorf("%d entities are in its records, %d are there", top.Count, now.Count)
			}
			clear(made)
			changes = nil
		}
	}
	if changes == nil {
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

// encode: version byte, kind, digest, then for a leaf uvarint count and
// the entries, for an inner node the count of each child and, unless that is 0, its
// digest and the uvarint sequence of its publication.
func encode(n *rdfres.InventoryNode, made *[16]uint64) []byte {
	b := make([]byte, 2, 34+16*44)
	b[0], b[1] = recordVersion, leaf
	if n.Children != nil {
		b[1] = inner
	}
	b = append(b, n.Digest[:]...)
	if n.Children == nil {
		b = binary.AppendUvarint(b, uint64(len(n.Entries)))
		for _, e := range n.Entries {
			b = append(append(b, e.Key[:]...), e.Graph[:]...)
		}
		return b
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
	leaf  = 1
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
	digest := func(d *rdfres.Digest) {
		if len(b) < len(d) {
			b, err = nil, errRecord
			return
		}
		copy(d[:], b)
		b = b[len(d):]
	}
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
		count := number()
		if count > rdfres.InventoryLeaf {
			return n, errRecord
		}
		n.Count = int64(count)
		n.Entries = make([]rdfres.InventoryEntry, count)
		for i := range n.Entries {
			digest(&n.Entries[i].Key)
			digest(&n.Entries[i].Graph)
		}
	} else {
		n.Children = new([16]rdfres.InventoryChild)
		n.Made = new([16]uint64)
		for i := range n.Children {
			c := &n.Children[i]
			if c.Count = int64(number()); c.Count > 0 {
				digest(&c.Digest)
				n.Made[i] = number()
			}
			n.Count += c.Count
		}
	}
	if err == nil && len(b) > 0 {
		err = errRecord
	}
	return n, err
}

// build makes the whole tree.
func build(ctx context.Context, now Entities, put func(string, rdfres.InventoryNode) error) (rdfres.InventoryNode, error) {
	depth := 0
	for n := now.Count; n > 2000 && depth < 6; n /= 16 {
		depth++
	}
	var at func(path string, lo rdfres.Digest) (rdfres.InventoryNode, error)
	at = func(path string, lo rdfres.Digest) (rdfres.InventoryNode, error) {
		if len(path) == depth {
			var entries []rdfres.InventoryEntry
			for e, err := range now.Between(ctx, lo, nextPrefix(lo, depth)) {
				if err != nil {
					return rdfres.InventoryNode{}, err
				}
				entries = append(entries, e)
			}
			return rdfres.BuildInventory(path, entries, put)
		}
		var parts [16]rdfres.InventoryNode
		for i := range parts {
			low := lo
			if len(path)%2 == 0 {
				low[len(path)/2] = byte(i) << 4
			} else {
				low[len(path)/2] |= byte(i)
			}
			var err error
			if parts[i], err = at(path+digits[i:i+1], low); err != nil {
				return rdfres.InventoryNode{}, err
			}
		}
		return rdfres.JoinInventory(path, &parts, put)
	}
	return at("", rdfres.Digest{})
}

// nextPrefix is the first key after those that share the first depth digits of
// lo; zero when there is none.
func nextPrefix(lo rdfres.Digest, depth int) rdfres.Digest {
	for i := depth - 1; i >= 0; i-- {
		step, mask := byte(1), byte(0x0f)
		if i%2 == 0 {
			step, mask = 0x10, 0xf0
		}
		if lo[i/2]&mask != mask {
			lo[i/2] += step
			return lo
		}
		lo[i/2] &^= mask
	}
	return rdfres.Digest{}
}

// update changes a tree, path by path.
type update struct {
	tree *Tree
	next uint64 // the publication that is written
	put  func(path string, n rdfres.InventoryNode) error
	made map[string]*[16]uint64 // for put: publications of the children of a node
}

// read is Read from the cache if the node is there.
func (u *update) read(ctx context.Context, path string, made uint64) (Node, error) {
	if c, ok := u.tree.cache[path]; ok && c.made == made {
		return c.node, nil
	}
	n, err := Read(ctx, u.tree.store, path, made)
	if err == nil {
		u.tree.keep(path, made, n)
	}
	return n, err
}

// node gives the node at path after the changes; these are sorted and lie below
// it. made is its publication.
func (u *update) node(ctx context.Context, path string, made uint64, changes []rdfres.InventoryEntry) (rdfres.InventoryNode, error) {
	old, err := u.read(ctx, path, made)
	if err != nil {
		return old.InventoryNode, err
	}
	if old.Children == nil {
		return rdfres.BuildInventory(path, merge(old.Entries, changes), u.put)
	}
	next := new([16]uint64)
	*next = *old.Made
	var parts [16]rdfres.InventoryNode
	var changed [16]bool
	var count int64
	for i := range parts {
		n := 0
		for n < len(changes) && rdfres.InventoryDigit(&changes[n].Key, len(path)) == i {
			n++
		}
		child := path + digits[i:i+1]
		switch {
		case n == 0:
			parts[i].InventoryChild = old.Children[i]
		case old.Children[i].Count == 0: // a record there would be of another time
			parts[i], err = rdfres.BuildInventory(child, merge(nil, changes[:n]), u.put)
			changed[i] = true
		default:
			parts[i], err = u.node(ctx, child, next[i], changes[:n])
			changed[i] = true
		}
		if err != nil {
			return old.InventoryNode, err
		}
		count += parts[i].Count
		changes = changes[n:]
	}
	if count <= rdfres.InventoryLeaf { // all become one leaf
		for i := range parts {
			if !changed[i] && parts[i].Count > 0 {
				child, err := u.read(ctx, path+digits[i:i+1], next[i])
				if err != nil {
					return old.InventoryNode, err
				}
				parts[i] = child.InventoryNode
			}
		}
	}
	for i := range changed {
		if changed[i] {
			next[i] = u.next
		}
	}
	u.made[path] = next
	return rdfres.JoinInventory(path, &parts, func(child string, n rdfres.InventoryNode) error {
		if !changed[strings.IndexByte(digits, child[len(child)-1])] {
			return nil
		}
		return u.put(child, n)
	})
}

// merge applies changes to entries; both are sorted.
func merge(entries, changes []rdfres.InventoryEntry) []rdfres.InventoryEntry {
	out := make([]rdfres.InventoryEntry, 0, len(entries)+len(changes))
	for len(entries) > 0 || len(changes) > 0 {
		c := 1
		if len(changes) == 0 {
			c = -1
		} else if len(entries) > 0 {
			c = bytes.Compare(entries[0].Key[:], changes[0].Key[:])
		}
		if c < 0 {
			out, entries = append(out, entries[0]), entries[1:]
			continue
		}
		if !changes[0].Graph.IsZero() {
			out = append(out, changes[0])
		}
		if changes = changes[1:]; c == 0 {
			entries = entries[1:]
		}
	}
	return out
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
