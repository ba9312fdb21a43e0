package destination

import (
	"context"
	"fmt"
	"time"

	"github.com/rsbridge/rsbridge/destination/feed"
	"github.com/rsbridge/rsbridge/destination/keep"
	"github.com/rsbridge/rsbridge/destination/ledger"
)

// A mirror of a point in time is a comparison with an inventory of that time. It is made from
// an earlier Resource List, archived or not, and the changes after it; or from the present list
// and the changes since, backwards. A resource changed later is in its last change before the
// time, or has a TimeGate, or did not exist. Only Change Lists over all the time between list
// and point prove the rest unchanged: without them there is an error and no mirror.

// syncUntil makes the mirror equal to the source at r.until.
func (r *run) syncUntil(ctx context.Context, o *feed.Offer) error {
	d := r.d
	if now := d.opt.Now(); r.until.After(now) {
		return fmt.Errorf("until %s is in the future", feed.Stamp(r.until))
	}
	r.mode("baseline")
	r.why("the source as it was at %s", feed.Stamp(r.until))
	v, err := d.src.ReadInventoryUntil(ctx, o, r.until)
	if err != nil {
		return err
	}
	if v.Backward {
		r.why("made from its Resource List of %s and the changes since", feed.Stamp(v.ListTime()))
	} else {
		r.why("made from its Resource List of %s and the changes up to then", feed.Stamp(v.ListTime()))
	}
	if r.dry {
		_, err := r.compareWith(ctx, o, v)
		return err
	}
	r.atOnce = true
	if why := d.mem.SnapshotMeta().CompareMirror; why != "" { // first, to fetch the untrusted kept ones
		r.why("%s: everything in the mirror is compared", why)
		if err := r.compareMirror(ctx); err != nil {
			v.Close()
			return err
		}
	}
	if err := d.stand.Checkpoint(ctx, ledger.Baseline, func(m *keep.Meta) { d.follow(m); m.At.StandAt(r.until) }); err != nil {
		v.Close()
		return err
	}
	end, err := r.compareWith(ctx, o, v)
	if err != nil {
		return err
	}
	r.complete, r.departs.due = true, true
	return d.stand.Checkpoint(ctx, ledger.Following, func(m *keep.Meta) {
		end(m)
		m.Gap = ""
		m.At.ForgetList()
		m.At.MoveTo(feed.CursorAt(r.until, v.Sequence))
	})
}

// leaveUntil goes on to the present from a mirror of a point in time.
func (r *run) leaveUntil(ctx context.Context) error {
	d := r.d
	m := d.mem.SnapshotMeta()
	if !m.At.IsPast() {
		return nil
	}
	r.why("the mirror stood at %s, as was asked for, and goes on to the present", feed.Stamp(m.At.Until()))
	again := m.At.Cursor().Sequence() == nil // lists without numbers may not tell whether they reach back to then
	r.full = r.full || again
	return d.mem.SaveMeta(ctx, func(m *keep.Meta) {
		if m.At.StandAt(time.Time{}); again {
			m.OweSource("the mirror was one of a time")
		}
	})
}
