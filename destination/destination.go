package destination

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/rsbridge/rsbridge/destination/apply"
	"github.com/rsbridge/rsbridge/destination/feed"
	"github.com/rsbridge/rsbridge/destination/keep"
	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/destination/obtain"
	"github.com/rsbridge/rsbridge/destination/sink"
	"github.com/rsbridge/rsbridge/internal/embedstore"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/internal/repeats"
	"github.com/rsbridge/rsbridge/internal/webguard"
	"github.com/rsbridge/rsbridge/rdfres"
)

// Destination keeps one mirror. One of Sync, Audit at a time (the caller locks);
// Status and Differences may be called beside them. Several destinations of one
// kv.Store may share a graph.
type Destination struct {
	cfg     *keep.Config
	opt     *keep.Options
	lim     *limits
	repeats *repeats.Lines // of the log
	reads   feed.Options   // of src
	fetch   feed.Traffic
	src     source
	obtains *obtain.Obtainer
	to      sink.Sink
	mirror  *sink.Full
	secrets *webguard.Secrets

	mem      *keep.Memory
	fates    *keep.Fates
	stand    *keep.Standing
	prober   *prober
	applier  *apply.Applier
	leavings *leavings
	putter   *apply.Putter

	planning *planning // of a shadow, nil of any other
	fresh    freshened
}

var (
	spaces sync.Map // of *spaceLock (of a probe *sync.Mutex), by target and graph: writers into one graph take turns
)

// Open opens the records of a destination in store, shared by all destinations of a state. The mirror is in
// the sink to; nothing is asked before the first run. The caller closes store and sink.
func Open(ctx context.Context, store kv.Store, to sink.Sink, cfg keep.Config, o keep.Options) (*Destination, error) {
	if err := cfg.Complete(); err != nil {
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
	if o.Heard == nil {
		o.Heard = func() feed.Heard { return feed.Heard{} }
	}
	if o.Progress == nil {
		o.Progress = func(string, int64, int64) {}
	}
	if o.Plan == nil {
		o.Plan = func(...string) {}
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
	mem := &keep.Memory{Store: store, Writer: keep.RandomHex(8), Log: slog.New(d.repeats.Handler(o.Logger.Handler())).With("destination", cfg.Name)}
	d.reads = readingOf(&cfg, &lim)
	d.reads.MemoryBytes, d.reads.EachChange, d.reads.Pause, d.reads.Now, d.reads.Log, d.reads.Progress = cfg.MemoryBytes, cfg.Keep == "versions", o.Pause, o.Now, mem.Log, o.Progress
	err := d.reads.Connect(feed.Access{Allow: cfg.Allow, Concurrency: cfg.Concurrency, Agent: cfg.UserAgent, Transport: o.Transport})
	if err != nil {
		return nil, fmt.Errorf("destination %s: %w", cfg.Name, err)
	}
	d.fetch = d.reads.Client
	d.cfg.Source, _, d.secrets = webguard.Hide(cfg.Source) // from here on it is recorded, published and printed
	d.assemble(mem, d.to.Address())
	d.src = sourceOf(d)
	var mapping *embedstore.Mapping
	if cfg.Map != "" {
		if mapping, err = embedstore.ParseMapping(cfg.Map); err != nil {
			return nil, fmt.Errorf("destination %s: map: %w", cfg.Name, err)
		}
	}
	place := &sink.Place{Layout: sink.Layout{PerEntity: cfg.Graph == "per-entity"}, Source: d.cfg.Source, Log: d.mem.Log}
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
	if cfg.Freshness > 0 && !d.mirror.Tells() {
		return nil, fmt.Errorf("destination %s: freshness: the mirror takes no SPARQL updates; leave it out", cfg.Name)
	}
	if err := d.openBeside(); err != nil {
		return nil, fmt.Errorf("destination %s: %w", cfg.Name, err)
	}
	if err := d.load(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("destination %s: %w", cfg.Name, err), d.Close())
	}
	d.obtains = obtain.New(obtain.Options{Fetch: d.reads.Client, Packages: d.src.packages, Ledger: d.mem.Ledger, Limits: &d.lim.Limits, Settings: cfg.Settings, Select: cfg.Select, Linked: d.cfg.Linked,
		Map: mapping, AsFiles: d.mirror.Files != nil, KeepFiles: d.stand.Files != nil, Now: o.Now, Log: d.mem.Log})
	return d, ctx.Err()
}

// openMirror opens the mirror in its sink.
func (d *Destination) openMirror(place *sink.Place) error {
	m, err := d.to.Open(place)
	if err != nil {
		return err
	}
	d.useMirror(sink.NewFull(place, m))
	if d.mirror.Files != nil {
		d.stand.Files = &keep.Files{Files: d.mirror.Files, Memory: d.mem, State: func(rec *ledger.Record) rdfres.Digest { return rec.Normal }, Key: func(name ledger.Hash) []byte { return ledger.Key(ledger.KindGraph, d.mem.Space, name) }}
	}
	return d.applier.Open()
}

// load reads or makes the destination's own records.
func (d *Destination) load(ctx context.Context) error {
	defer ledger.LockNumbers()()
	b := d.mem.Store.Batch()
	defer b.Close()
	err := ledger.CheckLayout(ctx, d.mem.Store, b)
	if err != nil {
		return err
	}
	graph := d.cfg.Graph + " " + d.cfg.GraphIRI
	spaceName := ledger.SingleSpace + d.cfg.GraphIRI
	if d.mirror.Layout.PerEntity {
		spaceName = ledger.PerEntity
	}
	if d.mem.Space, err = ledger.NewSpaceID(ctx, d.mem.Store, b, ledger.Space{Target: d.stand.Target, Name: spaceName}); err != nil {
		return err
	}
	if err := d.takeFormer(ctx, b, graph); err != nil {
		return err
	}
	if d.mem.Dest == 0 {
		if d.mem.Dest, err = ledger.NewDestID(ctx, d.mem.Store, b, d.cfg.Name); err != nil {
			return err
		}
	}
	d.mem.Ledger = ledger.New(d.mem.Store, d.mem.Log, d.mem.Dest, d.mem.Space)
	l, _ := spaces.LoadOrStore(d.stand.Target+"\x00"+spaceName, &keep.SpaceLock{})
	d.mem.SpaceLock = l.(*keep.SpaceLock)

	m, found, err := d.mem.Ledger.Load(ctx)
	if err == nil && found {
		d.mem.Meta, err = keep.OpenMeta(m)
	}
	switch {
	case err != nil:
		return err
	case !found:
		d.mem.Meta.Identity = ledger.Identity{Name: d.cfg.Name, Mark: sink.MarkPrefix + keep.RandomHex(16), Graph: graph, Space: d.mem.Space}
		d.follow(&d.mem.Meta)
		d.mem.Ledger.Put(b, d.mem.Meta.Sealed())
	case d.cfg.Relocate:
	case d.mem.Meta.Stage != ledger.None && (d.mem.Meta.Graph != graph || d.mem.Meta.Space != d.mem.Space):
		return d.elsewhere(ctx, graph)
	default:
		d.mem.Meta.Graph, d.mem.Meta.Space = graph, d.mem.Space
		if d.mem.Meta.Name != d.cfg.Name {
			d.mem.Meta.Name = d.cfg.Name
			d.mem.Ledger.Put(b, d.mem.Meta.Sealed())
		}
	}
	d.stand.MarkMirrors(d.mem.Meta.Mark)
	d.mirror.Layout.Authority = d.mem.Meta.Authority
	return b.Commit(ctx, true)
}

// takeFormer makes the records of a renamed destination its own: those of the same source, set and graph,
// without a configuration. Else their triples in the graph would stay for ever, since somebody owns them.
func (d *Destination) takeFormer(ctx context.Context, b kv.Batch, graph string) error {
	if len(d.cfg.Names) == 0 {
		return nil
	}
	metas, err := d.mem.Metas(ctx)
	if err != nil {
		return err
	}
	var former []string
	for name, m := range metas {
		switch {
		case m.Stage == ledger.None:
		case name == d.cfg.Name:
			return nil
		case d.follows(&m.Identity) && m.Graph == graph && m.Space == d.mem.Space && !slices.Contains(d.cfg.Names, name):
			former = append(former, name)
		}
	}
	if len(former) != 1 {
		return nil
	}
	if d.mem.Dest, err = ledger.Rename(ctx, d.mem.Store, b, former[0], d.cfg.Name); err != nil {
		return err
	}
	d.mem.Log.Info("a destination has another name, and goes on with its records", "former", former[0])
	return nil
}

// Close forgets the connections to the source. The records stay with the store.
func (d *Destination) Close() error {
	d.fetch.CloseIdle()
	if d.stand.Beside != nil {
		return d.stand.Beside.Folder.Close()
	}
	return nil
}
