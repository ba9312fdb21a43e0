package sparqlsrc

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/internal/sparql"
	"github.com/rsbridge/rsbridge/internal/sparql/sparqltest"
	"github.com/rsbridge/rsbridge/internal/teststores"
	"github.com/rsbridge/rsbridge/rdfres"
)

// need is a store in which a scan comes to a strategy by itself.
type need struct {
	store    string
	real     func(testing.TB) teststores.Server // nil: none runs beside the tests
	habits   func(*sparqltest.Store)            // of that store, where none runs
	entities int
	graphs   int
	caps     *sparql.Capabilities // found in a graph too large for a test; nil: probed
}

func virtuoso(st *sparqltest.Store) { st.Server, st.NoTSV = "Virtuoso/07.20", true }

// needs names a store for each strategy. A strategy that no store needs any more goes.
var needs = map[string]need{
	"graph-store":   {store: "Fuseki, of a million triples", real: teststores.Fuseki, entities: 300, graphs: 1, caps: &sparql.Capabilities{Product: "Fuseki", Readings: []sparql.Reading{sparql.ReadGraphStore, sparql.ReadConstruct, sparql.ReadSelectTSV, sparql.ReadSelectJSON}, ValuesLimit: 5000}},
	"construct":     {store: "Virtuoso: its TSV is not the W3C form", real: teststores.Virtuoso, entities: 300, graphs: 1},
	"select-tsv":    {store: "Oxigraph", real: teststores.Oxigraph, entities: 300, graphs: 2},
	"select-json":   {store: "Virtuoso: CONSTRUCT is for one graph", real: teststores.Virtuoso, entities: 300, graphs: 2},
	"select-xml":    {store: "Callimachus: no JSON", habits: func(st *sparqltest.Store) { st.NoTSV, st.NoConstruct = true, true }, entities: 300, graphs: 1},
	"select-binary": {store: "RDF4J", real: teststores.RDF4J, entities: 300, graphs: 1},
	"predicates":    {store: "Virtuoso with ResultSetMaxRows raised: a CONSTRUCT ends at a million triples", habits: virtuoso, entities: 300, graphs: 1},
	"hash":          {store: "Virtuoso 6: no VALUES; Virtuoso 7: a predicate longer than one answer", habits: func(st *sparqltest.Store) { virtuoso(st); st.RowLimit = 100 }, entities: 60, graphs: 1},
	"graphs":        {store: "Virtuoso as it comes: 10,000 rows", real: teststores.Virtuoso, entities: 3000, graphs: 2},
	"batches":       {store: "Virtuoso as it comes: 10,000 rows", real: teststores.Virtuoso, entities: 3000, graphs: 1},
}

// Each strategy is what a scan comes to by itself in some store. "whole" is the first of the ways in one
// answer.
func TestEachStrategyIsNeeded(t *testing.T) {
	for _, strategy := range Strategies {
		n, ok := needs[strategy]
		if !ok && strategy != "whole" {
			t.Errorf("%s: no store needs it", strategy)
		}
		if !ok || n.real != nil && testing.Short() {
			continue // scans of real stores run without -short
		}
		t.Run(strategy, func(t *testing.T) {
			all := divided(n.entities)
			put := slices.Collect(slices.Chunk(all, (len(all)+n.graphs-1)/n.graphs))
			var s *Source
			if n.real != nil {
				s = realSource(t, n, put)
			} else {
				s = likeSource(t, n, strategy, put[0])
			}
			_, stats := scanAll(t, s)
			if stats.Way != strategy {
				t.Errorf("%s is read by %s, want %s", n.store, stats.Way, strategy)
			}
		})
	}
}

// likeSource reads a store that behaves like one that does not run beside the tests.
func likeSource(t *testing.T, n need, strategy string, ts []rdfres.Triple) *Source {
	st := sparqltest.New(ts...)
	n.habits(st)
	switch strategy {
	case "hash":
		st.Fault = func(_, body string) *sparqltest.Fault {
			if strings.Contains(body, "VALUES") {
				return &sparqltest.Fault{Status: http.StatusBadRequest, Body: "what is VALUES?"}
			}
			return nil
		}
	case "select-xml":
		s := source(t, st, Config{})
		s.SetCapabilities(sparql.Capabilities{Readings: []sparql.Reading{sparql.ReadSelectXML}, ValuesLimit: 5000})
		return s
	}
	s := source(t, st, Config{})
	s.many = 500
	return s
}

// realSource reads graphs of a store beside the tests.
func realSource(t *testing.T, n need, put [][]rdfres.Triple) *Source {
	srv := n.real(t)
	var graphs []string
	for i, ts := range put {
		var body bytes.Buffer
		for _, x := range ts {
			fmt.Fprintf(&body, "%s %s %s .\n", x.S, x.P, x.O)
		}
		graphs = append(graphs, fmt.Sprintf("%s/%d", srv.Graph, i))
		srv.Put(t, graphs[i], "application/n-triples", &body)
		t.Cleanup(func() { srv.Clear(t, graphs[i]) })
	}
	client, err := sparql.New(sparql.Endpoint{Query: srv.Query, Update: srv.Update, GraphStore: srv.GraphStore, Username: srv.Username, Password: srv.Password})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	s, err := New(client, Config{Graphs: graphs, TempDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if n.caps != nil {
		s.SetCapabilities(*n.caps)
	}
	return s
}
