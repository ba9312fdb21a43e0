package bridge_test

import (
	"net/http/httptest"
	"testing"

	"github.com/rsbridge/rsbridge/bridge"
	"github.com/rsbridge/rsbridge/internal/sparql/sparqltest"
	"github.com/rsbridge/rsbridge/rdfres"
)

// TestFailedEntities: entities that cannot be described are counted and named,
// and the others are published.
func TestFailedEntities(t *testing.T) {
	store := httptest.NewServer(sparqltest.New(
		rdfres.Triple{S: "<http://example.org/good>", P: "<http://example.org/p>", O: `"1"`},
		rdfres.Triple{S: rdfres.NewIRI("http://example.org/bad one"), P: "<http://example.org/p>", O: `"1"`},
	))
	defer store.Close()
	cfg := overEndpoint(t, store.URL+"/query")
	set := bridge.NewSet()
	set.Store, set.Schedule = "source", ""
	cfg.Sets["data"] = set
	rep := do[bridge.ScanReport](t, open(t, cfg), "scan", "data", nil)
	if rep.Created != 1 || rep.Failed != 1 || len(rep.Failures) != 1 || rep.Failures[0].Entity != "http://example.org/bad one" {
		t.Errorf("%+v", rep)
	}
}
