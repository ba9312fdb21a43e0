package destination

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
)

// missing is how many triples the graph of the mirror has less than the records
// of all destinations that write into it say; 0 where it cannot be counted.
func (d *Destination) missing(ctx context.Context) (int64, error) {
	if d.mirror.Layout.PerEntity || !d.mirror.Countable() {
		return 0, nil
	}
	var held, owned int64
	both, ctx := errgroup.WithContext(ctx) // the one takes the store as long as the other us
	both.Go(func() (err error) {
		held, err = d.mirror.Count(ctx)
		return err
	})
	both.Go(func() (err error) {
		owned, err = d.owned(ctx)
		return err
	})
	err := both.Wait()
	return max(0, owned-held), err
}

// owned is how many triples the records say that the graph has.
func (d *Destination) owned(ctx context.Context) (n int64, err error) {
	c := mirrorCompare{d: d}
	snap := d.store.Snapshot(ctx)
	defer snap.Close()
	for g, err := range c.groups(ctx, snap) {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return 0, err
		}
		n += int64(len(g.owned) / 16)
	}
	return n, nil
}

// provedComplete notes a comparison where the mirror holds less than was written.
func (r *run) provedComplete(ctx context.Context) error {
	d := r.d
	if d.putsWhole() {
		return nil // its graph is put whole at the end of the run
	}
	d.spaceL.Lock()
	defer d.spaceL.Unlock()
	n, err := d.missing(ctx)
	if err != nil {
		return fmt.Errorf("count what the mirror holds: %w", err)
	}
	if n == 0 {
		return nil
	}
	return d.noteCompare(ctx, fmt.Sprintf("the mirror holds %d triples less than it confirmed", n))
}
