package embedstore

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// A label of a blank node belongs to one basic graph pattern, or one INSERT DATA.
func TestLabelsOfPatterns(t *testing.T) {
	s := openTest(t, t.TempDir())
	for query, good := range map[string]bool{
		"{ _:a ?p ?v . FILTER(?v > 1) _:a ?q 1 }":                                        true,
		"{ _:a ?p ?v FILTER EXISTS { _:b ?q ?v } _:a ?q 1 FILTER EXISTS { _:c ?q ?v } }": true,
		"{ _:a ?p/?x ?v }": false,
		"{ _:a <http://x/p>/<http://x/q> ?v ; <http://x/r>* ?w . ?w <http://x/p> _:a }":      true,
		"{ { _:a ?p ?v } UNION { _:b ?p ?v } }":                                              true,
		"{ _:a ?p ?v . { _:a ?q 1 } }":                                                       false,
		"{ { _:a ?p ?v } _:a ?q 1 }":                                                         false,
		"{ _:a ?p ?v . BIND(1 AS ?x) _:a ?q 1 }":                                             false,
		"{ _:a ?p ?v . VALUES ?x { 1 } _:a ?q 1 }":                                           false,
		"{ _:a ?p ?v . MINUS { ?s ?p ?v } _:a ?q 1 }":                                        false,
		"{ _:a ?p ?v . FILTER EXISTS { _:a ?q 1 } }":                                         false,
		"{ _:a ?p ?v FILTER EXISTS { _:b ?q ?v } ?x ?y ?z . OPTIONAL { _:b ?q 1 } }":         false,
		"{ _:a ?p ?v . { SELECT ?v { _:a ?q ?v } } }":                                        false,
		"{ GRAPH ?g { _:a ?p ?v } GRAPH ?g { _:a ?q ?v } }":                                  false,
		"{ _:a ?p ?v . SERVICE SILENT <http://x/> { ?s ?p ?v } _:a ?q ?v }":                  false,
		"{ { _:a ?p ?v FILTER EXISTS { _:b ?q 1 } } UNION { ?s ?p ?v FILTER(_:a) } }":        false,
		"{ ?s ?p ?v FILTER NOT EXISTS { _:b ?q 1 } FILTER NOT EXISTS { _:b ?q 2 } ?x ?y 1 }": false,
	} {
		_, err := parseQuery("SELECT * "+query, "")
		if (err == nil) != good {
			t.Errorf("%s: %v", query, err)
		}
	}
	for update, good := range map[string]bool{
		"INSERT DATA { _:a <http://x/p> 1 . GRAPH <http://x/g> { _:a <http://x/p> 2 } }":                                          true,
		"INSERT DATA { _:a <http://x/p> 1 } ; INSERT DATA { _:a <http://x/p> 2 }":                                                 false,
		"INSERT DATA { _:a <http://x/p> 1 } ; INSERT { _:a <http://x/p> ?o } WHERE { _:a <http://x/p> ?o }":                       true,
		"DELETE WHERE { ?s <http://x/q> ?o } ; INSERT { _:c <http://x/p> 3 } WHERE { _:d <http://x/p> 1 OPTIONAL { _:d ?p ?o } }": false,
		"INSERT { ?x <http://x/p> 3 } WHERE { _:d <http://x/p> ?x } ; DELETE { ?x <http://x/p> 3 } WHERE { _:d <http://x/p> ?x }": false,
	} {
		var syntax *SyntaxError
		if err := s.Update(t.Context(), update); good && err != nil || !good && !errors.As(err, &syntax) {
			t.Errorf("%s: %v", update, err)
		}
	}
}

// Equal values leave the order to the next key, and what is not equal does not.
func TestOrderBySecondKey(t *testing.T) {
	s := openTest(t, t.TempDir())
	loadText(t, s, "", strings.NewReplacer("^^", "^^<http://www.w3.org/2001/XMLSchema#", "K", "<http://x/k>", "V", "<http://x/v>").Replace(`
<http://x/4> V "1"^^integer> .
<http://x/4> K "a" .
<http://x/3> V "01"^^byte> .
<http://x/3> K "b" .
<http://x/2> V "1.0"^^decimal> .
<http://x/2> K "c" .
<http://x/1> V "1e0"^^double> .
<http://x/1> K "d" .
<http://x/8> V "2001-01-01Z"^^date> .
<http://x/8> K "a" .
<http://x/7> V "2001-01-01+00:00"^^date> .
<http://x/7> K "b" .
<http://x/6> V "-0001-01-01Z"^^date> .
<http://x/6> K "c" .
<http://x/5> V "12001-01-01Z"^^date> .
<http://x/5> K "d" .
<http://x/b> V "t"@en .
<http://x/b> K "a" .
<http://x/a> V "t"@EN .
<http://x/a> K "b" .
`))
	for query, want := range map[string]string{
		"?v ?k":                      "4 3 2 1 6 8 7 5 b a",
		"?v DESC(?k)":                "1 2 3 4 6 7 8 5 a b",
		"DESC(?v) ?k LIMIT 5":        "b a 5 8 7",
		"?v ?k LIMIT 3 OFFSET 1":     "3 2 1",
		"DESC(?v) DESC(?k) LIMIT 10": "a b 5 7 8 6 1 2 3 4",
	} {
		r, err := s.Query(t.Context(), "SELECT ?s { ?s <http://x/v> ?v ; <http://x/k> ?k } ORDER BY "+query, QueryOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for row, err := range r.Rows() {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, strings.TrimPrefix(row[0].IRI(), "http://x/"))
		}
		r.Close()
		if strings.Join(got, " ") != want {
			t.Errorf("ORDER BY %s gives %v, not %s", query, got, want)
		}
	}
	if got := ask(t, s, "SELECT (MIN(?v) AS ?a) (MAX(?v) AS ?b) { ?s <http://x/v> ?v FILTER(DATATYPE(?v) = <http://www.w3.org/2001/XMLSchema#date>) }"); len(got) != 1 || !strings.HasPrefix(got[0], `"-0001`) || !strings.Contains(got[0], `|"12001`) {
		t.Errorf("MIN and MAX give %v", got)
	}
}

// A path of no step starts at what a query names, or at the nodes of the graph, not at
// what a variable is bound to elsewhere.
func TestPathOfNoStep(t *testing.T) {
	s := openTest(t, t.TempDir())
	loadText(t, s, "", "<http://x/a> <http://x/p> <http://x/b> .\n<http://x/a> <http://x/q> \"1\" .\n")
	for query, want := range map[string]string{
		"VALUES ?v { 1 } ?v <http://x/p>? ?v":                            "",
		"VALUES ?v { <http://x/none> } ?v <http://x/p>* ?w":              "",
		"VALUES ?w { <http://x/none> } ?v <http://x/p>* ?w":              "",
		"VALUES ?v { <http://x/none> <http://x/b> } ?v <http://x/p>* ?w": "<http://x/b>|<http://x/b>",
		"VALUES ?w { \"1\" } ?v <http://x/p>? ?w":                        `"1"|"1"`,
		"<http://x/none> <http://x/p>* ?w":                               "|<http://x/none>",
		"VALUES ?w { <http://x/none> } <http://x/none> <http://x/p>* ?w": "|<http://x/none>",
		"VALUES ?v { <http://x/none> } ?v <http://x/p>+ ?w":              "",
	} {
		if got := strings.Join(ask(t, s, "SELECT ?v ?w { "+query+" }"), " "); got != want {
			t.Errorf("%s gives %s, not %s", query, got, want)
		}
	}
}

// SERVICE SILENT is one solution without bindings; without SILENT it is refused by name.
func TestServiceSilent(t *testing.T) {
	s := openTest(t, t.TempDir())
	loadText(t, s, "", "<http://x/a> <http://x/p> <http://x/b> .\n")
	for query, want := range map[string][]string{
		"SELECT * { ?s <http://x/p> ?o . SERVICE SILENT <http://127.0.0.1:1/> { ?s <http://x/q> ?v } }":                     {"<http://x/a>|<http://x/b>|"},
		"SELECT ?s { SERVICE SILENT ?endpoint { SELECT ?s { ?s ?p ?o } } }":                                                 {""},
		"SELECT ?s ?v { ?s ?p ?o OPTIONAL { SERVICE SILENT <http://127.0.0.1:1/> { ?s <http://x/q> ?v } FILTER(?v > 1) } }": {"<http://x/a>|"},
	} {
		if got := ask(t, s, query); !slices.Equal(got, want) {
			t.Errorf("%s gives %q", query, got)
		}
	}
	if _, err := s.Query(t.Context(), "SELECT * { SERVICE <http://127.0.0.1:1/> { ?s ?p ?o } }", QueryOptions{}); !errors.Is(err, ErrUnsupported) || statusOf(err) != 501 {
		t.Errorf("SERVICE: %v", err)
	}
}
