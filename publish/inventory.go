package publish

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rsbridge/rsbridge/changetrack"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/resourcesync"
)

const (
	// inventoryDeltas is the number of changes beyond which the tree is made anew
	// instead of changed.
	inventoryDeltas = 100000
	inventoryRel    = resourcesync.NamespaceBridge + "#inventory"
	jsonType        = "application/json"
)

// inventoryKey is that of the node at path as of a sequence. The sequence is
// inverted, so that the newest of those not after it is the first from there on.
func inventoryKey(path string, sequence uint64) []byte {
	k := append([]byte{'i', byte(len(path))}, path...)
	return binary.BigEndian.AppendUint64(k, ^sequence)
}

// storedNode is a node as it is kept.
type storedNode struct {
	rdfres.InventoryNode
	// made are the publications that made the children what they are; nil in a leaf,
	// and where they were not kept.
	made *[16]uint64
}

// readInventory gives the node at path as it was at a sequence, and the sequence
// that made it so; kv.ErrNotFound when there is none.
func readInventory(r kv.Reader, path string, sequence uint64) (n storedNode, made uint64, err error) {
	lo := inventoryKey(path, sequence)
	hi := kv.PrefixEnd(lo[:len(lo)-8])
	for pair, err := range r.Scan(lo, hi) {
		if err != nil {
			return n, 0, err
		}
		made = ^binary.BigEndian.Uint64(pair.Key[len(pair.Key)-8:])
		n, err = decodeInventory(pair.Value)
		if err != nil {
			err = fmt.Errorf("inventory node %q of %d: %w", path, made, err)
		}
		return n, made, err
	}
	return n, 0, kv.ErrNotFound
}

// readNode is the same where the sequence that made the node is known, which is
// much cheaper; 0: it is not.
func readNode(r kv.Reader, path string, made, sequence uint64) (n storedNode, err error) {
	if made == 0 {
		n, _, err = readInventory(r, path, sequence)
		return n, err
	}
	data, err := r.Get(inventoryKey(path, made))
	if err == nil {
		n, err = decodeInventory(data)
	}
	if err != nil {
		err = fmt.Errorf("inventory node %q of %d: %w", path, made, err)
	}
	return n, err
}

// inventoryCache keeps the upper inner nodes, by path; at most 4,369 of them. A node
// of a path and of the publication that made it never changes. Guarded by
// set.publishing.
type inventoryCache map[string]cachedNode

type cachedNode struct {
	made uint64
	node storedNode
}

const cachedDepth = 3

func (c inventoryCache) put(path string, made uint64, n storedNode) {
	if len(path) <= cachedDepth && n.Children != nil {
		c[path] = cachedNode{made, n}
	}
}

// warm reads the upper inner nodes of a tree, so that the first publication after a
// start costs no more than others. What cannot be read is met when it is needed.
func (c inventoryCache) warm(r kv.Reader, sequence uint64) {
	var walk func(path string, made uint64)
	walk = func(path string, made uint64) {
		n, err := readNode(r, path, made, sequence)
		if err != nil || n.made == nil {
			return
		}
		c.put(path, made, n)
		for i := range n.Children {
			if len(path) < cachedDepth && n.Children[i].Count > rdfres.InventoryLeaf {
				walk(path+"0123456789abcdef"[i:i+1], n.made[i])
			}
		}
	}
	walk("", sequence)
}

// The kinds of nodes as they are kept.
const (
	keptLeaf      = 1
	keptInnerBare = 2 // as it was before the publications of the children were kept
	keptInner     = 3
)

// encodeInventory: version byte, kind, digest, then for a leaf uvarint count and
// the entries, for an inner node the count of each child and, unless that is 0, its
// digest and the uvarint sequence of the publication that made it.
func encodeInventory(n *rdfres.InventoryNode, made *[16]uint64) []byte {
	b := make([]byte, 2, 34+16*44)
	b[0], b[1] = recordVersion, keptLeaf
	if n.Children != nil {
		b[1] = keptInner
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

var errInventory = errors.New("the record cannot be read")

func decodeInventory(b []byte) (n storedNode, err error) {
	if len(b) < 34 || b[0] != recordVersion || b[1] < keptLeaf || b[1] > keptInner {
		return n, errInventory
	}
	kind := b[1]
	copy(n.Digest[:], b[2:])
	b = b[34:]
	digest := func(d *rdfres.Digest) {
		if len(b) < len(d) {
			b, err = nil, errInventory
			return
		}
		copy(d[:], b)
		b = b[len(d):]
	}
	number := func() uint64 {
		v, w := binary.Uvarint(b)
		if w <= 0 {
			b, err = nil, errInventory
			return 0
		}
		b = b[w:]
		return v
	}
	if kind == keptLeaf {
		count := number()
		if count > rdfres.InventoryLeaf {
			return n, errInventory
		}
		n.Count = int64(count)
		n.Entries = make([]rdfres.InventoryEntry, count)
		for i := range n.Entries {
			digest(&n.Entries[i].Key)
			digest(&n.Entries[i].Graph)
		}
	} else {
		n.Children = new([16]rdfres.InventoryChild)
		if kind == keptInner {
			n.made = new([16]uint64)
		}
		for i := range n.Children {
			c := &n.Children[i]
			if c.Count = int64(number()); c.Count > 0 {
				digest(&c.Digest)
				if kind == keptInner {
					n.made[i] = number()
				}
			}
			n.Count += c.Count
		}
	}
	if err == nil && len(b) > 0 {
		err = errInventory
	}
	return n, err
}

// inventoryDelta is what a generation changes in the inventory: the graph of each
// changed entity, zero for a deleted one.
type inventoryDelta map[rdfres.Digest]rdfres.Digest

// note takes up a change; nil when there are too many.
func (d inventoryDelta) note(c *changetrack.Change) inventoryDelta {
	if d == nil || len(d) >= inventoryDeltas {
		return nil
	}
	graph := rdfres.Digest{}
	if c.After != nil {
		graph = c.After.Graph
	}
	d[rdfres.EntityKey(c.Entity)] = graph
	return d
}

// writeInventory makes the tree of this generation out of the one of the
// generation before, or anew where there is none or it has changed too much. A
// node that did not change is not written.
func (w *generationWriter) writeInventory(before *genRecord) error {
	if w.set.cfg.NoInventory {
		w.gen.Inventory = ""
		if before != nil && before.Inventory != "" {
			w.batch.DeleteRange([]byte("i"), []byte("j"))
		}
		return nil
	}
	var all [16]uint64 // of a node that is new, children and all
	for i := range all {
		all[i] = w.gen.Sequence
	}
	made := map[string]*[16]uint64{} // of a node with children that stay as they are
	put := func(path string, n rdfres.InventoryNode) error {
		children := made[path]
		if delete(made, path); children == nil {
			children = &all
		}
		w.set.inventory.put(path, w.gen.Sequence, storedNode{n, children})
		w.batch.Set(inventoryKey(path, w.gen.Sequence), encodeInventory(&n, children))
		if w.batch.Size() >= batchBytes {
			return w.batch.Commit(false)
		}
		return nil
	}
	var root rdfres.InventoryNode
	var err error
	if before != nil && before.Inventory != "" && w.delta != nil {
		u := &inventoryUpdate{r: w.set.kv, at: before.Sequence, next: w.gen.Sequence, put: put, made: made, cache: w.set.inventory}
		changes := make([]rdfres.InventoryEntry, 0, len(w.delta))
		for key, graph := range w.delta {
			changes = append(changes, rdfres.InventoryEntry{Key: key, Graph: graph})
		}
		slices.SortFunc(changes, func(a, b rdfres.InventoryEntry) int { return bytes.Compare(a.Key[:], b.Key[:]) })
		root, err = u.node("", before.Sequence, changes)
		if errors.Is(err, kv.ErrNotFound) || err == nil && root.Count != w.view.Resources() {
			w.set.p.log.Error("the inventory is made anew: its records do not fit the log", "set", w.set.cfg.Name, "entities", root.Count, "resources", w.view.Resources(), "error", err)
			clear(made)
			root, err = buildInventory(w.view, put)
		}
	} else {
		root, err = buildInventory(w.view, put)
	}
	if err != nil {
		return fmt.Errorf("inventory: %w", err)
	}
	if root.Count != w.view.Resources() {
		return fmt.Errorf("inventory: it has %d entities, the log has %d", root.Count, w.view.Resources())
	}
	w.gen.Inventory = root.Digest.String()
	return put("", root)
}

// buildInventory makes the whole tree of what a view holds.
func buildInventory(view *changetrack.View, put func(string, rdfres.InventoryNode) error) (rdfres.InventoryNode, error) {
	depth := 0
	for n := view.Resources(); n > 2000 && depth < 6; n /= 16 {
		depth++
	}
	var build func(path string, lo rdfres.Digest) (rdfres.InventoryNode, error)
	build = func(path string, lo rdfres.Digest) (rdfres.InventoryNode, error) {
		if len(path) == depth {
			var entries []rdfres.InventoryEntry
			for st, err := range view.Current(lo, nextPrefix(lo, depth)) {
				if err != nil {
					return rdfres.InventoryNode{}, err
				}
				entries = append(entries, rdfres.InventoryEntry{Key: rdfres.EntityKey(st.Entity), Graph: st.Current.Graph})
			}
			return rdfres.BuildInventory(path, entries, put)
		}
		var parts [16]rdfres.InventoryNode
		for i := range parts {
			at := lo
			if len(path)%2 == 0 {
				at[len(path)/2] = byte(i) << 4
			} else {
				at[len(path)/2] |= byte(i)
			}
			var err error
			if parts[i], err = build(path+"0123456789abcdef"[i:i+1], at); err != nil {
				return rdfres.InventoryNode{}, err
			}
		}
		return rdfres.JoinInventory(path, &parts, put)
	}
	return build("", rdfres.Digest{})
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

// inventoryUpdate changes a tree, path by path.
type inventoryUpdate struct {
	r        kv.Reader
	at, next uint64 // sequences of the tree that is changed, and of what it becomes
	put      func(path string, n rdfres.InventoryNode) error
	made     map[string]*[16]uint64 // for put: publications of the children of a node
	cache    inventoryCache
}

// read is readNode from the cache where the node is there.
func (u *inventoryUpdate) read(path string, made uint64) (storedNode, error) {
	if c, ok := u.cache[path]; ok && c.made == made && made != 0 {
		return c.node, nil
	}
	n, err := readNode(u.r, path, made, u.at)
	if err == nil && made != 0 {
		u.cache.put(path, made, n)
	}
	return n, err
}

// node gives the node at path after the changes, which are sorted and lie below
// it. made is the publication that made it what it is, 0 when that is not known.
func (u *inventoryUpdate) node(path string, made uint64, changes []rdfres.InventoryEntry) (rdfres.InventoryNode, error) {
	old, err := u.read(path, made)
	if err != nil {
		return old.InventoryNode, err
	}
	if old.Children == nil {
		return rdfres.BuildInventory(path, mergeInventory(old.Entries, changes), u.put)
	}
	next := new([16]uint64)
	if old.made != nil {
		*next = *old.made
	}
	var parts [16]rdfres.InventoryNode
	var changed [16]bool
	var count int64
	for i := range parts {
		n := 0
		for n < len(changes) && rdfres.InventoryDigit(&changes[n].Key, len(path)) == i {
			n++
		}
		child := path + "0123456789abcdef"[i:i+1]
		switch {
		case n == 0:
			parts[i].InventoryChild = old.Children[i]
		case old.Children[i].Count == 0: // a record there would be of another time
			parts[i], err = rdfres.BuildInventory(child, mergeInventory(nil, changes[:n]), u.put)
			changed[i] = true
		default:
			parts[i], err = u.node(child, next[i], changes[:n])
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
				child, err := u.read(path+"0123456789abcdef"[i:i+1], next[i])
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
		if !changed[strings.IndexByte("0123456789abcdef", child[len(child)-1])] {
			return nil
		}
		return u.put(child, n)
	})
}

// mergeInventory applies changes to entries; both are sorted.
func mergeInventory(entries, changes []rdfres.InventoryEntry) []rdfres.InventoryEntry {
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

// trimInventory drops nodes that no tree from a sequence on needs.
func (s *set) trimInventory(first uint64) error {
	b := s.kv.Batch()
	defer b.Close()
	var last []byte // prefix of the path whose newest node at or before first was seen
	for pair, err := range s.kv.Scan([]byte("i"), []byte("j")) {
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
				if err := b.Commit(false); err != nil {
					return err
				}
			}
			continue
		}
		last = bytes.Clone(prefix)
	}
	return b.Commit(true)
}

// inventoryLink leads from the Capability List to the inventory.
func (s *set) inventoryLink() resourcesync.Link {
	return link(inventoryRel, s.url+"/inventory.json")
}

func (s *set) inventoryAddress(sequence uint64, path string) string {
	a := s.url + "/inventory/" + strconv.FormatUint(sequence, 10)
	if path != "" {
		a += "/" + path
	}
	return a + ".json"
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

func (s *set) inventoryJSON(d *inventoryDoc, modified time.Time, immutable bool) (*document, error) {
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
	return s.inventoryJSON(&inventoryDoc{Set: s.cfg.Name, Sequence: snap.gen.Sequence, Time: resourcesync.FormatTime(snap.gen.At), Entities: snap.view.Resources(),
		Digest: "sha-256:" + snap.gen.Inventory, Root: s.inventoryAddress(snap.gen.Sequence, ""), First: snap.lists[0].After}, snap.gen.At, false)
}

// inventoryNode answers below /SET/inventory/: SEQUENCE.json is a root,
// SEQUENCE/PATH.json a node below it.
func (snap *snapshot) inventoryNode(rest string) (*document, error) {
	s := snap.set
	rest, ok := strings.CutSuffix(rest, ".json")
	digits, path, more := strings.Cut(rest, "/")
	sequence, err := strconv.ParseUint(digits, 10, 64)
	if !ok || err != nil || strconv.FormatUint(sequence, 10) != digits || more && path == "" || len(path) > 64 {
		return nil, errNoDocument
	}
	missing := notFound("There is no inventory of the change %d.", sequence).
		hint("There is one for each publication since the change %d; the present one is at %s/inventory.json.", snap.lists[0].After, s.url)
	if snap.gen.Inventory == "" || sequence > snap.gen.Sequence || sequence < snap.lists[0].After {
		return nil, missing
	}
	n, made, err := readInventory(snap.kv, "", sequence)
	if errors.Is(err, kv.ErrNotFound) || err == nil && made != sequence {
		return nil, missing
	}
	for i := 0; err == nil && i < len(path); i++ { // a node that its parent does not have is of another time
		digit := strings.IndexByte("0123456789abcdef", path[i])
		if digit < 0 || n.Children == nil || n.Children[digit].Count == 0 {
			return nil, notFound("There is no node %q in the inventory of the change %d.", clipText(path), sequence)
		}
		n, _, err = readInventory(snap.kv, path[:i+1], sequence)
	}
	if err != nil {
		return nil, err
	}
	d := &inventoryDoc{Set: s.cfg.Name, Sequence: sequence, Path: path, Entities: n.Count, Digest: digestToken(n.Digest)}
	for i := range 16 {
		if n.Children != nil && n.Children[i].Count > 0 {
			child := path + "0123456789abcdef"[i:i+1]
			d.Children = append(d.Children, inventoryPart{child, n.Children[i].Count, digestToken(n.Children[i].Digest), s.inventoryAddress(sequence, child)})
		}
	}
	for _, e := range n.Entries {
		line := inventoryLine{Key: e.Key.String(), Graph: digestToken(e.Graph)}
		st, err := snap.view.EntityByKey(e.Key)
		if err == nil {
			line.Entity = st.Entity
		} else if !errors.Is(err, kv.ErrNotFound) {
			return nil, err
		}
		d.Leaf = append(d.Leaf, line)
	}
	// The names of entities in a leaf are those that are still known; all else is
	// fixed.
	return s.inventoryJSON(d, time.Time{}, n.Children != nil)
}
