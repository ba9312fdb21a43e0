package destination

import (
	"context"
	"errors"
	"time"

	"github.com/rsbridge/rsbridge/destination/apply"
	"github.com/rsbridge/rsbridge/destination/feed"
	"github.com/rsbridge/rsbridge/destination/keep"
	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/destination/pairs"
	"github.com/rsbridge/rsbridge/internal/kv"
)

// A wrong Change List, an empty feed in its place for example, looks like a gap. When the right one
// is back, and has the change at which the mirror stood before the gap, nothing is missing. A wrong
// list may also look right, and the right one after it like a gap: then it has the change of before
// the last poll. What was touched since is brought back.

// gapClosed goes back to where the mirror stood before a gap, if the Change Lists follow from there.
func (r *run) gapClosed(ctx context.Context, o *feed.Offer, m *keep.Meta) error {
	both := []ledger.Span{ledger.SincePoll, ledger.SinceGap}
	ways := []wayBack{{m.Back.Gap, both[1:]}}
	switch poll := m.Back.Poll; {
	case poll == nil:
	case poll.IsAt(m.Back.Gap): // it was met behind operations of its poll
		ways[0].spans = both
	case !o.Listed():
		ways = append(ways, wayBack{poll, both})
	}
	for _, w := range ways {
		if done, err := r.goBack(ctx, o, w); done || err != nil {
			return err
		}
	}
	return nil
}

// wayBack is a cursor of before, and the spans of the operations since.
type wayBack struct {
	to    *feed.Cursor
	spans []ledger.Span
}

// goBack goes back to a cursor, if the Change Lists follow from there. The resources touched since get
// their state there, but for those named by later changes: these are applied again.
func (r *run) goBack(ctx context.Context, o *feed.Offer, w wayBack) (done bool, err error) {
	d := r.d
	named := map[ledger.Hash]bool{}
	follows, err := d.src.Follows(ctx, o, *w.to, func(it *feed.Item) {
		if it == nil {
			clear(named)
		} else {
			named[ledger.HashOf(it.Loc)] = true
		}
	})
	if !follows || err != nil {
		return false, err
	}
	snap := d.mem.Store.Snapshot(ctx)
	defer snap.Close()
	recheck := false
	if o.Listed() { // whose next list tells more than single answers
		recheck = d.mem.SnapshotMeta().Back.Changed
		for _, t := range d.mem.Ledger.Touched(ctx, snap, w.spans...) {
			if t.Err != nil {
				return false, t.Err
			}
			recheck = true
			break
		}
		if err := d.forgetSince(ctx, d.mem.SnapshotMeta().Back.Since, named); err != nil {
			return false, err
		}
	} else if err := r.untouch(ctx, o, snap, w, named); err != nil {
		return false, err
	}
	r.why("the Change Lists have what was before the gap, which is closed")
	b := d.mem.Store.Batch()
	defer b.Close()
	d.mem.Ledger.Untouch(b, ledger.SincePoll)
	d.mem.Ledger.Untouch(b, ledger.SinceGap)
	return true, d.mem.Commit(ctx, b, func(m *keep.Meta) {
		m.At.MoveTo(*w.to)
		m.At.Cursor().ReadAgain() // it may be told again what a change in the gap has replaced
		m.Gap, m.Back = "", keep.Back{}
		if !o.Listed() {
			m.At.FoundMissing()
		}
		if recheck {
			m.Recheck.Why = "a Change List that was offered for a time is of another history"
		}
	})
}

// former is a touched resource as it was.
type former struct {
	item *feed.Item     // how the source told it, nil: it was unknown
	kept *ledger.Record // it is recorded so, and only what is pending of it goes
}

func (f *former) goes() bool { return f.kept == nil && (f.item == nil || f.item.Change == "deleted") }

// untouch brings the resources touched since a cursor back to their state there: by their last change of
// before, if that is still told, else by their address. Those unknown there go.
func (r *run) untouch(ctx context.Context, o *feed.Offer, snap kv.Reader, w wayBack, named map[ledger.Hash]bool) error {
	d := r.d
	was := map[ledger.Hash]*former{}
	for loc, t := range d.mem.Ledger.Touched(ctx, snap, w.spans...) {
		f, err := (*former)(nil), t.Err
		if err == nil && !named[loc] {
			f, err = d.former(ctx, loc, t.Touched)
		}
		if err != nil {
			return err
		}
		if f != nil {
			was[loc] = f
		}
	}
	if len(was) == 0 {
		return nil
	}
	if err := d.src.EachChange(ctx, o, &feed.Cursor{}, false, func(c feed.Change) (err error) {
		if c.Item == nil {
			return nil
		}
		if f := was[ledger.HashOf(c.Item.Loc)]; f != nil && f.item != nil {
			f.item, err = feed.DecodeItem(c.Item.Encode())
		}
		return err
	}); err != nil {
		return err
	}
	b := d.applier.Batch(ctx, &r.c, false)
	defer b.Wait()
	before := r.c.Changed()
	for loc, f := range was {
		var err error
		switch {
		case f.goes():
			err = b.Leave(ctx, loc, nil, ledger.Leaving{Implied: true})
		case f.kept != nil:
			err = b.Add(ctx, &apply.Op{Loc: loc, Record: f.kept, Settle: true})
		}
		if err != nil {
			return err
		}
	}
	if err := b.Settle(ctx); err != nil {
		return err
	}
	err := d.applier.Pipeline(ctx, func(yield func(apply.Job, error) bool) {
		for _, f := range was {
			j := apply.Known(f.item, f.kept)
			if f.goes() {
				continue
			}
			if f.kept == nil {
				f.item.Ask.Tried = true
				j = apply.JobOf(d.obtains.Job(f.item))
			}
			if !yield(j, nil) {
				return
			}
		}
	}, func(o *apply.Outcome) error { return b.Take(ctx, o) })
	if err = errors.Join(err, b.Settle(ctx)); err != nil {
		return err
	}
	if r.c.Changed() > before {
		r.mode("incremental")
	}
	return nil
}

// former is nil for a resource that is as it was.
func (d *Destination) former(ctx context.Context, loc ledger.Hash, t *ledger.Touched) (*former, error) {
	rec, err := d.mem.Ledger.Record(ctx, loc)
	if err != nil {
		return nil, err
	}
	f, err := d.mem.Ledger.Fault(ctx, loc)
	if err != nil {
		return nil, err
	}
	l, err := d.mem.Ledger.Leaving(ctx, loc)
	if err != nil {
		return nil, err
	}
	is := t.Is(rec, d.stand.StateOf(rec))
	switch {
	case is && !t.Pending && f == nil && l == nil, len(t.Item) == 0 && rec == nil && f == nil:
		return nil, nil
	case len(t.Item) == 0:
		return &former{}, nil
	case is && !t.Pending:
		return &former{feed.EntryOf(rec), rec}, nil
	}
	it, err := feed.DecodeItem(t.Item)
	return &former{item: it}, err
}

// untold forgets changes that fail for long and are told no more, of a source without list and
// dump: a wrong Change List told of them. Those before the first change may have left the lists.
func (r *run) untold(ctx context.Context, o *feed.Offer) error {
	d := r.d
	v, err := feed.NewInventory(d.cfg.TempDir, d.cfg.MemoryBytes/8)
	if err != nil {
		return err
	}
	defer v.Close()
	first, err := d.src.AddChanges(ctx, o, v)
	if err != nil {
		d.mem.Log.Warn("some of what changes told of fails, and they cannot be read from the first one", "error", err)
		return ctx.Err()
	}
	b := d.applier.Batch(ctx, &r.c, false)
	defer b.Wait()
	snap := d.mem.Store.Snapshot(ctx)
	defer snap.Close()
	failing := pairs.FailingChanges(pairs.WithFaults(ctx, d.mem.Ledger, pairs.Of(ctx, d.mem.Ledger, v, snap)), first)
	for p, err := range failing {
		if err == nil && p.Item == nil {
			err = b.Add(ctx, &apply.Op{Loc: p.Loc, Record: p.Record, Settle: true})
		}
		if err != nil {
			return err
		}
	}
	err = d.applier.Pipeline(ctx, func(yield func(apply.Job, error) bool) { // another change was the last one
		for p, err := range failing {
			if err == nil && p.Item == nil {
				continue
			}
			if !yield(func(ctx context.Context) *apply.Outcome { return apply.JobOf(d.obtains.Job(p.Item))(ctx) }, err) {
				return
			}
		}
	}, func(o *apply.Outcome) error { return b.Take(ctx, o) })
	return errors.Join(err, b.Settle(ctx))
}

// forgetSince forgets what changes told of since a time that are none, and could not be had.
func (d *Destination) forgetSince(ctx context.Context, since time.Time, named map[ledger.Hash]bool) error {
	b := d.applier.Batch(ctx, &apply.Counts{}, false)
	defer b.Wait()
	for loc, f := range d.mem.Ledger.Faults(ctx) {
		if f.Err != nil {
			return f.Err
		}
		if it, err := feed.DecodeItem(f.Item); err != nil || it.Change == "" || named[loc] || f.First.Before(since) {
			continue
		}
		rec, err := d.mem.Ledger.Record(ctx, loc)
		if err == nil {
			err = b.Add(ctx, &apply.Op{Loc: loc, Record: rec, Settle: true})
		}
		if err != nil {
			return err
		}
	}
	return b.Settle(ctx)
}
