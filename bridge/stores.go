package bridge

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/rsbridge/rsbridge/destination/sink"
	"github.com/rsbridge/rsbridge/destination/sink/sparqlsink"
	"github.com/rsbridge/rsbridge/internal/embedstore"
	"github.com/rsbridge/rsbridge/internal/settings"
	"github.com/rsbridge/rsbridge/internal/sparql"
	"github.com/rsbridge/rsbridge/rdfres"
)

// store is one configured triple store.
type store struct {
	sink     sink.Sink         // for mirrors
	client   *sparql.Client    // of the sink, nil for a dump or files
	embedded *embedstore.Store // nil for a remote one
	fault    error             // why it could not be opened; then there is nothing else
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
	if s.embedded != nil && !embedded {
		err = errors.Join(err, s.embedded.Close())
	}
	return err
}

// openStores opens the stores, or takes open ones of before.
func (b *Bridge) openStores(ctx context.Context, before *Bridge) error {
	if before == nil {
		before = &Bridge{cfg: &Config{}}
	}
	for _, name := range slices.Sorted(maps.Keys(b.cfg.Stores)) {
		c := b.cfg.Stores[name]
		if old := before.stores[name]; old != nil && old.fault == nil && before.cfg.Stores[name] == c {
			b.stores[name] = old
			continue
		}
		s, err := b.openStore(ctx, name, c, before)
		if err != nil {
			for _, set := range b.cfg.Sets {
				if set.Store == name {
					return err
				}
			}
			todo := "mend it and start again"
			if IsFull(err) {
				todo = "it is opened when there is room"
			}
			b.log.Error("a store cannot be opened; what needs it waits, the rest goes on; "+todo, "store", name, "error", err)
			s = &store{fault: err}
		}
		b.stores[name] = s
	}
	return nil
}

func (c Store) endpoint(name string, names settings.Names, log *slog.Logger) sparql.Endpoint {
	return sparql.Endpoint{
		Name: name, Query: c.Query, Update: c.Update, GraphStore: c.GraphStore,
		Username: c.Username, Password: string(c.Password), Timeout: time.Duration(c.Timeout),
		Concurrency: c.Concurrency, Rate: c.Rate, Slow: time.Duration(c.Slow), MaxRows: c.MaxRows, Logger: log.With("component", "sparql", "store", name),
		UserAgent: c.agent, Names: names,
	}
}

// embeddedAddresses are the addresses of an embedded store in records: each with its own
// host, since two stores share nothing.
func embeddedAddresses(name string) (query, update, graphStore string) {
	at := "http://" + name + ".embedded.invalid"
	return at + "/query", at + "/update", at + "/data"
}

// openStore opens one store of a configuration, or takes its folder from before.
func (b *Bridge) openStore(ctx context.Context, name string, c Store, before *Bridge) (*store, error) {
	var open *store // of the same place
	for other, o := range before.cfg.Stores {
		if s := before.stores[other]; c.local() && o.place() == c.place() && s.fault == nil {
			open = s
		}
	}
	if c.sink() {
		if open != nil {
			return &store{sink: open.sink}, nil
		}
		sink, err := c.openSink()
		if err != nil {
			return nil, fmt.Errorf("store %s: %w", name, err)
		}
		return &store{sink: sink}, nil
	}
	e := c.endpoint(name, b.cfg.names, b.log)
	s := &store{}
	if c.Embedded != "" {
		budget := embedstore.Budget{Time: time.Duration(c.QueryTime), MemoryBytes: c.QueryMemory, Rows: c.QueryRows}
		if open != nil {
			s.embedded = open.embedded
			s.embedded.SetBudget(budget)
		} else if es, err := embedstore.Open(c.Embedded, embedstore.Options{Context: ctx, Budget: budget, Logger: b.log.With("component", "embedstore", "store", name)}); err != nil {
			return nil, fmt.Errorf("open the embedded store %s in %s: %w", name, c.Embedded, err)
		} else {
			s.embedded = es
		}
		e.Query, e.Update, e.GraphStore = embeddedAddresses(name)
		e.Transport = s.embedded.Transport()
	}
	client, err := sparql.New(e)
	if err != nil {
		if s.embedded != nil && open == nil {
			err = errors.Join(err, s.embedded.Close())
		}
		return nil, fmt.Errorf("store %s: %w", name, err)
	}
	s.client, s.sink = client, sparqlsink.Of(client)
	return s, nil
}

// StoreHandler is the SPARQL and Graph Store handler of an embedded store, nil
// when there is no such store or it is not embedded.
func (b *Bridge) StoreHandler(name string) http.Handler {
	if s := b.stores[name]; s != nil && s.embedded != nil {
		return s.embedded.Handler()
	}
	return nil
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
