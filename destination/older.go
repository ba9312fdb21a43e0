package destination

import (
	"context"
	"errors"

	"github.com/rsbridge/rsbridge/destination/apply"
	"github.com/rsbridge/rsbridge/destination/feed"
	"github.com/rsbridge/rsbridge/destination/item"
	"github.com/rsbridge/rsbridge/destination/keep"
	"github.com/rsbridge/rsbridge/destination/pairs"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// A Resource List or Dump may be older than the one that was taken: a cache gives an old copy, or
// the source was set back. An older list is asked for again, past caches. Then
//
//   - a source with changes is believed: its list and its changes agree that it was set back;
//   - of a source without changes the list waits (doubtLasts), and nothing is changed. A later poll
//     that finds it still older takes it; sync with Full takes it at once.

// agrees tells of an older list equal to the mirror, and not out of a cache: taking it loses
// nothing. If it lacks only failed resources, the newer one was wrong. A dump has old bytes: it
// needs an equal hash of each resource.
func (d *Destination) agrees(ctx context.Context, v *feed.Inventory, dump bool) (bool, error) {
	if v.Copied {
		return false, nil
	}
	snap := d.mem.Store.Snapshot(ctx)
	defer snap.Close()
	for p, err := range pairs.WithFaults(ctx, d.mem.Ledger, pairs.Of(ctx, d.mem.Ledger, v, snap)) {
		if err != nil {
			return false, err
		}
		if p.Disagrees() && (p.Here() || p.Fault == nil) {
			return false, nil
		}
		if dump && p.There() && p.Here() {
			if is, _ := p.Item.Differs(p.Record); is != item.ProvenSame {
				return false, nil
			}
		}
	}
	return true, nil
}

// olderDump reads an older Resource Dump, once. It is nil unless the dump is equal to the mirror.
func (r *run) olderDump(ctx context.Context, o *feed.Offer, m *keep.Meta, v *feed.Inventory) (*feed.Inventory, error) {
	d := r.d
	if v.Copied || m.At.HasRefused(v) {
		return nil, nil
	}
	all, err := d.src.ReadInventory(ctx, o, feed.Always)
	if err != nil {
		d.mem.Log.Warn("the Resource Dump is older than the one that was taken, and cannot be compared with the mirror", "error", err)
		return nil, ctx.Err()
	}
	same, err := d.agrees(ctx, all, true)
	if err == nil && same {
		return all, nil
	}
	return nil, errors.Join(err, all.Close(), d.mem.SaveMeta(ctx, func(m *keep.Meta) { m.At.Refuse(v) }))
}

// forgetUnlisted forgets what only a list named that is not served any more, and could not be had.
// v is not taken. The list that named it is not known any more: it is compared when it is back.
func (d *Destination) forgetUnlisted(ctx context.Context, v *feed.Inventory) error {
	if v.Copied || v.Unread.Why() != "" || d.mem.Ledger.NoFaults() {
		return nil
	}
	snap := d.mem.Store.Snapshot(ctx)
	defer snap.Close()
	b := d.applier.Batch(ctx, &apply.Counts{}, false)
	defer b.Wait()
	n := 0
	for p, err := range pairs.WithFaults(ctx, d.mem.Ledger, pairs.Of(ctx, d.mem.Ledger, v, snap)) {
		if err != nil {
			return err
		}
		if p.Item != nil || p.Here() || !p.FailsOfList() {
			continue
		}
		n++
		if err := b.Add(ctx, &apply.Op{Loc: p.Loc, Settle: true}); err != nil {
			return err
		}
	}
	if n == 0 {
		return nil
	}
	if err := b.Settle(ctx); err != nil {
		return err
	}
	return d.mem.SaveMeta(ctx, func(m *keep.Meta) {
		m.At.DoubtList()
		m.Recheck.Next = d.opt.Now().UTC()
	})
}

// waitOlder keeps why a list or dump is not taken.
func (r *run) waitOlder(ctx context.Context, kind resourcesync.Capability, v *feed.Inventory) error {
	d := r.d
	r.why("the list is older than the one before, and nothing was changed")
	return d.mem.SaveMeta(ctx, func(m *keep.Meta) { m.At.WaitFor(kind, v, d.opt.Now()) })
}
