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

	"github.com/rsbridge/rsbridge/destination"
	"github.com/rsbridge/rsbridge/internal/embedstore"
	"github.com/rsbridge/rsbridge/internal/sparql"
	"github.com/rsbridge/rsbridge/rdfres"
)

// store is one configured triple store.
type store struct {
	client   *sparql.Client
	embedded *embedstore.Store // nil for a remote one
	sink     *destination.Sink // of a dump or files
	fault    error             // why it could not be opened; then there is nothing else
}

func (s *store) close() error {
	if s.fault != nil {
		return nil
	}
	if s.sink != nil {
		return s.sink.Close()
	}
	err := s.client.Close()
	if s.embedded != nil {
		err = errors.Join(err, s.embedded.Close())
	}
	return err
}

func (b *Bridge) openStores(ctx context.Context) error {
	for _, name := range slices.Sorted(maps.Keys(b.cfg.Stores)) {
		s, err := b.openStore(ctx, name, b.cfg.Stores[name])
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

func (c Store) endpoint(name string, log *slog.Logger) sparql.Endpoint {
	return sparql.Endpoint{
		Name: name, Query: c.Query, Update: c.Update, GraphStore: c.GraphStore,
		Username: c.Username, Password: string(c.Password), Timeout: time.Duration(c.Timeout),
		Concurrency: c.Concurrency, Rate: c.Rate, Slow: time.Duration(c.Slow), MaxRows: c.MaxRows, Logger: log.With("component", "sparql", "store", name),
		UserAgent: c.agent,
	}
}

func (c *Store) openSink() (*destination.Sink, error) {
	if c.Files != "" {
		return destination.FolderSink(c.Files)
	}
	return destination.DumpSink(c.Dump)
}

// embeddedAddresses are what an embedded store is called by in records: each by
// another host, since two stores do not share what they hold.
func embeddedAddresses(name string) (query, update, graphStore string) {
	at := "http://" + name + ".embedded.invalid"
	return at + "/query", at + "/update", at + "/data"
}

// openStore opens one store of a configuration.
func (b *Bridge) openStore(ctx context.Context, name string, c Store) (*store, error) {
	if c.sink() {
		sink, err := c.openSink()
		if err != nil {
			return nil, fmt.Errorf("store %s: %w", name, err)
		}
		return &store{client: sink.Client(), sink: sink}, nil
	}
	e := c.endpoint(name, b.log)
	s := &store{}
	if c.Embedded != "" {
		es, err := embedstore.Open(c.Embedded, embedstore.Options{Context: ctx, Budget: embedstore.Budget{Time: time.Duration(c.QueryTime), MemoryBytes: c.QueryMemory, Rows: c.QueryRows}, Logger: b.log.With("component", "embedstore", "store", name)})
		if err != nil {
			return nil, fmt.Errorf("open the embedded store %s in %s: %w", name, c.Embedded, err)
		}
		s.embedded = es
		e.Query, e.Update, e.GraphStore = embeddedAddresses(name)
		e.Transport = es.Transport()
	}
	client, err := sparql.New(e)
	if err != nil {
		if s.embedded != nil {
			err = errors.Join(err, s.embedded.Close())
		}
		return nil, fmt.Errorf("store %s: %w", name, err)
	}
	s.client = client
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
