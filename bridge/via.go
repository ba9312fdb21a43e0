package bridge

import (
	"maps"
	"net/url"
	"slices"
)

// via are the sources of the mirrors that a set publishes on: of destinations that
// write into a graph which the set covers. The default graph of some stores is the
// union of all; a mirror in a named graph is counted only when the set names it.
func (c *Config) via(s Set) (out []string) {
	for _, name := range slices.Sorted(maps.Keys(c.Destinations)) {
		d := c.Destinations[name]
		if d.Store != s.Store {
			continue
		}
		covered := slices.Contains(s.Graphs, "*")
		if d.Graph != "per-entity" {
			covered = covered || d.GraphIRI == "" && len(s.Graphs) == 0 || d.GraphIRI != "" && slices.Contains(s.Graphs, d.GraphIRI)
		}
		u, err := url.Parse(d.Source)
		if !covered || err != nil {
			continue
		}
		u.User = nil // nobody else's business
		if source := u.String(); !slices.Contains(out, source) {
			out = append(out, source)
		}
	}
	return out
}
