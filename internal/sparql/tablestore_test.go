package sparql_test

import (
	"slices"
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
	const xsd = "http://www.w3.org/2001/XMLSchema#"
	var objects []rdfres.Term
	for _, lexical := range []string{"", "a", "12", "01", "+1", "1.10", "1e3", "INF", "NaN", "true", " 1 ", "<http://e.example/x>", "_:b", "?v", "\"", "\\", "\\u0041", "a\tb\nc\rd\be\ff",
		"\"quoted\"", "'", "ä€\U0001F600\u2028\u0085", "@en", "^^<x:y>", "\ufffd", strings.Repeat("long ", 40_000)} {
		objects = append(objects, rdfres.NewLiteral(lexical, "", ""), rdfres.NewLiteral(lexical, "en", ""), rdfres.NewLiteral(lexical, "DE-de", ""), rdfres.NewLiteral(lexical, "en-gb", ""),
			rdfres.NewLiteral(lexical, "", "urn:dt"), rdfres.NewLiteral(lexical, "", xsd+"integer"), rdfres.NewLiteral(lexical, "", xsd+"decimal"), rdfres.NewLiteral(lexical, "", xsd+"double"),
			rdfres.NewLiteral(lexical, "", xsd+"boolean"), rdfres.NewLiteral(lexical, "", xsd+"dateTime"))
	}
	for _, iri := range []string{"urn:x", "http://e.example/", "http://e.example/a#", "http://e.example/ä%20b?c=d&e='f'", "mailto:a@e.example", "x:/y:z/#"} {
		objects = append(objects, rdfres.NewIRI(iri))
	}
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
