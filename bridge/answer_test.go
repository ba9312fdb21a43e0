package bridge_test

import (
	"fmt"
	"net/http/httptest"
	"testing"

	"github.com/rsbridge/rsbridge/bridge"
	"github.com/rsbridge/rsbridge/internal/sparql/sparqltest"
	"github.com/rsbridge/rsbridge/rdfres"
)

// TestSameAnswer: an answer that is the one of before changes nothing and is not compared,
// unless the log or the settings have gone on since.
func TestSameAnswer(t *testing.T) {
	triple := func(i int, value string) rdfres.Triple {
		return rdfres.Triple{S: rdfres.NewIRI(fmt.Sprintf("http://example.org/e%d", i)), P: "<http://example.org/p>", O: rdfres.NewLiteral(value, "", "")}
	}
	st := sparqltest.New()
	for i := range 20 {
		st.Add("", triple(i, "a"), triple(i, "b"))
	}
	server := httptest.NewServer(st)
	defer server.Close()
	cfg := overEndpoint(t, server.URL+"/query")
	set := bridge.NewSet()
	set.Store, set.Schedule = "source", ""
	cfg.Sets["data"] = set
	b := open(t, cfg)
	var first bridge.ScanReport
	scan := func(what string, same bool, created, updated, deleted, failed int64) {
		t.Helper()
		rep := do[bridge.ScanReport](t, b, "scan", "data", nil)
		if rep.Same != same || rep.Created != created || rep.Updated != updated || rep.Deleted != deleted || rep.Failed != failed {
			t.Errorf("%s: %+v", what, rep)
		}
		if same && (rep.Unchanged != 20 || rep.Resources != 20 || rep.Triples != first.Triples || rep.Covered != first.Covered || rep.Way != first.Way || rep.Sequence == 0) {
			t.Errorf("%s: %+v, the first was %+v", what, rep, first)
		}
		if first.Name == "" {
			first = rep
		}
		if status, err := b.Status(t.Context()); err != nil || status.Sets[0].LastScan == nil || status.Sets[0].Triples != rep.Triples {
			t.Errorf("%s: %+v, %v", what, status, err)
		}
	}
	scan("first", false, 20, 0, 0, 0)
	scan("again", true, 0, 0, 0, 0)
	st.Remove("", triple(7, "b"))
	scan("less", false, 0, 1, 0, 0)
	st.Add("", triple(7, "b"))
	scan("as the first", false, 0, 1, 0, 0)
	scan("again", true, 0, 0, 0, 0)
	st.Remove("", triple(8, "b"))
	if rep := do[bridge.ScanReport](t, b, "scan", "data", bridge.ScanArgs{Entities: []string{"http://example.org/e8"}}); rep.Updated != 1 {
		t.Errorf("%+v", rep)
	}
	st.Add("", triple(8, "b"))
	scan("after a hint", false, 0, 1, 0, 0)
	scan("again", true, 0, 0, 0, 0)
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	set.MaxTriples = 1
	cfg.Sets["data"] = set
	b = open(t, cfg)
	scan("other bounds", false, 0, 0, 0, 20)
	scan("what failed is tried again", false, 0, 0, 0, 20)
}
