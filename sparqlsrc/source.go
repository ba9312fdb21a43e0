package sparqlsrc

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/rsbridge/rsbridge/internal/settings"
	"github.com/rsbridge/rsbridge/internal/sparql"
)

// Select says which entities are of the set; the zero value is every subject
// that is an IRI. An entity must satisfy each of the three that is given: have
// one of the classes, begin with one of the prefixes, be named by the query.
type Select struct {
	Classes  []string
	Prefixes []string
	Query    string // a SELECT of ?entity; asked over Graphs unless it names graphs itself (FROM, GRAPH)
}

func (s Select) isZero() bool { return len(s.Classes) == 0 && len(s.Prefixes) == 0 && s.Query == "" }

// Config of a source.
type Config struct {
	Name                  string
	Graphs                []string    // nil: the default graph; "*": all
	Others                sparql.Part // graphs that other sets of the same data publish: nothing is read of them, and they are no remainder
	Select                Select
	Describe              string // "cbd" (default), "scbd", "graph" (each named graph is an entity), or a CONSTRUCT with ?entity
	TempDir               string // spill files; removed by Close
	MemoryBytes           int64  // for sorting; default 64 MiB
	MaxDescriptionTriples int    // default 2,000,000: beyond it the entity fails, by name
	MaxDepth              int    // of blank nodes; default 100,000
	BatchSize             int    // entities of the first query where batches are needed; default 200; then as many as the store takes well
	WorkLimit             int    // of naming
	Strategy              string // one of Strategies; "": in one answer, in parts where the store cuts it
	Findings              Findings
	Known                 func(context.Context) (triples int64, err error) // Stats.Triples of the last scan, 0: not known; an answer that brings fewer is always counted. nil: not known
	Names                 settings.Names                                   // of the settings in hints
	Logger                *slog.Logger
	Progress              func(stage string, done, total int64) // stages: "read", "group", "describe", all in triples ("describe" of named entities: in entities); total 0: not known
}

// Findings keep what a probe found for the next process; nil keeps nothing.
type Findings interface {
	// Load gives what was saved last, false when nothing was or it is of another
	// store.
	Load(ctx context.Context) (sparql.Capabilities, bool)
	Save(context.Context, sparql.Capabilities) error
}

// Source reads one store.
type Source struct {
	client    *sparql.Client
	cfg       Config
	log       *slog.Logger
	scbd      bool
	byGraph   bool       // each named graph is an entity
	construct *construct // nil unless Describe is a CONSTRUCT
	many      int64      // manyTriples, less in tests

	lengths lengths
	batch   batchSize
	twins   twins

	mu     sync.Mutex
	probed *sparql.Capabilities
}

// New makes a source; it sends nothing. Close of the client stays with the caller.
func New(c *sparql.Client, cfg Config) (*Source, error) {
	if c == nil {
		return nil, fmt.Errorf("source %q: no store", cfg.Name)
	}
	return newSource(c, cfg)
}

// CheckGraphs tells whether names can be Config.Graphs.
func CheckGraphs(graphs []string) error {
	for _, g := range graphs {
		switch {
		case sparql.IsOwnGraph(g):
			return fmt.Errorf("graph %s is of the bookkeeping of rsbridge itself, which is never published", g)
		case g == "*" && len(graphs) > 1:
			return errors.New(`"*" means all graphs and stands alone`)
		case g == "":
			return errors.New("an empty graph name; leave graphs out for the default graph")
		case g != "*":
			if err := CheckIRI(g); err != nil {
				return err
			}
		}
	}
	return nil
}

// shortened are prefixes that stand before names in Turtle and SPARQL; none of them is a scheme of IRIs.
var shortened = strings.Fields("bibo dbo dbr dc dcat dct dcterms foaf owl prov rdf rdfs schema skos void xsd")

// CheckIRI tells whether an IRI is absolute, in full, and can stand in a query.
func CheckIRI(iri string) error {
	u, rest, ok := strings.Cut(iri, ":")
	if !ok || u == "" || strings.ContainsAny(u, "/?#") {
		return fmt.Errorf("%q is no absolute IRI", iri)
	}
	if slices.Contains(shortened, u) && !strings.HasPrefix(rest, "//") {
		return fmt.Errorf("%q has a prefix: write the IRI in full", iri)
	}
	_, err := sparql.EscapeIRI(iri)
	return err
}

// newSource checks the configuration; c is nil where the data is in files.
func newSource(c *sparql.Client, cfg Config) (*Source, error) {
	s := &Source{client: c, cfg: cfg, log: cfg.Logger, many: manyTriples}
	s.lengths.client = c
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.log = s.log.With("source", cfg.Name)
	fail := func(format string, a ...any) (*Source, error) {
		return nil, fmt.Errorf("source %q: %w", cfg.Name, fmt.Errorf(format, a...))
	}
	if err := CheckGraphs(cfg.Graphs); err != nil {
		return fail("graphs: %w", err)
	}
	s.cfg.Graphs = slices.Compact(slices.Sorted(slices.Values(cfg.Graphs)))
	for _, class := range cfg.Select.Classes {
		if err := CheckIRI(class); err != nil {
			return fail("select classes: %w", err)
		}
	}
	if q := cfg.Select.Query; q != "" {
		if err := CheckSelect(q); err != nil {
			return fail("select query: %w", err)
		}
	}
	switch cfg.Describe {
	case "", "cbd":
	case "scbd":
		s.scbd = true
	case "graph":
		s.byGraph = true
	default:
		var err error
		if s.construct, err = parseConstruct(cfg.Describe); err != nil {
			return fail("describe: %w", err)
		}
	}
	if err := CheckStrategy(cfg.Strategy, cfg.Describe); err != nil {
		return fail("%w", err)
	}
	d := &s.cfg
	if d.MemoryBytes <= 0 {
		d.MemoryBytes = 64 << 20
	}
	if d.MaxDescriptionTriples <= 0 {
		d.MaxDescriptionTriples = 2_000_000
	}
	d.MaxDescriptionTriples = min(d.MaxDescriptionTriples, math.MaxInt/4) // four times as many are rows that may come
	if d.MaxDepth <= 0 {
		d.MaxDepth = 100_000
	}
	if d.BatchSize <= 0 {
		d.BatchSize = 200
	}
	s.batch.begin(d.BatchSize)
	if d.Progress == nil {
		d.Progress = func(string, int64, int64) {}
	}
	if d.Known == nil {
		d.Known = func(context.Context) (int64, error) { return 0, nil }
	}
	return s, nil
}

// Capabilities is what is known of the store, by a probe that reads only. It is
// made once, and by a later scan again where it may not be right any more (recheck);
// one that was kept (Config.Findings) serves if its sample was as large as a sample
// may be and all its questions were answered.
func (s *Source) Capabilities(ctx context.Context) (sparql.Capabilities, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.probed != nil {
		return *s.probed, nil
	}
	caps, known := s.kept(ctx)
	if !known {
		var err error
		if caps, err = s.client.Probe(ctx, sparql.ProbeOptions{Graphs: s.cfg.Graphs, Brief: true}); err != nil {
			return caps, err
		}
	}
	if len(caps.Readings) == 0 {
		return caps, caps.NoReading()
	}
	s.batch.bound(caps.ValuesLimit)
	s.probed = &caps
	if !known && s.cfg.Findings != nil {
		if err := s.cfg.Findings.Save(ctx, caps); err != nil {
			return caps, fmt.Errorf("keep what was found of the store: %w", err)
		}
	}
	return caps, nil
}

// kept is what an earlier process found, if the store is still the same.
func (s *Source) kept(ctx context.Context) (sparql.Capabilities, bool) {
	if s.cfg.Findings == nil {
		return sparql.Capabilities{}, false
	}
	caps, ok := s.cfg.Findings.Load(ctx)
	if !ok || !caps.WellSampled() || len(caps.Readings) == 0 || len(caps.Unanswered) > 0 {
		return caps, false
	}
	product, version, err := s.client.Who(ctx)
	return caps, err == nil && product == caps.Product && version == caps.Version
}

// recheck forgets what is known when the store is another than it was, when that was
// long ago, when the store was so small or so busy that little could be known.
func (s *Source) recheck(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.probed == nil || s.cfg.Findings == nil {
		return
	}
	known, err := s.cfg.Known(ctx)
	_, fresh := s.cfg.Findings.Load(ctx)
	product, version, errWho := s.client.Who(ctx)
	switch {
	case errWho == nil && (product != s.probed.Product || version != s.probed.Version):
		s.log.Info("the store is another than it was; it is probed again", "was", s.probed.Product+" "+s.probed.Version, "is", product+" "+version)
	case fresh && len(s.probed.Unanswered) == 0 && (s.probed.WellSampled() || err != nil || !sparql.FillsSample(known)):
		return
	}
	s.probed = nil
	s.batch.begin(s.cfg.BatchSize)
	s.lengths.forget()
}

// SetCapabilities spares the probe where the caller has made one already.
func (s *Source) SetCapabilities(caps sparql.Capabilities) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.probed = &caps
}

// with is a source of the same store for a part of a scan: other settings, the same limits.
func (s *Source) with(cfg Config, batch int) *Source {
	o := &Source{client: s.client, cfg: cfg, log: s.log, many: s.many}
	o.lengths.client, o.lengths.limit = s.client, s.lengths.lastShort()
	o.batch.begin(batch)
	return o
}
