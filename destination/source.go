package destination

import (
	"github.com/rsbridge/rsbridge/destination/feed"
	"github.com/rsbridge/rsbridge/destination/keep"
)

// source is what the engine asks of a source, noun by noun. It knows no implementer.
type source struct {
	feed.Feed
	feed.Finder
	feed.Lists
	feed.Log
	packages feed.Packages
}

// sourceOf reads for d.
func sourceOf(d *Destination) source {
	o := d.reads
	o.Keeper = positionOf{d}
	if d.planning != nil {
		o.Plan = d.planning
	}
	src := feed.New(o)
	return source{src, src, src, src, src.Docs}
}

// readingOf is how a source is read by its configuration.
func readingOf(cfg *keep.Config, lim *limits) feed.Options {
	return feed.Options{Source: cfg.Source, Set: cfg.Set, Limits: &lim.Limits.Limits, Settings: cfg.Settings, TempDir: cfg.TempDir}
}
