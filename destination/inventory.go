package destination

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

// inventory is what the source says now, sorted by location on disk: the
// Resource List overlaid with the changes after it.
type inventory struct {
	sorter   *extsort.Sorter
	state    listState
	sequence *uint64
	at       time.Time
	had      time.Time // when it was had, where at is later than that; else zero
	told     time.Time // what it says to be of, where that is so late that at is another time; else zero
	listed   int64     // entries of the list itself
	order    uint64
	newest   newest // of the list or dump: what was changed last, as far as it tells times of before its own
	overlaid bool
	blind    int64                // entries that do not tell which resource they mean
	feeds    int                  // of its lists, which tell what is new and not all that there is
	outdated bool                 // it is older than the one that was taken, and waits
	copied   bool                 // it says that it comes from a cache
	hole     bool                 // the changes do not reach back to the list, or do not tell whether they do
	missing  *gapError            // no changes were added, since lists of them are missing
	void     [2]uint64            // what was added from the one order to before the other does not count
	sparing  bool                 // what its entries do not tell apart is the same: no more is to be found out
	passed   map[ledger.Hash]bool // changes after the list that others followed; nil: not needed
	last     *newest              // the last change after the list: up to there the mirror is when it is compared

	until    time.Time // what the source was then is meant
	backward bool      // and the list is of a later time
	begins   time.Time // where the changes do that were read

	unusable map[string]string // changes that cannot be used and why, by location; not of more than are named
}

func (v *inventory) Close() error { return v.sorter.Close() }

// absurd is how far ahead of both clocks a time is that no difference of zones explains.
const absurd = 24 * time.Hour

// clocksDiffer is how far ahead of both clocks the time of a list may be and still tell an older
// one from it.
const clocksDiffer = 5 * time.Minute

// isOf takes from a list or dump where the source was. One that is of a time to come says
// nothing of the changes until then.
func (v *inventory) isOf(address string, h *resourcesync.Head, dl *download, now time.Time) {
	v.at, v.state = h.SnapshotTime(), dl.listState(address, h)
	if s, ok := sequenceOf(&h.Meta); ok {
		v.sequence = &s
	}
	had, latest := dl.Served(now)
	if v.at.After(had) {
		v.had = had
	}
	v.state.Ahead = timeOf(v.at, dl.Header.Get("Last-Modified")).After(latest.Add(clocksDiffer))
	if v.at.After(latest.Add(absurd)) {
		v.told, v.at = v.at, latest
	}
}

// reads takes note of a list of its resources.
func (v *inventory) reads(r *resourcesync.Reader) {
	if r.Head().Feed {
		v.feeds++
	}
}

// partial is why a resource that is not listed may be there all the same, "" if it may not.
func (v *inventory) partial() string {
	switch {
	case v.blind > 0:
		return fmt.Sprintf("%d entries of the list do not tell which resource they mean", v.blind)
	case v.feeds > 0:
		return fmt.Sprintf("%d of the lists are feeds, which tell what is new and not all that there is", v.feeds)
	}
	return ""
}

// cursor is where the changes are followed from.
func (v *inventory) cursor() cursor {
	c := cursor{Time: v.at, Had: v.had, Told: v.told, Sequence: v.sequence, Ahead: v.last}
	if c.Sequence == nil && v.newest.Loc != "" {
		c.Taken = &v.newest
	}
	return c
}

// look notes what a list or dump has.
func (v *inventory) look(it *item) {
	if it.LastMod.After(v.newest.Time) && !it.LastMod.After(v.at) {
		v.newest = newest{Loc: it.Loc, Time: it.LastMod}
	}
}

func (v *inventory) add(it *item) error {
	if !v.until.IsZero() {
		it.Time = time.Time{}
		return v.addUntil(it)
	}
	if it.Change == "" {
		v.look(it)
	}
	loc := ledger.HashOf(it.Loc)
	k := binary.BigEndian.AppendUint64(append(make([]byte, 0, 24), loc[:]...), v.order)
	v.order++
	return v.sorter.Add(k, it.encode())
}

// items yields the last word on every location, in the order of location hashes.
func (v *inventory) items() iter.Seq2[ledger.Hash, itemOr] {
	if !v.until.IsZero() {
		return v.itemsUntil()
	}
	return func(yield func(ledger.Hash, itemOr) bool) {
		var have ledger.Hash
		var last []byte
		emit := func() bool {
			it, err := decodeItem(last)
			return yield(have, itemOr{it, err}) && err == nil
		}
		for rec, err := range v.sorter.Sort() {
			if err != nil {
				yield(ledger.Hash{}, itemOr{err: err})
				return
			}
			if n := binary.BigEndian.Uint64(rec.Key[16:]); n >= v.void[0] && n < v.void[1] {
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
	*item
	err error
}

// unchangedList says that a list is the one that was processed before.
var errUnchangedList = errors.New("unchanged")

// readInventory reads the Resource List, all of it, and the changes after it.
// With known an unchanged list is errUnchangedList. An error means that nothing
// may be concluded from what is not in it.
func (src *source) readInventory(ctx context.Context, o *offer, known *listState) (*inventory, error) {
	return src.readInventoryOf(ctx, o, known, func(*item) error { return nil })
}

// readInventoryOf shows each resource of the list to look, whose error ends it.
func (src *source) readInventoryOf(ctx context.Context, o *offer, known *listState, look func(*item) error) (_ *inventory, err error) {
	if until := src.keeper.Position().Until; !until.IsZero() {
		return src.readInventoryUntil(ctx, o, until)
	}
	sorter, err := extsort.New(src.opt.TempDir, src.opt.MemoryBytes/2)
	if err != nil {
		return nil, fmt.Errorf("temporary files: %w", err)
	}
	v := &inventory{sorter: sorter}
	defer func() {
		if err != nil {
			v.Close()
		}
	}()
	if o.ResourceList == "" {
		return v, src.dumpInventory(ctx, o, v, known)
	}
	dl, r, err := src.unlessKnown(ctx, o.ResourceList, resourcesync.ResourceList, known)
	if isGone(err) && o.ResourceDump != "" {
		src.log.Warn("the Resource List is named and not there; the Resource Dump is read in its place", "list", o.ResourceList)
		o.ResourceList = "" // in this run
		return v, src.dumpInventory(ctx, o, v, known)
	}
	if err != nil {
		return nil, err
	}
	defer dl.Close()
	h := r.Head()
	v.isOf(o.ResourceList, h, dl, src.opt.Now())
	v.outdated = src.olderThanTaken(o, v, dl, h)
	if !h.Index && (v.state.past || !v.state.Fresh && lasts(v.state.At) < time.Minute) {
		v.state.Size = dl.length()
	}
	n := int64(0)
	served := fetch.ServedAt(dl.Header, src.opt.Now())
	each := func(r *resourcesync.Reader, address string) error {
		v.reads(r)
		return eachEntry(r, address, func(e *resourcesync.Entry) error {
			it := newItem(e, nil, address)
			it.Change = ""
			if it.Blind {
				v.blind++
			}
			v.state.Vague = v.state.Vague || it.vague(served)
			if n++; n%10_000 == 0 {
				src.opt.Progress("list", n, 0)
			}
			if err := look(it); err != nil {
				return err
			}
			return v.add(it)
		})
	}
	if h.Index {
		parts, perr := src.parts(ctx, dl, r, resourcesync.ResourceList)
		if perr != nil {
			return nil, perr
		}
		err = src.eachPartNoted(ctx, parts, resourcesync.ResourceList, &v.state.Parts, func(p part, pdl *download, pr *resourcesync.Reader) error {
			return each(pr, pdl.URL)
		})
	} else {
		err = each(r, dl.URL)
	}
	if err != nil {
		return nil, fmt.Errorf("Resource List: %w", err)
	}
	v.listed = n
	if src.plan != nil {
		src.plan.Document(o.ResourceList, resourcesync.ResourceList, v.at, n)
	}
	return v, src.overlay(ctx, o, v)
}

// unlessKnown opens a list or dump. The one that is known, with all that is below it, is
// errUnchangedList.
func (src *source) unlessKnown(ctx context.Context, address string, kind resourcesync.Capability, known *listState) (*download, *resourcesync.Reader, error) {
	req := fetch.Request{URL: address}
	if known == nil || known.URL != address || !known.stands() {
		known = nil
	} else {
		req.ETag, req.Modified = known.ETag, known.Modified
		req.Unchanged = src.sameRoot(known)
	}
	dl, r, err := src.document(ctx, req, kind)
	if m := src.keeper.Position(); err == nil && r != nil && m.isOlder(address, dl, r.Head()) && !src.pastCaches(clip.Middle(address)+" is older than the list that was taken") {
		if err := dl.Close(); err != nil {
			return nil, nil, err
		}
		dl, r, err = src.document(ctx, fetch.Request{URL: address}, kind)
	}
	if nerr := src.noteThere(address, err); nerr != nil {
		return nil, nil, errors.Join(nerr, dl.Close())
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", kindName(kind), err)
	}
	if !dl.NotModified && (known == nil || known.Digest != dl.Digest.String()) {
		return dl, r, nil
	}
	if known == nil || src.partsUnchanged(ctx, known, dl.past(known.At)) {
		err := errUnchangedList
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
	if dl, r, err = src.document(ctx, fetch.Request{URL: address}, kind); err != nil {
		err = fmt.Errorf("%s: %w", kindName(kind), err)
	}
	return dl, r, err
}

// tellsAlone keeps of what is known, and past, that its root tells it from now on.
func (src *source) tellsAlone(known *listState, dl *download) error {
	var change func(*listState)
	switch {
	case len(known.Parts) > 0:
		change = func(l *listState) { l.Parts, l.Fresh = nil, false }
	case !known.Index && known.Size == 0 && !dl.NotModified:
		change = func(l *listState) { l.Size = dl.length() }
	default:
		return nil
	}
	return src.keeper.Keep(func(m *readPosition) { change(&m.Inventory) })
}

// partsUnchanged tells whether the documents below an index are as they were read, where the
// index does not tell, as it does when it is past. If it has been before and is not any more,
// its source was set back. What cannot be had is told when they are read.
func (src *source) partsUnchanged(ctx context.Context, known *listState, past bool) bool {
	if known.Index && len(known.Parts) == 0 {
		return past
	}
	for _, p := range known.Parts {
		dl, err := src.list(ctx, fetch.Request{URL: p.URL, ETag: p.ETag, Modified: p.Modified, Accept: acceptDocument, Gzip: true, MaxBytes: src.lim.document}, nil)
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
func (src *source) sameRoot(known *listState) func([]byte, int64) bool {
	if known.Size == 0 {
		return nil
	}
	return func(first []byte, length int64) bool {
		if length >= 0 && length != known.Size {
			return false
		}
		body, err := fetch.Unzipped(bytes.NewReader(first), src.lim.document, known.URL)
		if err != nil {
			return false
		}
		h, err := resourcesync.ReadHead(body, src.readerOptions(known.URL))
		return err == nil && !h.Index && h.Link(resourcesync.RelNext) == "" && (h.Meta.Capability == resourcesync.ResourceList || h.Meta.Capability == "") && h.SnapshotTime().Equal(known.At)
	}
}

// overlay adds the changes after the list was taken.
func (src *source) overlay(ctx context.Context, o *offer, v *inventory) error {
	if !o.followed() {
		return nil
	}
	v.overlaid = true
	from := v.cursor()
	from.unproven = &v.hole
	begin := v.order
	var last map[string]ledger.Hash
	pass := func(strict bool, add func(change) error) error {
		return again(func() error {
			v.void, v.last, last = [2]uint64{begin, v.order}, nil, map[string]ledger.Hash{}
			if src.opt.EachChange {
				v.passed = map[ledger.Hash]bool{}
			}
			return missingOf(o, src.eachChange(ctx, o, &from, strict, add))
		})
	}
	add := func(c change) error {
		if c.it == nil {
			return nil
		}
		v.last = newestOf(c.it)
		if v.passed != nil {
			id := ledger.HashOf(c.it.identity())
			if before, ok := last[c.it.Loc]; ok {
				v.passed[before] = true
			}
			delete(v.passed, id)
			last[c.it.Loc] = id
		}
		if c.it.Bad != "" {
			if v.unusable == nil {
				v.unusable = map[string]string{}
			}
			if len(v.unusable) < src.lim.named {
				v.unusable[c.it.Loc] = c.it.Bad
			}
			return nil // what the list says stands; the change fails when it is applied
		}
		delete(v.unusable, c.it.Loc)
		if src.plan != nil {
			src.plan.Change(c.list, c.kind())
		}
		return v.add(c.it)
	}
	var gap *gapError
	err := pass(true, add)
	if errors.As(err, &gap) && gap.missing == nil && !gap.behind {
		v.hole, err = true, pass(false, add)
	}
	switch {
	case err == nil || !errors.As(err, &gap):
	case gap.behind: // there are none after it
		err = nil
	case gap.missing != nil:
		v.hole, v.missing, v.overlaid, err = true, gap, false, nil
		v.void[1] = v.order
	}
	first := src.keeper.Stage() != ledger.Following
	if err != nil && first && ctx.Err() == nil && !isOwnFailure(err) && !errors.Is(err, fetch.ErrSourceGone) {
		src.log.Warn("the changes since the Resource List cannot be read; the list is taken alone", "error", err)
		v.hole, v.overlaid, err = true, false, nil // the poll behind the baseline tells it, and begins with them
		v.void[1] = v.order
	}
	if err != nil {
		return fmt.Errorf("changes since the Resource List: %w", err)
	}
	return nil
}

// stale tells that the list is not newer than where we stand, and that what was changed
// since is not all there: it says no more than what is mirrored, and maybe less.
func (v *inventory) stale(c *cursor) bool {
	if v.outdated {
		return true
	}
	if v.sequence != nil && c.Sequence != nil {
		return v.hole && *v.sequence < *c.Sequence
	}
	return v.hole && !v.at.IsZero() && !v.at.After(c.Time)
}

// taken tells that the list is the one that was taken last, whole, and nothing was left of
// what it did not have.
func (v *inventory) taken(p *readPosition) bool {
	was := &p.Inventory
	return was.URL != "" && was.URL == v.state.URL && was.Digest == v.state.Digest && was.At.Equal(v.state.At) && was.stands() && was.sameParts(&v.state) && v.blind == 0
}
