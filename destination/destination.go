package destination

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rsbridge/rsbridge/destination/feed"
	"github.com/rsbridge/rsbridge/destination/fetch"
	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/destination/obtain"
	"github.com/rsbridge/rsbridge/destination/sink"
	"github.com/rsbridge/rsbridge/internal/embedstore"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/internal/repeats"
	"github.com/rsbridge/rsbridge/internal/settings"
	"github.com/rsbridge/rsbridge/internal/webguard"
	"github.com/rsbridge/rsbridge/rdfres"
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
	Map            string // a CONSTRUCT over each description before it is stored; ?entity is its entity
	Files          string // folder for non-RDF resources, at the paths of their addresses; "": they are only counted
	Provenance     bool   // keep origin, time and digest of each description in the mirror's state graph
	Concurrency    int    // fetches at once; default 8
	// Of one representation, unpacked; beyond them it fails, by name. Defaults 256 MiB,
	// 5,000,000.
	MaxResourceBytes, MaxResourceTriples int64
	MaxPackageBytes                      int64         // of a dump, packed and each of its members; default 64 GiB
	Timeout                              time.Duration // until an answer of the source begins; half of it may pass without a byte. Default 2m
	TempDir                              string        // packages, two at once, and sorting; default: the system's
	MemoryBytes                          int64         // for batches and sorting; default 64 MiB
	UserAgent                            string        // of each request to the source; default webclient.Agent

	Settings settings.Names // of the settings in hints

	relocate bool // relocate opens records of a mirror at another address, see Relocate
}

// Options of Open.
type Options struct {
	Transport http.RoundTripper // nil: its own
	Now       func() time.Time
	Logger    *slog.Logger
	Progress  func(stage string, done, total int64) // total is 0 while it is not known
	Pause     time.Duration                         // between two polls of Wait; default 1m
	Wake      <-chan struct{}                       // ends Wait, as a hub's callback may; nil: polls alone
}

// Destination keeps one mirror. One of Sync, Audit at a time (the caller locks);
// Status and Differences may be called beside them. Several destinations of one
// kv.Store may share a graph.
type Destination struct {
	cfg     *Config
	opt     *Options
	lim     *limits
	repeats *repeats.Lines // of the log
	fetch   *fetch.Client
	src     *feed.Source
	obtains *obtain.Obtainer
	to      sink.Sink
	mirror  *sink.Full
	secrets *webguard.Secrets

	mem      *memory
	fates    *fates
	stand    *standing
	prober   *prober
	applier  *applier
	leavings *leavings
	putter   *putter

	twins    twins     // of the run under way
	planning *planning // of a shadow, nil of any other
}

var (
	spaces sync.Map // of *spaceLock (of a probe *sync.Mutex), by target and graph: writers into one graph take turns
)

// Open opens the records of a destination in store, shared by all destinations of a state. The mirror is in
// the sink to; nothing is asked before the first run. The caller closes store and sink.
func Open(ctx context.Context, store kv.Store, to sink.Sink, cfg Config, o Options) (*Destination, error) {
	if err := cfg.complete(); err != nil {
		return nil, fmt.Errorf("destination %s: %w", cfg.Name, err)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if cfg.Linked == nil {
		cfg.Linked = []string{"describedby", "alternate"}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Progress == nil {
		o.Progress = func(string, int64, int64) {}
	}
	lim := defaultLimits()
	if cfg.MaxResourceBytes > 0 {
		lim.Resource = min(cfg.MaxResourceBytes, math.MaxInt64-1) // one more is asked for
	}
	if cfg.MaxResourceTriples > 0 {
		lim.Triples = cfg.MaxResourceTriples
	}
	if cfg.MaxPackageBytes > 0 {
		lim.Package = min(cfg.MaxPackageBytes, math.MaxInt64-1)
	}
	if cfg.Timeout > 0 {
		lim.Header, lim.Idle = cfg.Timeout, cfg.Timeout/2
	}
	d := &Destination{cfg: &cfg, opt: &o, lim: &lim, to: to, repeats: &repeats.Lines{}}
	mem := &memory{store: store, writer: randomHex(8), log: slog.New(d.repeats.Handler(o.Logger.Handler())).With("destination", cfg.Name)}
	var err error
	if d.fetch, err = fetch.NewClient(cfg.Source, fetch.Options{Allow: cfg.Allow, Names: cfg.Settings, Concurrency: cfg.Concurrency, Agent: cfg.UserAgent, Transport: o.Transport, Limits: &d.lim.Limits.Limits.Limits, Now: o.Now, Log: mem.log}); err != nil {
		return nil, fmt.Errorf("destination %s: %w", cfg.Name, err)
	}
	d.cfg.Source, _, d.secrets = webguard.Hide(cfg.Source) // from here on it is recorded, published and printed
	d.assemble(mem, d.to.Address())
	d.src = sourceOf(d)
	var mapping *embedstore.Mapping
	if cfg.Map != "" {
		if mapping, err = embedstore.ParseMapping(cfg.Map); err != nil {
			return nil, fmt.Errorf("destination %s: map: %w", cfg.Name, err)
		}
	}
	place := &sink.Place{Layout: sink.Layout{PerEntity: cfg.Graph == "per-entity"}, Source: d.cfg.Source, Log: d.mem.log}
	if place.Layout.PerEntity {
		place.Layout.Template = cfg.GraphIRI
	} else {
		place.Layout.Graph = cfg.GraphIRI
	}
	if err := d.openMirror(place); err != nil {
		return nil, fmt.Errorf("destination %s: %w", cfg.Name, err)
	}
	if cfg.Provenance && !d.mirror.Tells() {
		return nil, fmt.Errorf("destination %s: provenance: the mirror takes no SPARQL updates; set provenance: false", cfg.Name)
	}
	if err := d.openBeside(); err != nil {
		return nil, fmt.Errorf("destination %s: %w", cfg.Name, err)
	}
	if err := d.load(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("destination %s: %w", cfg.Name, err), d.Close())
	}
	d.obtains = obtain.New(obtain.Options{Fetch: d.fetch, Docs: d.src.Docs, Ledger: d.mem.led, Limits: &d.lim.Limits, Settings: cfg.Settings, Select: cfg.Select, Linked: d.cfg.Linked,
		Map: mapping, AsFiles: d.mirror.Files != nil, KeepFiles: d.stand.files != nil, Now: o.Now, Log: d.mem.log})
	return d, ctx.Err()
}

// openMirror opens the mirror in its sink.
func (d *Destination) openMirror(place *sink.Place) error {
	m, err := d.to.Open(place)
	if err != nil {
		return err
	}
	d.useMirror(sink.NewFull(place, m))
	if d.mirror.Files == nil {
		d.applier.content = descriptions{d}
		return nil
	}
	d.stand.files = &files{d.mirror.Files, d.mem, func(rec *ledger.Record) rdfres.Digest { return rec.Normal }, func(name ledger.Hash) []byte { return ledger.Key(ledger.KindGraph, d.mem.space, name) }}
	d.applier.content, err = newRepresentations(d)
	return err
}

func (c *Config) complete() error {
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

// load reads or makes the destination's own records.
func (d *Destination) load(ctx context.Context) error {
	defer ledger.LockNumbers()()
	b := d.mem.store.Batch()
	defer b.Close()
	err := ledger.CheckLayout(ctx, d.mem.store, b)
	if err != nil {
		return err
	}
	graph := d.cfg.Graph + " " + d.cfg.GraphIRI
	spaceName := ledger.SingleSpace + d.cfg.GraphIRI
	if d.mirror.Layout.PerEntity {
		spaceName = ledger.PerEntity
	}
	if d.mem.space, err = ledger.NewSpaceID(ctx, d.mem.store, b, ledger.Space{Target: d.stand.target, Name: spaceName}); err != nil {
		return err
	}
	if err := d.takeFormer(ctx, b, graph); err != nil {
		return err
	}
	if d.mem.dest == 0 {
		if d.mem.dest, err = ledger.NewDestID(ctx, d.mem.store, b, d.cfg.Name); err != nil {
			return err
		}
	}
	d.mem.led = ledger.New(d.mem.store, d.mem.log, d.mem.dest, d.mem.space)
	l, _ := spaces.LoadOrStore(d.stand.target+"\x00"+spaceName, &spaceLock{})
	d.mem.spaceL = l.(*spaceLock)

	m, found, err := d.mem.led.Load(ctx)
	if err == nil && found {
		d.mem.meta, err = openMeta(m)
	}
	switch {
	case err != nil:
		return err
	case !found:
		d.mem.meta.Identity = ledger.Identity{Name: d.cfg.Name, Mark: sink.MarkPrefix + randomHex(16), Graph: graph, Space: d.mem.space}
		d.follow(&d.mem.meta)
		d.mem.led.Put(b, d.mem.meta.sealed())
	case d.cfg.relocate:
	case d.mem.meta.Stage != ledger.None && (d.mem.meta.Graph != graph || d.mem.meta.Space != d.mem.space):
		return d.elsewhere(ctx, graph)
	default:
		d.mem.meta.Graph, d.mem.meta.Space = graph, d.mem.space
		if d.mem.meta.Name != d.cfg.Name {
			d.mem.meta.Name = d.cfg.Name
			d.mem.led.Put(b, d.mem.meta.sealed())
		}
	}
	d.stand.markMirrors(d.mem.meta.Mark)
	d.mirror.Layout.Authority = d.mem.meta.Authority
	return b.Commit(ctx, true)
}

func (stand *standing) markMirrors(mark string) {
	stand.mirror.Mark = mark
	if stand.beside != nil {
		stand.beside.Mark = mark
	}
}

// takeFormer makes the records of a renamed destination its own: those of the same source, set and graph,
// without a configuration. Else their triples in the graph would stay for ever, since somebody owns them.
func (d *Destination) takeFormer(ctx context.Context, b kv.Batch, graph string) error {
	if len(d.cfg.Names) == 0 {
		return nil
	}
	metas, err := d.mem.metas(ctx)
	if err != nil {
		return err
	}
	var former []string
	for name, m := range metas {
		switch {
		case m.Stage == ledger.None:
		case name == d.cfg.Name:
			return nil
		case d.follows(&m.Identity) && m.Graph == graph && m.Space == d.mem.space && !slices.Contains(d.cfg.Names, name):
			former = append(former, name)
		}
	}
	if len(former) != 1 {
		return nil
	}
	if d.mem.dest, err = ledger.Rename(ctx, d.mem.store, b, former[0], d.cfg.Name); err != nil {
		return err
	}
	d.mem.log.Info("a destination has another name, and goes on with its records", "former", former[0])
	return nil
}

// metas are the records of all destinations of this state, by their names.
func (mem *memory) metas(ctx context.Context) (map[string]ledger.Known, error) {
	metas := map[string]ledger.Known{}
	for k, err := range ledger.All(ctx, mem.store) {
		if err != nil {
			return nil, err
		}
		metas[k.Name] = k
	}
	return metas, nil
}

func randomHex(bytes int) string {
	b := make([]byte, bytes)
	rand.Read(b)
	return hex.EncodeToString(b)
}

// at is the address of the mirror as it may be printed.
func (stand *standing) at() string {
	return sink.Shown(stand.target)
}

// Close forgets the connections to the source. The records stay with the store.
func (d *Destination) Close() error {
	d.fetch.CloseIdle()
	if d.stand.beside != nil {
		return d.stand.beside.folder.Close()
	}
	return nil
}

// snapshotMeta is a copy of the destination's meta.
func (mem *memory) snapshotMeta() meta {
	mem.mu.Lock()
	defer mem.mu.Unlock()
	return mem.meta
}

// saveMeta changes the record of the destination durably.
func (mem *memory) saveMeta(ctx context.Context, change func(*meta)) error {
	b := mem.store.Batch()
	defer b.Close()
	return mem.commit(ctx, b, change)
}

// commit writes a batch together with a changed meta, all or nothing.
func (mem *memory) commit(ctx context.Context, b kv.Batch, change func(*meta)) error {
	return mem.withMeta(change, func(m *ledger.Meta) error { return mem.led.Commit(ctx, b, m) })
}

// done is commit of the batch with its intent in a slot.
func (mem *memory) done(ctx context.Context, slot byte, b kv.Batch, change func(*meta)) error {
	return mem.withMeta(change, func(m *ledger.Meta) error { return mem.led.Done(ctx, slot, b, m) })
}

func (mem *memory) withMeta(change func(*meta), write func(*ledger.Meta) error) error {
	mem.mu.Lock()
	defer mem.mu.Unlock()
	m := mem.meta
	if change != nil {
		change(&m)
	}
	if err := write(m.sealed()); err != nil {
		return err
	}
	mem.meta = m
	return nil
}

// setAuthority fixes the authority of skolem IRIs for ever at the first sync.
func (stand *standing) setAuthority(ctx context.Context, a string) error {
	if stand.meta.Authority != "" {
		if a != stand.meta.Authority {
			stand.log.Warn("the source has moved; skolem IRIs keep the authority they were made with", "authority", stand.meta.Authority, "now", a)
		}
		return nil
	}
	if a == "" {
		return errors.New("the source has no scheme and host to make skolem IRIs with")
	}
	if err := sink.CheckIRI("<" + a + "/>"); err != nil {
		return err
	}
	if err := stand.saveMeta(ctx, func(m *meta) { m.Authority = a }); err != nil {
		return err
	}
	stand.mirror.Layout.Authority = a
	return nil
}

// wrote counts a write.
func (mem *memory) wrote(m *meta) {
	m.Generation++
	m.Writer = mem.writer
}

func (stand *standing) checkpointOf(m *meta) *sink.Checkpoint {
	cp := &sink.Checkpoint{
		Generation: fmt.Sprint(m.Generation), Writer: m.Writer, Phase: m.phase(), Name: stand.cfg.Name, Source: stand.cfg.Source, Graph: stand.graphName(),
		Time: stand.opt.Now().UTC().Format(time.RFC3339Nano),
	}
	if n := m.Cursor.Sequence(); n != nil {
		cp.Sequence = fmt.Sprint(*n)
	}
	return cp
}

// graphName names the graph in the checkpoint.
func (stand *standing) graphName() string {
	switch {
	case stand.mirror.Layout.PerEntity:
		return stand.mirror.Layout.Template
	case stand.mirror.Layout.Graph == "":
		return "default"
	}
	return stand.mirror.Layout.Graph
}
