package audit

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/rsbridge/rsbridge/destination/feed"
	"github.com/rsbridge/rsbridge/destination/item"
	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/destination/pairs"
)

// A list may be older than the changes beside it, and neither need tell another state of a
// resource. So an audit reads the changes of the next Sync as well: a published change, not
// applied, is a difference, and so is a pending one.

// published counts the changes not applied: those after the cursor, and pending ones. A gap
// before them counts only if the comparison has proven nothing (open).
func (a *pass) published(ctx context.Context, open bool) error {
	v, err := feed.NewInventory(a.Config.TempDir, a.Config.MemoryBytes/8)
	if err != nil {
		return err
	}
	defer v.Close()
	for _, f := range a.Ledger.Faults(ctx) {
		if f.Err != nil {
			return f.Err
		}
		it, err := item.Decode(f.Item)
		if err != nil {
			return err
		}
		if it.Change == "" || a.proven(it) {
			continue // the comparison with the list has it
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

// proven tells of an inventory equal to the records and of a later change.
func (a *pass) proven(it *item.Item) bool {
	return a.told.inventory != "" && it.Sequence <= a.told.through
}

// unread adds the changes after the cursor.
func (a *pass) unread(ctx context.Context, v *feed.Inventory, open bool) error {
	m := a.SnapshotMeta()
	if !a.Offer.Followed() || m.At.IsPast() {
		return nil
	}
	from := *m.At.Cursor()
	poll, err := a.Feed.Poll(ctx, a.Offer, &from)
	var gap *feed.GapError
	if errors.As(err, &gap) {
		a.told.lost = cmp.Or(a.told.lost, error(fmt.Errorf("gap: %w", gap)))
		return nil
	}
	if err != nil || poll == nil {
		return err
	}
	defer poll.Close()
	begin := v.Mark()
	err = feed.Again(func() error {
		v.Undo(begin)
		ahead := from.Ahead()
		err := poll.Each(ctx, &from, true, func(c feed.Change) error {
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
		})
		if err == nil && ahead != nil {
			err = ahead.Dropped()
		}
		return err
	})
	if errors.As(err, &gap) {
		v.Undo(begin)
		if open && a.told.lost == nil {
			a.told.lost = fmt.Errorf("gap: %w", gap)
		}
		return nil
	}
	return err
}

// unapplied makes a finding of a published change, unless the mirror is proven to have it.
func (a *pass) unapplied(ctx context.Context, loc ledger.Hash, it *item.Item) error {
	rec, err := a.Ledger.Record(ctx, loc)
	if err != nil {
		return err
	}
	f, err := a.Ledger.Fault(ctx, loc)
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
		case v == item.ProvenSame, v == item.SeemsSame, v != item.Different && a.Depth == "origin":
			return nil
		case v == item.Different:
			e.Detail = "the source says " + why + faultNote(f)
		default:
			e.Detail = "the source tells that it was " + it.Change + ", which is not known to be applied" + faultNote(f)
		}
		e.Entity = rec.Entity
	case p.There():
		rank, e.Detail = rankMissing, notMirrored+faultNote(f)
	case p.Here() && a.Config.Keep != "deleted":
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

// behind tells whether some published changes are not applied.
func (a *pass) behind(ctx context.Context) (bool, error) {
	probe := &pass{Audit: a.Audit, silently: true}
	err := probe.published(ctx, false)
	return probe.sourceDiffers, err
}
