package sparqlsink

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"iter"

	"github.com/rsbridge/rsbridge/destination/ledger"
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

// Address is that for writing.
func (s *Store) Address() string {
	e := s.client.Endpoint()
	if e.Update != "" {
		return sparql.WithoutToken(e.Update)
	}
	return sparql.WithoutToken(e.GraphStore)
}

// Close ends all requests.
func (s *Store) Close() error { return s.client.Close() }

// Open gives a mirror in the store, replaced as a whole if it is one graph of a store
// without updates.
func (s *Store) Open(p *sink.Place) (sink.Mirror, error) {
	e := s.client.Endpoint()
	if e.Update == "" && e.GraphStore == "" {
		return nil, fmt.Errorf("store %s can only be read; give it %s", e.Name, e.Names.Of("update")+" or "+e.Names.Of("graph_store"))
	}
	m := New(s.client, p)
	if m.PutsGraphs() && !p.Layout.PerEntity {
		return &Graph{m}, nil
	}
	return m, nil
}

// Graph is a mirror in one graph of a store without updates: it loses no triple but by
// being put whole.
type Graph struct{ *Mirror }

// Absent is never told of a graph: an empty one is none in many stores.
func (g *Graph) Absent() bool { return false }

// Replace puts the graph.
func (g *Graph) Replace(ctx context.Context, _ []string, each func(sink.PutPart) error) error {
	return g.Client.PutGraph(ctx, g.Layout.Graph, rdfres.NTriples, func() (io.ReadCloser, error) {
		pr, pw := io.Pipe()
		go func() { // ends when the request has read everything or closes the pipe
			w := bufio.NewWriterSize(pw, 256<<10)
			lay := g.Layout
			err := each(func(authority string, wire []byte) error {
				lay.Authority = authority
				lines, err := linesOf(&lay, wire)
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

// linesOf are those of a kept representation, as they stand in the mirror.
func linesOf(l *sink.Layout, wire []byte) ([]byte, error) {
	if !sink.HasBlank(wire) && len(l.NormalForm.Rules) == 0 {
		return wire, nil // as it is
	}
	ts, err := ledger.ParseWire(wire)
	if err != nil {
		return nil, err
	}
	sts, err := l.Statements("", ts)
	if err != nil {
		return nil, err
	}
	lines := make([]byte, 0, 2*len(wire))
	for i := range sts {
		lines = sts[i].Triple.AppendLine(lines)
	}
	return lines, nil
}

// Asks tells of a store with a query address.
func (m *Mirror) Asks() bool { return m.Client.Endpoint().Query != "" }

// ReadGraph gives the triples of one graph.
func (m *Mirror) ReadGraph(ctx context.Context, graph string) iter.Seq2[rdfres.Triple, error] {
	return m.Client.GetGraph(ctx, graph)
}

// ReadGraphs gives the triples of all wanted graphs.
func (m *Mirror) ReadGraphs(ctx context.Context, wanted func(string) (bool, error), add func(string, rdfres.Triple) error) error {
	const pattern = "GRAPH ?g { ?s ?p ?o } "
	return m.rows(ctx, pattern, []string{"?g", "?s", "?p", "?o"}, wanted, func(r sparql.Row) error {
		ok, err := wanted(r[0].IRI())
		if err != nil || !ok {
			return err
		}
		return add(r[0].IRI(), rdfres.Triple{S: r[1], P: r[2], O: r[3]})
	})
}
