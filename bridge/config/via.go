package config

import (
	"maps"
	"slices"

	"github.com/rsbridge/rsbridge/internal/webguard"
)

// Via are the sources of the mirrors that a set publishes on: of destinations that
// write into a graph which the set covers. The default graph of some stores is the
// union of all; a mirror in a named graph is counted only when the set names it.
func (c *Config) Via(s Set) (out []string) {
	for _, name := range c.ViaDestinations(s) {
		source, _, _ := webguard.Hide(c.Destinations[name].Source) // who asks is nobody else's business
		if source = webguard.WithoutHidden(source); !slices.Contains(out, source) {
			out = append(out, source)
		}
	}
	return out
}

// ViaDestinations are the destinations that write into what the set covers, by
// name.
func (c *Config) ViaDestinations(s Set) (out []string) {
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
