package destination

import (
	"fmt"
	"slices"
	"testing"

	"github.com/rsbridge/rsbridge/destination/feed"
	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/internal/extsort"
)

// What is brought back after a gap is on disk, each with its last change. What later changes name is not
// among it.
func TestFormersAreOnDisk(t *testing.T) {
	const n = 60_000
	sorter, err := extsort.New(t.TempDir(), extsort.MinMemory)
	if err != nil {
		t.Fatal(err)
	}
	some, err := extsort.NewKeys(t.TempDir(), extsort.MinMemory)
	if err != nil {
		t.Fatal(err)
	}
	was := &formers{sorter: sorter, some: some}
	named := &locations{dir: t.TempDir(), memory: extsort.MinMemory}
	defer was.close()
	defer named.close()
	item := func(i int, change string) *feed.Item {
		return &feed.Item{Loc: fmt.Sprint("http://source.example/", i), Change: change}
	}
	named.add(item(1, "created"))
	named.add(nil)
	for i := range n {
		it := item(i, "updated")
		if i%3 == 0 {
			named.add(it)
		}
		if i%2 == 0 {
			f := &former{item: it}
			if i%4 == 0 {
				f.item = nil
			}
			if err := was.add(ledger.HashOf(it.Loc), f); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i := range n {
		for _, change := range []string{"created", "deleted"} {
			if err := was.told(item(i, change)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for range 2 {
		want := map[ledger.Hash]int{}
		for i := 0; i < n; i += 2 {
			if i%3 > 0 {
				want[ledger.HashOf(item(i, "").Loc)] = i
			}
		}
		var order []ledger.Hash
		for loc, f := range was.each(t.Context(), named) {
			i, ok := want[loc]
			if !ok || f.err != nil || (i%4 == 0) != (f.item == nil) || f.item != nil && (f.item.Loc != item(i, "").Loc || f.item.Change != "deleted") || !f.goes() {
				t.Fatalf("%d %t: %+v", i, ok, f)
			}
			delete(want, loc)
			order = append(order, loc)
		}
		if len(want) > 0 || !slices.IsSortedFunc(order, ledger.Hash.Compare) {
			t.Errorf("%d are missing", len(want))
		}
	}
	if sorter.Spilled() == 0 || named.sorter.Spilled() == 0 {
		t.Error("all of it was in memory")
	}
}
