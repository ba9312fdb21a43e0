package feed

import (
	"context"
	"encoding/binary"
	"fmt"
	"iter"
	"time"

	"github.com/rsbridge/rsbridge/destination/fetch"
	"github.com/rsbridge/rsbridge/destination/item"
	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/internal/clip"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// ReadInventoryUntil reads the source's state of a time.
func (src *Source) ReadInventoryUntil(ctx context.Context, o *Offer, until time.Time) (_ *Inventory, err error) {
	fail := func(format string, a ...any) error {
		return fmt.Errorf("a mirror of %s cannot be made: "+format, append([]any{Stamp(until)}, a...)...)
	}
	if o.ChangeList == "" {
		return nil, fail("the source has no Change Lists, so nothing tells what it was then")
	}
	v, err := NewInventory(src.Docs.opt.TempDir, src.Docs.opt.MemoryBytes/2)
	if err != nil {
		return nil, err
	}
	v.Until, v.Overlaid = until, true
	defer func() {
		if err != nil {
			v.Close()
		}
	}()
	documents, err := src.changeDocuments(ctx, o)
	if err != nil {
		return nil, err
	}
	if err := src.listUntil(ctx, o, v); err != nil {
		return nil, err
	}
	var told []interval
	counted := sequences{}
	err = src.Docs.eachPart(ctx, documents, resourcesync.ChangeList, func(_ part, pdl *Download, pr *resourcesync.Reader) error {
		h := pr.Head()
		i := interval{h.Meta.From, h.Meta.Until}
		err := eachEntry(pr, pdl.URL, func(e *resourcesync.Entry) error {
			it, err := changeItem(e, pr, pdl)
			switch {
			case err != nil:
				return err
			case it.Time.IsZero():
				return fail("line %d of %s does not tell when the change was", e.Line, clip.Middle(pdl.URL))
			case it.Blind:
				return fail("%s", it.Bad)
			}
			if i.from.IsZero() {
				i.from = it.Time
			}
			counted.see(it, until)
			if !v.Backward && it.Time.Before(v.At) {
				return nil
			}
			return v.addUntil(it)
		})
		if i.from.IsZero() { // an empty one without a beginning
			return err
		}
		if told = append(told, i); v.reach.begins.IsZero() || i.from.Before(v.reach.begins) {
			v.reach.begins = i.from
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("Change Lists: %w", err)
	}
	lo, hi := v.At, until
	if v.Backward {
		lo, hi = until.Truncate(time.Second), v.At // TimeGates know whole seconds
	}
	if v.Alone() {
		lo = until
	}
	switch at := covered(told, lo, hi); {
	case !at.IsZero():
		return nil, fail("between %s and %s the source's Change Lists and archives leave out the time from %s on", Stamp(lo), Stamp(hi), Stamp(at))
	case v.Alone() && (v.reach.begins.IsZero() || v.reach.begins.After(until)):
		return nil, fail("the source has no Resource List, and its Change Lists and archives begin later")
	}
	v.Sequence = counted.at(v.Sequence, v.Backward)
	v.At = until
	return v, nil
}

// sequences finds the position in the source's log of a point in time.
type sequences struct {
	before, after uint64
	some, unknown bool
}

func (s *sequences) see(it *item.Item, until time.Time) {
	s.some = true
	switch {
	case it.Sequence == 0:
		s.unknown = true
	case !it.Time.After(until):
		s.before = max(s.before, it.Sequence)
	case s.after == 0 || it.Sequence < s.after:
		s.after = it.Sequence
	}
}

func (s *sequences) at(list *uint64, backward bool) *uint64 {
	var n uint64
	switch {
	case s.unknown:
		return nil
	case s.before > 0:
		n = s.before
	case s.after > 0 && backward:
		n = s.after - 1
	default:
		return list
	}
	if list != nil && !backward {
		n = max(n, *list)
	}
	return &n
}

// changeDocuments are the Change Lists of now and of the archive.
func (src *Source) changeDocuments(ctx context.Context, o *Offer) ([]part, error) {
	dl, r, err := src.Docs.document(ctx, fetch.Request{URL: o.ChangeList}, resourcesync.ChangeList)
	if err != nil {
		return nil, fmt.Errorf("Change List: %w", err)
	}
	defer dl.Close()
	current, err := src.Docs.parts(ctx, dl, r, resourcesync.ChangeList)
	if err != nil {
		return nil, err
	}
	sortParts(current) // of changes of one time the last counts
	old, err := src.Docs.archived(ctx, archiveOf(o.ChangeArchive, r.Head()), resourcesync.ChangeListArchive)
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	var all []part
	for _, p := range append(old, current...) {
		if !seen[p.URL] {
			seen[p.URL] = true
			all = append(all, p)
		}
	}
	return all, nil
}

// listUntil adds the Resource List to begin with: the last one of before, else the present one,
// else the Resource Dump. Without any there are the changes alone.
func (src *Source) listUntil(ctx context.Context, o *Offer, v *Inventory) error {
	address := o.ResourceList
	var dl *Download
	var r *resourcesync.Reader
	var err error
	archive := o.ListArchive
	if address != "" {
		if dl, r, err = src.Docs.document(ctx, fetch.Request{URL: address}, resourcesync.ResourceList); err != nil {
			return fmt.Errorf("Resource List: %w", err)
		}
		defer func() { dl.Close() }()
		archive = archiveOf(archive, r.Head())
	}
	if r == nil || r.Head().SnapshotTime().After(v.Until) {
		lists, err := src.Docs.archived(ctx, archive, resourcesync.ResourceListArchive)
		if err != nil {
			return err
		}
		best := part{}
		for _, p := range lists {
			if !p.at.IsZero() && !p.at.After(v.Until) && p.at.After(best.at) {
				best = p
			}
		}
		if best.URL != "" {
			adl, ar, err := src.Docs.document(ctx, fetch.Request{URL: best.URL}, resourcesync.ResourceList)
			if err != nil {
				return fmt.Errorf("archived Resource List: %w", err)
			}
			if dl != nil {
				dl.Close()
			}
			dl, r, address = adl, ar, best.URL
			defer func() { adl.Close() }()
		}
	}
	if r == nil {
		return src.dumpUntil(ctx, o, v)
	}
	h := r.Head()
	if err := v.isOfUntil(h, address); err != nil {
		return err
	}
	each := func(r *resourcesync.Reader, address string) error {
		v.Unread.reads(r)
		return eachEntry(r, address, func(e *resourcesync.Entry) error {
			it := item.New(e, nil, address)
			it.Change = ""
			v.Unread.See(e, it)
			v.Listed++
			return v.Add(it)
		})
	}
	if !h.Index {
		return each(r, dl.URL)
	}
	parts, err := src.Docs.parts(ctx, dl, r, resourcesync.ResourceList)
	if err != nil {
		return err
	}
	return src.Docs.eachPart(ctx, parts, resourcesync.ResourceList, func(_ part, pdl *Download, pr *resourcesync.Reader) error {
		return each(pr, pdl.URL)
	})
}

// dumpUntil adds the entries of the Resource Dump's manifests, if there is one and no list.
func (src *Source) dumpUntil(ctx context.Context, o *Offer, v *Inventory) error {
	if o.ResourceDump == "" {
		return nil
	}
	dl, r, err := src.Docs.document(ctx, fetch.Request{URL: o.ResourceDump}, resourcesync.ResourceDump)
	if err != nil {
		return fmt.Errorf("Resource Dump: %w", err)
	}
	defer dl.Close()
	if err := v.isOfUntil(r.Head(), o.ResourceDump); err != nil {
		return err
	}
	packages, err := src.Docs.dumpPackages(ctx, dl, r, &v.list)
	if err != nil {
		return fmt.Errorf("Resource Dump: %w", err)
	}
	for _, p := range packages {
		if err := src.manifestInventory(ctx, p, v); err != nil {
			return fmt.Errorf("package %s: %w", clip.Middle(p.URL), err)
		}
	}
	return nil
}

// isOfUntil takes the source's position from a list or dump; it must be told.
func (v *Inventory) isOfUntil(h *resourcesync.Head, address string) error {
	if v.At = h.SnapshotTime(); v.At.IsZero() {
		return fmt.Errorf("a mirror of %s cannot be made: %s does not tell of when it is", Stamp(v.Until), clip.Middle(address))
	}
	v.Backward = v.At.After(v.Until)
	v.list = listState{URL: address, At: v.At}
	if s, ok := h.Meta.Sequence(); ok {
		v.Sequence = &s
	}
	return nil
}

// Alone tells of neither a list nor a dump to begin with.
func (v *Inventory) Alone() bool { return v.list.URL == "" }

// Untold tells whether the changes alone do not reach back to the record: it still stands then.
func (v *Inventory) Untold(rec *ledger.Record) bool {
	return !v.Until.IsZero() && v.Alone() && rec.Since().Before(v.reach.begins)
}

// addUntil sorts by location, then time; entries of a list have none.
func (v *Inventory) addUntil(it *item.Item) error {
	loc := ledger.HashOf(it.Loc)
	k := append(make([]byte, 0, 32), loc[:]...)
	at := uint64(0)
	if !it.Time.IsZero() {
		at = uint64(it.Time.UnixMicro()) ^ 1<<63
	}
	k = binary.BigEndian.AppendUint64(k, at)
	k = binary.BigEndian.AppendUint64(k, v.order)
	v.order++
	it.AsOf = v.Until // so the TimeGate is kept
	return v.sorter.Add(k, it.Encode())
}

// itemsUntil is items of a point in time.
func (v *Inventory) itemsUntil() iter.Seq2[ledger.Hash, itemOr] {
	return func(yield func(ledger.Hash, itemOr) bool) {
		var have ledger.Hash
		var listed, before, after, next *item.Item // next is the first after it and no deletion
		some, later := false, false                // the list may tell of a later state, as one long in the making does
		emit := func() bool {
			it := listed
			later = later || listed != nil && listed.LastMod.After(v.Until)
			switch {
			case before != nil && (next == nil || !isAlso(before, next)):
				it = before
			case after == nil, before == nil && listed != nil && !v.Backward && !later:
			case before == nil && after.Change == "created":
				it = after
				it.Change = "deleted" // it was not there yet
			default:
				it = &item.Item{Loc: after.Loc, Entity: after.Entity, LastMod: v.Until, Promise: fetch.Promise{Length: -1}, TimeGate: after.TimeGate, AsOf: v.Until}
				if it.TimeGate == "" && listed != nil {
					it.TimeGate = listed.TimeGate
				}
				return yield(have, itemOr{Item: it})
			}
			if it == nil {
				return true
			}
			if after == nil || it.Change == "deleted" || !it.Promise.Unproven() { // else its address has another version, unseen
				it.AsOf = time.Time{}
			}
			return yield(have, itemOr{Item: it})
		}
		for rec, err := range v.sorter.Sort() {
			if err != nil {
				yield(ledger.Hash{}, itemOr{Err: err})
				return
			}
			if some && string(rec.Key[:16]) != string(have[:]) {
				if !emit() {
					return
				}
				listed, before, after, next, later = nil, nil, nil, nil, false
			}
			some = true
			copy(have[:], rec.Key)
			it, err := item.Decode(rec.Value)
			switch {
			case err != nil:
				yield(ledger.Hash{}, itemOr{Err: err})
				return
			case binary.BigEndian.Uint64(rec.Key[16:]) == 0:
				listed = it
			case !it.Time.After(v.Until):
				before = it
			default:
				if listed != nil && listed.LastMod.IsZero() && it.Change != "deleted" {
					_, known := listed.Promise.Hashes.Compare(it.Promise.Hashes)
					later = later || isAlso(listed, it) || !known && (listed.Version == nil || it.Version == nil)
				}
				if after == nil {
					after = it
				}
				if next == nil && it.Change != "deleted" {
					next = it
				}
			}
		}
		if some {
			emit()
		}
	}
}

// isAlso tells whether a later change promises the same version: changes may be told with the
// present hash, or version, of their resource.
func isAlso(it, later *item.Item) bool {
	if it.Version != nil && later.Version != nil {
		return it.Version.URL == later.Version.URL
	}
	same, known := it.Promise.Hashes.Compare(later.Promise.Hashes)
	return known && same
}
