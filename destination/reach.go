package destination

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/rsbridge/rsbridge/destination/feed"
	"github.com/rsbridge/rsbridge/destination/fetch"
	"github.com/rsbridge/rsbridge/destination/keep"
	"github.com/rsbridge/rsbridge/internal/clip"
	"github.com/rsbridge/rsbridge/internal/webguard"
)

// Reach tells why the source leads to no set that could be followed: it has none, or
// several of which the configuration names no one. It needs no records and no mirror. A
// set that was not scanned yet is right.
func Reach(ctx context.Context, cfg keep.Config, log *slog.Logger) error {
	lim := defaultLimits()
	c, err := fetch.NewClient(cfg.Source, fetch.Options{Allow: cfg.Allow, Names: cfg.Settings, Concurrency: max(cfg.Concurrency, 1), Agent: cfg.UserAgent, Limits: &lim.Limits.Limits.Limits, Log: log})
	if err != nil {
		return err
	}
	address, _, _ := webguard.Hide(cfg.Source)
	src := feed.New(feed.Options{Source: address, Set: cfg.Set, Client: c, Limits: &lim.Limits.Limits, Settings: cfg.Settings, TempDir: cfg.TempDir, Now: time.Now, Log: log})
	if _, err = src.Discover(ctx); errors.Is(err, feed.ErrNothingYet) {
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
