package publish

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/changetrack"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/internal/teststores"
	"github.com/rsbridge/rsbridge/publish/inventory"
	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/resourcesync"
)

func (w *world) inventoryDoc(address string) inventoryDoc {
	w.t.Helper()
	var d inventoryDoc
	w.must(json.Unmarshal(w.body(address), &d))
	return d
}

// walkInventory reads a tree and checks it: each node is what its parent says, and
// computes to its digest.
func (w *world) walkInventory(address string) (root inventoryDoc, entries []rdfres.InventoryEntry) {
	w.t.Helper()
	var walk func(address, digest string, count int64) inventoryDoc
	walk = func(address, digest string, count int64) inventoryDoc {
		d := w.inventoryDoc(address)
		if digest != "" && (d.Digest != digest || d.Entities != count) {
			w.t.Fatalf("%s has %s for %d, its parent says %s for %d", address, d.Digest, d.Entities, digest, count)
		}
		for _, c := range d.Children {
			walk(c.Address, c.Digest, c.Entities)
		}
		for _, l := range d.Leaf {
			if l.Entity != "" && rdfres.EntityKey(l.Entity).String() != l.Key || !strings.HasPrefix(l.Key, d.Path) {
				w.t.Fatalf("%s: %+v", address, l)
			}
			key, err := rdfres.ParseDigest(l.Key)
			w.must(err)
			graph, err := rdfres.ParseDigest(strings.TrimPrefix(l.Graph, "sha-256:"))
			w.must(err)
			entries = append(entries, rdfres.InventoryEntry{Key: key, Graph: graph})
		}
		return d
	}
	return walk(address, "", 0), entries
}

func inventoryOf(v *changetrack.View) func(func(rdfres.InventoryEntry, error) bool) {
	return func(yield func(rdfres.InventoryEntry, error) bool) {
		for st, err := range v.Current(context.Background(), rdfres.Digest{}, rdfres.Digest{}) {
			e := rdfres.InventoryEntry{}
			if err == nil {
				e = rdfres.InventoryEntry{Key: rdfres.EntityKey(st.Entity), Graph: st.Current.Graph}
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// checkInventory: the present tree is the one of the log, and those of before are
// as they were.
func (w *world) checkInventory(known map[uint64]string) {
	w.t.Helper()
	now := w.inventoryDoc(w.url("inventory.json"))
	view := w.log.View(w.t.Context())
	defer view.Close()
	want, err := rdfres.Inventory(inventoryOf(view), nil)
	w.must(err)
	root, entries := w.walkInventory(now.Root)
	if now.Digest != digestToken(want.Digest) || root.Digest != now.Digest || now.Entities != want.Count || int64(len(entries)) != want.Count {
		w.t.Fatalf("the inventory of %d is %s for %d entities, %d of them in its leaves; want %s for %d", now.Sequence, now.Digest, now.Entities, len(entries), want.Digest, want.Count)
	}
	known[now.Sequence] = now.Digest
	walked := 0
	for sequence, digest := range known {
		address := fmt.Sprintf("%s/%d.json", w.url("inventory"), sequence)
		if sequence < now.First {
			if code := w.get(address).Code; code != 404 {
				w.t.Fatalf("%s: %d, the lists begin after %d", address, code, now.First)
			}
			delete(known, sequence)
			continue
		}
		root := w.inventoryDoc(address)
		if walked == 0 && sequence != now.Sequence { // one of them whole, whichever comes first
			walked++
			root, _ = w.walkInventory(address)
		}
		if root.Digest != digest {
			w.t.Fatalf("the inventory of %d was %s and is %s", sequence, digest, root.Digest)
		}
	}
}

// TestInventoryHistory: changed again and again, a tree is always the one that
// would be built.
func TestInventoryHistory(t *testing.T) {
	teststores.Sequential(t)
	r := rand.New(rand.NewPCG(9, 1))
	w := newWorld(t, SetConfig{Format: rdfres.NTriples, RotateEntries: 50})
	values := map[string]int{}
	for i := range 400 {
		values[fmt.Sprintf("http://example.org/e/%d", i)] = i
	}
	w.scan(values, false, rdfres.NTriples)
	w.publish()
	_, list := w.read(w.url("capabilitylist.xml"))
	if h, _ := w.read(w.url("capabilitylist.xml")); len(list) == 0 || !slices.ContainsFunc(h.Links, func(l resourcesync.Link) bool { return l.Rel == inventoryRel && l.Href == w.url("inventory.json") }) {
		t.Errorf("the Capability List does not lead to the inventory: %+v", h.Links)
	}
	known := map[uint64]string{}
	w.checkInventory(known)
	for step := range 30 {
		change := map[string]int{}
		n := 1 + r.IntN(10)
		switch r.IntN(6) {
		case 0:
			n = 100 + r.IntN(300)
		case 1:
			w.reopen()
		}
		for range n {
			change[fmt.Sprintf("http://example.org/e/%d", r.IntN(600))] = []int{-1, r.IntN(1000)}[r.IntN(2)]
		}
		w.clock.add(1e9)
		w.scan(change, true, rdfres.NTriples)
		if r.IntN(8) == 0 {
			w.crash(r)
		}
		w.publish()
		w.checkInventory(known)
		if step%10 == 9 {
			before := w.clock.now().Add(-5e9)
			_, err := w.log.Retain(t.Context(), before, before)
			w.must(err)
			w.must(w.pub.Retain(t.Context(), "data"))
			w.bytes = map[string]string{}
			w.checkInventory(known)
		}
	}
	if len(known) < 3 {
		t.Errorf("%d trees are kept", len(known))
	}
	for _, path := range []string{"inventory/1.json", "inventory/x.json", "inventory/999999.json", "inventory/1/zz.json", "inventory/1"} {
		if code := w.get(w.url(path)).Code; code != 404 {
			t.Errorf("%s: %d", path, code)
		}
	}
	w.cfg.NoInventory = true
	w.reopen()
	w.scan(map[string]int{"http://example.org/e/1": 4711}, true, rdfres.NTriples)
	w.publish()
	if code := w.get(w.url("inventory.json")).Code; code != 404 {
		t.Errorf("switched off: %d", code)
	}
	w.cfg.NoInventory = false
	w.reopen()
	w.scan(map[string]int{"http://example.org/e/1": 4712}, true, rdfres.NTriples)
	w.publish()
	w.bytes = map[string]string{}
	w.checkInventory(map[uint64]string{})
}

// TestInventoryAfterDeletions: today's tree can be walked, however many entities were deleted.
func TestInventoryAfterDeletions(t *testing.T) {
	w := newWorld(t, SetConfig{Format: rdfres.NTriples})
	values, deleted := map[string]int{}, map[string]int{}
	for i := range inventory.MostKnown + 50 {
		name := fmt.Sprintf("http://example.org/e/%d", i)
		if values[name] = i; i >= 40 {
			deleted[name] = -1
		}
	}
	w.scan(values, false, rdfres.NTriples)
	w.publish()
	w.scan(deleted, true, rdfres.NTriples)
	w.publish()
	w.checkInventory(map[uint64]string{})
}

// TestDamagedInventory: a tree with records that are lost, or cannot be read, is made anew.
func TestDamagedInventory(t *testing.T) {
	teststores.Sequential(t)
	for name, damage := range map[string]func(b kv.Batch, key, value []byte){
		"lost":       func(b kv.Batch, key, _ []byte) { b.Delete(key) },
		"unreadable": func(b kv.Batch, key, _ []byte) { b.Set(key, []byte("x")) },
		"another":    func(b kv.Batch, key, value []byte) { value[40]++; b.Set(key, value) }, // a digest in it
	} {
		t.Run(name, func(t *testing.T) { testDamagedInventory(t, damage) })
	}
}

// TestWrongInventory: a tree of other entities is found by checking it, and by whoever asks for a wrong leaf. The next
// publication makes it anew, without a change too.
func TestWrongInventory(t *testing.T) {
	w := newWorld(t, SetConfig{Format: rdfres.NTriples})
	values := map[string]int{}
	for i := range 200 {
		values[fmt.Sprintf("http://example.org/e/%d", i)] = i
	}
	w.scan(values, false, rdfres.NTriples)
	w.publish()
	w.must(w.pub.CheckInventory(t.Context(), "data"))
	for name, found := range map[string]func(){
		"checked": func() {
			if err := w.pub.CheckInventory(t.Context(), "data"); !errors.Is(err, inventory.ErrDamaged) {
				t.Errorf("CheckInventory = %v", err)
			}
		},
		"asked for": func() {
			wrong := 0
			root := w.inventoryDoc(w.inventoryDoc(w.url("inventory.json")).Root)
			for _, c := range root.Children {
				if w.get(c.Address).Code == 500 {
					wrong++
				}
			}
			if wrong != 1 {
				t.Errorf("%d wrong leaves", wrong)
			}
		},
	} {
		s, now := w.pub.lookup("data"), w.publish()
		view := w.log.View(t.Context())
		b := s.kv.Batch()
		_, _, err := inventory.New(s.kv).Write(t.Context(), b, inventory.Entities{Count: 200, Between: func(ctx context.Context, lo, hi rdfres.Digest) iter.Seq2[rdfres.InventoryEntry, error] {
			return func(yield func(rdfres.InventoryEntry, error) bool) {
				first := lo.IsZero()
				for e, err := range view.Graphs(ctx, lo, hi, now.Sequence) {
					if first {
						e.Graph[0]++
						first = false
					}
					if !yield(e.InventoryEntry, err) {
						return
					}
				}
			}
		}}, 0, now.Sequence, nil)
		w.must(err)
		w.must(errors.Join(b.Commit(t.Context(), true), b.Close(), view.Close()))
		clear(w.bytes)
		found()
		clear(w.bytes) // wrong ones
		if g := w.publish(); g.Number != now.Number+1 || g.Sequence != now.Sequence {
			t.Errorf("%s: the next publication is %+v after %+v", name, g, now)
		}
		w.must(w.pub.CheckInventory(t.Context(), "data"))
		w.checkInventory(map[uint64]string{})
	}
}

func testDamagedInventory(t *testing.T, damage func(b kv.Batch, key, value []byte)) {
	w := newWorld(t, SetConfig{Format: rdfres.NTriples})
	values := map[string]int{}
	for i := range 2000 {
		values[fmt.Sprintf("http://example.org/e/%d", i)] = i
	}
	w.scan(values, false, rdfres.NTriples)
	w.publish()
	s := w.pub.lookup("data")
	b := s.kv.Batch()
	removed := 0
	for pair, err := range s.kv.Scan(t.Context(), []byte("i"), []byte("j")) {
		w.must(err)
		if depth := pair.Key[1]; depth == 1 {
			damage(b, slices.Clone(pair.Key), slices.Clone(pair.Value))
			removed++
		}
	}
	w.must(b.Commit(t.Context(), true))
	w.must(b.Close())
	if removed == 0 {
		t.Fatal("nothing was removed")
	}
	w.reopen() // some are in memory
	known := map[uint64]string{}
	for i := range 3 {
		w.scan(map[string]int{"http://example.org/e/7": 90 + i, "http://example.org/e/1000": -1, fmt.Sprintf("http://example.org/n/%d", i): 1}, true, rdfres.NTriples)
		w.publish()
		now := w.inventoryDoc(w.url("inventory.json"))
		w.checkInventory(known)
		for k := range known {
			if k != now.Sequence {
				delete(known, k) // those of before may be damaged
			}
		}
	}
}
