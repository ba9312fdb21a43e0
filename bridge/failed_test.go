package bridge_test

import (
	"net/http/httptest"
	"testing"

	"github.com/rsbridge/rsbridge/bridge"
	"github.com/rsbridge/rsbridge/internal/sparql/sparqltest"
	"github.com/rsbridge/rsbridge/rdfres"
)

// TestFailedEntities: entities that cannot be described are counted and named, once,
// also where they were published before; and the others are published.
func TestFailedEntities(t *testing.T) {
	st := sparqltest.New(
		rdfres.Triple{S: "<http://example.org/good>", P: "<http://example.org/p>", O: `"1"`},
		rdfres.Triple{S: rdfres.NewIRI("http://example.org/bad one"), P: "<http://example.org/p>", O: `"1"`},
	)
	store := httptest.NewServer(st)
	defer store.Close()
	cfg := overEndpoint(t, store.URL+"/query")
	set := bridge.NewSet()
	set.Store, set.Schedule = "source", ""
	cfg.Sets["data"] = set
	b := open(t, cfg)
	rep := do[bridge.ScanReport](t, b, "scan", "data", nil)
	if rep.Created != 1 || rep.Failed != 1 || len(rep.Failures) != 1 || rep.Failures[0].Entity != "http://example.org/bad one" {
		t.Errorf("%+v", rep)
	}
	st.Add("", rdfres.Triple{S: "<http://example.org/good>", P: "<http://example.org/p>", O: rdfres.NewIRI("http://example.org/bad one")})
	rep = do[bridge.ScanReport](t, b, "scan", "data", nil)
	if rep.Resources != 1 || rep.Failed != 2 || len(rep.Failures) != 2 {
		t.Errorf("after it went bad: %+v", rep)
	}
}
