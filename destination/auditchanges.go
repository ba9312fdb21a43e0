package destination

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/rsbridge/rsbridge/destination/ledger"
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
	v := &inventory{}
	var err error
	if v.sorter, err = extsort.New(d.cfg.TempDir, d.cfg.MemoryBytes/8); err != nil {
		return err
	}
	defer v.Close()
	for _, f := range d.led.Faults() {
		if f.Err != nil {
			return f.Err
		}
		it, err := decodeItem(f.Item)
		if err != nil {
			return err
		}
		if it.Change == "" || a.proven(it) {
			continue // of what a list tells, the comparison with it knows
		}
		if err := v.add(it); err != nil {
			return err
		}
	}
	if err := a.unread(ctx, v, open); err != nil {
		return err
	}
	for loc, it := range v.items() {
		if it.err != nil {
			return it.err
		}
		if err := a.unapplied(loc, it.item); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// proven tells that the inventory, which is the record's, is of a later change.
func (a *auditRun) proven(it *item) bool { return a.inventory != "" && it.Sequence <= a.through }

// unread adds the changes after the cursor.
func (a *auditRun) unread(ctx context.Context, v *inventory, open bool) error {
	d := a.d
	m := d.snapshotMeta()
	if !a.offer.followed() || !m.Until.IsZero() {
		return nil
	}
	from := m.Cursor
	address, kind := a.offer.changes()
	dl, r, err := d.src.changesSince(ctx, address, kind, &from)
	var gap *gapError
	if errors.As(missingOf(a.offer, err), &gap) {
		a.lost = cmp.Or(a.lost, error(fmt.Errorf("gap: %w", gap)))
		return nil
	}
	if err != nil || dl == nil {
		return err
	}
	defer dl.Close()
	begin := v.order
	err = again(func() error {
		v.void = [2]uint64{begin, v.order}
		ahead := from.Ahead
		err := missingOf(a.offer, d.src.eachChangeOf(ctx, dl, r, &from, true, func(c change) error {
			if c.it == nil {
				return nil
			}
			if ahead != nil && ahead.is(c.it) {
				ahead = nil
			}
			if a.proven(c.it) || slices.Contains(from.Read, c.document) { // the list is as it was applied
				return nil
			}
			return v.add(c.it)
		}))
		if err == nil && ahead != nil {
			w := window{ahead: ahead}
			err = w.unmet()
		}
		return err
	})
	if errors.As(err, &gap) {
		v.void = [2]uint64{begin, v.order}
		if open && a.lost == nil {
			a.lost = fmt.Errorf("gap: %w", gap)
		}
		return nil
	}
	return err
}

// unapplied makes a finding of a change that is published, unless the mirror is proven to have it.
func (a *auditRun) unapplied(loc ledger.Hash, it *item) error {
	d := a.d
	rec, err := d.led.Record(loc)
	if err != nil {
		return err
	}
	f, err := d.led.Fault(loc)
	if err != nil {
		return err
	}
	p := pairing{loc: loc, it: it, rec: rec}
	e := event{Entity: it.Entity, Location: it.Loc, Due: true}
	rank := byte(rankDifferent)
	switch {
	case p.there() && p.here():
		v, why := it.differs(rec)
		switch {
		case v == provenSame, v == seemsSame, v != different && a.depth == "origin":
			return nil
		case v == different:
			e.Detail = "the source says " + why + faultNote(f)
		default:
			e.Detail = "the source tells that it was " + it.Change + ", which is not known to be applied" + faultNote(f)
		}
		e.Entity = rec.Entity
	case p.there():
		rank, e.Detail = rankMissing, notMirrored+faultNote(f)
	case p.here() && d.cfg.Keep != "deleted":
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
