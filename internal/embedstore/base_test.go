package embedstore

import (
	"strings"
	"testing"
)

// TestBase: references of a query, and those that IRI() makes, are resolved against
// its own BASE, or that of the request.
func TestBase(t *testing.T) {
	s := openTest(t, t.TempDir())
	defer s.Close()
	for _, c := range []struct{ update, base, ask string }{
		{`BASE <http://a.example/x/> INSERT { <s> <p> ?i } WHERE { BIND(IRI("../o") AS ?i) }`, "http://request.example/", `ASK { <http://a.example/x/s> <http://a.example/x/p> <http://a.example/o> }`},
		{`INSERT { <t> <p> ?i } WHERE { BIND(IRI("o") AS ?i) }`, "http://request.example/", `ASK { <http://request.example/t> <http://request.example/p> <http://request.example/o> }`},
		{`INSERT DATA { <http://a.example/a/../b> <http://a.example/p> 1 }`, "http://request.example/", `ASK { <http://a.example/a/../b> ?p 1 }`},
		{"", "http://request.example/", `BASE <http://a.example/x/> ASK { <s> <p> ?o FILTER(?o = IRI("/o")) }`},
		{"", "http://request.example/x", `ASK { <t> <p> ?o FILTER(?o = IRI("o")) }`},
	} {
		if c.update != "" {
			if err := s.UpdateFrom(t.Context(), strings.NewReader(c.update), UpdateOptions{Base: c.base}); err != nil {
				t.Fatalf("%s: %v", c.update, err)
			}
		}
		r, err := s.Query(t.Context(), c.ask, QueryOptions{Base: c.base})
		if err != nil {
			t.Fatalf("%s: %v", c.ask, err)
		}
		if !r.Bool {
			t.Errorf("%s (after %s): false", c.ask, c.update)
		}
		r.Close()
	}
}
