package destination

import (
	"context"
	"fmt"
	"time"

	"github.com/rsbridge/rsbridge/destination/apply"
	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/internal/clip"
)

// maxAgain bounds the confirmed answers of one run.
const maxAgain = 1000

// confirmTaken asks again for what earlier runs took without a promise.
func (r *run) confirmTaken(ctx context.Context) error {
	d := r.d
	if r.dry || d.mem.SnapshotMeta().IsPast() {
		return nil
	}
	now := d.opt.Now()
	if d.mem.Ledger.Rest.Lasts(now) {
		return nil
	}
	b := d.applier.Batch(ctx, &r.c, false)
	defer b.Wait()
	snap := d.mem.Store.Snapshot(ctx)
	defer snap.Close()
	n, other := int64(0), int64(0)
	rests, again, next := true, 0, now.Add(24*time.Hour)
	due := func(g *ledger.Doubt) bool {
		at := g.Next()
		switch {
		case g.Run == d.applier.RunName(), !at.IsZero() && again == maxAgain:
			rests = false
			return false
		case !g.Due(now):
			if at.Before(next) {
				next = at
			}
			return false
		case !at.IsZero():
			again++
		}
		rests = false
		return true
	}
	err := d.applier.Pipeline(ctx, d.applier.Doubted(ctx, snap, d.obtains, due), func(o *apply.Outcome) error {
		n++
		d.opt.Progress("confirm", n, 0)
		if o.Err != nil {
			d.mem.Log.Debug("what was received without a promise cannot be confirmed now", "loc", clip.Middle(o.Item.Loc), "error", o.Err)
		} else if b.Again(o) {
			other++
			return b.Take(ctx, o)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if rests {
		d.mem.Ledger.Rest.Until(next)
	}
	if other > 0 {
		r.mode("incremental")
		r.why("%d resources came otherwise than before, without a promise", other)
	}
	return b.Settle(ctx)
}

// provedComplete notes a comparison where the mirror holds less than was written.
func (r *run) provedComplete(ctx context.Context) error {
	d := r.d
	if d.stand.PutsWhole() {
		return nil // its graph is put whole at the end of the run
	}
	d.mem.SpaceLock.Lock()
	defer d.mem.SpaceLock.Unlock()
	n, err := d.putter.Missing(ctx)
	if err != nil {
		return fmt.Errorf("count what the mirror holds: %w", err)
	}
	if n == 0 {
		return nil
	}
	return d.mem.NoteCompare(ctx, fmt.Sprintf("the mirror holds %d triples less than it confirmed", n))
}
