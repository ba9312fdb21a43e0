package sparqlsink

import (
	"bufio"
	"context"
	"fmt"
	"io"

	"github.com/rsbridge/rsbridge/destination/sink"
	"github.com/rsbridge/rsbridge/internal/sparql"
	"github.com/rsbridge/rsbridge/rdfres"
)

// Store is a triple store as a sink.
type Store struct{ client *sparql.Client }

// Of makes a sink of a client. Close closes the client.
func Of(client *sparql.Client) *Store { return &Store{client} }

// Name is the store's in the configuration.
func (s *Store) Name() string { return s.client.Endpoint().Name }

// Address is the one for writing.
func (s *Store) Address() string {
	e := s.client.Endpoint()
	if e.Update != "" {
		return sparql.WithoutToken(e.Update)
	}
	return sparql.WithoutToken(e.GraphStore)
}

// Close ends all requests.
func (s *Store) Close() error { return s.client.Close() }

// Opened is a mirror in a store, by its parts.
type Opened struct {
	sink.Mirror
	sink.Marked
	sink.Reader
	sink.Keeper
	sink.Loader
	sink.Packer
	sink.StateKeeper
	sink.Learner
}

// Open gives a mirror in the store. A store without updates gets whole graphs.
func (s *Store) Open(p *sink.Place) (sink.Mirror, error) {
	e := s.client.Endpoint()
	if e.Update == "" && e.GraphStore == "" {
		return nil, fmt.Errorf("store %s can only be read; give it %s", e.Name, e.Names.Of("update")+" or "+e.Names.Of("graph_store"))
	}
	m := New(s.client, p)
	if e.Update != "" {
		return &Opened{m, m, m.reader, m, m, m, m, m}, nil
	}
	g := &graphs{m}
	o := Opened{g, g, m.reader, m, m, m, g, m}
	if p.Layout.PerEntity {
		return &o, nil
	}
	return &Graph{o, m}, nil
}

// Graph is a mirror in one graph of a store without updates: it is replaced as a whole.
type Graph struct {
	Opened
	m *Mirror
}

// Absent is never told of a graph: an empty one is none in many stores.
func (g *Graph) Absent() bool { return false }

// Foreign is never told of a graph: only an audit knows.
func (g *Graph) Foreign() (bool, error) { return false, nil }

// Replace puts the graph.
func (g *Graph) Replace(ctx context.Context, _ []string, each func(sink.PutPart) error) error {
	return g.m.Client.PutGraph(ctx, g.m.Layout.Graph, rdfres.NTriples, func() (io.ReadCloser, error) {
		pr, pw := io.Pipe()
		go func() { // ends when the request has read everything or closes the pipe
			w := bufio.NewWriterSize(pw, 256<<10)
			lay := g.m.Layout
			err := each(func(authority string, wire []byte) error {
				lay.Authority = authority
				lines, err := lay.Lines(wire)
				if err == nil {
					_, err = w.Write(lines)
				}
				return err
			})
			if err == nil {
				err = w.Flush()
			}
			pw.CloseWithError(err)
		}()
		return pr, nil
	})
}
