package keep

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"strings"
	"time"

	"github.com/rsbridge/rsbridge/destination/feed"
	"github.com/rsbridge/rsbridge/destination/sink"
	"github.com/rsbridge/rsbridge/internal/settings"
)

// Config of a destination.
type Config struct {
	Name           string
	Names          []string // of all destinations of this state; nil: unknown
	Source         string   // site, well-known address, Source Description, Capability List, Resource List, Change List, Resource Dump
	Set            string   // name or address of the set when the source has several
	Graph          string   // "single" (default) or "per-entity"
	GraphIRI       string   // single: the graph, "" the default graph; per-entity: template with {entity}, default "{entity}"
	MaxDeleteRatio float64  // default 0.2; 1 or more: everything may go; less than 0: no share of them, only a few at once
	Adopt          bool     // take over a graph with data; triples unknown to the source are extra then
	OnGap          string   // "baseline" (default) or "stop"
	Keep           string   // "current" (default), "deleted" (nothing is ever removed) or "versions" (old versions are kept in the state: Versions)
	Allow          []string // hosts (host or host:port) beside the source's own
	Linked         []string // relations from a page to its RDF; nil: describedby and alternate
	Select         struct{ Classes, Prefixes []string }
	Map            string        // a CONSTRUCT over each description before it is stored; ?entity is its entity
	Files          string        // folder for non-RDF resources, at the paths of their addresses; "": they are only counted
	Provenance     bool          // keep origin, time and digest of each description in the mirror's state graph
	Freshness      time.Duration // between two writes of the mirror's freshness into its state graph; 0: none
	Concurrency    int           // fetches at once; default 8
	// Of one representation, unpacked; beyond them it fails, by name. Defaults 256 MiB,
	// 5,000,000.
	MaxResourceBytes, MaxResourceTriples int64
	MaxPackageBytes                      int64         // of a dump, packed and each of its members; default 64 GiB
	Timeout                              time.Duration // until an answer of the source begins; half of it may pass without a byte. Default 2m
	TempDir                              string        // packages, two at once, and sorting; default: the system's
	MemoryBytes                          int64         // for batches and sorting; default 64 MiB
	UserAgent                            string        // of each request to the source; default webclient.Agent

	Settings settings.Names // of the settings in hints

	Relocate bool // relocate opens records of a mirror at another address, see Relocate
}

// Options of Open.
type Options struct {
	Transport http.RoundTripper // nil: its own
	Now       func() time.Time
	Logger    *slog.Logger
	Progress  func(stage string, done, total int64) // total is 0 while it is not known
	Plan      func(stages ...string)                // all stages of a run in their order, if they are known; may be left out
	Heard     func() feed.Heard                     // of the source by notifications; nil: nothing
	Pause     time.Duration                         // between two polls of Wait; default 1m
	Wake      <-chan struct{}                       // ends Wait, as a hub's callback may; nil: polls alone
}

func (c *Config) Complete() error {
	if c.Name == "" {
		return errors.New("a destination needs a name")
	}
	switch c.Graph {
	case "":
		c.Graph = "single"
	case "single", "per-entity":
	default:
		return fmt.Errorf("graph %q: single or per-entity", c.Graph)
	}
	if c.Graph == "per-entity" {
		if c.GraphIRI == "" {
			c.GraphIRI = "{entity}"
		}
		if !strings.Contains(c.GraphIRI, "{entity}") {
			return fmt.Errorf("graph_iri %q: a template for per-entity graphs has {entity} in it", c.GraphIRI)
		}
	} else if c.GraphIRI != "" {
		if sink.IsOwnGraph(c.GraphIRI) {
			return fmt.Errorf("graph_iri %q: this graph is for rsbridge's own bookkeeping", c.GraphIRI)
		}
		if err := sink.CheckIRI("<" + c.GraphIRI + ">"); err != nil {
			return fmt.Errorf("graph_iri: %w", err)
		}
	}
	switch c.OnGap {
	case "":
		c.OnGap = "baseline"
	case "baseline", "stop":
	default:
		return fmt.Errorf("on_gap %q: baseline or stop", c.OnGap)
	}
	switch c.Keep {
	case "":
		c.Keep = "current"
	case "current", "deleted", "versions":
	default:
		return fmt.Errorf("keep %q: current, deleted or versions", c.Keep)
	}
	if math.IsNaN(c.MaxDeleteRatio) {
		return errors.New("max_delete_ratio: it is no number")
	}
	if c.MaxDeleteRatio == 0 {
		c.MaxDeleteRatio = 0.2
	}
	if c.Concurrency <= 0 {
		c.Concurrency = 8
	}
	if c.MemoryBytes <= 0 {
		c.MemoryBytes = 64 << 20
	}
	return nil
}
