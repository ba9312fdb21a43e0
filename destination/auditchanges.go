package destination

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/rsbridge/rsbridge/destination/feed"
	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/destination/pairs"
	"github.com/rsbridge/rsbridge/internal/extsort"
)

// A list may be older than the changes that are offered beside it, and neither need tell
// anything by which another state of a resource is seen. So an audit asks as well for what the
// next Sync would apply: what is published and not applied is a difference, whatever is known
// of it, and so is a change that was read and whose resource could not be had.

// published counts the changes that are not applied: those after the cursor, and pending ones.
// A gap before them counts only where the comparison has proven nothing (open).
func (a *auditRun) published(ctx context.Context, open bool) error {
	d := a.d
	v := &feed.Inventory{}
	var err error
	if v.Sorter, err = extsort.New(d.cfg.TempDir, d.cfg.MemoryBytes/8); err != nil {
		return err
	}
	defer v.Close()
	for _, f := range d.mem.Ledger.Faults(ctx) {
		if f.Err != nil {
			return f.Err
		}
		it, err := feed.DecodeItem(f.Item)
		if err != nil {
			return err
		}
		if it.Change == "" || a.proven(it) {
			continue // of what a list tells, the comparison with it knows
		}
		if err := v.Add(it); err != nil {
			return err
		}
	}
	if err := a.unread(ctx, v, open); err != nil {
		return err
	}
	for loc, it := range v.Items() {
		if it.Err != nil {
			return it.Err
		}
		if err := a.unapplied(ctx, loc, it.Item); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// proven tells that the inventory, which is the record's, is of a later change.
func (a *auditRun) proven(it *feed.Item) bool { return a.inventory != "" && it.Sequence <= a.through }

// unread adds the changes after the cursor.
func (a *auditRun) unread(ctx context.Context, v *feed.Inventory, open bool) error {
	d := a.d
	m := d.mem.SnapshotMeta()
	if !a.offer.Followed() || !m.Until.IsZero() {
		return nil
	}
	from := m.Cursor
	address, kind := a.offer.Changes()
	dl, r, err := d.src.ChangesSince(ctx, address, kind, &from)
	var gap *feed.GapError
	if errors.As(feed.MissingOf(a.offer, err), &gap) {
		a.lost = cmp.Or(a.lost, error(fmt.Errorf("gap: %w", gap)))
		return nil
	}
	if err != nil || dl == nil {
		return err
	}
	defer dl.Close()
	begin := v.Order
	err = feed.Again(func() error {
		v.Void = [2]uint64{begin, v.Order}
		ahead := from.Ahead()
		err := feed.MissingOf(a.offer, d.src.EachChangeOf(ctx, dl, r, &from, true, func(c feed.Change) error {
			if c.Item == nil {
				return nil
			}
			if ahead != nil && ahead.Is(c.Item) {
				ahead = nil
			}
			if a.proven(c.Item) || from.Has(c.Document) { // the list is as it was applied
				return nil
			}
			return v.Add(c.Item)
		}))
		if err == nil && ahead != nil {
			err = ahead.Dropped()
		}
		return err
	})
	if errors.As(err, &gap) {
		v.Void = [2]uint64{begin, v.Order}
		if open && a.lost == nil {
			a.lost = fmt.Errorf("gap: %w", gap)
		}
		return nil
	}
	return err
}

// unapplied makes a finding of a change that is published, unless the mirror is proven to have it.
func (a *auditRun) unapplied(ctx context.Context, loc ledger.Hash, it *feed.Item) error {
	d := a.d
	rec, err := d.mem.Ledger.Record(ctx, loc)
	if err != nil {
		return err
	}
	f, err := d.mem.Ledger.Fault(ctx, loc)
	if err != nil {
		return err
	}
	p := pairs.Pair{Loc: loc, Item: it, Record: rec}
	e := event{Entity: it.Entity, Location: it.Loc, Due: true}
	rank := byte(rankDifferent)
	switch {
	case p.There() && p.Here():
		v, why := it.Differs(rec)
		switch {
		case v == feed.ProvenSame, v == feed.SeemsSame, v != feed.Different && a.depth == "origin":
			return nil
		case v == feed.Different:
			e.Detail = "the source says " + why + faultNote(f)
		default:
			e.Detail = "the source tells that it was " + it.Change + ", which is not known to be applied" + faultNote(f)
		}
		e.Entity = rec.Entity
	case p.There():
		rank, e.Detail = rankMissing, notMirrored+faultNote(f)
	case p.Here() && d.cfg.Keep != "deleted":
		rank, e.Entity, e.Detail = rankExtra, rec.Entity, "it is mirrored, the source does not have it any more"
	default:
		return nil
	}
	a.sourceDiffers = true
	if a.silently {
		return nil
	}
	return a.event(loc, rank, e)
}
