package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/rsbridge/rsbridge/bridge"
	"github.com/rsbridge/rsbridge/internal/simulate"
	"github.com/rsbridge/rsbridge/internal/teststores"
	"github.com/rsbridge/rsbridge/rdfres"
)

const (
	mirrorGraph = benchGraph + "/mirror"
	uploadGraph = benchGraph + "/upload"
	stateGraph  = "urn:rsbridge:state"
	increment   = 1000 // changes of one
	oneByOne    = 100  // made one by one; the time for all is computed from them
)

// origin is a source of the data with a dump, served on a socket.
type origin struct {
	*bridge.Bridge
	base    string
	server  *http.Server
	beside  sync.Map // path: body, []byte, of documents beside the source's own
	version int64    // of the data, grows with each increment
	dumped  int64    // the version in the dump
}

// origin is made once for all rows.
func (e *env) origin(ctx context.Context) (*origin, error) {
	if e.served != nil {
		return e.served, nil
	}
	store := bridge.NewStore()
	store.Embedded = filepath.Join(e.dir, "origin-store")
	if err := os.RemoveAll(store.Embedded); err != nil { // of an earlier run, with its changes
		return nil, err
	}
	o, err := e.serve(ctx, "origin", store)
	if err != nil {
		return nil, err
	}
	e.served = o
	f, err := os.Open(e.triples)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if _, err := o.LoadStore(ctx, "local", "", rdfres.NTriples, f, false); err != nil {
		return nil, err
	}
	if err := o.scan(ctx, e.n, 0); err != nil {
		return nil, err
	}
	return o, o.dump(ctx)
}

// dump makes the dump of the present version.
func (o *origin) dump(ctx context.Context) error {
	o.dumped = o.version
	return finish(ctx, o.Bridge, "dump:data")
}

// serve opens a source over graphs of a store, and serves it on a socket.
func (e *env) serve(ctx context.Context, name string, store bridge.Store, graphs ...string) (*origin, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	o := &origin{base: "http://" + l.Addr().String()}
	cfg := bridge.NewConfig()
	cfg.State = filepath.Join(e.dir, name)
	if err := os.RemoveAll(cfg.State); err != nil {
		l.Close()
		return nil, err
	}
	cfg.Public, cfg.Admin.Listen = bridge.Public{BaseURL: o.base}, ""
	set := bridge.NewSet()
	set.Store, set.Schedule, set.Graphs, set.Publish = "local", "", graphs, []string{"resourcelist", "changelist", "resourcedump"}
	cfg.Stores["local"], cfg.Sets["data"] = store, set
	if o.Bridge, err = bridge.Open(ctx, cfg, bridge.Options{Command: "bench"}); err != nil {
		l.Close()
		return nil, err
	}
	own := o.PublicHandler()
	o.server = &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if doc, ok := o.beside.Load(r.URL.Path); ok {
			w.Header().Set("Content-Type", "application/xml")
			w.Write(doc.([]byte))
			return
		}
		own.ServeHTTP(w, r)
	})}
	go o.server.Serve(l) // until close
	return o, nil
}

func (o *origin) close() error {
	return errors.Join(o.server.Close(), o.Close())
}

func (o *origin) scan(ctx context.Context, created, updated int64) error {
	var rep bridge.ScanReport
	if err := o.Do(ctx, "scan", "data", nil, &rep); err != nil {
		return err
	}
	if rep.Created != created || rep.Updated != updated || rep.Failed != 0 {
		return fmt.Errorf("the scan found %d created and %d updated, %d failed; expected %d and %d", rep.Created, rep.Updated, rep.Failed, created, updated)
	}
	return nil
}

// change updates entities spread over the data, and publishes the changes.
func (o *origin) change(ctx context.Context, e *env) error {
	o.version++
	for i := range int64(increment) {
		if err := o.update(e.replacement(i, o.version, "")); err != nil {
			return err
		}
	}
	return o.scan(ctx, 0, increment)
}

func (o *origin) update(text string) error {
	rec := httptest.NewRecorder()
	req := httptest.NewRequest(http.MethodPost, "/update", strings.NewReader(text))
	req.Header.Set("Content-Type", "application/sparql-update")
	o.StoreHandler("local").ServeHTTP(rec, req)
	if rec.Code >= 300 {
		return fmt.Errorf("update of the origin: %d: %.300s", rec.Code, rec.Body)
	}
	return nil
}

// replacement is an update for the i-th of the entities of an increment in a graph; "" is the
// default graph.
func (e *env) replacement(i, version int64, graph string) string {
	entity := i * (e.n / increment)
	text := (simulate.World{Seed: 1}).Update(simulate.Step{Kind: "update", Entity: entity, Version: version, N: e.n})
	if graph == "" {
		return text
	}
	return strings.NewReplacer("DELETE {", "WITH <"+graph+"> DELETE {", "DELETE WHERE { ", "DELETE WHERE { GRAPH <"+graph+"> { ", " ?p ?o } ;\nINSERT DATA {", " ?p ?o } } ;\nINSERT DATA { GRAPH <"+graph+"> {").Replace(text) + "}"
}

// named has IRIs for blank nodes, since Virtuoso takes none in INSERT DATA.
func named(text string) string { return node.ReplaceAllString(text, "<http://example.org/node/$1>") }

var node = regexp.MustCompile(`_:(\w+)`)

// mirror is a bridge with a fresh state and a mirror of the origin in a server.
func (e *env) mirror(ctx context.Context, s server, o *origin) (*bridge.Bridge, func() error, error) {
	if err := e.dropKept(); err != nil {
		return nil, nil, err
	}
	s, graph, drop, err := e.empty(ctx, s, mirrorGraph)
	if err != nil {
		return nil, nil, err
	}
	st := s.store()
	if err := st.drop(ctx, stateGraph); err != nil {
		return nil, nil, err
	}
	dir, err := os.MkdirTemp(e.dir, "mirror-")
	if err != nil {
		return nil, nil, err
	}
	cfg := bridge.NewConfig()
	cfg.State = filepath.Join(dir, "state")
	cfg.Public, cfg.Admin.Listen = bridge.Public{BaseURL: benchBase}, ""
	store, dest := bridge.NewStore(), bridge.NewDestination()
	store.Query, store.Update, store.GraphStore = st.query, st.update, st.data
	dest.Source, dest.Store, dest.GraphIRI, dest.Schedule, dest.Audit.Schedule = o.base, "server", graph, "", ""
	cfg.Stores["server"], cfg.Destinations["copy"] = store, dest
	b, err := bridge.Open(ctx, cfg, bridge.Options{Command: "bench"})
	if err != nil {
		return nil, nil, err
	}
	return b, func() error {
		return errors.Join(b.Close(), os.RemoveAll(dir), st.drop(ctx, stateGraph), drop())
	}, nil
}

// empty gives an empty graph of a server, and a function to drop it. RDF4J keeps the values of
// former data in the order of their arrival: its graph is in an empty repository of its own.
// Virtuoso locks its table for minutes while it drops a million triples, and then gives up: there
// every graph has a name of its own and stays.
func (e *env) empty(ctx context.Context, s server, name string) (of server, graph string, drop func() error, err error) {
	e.graphs++
	switch s.name {
	case "rdf4j":
		s.at = fmt.Sprint(os.Getenv(s.env), "-", e.graphs)
		return s, name, func() error { return teststores.DropRepository(ctx, s.at) }, teststores.NewRepository(ctx, s.at)
	case "virtuoso":
		return s, fmt.Sprint(name, "/", e.graphs), func() error { return nil }, nil
	}
	drop = func() error { return s.store().drop(ctx, name) }
	return s, name, drop, drop()
}

func (e *env) synced(ctx context.Context, b *bridge.Bridge, created, updated int64) (time.Duration, error) {
	stop, err := e.profiled("sync")
	if err != nil {
		return 0, err
	}
	began := time.Now()
	var rep bridge.SyncReport
	err = b.Do(ctx, "sync", "copy", nil, &rep)
	took := time.Since(began)
	if err := errors.Join(err, stop()); err != nil {
		return 0, err
	}
	if rep.Created != created || rep.Updated != updated || !rep.InSync {
		return 0, fmt.Errorf("the sync created %d and updated %d, in sync %t; expected %d and %d", rep.Created, rep.Updated, rep.InSync, created, updated)
	}
	return took, nil
}

// hinted measures changes named by hints: found, published and mirrored, against the promised time.
func (e *env) hinted(ctx context.Context, s server) (took, base time.Duration, err error) {
	if err := e.fill(ctx, s); err != nil {
		return 0, 0, err
	}
	if e.hints == nil {
		st := bridge.NewStore()
		at := s.store()
		st.Query, st.Update, st.GraphStore = at.query, at.update, at.data
		if e.hints, err = e.serve(ctx, "hints", st, benchGraph); err != nil {
			return 0, 0, err
		}
		if err := e.hints.scan(ctx, e.n, 0); err != nil {
			return 0, 0, err
		}
		if err := finish(ctx, e.hints.Bridge, "dump:data"); err != nil {
			return 0, 0, err
		}
		if e.hintsMirror, _, err = e.mirror(ctx, s, e.hints); err != nil {
			return 0, 0, err
		}
		if _, err := e.synced(ctx, e.hintsMirror, e.n, 0); err != nil {
			return 0, 0, err
		}
	}
	e.hints.version++
	var args bridge.ScanArgs
	for i := range int64(increment) {
		if err := s.store().run(ctx, e.replacement(i, e.hints.version, benchGraph)); err != nil {
			return 0, 0, err
		}
		args.Entities = append(args.Entities, simulate.IRI(i*(e.n/increment)))
	}
	began := time.Now()
	var rep bridge.ScanReport
	if err := e.hints.Do(ctx, "scan", "data", args, &rep); err != nil {
		return 0, 0, err
	}
	if rep.Updated != increment {
		return 0, 0, fmt.Errorf("the hints found %d changes of %d", rep.Updated, increment)
	}
	if _, err := e.synced(ctx, e.hintsMirror, 0, increment); err != nil {
		return 0, 0, err
	}
	return time.Since(began), increment * time.Second / 500, nil
}

// baseline measures the mirror of everything from the dump, and one Graph Store
// upload of the same triples from a file into an empty graph.
func (e *env) baseline(ctx context.Context, s server) (took, base time.Duration, err error) {
	o, err := e.origin(ctx)
	if err != nil {
		return 0, 0, err
	}
	at, graph, drop, err := e.empty(ctx, s, uploadGraph)
	if err != nil {
		return 0, 0, err
	}
	if base, err = at.load(ctx, e, graph); err != nil {
		return 0, 0, err
	}
	if err := drop(); err != nil {
		return 0, 0, err
	}
	if o.dumped != o.version { // by the increments of another row
		if err := o.dump(ctx); err != nil {
			return 0, 0, err
		}
	}
	b, remove, err := e.mirror(ctx, s, o)
	if err != nil {
		return 0, 0, err
	}
	took, err = e.synced(ctx, b, e.n, 0)
	return took, base, errors.Join(err, remove())
}

// increment measures an increment into a mirror of everything, and one update
// request for each resource. The mirror stays for the next run, since dropping and
// filling it takes some stores minutes.
func (e *env) increment(ctx context.Context, s server) (took, base time.Duration, err error) {
	if err := e.fill(ctx, s); err != nil {
		return 0, 0, err
	}
	o, err := e.origin(ctx)
	if err != nil {
		return 0, 0, err
	}
	if e.kept.server != s.name {
		b, remove, err := e.mirror(ctx, s, o)
		if err != nil {
			return 0, 0, err
		}
		e.kept = keptMirror{s.name, b, remove}
	}
	var rep bridge.SyncReport // the dump, and the changes since
	if err := e.kept.mirror.Do(ctx, "sync", "copy", nil, &rep); err != nil {
		return 0, 0, err
	}
	if err := o.change(ctx, e); err != nil {
		return 0, 0, err
	}
	if took, err = e.synced(ctx, e.kept.mirror, 0, increment); err != nil {
		return 0, 0, err
	}
	st := s.store()
	began := time.Now()
	for i := range int64(oneByOne) {
		text := e.replacement(i*(increment/oneByOne), o.version, benchGraph) // the same changes
		if s.name == "virtuoso" {
			text = named(text)
		}
		if err := st.run(ctx, text); err != nil {
			return 0, 0, err
		}
	}
	return took, time.Since(began) / oneByOne * increment, nil
}

// dropKept removes the mirror of the increments of a server.
func (e *env) dropKept() error {
	kept := e.kept
	e.kept = keptMirror{}
	if kept.remove == nil {
		return nil
	}
	return kept.remove()
}

type keptMirror struct {
	server string
	mirror *bridge.Bridge
	remove func() error
}
