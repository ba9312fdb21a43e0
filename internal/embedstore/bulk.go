package embedstore

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/cockroachdb/pebble/v2"
)

// A bulk write goes in steps. Readers see only the last:
//
//  1. Unknown terms of each segment get ids and are added to the dictionary.
//     Terms without a quad are not seen, and are removed again when the write
//     fails or the process dies.
//  2. The quads are sorted in the order of the graph index and compared with
//     the store; the differences are quads to add and to remove.
//  3. These are sorted in the order of the other three indexes, and written
//     into sorted tables, with the new counts and the next free id.
//  4. The tables become part of the store in one step.
type bulk struct {
	s      *Store
	next   uint64
	first  id // ids from here on came with this write
	blanks labelMap
	sort   *sorter // graph order
	counts map[id]int64
	added  int64
	gone   int64
}

func (l *load) writeBulk(ctx context.Context, g id, replacing bool) (added, removed int64, err error) {
	b := &bulk{s: l.s, next: l.s.next, first: id(l.s.next) << 2, blanks: labelMap{s: l.s}, sort: newSorter(l.s), counts: map[id]int64{}}
	defer b.sort.discard()
	defer b.blanks.close()
	done := false
	defer func() {
		if !done {
			if derr := l.s.dropTermsFrom(l.s.next); derr != nil {
				l.s.log.Error("remove the terms of a failed write; the next write tries it again", "error", derr)
				l.s.leftTerms = true
			}
		}
	}()
	if l.file != nil {
		err = l.file.each(func(seg *segment) error { return b.addSegment(ctx, seg) })
		if err != nil {
			return 0, 0, err
		}
	}
	if err := b.addSegment(ctx, l.seg); err != nil {
		return 0, 0, err
	}
	l.seg = nil
	var replaced *id
	if replacing && !l.replaceAll {
		replaced = &g
	}
	w := newTables(l.s)
	defer w.discard()
	if err := b.writeQuads(ctx, w, replaced, replacing && l.replaceAll); err != nil {
		return 0, 0, err
	}
	meta := w.sibling()
	defer meta.discard()
	last := l.s.commits.last
	if b.added+b.gone > 0 {
		last = last.next()
	}
	if err := b.writeFacts(meta, last); err != nil {
		return 0, 0, err
	}
	if err := w.ingest(ctx); err != nil {
		return 0, 0, err
	}
	done = true
	l.s.next = b.next
	l.s.committed(last)
	return b.added, b.gone, nil
}

// addSegment is step 1 for one segment.
func (b *bulk) addSegment(ctx context.Context, g *segment) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	byHash := make([]uint32, 0, len(g.terms))
	for i := range g.terms {
		if kindOf(g.terms[i]) != idBlank {
			byHash = append(byHash, uint32(i))
		}
	}
	slices.SortFunc(byHash, func(x, y uint32) int { return bytes.Compare(g.hashes[x][:], g.hashes[y][:]) })
	ids := make([]id, len(g.terms)+1)
	if err := b.lookupAll(g, byHash, ids); err != nil {
		return err
	}
	w := newTables(b.s)
	defer w.discard()
	iris := w.sibling()
	defer iris.discard()
	literalPages, iriPages := pageWriter{w: w}, pageWriter{w: iris}
	first := id(b.next) << 2 // ids from here on are new
	fresh := false
	for i, term := range g.terms {
		if ids[i+1] != 0 {
			continue
		}
		kind := kindOf(term)
		var err error
		if kind == idBlank {
			ids[i+1], err = b.blanks.get(term, func() (id, error) { return b.fresh(idBlank) })
			if err != nil {
				return err
			}
			continue
		}
		if ids[i+1], err = b.fresh(kind); err != nil {
			return err
		}
		to := &literalPages
		if kind == idIRI {
			to = &iriPages
		}
		if err := to.add(ids[i+1], term); err != nil {
			return err
		}
		fresh = true
	}
	if fresh {
		if err := errors.Join(literalPages.flush(), iriPages.flush(), w.finish(), iris.finish()); err != nil {
			return err
		}
		h := w.sibling()
		defer h.discard()
		for _, i := range byHash {
			if ids[i+1] < first {
				continue
			}
			k := hashKey(g.hashes[i])
			if err := h.set(k[:], appendID(nil, ids[i+1])); err != nil {
				return err
			}
		}
		if err := h.finish(); err != nil {
			return err
		}
		if err := w.ingest(ctx); err != nil {
			return err
		}
	}
	for i := range g.quads {
		n := &g.quads[i]
		q := quad{ids[n[0]], ids[n[1]], ids[n[2]], ids[n[3]]}
		if err := b.sort.add(pack(3, &q, opSet)); err != nil {
			return err
		}
	}
	return nil
}

func (b *bulk) fresh(kind id) (id, error) {
	t := txn{next: b.next}
	i, err := t.fresh(kind)
	b.next = t.next
	return i, err
}

// lookupAll finds the ids of the terms in the dictionary, walking both in the order of the hashes.
func (b *bulk) lookupAll(g *segment, byHash []uint32, ids []id) error {
	cur, err := pebbleView{b.s.db}.iter(spaceHash)
	if err != nil {
		return err
	}
	defer cur.Close()
	if !cur.First() {
		return cur.Error()
	}
	for _, i := range byHash {
		k := hashKey(g.hashes[i])
		// A few steps are cheaper than a search.
		for range 8 {
			if !cur.Valid() || bytes.Compare(cur.Key(), k[:]) >= 0 {
				break
			}
			cur.Next()
		}
		if cur.Valid() && bytes.Compare(cur.Key(), k[:]) < 0 {
			cur.SeekGE(k[:])
		}
		if !cur.Valid() {
			return cur.Error()
		}
		if bytes.Equal(cur.Key(), k[:]) {
			ids[i+1] = getID(cur.Value())
		}
	}
	return cur.Error()
}

// writeQuads are steps 2 and 3. Quads of the graph replaced, or with all of every graph, are
// removed unless they are among the sorted ones.
func (b *bulk) writeQuads(ctx context.Context, w *tables, replaced *id, all bool) error {
	others := [3]*sorter{newSorter(b.s), newSorter(b.s), newSorter(b.s)}
	for _, o := range others {
		defer o.discard()
	}
	var key [quadKeyLen]byte
	var q quad
	change := func(r *record, op byte) error {
		r.unpack(3, &q)
		quadKey(&key, 3, &q)
		var err error
		if op == opSet {
			b.added++
			b.counts[q[posG]]++
			err = w.set(key[:], nil)
		} else {
			b.gone++
			b.counts[q[posG]]--
			err = w.del(key[:])
		}
		for i := 0; i < 3 && err == nil; i++ {
			err = others[i].add(pack(i, &q, op))
		}
		return err
	}
	cur, err := pebbleView{b.s.db}.iter(spaceGSPO)
	if err != nil {
		return err
	}
	defer cur.Close()
	held := heldQuads{cur: cur}
	switch {
	case all:
		held.start(quad{})
	case replaced != nil:
		held.start(quad{posG: *replaced})
	default:
		held.leap = true
	}
	drop := func(r *record) bool { return all || replaced != nil && id(r.a>>24) == *replaced }
	err = b.sort.each(ctx, func(r *record) error {
		for {
			if held.leap {
				if r.unpack(3, &q); slices.Max(q[:]) >= b.first { // no quad can have the term yet
					return change(r, opSet)
				}
				held.leapTo(r)
			}
			if !held.ok || held.rec.compare(r) >= 0 {
				break
			}
			if drop(&held.rec) {
				if err := change(&held.rec, opDelete); err != nil {
					return err
				}
			}
			held.next()
		}
		if held.ok && held.rec.sameKey(r) {
			held.next()
			return nil
		}
		return change(r, opSet)
	})
	if err != nil {
		return err
	}
	for n := 0; !held.leap && held.ok && drop(&held.rec); n++ {
		if n&4095 == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := change(&held.rec, opDelete); err != nil {
			return err
		}
		held.next()
	}
	if err := cur.Error(); err != nil {
		return err
	}
	if err := w.finish(); err != nil {
		return err
	}
	b.sort.discard()
	var wg sync.WaitGroup
	errs := make([]error, 3)
	for i := range others {
		sib := w.sibling()
		wg.Go(func() { errs[i] = writeIndex(ctx, sib, others[i], i) })
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func writeIndex(ctx context.Context, w *tables, from *sorter, index int) error {
	var key [quadKeyLen]byte
	var q quad
	err := from.each(ctx, func(r *record) error {
		r.unpack(index, &q)
		quadKey(&key, index, &q)
		if byte(r.op) == opDelete {
			return w.del(key[:])
		}
		return w.set(key[:], nil)
	})
	if err != nil {
		if w.w != nil {
			w.w.Close()
			w.w = nil
		}
		return err
	}
	from.discard()
	return w.finish()
}

// writeFacts writes the counts, the next free number, and the commit without its places.
func (b *bulk) writeFacts(w *tables, last commitMark) error {
	if err := w.set(keyCommits, last.bytes()); err != nil {
		return err
	}
	if err := w.set(keyNext, putNext(b.next)); err != nil {
		return err
	}
	graphs := make([]id, 0, len(b.counts))
	for g := range b.counts {
		graphs = append(graphs, g)
	}
	slices.Sort(graphs)
	for _, g := range graphs {
		n, err := graphCount(pebbleView{b.s.db}, g)
		if err != nil {
			return err
		}
		if n += b.counts[g]; n == 0 {
			err = w.del(countKey(g))
		} else {
			err = w.set(countKey(g), putCount(n))
		}
		if err != nil {
			return err
		}
	}
	if last != b.s.commits.last {
		if last.number > keptCommits {
			if err := w.del(journalKey(last.number - keptCommits)); err != nil {
				return err
			}
		}
		if err := w.set(journalKey(last.number), last.withoutPlaces()); err != nil {
			return err
		}
	}
	return w.finish()
}

// heldQuads walks the store's quads, in graph order.
type heldQuads struct {
	cur   cursor
	rec   record
	ok    bool
	leap  bool // leapTo moves it; else it walks from start on
	ended bool // no held quad is at or after the last requested one
}

func (h *heldQuads) start(q quad) {
	var key [quadKeyLen]byte
	quadKey(&key, 3, &q)
	h.ok = h.cur.SeekGE(key[:])
	h.load()
}

func (h *heldQuads) load() {
	if h.ok {
		var q quad
		decodeQuad(h.cur.Key(), 3, &q)
		h.rec = pack(3, &q, opDelete)
	}
	h.ended = !h.ok
}

func (h *heldQuads) next() {
	h.ok = h.cur.Next()
	h.load()
}

// leapTo places the walk on the first quad not before r: a few steps are cheaper than a search.
func (h *heldQuads) leapTo(r *record) {
	for range 8 {
		if !h.ok || h.rec.compare(r) >= 0 {
			break
		}
		h.next()
	}
	if h.ended || h.ok && h.rec.compare(r) >= 0 {
		return
	}
	var q quad
	r.unpack(3, &q)
	h.start(q)
}

// labelMap gives each blank node label of one load its id. Beyond a number of
// labels they are kept on disk.
type labelMap struct {
	s    *Store
	mem  map[string]id
	disk *overlay
}

const labelsInMemory = 300_000

func (m *labelMap) get(label string, fresh func() (id, error)) (id, error) {
	if i, ok := m.mem[label]; ok {
		return i, nil
	}
	if m.disk != nil {
		val, ok, err := pebbleView{m.disk.db}.get([]byte(label))
		if err := errors.Join(m.disk.err(), err); err != nil {
			return 0, err
		}
		if ok {
			return getID(val), nil
		}
	}
	i, err := fresh()
	if err != nil {
		return 0, err
	}
	if len(m.mem) < labelsInMemory && !(m.s.forced.chunk > 0 && len(m.mem) >= m.s.forced.chunk) {
		if m.mem == nil {
			m.mem = map[string]id{}
		}
		m.mem[string(append([]byte(nil), label...))] = i
		return i, nil
	}
	if m.disk == nil {
		if m.disk, err = newOverlay(m.s); err != nil {
			return 0, err
		}
	}
	return i, m.disk.db.Set([]byte(label), appendID(nil, i), pebble.NoSync)
}

func (m *labelMap) close() {
	if m.disk != nil {
		m.disk.close()
	}
}
