package destination

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/rsbridge/rsbridge/destination/feed"
	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/internal/clip"
	"github.com/rsbridge/rsbridge/internal/extsort"
	"github.com/rsbridge/rsbridge/rdfres"
)

// A source with an in-sync inventory (docs/reference/inventory.md) is compared by
// digests: the tree of what is recorded is made of the records, and where it
// differs from the source's the nodes below are asked for. Of an equal mirror of
// any size one small document is fetched.

// maxInventoryNodes bounds how many nodes are fetched: a mirror that differs in
// more is compared with the list, which costs less.
const maxInventoryNodes = 2000

// inventoryAudit is one comparison.
type inventoryAudit struct {
	a       *auditRun
	local   *extsort.Sorter // key 32 bytes, value graph 32 bytes and location 16
	nodes   map[string]rdfres.Digest
	fetched int
	differ  []string // prefixes of keys that differ, in order
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
func (a *auditRun) byInventory(ctx context.Context) (done bool, err error) {
	d := a.d
	if a.root == nil {
		return false, nil
	}
	v, err := newInventoryAudit(a)
	if err != nil {
		return false, err
	}
	defer v.local.Close()
	if err := v.compare(ctx); errors.Is(err, feed.ErrInventory) {
		d.mem.Log.Info("the source's inventory is passed over, its list is compared", "why", err)
		return false, nil
	} else if err != nil {
		return false, err
	}
	return true, nil
}

// newInventoryAudit is closed by its local.
func newInventoryAudit(a *auditRun) (*inventoryAudit, error) {
	local, err := extsort.New(a.d.cfg.TempDir, a.d.cfg.MemoryBytes/2)
	return &inventoryAudit{a: a, local: local, nodes: map[string]rdfres.Digest{}, remote: map[rdfres.Digest]remoteEntry{}}, err
}

// build makes the inventory of the records, or gives an errInventory.
func (v *inventoryAudit) build(ctx context.Context) (root rdfres.InventoryChild, err error) {
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

func (v *inventoryAudit) compare(ctx context.Context) error {
	a := v.a
	root, unusable := v.build(ctx)
	if unusable != nil && !errors.Is(unusable, feed.ErrInventory) {
		return unusable
	}
	want, err := feed.ParseGraph(a.root.Digest)
	if err != nil {
		return fmt.Errorf("%w: %w", feed.ErrInventory, err)
	}
	switch {
	case unusable == nil && want == root.Digest:
		if a.inventory, a.through = a.root.Digest, a.root.Sequence; a.depth == "origin" && a.listed() {
			return fmt.Errorf("%w: every representation is asked for", feed.ErrInventory)
		}
		return nil
	case a.root.Beyond(&a.from):
		behind, err := a.behind(ctx)
		if err != nil {
			return err
		}
		if a.ahead = !behind; a.ahead {
			return fmt.Errorf("%w: it is of change %d, which is not published yet", feed.ErrInventory, a.root.Sequence)
		}
	}
	switch {
	case unusable != nil:
		return unusable
	case a.depth != "inventory" && a.listed():
		return fmt.Errorf("%w: it is another than that of the records, and the list names what differs", feed.ErrInventory)
	case a.root.Root == "":
		return fmt.Errorf("%w: it does not lead to its root", feed.ErrInventory)
	}
	if err := v.descend(ctx, a.root.Root, ""); err != nil {
		return err
	}
	return v.tell(ctx)
}

// collect sorts what is recorded by the keys of the inventory.
func (v *inventoryAudit) collect(ctx context.Context) error {
	d := v.a.d
	snap := d.mem.Store.Snapshot(ctx)
	defer snap.Close()
	n := int64(0)
	for loc, rec := range d.mem.Ledger.Records(ctx, snap) {
		if rec.Err != nil {
			return rec.Err
		}
		if n++; n%4096 == 0 {
			d.opt.Progress("inventory", n, 0)
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
		}
		v.a.sawRewritten(ctx, rec.Record)
		if rec.Has(ledger.FlagFile) && v.a.depth != "inventory" && v.a.listed() {
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

func (v *inventoryAudit) entries() iter.Seq2[rdfres.InventoryEntry, error] {
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

func (v *inventoryAudit) fetch(ctx context.Context, address string) (*feed.InventoryDoc, error) {
	if v.fetched++; v.fetched > maxInventoryNodes {
		return nil, fmt.Errorf("%w: more than %d of its nodes differ", feed.ErrInventory, maxInventoryNodes)
	}
	return v.a.d.src.Docs.InventoryNode(ctx, address)
}

// descend goes down where the digests differ. Where they cannot be compared any
// more, because one side has a leaf, all entries below are.
func (v *inventoryAudit) descend(ctx context.Context, address, path string) error {
	doc, err := v.fetch(ctx, address)
	if err != nil {
		return err
	}
	if doc.Path != path || len(path) > 64 {
		return fmt.Errorf("%w: %s is of the path %q and not %q", feed.ErrInventory, clip.Middle(address), clip.Middle(doc.Path), path)
	}
	for _, l := range doc.Leaf {
		key, err := rdfres.ParseDigest(l.Key)
		if err == nil && !strings.HasPrefix(l.Key, path) {
			err = fmt.Errorf("key %s below %q", l.Key, path)
		}
		var graph rdfres.Digest
		if err == nil {
			graph, err = feed.ParseGraph(l.Graph)
		}
		if err != nil {
			return fmt.Errorf("%w: %w", feed.ErrInventory, err)
		}
		v.remote[key] = remoteEntry{graph, l.Entity}
	}
	if len(doc.Children) == 0 {
		v.differ = append(v.differ, path)
		return nil
	}
	have := map[string]bool{}
	for _, c := range doc.Children {
		if len(c.Path) != len(path)+1 || !strings.HasPrefix(c.Path, path) || have[c.Path] || strings.Trim(c.Path, "0123456789abcdef") != "" {
			return fmt.Errorf("%w: %q is no child of %q", feed.ErrInventory, clip.Middle(c.Path), path)
		}
		have[c.Path] = true
		want, err := feed.ParseGraph(c.Digest)
		if err != nil {
			return fmt.Errorf("%w: %w", feed.ErrInventory, err)
		}
		if v.nodes[c.Path] == want {
			continue
		}
		if err := v.descend(ctx, c.Address, c.Path); err != nil {
			return err
		}
	}
	for i := range 16 { // what only the records have
		if p := path + "0123456789abcdef"[i:i+1]; !have[p] {
			v.differ = append(v.differ, p)
		}
	}
	return nil
}

// differs tells whether a key is in a part that differs.
func (v *inventoryAudit) differs(prefixes map[string]bool, key string) bool {
	for n := range len(key) + 1 {
		if prefixes[key[:n]] {
			return true
		}
	}
	return false
}

// tell makes findings of the parts that differ.
func (v *inventoryAudit) tell(ctx context.Context) error {
	d := v.a.d
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
		r, err := d.mem.Ledger.Record(ctx, loc)
		if err != nil || r == nil {
			return errors.Join(err, ctx.Err())
		}
		found = true
		if !ok {
			err = v.a.event(loc, rankExtra, event{Entity: r.Entity, Location: r.Loc, Detail: "it is mirrored, the source does not have it any more"})
		} else {
			var f *ledger.Fault
			if f, err = d.mem.Ledger.Fault(ctx, loc); err == nil {
				err = v.a.event(loc, rankDifferent, event{Entity: r.Entity, Location: r.Loc, Detail: fmt.Sprintf("the source says graph digest %s, recorded is %s%s", there.graph, graph, faultNote(f))})
			}
		}
		if err != nil {
			return err
		}
	}
	known := map[string]*ledger.Fault{} // of entities that are missing
	for _, e := range v.remote {
		known[e.entity] = nil
	}
	delete(known, "")
	for _, f := range d.mem.Ledger.Faults(ctx) {
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
