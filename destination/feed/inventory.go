package feed

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/rsbridge/rsbridge/destination/fetch"
	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/internal/clip"
	"github.com/rsbridge/rsbridge/internal/extsort"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// Inventory is what the source says now, sorted by location on disk: the
// Resource List overlaid with the changes after it.
type Inventory struct {
	Sorter   *extsort.Sorter
	State    ListState
	Sequence *uint64
	At       time.Time
	had      time.Time // when it was had, where at is later than that; else zero
	told     time.Time // what it says to be of, where that is so late that at is another time; else zero
	Listed   int64     // entries of the list itself
	Order    uint64
	newest   Newest // of the list or dump: what was changed last, as far as it tells times of before its own
	Overlaid bool
	blind    int64                // entries that do not tell which resource they mean
	feeds    int                  // of its lists, which tell what is new and not all that there is
	Outdated bool                 // it is older than the one that was taken, and waits
	Copied   bool                 // it says that it comes from a cache
	Hole     bool                 // the changes do not reach back to the list, or do not tell whether they do
	Missing  *GapError            // no changes were added, since lists of them are missing
	Void     [2]uint64            // what was added from the one order to before the other does not count
	Sparing  bool                 // what its entries do not tell apart is the same: no more is to be found out
	Passed   map[ledger.Hash]bool // changes after the list that others followed; nil: not needed
	last     *Newest              // the last change after the list: up to there the mirror is when it is compared

	Until    time.Time // what the source was then is meant
	Backward bool      // and the list is of a later time
	begins   time.Time // where the changes do that were read

	Unusable map[string]string // changes that cannot be used and why, by location; not of more than are named
}

func (v *Inventory) Close() error { return v.Sorter.Close() }

// absurd is how far ahead of both clocks a time is that no difference of zones explains.
const absurd = 24 * time.Hour

// clocksDiffer is how far ahead of both clocks the time of a list may be and still tell an older
// one from it.
const clocksDiffer = 5 * time.Minute

// IsOf takes from a list or dump where the source was. One that is of a time to come says
// nothing of the changes until then.
func (v *Inventory) IsOf(address string, h *resourcesync.Head, dl *Download, now time.Time) {
	v.At, v.State = h.SnapshotTime(), dl.listState(address, h)
	if s, ok := sequenceOf(&h.Meta); ok {
		v.Sequence = &s
	}
	had, latest := dl.Served(now)
	if v.At.After(had) {
		v.had = had
	}
	v.State.Ahead = timeOf(v.At, dl.Header.Get("Last-Modified")).After(latest.Add(clocksDiffer))
	if v.At.After(latest.Add(absurd)) {
		v.told, v.At = v.At, latest
	}
}

// reads takes note of a list of its resources.
func (v *Inventory) reads(r *resourcesync.Reader) {
	if r.Head().Feed {
		v.feeds++
	}
}

// Partial is why a resource that is not listed may be there all the same, "" if it may not.
func (v *Inventory) Partial() string {
	switch {
	case v.blind > 0:
		return fmt.Sprintf("%d entries of the list do not tell which resource they mean", v.blind)
	case v.feeds > 0:
		return fmt.Sprintf("%d of the lists are feeds, which tell what is new and not all that there is", v.feeds)
	}
	return ""
}

// Cursor is where the changes are followed from.
func (v *Inventory) Cursor() Cursor {
	c := Cursor{Time: v.At, Had: v.had, Told: v.told, Sequence: v.Sequence, Ahead: v.last}
	if c.Sequence == nil && v.newest.Loc != "" {
		c.Taken = &v.newest
	}
	return c
}

// Look notes what a list or dump has.
func (v *Inventory) Look(it *Item) {
	if it.LastMod.After(v.newest.Time) && !it.LastMod.After(v.At) {
		v.newest = Newest{Loc: it.Loc, Time: it.LastMod}
	}
}

func (v *Inventory) Add(it *Item) error {
	if !v.Until.IsZero() {
		it.Time = time.Time{}
		return v.addUntil(it)
	}
	if it.Change == "" {
		v.Look(it)
	}
	loc := ledger.HashOf(it.Loc)
	k := binary.BigEndian.AppendUint64(append(make([]byte, 0, 24), loc[:]...), v.Order)
	v.Order++
	return v.Sorter.Add(k, it.Encode())
}

// Items yields the last word on every location, in the order of location hashes.
func (v *Inventory) Items() iter.Seq2[ledger.Hash, itemOr] {
	if !v.Until.IsZero() {
		return v.itemsUntil()
	}
	return func(yield func(ledger.Hash, itemOr) bool) {
		var have ledger.Hash
		var last []byte
		emit := func() bool {
			it, err := DecodeItem(last)
			return yield(have, itemOr{it, err}) && err == nil
		}
		for rec, err := range v.Sorter.Sort() {
			if err != nil {
				yield(ledger.Hash{}, itemOr{Err: err})
				return
			}
			if n := binary.BigEndian.Uint64(rec.Key[16:]); n >= v.Void[0] && n < v.Void[1] {
				continue
			}
			if last != nil && string(rec.Key[:16]) != string(have[:]) && !emit() {
				return
			}
			copy(have[:], rec.Key)
			last = append(last[:0], rec.Value...)
		}
		if last != nil {
			emit()
		}
	}
}

type itemOr struct {
	*Item
	Err error
}

// unchangedList says that a list is the one that was processed before.
var ErrUnchanged = errors.New("unchanged")

// ReadInventory reads the Resource List, all of it, and the changes after it.
// With known an unchanged list is errUnchangedList. An error means that nothing
// may be concluded from what is not in it.
func (src *Source) ReadInventory(ctx context.Context, o *Offer, known *ListState) (*Inventory, error) {
	return src.ReadInventoryOf(ctx, o, known, func(*Item) error { return nil })
}

// ReadInventoryOf shows each resource of the list to look, whose error ends it.
func (src *Source) ReadInventoryOf(ctx context.Context, o *Offer, known *ListState, look func(*Item) error) (_ *Inventory, err error) {
	if until := src.keeper.Position().Until; !until.IsZero() {
		return src.ReadInventoryUntil(ctx, o, until)
	}
	sorter, err := extsort.New(src.Docs.opt.TempDir, src.Docs.opt.MemoryBytes/2)
	if err != nil {
		return nil, fmt.Errorf("temporary files: %w", err)
	}
	v := &Inventory{Sorter: sorter}
	defer func() {
		if err != nil {
			v.Close()
		}
	}()
	if o.ResourceList == "" {
		return v, src.dumpInventory(ctx, o, v, known)
	}
	dl, r, err := src.UnlessKnown(ctx, o.ResourceList, resourcesync.ResourceList, known)
	if IsGone(err) && o.ResourceDump != "" {
		src.Docs.log.Warn("the Resource List is named and not there; the Resource Dump is read in its place", "list", o.ResourceList)
		o.ResourceList = "" // in this run
		return v, src.dumpInventory(ctx, o, v, known)
	}
	if err != nil {
		return nil, err
	}
	defer dl.Close()
	h := r.Head()
	v.IsOf(o.ResourceList, h, dl, src.Docs.opt.Now())
	v.Outdated = src.OlderThanTaken(o, v, dl, h)
	if !h.Index && (v.State.past || !v.State.Fresh && Lasts(v.State.At) < time.Minute) {
		v.State.Size = dl.length()
	}
	n := int64(0)
	served := fetch.ServedAt(dl.Header, src.Docs.opt.Now())
	each := func(r *resourcesync.Reader, address string) error {
		v.reads(r)
		return EachEntry(r, address, func(e *resourcesync.Entry) error {
			it := NewItem(e, nil, address)
			it.Change = ""
			if it.Blind {
				v.blind++
			}
			v.State.Vague = v.State.Vague || it.vague(served)
			if n++; n%10_000 == 0 {
				src.Docs.opt.Progress("list", n, 0)
			}
			if err := look(it); err != nil {
				return err
			}
			return v.Add(it)
		})
	}
	if h.Index {
		parts, perr := src.Docs.Parts(ctx, dl, r, resourcesync.ResourceList)
		if perr != nil {
			return nil, perr
		}
		err = src.Docs.eachPartNoted(ctx, parts, resourcesync.ResourceList, &v.State.Parts, func(p Part, pdl *Download, pr *resourcesync.Reader) error {
			return each(pr, pdl.URL)
		})
	} else {
		err = each(r, dl.URL)
	}
	if err != nil {
		return nil, fmt.Errorf("Resource List: %w", err)
	}
	v.Listed = n
	if src.Docs.plan != nil {
		src.Docs.plan.Document(o.ResourceList, resourcesync.ResourceList, v.At, n)
	}
	return v, src.overlay(ctx, o, v)
}

// UnlessKnown opens a list or dump. The one that is known, with all that is below it, is
// errUnchangedList.
func (src *Source) UnlessKnown(ctx context.Context, address string, kind resourcesync.Capability, known *ListState) (*Download, *resourcesync.Reader, error) {
	req := fetch.Request{URL: address}
	if known == nil || known.URL != address || !known.stands() {
		known = nil
	} else {
		req.ETag, req.Modified = known.ETag, known.Modified
		req.Unchanged = src.sameRoot(known)
	}
	dl, r, err := src.Docs.Document(ctx, req, kind)
	if m := src.keeper.Position(); err == nil && r != nil && m.isOlder(address, dl, r.Head()) && !src.PastCaches(clip.Middle(address)+" is older than the list that was taken") {
		if err := dl.Close(); err != nil {
			return nil, nil, err
		}
		dl, r, err = src.Docs.Document(ctx, fetch.Request{URL: address}, kind)
	}
	if nerr := src.noteThere(address, err); nerr != nil {
		return nil, nil, errors.Join(nerr, dl.Close())
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", KindName(kind), err)
	}
	if !dl.NotModified && (known == nil || known.Digest != dl.Digest.String()) {
		return dl, r, nil
	}
	if known == nil || src.partsUnchanged(ctx, known, dl.past(known.At)) {
		err := ErrUnchanged
		if known != nil && dl.past(known.At) {
			err = cmp.Or(src.tellsAlone(known, dl), err)
		}
		return nil, nil, cmp.Or(dl.Close(), err)
	}
	if !dl.NotModified {
		return dl, r, nil
	}
	if err := dl.Close(); err != nil {
		return nil, nil, err
	}
	if dl, r, err = src.Docs.Document(ctx, fetch.Request{URL: address}, kind); err != nil {
		err = fmt.Errorf("%s: %w", KindName(kind), err)
	}
	return dl, r, err
}

// tellsAlone keeps of what is known, and past, that its root tells it from now on.
func (src *Source) tellsAlone(known *ListState, dl *Download) error {
	var change func(*ListState)
	switch {
	case len(known.Parts) > 0:
		change = func(l *ListState) { l.Parts, l.Fresh = nil, false }
	case !known.Index && known.Size == 0 && !dl.NotModified:
		change = func(l *ListState) { l.Size = dl.length() }
	default:
		return nil
	}
	return src.keeper.Keep(func(m *Position) { change(&m.Inventory) })
}

// partsUnchanged tells whether the documents below an index are as they were read, where the
// index does not tell, as it does when it is past. If it has been before and is not any more,
// its source was set back. What cannot be had is told when they are read.
func (src *Source) partsUnchanged(ctx context.Context, known *ListState, past bool) bool {
	if known.Index && len(known.Parts) == 0 {
		return past
	}
	for _, p := range known.Parts {
		dl, err := src.Docs.list(ctx, fetch.Request{URL: p.URL, ETag: p.ETag, Modified: p.Modified, Accept: acceptDocument, Gzip: true, MaxBytes: src.Docs.lim.Document}, nil)
		if err != nil {
			return false
		}
		same := dl.NotModified || dl.Digest.String() == p.Digest
		if err := dl.Close(); err != nil || !same {
			return false
		}
	}
	return true
}

// sameRoot tells a list that was processed from its first bytes: its root has the
// time of the same snapshot, and it is as long as it was, where the server tells.
func (src *Source) sameRoot(known *ListState) func([]byte, int64) bool {
	if known.Size == 0 {
		return nil
	}
	return func(first []byte, length int64) bool {
		if length >= 0 && length != known.Size {
			return false
		}
		body, err := fetch.Unzipped(bytes.NewReader(first), src.Docs.lim.Document, known.URL)
		if err != nil {
			return false
		}
		h, err := resourcesync.ReadHead(body, src.Docs.readerOptions(known.URL))
		return err == nil && !h.Index && h.Link(resourcesync.RelNext) == "" && (h.Meta.Capability == resourcesync.ResourceList || h.Meta.Capability == "") && h.SnapshotTime().Equal(known.At)
	}
}

// overlay adds the changes after the list was taken.
func (src *Source) overlay(ctx context.Context, o *Offer, v *Inventory) error {
	if !o.Followed() {
		return nil
	}
	v.Overlaid = true
	from := v.Cursor()
	from.Unproven = &v.Hole
	begin := v.Order
	var last map[string]ledger.Hash
	pass := func(strict bool, add func(Change) error) error {
		return Again(func() error {
			v.Void, v.last, last = [2]uint64{begin, v.Order}, nil, map[string]ledger.Hash{}
			if src.Docs.opt.EachChange {
				v.Passed = map[ledger.Hash]bool{}
			}
			return MissingOf(o, src.EachChange(ctx, o, &from, strict, add))
		})
	}
	add := func(c Change) error {
		if c.Item == nil {
			return nil
		}
		v.last = newestOf(c.Item)
		if v.Passed != nil {
			id := ledger.HashOf(c.Item.Identity())
			if before, ok := last[c.Item.Loc]; ok {
				v.Passed[before] = true
			}
			delete(v.Passed, id)
			last[c.Item.Loc] = id
		}
		if c.Item.Bad != "" {
			if v.Unusable == nil {
				v.Unusable = map[string]string{}
			}
			if len(v.Unusable) < src.Docs.lim.Named {
				v.Unusable[c.Item.Loc] = c.Item.Bad
			}
			return nil // what the list says stands; the change fails when it is applied
		}
		delete(v.Unusable, c.Item.Loc)
		if src.Docs.plan != nil {
			src.Docs.plan.Change(c.List, c.Kind())
		}
		return v.Add(c.Item)
	}
	var gap *GapError
	err := pass(true, add)
	if errors.As(err, &gap) && gap.Missing == nil && !gap.Behind {
		v.Hole, err = true, pass(false, add)
	}
	switch {
	case err == nil || !errors.As(err, &gap):
	case gap.Behind: // there are none after it
		err = nil
	case gap.Missing != nil:
		v.Hole, v.Missing, v.Overlaid, err = true, gap, false, nil
		v.Void[1] = v.Order
	}
	first := src.keeper.Stage() != ledger.Following
	if err != nil && first && ctx.Err() == nil && !IsOwnFailure(err) && !errors.Is(err, fetch.ErrSourceGone) {
		src.Docs.log.Warn("the changes since the Resource List cannot be read; the list is taken alone", "error", err)
		v.Hole, v.Overlaid, err = true, false, nil // the poll behind the baseline tells it, and begins with them
		v.Void[1] = v.Order
	}
	if err != nil {
		return fmt.Errorf("changes since the Resource List: %w", err)
	}
	return nil
}

// Stale tells that the list is not newer than where we stand, and that what was changed
// since is not all there: it says no more than what is mirrored, and maybe less.
func (v *Inventory) Stale(c *Cursor) bool {
	if v.Outdated {
		return true
	}
	if v.Sequence != nil && c.Sequence != nil {
		return v.Hole && *v.Sequence < *c.Sequence
	}
	return v.Hole && !v.At.IsZero() && !v.At.After(c.Time)
}

// Taken tells that the list is the one that was taken last, whole, and nothing was left of
// what it did not have.
func (v *Inventory) Taken(p *Position) bool {
	was := &p.Inventory
	return was.URL != "" && was.URL == v.State.URL && was.Digest == v.State.Digest && was.At.Equal(v.State.At) && was.stands() && was.sameParts(&v.State) && v.blind == 0
}
