package destination

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/rsbridge/rsbridge/destination/feed"
	"github.com/rsbridge/rsbridge/destination/item"
	"github.com/rsbridge/rsbridge/destination/keep"
	"github.com/rsbridge/rsbridge/destination/pairs"
)

// A list may be wrong: a part of it, an old copy, another source's. The effects of one list alone
// rest on it until the next list, or the source's inventory, agrees. Later changes do not repeat
// the entries left out of a list.

// lookBack has the mirror compared if a Change List that was read before tells other changes now.
func lookBack(ctx context.Context, r *run, o *feed.Offer) error {
	d := r.d
	m := d.mem.SnapshotMeta()
	if r.dry || r.compared || !o.Followed() || !o.Listed() || m.At.IsPast() {
		return nil
	}
	c := *m.At.Cursor()
	why, asked, err := d.src.LooksBack(ctx, &c, r.way.found != nil)
	if err != nil || !asked {
		return err
	}
	return d.mem.SaveMeta(ctx, func(m *keep.Meta) {
		if m.At.MoveTo(c); why != "" {
			m.Recheck.Why = why
		}
	})
}

// compareDue makes the due comparison, after the changes were applied: it finds differences
// without a change. The cursor stays.
func (r *run) compareDue(ctx context.Context, o *feed.Offer) error {
	d := r.d
	m := d.mem.SnapshotMeta()
	due := m.Recheck
	switch {
	case r.dry || r.compared || due == (keep.Recheck{}) || !o.Followed() || m.At.IsPast():
		return nil
	case !o.Listed(): // the changes alone tell what the source has
		return d.mem.SaveMeta(ctx, func(m *keep.Meta) { m.Recheck = keep.Recheck{} })
	case strings.HasPrefix(m.HeldGap, "gap:"): // a person decides
		return nil
	case due.Why == "" && (m.HeldGap != "" || m.Lost() != ""):
		return nil
	case due.Why == "" && o.ResourceList == "": // a dump is too expensive for this
		why, err := d.anotherDump(ctx, o, &m)
		if err != nil || why == "" {
			return err
		}
		m.Recheck.Why = why
	}
	err := r.compareNext(ctx, o, &m)
	if err == nil || due.Why != "" || ctx.Err() != nil || d.ownFailure(err) {
		return err
	}
	d.mem.Log.Warn("the mirror rests on one list, and the next one cannot be had", "error", err)
	return nil
}

// anotherDump is why a Resource Dump disagrees with what was taken, "" if it does not. Of two dumps of
// the same time one is wrong, and so may be a list without an offer.
func (d *Destination) anotherDump(ctx context.Context, o *feed.Offer, m *keep.Meta) (why string, err error) {
	if m.At.HasList() && !m.At.HasTaken(o.ResourceDump) {
		return "the source does not offer the list that was taken", nil
	}
	same, another, err := d.src.DumpIs(ctx, o)
	if err != nil {
		d.mem.Log.Warn("the mirror rests on one Resource Dump, and it cannot be had again", "error", err)
		return "", nil
	}
	switch {
	case another:
		return "the Resource Dump is another one than was taken", nil
	case !same:
		contradicted, err := d.contradicted(ctx, o)
		if err != nil || contradicted {
			return "the Change Lists tell otherwise than the Resource Dump that was taken", err
		}
		return "", d.mem.SaveMeta(ctx, func(m *keep.Meta) { m.Recheck = keep.Recheck{} })
	case d.opt.Now().Sub(m.Recheck.Next) >= feed.DoubtLasts:
		return "", d.mem.SaveMeta(ctx, func(m *keep.Meta) { m.Recheck = keep.Recheck{} })
	}
	return "", nil
}

// contradicted tells whether the last offered change of some resource has another end than the mirror: once
// the source has a newer dump, it may be the taken one that was wrong.
func (d *Destination) contradicted(ctx context.Context, o *feed.Offer) (bool, error) {
	v, err := feed.NewInventory(d.cfg.TempDir, d.cfg.MemoryBytes/8)
	if err != nil {
		return false, err
	}
	defer v.Close()
	if _, err := d.src.AddChanges(ctx, o, v); err != nil {
		d.mem.Log.Info("the changes cannot be read again, beside a newer Resource Dump", "error", err)
		return false, ctx.Err()
	}
	snap := d.mem.Store.Snapshot(ctx)
	defer snap.Close()
	for p, err := range pairs.WithFaults(ctx, d.mem.Ledger, pairs.Of(ctx, d.mem.Ledger, v, snap)) {
		switch {
		case err != nil:
			return false, err
		case p.Item == nil, p.Fault != nil, p.There() == p.Here(), d.obtains.Select.Outside(p.Item):
			continue
		}
		if l, err := d.mem.Ledger.Leaving(ctx, p.Loc); l == nil || err != nil {
			return err == nil, err
		}
	}
	return false, nil
}

func (r *run) compareNext(ctx context.Context, o *feed.Offer, m *keep.Meta) error {
	d := r.d
	proven, err := d.provenByInventory(ctx, o)
	if err != nil {
		return err
	}
	done := func() error { return d.mem.SaveMeta(ctx, func(m *keep.Meta) { m.Recheck = keep.Recheck{} }) }
	if proven {
		return done()
	}
	when := feed.Always
	if m.Recheck.Why == "" {
		when = feed.UnlessSameBytes
	}
	v, err := d.src.ReadInventory(ctx, o, when)
	if errors.Is(err, feed.ErrUnchanged) {
		if d.opt.Now().Sub(m.Recheck.Next) >= feed.DoubtLasts {
			return done()
		}
		return nil
	}
	if err != nil {
		return err
	}
	if v.Stale(m.At.Cursor()) {
		if m.At.IsAfter(v) {
			r.rep.Held = fmt.Sprintf("the Resource List is of %s, and one of %s was taken: the mirror is compared with the next newer one", feed.Stamp(v.ListTime()), feed.Stamp(m.At.ListTime()))
		}
		return errors.Join(d.forgetUnlisted(ctx, v), v.Close())
	}
	v.Sparing = m.Recheck.Why == ""
	before := r.c
	if err := r.mend(ctx, o, v); err != nil {
		return err
	}
	r.c.Unchanged, r.c.Outside = before.Unchanged, before.Outside // they were counted
	if why := m.Recheck.Why; why != "" {
		r.mode("baseline")
		r.why("%s: compared with what the source lists", why)
	} else if n := r.c.Changed() - before.Changed(); n > 0 {
		r.mode("baseline")
		r.why("the next Resource List has %d resources otherwise than the one before", n)
	}
	return nil
}

// mend makes the mirror equal to an inventory, closes it, and keeps the cursor: the promises of a
// list may be too weak to replace changes. The cursor never stands behind the mirror: a source set
// back to there would seem to go on.
func (r *run) mend(ctx context.Context, o *feed.Offer, v *feed.Inventory) error {
	d := r.d
	end, err := r.compareWith(ctx, o, v)
	if err != nil {
		return err
	}
	return d.mem.SaveMeta(ctx, func(m *keep.Meta) {
		before := *m.At.Cursor()
		end(m)
		if !m.At.IsPast() {
			m.CloseGap()
		}
		if later := before.Sequence() != nil && m.At.Cursor().Number() > before.Number(); o.Followed() && !(later && o.ChangeList == "") { // else a Change Dump is behind the list
			if n := m.At.Cursor().Ahead(); n != nil && !before.Passed(n) {
				before.SetAhead(n)
			}
			m.At.MoveTo(before)
		}
	})
}

// provenByInventory tells whether the source's inventory equals the records.
func (d *Destination) provenByInventory(ctx context.Context, o *feed.Offer) (bool, error) {
	root, err := d.src.InventoryRoot(ctx, o)
	if err != nil || root == nil {
		return false, err
	}
	want, err := item.ParseGraph(root.Digest)
	if err != nil {
		d.mem.Log.Info("the source's inventory is passed over", "why", err)
		return false, nil
	}
	have, err := d.auditOf(o, "store").Recorded(ctx)
	if errors.Is(err, feed.ErrInventory) {
		return false, nil
	}
	return err == nil && have == want, err
}

// recheckAfter is the next due comparison after one with a list or dump. A comparison without a
// difference confirms the list.
func (d *Destination) recheckAfter(confirmed bool) keep.Recheck {
	if confirmed {
		return keep.Recheck{}
	}
	return keep.Recheck{Next: d.opt.Now().UTC()}
}
