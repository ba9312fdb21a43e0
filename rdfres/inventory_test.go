package rdfres

import (
	"bytes"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"testing"
)

func inventoryEntries(n, change int) []InventoryEntry {
	var es []InventoryEntry
	for i := range n {
		g := i
		if i == change {
			g = -1
		}
		es = append(es, InventoryEntry{EntityKey(fmt.Sprintf("http://example.org/e/%d", i)), EntityKey(fmt.Sprint(g))})
	}
	slices.SortFunc(es, func(a, b InventoryEntry) int { return bytes.Compare(a.Key[:], b.Key[:]) })
	return es
}

func streamed(es []InventoryEntry) iter.Seq2[InventoryEntry, error] {
	return func(yield func(InventoryEntry, error) bool) {
		for _, e := range es {
			if !yield(e, nil) {
				return
			}
		}
	}
}

// TestEntriesAlike: more entries of one key than a leaf has are an error.
func TestEntriesAlike(t *testing.T) {
	alike := slices.Repeat([]InventoryEntry{{Key: EntityKey("http://example.org/a")}}, InventoryLeaf+1)
	if _, err := BuildInventory("", alike, nil); err == nil {
		t.Error("they make a node")
	}
}

// TestInventory: streamed and built in memory are the same tree; one other graph
// is another root, and the way down to it is short.
func TestInventory(t *testing.T) {
	for _, n := range []int{0, 1, 63, 64, 65, 66, 1000, 5000} {
		es := inventoryEntries(n, -1)
		nodes := map[string]InventoryNode{}
		emit := func(path string, n InventoryNode) error {
			if _, there := nodes[path]; there {
				t.Fatalf("%d: node %q twice", n.Count, path)
			}
			nodes[path] = n
			return nil
		}
		root, err := BuildInventory("", es, emit)
		if err != nil || root.Count != int64(n) {
			t.Fatalf("%d: %v %v", n, root.Count, err)
		}
		nodes[""] = root
		again := map[string]InventoryNode{"": root}
		got, err := Inventory(streamed(es), func(path string, n InventoryNode) error { again[path] = n; return nil })
		if err != nil || got != root.InventoryChild || !reflect.DeepEqual(again, nodes) {
			t.Fatalf("%d: streamed %v, built %v (%v)", n, got, root.InventoryChild, err)
		}
		// Every entry is in exactly one leaf below the root.
		var leaves []InventoryEntry
		var walk func(path string)
		walk = func(path string) {
			x := nodes[path]
			if x.Children == nil {
				leaves = append(leaves, x.Entries...)
				return
			}
			for i, c := range x.Children {
				if c.Count > 0 {
					if nodes[path+fmt.Sprintf("%x", i)].InventoryChild != c {
						t.Fatalf("node %s%x is not what its parent says", path, i)
					}
					walk(path + fmt.Sprintf("%x", i))
				}
			}
		}
		walk("")
		if !slices.Equal(leaves, es) {
			t.Fatalf("%d: %d entries in the leaves", n, len(leaves))
		}
		if n > 0 {
			if other, err := Inventory(streamed(inventoryEntries(n, n/2)), nil); err != nil || other.Digest == root.Digest || other.Count != root.Count {
				t.Errorf("%d: one graph is another one, and the root %v (%v)", n, other, err)
			}
			if less, err := Inventory(streamed(es[1:]), nil); err != nil || less.Digest == root.Digest {
				t.Errorf("%d: one entity less: %v (%v)", n, less, err)
			}
		}
	}
	es := inventoryEntries(200, -1)
	slices.Reverse(es)
	if _, err := Inventory(streamed(es), nil); err == nil {
		t.Error("entries out of order are taken")
	}
	// The digest of nothing, and of one entity, for other implementations.
	root, _ := Inventory(streamed(nil), nil)
	if got := root.Digest.String(); got != "f3218aae978883bd7897db4940fbcefa60b755cd30b3ff43d9cd34b81373d467" {
		t.Errorf("nothing: %s", got)
	}
	root, _ = Inventory(streamed(inventoryEntries(1, -1)), nil)
	if got := root.Digest.String(); got != "81c996e5d6e48802be09aa404420b41bcd8f46ea835f24fbc0cacd525125babc" {
		t.Errorf("one: %s", got)
	}
}
