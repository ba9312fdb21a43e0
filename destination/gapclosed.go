package destination

import (
	"context"
	"errors"
	"time"

	"github.com/rsbridge/rsbridge/destination/apply"
	"github.com/rsbridge/rsbridge/destination/feed"
	"github.com/rsbridge/rsbridge/destination/fetch"
	"github.com/rsbridge/rsbridge/destination/keep"
	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/destination/pairs"
	"github.com/rsbridge/rsbridge/internal/extsort"
)

// A wrong Change List, an empty feed in its place for example, looks like a gap. When the right one
// is back, and has the change at which the mirror stood before the gap, nothing is missing.

// gapClosed goes back to where the mirror stood before a gap, if the Change Lists follow from there.
func (r *run) gapClosed(ctx context.Context, o *feed.Offer, m *keep.Meta) error {
	d := r.d
	applied := m.At.Cursor().IsBehind(m.GapFrom)
	if applied && !o.Listed() {
		return nil // nothing tells what was wrong of it
	}
	address, kind := o.Changes()
	dl, rd, err := d.src.ChangesRoot(ctx, fetch.Request{URL: address}, kind)
	if err != nil {
		return nil // told when the changes are read
	}
	defer dl.Close()
	named := map[ledger.Hash]bool{}
	var follows, unproven bool
	err = feed.Again(func() error {
		clear(named)
		follows, unproven = false, false
		from := *m.GapFrom
		from.Doubt(&unproven)
		return feed.MissingOf(o, d.src.EachChangeOf(ctx, dl, rd, &from, true, func(c feed.Change) error {
			if follows = !c.Unproven; c.Item != nil {
				named[ledger.HashOf(c.Item.Loc)] = true
			}
			return nil
		}))
	})
	if gap := (*feed.GapError)(nil); errors.As(err, &gap) || err == nil && (!follows || unproven) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := d.forgetSince(ctx, m.GapSince, named); err != nil {
		return err
	}
	r.why("the Change Lists have what was before the gap, which is closed")
	return d.mem.SaveMeta(ctx, func(m *keep.Meta) {
		m.At.MoveTo(*m.GapFrom)
		m.Gap, m.GapFrom, m.GapSince = "", nil, time.Time{}
		if applied {
			m.Recheck.Why = "a Change List that was offered for a time is of another history"
		}
	})
}

// untold forgets changes that fail for long and are told no more, of a source without list and
// dump: a wrong Change List told of them. Those before the first change may have left the lists.
func (r *run) untold(ctx context.Context, o *feed.Offer) error {
	d := r.d
	v := &feed.Inventory{}
	var err error
	if v.Sorter, err = extsort.New(d.cfg.TempDir, d.cfg.MemoryBytes/8); err != nil {
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
