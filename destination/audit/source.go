package audit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rsbridge/rsbridge/destination/feed"
	"github.com/rsbridge/rsbridge/destination/item"
	"github.com/rsbridge/rsbridge/destination/keep"
	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/destination/pairs"
)

// withoutSource goes on after an error of the source if there is something to compare without it.
func (a *pass) withoutSource(ctx context.Context, err error) error {
	var gap *unprovenError
	if err == nil || ctx.Err() != nil || a.Depth != "store" && !errors.As(err, &gap) {
		return err
	}
	a.Log.Warn("audit: the source does not tell what it has; the mirror is compared with what is recorded", "error", err)
	a.told.silent = err
	return nil
}

// compareSource compares the records with the present source: by its inventory if this proves them equal, else by
// its list, for the names of the differences.
func (a *pass) compareSource(ctx context.Context) error {
	m := a.SnapshotMeta()
	a.told.from = *m.At.Cursor()
	if a.told.silent == nil {
		var err error
		a.told.root, err = a.Feed.InventoryRoot(ctx, a.Offer)
		if err = a.withoutSource(ctx, err); err != nil {
			return err
		}
	}
	// Whether the inventory has named the differences: it knows nothing of files.
	told := false
	if a.told.silent == nil && (a.Depth != "origin" || !a.listed() || a.told.root.Beyond(&a.told.from)) { // with a list, it asks for everything in any case
		var err error
		told, err = a.byInventory(ctx)
		if err == nil && a.told.inventory != "" {
			err = a.published(ctx, false)
		}
		if err = a.withoutSource(ctx, err); err != nil || told && (a.listed() || a.Depth == "inventory") {
			return err
		}
		a.rewritten = rewrittenOnes{}
	}
	snap := a.Store.Snapshot(ctx)
	defer snap.Close()
	v, err := a.list(ctx)
	if err != nil {
		if err := a.withoutSource(ctx, err); err != nil {
			return err
		}
		if v, err = a.list(ctx); err != nil {
			return err
		}
	}
	defer v.Close()
	if told {
		a.told.lost = nil
	}
	// A stale list counts only for unchanged resources: others were changed or deleted since,
	// and the remaining changes need not tell it. A time given as a minute or a day may mean
	// all of it.
	passed := func(p pairs.Pair) bool {
		if !a.told.older || p.Item != nil && p.Item.Change != "" {
			return false
		}
		if !p.Here() {
			return true
		}
		since := p.Record.Since()
		told := item.Lasts(since)
		if a.told.taken && since.Equal(v.At) { // the mirror was equal to that list: the difference came after it, in its very instant
			return p.Fault == nil
		}
		return since.IsZero() || since.After(v.At) || told > time.Minute && !since.Add(told).Before(v.At)
	}
	n, unseen, kept := int64(0), int64(0), false
	if err := pairs.SeeFaults(ctx, a.Ledger, v, a.Options.Now()); err != nil {
		return err
	}
	partial := v.Unread.Why()
	for p, err := range pairs.WithFaults(ctx, a.Ledger, pairs.Of(ctx, a.Ledger, v, snap)) {
		if err != nil {
			return err
		}
		if n++; n%4096 == 0 {
			a.Options.Progress("inventory", n, 0)
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		if p.Record != nil {
			a.sawRewritten(ctx, p.Record)
		}
		switch {
		case passed(p):
			kept = kept || p.Here() && !p.There()
			if p.Disagrees() || p.Fault != nil {
				a.told.passed++
			}
			continue
		case told && !p.File():
			continue
		case p.There() && p.Here():
			v, why := p.Item.Differs(p.Record)
			leaves, lerr := a.Ledger.Leaving(ctx, p.Loc)
			if lerr != nil {
				return lerr
			}
			if (v == item.Unknown || v == item.SameLength) && !(p.Record.Has(ledger.FlagUnselected) && a.Obtains.Select.Outside(p.Item)) {
				unseen++
			}
			switch {
			case v == item.Different:
				err = a.event(p.Loc, rankDifferent, event{Entity: p.Record.Entity, Location: p.Record.Loc, Detail: "the source says " + why + faultNote(p.Fault)})
			case v != item.ProvenSame && p.Fault != nil:
				err = a.notTaken(p)
			case v != item.ProvenSame && v != item.SeemsSame && leaves != nil && leaves.Becomes != nil:
				err = a.event(p.Loc, rankDifferent, event{Entity: p.Record.Entity, Location: p.Record.Loc, Detail: "the source has no description of it any more, and the mirror keeps the one before"})
			default:
				continue
			}
		case p.There():
			err = a.event(p.Loc, rankMissing, event{Entity: p.Item.Entity, Location: p.Item.Loc, Detail: notMirrored + faultNote(p.Fault)})
		case p.Fault != nil && p.Item == nil && a.told.silent == nil && !a.listed():
			err = a.notTaken(p)
		case p.Here() && p.Item == nil && partial != "":
			a.told.lost = errors.New(partial)
			continue
		case p.Here() && (a.listed() || p.Item != nil) && a.Config.Keep != "deleted":
			err = a.event(p.Loc, rankExtra, event{Entity: p.Record.Entity, Location: p.Record.Loc, Detail: "it is mirrored, the source does not have it any more"})
		default:
			continue
		}
		if err != nil {
			return err
		}
		a.sourceDiffers = true
	}
	if m := a.SnapshotMeta(); kept && m.HeldDeletions != nil && a.told.lost == nil { // it may be among the held ones
		a.told.lost = errors.New(m.HeldDeletions.Reason)
	}
	if a.told.silent == nil && !told {
		if err := a.published(ctx, v.Hole || a.told.older || unseen > 0 && a.Depth != "origin"); err != nil {
			if err := a.withoutSource(ctx, err); err != nil {
				return err
			}
		}
	}
	switch {
	case a.told.ahead: // the present answer may be of unpublished changes
	case a.Depth == "origin":
		return a.origin(ctx, v, snap)
	case a.told.silent == nil && !a.SnapshotMeta().IsPast():
		if m := a.SnapshotMeta(); !a.Offer.Followed() && !(a.Offer.ResourceList == "" && v.Taken(&m.At) && m.CompareSource == "") { // a taken dump has them
			a.told.untold = unseen
		}
		return a.withoutSource(ctx, a.confirmTaken(ctx, snap))
	}
	return nil
}

// notTaken makes a finding of a resource the mirror could not take. The next run tries it.
func (a *pass) notTaken(p pairs.Pair) error {
	e := event{Entity: p.Fault.Entity, Location: p.Fault.Loc, Detail: "what the source has could not be taken" + faultNote(p.Fault), Due: true, Pending: true}
	if p.Here() {
		e.Entity = p.Record.Entity
		return a.event(p.Loc, rankDifferent, e)
	}
	return a.event(p.Loc, rankMissing, e)
}

// listed tells whether the source has named all its resources.
func (a *pass) listed() bool {
	return a.told.silent == nil && a.Offer.Listed()
}

// list reads the source's resources: everything, or, without a list, the changes since; nothing of an
// unreachable source.
func (a *pass) list(ctx context.Context) (v *feed.Inventory, err error) {
	m := a.SnapshotMeta()
	from := *m.At.Cursor()
	if a.listed() {
		if v, err = a.Feed.ReadInventory(ctx, a.Offer, feed.Always); err != nil {
			return nil, err
		}
		m := a.SnapshotMeta()
		if err := unproven(v, &m); err != nil {
			return nil, errors.Join(err, v.Close())
		}
		for _, why := range v.Unusable {
			a.told.lost = errors.New(why)
		}
		if a.told.older = v.Stale(&from); a.told.older {
			a.told.listAt = v.At
			a.told.taken = v.Taken(&m.At) && m.CompareSource == ""
			if m.Gap != "" {
				a.told.lost = errors.New(m.Gap)
			}
			a.Log.Warn("audit: of what is mirrored of later changes the source's list tells nothing", "why", feed.ErrStale)
		}
		return v, nil
	}
	if v, err = feed.NewInventory(a.Config.TempDir, a.Config.MemoryBytes/2); err != nil || a.told.silent != nil || !a.Offer.Followed() {
		return v, err
	}
	add := func(c feed.Change) error {
		if c.Item == nil {
			return nil
		}
		return v.Add(c.Item)
	}
	err = feed.Again(func() error {
		err := a.Feed.EachChange(ctx, a.Offer, &from, true, add)
		var gap *feed.GapError
		if errors.As(err, &gap) {
			a.told.lost = fmt.Errorf("gap: %w; the source has no inventory to compare with", gap)
			if gap.Missing != nil { // resources may have been changed again there
				return nil
			}
			return a.Feed.EachChange(ctx, a.Offer, &from, false, add)
		}
		if m := a.SnapshotMeta(); m.Lost() != "" {
			a.told.lost = errors.New(m.Lost())
		}
		return err
	})
	if err != nil {
		return nil, errors.Join(err, v.Close())
	}
	return v, nil
}

// unproven is why nothing may be concluded from an inventory: it was taken before an open
// gap, or changes after it are in missing lists: the mirror's part of them would be taken for wrong,
// or a lack of it not be seen.
func unproven(v *feed.Inventory, m *keep.Meta) error {
	switch {
	case m.At.Lacks() != "":
		return &unprovenError{m.At.Lacks()}
	case m.Gap != "" && !v.Stale(m.At.Cursor()) && v.IsOfTaken(&m.At):
		return &unprovenError{m.Gap}
	case v.Missing != nil:
		return &unprovenError{"gap: " + v.Missing.Error()}
	}
	return nil
}

// unprovenError is why an answering source does not tell its resources.
type unprovenError struct{ why string }

func (e *unprovenError) Error() string { return e.why }
