package destination

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/rsbridge/rsbridge/destination/apply"
	"github.com/rsbridge/rsbridge/destination/feed"
	"github.com/rsbridge/rsbridge/destination/item"
	"github.com/rsbridge/rsbridge/destination/keep"
	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/destination/pairs"
	"github.com/rsbridge/rsbridge/internal/kv"
)

// A wrong Change List, an empty feed in its place for example, looks like a gap, or looks right, and the
// right one after it like a gap. Whatever wrong ones came, the right lists are the judge: where they follow
// from a place of before, they are folded: the last word on each resource counts, and what they do not name
// is as it was at that place.

// past is a run's knowledge of the source's earlier changes.
type past struct {
	r *run
	d *Destination
	o *feed.Offer
}

func pastOf(r *run, o *feed.Offer) *past { return &past{r, r.d, o} }

// gapClosed goes back to the last place from which the offered Change Lists follow.
func (h *past) gapClosed(ctx context.Context) (closed bool, err error) {
	places := h.d.mem.SnapshotMeta().Back.Places
	if h.o.Listed() { // whose list tells more than earlier places
		places = places[max(0, len(places)-1):]
	}
	for i := len(places) - 1; i >= 0 && !closed && err == nil; i-- {
		closed, err = h.goBack(ctx, &places[i])
	}
	return closed, err
}

// goBack goes back to a place, if the Change Lists follow from there.
func (h *past) goBack(ctx context.Context, to *keep.Place) (done bool, err error) {
	if at := &to.Cursor; !h.o.Listed() {
		if at.Ahead() != nil || !at.HasRead() { // the mirror was ahead of it, or of a list
			return false, nil
		}
		if has, err := h.has(ctx, at); !has || err != nil {
			return false, err
		}
	}
	return h.backTo(ctx, to)
}

func (h *past) backTo(ctx context.Context, to *keep.Place) (done bool, err error) {
	named, err := h.newInventory()
	if err != nil {
		return false, err
	}
	defer named.Close()
	var failed error
	follows, err := h.d.src.Follows(ctx, h.o, to.Cursor, func(it *item.Item) {
		switch {
		case it == nil:
			named.Undo(0)
		case failed == nil && h.o.Listed():
			failed = named.Add(it)
		}
	})
	if err = errors.Join(err, failed); err != nil || !follows {
		return false, err
	}
	if !h.o.Listed() {
		f, err := h.fold(ctx, to, h.d.mem.SnapshotMeta().Back.Whole)
		if err != nil {
			return false, err
		}
		if f.whole && f.unnamed > 0 {
			return true, h.doubted(ctx, f)
		}
		if h.d.mem.SnapshotMeta().Back.Gap {
			h.r.why("the Change Lists have what was before the gap, which is closed")
		} else {
			h.r.why("the source offers no list or dump any more: its changes go on from where they were before it")
		}
		return true, h.d.mem.SaveMeta(ctx, func(m *keep.Meta) {
			m.First = to.First
			f.end(m)
			m.At.ForgetList()
			m.At.FoundMissing()
			m.GoneBack(to)
		})
	}
	m := h.d.mem.SnapshotMeta()
	recheck := m.Back.Changed // the next list tells more than single answers
	for _, t := range h.d.mem.Ledger.Touched(ctx, h.d.mem.Store, to.Span) {
		if recheck = true; t.Err != nil {
			return false, t.Err
		}
		break
	}
	if err := h.forgetSince(ctx, m.Back.Since, named); err != nil {
		return false, err
	}
	h.r.why("the Change Lists have what was before the gap, which is closed")
	return true, h.d.mem.SaveMeta(ctx, func(m *keep.Meta) {
		m.At.MoveTo(to.Cursor)
		m.At.Cursor().ReadAgain() // it may be told again what a change in the gap has replaced
		m.LeaveGap()
		if recheck {
			m.Recheck.Why = "a Change List that was offered for a time is of another history"
		}
	})
}

func (h *past) newInventory() (*feed.Inventory, error) {
	return feed.NewInventory(h.d.cfg.TempDir, h.d.cfg.MemoryBytes/8)
}

// folded is the result of fold.
type folded struct {
	at      feed.Cursor // behind everything
	first   *feed.Newest
	whole   bool  // the lists reach back to the first change of the mirror
	unnamed int64 // resources here, or pending, without a name there
}

func (f *folded) end(m *keep.Meta) {
	m.At.MoveTo(f.at)
	if at := f.first; f.whole && !at.Time.IsZero() && (m.Reach.IsZero() || at.Time.Before(m.Reach)) {
		m.Reach = at.Time
	}
}

// fold brings each resource to its last change in all offered Change Lists. A resource without one is
// as it was at a place, or stays (nil). With all it goes, if the lists are the whole history.
func (h *past) fold(ctx context.Context, was *keep.Place, all bool) (*folded, error) {
	v, err := h.newInventory()
	if err != nil {
		return nil, err
	}
	defer v.Close()
	snap := h.d.mem.Store.Snapshot(ctx)
	defer snap.Close()
	first := h.d.mem.SnapshotMeta().First
	if was != nil {
		first = was.First
		if err := h.addFormers(ctx, snap, was, v); err != nil {
			return nil, err
		}
	}
	f, err := h.readAll(ctx, v, first)
	if err == nil && f.whole && was != nil { // a wrong list may have been before the place: nothing is remembered
		v.Undo(0)
		f, err = h.readAll(ctx, v, first)
	}
	if err != nil {
		return nil, err
	}
	if err := h.comparePairs(ctx, v, snap, all && f.whole, f); err != nil {
		return nil, err
	}
	h.r.complete = true
	h.d.fates.TellThrough(&f.at)
	return f, nil
}

// readAll adds all offered changes to an inventory.
func (h *past) readAll(ctx context.Context, v *feed.Inventory, since *feed.Newest) (*folded, error) {
	poll, err := h.d.src.Poll(ctx, h.o, &feed.Cursor{})
	if err != nil {
		return nil, err
	}
	defer poll.Close()
	begin := v.Mark()
	var f *folded
	read := func(strict bool) error {
		return feed.Again(func() error {
			v.Undo(begin)
			f = &folded{}
			f.at.Hear()
			return poll.Each(ctx, &feed.Cursor{}, strict, func(c feed.Change) error {
				if c.Item == nil {
					f.at.End(&c)
					return nil
				}
				f.at.Take(&c)
				if f.first == nil {
					f.first = f.at.Newest()
				}
				f.whole = f.whole || since != nil && since.Is(c.Item)
				return v.Add(c.Item)
			})
		})
	}
	err = read(true)
	if gap := (*feed.GapError)(nil); errors.As(err, &gap) {
		err = read(false)
		f.whole = false
	}
	poll.Finish(&f.at)
	if reach := h.d.mem.SnapshotMeta().Reach; f.whole && !reach.IsZero() && f.first.Time.After(reach) {
		f.whole = false // older changes have left them
	}
	return f, err
}

// comparePairs makes the mirror equal to folded changes.
func (h *past) comparePairs(ctx context.Context, v *feed.Inventory, snap kv.Reader, all bool, f *folded) error {
	moves, err := pairs.FindMoves(ctx, h.d.mem.Ledger, v, snap)
	if err != nil {
		return err
	}
	b := h.d.applier.Batch(ctx, &h.r.c, false)
	defer b.Wait()
	before := h.r.c.Changed()
	of := func() iter.Seq2[pairs.Pair, error] {
		return pairs.WithFaults(ctx, h.d.mem.Ledger, pairs.Of(ctx, h.d.mem.Ledger, v, snap))
	}
	for p, err := range of() {
		switch {
		case err != nil:
		case p.There(), moves.Left(p.Loc):
		case p.Item == nil && !all:
			if p.Here() || p.Fault != nil {
				f.unnamed++
			}
		case p.Here():
			err = b.Leave(ctx, p.Loc, nil, ledger.Leaving{Implied: p.Item == nil})
		case p.Fault != nil:
			err = b.Add(ctx, &apply.Op{Loc: p.Loc, Record: p.Record, Settle: true})
		}
		if err != nil {
			return err
		}
	}
	if err := b.Settle(ctx); err != nil {
		return err
	}
	err = h.d.applier.Pipeline(ctx, func(yield func(apply.Job, error) bool) {
		for p, err := range of() {
			if err == nil && !p.There() {
				continue
			}
			var j apply.Job
			if err == nil {
				replaces := moves.To(p.Loc)
				if p.Applied() && len(replaces) == 0 {
					h.r.c.Unchanged++
					continue
				}
				p.Item.Ask.Tried = true
				j = apply.Replacing(apply.JobOf(h.d.obtains.Job(p.Item)), replaces)
			}
			if !yield(j, err) {
				return
			}
		}
	}, func(o *apply.Outcome) error {
		h.r.note(o)
		return b.Take(ctx, o)
	})
	if err = errors.Join(err, b.Settle(ctx)); err != nil {
		return err
	}
	if h.r.c.Changed() > before {
		h.r.mode("incremental")
	}
	return h.d.leavings.stay(ctx, v, snap)
}

// foldGap is for a gap without a list or dump to close it with.
func (h *past) foldGap(ctx context.Context) error {
	f, err := h.fold(ctx, nil, false)
	if err != nil {
		return err
	}
	closed := f.whole && f.unnamed == 0
	if closed {
		h.r.why("the Change Lists tell the whole history: the gap is closed")
	}
	return h.d.mem.SaveMeta(ctx, func(m *keep.Meta) {
		f.end(m)
		m.HeldGap = ""
		if m.Back.Whole = f.whole; closed {
			m.At.FoundMissing()
			m.GoneBack(nil)
		}
	})
}

// doubt folds the changes where a list has shrunk: most often by retention.
func (h *past) doubt(ctx context.Context) error {
	f, err := h.fold(ctx, nil, false)
	if err != nil {
		return err
	}
	if !f.whole || f.unnamed == 0 {
		return h.d.mem.SaveMeta(ctx, f.end)
	}
	return h.doubted(ctx, f)
}

// doubted tells a gap: a whole history does not name all that is mirrored. The next look decides.
func (h *past) doubted(ctx context.Context, f *folded) error {
	h.r.gap.why, h.r.gap.from = "the Change Lists tell the whole history, and not of all that is mirrored: they are wrong, or were", h.r.stands()
	if err := h.r.openGap(ctx, h.o); err != nil {
		return err
	}
	return h.d.mem.SaveMeta(ctx, func(m *keep.Meta) {
		f.end(m)
		m.At.ForgetList()
		m.Back.Listed = time.Time{}
		gap := feed.GapError{Why: h.r.gap.why}
		gap.Ends(h.d.leavings.notClosed())
		m.Gap, m.Back.Whole = gap.Told(), true
	})
}

// confirmGap ends a gap with a source of changes alone, once two looks in a row have found the same history
// from its first change on.
func (h *past) confirmGap(ctx context.Context) error {
	switch m := h.d.mem.SnapshotMeta(); {
	case h.r.dry, h.o.Listed(), h.r.gap.why != "", !h.r.complete:
		return nil
	case !m.Back.Gap && h.r.gap.shrunk:
		return h.doubt(ctx)
	case !m.Back.Gap:
		return nil
	case !m.Back.Whole && h.r.gap.news:
		return h.foldGap(ctx)
	case !m.Back.Whole:
		return nil
	}
	f, err := h.fold(ctx, nil, true)
	if err != nil {
		return err
	}
	if f.whole {
		h.r.why("the Change Lists tell the whole history, twice: the gap is closed")
	}
	return h.d.mem.SaveMeta(ctx, func(m *keep.Meta) {
		if f.end(m); f.whole {
			m.At.FoundMissing()
			m.GoneBack(nil)
		}
	})
}

// addFormers adds the resources touched since a place to an inventory, as they were there.
func (h *past) addFormers(ctx context.Context, snap kv.Reader, was *keep.Place, v *feed.Inventory) error {
	for loc, t := range h.d.mem.Ledger.Touched(ctx, snap, was.Span) {
		it, err := (*item.Item)(nil), t.Err
		if err == nil {
			it, err = h.former(ctx, loc, t.Touched)
		}
		if err == nil && it != nil {
			err = v.Add(it)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// former is how to bring a touched resource back, nil if it is as it was. Unknown ones go.
func (h *past) former(ctx context.Context, loc ledger.Hash, t *ledger.Touched) (*item.Item, error) {
	rec, err := h.d.mem.Ledger.Record(ctx, loc)
	if err != nil {
		return nil, err
	}
	f, err := h.d.mem.Ledger.Fault(ctx, loc)
	if err != nil {
		return nil, err
	}
	l, err := h.d.mem.Ledger.Leaving(ctx, loc)
	if err != nil {
		return nil, err
	}
	is := t.Is(rec, h.d.stand.StateOf(rec)) && !t.Pending
	switch {
	case is && f == nil && l == nil:
		return nil, nil
	case len(t.Item) > 0:
		return item.Decode(t.Item)
	case rec != nil:
		return &item.Item{Loc: rec.Loc, Change: "deleted"}, nil
	case f != nil:
		return &item.Item{Loc: f.Loc, Change: "deleted"}, nil
	}
	return nil, nil
}

// untold forgets changes that fail for long and are told no more, of a source without list and
// dump: a wrong Change List told of them. Those before the first change may have left the lists.
func (h *past) untold(ctx context.Context) error {
	v, err := h.newInventory()
	if err != nil {
		return err
	}
	defer v.Close()
	first, err := h.d.src.AddChanges(ctx, h.o, v)
	if err != nil {
		h.d.mem.Log.Warn("some of what changes told of fails, and they cannot be read from the first one", "error", err)
		return ctx.Err()
	}
	b := h.d.applier.Batch(ctx, &h.r.c, false)
	defer b.Wait()
	snap := h.d.mem.Store.Snapshot(ctx)
	defer snap.Close()
	failing := pairs.FailingChanges(pairs.WithFaults(ctx, h.d.mem.Ledger, pairs.Of(ctx, h.d.mem.Ledger, v, snap)), first)
	for p, err := range failing {
		if err == nil && p.Item == nil {
			err = b.Add(ctx, &apply.Op{Loc: p.Loc, Record: p.Record, Settle: true})
		}
		if err != nil {
			return err
		}
	}
	err = h.d.applier.Pipeline(ctx, func(yield func(apply.Job, error) bool) { // another change was the last one
		for p, err := range failing {
			if err == nil && p.Item == nil {
				continue
			}
			if !yield(func(ctx context.Context) *apply.Outcome { return apply.JobOf(h.d.obtains.Job(p.Item))(ctx) }, err) {
				return
			}
		}
	}, func(o *apply.Outcome) error { return b.Take(ctx, o) })
	return errors.Join(err, b.Settle(ctx))
}

// listComes notes that a source of changes alone offers a list or dump: it may be wrong. It is believed
// once it is offered for long.
func (h *past) listComes(ctx context.Context) error {
	m := h.d.mem.SnapshotMeta()
	if h.r.dry || !h.o.Listed() || !m.Alone || m.Stage != ledger.Following {
		return nil
	}
	now := h.d.opt.Now().UTC()
	switch k := &m.Back; {
	case k.Listed.IsZero() && k.Gap:
		return h.d.mem.SaveMeta(ctx, func(m *keep.Meta) { m.Back.Listed = now })
	case k.Listed.IsZero():
		b := h.d.mem.Store.Batch()
		defer b.Close()
		return h.d.mem.Mark(ctx, b, *m.At.Cursor(), func(k *keep.Back) { k.Listed = now })
	case !k.Gap && now.Sub(k.Listed) >= feed.DoubtLasts:
		return h.d.mem.SaveMeta(ctx, func(m *keep.Meta) { m.Back, m.First, m.Reach, m.Alone = keep.Back{}, nil, time.Time{}, false })
	}
	return nil
}

// unlistedGap is for a source that offers its list or dump no more, and whose Change Lists do not follow
// from where the mirror stood before it.
func (h *past) unlistedGap(ctx context.Context) error {
	return h.gap(ctx, "the source has offered a list or dump for a time, and its changes do not go on from where they were before")
}

// elsewhere is for a source of changes alone whose address leads to another place: the changes there have the
// one at which the mirror stands, or that is a gap.
func (h *past) elsewhere(ctx context.Context) error {
	m := h.d.mem.SnapshotMeta()
	if m.Back.Gap {
		if closed, err := h.gapClosed(ctx); closed || err != nil {
			return err
		}
	}
	has, err := h.has(ctx, m.At.Cursor())
	if err != nil {
		return err
	}
	if !has {
		return h.gap(ctx, "the source's address leads to another place, whose changes do not have the one at which we stand")
	}
	return h.r.increment(ctx, h.o, 0)
}

// has tells whether the offered changes have the one at a cursor, or a later one of its resource. Without
// an older change they say nothing of it.
func (h *past) has(ctx context.Context, at *feed.Cursor) (bool, error) {
	stands := at.Newest()
	if stands == nil {
		return true, nil
	}
	has, older := false, false
	err := h.d.src.EachChange(ctx, h.o, &feed.Cursor{}, false, func(c feed.Change) error {
		if it := c.Item; it != nil {
			has = has || stands.Is(it) || it.Loc == stands.Loc && it.Time.After(stands.Time)
			older = older || it.Time.Before(stands.Time)
		}
		return nil
	})
	if err != nil { // told when the changes are read
		return true, ctx.Err()
	}
	return has || !older, nil
}

func (h *past) gap(ctx context.Context, why string) error {
	poll, err := h.d.src.Poll(ctx, h.o, &feed.Cursor{})
	if err != nil {
		return err
	}
	defer poll.Close()
	return h.r.closeGap(ctx, h.o, &feed.GapError{Why: why}, 0, poll)
}

// forgetSince forgets what changes told of since a time that are none, and could not be had.
func (h *past) forgetSince(ctx context.Context, since time.Time, named *feed.Inventory) error {
	snap := h.d.mem.Store.Snapshot(ctx)
	defer snap.Close()
	b := h.d.applier.Batch(ctx, &apply.Counts{}, false)
	defer b.Wait()
	for p, err := range pairs.WithFaults(ctx, h.d.mem.Ledger, pairs.Of(ctx, h.d.mem.Ledger, named, snap)) {
		if err == nil && p.Item == nil && p.Fault != nil && !p.FailsOfList() && !p.Fault.First.Before(since) {
			err = b.Add(ctx, &apply.Op{Loc: p.Loc, Record: p.Record, Settle: true})
		}
		if err != nil {
			return err
		}
	}
	return b.Settle(ctx)
}
