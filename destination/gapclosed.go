package destination

import (
	"context"
	"errors"
	"time"

	"github.com/rsbridge/rsbridge/destination/feed"
	"github.com/rsbridge/rsbridge/destination/fetch"
	"github.com/rsbridge/rsbridge/destination/keep"
	"github.com/rsbridge/rsbridge/destination/ledger"
)

// A wrong Change List, an empty feed in its place for example, looks like a gap. When the right one
// is back, and has the change at which the mirror stood before the gap, nothing is missing.

// gapClosed goes back to where the mirror stood before a gap, if the Change Lists follow from there.
func (r *run) gapClosed(ctx context.Context, o *feed.Offer, m *keep.Meta) error {
	d := r.d
	applied := m.Cursor.IsBehind(m.GapFrom)
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
		m.Cursor, m.Gap, m.GapFrom, m.GapSince = *m.GapFrom, "", nil, time.Time{}
		if applied {
			m.Recheck.Why = "a Change List that was offered for a time is of another history"
		}
	})
}

// forgetSince forgets what changes told of since a time that are none, and could not be had.
func (d *Destination) forgetSince(ctx context.Context, since time.Time, named map[ledger.Hash]bool) error {
	b := d.batcher(ctx, &counts{}, false)
	defer b.wait()
	for loc, f := range d.mem.Ledger.Faults(ctx) {
		if f.Err != nil {
			return f.Err
		}
		if it, err := feed.DecodeItem(f.Item); err != nil || it.Change == "" || named[loc] || f.First.Before(since) {
			continue
		}
		rec, err := d.mem.Ledger.Record(ctx, loc)
		if err == nil {
			err = b.add(ctx, &op{loc: loc, rec: rec, settle: true})
		}
		if err != nil {
			return err
		}
	}
	return b.settle(ctx)
}
