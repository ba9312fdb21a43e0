package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime/pprof"
	"time"

	"github.com/rsbridge/rsbridge/bridge"
	"github.com/rsbridge/rsbridge/internal/simulate"
	"github.com/rsbridge/rsbridge/internal/teststores"
)

// server is a store product of others, with the promised ratios.
type server struct {
	name, env              string
	query, update, data    string  // below the address in env
	scan, rescan, describe float64 // limits of the rows
	increment              float64
	at                     string // the address, if it is not in env
}

var servers = []server{
	{"oxigraph", teststores.EnvOxigraph, "/query", "/update", "/store", 1.5, 1.25, 10, 3, ""},
	{"fuseki", teststores.EnvFuseki, "/query", "/update", "/data", 4, 2.5, 50, 10, ""},
	{"rdf4j", teststores.EnvRDF4J, "", "/statements", "/rdf-graphs/service", 1.5, 1.25, 50, 3, ""},
	{"virtuoso", teststores.EnvVirtuoso, "/sparql", "/sparql", "/sparql-graph-crud", 1.5, 1.25, 10, 3, ""},
}

func (s server) store() store {
	base := cmp.Or(s.at, os.Getenv(s.env))
	return store{query: base + s.query, update: base + s.update, data: base + s.data, stop: func() {}}
}

func (s server) rows() []row {
	return []row{
		{id: "scan-" + s.name, what: "first scan, until the log is durable", baseline: "fastest plain download", limit: s.scan, needs: s.env,
			measure: func(ctx context.Context, e *env) (time.Duration, time.Duration, error) {
				return e.besideDownload(ctx, s, true)
			}},
		{id: "rescan-" + s.name, what: "second scan, nothing changed", baseline: "fastest plain download", limit: s.rescan, needs: s.env,
			measure: func(ctx context.Context, e *env) (time.Duration, time.Duration, error) {
				return e.besideDownload(ctx, s, false)
			}},
		{id: "describe-" + s.name, what: "first scan", baseline: "DESCRIBE one by one, from 500", speed: true, limit: s.describe, needs: s.env,
			measure: func(ctx context.Context, e *env) (took, base time.Duration, err error) {
				if base, err = e.describe(ctx, s); err != nil {
					return 0, 0, err
				}
				took, err = e.scan(ctx, s, true)
				return took, base, err
			}},
		{id: "mirror-" + s.name, what: "mirror of all from a dump over HTTP, verified", baseline: "one Graph Store upload", limit: 1.5, needs: s.env,
			measure: func(ctx context.Context, e *env) (time.Duration, time.Duration, error) { return e.baseline(ctx, s) }},
		{id: "increment-" + s.name, what: "1,000 changes into a mirror of all", baseline: "one update request for each, from 100", speed: true, limit: s.increment, needs: s.env,
			measure: func(ctx context.Context, e *env) (time.Duration, time.Duration, error) { return e.increment(ctx, s) }},
	}
}

var hintRow = row{id: "hint", what: "1,000 changes of all that hints name: found, published, mirrored", baseline: "500 changes/s", speed: true, limit: 1, needs: servers[0].env,
	measure: func(ctx context.Context, e *env) (time.Duration, time.Duration, error) {
		return e.hinted(ctx, servers[0])
	}}

// load times a Graph Store upload of the data in one request. Virtuoso gets pieces: in one
// transaction of a million its threads wait for one another for ever.
func (s server) load(ctx context.Context, e *env, graph string) (time.Duration, error) {
	if s.name != "virtuoso" {
		return s.store().load(ctx, e, graph)
	}
	began := time.Now()
	err := s.store().loadInPieces(ctx, e, graph)
	return time.Since(began), err
}

// fill has the data in the bench graph of a server, once for all rows.
func (e *env) fill(ctx context.Context, s server) error {
	if e.filled[s.name] {
		return nil
	}
	st := s.store()
	if err := st.drop(ctx, benchGraph); err != nil {
		return err
	}
	if _, err := s.load(ctx, e, benchGraph); err != nil {
		return err
	}
	e.filled[s.name] = true
	return nil
}

// besideDownload measures a scan, and the fastest plain download of the graph into nothing.
func (e *env) besideDownload(ctx context.Context, s server, first bool) (took, base time.Duration, err error) {
	if err := e.fill(ctx, s); err != nil {
		return 0, 0, err
	}
	way, err := e.fastest(ctx, s)
	if err != nil {
		return 0, 0, err
	}
	if base, err = way(ctx); err != nil {
		return 0, 0, err
	}
	took, err = e.scan(ctx, s, first)
	return took, base, err
}

// fastest is the fastest way to download the whole graph, found by trying each
// of them twice.
func (e *env) fastest(ctx context.Context, s server) (func(context.Context) (time.Duration, error), error) {
	if way := e.ways[s.name]; way != nil {
		return way, nil
	}
	st := s.store()
	ask := func(query, accept string) func(context.Context) (time.Duration, error) {
		return func(ctx context.Context) (time.Duration, error) { return st.ask(ctx, query, accept) }
	}
	rows, triples := "SELECT ?s ?p ?o FROM <"+benchGraph+"> WHERE { ?s ?p ?o }", "CONSTRUCT { ?s ?p ?o } FROM <"+benchGraph+"> WHERE { ?s ?p ?o }"
	ways := map[string]func(context.Context) (time.Duration, error){
		"Graph Store": func(ctx context.Context) (time.Duration, error) {
			return timed(ctx, http.MethodGet, st.graph(benchGraph), "", "application/n-triples", nil)
		},
		"CONSTRUCT":   ask(triples, "application/n-triples"),
		"SELECT TSV":  ask(rows, "text/tab-separated-values"),
		"SELECT JSON": ask(rows, "application/sparql-results+json"),
	}
	if s.name == "rdf4j" {
		ways["SELECT binary"] = ask(rows, "application/x-binary-rdf-results-table")
	}
	var errs []error
	best := time.Duration(0)
	for name, way := range ways {
		for range 2 {
			took, err := way(ctx)
			if err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", name, err))
				break
			}
			fmt.Fprintf(os.Stderr, "%s: %s: %.2f s\n", s.name, name, took.Seconds())
			if best == 0 || took < best {
				best, e.ways[s.name] = took, way
			}
		}
	}
	if best == 0 {
		return nil, fmt.Errorf("no way to download the graph from %s: %w", s.name, errors.Join(errs...))
	}
	return e.ways[s.name], nil
}

// scan times one scan of a server's graph: the first into a fresh state, or the
// second.
func (e *env) scan(ctx context.Context, s server, first bool) (time.Duration, error) {
	dir, err := os.MkdirTemp(e.dir, "scan-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	b, err := e.bridge(ctx, filepath.Join(dir, "state"), s)
	if err != nil {
		return 0, err
	}
	took, err := e.scanned(ctx, b)
	if err == nil && !first {
		took, err = e.scanned(ctx, b)
	}
	return took, errors.Join(err, b.Close())
}

func (e *env) scanned(ctx context.Context, b *bridge.Bridge) (time.Duration, error) {
	stop, err := e.profiled("scan")
	if err != nil {
		return 0, err
	}
	var rep bridge.ScanReport
	err = b.Do(ctx, "scan", "data", nil, &rep)
	if err := errors.Join(err, stop()); err != nil {
		return 0, err
	}
	if rep.Resources != e.n || rep.Failed != 0 {
		return 0, fmt.Errorf("the scan found %d entities of %d, and %d failed", rep.Resources, e.n, rep.Failed)
	}
	return time.Duration(rep.Durable * float64(time.Second)), nil
}

// bridge has a set over the bench graph of a server.
func (e *env) bridge(ctx context.Context, state string, s server) (*bridge.Bridge, error) {
	cfg := bridge.NewConfig()
	cfg.State = state
	cfg.Public, cfg.Admin.Listen = bridge.Public{BaseURL: benchBase}, ""
	st, set := bridge.NewStore(), bridge.NewSet()
	at := s.store()
	st.Query, st.Update, st.GraphStore = at.query, at.update, at.data
	set.Store, set.Schedule, set.Graphs, set.Publish = "server", "", []string{benchGraph}, []string{"resourcelist", "changelist"}
	cfg.Stores["server"], cfg.Sets["data"] = st, set
	return bridge.Open(ctx, cfg, bridge.Options{Command: "bench"})
}

// describe times DESCRIBE of 500 entities one after the other, and computes the time for all of
// them.
func (e *env) describe(ctx context.Context, s server) (time.Duration, error) {
	if err := e.fill(ctx, s); err != nil {
		return 0, err
	}
	const some = 500
	st := s.store()
	began := time.Now()
	for i := range int64(some) {
		query := "DESCRIBE <" + simulate.IRI(i*(e.n/some)) + "> FROM <" + benchGraph + ">"
		if _, err := timed(ctx, http.MethodGet, st.query+"?query="+url.QueryEscape(query), "", "application/n-triples", nil); err != nil {
			return 0, err
		}
	}
	return time.Since(began) / some * time.Duration(e.n), nil
}

// profiled begins a profile of the processor in a file of its own for each call, if -profile names
// a folder; stop ends it.
func (e *env) profiled(what string) (stop func() error, err error) {
	if e.profile == "" {
		return func() error { return nil }, nil
	}
	f, err := os.CreateTemp(e.profile, what+"-*.pprof")
	if err == nil {
		err = pprof.StartCPUProfile(f)
	}
	return func() error {
		pprof.StopCPUProfile()
		allocs, err := os.Create(f.Name() + ".allocs")
		if err != nil {
			return errors.Join(err, f.Close())
		}
		return errors.Join(pprof.Lookup("allocs").WriteTo(allocs, 0), allocs.Close(), f.Close())
	}, err
}
