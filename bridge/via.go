package bridge

import (
	"context"
	"maps"
	"slices"

	"github.com/rsbridge/rsbridge/internal/webguard"
)

// via are the sources of the mirrors that a set publishes on: of destinations that
// write into a graph which the set covers. The default graph of some stores is the
// union of all; a mirror in a named graph is counted only when the set names it.
func (c *Config) via(s Set) (out []string) {
	for _, name := range c.viaDestinations(s) {
		source, _, _ := webguard.Hide(c.Destinations[name].Source) // who asks is nobody else's business
		if source = webguard.WithoutHidden(source); !slices.Contains(out, source) {
			out = append(out, source)
		}
	}
	return out
}

// origin gives the address at its source of what an entity of the set was mirrored
// from; nil when the set is over no mirror.
func (s *set) origin() func(ctx context.Context, entity string) string {
	names := s.bridge.cfg.viaDestinations(s.cfg)
	if len(names) == 0 {
		return nil
	}
	return func(ctx context.Context, entity string) string {
		for _, name := range names {
			d, err := s.bridge.Destination(name)
			if err != nil {
				continue // it is told elsewhere
			}
			loc, err := d.Origin(ctx, entity)
			if err != nil && ctx.Err() == nil {
				s.bridge.log.Warn("where a description was mirrored from cannot be read", "set", s.name, "destination", name, "error", err)
			}
			if loc, _ = webguard.WithoutUser(loc); loc != "" {
				return webguard.WithoutHidden(loc)
			}
		}
		return ""
	}
}

// viaDestinations are the destinations that write into what the set covers, by
// name.
func (c *Config) viaDestinations(s Set) (out []string) {
	for _, name := range slices.Sorted(maps.Keys(c.Destinations)) {
		d := c.Destinations[name]
		if d.Store != s.Store {
			continue
		}
		covered := slices.Contains(s.Graphs, "*")
		if d.Graph != "per-entity" {
			covered = covered || d.GraphIRI == "" && len(s.Graphs) == 0 || d.GraphIRI != "" && slices.Contains(s.Graphs, d.GraphIRI)
		}
		if covered {
			out = append(out, name)
		}
	}
	return out
}
