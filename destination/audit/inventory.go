package audit

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/rsbridge/rsbridge/destination/feed"
	"github.com/rsbridge/rsbridge/destination/item"
	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/internal/clip"
	"github.com/rsbridge/rsbridge/internal/extsort"
	"github.com/rsbridge/rsbridge/rdfres"
)

// A source with an in-sync inventory (docs/reference/inventory.md) is compared by
// digests: a tree is made of the records, and below its differing nodes the
// source's are asked for. Of an equal mirror of
// any size one small document is fetched.

// maxInventoryNodes bounds how many nodes are fetched: a mirror with more
// differences is compared with the list, at less cost.
const maxInventoryNodes = 2000

// inventory is one comparison.
type inventory struct {
	a       *pass
	local   *extsort.Sorter // key 32 bytes, value graph 32 bytes and location 16
	nodes   map[string]rdfres.Digest
	fetched int
	other   bool     // the source's is of the records' time, and another
	differ  []string // differing prefixes of keys, in order
	remote  map[rdfres.Digest]remoteEntry
}

type remoteEntry struct {
	graph  rdfres.Digest
	entity string
}

// inventoryLevels is how deep the nodes of the records are kept in memory.
const inventoryLevels = 4

// byInventory compares the records with the source's inventory. done is false
// when there is none that can be used.
func (a *pass) byInventory(ctx context.Context) (done bool, err error) {
	if a.told.root == nil {
		return false, nil
	}
	v, err := newInventory(a)
	if err != nil {
		return false, err
	}
	defer v.local.Close()
	if err := v.compare(ctx); errors.Is(err, feed.ErrInventory) {
		a.Log.Info("the source's inventory is passed over, its list is compared", "why", err)
		if v.other && !a.listed() { // nothing else would find what differs
			a.told.lost = fmt.Errorf("the source's inventory is another than that of the records, and cannot be read: %w", err)
		}
		return false, nil
	} else if err != nil {
		return false, err
	}
	return true, nil
}

// newInventory is closed by its local.
func newInventory(a *pass) (*inventory, error) {
	local, err := extsort.New(a.Config.TempDir, a.Config.MemoryBytes/2)
	return &inventory{a: a, local: local, nodes: map[string]rdfres.Digest{}, remote: map[rdfres.Digest]remoteEntry{}}, err
}

// Recorded is the digest of the inventory of the records, or an ErrInventory.
func (a *Audit) Recorded(ctx context.Context) (rdfres.Digest, error) {
	v, err := newInventory(&pass{Audit: a})
	if err != nil {
		return rdfres.Digest{}, err
	}
	defer v.local.Close()
	root, err := v.build(ctx)
	return root.Digest, err
}

// build makes the inventory of the records, or gives an ErrInventory.
func (v *inventory) build(ctx context.Context) (root rdfres.InventoryChild, err error) {
	if err := v.collect(ctx); err != nil {
		return root, err
	}
	root, err = rdfres.Inventory(v.entries(), func(path string, n rdfres.InventoryNode) error {
		if len(path) <= inventoryLevels {
			v.nodes[path] = n.Digest
		}
		return nil
	})
	if err != nil {
		err = fmt.Errorf("%w: %w", feed.ErrInventory, err)
	}
	return root, err
}

func (v *inventory) compare(ctx context.Context) error {
	a := v.a
	root, unusable := v.build(ctx)
	if unusable != nil && !errors.Is(unusable, feed.ErrInventory) {
		return unusable
	}
	want, err := item.ParseGraph(a.told.root.Digest)
	if err != nil {
		return fmt.Errorf("%w: %w", feed.ErrInventory, err)
	}
	switch {
	case unusable == nil && want == root.Digest:
		if a.told.inventory, a.told.through = a.told.root.Digest, a.told.root.Sequence; a.Depth == "origin" && a.listed() {
			return fmt.Errorf("%w: every representation is asked for", feed.ErrInventory)
		}
		return nil
	case a.told.root.Beyond(&a.told.from):
		behind, err := a.behind(ctx)
		if err != nil {
			return err
		}
		if a.told.ahead = !behind; a.told.ahead {
			return fmt.Errorf("%w: it is of change %d, which is not published yet", feed.ErrInventory, a.told.root.Sequence)
		}
	}
	v.other = unusable == nil
	switch {
	case unusable != nil:
		return unusable
	case a.Depth != "inventory" && a.listed():
		return fmt.Errorf("%w: it is another than that of the records, and the list names what differs", feed.ErrInventory)
	case a.told.root.Root == "":
		return fmt.Errorf("%w: it does not lead to its root", feed.ErrInventory)
	}
	if err := v.descend(ctx, a.told.root.Root, "", want); err != nil {
		return err
	}
	return v.tell(ctx)
}

// collect sorts the records by the keys of the inventory.
func (v *inventory) collect(ctx context.Context) error {
	snap := v.a.Store.Snapshot(ctx)
	defer snap.Close()
	n := int64(0)
	for loc, rec := range v.a.Ledger.Records(ctx, snap) {
		if rec.Err != nil {
			return rec.Err
		}
		if n++; n%4096 == 0 {
			v.a.Options.Progress("inventory", n, 0)
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
		}
		v.a.sawRewritten(ctx, rec.Record)
		if rec.Has(ledger.FlagFile) && v.a.Depth != "inventory" && v.a.listed() {
			return fmt.Errorf("%w: it has no files, and the list has", feed.ErrInventory)
		}
		if rec.Has(ledger.FlagKept) || rec.Has(ledger.FlagFile) {
			continue
		}
		if !rec.Has(ledger.FlagWireNames) || rec.Entity == "" {
			return fmt.Errorf("%w: the source promised no graph digest of %s", feed.ErrInventory, clip.Middle(rec.Loc))
		}
		k := rdfres.EntityKey(rec.Entity)
		if err := v.local.Add(k[:], append(bytes.Clone(rec.Graph[:]), loc[:]...)); err != nil {
			return err
		}
	}
	return nil
}

func (v *inventory) entries() iter.Seq2[rdfres.InventoryEntry, error] {
	return func(yield func(rdfres.InventoryEntry, error) bool) {
		for rec, err := range v.local.Sort() {
			var e rdfres.InventoryEntry
			if err == nil {
				e.Key, e.Graph = rdfres.Digest(rec.Key), rdfres.Digest(rec.Value[:32])
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

func (v *inventory) fetch(ctx context.Context, address string) (*feed.InventoryDoc, error) {
	if v.fetched++; v.fetched > maxInventoryNodes {
		return nil, fmt.Errorf("%w: more than %d of its nodes differ", feed.ErrInventory, maxInventoryNodes)
	}
	return v.a.Feed.InventoryNode(ctx, address)
}

// descend goes down at differing digests. Where they cannot be compared any
// more, because one side has a leaf, all entries below are. The node at address has the digest want, or is not used.
func (v *inventory) descend(ctx context.Context, address, path string, want rdfres.Digest) error {
	doc, err := v.fetch(ctx, address)
	if err != nil {
		return err
	}
	if doc.Path != path || len(path) > 64 {
		return fmt.Errorf("%w: %s is of the path %q and not %q", feed.ErrInventory, clip.Middle(address), clip.Middle(doc.Path), path)
	}
	var node rdfres.InventoryNode
	var entries []rdfres.InventoryEntry
	for _, l := range doc.Leaf {
		key, err := rdfres.ParseDigest(l.Key)
		if err == nil && !strings.HasPrefix(l.Key, path) {
			err = fmt.Errorf("key %s below %q", l.Key, path)
		}
		var graph rdfres.Digest
		if err == nil {
			graph, err = item.ParseGraph(l.Graph)
		}
		if err != nil {
			return fmt.Errorf("%w: %w", feed.ErrInventory, err)
		}
		entries = append(entries, rdfres.InventoryEntry{Key: key, Graph: graph})
	}
	var parts [16]rdfres.InventoryNode
	var addresses [16]string
	for _, c := range doc.Children {
		digit := strings.IndexByte(inventoryDigits, (c.Path + "?")[min(len(path), len(c.Path))])
		if digit < 0 || c.Path != path+inventoryDigits[digit:digit+1] || parts[digit].Count != 0 || c.Entities <= 0 {
			return fmt.Errorf("%w: %q is no child of %q", feed.ErrInventory, clip.Middle(c.Path), path)
		}
		if parts[digit].Digest, err = item.ParseGraph(c.Digest); err != nil {
			return fmt.Errorf("%w: %w", feed.ErrInventory, err)
		}
		parts[digit].Count, addresses[digit] = c.Entities, c.Address
	}
	if len(doc.Children) == 0 {
		node, err = rdfres.BuildInventory(path, entries, nil)
	} else {
		node, err = rdfres.JoinInventory(path, &parts, nil)
	}
	if err != nil || node.Digest != want {
		return fmt.Errorf("%w: %s has not the promised digest %s (%v)", feed.ErrInventory, clip.Middle(address), want, err)
	}
	if len(doc.Children) == 0 {
		v.differ = append(v.differ, path)
		for i, e := range entries {
			v.remote[e.Key] = remoteEntry{e.Graph, doc.Leaf[i].Entity}
		}
		return nil
	}
	for i, part := range parts {
		switch p := path + inventoryDigits[i:i+1]; {
		case part.Count == 0: // of the records alone
			v.differ = append(v.differ, p)
		case v.nodes[p] != part.Digest:
			if err := v.descend(ctx, addresses[i], p, part.Digest); err != nil {
				return err
			}
		}
	}
	return nil
}

const inventoryDigits = "0123456789abcdef"

// differs tells whether a key is in a differing part.
func (v *inventory) differs(prefixes map[string]bool, key string) bool {
	for n := range len(key) + 1 {
		if prefixes[key[:n]] {
			return true
		}
	}
	return false
}

// tell makes findings of the differing parts.
func (v *inventory) tell(ctx context.Context) error {
	prefixes := map[string]bool{}
	for _, p := range v.differ {
		prefixes[p] = true
	}
	found := false
	for rec, err := range v.local.Sort() {
		if err != nil {
			return err
		}
		key := rdfres.Digest(rec.Key)
		if !v.differs(prefixes, hex.EncodeToString(rec.Key)) {
			continue
		}
		there, ok := v.remote[key]
		delete(v.remote, key)
		graph, loc := rdfres.Digest(rec.Value[:32]), ledger.Hash(rec.Value[32:])
		if ok && there.graph == graph {
			continue
		}
		r, err := v.a.Ledger.Record(ctx, loc)
		if err != nil || r == nil {
			return errors.Join(err, ctx.Err())
		}
		found = true
		if !ok {
			err = v.a.event(loc, rankExtra, event{Entity: r.Entity, Location: r.Loc, Detail: "it is mirrored, the source does not have it any more"})
		} else {
			var f *ledger.Fault
			if f, err = v.a.Ledger.Fault(ctx, loc); err == nil {
				err = v.a.event(loc, rankDifferent, event{Entity: r.Entity, Location: r.Loc, Detail: fmt.Sprintf("the source says graph digest %s, recorded is %s%s", there.graph, graph, faultNote(f))})
			}
		}
		if err != nil {
			return err
		}
	}
	known := map[string]*ledger.Fault{} // of missing entities
	for _, e := range v.remote {
		known[e.entity] = nil
	}
	delete(known, "")
	for _, f := range v.a.Ledger.Faults(ctx) {
		if f.Err != nil {
			return f.Err
		}
		if _, missing := known[f.Entity]; missing {
			known[f.Entity] = f.Fault
		}
	}
	for key, e := range v.remote {
		found = true
		name := e.entity
		if name == "" {
			name = "sha-256:" + key.String()
		}
		if err := v.a.event(ledger.HashOf("entity\x00"+name), rankMissing, event{Entity: name, Detail: notMirrored + faultNote(known[e.entity])}); err != nil {
			return err
		}
	}
	if !found {
		return fmt.Errorf("%w: its digests differ, and nothing in it does", feed.ErrInventory)
	}
	v.a.sourceDiffers = true
	return nil
}
