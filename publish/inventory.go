package publish

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/rsbridge/rsbridge/changetrack"
	"github.com/rsbridge/rsbridge/internal/clip"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/publish/inventory"
	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/resourcesync"
)

const (
	// inventoryDeltas is the number of changes for making the tree anew instead of changing it.
	inventoryDeltas = 100000
	inventoryRel    = resourcesync.NamespaceBridge + "#inventory"
	jsonType        = "application/json"
)

// inventoryDelta is the change of the inventory by a generation: the keys of the changed entities.
type inventoryDelta map[rdfres.Digest]struct{}

// note takes up a change; nil when there are too many.
func (d inventoryDelta) note(c *changetrack.Change) inventoryDelta {
	if d == nil || len(d) >= inventoryDeltas {
		return nil
	}
	d[rdfres.EntityKey(c.Entity)] = struct{}{}
	return d
}

// writeInventory makes the tree of this generation out of the one of the
// generation before, or anew.
func (w *generationWriter) writeInventory(ctx context.Context, before *genRecord) error {
	if w.set.cfg.NoInventory {
		w.gen.Inventory = ""
		if before != nil && before.Inventory != "" {
			w.batch.DeleteRange([]byte("i"), []byte("j"))
		}
		return nil
	}
	from, changes := uint64(0), inventoryDelta(nil)
	if before != nil && before.Inventory != "" {
		from, changes = before.Sequence, w.delta
	}
	root, damage, err := w.set.inventory.Write(ctx, w.batch, inventory.Entities{Count: w.view.Resources(), Between: w.graphs}, from, w.gen.Sequence, changes)
	if damage != nil {
		w.set.p.log.Error("the inventory is made anew: its records do not fit the log", "set", w.set.cfg.Name, "error", damage)
	}
	w.gen.Inventory = root.String()
	return err
}

// graphs are the entities of a range of keys, with the digests of their graphs.
func (w *generationWriter) graphs(ctx context.Context, lo, hi rdfres.Digest) iter.Seq2[rdfres.InventoryEntry, error] {
	return func(yield func(rdfres.InventoryEntry, error) bool) {
		for e, err := range w.view.Graphs(ctx, lo, hi, w.gen.Sequence) {
			if (err != nil || !e.Graph.IsZero()) && !yield(e.InventoryEntry, err) {
				return
			}
		}
	}
}

// CheckInventory compares the inventory of the last publication of a set with the log, of which view is the present
// moment. A difference is an inventory.ErrDamaged.
func CheckInventory(ctx context.Context, store kv.Store, name string, view *changetrack.View) error {
	records := setKeys(store, name)
	var gen genRecord
	if known, err := getJSON(ctx, records, []byte("g"), &gen); err != nil || !known {
		return err
	}
	return checkInventory(ctx, records, gen, view)
}

func checkInventory(ctx context.Context, records kv.Reader, gen genRecord, view *changetrack.View) error {
	if tail, _ := view.Tail(); gen.Inventory == "" || gen.Sequence < tail {
		return view.Err()
	}
	w := &generationWriter{view: view, gen: gen}
	root, err := inventory.Check(ctx, records, gen.Sequence, w.graphs(ctx, rdfres.Digest{}, rdfres.Digest{}))
	if err == nil && root.String() != gen.Inventory {
		err = fmt.Errorf("%w: the publication tells another digest", inventory.ErrDamaged)
	}
	return err
}

// CheckInventory is CheckInventory of a set. The next publication makes a damaged one anew.
func (p *Publisher) CheckInventory(ctx context.Context, name string) error {
	s, err := p.set(name)
	if err != nil {
		return err
	}
	snap := s.acquire(ctx)
	if snap == nil {
		return nil
	}
	defer snap.release()
	if err = checkInventory(ctx, snap.kv, snap.gen, snap.view); errors.Is(err, inventory.ErrDamaged) {
		s.doubtInventory(err)
	}
	return err
}

func (s *set) doubtInventory(err error) {
	s.p.log.Error("the inventory is damaged: the next publication makes it anew", "set", s.cfg.Name, "error", err)
	s.inventory.Doubt()
}

// inventoryLink leads from the Capability List to the inventory.
func (a *place) inventoryLink() resourcesync.Link {
	return link(inventoryRel, a.url+"/inventory.json")
}

func (a *place) inventoryAddress(sequence uint64, path string) string {
	address := a.url + "/inventory/" + strconv.FormatUint(sequence, 10)
	if path != "" {
		address += "/" + path
	}
	return address + ".json"
}

// Forms of the answers, see docs/reference/inventory.md.
type (
	inventoryDoc struct {
		Set      string          `json:"set"`
		Sequence uint64          `json:"sequence"`
		Time     string          `json:"time,omitempty"`
		Path     string          `json:"path"`
		Entities int64           `json:"entities"`
		Digest   string          `json:"digest"`
		Root     string          `json:"root,omitempty"`
		First    uint64          `json:"first_sequence,omitempty"`
		Children []inventoryPart `json:"children,omitempty"`
		Leaf     []inventoryLine `json:"leaf,omitempty"`
	}
	inventoryPart struct {
		Path     string `json:"path"`
		Entities int64  `json:"entities"`
		Digest   string `json:"digest"`
		Address  string `json:"address"`
	}
	inventoryLine struct {
		Key    string `json:"key"`
		Graph  string `json:"graph"`
		Entity string `json:"entity,omitempty"`
	}
)

func inventoryJSON(d *inventoryDoc, modified time.Time, immutable bool) (*document, error) {
	data, err := json.Marshal(d)
	if err != nil {
		return nil, err
	}
	doc, err := packed(append(data, '\n'), jsonType)
	if err == nil {
		doc.modified, doc.immutable = modified, immutable
	}
	return doc, err
}

// inventoryNow is /SET/inventory.json: the present root.
func (snap *snapshot) inventoryNow() (*document, error) {
	s := snap.set
	if snap.gen.Inventory == "" {
		return nil, notFound("The set %s has no inventory.", s.cfg.Name)
	}
	return inventoryJSON(&inventoryDoc{Set: s.cfg.Name, Sequence: snap.gen.Sequence, Time: resourcesync.FormatTime(snap.gen.At), Entities: snap.view.Resources(),
		Digest: "sha-256:" + snap.gen.Inventory, Root: s.at.inventoryAddress(snap.gen.Sequence, ""), First: snap.firstInventory()}, snap.gen.At, false)
}

// firstInventory is the first change of which there may be an inventory: the lists and the log go back to it.
func (snap *snapshot) firstInventory() uint64 {
	tail, _ := snap.view.Tail()
	return max(tail, snap.lists[0].After)
}

// inventoryNode answers below /SET/inventory/: SEQUENCE.json is a root,
// SEQUENCE/PATH.json a node below it.
func (snap *snapshot) inventoryNode(ctx context.Context, rest string) (*document, error) {
	s := snap.set
	rest, ok := strings.CutSuffix(rest, ".json")
	digits, path, more := strings.Cut(rest, "/")
	sequence, err := strconv.ParseUint(digits, 10, 64)
	if !ok || err != nil || strconv.FormatUint(sequence, 10) != digits || more && path == "" || len(path) > 64 {
		return nil, errNoDocument
	}
	missing := notFound("There is no inventory of the change %d.", sequence).
		hint("There is one for each publication since the change %d; the present one is at %s/inventory.json.", snap.firstInventory(), s.at.url)
	if snap.gen.Inventory == "" || sequence > snap.gen.Sequence || sequence < snap.firstInventory() {
		return nil, missing
	}
	n, err := inventory.Read(ctx, snap.kv, path, sequence)
	names := map[rdfres.Digest]string{} // of the leaf
	most := inventory.MostKnown
	if sequence == snap.gen.Sequence { // audits need it; the states tell it without the log
		most = 0
	}
	switch {
	case errors.Is(err, kv.ErrNotFound):
		return nil, missing
	case errors.Is(err, inventory.ErrNoNode):
		return nil, notFound("There is no node %q in the inventory of the change %d.", clip.Middle(path), sequence)
	case err == nil && n.Children == nil && n.Count > 0:
		n.Entries, err = inventory.Entries(path, n, most, func(lo, hi rdfres.Digest) iter.Seq2[rdfres.InventoryEntry, error] {
			return func(yield func(rdfres.InventoryEntry, error) bool) {
				for e, err := range snap.view.Graphs(ctx, lo, hi, sequence) {
					if err == nil && !e.Graph.IsZero() {
						names[e.Key] = e.Entity
					}
					if !yield(e.InventoryEntry, err) {
						return
					}
				}
			}
		})
	}
	if errors.Is(err, inventory.ErrDamaged) && sequence == snap.gen.Sequence {
		s.doubtInventory(err)
	}
	if errors.Is(err, inventory.ErrGrown) {
		return nil, notFound("The node %q of the inventory of the change %d is no longer there: it has grown too much.", clip.Middle(path), sequence).
			hint("The present inventory is at %s/inventory.json.", s.at.url)
	}
	if err != nil {
		return nil, err
	}
	d := &inventoryDoc{Set: s.cfg.Name, Sequence: sequence, Path: path, Entities: n.Count, Digest: digestToken(n.Digest)}
	for i := range 16 {
		if n.Children != nil && n.Children[i].Count > 0 {
			child := path + "0123456789abcdef"[i:i+1]
			d.Children = append(d.Children, inventoryPart{child, n.Children[i].Count, digestToken(n.Children[i].Digest), s.at.inventoryAddress(sequence, child)})
		}
	}
	for _, e := range n.Entries {
		d.Leaf = append(d.Leaf, inventoryLine{Key: e.Key.String(), Graph: digestToken(e.Graph), Entity: names[e.Key]})
	}
	return inventoryJSON(d, time.Time{}, n.Children != nil)
}
