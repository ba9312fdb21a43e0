package config

import (
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/rsbridge/rsbridge/destination"
	"github.com/rsbridge/rsbridge/internal/settings"
	"github.com/rsbridge/rsbridge/internal/sparql"
)

// Endpoint is a remote store, for package sparql.
func (c Store) Endpoint(name string, names settings.Names, log *slog.Logger) sparql.Endpoint {
	return sparql.Endpoint{
		Name: name, Query: c.Query, Update: c.Update, GraphStore: c.GraphStore,
		Username: c.Username, Password: string(c.Password), Timeout: time.Duration(c.Timeout),
		Concurrency: c.Concurrency, Rate: c.Rate, Slow: time.Duration(c.Slow), MaxRows: c.MaxRows, Logger: log.With("component", "sparql", "store", name),
		UserAgent: c.agent, Names: names,
	}
}

// Mirror is the configuration of a destination, for package destination.
func (cfg *Config) Mirror(name, temp string) destination.Config {
	c := cfg.Destinations[name]
	dc := destination.Config{
		Name: name, Names: slices.Sorted(maps.Keys(cfg.Destinations)), Source: c.Source, Set: c.Set, Graph: c.Graph, GraphIRI: c.GraphIRI,
		MaxDeleteRatio: c.MaxDeleteRatio, Adopt: c.Adopt, OnGap: c.OnGap, Keep: c.Keep, Map: c.Map, Files: c.Files, Provenance: c.Provenance, Freshness: time.Duration(c.Freshness), Allow: c.Allow, Linked: c.Linked,
		Concurrency: c.Concurrency, MaxResourceBytes: c.MaxBytes, MaxResourceTriples: c.MaxTriples, MaxPackageBytes: c.MaxPackage, Timeout: time.Duration(c.Timeout), TempDir: temp, MemoryBytes: 32 << 20,
		UserAgent: cfg.UserAgent, Settings: cfg.names,
	}
	if c.MaxDeleteRatio == 0 { // said, not left out
		dc.MaxDeleteRatio = -1
	}
	dc.Select.Classes, dc.Select.Prefixes = c.Select.Classes, c.Select.Prefixes
	return dc
}

// Publishes tells whether a configuration has anything to serve in public: also callbacks of hubs.
func (c *Config) Publishes() bool {
	if slices.ContainsFunc(slices.Collect(maps.Values(c.Stores)), func(s Store) bool { return s.Serve }) {
		return true
	}
	return len(c.Sets) > 0 || slices.ContainsFunc(slices.Collect(maps.Values(c.Destinations)), func(d Destination) bool { return d.Live.Callback != "" })
}

// HubAddress is the address of the built-in hub.
func (c *Config) HubAddress() string { return c.Public.BaseURL + "/hub" }
