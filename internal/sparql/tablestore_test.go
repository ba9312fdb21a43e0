package sparql_test

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/internal/sparql"
	"github.com/rsbridge/rsbridge/internal/teststores"
	"github.com/rsbridge/rsbridge/rdfres"
)

// TestTableOfRDF4J: RDF4J's binary results give each term as it was written. (A
// literal whose language tags differ in case only is one there: the first wins.)
func TestTableOfRDF4J(t *testing.T) {
	s := teststores.RDF4J(t)
	objects := oddObjects()
	var doc strings.Builder
	var want []string
	for _, subject := range []string{"<http://e.example/s>", "<urn:s>"} {
		for _, o := range objects {
			line := subject + " <http://e.example/p> " + string(o) + " .\n"
			doc.WriteString(line)
			want = append(want, line)
		}
	}
	doc.WriteString("_:n <http://e.example/p> _:m .\n")
	s.Put(t, s.Graph, "application/n-triples", strings.NewReader(doc.String()))
	c, err := sparql.New(sparql.Endpoint{Query: s.Query, GraphStore: s.GraphStore})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	read := func(as sparql.Reading) (got []string, blanks int) {
		err := c.StreamSelect(t.Context(), "SELECT ?s ?p ?o WHERE { GRAPH <"+s.Graph+"> { ?s ?p ?o } }", as, func(s, p, o []byte) error {
			if s[0] == '_' && o[0] == '_' {
				blanks++
				return nil
			}
			got = append(got, string(s)+" "+string(p)+" "+string(o)+" .\n")
			return nil
		})
		if err != nil {
			t.Fatalf("%s: %v", as, err)
		}
		slices.Sort(got)
		return got, blanks
	}
	slices.Sort(want)
	for _, as := range []sparql.Reading{sparql.ReadSelectBinary, sparql.ReadSelectJSON} {
		got, blanks := read(as)
		if blanks != 1 || !slices.Equal(got, want) {
			t.Errorf("%s: %d triples of %d, %d of blank nodes", as, len(got), len(want), blanks)
			for i := range min(len(got), len(want)) {
				if got[i] != want[i] {
					t.Fatalf("%.200q\n%.200q", got[i], want[i])
				}
			}
		}
	}
	caps, err := c.Probe(t.Context(), sparql.ProbeOptions{Graphs: []string{s.Graph}})
	if err != nil || !slices.Contains(caps.Readings, sparql.ReadSelectBinary) || slices.Contains(caps.Readings, sparql.ReadSelectTSV) {
		t.Errorf("%v: %v", caps.Readings, err)
	}
}

// oddObjects are literals and IRIs of many spellings.
func oddObjects() (objects []rdfres.Term) {
	const xsd = "http://www.w3.org/2001/XMLSchema#"
	for _, lexical := range []string{"", "a", "12", "01", "+1", "1.10", "1e3", "INF", "NaN", "true", " 1 ", "<http://e.example/x>", "_:b", "?v", "\"", "\\", "\\u0041", "a\tb\nc\rd\be\ff",
		"\"quoted\"", "'", "ä€\U0001F600\u2028\u0085", "@en", "^^<x:y>", "\ufffd", strings.Repeat("long ", 40_000)} {
		objects = append(objects, rdfres.NewLiteral(lexical, "", ""), rdfres.NewLiteral(lexical, "en", ""), rdfres.NewLiteral(lexical, "DE-de", ""), rdfres.NewLiteral(lexical, "en-gb", ""),
			rdfres.NewLiteral(lexical, "", "urn:dt"), rdfres.NewLiteral(lexical, "", xsd+"integer"), rdfres.NewLiteral(lexical, "", xsd+"decimal"), rdfres.NewLiteral(lexical, "", xsd+"double"),
			rdfres.NewLiteral(lexical, "", xsd+"boolean"), rdfres.NewLiteral(lexical, "", xsd+"dateTime"))
	}
	for _, iri := range []string{"urn:x", "http://e.example/", "http://e.example/a#", "http://e.example/ä%20b?c=d&e='f'", "mailto:a@e.example", "x:/y:z/#"} {
		objects = append(objects, rdfres.NewIRI(iri))
	}
	return objects
}

// TestBinaryOfRDF4J: RDF4J's binary form stores each term as N-Triples do, and is what
// it gets.
func TestBinaryOfRDF4J(t *testing.T) {
	s := teststores.RDF4J(t)
	var types []string
	c, err := sparql.New(sparql.Endpoint{Query: s.Query, GraphStore: s.GraphStore, Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
		if r.Method == http.MethodPost && r.URL.Path != "" && r.URL.Query().Get("graph") != "" {
			types = append(types, r.Header.Get("Content-Type"))
		}
		return http.DefaultTransport.RoundTrip(r)
	})})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var ts []rdfres.Triple
	var want []string
	for i := range 40 { // more numbers than one byte holds
		p := rdfres.NewIRI("http://e.example/p" + strconv.Itoa(i))
		for j, o := range oddObjects() {
			if j%40 == i || i < 2 {
				tr := rdfres.Triple{S: rdfres.NewIRI("http://e.example/s" + strconv.Itoa(j)), P: p, O: o}
				ts, want = append(ts, tr), append(want, string(tr.AppendLine(nil)))
			}
		}
	}
	for range 2 { // adding is repeatable
		if err := c.Post(t.Context(), c.NewUpload(s.Graph, slices.Values(ts))); err != nil {
			t.Fatal(err)
		}
	}
	if len(types) != 2 || slices.Contains(types, "application/n-triples") {
		t.Errorf("sent %v", types)
	}
	var got []string
	for tr, err := range c.GetGraph(t.Context(), s.Graph) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, string(tr.AppendLine(nil)))
	}
	slices.Sort(got)
	slices.Sort(want)
	if want = slices.Compact(want); !slices.Equal(got, want) {
		t.Fatalf("%d triples, want %d", len(got), len(want))
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
