package rdfres

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"iter"
)

// The inventory of a set is a tree. Its root digest stands for all entities and the graphs of their
// descriptions, in any order. Two parties with equal sets have equal digests; others find the
// differences by going down at different digests. It depends on nothing but entity IRIs and graph
// digests.
//
// The tree divides the entities by their EntityKey, four bits at each step from the most
// significant on. A node with at most InventoryLeaf entities is a leaf, any other has sixteen
// children:
//
//	leaf  = SHA-256("rsbridge inventory leaf 1" 0x00, then for each entity, in the
//	        order of the keys: key, 32 bytes, graph digest, 32 bytes)
//	inner = SHA-256("rsbridge inventory node 1" 0x00, then the digests of the
//	        sixteen children, 32 bytes each, zeros for one without entities)

// InventoryLeaf is the largest number of entities in a leaf.
const InventoryLeaf = 64

// InventoryEntry is an entity in an inventory.
type InventoryEntry struct {
	Key   Digest // EntityKey of the IRI
	Graph Digest // GraphDigest of its description
}

// InventoryChild is a part of an inner node; all zero when it has no entities.
type InventoryChild struct {
	Digest Digest
	Count  int64
}

// InventoryNode is a node: a leaf with its entries, sorted by key, or an inner
// node with its children.
type InventoryNode struct {
	InventoryChild
	Entries  []InventoryEntry
	Children *[16]InventoryChild // nil in a leaf
}

func inventoryLeaf(entries []InventoryEntry) InventoryNode {
	h := sha256.New()
	h.Write([]byte("rsbridge inventory leaf 1\x00"))
	for _, e := range entries {
		h.Write(e.Key[:])
		h.Write(e.Graph[:])
	}
	n := InventoryNode{Entries: entries}
	n.Count = int64(len(entries))
	h.Sum(n.Digest[:0])
	return n
}

// JoinInventory makes the node at path (lower-case hexadecimal digits) of its sixteen parts: an
// inner node, or a leaf for few entities. emit gets every child that is a node of the tree; it may
// be nil.
func JoinInventory(path string, parts *[16]InventoryNode, emit func(path string, n InventoryNode) error) (InventoryNode, error) {
	var count int64
	for i := range parts {
		count += parts[i].Count
	}
	if count <= InventoryLeaf {
		var entries []InventoryEntry
		for i := range parts {
			entries = append(entries, parts[i].Entries...)
		}
		return inventoryLeaf(entries), nil
	}
	n := InventoryNode{Children: new([16]InventoryChild)}
	n.Count = count
	h := sha256.New()
	h.Write([]byte("rsbridge inventory node 1\x00"))
	for i := range parts {
		if p := &parts[i]; p.Count > 0 {
			n.Children[i] = p.InventoryChild
			if emit != nil {
				if err := emit(path+"0123456789abcdef"[i:i+1], *p); err != nil {
					return n, err
				}
			}
		}
		h.Write(n.Children[i].Digest[:])
	}
	h.Sum(n.Digest[:0])
	return n, nil
}

// BuildInventory makes the node at path of its entries, sorted by key and all beginning with path.
func BuildInventory(path string, entries []InventoryEntry, emit func(path string, n InventoryNode) error) (InventoryNode, error) {
	if len(entries) <= InventoryLeaf {
		return inventoryLeaf(entries), nil
	}
	if len(path) == 2*len(Digest{}) {
		return InventoryNode{}, fmt.Errorf("rdfres: inventory: %d entries have the key %s", len(entries), path)
	}
	var parts [16]InventoryNode
	for i := range parts {
		n := 0
		for n < len(entries) && InventoryDigit(&entries[n].Key, len(path)) == i {
			n++
		}
		if n > 0 {
			var err error
			if parts[i], err = BuildInventory(path+"0123456789abcdef"[i:i+1], entries[:n:n], emit); err != nil {
				return InventoryNode{}, err
			}
		}
		entries = entries[n:]
	}
	if len(entries) > 0 {
		return InventoryNode{}, fmt.Errorf("rdfres: inventory: entry %s is not in its order below %q", entries[0].Key, path)
	}
	return JoinInventory(path, &parts, emit)
}

// InventoryDigit is the four bits of a key dividing a node at this depth.
func InventoryDigit(key *Digest, depth int) int {
	b := key[depth/2]
	if depth%2 == 0 {
		return int(b >> 4)
	}
	return int(b & 15)
}

// Inventory gives the root of the tree of all entries, given in the order of their keys. It holds a
// few thousandths of them in memory. emit is as in JoinInventory.
func Inventory(all iter.Seq2[InventoryEntry, error], emit func(path string, n InventoryNode) error) (InventoryChild, error) {
	const depth = 3
	var groups [16 * 16 * 16]InventoryNode
	var run []InventoryEntry
	at := 0
	flush := func() (err error) {
		if len(run) > 0 {
			groups[at], err = BuildInventory(fmt.Sprintf("%03x", at), run, emit)
			run = nil
		}
		return err
	}
	var last Digest
	for e, err := range all {
		if err != nil {
			return InventoryChild{}, err
		}
		if len(run) > 0 && e.Key == last {
			return InventoryChild{}, fmt.Errorf("rdfres: inventory: entry %s comes twice", e.Key)
		}
		if len(run) > 0 && bytes.Compare(e.Key[:], last[:]) < 0 {
			return InventoryChild{}, fmt.Errorf("rdfres: inventory: entry %s is not in its order", e.Key)
		}
		last = e.Key
		g := int(e.Key[0])<<4 | int(e.Key[1]>>4)
		if g < at {
			return InventoryChild{}, fmt.Errorf("rdfres: inventory: entry %s is not in its order", e.Key)
		}
		if g != at {
			if err := flush(); err != nil {
				return InventoryChild{}, err
			}
			at = g
		}
		run = append(run, e)
	}
	if err := flush(); err != nil {
		return InventoryChild{}, err
	}
	nodes := groups[:]
	for level := depth - 1; level >= 0; level-- {
		for i := range len(nodes) / 16 {
			path := ""
			if level > 0 {
				path = fmt.Sprintf("%0*x", level, i)
			}
			n, err := JoinInventory(path, (*[16]InventoryNode)(nodes[16*i:]), emit)
			if err != nil {
				return InventoryChild{}, err
			}
			nodes[i] = n
		}
		nodes = nodes[:len(nodes)/16]
	}
	return nodes[0].InventoryChild, nil
}
