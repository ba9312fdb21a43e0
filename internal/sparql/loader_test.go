package sparql_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/internal/sparql"
	"github.com/rsbridge/rsbridge/internal/teststores"
	"github.com/rsbridge/rsbridge/rdfres"
)

// recorder notes which requests ask for no transaction.
type recorder struct{ loaded []bool }

func (r *recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method == http.MethodPost && strings.Contains(req.URL.RawQuery, "graph=") {
		r.loaded = append(r.loaded, strings.Contains(req.URL.RawQuery, "no_transaction"))
	}
	return http.DefaultTransport.RoundTrip(req)
}

// Uploads of some size go by the loader of Oxigraph; one that has a fault writes nothing
// of what is after it, and an index of the store is not without another.
func TestLoaderOfOxigraph(t *testing.T) {
	s := teststores.Oxigraph(t)
	rec := &recorder{}
	c, err := sparql.New(sparql.Endpoint{Query: s.Query, Update: s.Update, GraphStore: s.GraphStore, Transport: rec, Retries: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	lines := func(subject string, n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "<http://e.example/%s%d> <http://e.example/p> \"a value of some length, %d\" .\n", subject, i, i)
		}
		return b.String()
	}
	count := func(pattern string) int64 {
		n, err := c.Count(t.Context(), "SELECT (COUNT(*) AS ?n) WHERE { GRAPH <"+s.Graph+"> { "+pattern+" } }")
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	post := func(text string) error {
		return c.PostGraph(t.Context(), s.Graph, rdfres.NTriples, sparql.Body([]byte(text)))
	}
	count("?s ?p ?o") // says who it is
	for _, text := range []string{lines("a", 5), lines("a", 3000), lines("b", 3000)} {
		if err := post(text); err != nil {
			t.Fatal(err)
		}
	}
	for _, pattern := range []string{"?s ?p ?o", "?s <http://e.example/p> ?o"} {
		if n := count(pattern); n != 6000 {
			t.Errorf("%d triples of %s, want 6000", n, pattern)
		}
	}
	if err := c.Update(t.Context(), "DELETE DATA { GRAPH <"+s.Graph+"> { "+lines("a", 3000)+" } }"); err != nil {
		t.Fatal(err)
	}
	if n := count("?s ?p ?o"); n != 3000 {
		t.Errorf("%d triples after a deletion, want 3000", n)
	}
	if err := post(lines("c", 3000) + "<http://e.example/s> <http://e.example/p> \"no tag\"@-- .\n" + lines("d", 3000)); err == nil {
		t.Error("a line that is none was taken")
	}
	if n := count("?s ?p ?o FILTER(STRSTARTS(STR(?s), 'http://e.example/d'))"); n != 0 {
		t.Errorf("%d triples from behind a fault", n)
	}
	if want := []bool{false, true, true, true}; fmt.Sprint(rec.loaded) != fmt.Sprint(want) {
		t.Errorf("by the loader: %v, want %v", rec.loaded, want)
	}
}
