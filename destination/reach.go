package destination

import (
	"context"
	"errors"

	"github.com/rsbridge/rsbridge/destination/feed"
	"github.com/rsbridge/rsbridge/destination/keep"
	"github.com/rsbridge/rsbridge/internal/clip"
	"github.com/rsbridge/rsbridge/internal/webguard"
)

// Reach tells why the source leads to no set that could be followed: it has none, or
// several of which the configuration names no one. It needs no records and no mirror. A
// set that was not scanned yet is right.
func Reach(ctx context.Context, cfg keep.Config, o keep.Options) error {
	lim := defaultLimits()
	reads := readingOf(&cfg, &lim)
	reads.Log = o.Logger
	if err := reads.Connect(feed.Access{Allow: cfg.Allow, Concurrency: cfg.Concurrency, Agent: cfg.UserAgent, Transport: o.Transport}); err != nil {
		return err
	}
	_, err := feed.New(reads).Discover(ctx)
	if errors.Is(err, feed.ErrNothingYet) {
		return nil
	}
	return err
}

// discover finds the set to be followed, unless it looks wrong beside that of earlier runs.
func (d *Destination) discover(ctx context.Context) (*feed.Offer, error) {
	d.opt.Progress("waits for "+clip.Middle(webguard.Masked(d.cfg.Source)), 0, 0)
	o, err := d.src.Discover(ctx)
	d.opt.Progress("compare", 0, 0)
	if err == nil {
		err = d.accept(ctx, o)
	}
	return o, err
}

// way is how a run came to the documents of its source.
type way struct {
	looks bool               // it is looked at in any case
	led   bool               // to another place than before
	found *feed.Offer        // nil: it was not looked at
	root  *feed.InventoryDoc // of the source at the run's beginning, if nothing else tells its position
}

// find finds the set, and looks at the way to it only where that is not known by former runs.
func (w *way) find(ctx context.Context, d *Destination) (o *feed.Offer, err error) {
	if !w.looks {
		m := d.mem.SnapshotMeta()
		if o := d.src.Still(ctx, m.At.Cursor()); o != nil {
			return o, d.accept(ctx, o)
		}
	}
	w.found, err = d.discover(ctx)
	return w.found, err
}

// ended is for the end of the run.
func (w *way) ended(d *Destination, inSync bool) {
	switch {
	case !inSync:
		d.src.Trust(nil)
	case w.found != nil:
		d.src.Trust(w.found)
	}
}
