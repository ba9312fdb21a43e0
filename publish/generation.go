package publish

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/rsbridge/rsbridge/changetrack"
	"github.com/rsbridge/rsbridge/internal/clip"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/publish/days"
	"github.com/rsbridge/rsbridge/publish/partition"
	"github.com/rsbridge/rsbridge/publish/patch"
	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/resourcesync"
)

const (
	batchBytes = 4 << 20   // written ahead of the record making it visible
	chunkBytes = 256 << 10 // of rendered entries
)

// open finishes or removes unfinished work, and publishes.
func (s *set) open(ctx context.Context) error {
	s.publishing.Lock()
	defer s.publishing.Unlock()
	var gen genRecord
	known, err := getJSON(ctx, s.kv, []byte("g"), &gen)
	if err != nil {
		return err
	}
	if known {
		view := s.cfg.Log.View(ctx)
		head, _ := view.Head()
		tail, _ := view.Tail()
		if err := errors.Join(view.Err(), view.Close()); err != nil {
			return err
		}
		why := ""
		switch {
		case head < gen.Sequence:
			why = "the log ends before what was published"
		case tail > gen.Sequence:
			why = "changes were dropped from the log before they were published"
		case s.at.Addresses != Addresses{gen.Base, gen.Prefix}:
			why = "the addresses are others, and nothing was published at the old ones"
		}
		if why != "" {
			s.p.log.Warn("new lists begin", "set", s.cfg.Name, "because", why)
			if err := startAnew(ctx, s.kv, gen.Number, &s.at); err != nil {
				return err
			}
		} else if err := s.load(ctx, gen); err != nil {
			return err
		}
	}
	if err := s.openDumps(ctx); err != nil {
		return err
	}
	_, _, err = s.publish(ctx)
	return err
}

// startAnew leaves only the generation's number and the last list's, since numbers are never used
// twice, and the new addresses.
func startAnew(ctx context.Context, records kv.Store, number uint64, at *place) error {
	lists, err := loadLists(ctx, records)
	if err != nil {
		return err
	}
	b := records.Batch()
	defer b.Close()
	b.DeleteRange([]byte("c"), []byte("h")) // c entries, d dump, g generation
	b.DeleteRange([]byte("D"), []byte("E"))
	b.Delete(listKey)
	b.DeleteRange([]byte("l"), []byte("z")) // l lists, p parts, x and y patches
	last := anewRecord{Version: recordVersion, Generation: number, Base: at.Base, Prefix: at.Prefix, Former: at.former}
	if len(lists) > 0 {
		last.List = lists[len(lists)-1].Number
	}
	if err := setJSON(b, []byte("z"), last); err != nil {
		return err
	}
	return b.Commit(ctx, true)
}

// lastNumbers are the highest numbers given before the lists began anew.
func lastNumbers(ctx context.Context, records kv.Reader) (generation, list uint64, again bool, err error) {
	var last anewRecord
	again, err = getJSON(ctx, records, []byte("z"), &last)
	return last.Generation, last.List, again, err
}

// load takes up a generation without its view. The log's head may be beyond it, so the next
// publication replaces what it serves.
func (s *set) load(ctx context.Context, gen genRecord) error {
	if err := clean(ctx, s.kv, gen); err != nil {
		return err
	}
	g := &generation{gen: gen}
	var err error
	if g.parts, err = partition.Load(ctx, s.kv); err == nil {
		g.lists, err = loadLists(ctx, s.kv)
	}
	if err == nil && (len(g.parts) == 0 || len(g.lists) == 0) {
		err = fmt.Errorf("generation %d has %d parts and %d Change Lists: records are missing", gen.Number, len(g.parts), len(g.lists))
	}
	if err != nil {
		return err
	}
	g.log = s.cfg.Log.Moment()
	s.replace(g)
	return nil
}

// clean removes the records of an unfinished Publish beyond the generation.
func clean(ctx context.Context, records kv.Store, gen genRecord) error {
	b := records.Batch()
	defer b.Close()
	for _, kind := range patch.Kinds {
		b.DeleteRange(keyOf(kind.ID, gen.Sequence+1), []byte{kind.ID + 1})
	}
	lists, err := loadLists(ctx, records)
	if err != nil {
		return err
	}
	if len(lists) == 0 {
		b.DeleteRange([]byte("c"), []byte("d"))
	} else {
		b.DeleteRange(keyOf('c', lists[len(lists)-1].Number, gen.Sequence+1), []byte("d"))
	}
	return b.Commit(ctx, false)
}

func loadLists(ctx context.Context, r kv.Reader) ([]listRecord, error) {
	var lists []listRecord
	for pair, err := range r.Scan(ctx, []byte("l"), []byte("m")) {
		if err != nil {
			return nil, err
		}
		var l listRecord
		if err := decodeRecord(pair.Key, pair.Value, &l); err != nil {
			return nil, err
		}
		lists = append(lists, l)
	}
	return lists, nil
}

// Publish makes the present content of the log visible: a new generation. Its cost is the cost of
// the changes since the last one. Before the first complete scan, and without changes, it makes
// none and returns the present one.
func (p *Publisher) Publish(ctx context.Context, name string) (Generation, error) {
	if _, err := p.set(name); err != nil {
		return Generation{}, err
	}
	s := p.lockPublishing(name)
	defer s.publishing.Unlock()
	_, g, err := s.publish(ctx)
	if err != nil {
		return g, fmt.Errorf("publish: a generation of %s: %w", name, err)
	}
	return g, nil
}

// publish: the caller holds s.publishing. It gives the set afterwards: another one if the log has a
// move.
func (s *set) publish(ctx context.Context) (*set, Generation, error) {
	now := s.cfg.Log.Moment()
	var alternates alternateMoments
	keep := false
	defer func() {
		if !keep {
			s.closed(now.Release(), alternates.release())
		}
	}()
	view := now.View(ctx)
	defer view.Close()
	if err := view.Err(); err != nil {
		return s, Generation{}, err
	}
	head, at := view.Head()
	baseSeq, baseAt, ok := view.BaselineEnd()
	if !ok {
		return s, Generation{}, nil
	}
	if at.Before(baseAt) {
		at = baseAt // an empty store has been scanned
	}
	cur := s.cur // as long as s.publishing is held
	alternates, err := s.presentAlternates(ctx)
	if err != nil {
		return s, Generation{}, err
	}
	links := alternates.open(ctx)
	defer func() { s.closed(links.close()) }()
	if cur != nil && cur.gen.Sequence == head && maps.Equal(cur.gen.Alternates, links.records()) && cur.gen.Entries == s.entries.measureTag() && !s.inventory.Doubted() {
		if alternates != nil && cur.alternates == nil { // it was loaded
			keep = true
			s.replace(&generation{gen: cur.gen, log: now, parts: cur.parts, lists: cur.lists, alternates: alternates})
		}
		return s, cur.gen.public(), nil
	}
	tail, tailAt := view.Tail()
	before := s
	if cur != nil {
		moved, err := s.moved(ctx, view, cur.gen.Sequence)
		why := "changes were dropped from the log before they were published"
		switch {
		case err != nil:
			return s, Generation{}, err
		case moved != nil:
			why = fmt.Sprintf("the addresses are others: %s, prefix %q", moved.at.url, moved.at.Prefix)
		case tail > cur.gen.Sequence:
			moved = s
		}
		if moved != nil {
			s.p.log.Warn("new lists begin", "set", s.cfg.Name, "because", why)
			before.freeze(ctx)
			if s, err = s.anew(ctx, moved, cur.gen.Number); err != nil {
				return before, Generation{}, err
			}
			cur = nil
		}
	}
	if tail > baseSeq {
		baseSeq, baseAt = tail, tailAt
	}
	started := s.p.now()
	before.freeze(ctx)
	w := &generationWriter{set: s, view: view, alternates: links, batch: s.kv.Batch()}
	defer w.batch.Close()
	if err := w.begin(ctx, cur, baseSeq, baseAt, head, at); err != nil {
		return before, Generation{}, err
	}
	if err := w.run(ctx); err != nil {
		if cur != nil { // entries and patches already written are beyond its sequence
			if cleanErr := clean(context.WithoutCancel(ctx), s.kv, cur.gen); cleanErr != nil {
				s.p.log.Error("cleaning up after a publication that did not end", "set", s.cfg.Name, "error", cleanErr)
			}
		}
		return before, Generation{}, err
	}
	keep = true
	w.warnFull()
	s.p.o.Before(context.WithoutCancel(ctx))
	s.replace(&generation{gen: w.gen, log: now, parts: w.parts, lists: w.lists, alternates: alternates})
	if s != before {
		s.p.put(s)
		before.replace(nil)
	}
	if err := s.names.Follow(ctx); err != nil {
		s.p.log.Error("the index of names does not follow", "set", s.cfg.Name, "error", err)
	}
	s.p.log.Info("published", "set", s.cfg.Name, "generation", w.gen.Number, "sequence", w.gen.Sequence, "changes", w.changes, "patches", w.patches,
		"parts", len(w.parts), "lists", len(w.lists), "seconds", s.p.now().Sub(started).Seconds())
	return s, w.gen.public(), nil
}

// touch notes a change of the part i.
func (w *generationWriter) touch(i int, count, bytes int64) {
	t := w.touched[i]
	w.touched[i] = partition.Touch{Count: t.Count + count, Bytes: t.Bytes + bytes}
}

// generationWriter makes one generation.
type generationWriter struct {
	set   *set
	view  *changetrack.View
	batch kv.Batch
	gen   genRecord

	alternates *alternateSets

	after uint64 // the changes after this one are new
	parts partition.Parts
	lists []listRecord

	before  *genRecord     // nil: the lists begin
	delta   inventoryDelta // nil: too much has changed
	days    days.Counter
	touched map[int]partition.Touch // part: its added and removed entries
	dirty   map[uint64]bool
	chunk   []byte // entries of the open list not yet in the batch
	inChunk int
	firstOf uint64 // sequence of the first of them
	changes int
	patches int
}

func (w *generationWriter) begin(ctx context.Context, cur *generation, baseSeq uint64, baseAt time.Time, head uint64, at time.Time) error {
	s := w.set
	w.touched, w.dirty, w.delta = map[int]partition.Touch{}, map[uint64]bool{}, inventoryDelta{}
	if cur != nil {
		w.gen, w.before = cur.gen, &cur.gen
		w.gen.Number++
		w.gen.Sequence = head
		w.gen.Alternates = w.alternates.records()
		w.gen.Entries = s.entries.measureTag()
		if at.After(w.gen.At) {
			w.gen.At = at
		}
		w.after = cur.gen.Sequence
		w.parts, w.lists = slices.Clone(cur.parts), slices.Clone(cur.lists)
		return nil
	}
	for _, kind := range "cilpxy" { // of an unfinished first publication
		w.batch.DeleteRange([]byte{byte(kind)}, []byte{byte(kind) + 1})
	}
	number, list, again, err := lastNumbers(ctx, s.kv)
	if err != nil {
		return err
	}
	if again { // the addresses are new: nobody has followed them
		baseSeq, baseAt = head, at
	}
	w.gen = genRecord{Version: recordVersion, Number: number + 1, Sequence: head, At: at, Base: s.at.Base,
		Prefix: s.at.Prefix, Former: s.at.former, Format: string(s.cfg.Format), StartSeq: baseSeq, StartAt: baseAt, Alternates: w.alternates.records(), Entries: s.entries.measureTag()}
	w.after = baseSeq
	w.lists = []listRecord{{Version: recordVersion, Number: list + 1, From: baseAt, After: baseSeq, Last: baseSeq}}
	w.dirty[list+1] = true
	touched := partition.Part{Seq: head, Gen: w.gen.Number, At: at}
	if w.parts, err = partition.New(w.counted(s.entries.measure(ctx, &source{w.view, w.alternates})), s.sizes.partSize, touched); err != nil {
		return err
	}
	for _, p := range w.parts {
		w.batch.Set([]byte("p"+p.Bits()), p.Append(nil))
	}
	w.touched = nil // counted already
	return nil
}

// counted tells how far the entries of a first generation are measured. How many files there are beside the entities
// is not known.
func (w *generationWriter) counted(measure partition.Measure) partition.Measure {
	total := w.view.Resources()
	if w.set.cfg.Content != "" {
		total = 0
	}
	return func(lo, hi rdfres.Digest, f func(rdfres.Digest, int64)) error {
		n := int64(0)
		return measure(lo, hi, func(key rdfres.Digest, bytes int64) {
			if n++; n%10_000 == 0 {
				w.set.p.o.Progress(w.set.cfg.Name, "publish", n, total)
			}
			f(key, bytes)
		})
	}
}

func (w *generationWriter) run(ctx context.Context) error {
	patches := patch.NewQueue(ctx, w.view)
	defer patches.Stop()
	for c, err := range w.view.Changes(ctx, w.after) {
		if err != nil {
			return err
		}
		if c.Sequence > w.gen.Sequence {
			break
		}
		if c.Kind == changetrack.Rebased { // of before the lists began
			continue
		}
		if err := patches.Push(c); err != nil {
			return err
		}
		for patches.Full() {
			if err := w.take(ctx, patches); err != nil {
				return err
			}
		}
		if n := c.Sequence - w.after; w.before != nil && n%1000 == 0 {
			w.set.p.o.Progress(w.set.cfg.Name, "publish", int64(n), int64(w.gen.Sequence-w.after))
		}
	}
	for patches.Any() {
		if err := w.take(ctx, patches); err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	w.flushChunk()
	if err := w.touchAlternates(ctx); err != nil {
		return err
	}
	now := &source{w.view, w.alternates}
	if w.touched != nil && w.set.cfg.Content != "" {
		for key, err := range w.view.Relinked(ctx, w.after, w.gen.Sequence) {
			if err != nil {
				return err
			}
			bytes := int64(0) // of an entry linked with more descriptions
			if err := w.set.entries.measureFiles(ctx, now, key, after(key), func(_ rdfres.Digest, n int64) { bytes += n }); err != nil {
				return err
			}
			w.touch(w.parts.Find(key), 0, bytes)
		}
	}
	touch := partition.Part{Seq: w.gen.Sequence, Gen: w.gen.Number, At: w.gen.At}
	var err error
	if w.parts, err = w.parts.Update(w.touched, touch, w.before != nil && w.before.Entries != w.gen.Entries, w.set.entries.measure(ctx, now), w.set.sizes.partSize, w.batch); err != nil {
		return err
	}
	w.mergeLists()
	if err := w.writeInventory(ctx, w.before); err != nil {
		return err
	}
	for i := range w.lists {
		if w.dirty[w.lists[i].Number] {
			if err := setJSON(w.batch, keyOf('l', w.lists[i].Number), &w.lists[i]); err != nil {
				return err
			}
		}
	}
	if err := w.days.Write(ctx, w.set.kv, w.batch); err != nil {
		return err
	}
	if err := setJSON(w.batch, []byte("g"), &w.gen); err != nil {
		return err
	}
	return w.batch.Commit(ctx, true)
}

// take brings the next change into the list, the patches and the parts.
func (w *generationWriter) take(ctx context.Context, patches *patch.Queue) error {
	c, offered, err := patches.Pop()
	if err != nil {
		return err
	}
	if c.OfEntity() {
		w.delta = w.delta.note(&c)
	}
	w.days.Count(&c)
	entries, err := w.set.entries.ofChange(ctx, &source{w.view, w.alternates}, &c, offered)
	if err != nil {
		return err
	}
	l, most := &w.lists[len(w.lists)-1], w.set.cfg.RotateEntries
	if l.Half.After == 0 && (l.Entries >= most/2 || l.Bytes >= rotateBytes/2) && l.Entries > 0 {
		w.flushChunk()
		l.Half = listHalf{After: l.Last, At: l.LastAt, Entries: l.Entries, Bytes: l.Bytes}
	}
	if l.Entries > 0 && (l.Entries+len(entries) > most || l.Bytes >= rotateBytes || c.Time.Sub(l.First) >= w.set.cfg.Rotate) {
		w.flushChunk()
		l.Until, w.dirty[l.Number] = l.LastAt, true
		w.lists = append(w.lists, listRecord{Version: recordVersion, Number: l.Number + 1, From: l.LastAt, After: l.Last, Last: l.Last})
		l = &w.lists[len(w.lists)-1]
	}
	w.dirty[l.Number] = true
	for _, p := range offered {
		w.batch.Set(keyOf(p.Kind.ID, c.Sequence), p.Data)
		w.patches++
	}
	if w.inChunk == 0 {
		w.firstOf = c.Sequence
	}
	before := len(w.chunk)
	for i := range entries {
		if w.chunk, err = resourcesync.AppendEntry(w.chunk, &entries[i]); err != nil {
			return fmt.Errorf("change %d of %s: %w", c.Sequence, clip.Middle(c.Entity), err)
		}
	}
	if w.touched != nil {
		// The entry of the Resource List is shorter than the change's, except for its links to
		// other sets.
		i, bytes := w.parts.Find(keyOfChange(&c)), int64(len(w.chunk)-before)+int64(len(w.set.cfg.Alternates))*alternateBytes
		switch c.Kind {
		case changetrack.Created:
			w.touch(i, 1, bytes)
		case changetrack.Deleted:
			w.touch(i, -1, 0)
		default:
			w.touch(i, 0, bytes)
		}
	}
	n := len(entries)
	w.inChunk += n
	w.changes++
	if l.Entries == 0 {
		l.First = c.Time
	}
	l.Entries += n
	if packable(&c) {
		l.Packable++
	}
	l.Bytes += int64(len(w.chunk) - before)
	l.Last, l.LastAt = c.Sequence, c.Time
	if len(w.chunk) >= chunkBytes {
		w.flushChunk()
	}
	if w.batch.Size() >= batchBytes {
		return w.batch.Commit(ctx, false)
	}
	return nil
}

func (w *generationWriter) flushChunk() {
	if w.inChunk == 0 {
		return
	}
	l := &w.lists[len(w.lists)-1]
	value := binary.AppendUvarint(nil, uint64(w.inChunk))
	w.batch.Set(keyOf('c', l.Number, w.firstOf), append(value, w.chunk...))
	w.chunk, w.inChunk = w.chunk[:0], 0
}
