package feed

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/rsbridge/rsbridge/destination/fetch"
	"github.com/rsbridge/rsbridge/destination/item"
	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/internal/clip"
	"github.com/rsbridge/rsbridge/internal/extsort"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// Inventory is the source's present state, sorted by location on disk: the Resource List overlaid
// with the changes after it.
type Inventory struct {
	sorter   *extsort.Sorter
	list     listState
	Sequence *uint64
	At       time.Time
	clocks   clocks
	Listed   int64 // entries of the list itself
	order    uint64
	reach    reach
	Overlaid bool
	Unread   Unread
	Outdated bool                 // it is older than the taken one, and waits
	Copied   bool                 // by its own words it comes from a cache
	Hole     bool                 // the changes do not reach back to the list, or do not tell whether they do
	Missing  *GapError            // no changes were added, since lists of them are missing
	void     [][2]uint64          // additions from the one order to before the other do not count
	Sparing  bool                 // entries without a telling measure are the same: no more is to be found out
	Passed   map[ledger.Hash]bool // superseded changes after the list; nil: not needed

	Until    time.Time // the source's state of then is meant
	Backward bool      // and the list is of a later time

	Unusable map[string]string // unusable changes and why, by location; at most as many as are named
}

// reach is how far an inventory is read.
type reach struct {
	newest Newest    // of the list or dump: the last changed resource, as far as it tells times of before its own
	last   *Newest   // the last change after the list: up to there the mirror is when it is compared
	begins time.Time // the beginning of the read changes
}

// clocks are the times of a list or dump of a time to come.
type clocks struct {
	had  time.Time // when it was had, if At is later; else zero
	told time.Time // its own time, if it is too late to be At; else zero
}

// NewInventory is an empty one, to be filled by hand; it sorts in a folder for temporary files.
func NewInventory(dir string, memory int64) (*Inventory, error) {
	sorter, err := extsort.New(dir, memory)
	if err != nil {
		return nil, fmt.Errorf("temporary files: %w", err)
	}
	return &Inventory{sorter: sorter}, nil
}

func (v *Inventory) Close() error { return v.sorter.Close() }

// Len is how often something was added.
func (v *Inventory) Len() int64 { return v.sorter.Len() }

// Mark is the number of the next addition.
func (v *Inventory) Mark() uint64 { return v.order }

// Undo takes back the additions since a mark.
func (v *Inventory) Undo(mark uint64) {
	for n := len(v.void); n > 0 && v.void[n-1][1] >= mark; n-- {
		mark = min(mark, v.void[n-1][0])
		v.void = v.void[:n-1]
	}
	v.void = append(v.void, [2]uint64{mark, v.order})
}

func (v *Inventory) undone(order uint64) bool {
	return slices.ContainsFunc(v.void, func(of [2]uint64) bool { return of[0] <= order && order < of[1] })
}

// absurd is a time so far ahead of both clocks: no difference of zones explains it.
const absurd = 24 * time.Hour

// clocksDiffer is how far ahead of both clocks the time of a list may be and still tell an older
// one from it.
const clocksDiffer = 5 * time.Minute

// isOf takes the source's position from a list or dump. A list of a time to come says nothing of
// the changes until then.
func (v *Inventory) isOf(address string, h *resourcesync.Head, dl *Download, now time.Time) {
	v.At, v.list = h.SnapshotTime(), dl.listState(address, h)
	if s, ok := h.Meta.Sequence(); ok {
		v.Sequence = &s
	}
	had, latest := dl.Served(now)
	if v.At.After(had) {
		v.clocks.had = had
	}
	v.list.Ahead = timeOf(v.At, dl.Header.Get("Last-Modified")).After(latest.Add(clocksDiffer))
	if v.At.After(latest.Add(absurd)) {
		v.clocks.told, v.At = v.At, latest
	}
}

// Unread counts what leaves resources of a list or dump unknown: nothing is gone for want of an entry.
type Unread struct {
	blind int // entries without a recognizable resource
	lists int // entries that lead to a further list, or to another document of the framework
	feeds int // lists with news only
	never int // new entries that cannot be fetched: each may lead to a further list
	maybe int // new entries without RDF: each may lead to a further list

	Owed string // why a later run compares again
}

// See notes an entry of a list or manifest.
func (u *Unread) See(e *resourcesync.Entry, it *item.Item) {
	switch {
	case it.Blind:
		u.blind++
	case e.Meta.Capability != "":
		u.lists++
	}
}

// Fails notes an entry whose resource turned out to be a list, or may be one.
func (u *Unread) Fails(f *ledger.Fault, now time.Time) {
	switch {
	case f.Unread:
		u.maybe++
	case f.List:
		u.lists++
	case f.MayBeList(now):
		u.never++
	}
}

// Add adds the failing entries of b.
func (u *Unread) Add(b Unread) {
	u.lists, u.never, u.maybe = u.lists+b.lists, u.never+b.never, u.maybe+b.maybe
}

// Asks tells that a person may say whether what is missing is gone.
func (u *Unread) Asks() bool { return u.maybe > 0 && u.blind+u.lists+u.feeds+u.never == 0 }

// Hold is why n resources missing from it stay, "" if they may go. New entries hold them for a while only.
func (u *Unread) Hold(n int, missing string) string {
	why := u.Why()
	if why == "" || n == 0 || u.Asks() {
		return ""
	}
	if u.blind+u.lists+u.feeds == 0 {
		u.Owed = why
	}
	return fmt.Sprintf("%s, so none of the %d resources that are not %s is removed", why, n, missing)
}

// reads takes note of a list of its resources.
func (u *Unread) reads(r *resourcesync.Reader) {
	if r.Head().Feed {
		u.feeds++
	}
}

// Why is why an unlisted resource may be there all the same, "" if it may not.
func (u *Unread) Why() string {
	switch {
	case u.blind > 0:
		return counted(u.blind, "entry does", "entries do") + " not tell which resource is meant"
	case u.lists > 0:
		return counted(u.lists, "entry leads", "entries lead") + " to a further list instead of a resource"
	case u.feeds > 0:
		return fmt.Sprintf("%d of the lists are feeds, which tell what is new and not all that there is", u.feeds)
	case u.never > 0:
		return counted(u.never, "new entry", "new entries") + " could not be fetched yet, and may lead to a further list"
	case u.maybe > 0:
		return counted(u.maybe, "new entry brings", "new entries bring") + " no RDF, and may lead to a further list"
	}
	return ""
}

func counted(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}

// Cursor is the place to follow changes from.
func (v *Inventory) Cursor() Cursor { return Cursor{v.cursor()} }

func (v *Inventory) cursor() cursor {
	c := cursor{Time: v.At, Had: v.clocks.had, Told: v.clocks.told, Sequence: v.Sequence, Ahead: v.reach.last}
	if c.Sequence == nil && v.reach.newest.Loc != "" {
		c.Taken = &v.reach.newest
	}
	return c
}

// Look notes an entry of a list or dump.
func (v *Inventory) Look(it *item.Item) {
	if it.LastMod.After(v.reach.newest.Time) && !it.LastMod.After(v.At) {
		v.reach.newest = Newest{Loc: it.Loc, Time: it.LastMod}
	}
}

func (v *Inventory) Add(it *item.Item) error {
	if !v.Until.IsZero() {
		it.Time = time.Time{}
		return v.addUntil(it)
	}
	if it.Change == "" {
		v.Look(it)
	}
	loc := ledger.HashOf(it.Loc)
	k := binary.BigEndian.AppendUint64(append(make([]byte, 0, 24), loc[:]...), v.order)
	v.order++
	return v.sorter.Add(k, it.Encode())
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
			it, err := item.Decode(last)
			return yield(have, itemOr{it, err}) && err == nil
		}
		for rec, err := range v.sorter.Sort() {
			if err != nil {
				yield(ledger.Hash{}, itemOr{Err: err})
				return
			}
			if v.undone(binary.BigEndian.Uint64(rec.Key[16:])) {
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
	Item *item.Item
	Err  error
}

// ErrUnchanged says: the list is the one processed before.
var ErrUnchanged = errors.New("unchanged")

// When tells which list or dump is read; another one is ErrUnchanged.
type When int

const (
	Always          When = iota
	UnlessTaken          // unless it is, with all that it stands for, the one that was taken
	UnlessSameBytes      // unless it has the bytes of that, whatever they stand for
)

// known is the list or dump that is not read, nil for none.
func (src *Source) known(when When) *listState {
	l := src.keeper.Position().at.Inventory
	switch when {
	case Always:
		return nil
	case UnlessSameBytes:
		l.Vague, l.Fresh, l.Size = false, false, 0
	}
	return &l
}

// ReadInventory reads the Resource List, all of it, and the changes after it. After an error
// nothing may be concluded from missing entries.
func (src *Source) ReadInventory(ctx context.Context, o *Offer, when When) (*Inventory, error) {
	return src.ReadInventoryOf(ctx, o, when, func(*item.Item) error { return nil })
}

// ReadInventoryOf shows each resource of the list to look; an error of look ends it.
func (src *Source) ReadInventoryOf(ctx context.Context, o *Offer, when When, look func(*item.Item) error) (_ *Inventory, err error) {
	known := src.known(when)
	if until := src.keeper.Position().at.Until; !until.IsZero() {
		return src.ReadInventoryUntil(ctx, o, until)
	}
	v, err := NewInventory(src.Docs.opt.TempDir, src.Docs.opt.MemoryBytes/2)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			v.Close()
		}
	}()
	if o.ResourceList == "" {
		return v, src.dumpInventory(ctx, o, v, known)
	}
	dl, r, err := src.unlessKnown(ctx, o.ResourceList, resourcesync.ResourceList, known)
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
	v.isOf(o.ResourceList, h, dl, src.Docs.opt.Now())
	v.Outdated = src.olderThanTaken(o, v, dl, h)
	if !h.Index && (v.list.past || !v.list.Fresh && item.Lasts(v.list.At) < time.Minute) {
		v.list.Size = dl.length()
	}
	var parts []part
	n, read := int64(0), int64(0) // entries, parts
	served := fetch.ServedAt(dl.Header, src.Docs.opt.Now())
	each := func(r *resourcesync.Reader, address string) error {
		v.Unread.reads(r)
		return eachEntry(r, address, func(e *resourcesync.Entry) error {
			it := item.New(e, nil, address)
			it.Change = ""
			v.Unread.See(e, it)
			v.list.Vague = v.list.Vague || it.Vague(served)
			if n++; n%10_000 == 0 && len(parts) == 0 {
				src.Docs.opt.Progress("list", n, 0)
			}
			if err := look(it); err != nil {
				return err
			}
			return v.Add(it)
		})
	}
	if h.Index {
		if parts, err = src.Docs.parts(ctx, dl, r, resourcesync.ResourceList); err != nil {
			return nil, err
		}
		err = src.Docs.eachPartNoted(ctx, parts, resourcesync.ResourceList, &v.list.Parts, func(_ part, pdl *Download, pr *resourcesync.Reader) error {
			total := int64(len(parts))
			if read++; read > total { // it has indexes below
				total = 0
			}
			src.Docs.opt.Progress("parts", read-1, total)
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

// unlessKnown opens a list or dump. The known one, with everything below it, is ErrUnchanged.
func (src *Source) unlessKnown(ctx context.Context, address string, kind resourcesync.Capability, known *listState) (*Download, *resourcesync.Reader, error) {
	req := fetch.Request{URL: address}
	if known == nil || known.URL != address || !known.stands() {
		known = nil
	} else {
		req.ETag, req.Modified = known.ETag, known.Modified
		req.Unchanged = src.sameRoot(known)
	}
	dl, r, err := src.Docs.document(ctx, req, kind)
	if m := src.keeper.Position(); err == nil && r != nil && m.isOlder(address, dl, r.Head()) && !src.PastCaches(clip.Middle(address)+" is older than the list that was taken") {
		if err := dl.Close(); err != nil {
			return nil, nil, err
		}
		dl, r, err = src.Docs.document(ctx, fetch.Request{URL: address}, kind)
	}
	if nerr := src.noteThere(ctx, address, err); nerr != nil {
		return nil, nil, errors.Join(nerr, dl.Close())
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", KindName(kind), err)
	}
	if !dl.NotModified && (known == nil || known.Digest != dl.Digest.String()) {
		return dl, r, nil
	}
	if known == nil || src.Docs.partsUnchanged(ctx, known, dl.past(known.At)) {
		err := ErrUnchanged
		if known != nil && dl.past(known.At) {
			err = cmp.Or(src.tellsAlone(ctx, known, dl), err)
		}
		return nil, nil, cmp.Or(dl.Close(), err)
	}
	if !dl.NotModified {
		return dl, r, nil
	}
	if err := dl.Close(); err != nil {
		return nil, nil, err
	}
	if dl, r, err = src.Docs.document(ctx, fetch.Request{URL: address}, kind); err != nil {
		err = fmt.Errorf("%s: %w", KindName(kind), err)
	}
	return dl, r, err
}

// tellsAlone keeps of a known list of the past: from now on its root alone recognizes it.
func (src *Source) tellsAlone(ctx context.Context, known *listState, dl *Download) error {
	var change func(*listState)
	switch {
	case known.Rests:
		return nil
	case len(known.Parts) > 0:
		change = func(l *listState) { l.Parts, l.Fresh = nil, false }
	case !known.Index && known.Size == 0 && !dl.NotModified:
		change = func(l *listState) { l.Size = dl.length() }
	default:
		return nil
	}
	return src.keeper.Keep(ctx, func(p *Position) { change(&p.at.Inventory) })
}

// partsUnchanged tells whether the documents below an index are as they were read, if the index
// does not tell, as it does once it is past. An index no more past is of a source set back.
// Reading tells of unavailable documents.
func (src *Documents) partsUnchanged(ctx context.Context, known *listState, past bool) bool {
	if known.Index && len(known.Parts) == 0 {
		return past
	}
	for _, p := range known.Parts {
		dl, err := src.list(ctx, fetch.Request{URL: p.URL, ETag: p.ETag, Modified: p.Modified, Accept: acceptDocument, Gzip: true, MaxBytes: src.lim.Document}, nil)
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

// sameRoot recognizes a processed list from its first bytes: its root has the time of the same
// snapshot, and its length is the same, if the server tells one.
func (src *Source) sameRoot(known *listState) func([]byte, int64) bool {
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
	from := v.cursor()
	from.unproven = &v.Hole
	begin := v.Mark()
	var last map[string]ledger.Hash
	pass := func(strict bool, add func(Change) error) error {
		return Again(func() error {
			v.Undo(begin)
			v.reach.last, last = nil, map[string]ledger.Hash{}
			if src.Docs.opt.EachChange {
				v.Passed = map[ledger.Hash]bool{}
			}
			return missingOf(o, src.EachChange(ctx, o, &Cursor{from}, strict, add))
		})
	}
	add := func(c Change) error {
		if c.Item == nil {
			return nil
		}
		v.reach.last = newestOf(c.Item)
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
			return nil // the list's word stands; the change fails when it is applied
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
		v.Undo(begin)
	}
	first := src.keeper.Stage() != ledger.Following
	if err != nil && first && ctx.Err() == nil && !IsOwnFailure(err) && !errors.Is(err, fetch.ErrSourceGone) {
		src.Docs.log.Warn("the changes since the Resource List cannot be read; the list is taken alone", "error", err)
		v.Hole, v.Overlaid, err = true, false, nil // the poll behind the baseline tells it, and begins with them
		v.Undo(begin)
	}
	if err != nil {
		return fmt.Errorf("changes since the Resource List: %w", err)
	}
	return nil
}

// ErrStale is the error of a list or dump without the lost changes: it would set the mirror back.
var ErrStale = errors.New("the Resource List or Dump is older than what is mirrored, and the changes do not reach back to it")

// ListTime is the time of the list or dump itself, as it tells.
func (v *Inventory) ListTime() time.Time { return v.list.At }

// IsOfTaken tells whether it has the bytes of the last list or dump taken.
func (v *Inventory) IsOfTaken(p *Position) bool {
	return v.list.URL == p.at.Inventory.URL && v.list.Digest == p.at.Inventory.Digest
}

// Stale tells whether the list is not newer than the cursor, and the changes since are not all
// there: it says no more than the mirror has, and maybe less.
func (v *Inventory) Stale(at *Cursor) bool {
	c := &at.at
	if v.Outdated {
		return true
	}
	if v.Sequence != nil && c.Sequence != nil {
		return v.Hole && *v.Sequence < *c.Sequence
	}
	return v.Hole && !v.At.IsZero() && !v.At.After(c.Time)
}

// Taken tells whether the list is the last one taken, as a whole, without any remains of missing
// entries.
func (v *Inventory) Taken(p *Position) bool {
	was := &p.at.Inventory
	return was.URL != "" && was.URL == v.list.URL && was.Digest == v.list.Digest && was.At.Equal(v.list.At) && was.stands() && was.sameParts(&v.list) && v.Unread.blind+v.Unread.lists+v.Unread.maybe == 0
}
