package inventory

import (
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/rdfres"
)

func TestBounds(t *testing.T) {
	for path, want := range map[string][2]string{
		"": {"", ""}, "0": {"00", "10"}, "7": {"70", "80"}, "f": {"f0", ""}, "ff": {"ff", ""}, "0f": {"0f", "10"},
		"12f": {"12f0", "1300"}, "1fff": {"1fff", "2000"}, "abc": {"abc0", "abd0"},
	} {
		lo, hi := bounds(path)
		for i, got := range []rdfres.Digest{lo, hi} {
			var d rdfres.Digest
			b, err := hex.DecodeString(want[i])
			if err != nil {
				t.Fatal(err)
			}
			copy(d[:], b)
			if got != d {
				t.Errorf("%q: %s, want %s", path, got, want[i])
			}
		}
	}
}

// TestEntries: a leaf of before is made of what the log knows, proved by its digest, and not looked
// for among too many.
func TestEntries(t *testing.T) {
	known := func(there, gone int) func(lo, hi rdfres.Digest) iter.Seq2[rdfres.InventoryEntry, error] {
		return func(_, _ rdfres.Digest) iter.Seq2[rdfres.InventoryEntry, error] {
			return func(yield func(rdfres.InventoryEntry, error) bool) {
				for i := range there + gone {
					e := rdfres.InventoryEntry{Key: rdfres.Digest{0x12, byte(i >> 8), byte(i)}}
					if i < there {
						e.Graph = rdfres.EntityKey(fmt.Sprint(i))
					}
					if !yield(e, nil) {
						return
					}
				}
			}
		}
	}
	entries, err := Entries("1", Node{}, 0, known(20, 0))
	if err == nil || !strings.Contains(err.Error(), "other entities") || entries != nil {
		t.Errorf("another digest: %v, %v", entries, err)
	}
	var all []rdfres.InventoryEntry
	for e := range known(20, 0)(rdfres.Digest{}, rdfres.Digest{}) {
		all = append(all, e)
	}
	leaf, err := rdfres.BuildInventory("1", all, nil)
	if err != nil {
		t.Fatal(err)
	}
	n := Node{InventoryNode: rdfres.InventoryNode{InventoryChild: leaf.InventoryChild}}
	if entries, err = Entries("1", n, 320, known(20, 300)); err != nil || len(entries) != 20 {
		t.Errorf("%d entries, %v", len(entries), err)
	}
	if _, err = Entries("1", n, 319, known(20, 300)); !errors.Is(err, ErrGrown) {
		t.Errorf("among too many: %v", err)
	}
	if entries, err = Entries("1", n, 0, known(20, 300)); err != nil || len(entries) != 20 {
		t.Errorf("among any number: %d entries, %v", len(entries), err)
	}
}
