package sparql_test

import (
	"context"
	"testing"

	"github.com/rsbridge/rsbridge/internal/sparql"
	"github.com/rsbridge/rsbridge/internal/sparql/sparqltest"
	"github.com/rsbridge/rsbridge/rdfres"
)

// What Go and what SPARQL say of a graph is the same.
func TestOwnGraph(t *testing.T) {
	st := sparqltest.New()
	want := map[string]bool{
		"urn:rsbridge:state": true, "urn:rsbridge:state:ab12": true, "urn:rsbridge:simulate": true, "urn:rsbridge:probe:XY": true,
		"urn:rsbridge:component:00ff-0": false, "urn:rsbridge:x": false, "urn:rsbridge:": false, "urn:rsbridge:states": false,
		"urn:rsbridge:simulated": false, "urn:rsbridge:probe": false, "http://example.org/urn:rsbridge:state": false,
	}
	for g := range want {
		st.Add(g, rdfres.Triple{S: "<http://example.org/s>", P: "<http://example.org/p>", O: `"1"`})
	}
	sol, err := connect(t, st, nil).Select(context.Background(), "SELECT ?g WHERE { GRAPH ?g { ?s ?p ?o } FILTER("+sparql.OwnGraph("?g")+") }")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for row, err := range sol.Rows {
		if err != nil {
			t.Fatal(err)
		}
		got[row[0].IRI()] = true
	}
	for g, own := range want {
		if got[g] != own || sparql.IsOwnGraph(g) != own {
			t.Errorf("%s: in SPARQL %v, in Go %v, want %v", g, got[g], sparql.IsOwnGraph(g), own)
		}
	}
}
