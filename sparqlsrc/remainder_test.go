package sparqlsrc

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/internal/sparql"
	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/sparqlsrc/dumpfile"
)

// outsideCases are sets over {default: 3, a: 2, b: 1, _:blank: 1, 40 others: 1 each, one of our own}.
var outsideCases = []struct {
	graphs   string // joined by spaces
	describe string
	others   sparql.Part
	store    string // what is outside, of a store
	dump     string // and of a dump, where a set of everything has graphs that blank nodes name
}{
	{"", "", sparql.Part{}, "44 triples in 43 graphs: http://g.example/a (2), ", ""},
	{"", "", sparql.Part{Graphs: []string{"http://g.example/a"}}, "42 triples in 42 graphs: ", ""},
	{"", "", sparql.Part{Named: true}, "1 triple in 1 graph: _:", "nothing"},
	{"*", "", sparql.Part{}, "1 triple in 1 graph: _:", "nothing"},
	{"*", "graph", sparql.Part{}, "4 triples in 2 graphs: the default graph (3), _:", ""},
	{"", "graph", sparql.Part{Default: true}, "1 triple in 1 graph: _:", "nothing"},
	{"http://g.example/a http://g.example/b", "", sparql.Part{}, "44 triples in 42 graphs: the default graph (3), ", ""},
	{"http://g.example/b", "", sparql.Part{Default: true, Graphs: []string{"http://g.example/a"}}, "41 triples in 41 graphs: ", ""},
}

// What a store or a dump holds outside of the sets is counted, by graph.
func TestRemainder(t *testing.T) {
	client, dir := embedded(t), t.TempDir()
	var quads strings.Builder
	add := func(graph string, i int) {
		fmt.Fprintf(&quads, "<http://e.example/%d> <http://e.example/p> \"%d\" %s .\n", i, i, graph)
	}
	for i := range 3 { // in no order
		add("", i)
		for n := range 40 {
			if n%3 == i {
				add(fmt.Sprintf("<http://g.example/many/%d>", n), n)
			}
		}
		if i < 2 {
			add("<http://g.example/a>", i)
		}
	}
	add("<http://g.example/b>", 1)
	add("_:blank", 1)
	add("<urn:rsbridge:state>", 1)
	put(t, dir+"/a.nq", []byte(quads.String()), 5)
	if err := client.PutGraph(t.Context(), "", rdfres.NTriples, sparql.Body(nil)); err != nil {
		t.Fatal(err)
	}
	endpoint := client.Endpoint()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, endpoint.GraphStore, strings.NewReader(quads.String()))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/n-quads")
	if res, err := (&http.Client{Transport: endpoint.Transport}).Do(req); err != nil || res.StatusCode >= 300 {
		t.Fatal(res, err)
	}
	for _, tc := range outsideCases {
		cfg := Config{Graphs: strings.Fields(tc.graphs), Describe: tc.describe, Others: tc.others, TempDir: t.TempDir()}
		s, err := New(client, cfg)
		if err != nil {
			t.Fatal(err)
		}
		rest, err := s.Remainder(t.Context())
		if err != nil || !strings.HasPrefix(rest.String(), tc.store) {
			t.Errorf("%+v: outside are %v, %v", tc, rest, err)
		}
		want := tc.dump
		if want == "" {
			want = tc.store
		}
		scan, err := dumps(t, cfg, DumpOptions{Series: dumpfile.Series{Patterns: []string{dir + "/*"}}}).Scan(t.Context(), dumpfile.File{}, false)
		if err != nil {
			t.Fatal(err)
		}
		if rest := scan.Remainder(); !strings.HasPrefix(rest.String(), want) || len(rest.Largest) > sparql.RemainderShown {
			t.Errorf("%+v: outside are %v of the dump", tc, rest)
		}
		if err := scan.Close(); err != nil {
			t.Error(err)
		}
	}
	s, err := New(client, Config{Describe: "CONSTRUCT { ?entity ?p ?o } WHERE { GRAPH ?g { ?entity ?p ?o } }"})
	if err != nil {
		t.Fatal(err)
	}
	if rest, err := s.Remainder(t.Context()); err != nil || !rest.Nothing() {
		t.Errorf("a CONSTRUCT that reads all graphs: %v, %v", rest, err)
	}
}

// product makes a store say that it is another.
type product struct {
	http.RoundTripper
	name string
}

func (p product) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := p.RoundTripper.RoundTrip(r)
	if err == nil {
		res.Header.Set("Server", p.name)
	}
	return res, err
}

// A default graph that holds all that was sampled of the others, and not all of them, is
// no union.
func TestRemainderOfAlmostAUnion(t *testing.T) {
	e := embedded(t).Endpoint()
	e.Transport = product{e.Transport, "Oxigraph/0.5.13"}
	client, err := sparql.New(e)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	var b strings.Builder
	for i := range 300 {
		fmt.Fprintf(&b, "<http://e.example/%d> <http://e.example/p> \"%d\" . ", i, i)
	}
	copied := b.String() + "GRAPH <http://g.example/copy> { " + b.String() + "}"
	for last, want := range map[string]string{"": "nothing", " GRAPH <http://g.example/z> { <http://e.example/a> <http://e.example/p> 1 }": "1 triple in 1 graph: http://g.example/z (1)"} {
		if err := client.Update(t.Context(), "DROP ALL ; INSERT DATA { "+copied+last+"}"); err != nil {
			t.Fatal(err)
		}
		s, err := New(client, Config{})
		if err != nil {
			t.Fatal(err)
		}
		if rest, err := s.Remainder(t.Context()); err != nil || rest.String() != want {
			t.Errorf("%v, %v; want %s", rest, err, want)
		}
	}
}
