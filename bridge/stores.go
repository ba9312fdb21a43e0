package bridge

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/rsbridge/rsbridge/bridge/gateway"
	"github.com/rsbridge/rsbridge/bridge/named"
	"github.com/rsbridge/rsbridge/bridge/storelog"
	"github.com/rsbridge/rsbridge/destination/sink"
	"github.com/rsbridge/rsbridge/destination/sink/sparqlsink"
	"github.com/rsbridge/rsbridge/internal/embedstore"
	"github.com/rsbridge/rsbridge/internal/fence"
	"github.com/rsbridge/rsbridge/internal/inproc"
	"github.com/rsbridge/rsbridge/internal/sparql"
	"github.com/rsbridge/rsbridge/internal/telemetry"
	"github.com/rsbridge/rsbridge/rdfres"
)

// store is one configured triple store.
type store struct {
	sink     sink.Sink         // for mirrors
	client   *sparql.Client    // of the sink, nil for a dump or files
	embedded *embedstore.Store // nil for a remote one
	end      func() error      // instead of closing embedded; may be nil
	fault    error             // why it could not be opened; then there is nothing else
	order    sync.RWMutex      // of the gateway's updates
}

// closeExcept closes everything the others do not use.
func (s *store) closeExcept(others map[string]*store) (err error) {
	var embedded, sink bool // are used
	for _, o := range others {
		embedded, sink = embedded || o.embedded == s.embedded, sink || o.sink == s.sink
	}
	if s.sink != nil && !sink {
		err = s.sink.Close()
	}
	switch {
	case s.end != nil:
		err = errors.Join(err, s.end())
	case s.embedded != nil && !embedded:
		err = errors.Join(err, s.embedded.Close())
	}
	return err
}

// storeOpener opens the stores of a configuration. It takes open ones of the configuration
// before.
type storeOpener struct {
	cfg, before *Config
	open        map[string]*store // of before
	log         *slog.Logger
	dry         bool // embedded ones are only read
	looking     bool // missing ones are not made
	telemetry   *telemetry.Telemetry
	hold        fence.Hold // nil: nobody else may lead
}

// all puts the stores into opened, also before an error.
func (o *storeOpener) all(ctx context.Context, opened map[string]*store) error {
	for _, name := range slices.Sorted(maps.Keys(o.cfg.Stores)) {
		c := o.cfg.Stores[name]
		if old := o.open[name]; old != nil && old.fault == nil && o.before.Stores[name] == c {
			opened[name] = old
			continue
		}
		s, err := o.one(ctx, name, c)
		if err != nil {
			for _, set := range o.cfg.Sets {
				if set.Store == name {
					return err
				}
			}
			todo := "mend it and start again"
			if IsFull(err) {
				todo = "it is opened when there is room"
			}
			o.log.Error("a store cannot be opened; what needs it waits, the rest goes on; "+todo, "store", name, "error", err)
			s = &store{fault: err}
		}
		opened[name] = s
	}
	return nil
}

// embeddedAddresses are the addresses of an embedded store in records: each with its own
// host, since two stores share nothing.
func embeddedAddresses(name string) (query, update, graphStore string) {
	at := "http://" + name + ".embedded.invalid"
	return at + "/query", at + "/update", at + "/data"
}

// one opens a store, or takes its folder from before.
func (o *storeOpener) one(ctx context.Context, name string, c Store) (*store, error) {
	var open *store // of the same place
	for other, b := range o.before.Stores {
		if s := o.open[other]; c.IsLocal() && b.Place() == c.Place() && s.fault == nil {
			open = s
		}
	}
	if c.IsSink() {
		if open != nil {
			return &store{sink: open.sink}, nil
		}
		sink, err := c.OpenSink()
		if err != nil {
			return nil, fmt.Errorf("store %s: %w", name, err)
		}
		return &store{sink: sink}, nil
	}
	e := c.Endpoint(name, o.cfg.Names(), o.log)
	e.Around = func(rt http.RoundTripper) http.RoundTripper { return fence.Around(o.telemetry.Store(name, rt), o.hold) }
	s := &store{}
	if c.Embedded != "" {
		budget := embedstore.Budget{Time: time.Duration(c.QueryTime), MemoryBytes: c.QueryMemory, Rows: c.QueryRows}
		if open != nil {
			s.embedded = open.embedded
			s.embedded.SetBudget(budget)
		} else if _, err := os.Stat(c.Embedded); o.dry || o.looking && errors.Is(err, fs.ErrNotExist) {
			if s.embedded, s.end, err = readEmbedded(ctx, c.Embedded, o.cfg.TempDir(), budget); err != nil {
				return nil, fmt.Errorf("read the embedded store %s in %s: %w", name, c.Embedded, err)
			}
		} else if es, err := embedstore.Open(c.Embedded, embedstore.Options{Context: ctx, Budget: budget, Logger: o.log.With("component", "embedstore", "store", name)}); err != nil {
			return nil, fmt.Errorf("open the embedded store %s in %s: %w", name, c.Embedded, err)
		} else {
			s.embedded = es
		}
		e.Query, e.Update, e.GraphStore = embeddedAddresses(name)
		if e.Transport = s.embedded.Transport(); o.dry {
			e.Transport = inproc.OnlyReading{RoundTripper: e.Transport}
		}
	}
	client, err := sparql.New(e)
	if err != nil {
		if s.embedded != nil && open == nil {
			err = errors.Join(err, s.closeExcept(nil))
		}
		return nil, fmt.Errorf("store %s: %w", name, err)
	}
	s.client, s.sink = client, sparqlsink.Of(client)
	return s, nil
}

// StoreHandler is the SPARQL and Graph Store handler of an embedded store, or the gateway of another
// one; nil without both.
func (b *Bridge) StoreHandler(name string) http.Handler {
	s := b.stores[name]
	switch {
	case s == nil || s.fault != nil:
	case s.embedded != nil:
		return s.embedded.Handler()
	case b.cfg.Stores[name].Gateway:
		g := &gateway.Gateway{Client: s.client, Order: &s.order, Log: b.log.With("component", "gateway", "store", name)}
		for _, set := range b.sets {
			if set.source != nil && set.cfg.Store == name && b.cfg.Stores[name].PatchLog == "" {
				g.Sets = append(g.Sets, toldOf(set, "gateway"))
			}
		}
		return g.Before(nil)
	}
	return nil
}

// toldOf is a set for those who find changes.
func toldOf(s *set, cause string) named.Set {
	by := s.cfg.Describe
	if s.cfg.Select.Query != "" {
		by = ""
	}
	return named.Set{Queue: s.due, By: by, Begin: func() error {
		_, _, err := s.bridge.runner.Start("hint:"+s.name, cause, hintArgs{Named: true})
		return err
	}}
}

// storeLog follows the log of a set's store; nil for a store without one.
func storeLog(s *set) *storelog.Follower {
	if s.source == nil {
		return nil
	}
	f := &storelog.Follower{Store: s.cfg.Store, Set: s.name, Tell: toldOf(s, "store"), Records: s.bridge.records, Begun: s.begun, Log: s.bridge.log.With("component", "storelog")}
	st, file := s.bridge.stores[s.cfg.Store], s.bridge.cfg.Stores[s.cfg.Store].PatchLog
	switch {
	case st.embedded != nil:
		f.Feed = &storelog.Commits{Store: st.embedded, Skip: sparql.IsOwnGraph}
	case file != "":
		f.Feed = &storelog.Patches{File: file, Client: st.client, Skip: sparql.IsOwnGraph, Log: f.Log.With("set", s.name, "store", s.cfg.Store)}
	case s.cfg.Hints.Every > 0:
		h := s.cfg.Hints
		f.Tell.By = "cbd" // a hint names its entities, whatever describes them
		f.Feed = &storelog.Modified{Source: s.source, Properties: h.Modified, Every: time.Duration(h.Every), Overlap: time.Duration(h.Overlap), Now: s.bridge.now}
	default:
		return nil
	}
	return f
}

// LoadStore loads a document into an embedded store as one transaction; replace
// empties the graph first. It returns the number of statements read.
func (b *Bridge) LoadStore(ctx context.Context, name, graph string, f rdfres.Format, r io.Reader, replace bool) (int64, error) {
	s := b.stores[name]
	if s == nil || s.embedded == nil {
		return 0, fmt.Errorf("embedded store %s: %w", name, ErrUnknown)
	}
	return s.embedded.Load(ctx, graph, f, r, embedstore.LoadOptions{Replace: replace})
}
