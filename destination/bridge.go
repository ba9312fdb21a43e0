package destination

import (
	"context"
	"errors"

	"github.com/rsbridge/rsbridge/destination/feed"
)

// bridgeGap applies the changes between the cursor and the present lists from archives, or from
// a Change Dump. It tells whether the gap is closed; if not, nothing is changed but what they
// had in order.
func (r *run) bridgeGap(ctx context.Context, o *feed.Offer, poll *feed.Poll) (bool, error) {
	d := r.d
	m := d.mem.SnapshotMeta()
	if m.At.Cursor().Time().IsZero() {
		return false, nil
	}
	bridges, err := poll.Bridges(ctx)
	if err != nil {
		return false, err
	}
	for i, b := range bridges {
		end, closed, err := r.applyBridge(ctx, o, b)
		if closed {
			r.why("closed from %s", b.Name)
			r.mode("incremental")
			w := r.window(o, r.stands())
			b.Cross(ctx, &w.at, end)
			return true, w.finish(ctx, poll)
		}
		if err != nil && (i == len(bridges)-1 || ctx.Err() != nil || d.ownFailure(err)) {
			return false, err
		}
		if err != nil {
			d.mem.Log.Warn("gap: a way to close it could not be used", "way", b.Name, "error", err)
		}
	}
	return false, nil
}

// applyBridge applies the changes of a bridge. closed tells whether they close the gap.
func (r *run) applyBridge(ctx context.Context, o *feed.Offer, b *feed.Bridge) (end *feed.Cursor, closed bool, err error) {
	d := r.d
	from := r.stands()
	w := r.window(o, from)
	defer w.close()
	ok, err := b.EachChange(ctx, from, func(c feed.Change) error { return w.add(ctx, c) })
	if err == nil && ok && w.ahead != nil {
		err = w.ahead.Dropped()
	}
	var gap *feed.GapError
	if errors.As(err, &gap) {
		d.mem.Log.Info("the gap stays", "why", gap.Why)
		return nil, false, nil
	}
	if err != nil || !ok {
		return nil, false, err
	}
	w.stays = false
	if err := w.apply(ctx, nil); err != nil {
		return nil, false, err
	}
	return &w.at, true, nil
}
