package embedstore

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/rdfres"
)

// TestReadTouched: what an update may change is all in its text, or in one question before it, or
// unknown.
func TestReadTouched(t *testing.T) {
	for text, want := range map[string]string{
		`INSERT DATA { <urn:a> <urn:p> 1, <urn:o> . GRAPH <urn:g> { <urn:b> <urn:p> 1 } }`: "[urn:a urn:a urn:b] [  urn:g]",
		`PREFIX x: <urn:> DELETE DATA { x:a x:p 1 }`:                                       "[urn:a] []",
		// Fresh blank nodes belong to what leads to them; of the others the text says nothing.
		`INSERT DATA { <urn:a> <urn:p> [ <urn:q> [ <urn:r> 1 ] ] }`:                              "[urn:a] [  ]",
		`INSERT DATA { <urn:a> <urn:p> ( 1 [ <urn:r> 1 ] ) }`:                                    "[urn:a] [     ]",
		`INSERT DATA { _:x <urn:p> 1 }`:                                                          "unknown",
		`INSERT DATA { _:x <urn:p> _:y . _:y <urn:p> _:x }`:                                      "unknown",
		`INSERT DATA { <urn:a> <urn:p> _:x . GRAPH <urn:g> { _:x <urn:p> 1 } }`:                  "unknown",
		`DELETE DATA { <_:b0> <urn:p> 1 }`:                                                       "unknown",
		`DELETE { <urn:a> <urn:p> 1 } INSERT { <urn:a> <urn:p> 2 } WHERE { <urn:b> <urn:p> ?x }`: "[urn:a urn:a] [ ]",
		`DELETE WHERE { <urn:a> <urn:p> ?o }`:                                                    "[urn:a] [] [] [o]  { <urn:a> <urn:p> ?o }",
		`DELETE WHERE { GRAPH <urn:g> { ?s <urn:p> ?o } } # all`:                                 "[] [urn:g] [s] [o]  { GRAPH <urn:g> { ?s <urn:p> ?o } } # all",
		`INSERT { ?s <urn:p> [ <urn:q> ?v ] } WHERE { ?s <urn:r> ?v }`:                           "[] [ ] [s] [v]  leading [s] { ?s <urn:r> ?v }",
		// An illegal triple falls away, and the blank node behind it stays.
		`INSERT { ?s ?p ( ?v ) } WHERE { ?s ?p ?v }`:                                                      "[] [   ] [s] [v]  leading [s p] { ?s ?p ?v }",
		`INSERT { <urn:a> <urn:p> _:x . _:x ?p _:y . _:y <urn:q> 1 } WHERE { ?s <urn:r> ?p }`:             "[urn:a] [   ] [] []  leading [p] { ?s <urn:r> ?p }",
		`INSERT { ?s <urn:p> _:x . _:x ?p 1 . <urn:a> <urn:p> _:x . } WHERE { ?s <urn:r> ?p }`:            "[urn:a] [   ] [s] []  { ?s <urn:r> ?p }",
		`INSERT { [] <urn:q> ?v } WHERE { ?s <urn:r> ?v }`:                                                "unknown",
		`WITH <urn:g> DELETE { ?s ?p 1 } WHERE { ?s ?p 1 }`:                                               "[] [urn:g] [s] []  { GRAPH <urn:g> { ?s ?p 1 } }",
		`WITH <urn:g> DELETE { ?s ?p 1 } USING <urn:h> USING NAMED <urn:i> WHERE { ?s ?p 1 }`:             "[] [urn:g] [s] []  FROM <urn:h> FROM NAMED <urn:i>{ ?s ?p 1 }",
		`INSERT { GRAPH ?g { <urn:a> <urn:p> 1 } } WHERE { GRAPH ?g { ?s ?p ?o } }`:                       "[urn:a] [] [] []  any { GRAPH ?g { ?s ?p ?o } }",
		`DELETE WHERE { <urn:a> ?p ?o } ; INSERT DATA { <urn:b> <urn:p> 1 }`:                              "[urn:a urn:b] [ ] [] [o]  { <urn:a> ?p ?o }",
		`INSERT DATA { <urn:b> <urn:p> 1 } ; DELETE WHERE { <urn:a> ?p ?o }`:                              "unknown",
		`INSERT DATA { <urn:b> <urn:p> 1 } ; DELETE DATA { <urn:a> <urn:p> 1 }`:                           "[urn:b urn:a] [ ]",
		`CREATE SILENT GRAPH <urn:g>`:                                                                     "[] []",
		`DROP GRAPH <urn:g>`:                                                                              "[] [urn:g] [s] [o]  { GRAPH <urn:g> { ?s ?p ?o } }",
		`CLEAR DEFAULT`:                                                                                   "unknown",
		`COPY <urn:g> TO <urn:h>`:                                                                         "[] [urn:h] [s] [o]  { { GRAPH <urn:g> { ?s ?p ?o } } UNION { GRAPH <urn:h> { ?s ?p ?o } } }",
		`MOVE SILENT <urn:g> TO <urn:h>`:                                                                  "[] [urn:h urn:g] [s] [o]  { { GRAPH <urn:g> { ?s ?p ?o } } UNION { GRAPH <urn:h> { ?s ?p ?o } } }",
		`ADD <urn:g> TO <urn:h>`:                                                                          "[] [urn:h] [s] [o]  { GRAPH <urn:g> { ?s ?p ?o } }",
		`ADD DEFAULT TO <urn:h>`:                                                                          "unknown",
		`DELETE { ?s <urn:p> 1 } WHERE { { SELECT ?s { ?s <urn:q> ?o } } }`:                               "[] [] [s] []  { { SELECT ?s { ?s <urn:q> ?o } } }",
		`DELETE { ?s <urn:p> ?n } WHERE { { SELECT ?s (COUNT(*) AS ?n) { ?s <urn:q> ?o } GROUP BY ?s } }`: "unknown",
		`LOAD <urn:g>`: "unknown",
		`INSERT { ?u <urn:p> 1 } WHERE { BIND(UUID() AS ?u) }`:                        "unknown",
		`DELETE { ?s <urn:p> ?o } WHERE { ?s <urn:p> ?o FILTER(RAND() > 0.5) }`:       "unknown",
		`DELETE { ?s <urn:p> ?o } WHERE { SERVICE SILENT <urn:x> { ?s <urn:p> ?o } }`: "unknown",
		`DELETE { ?s <urn:p> ?o } WHERE { { SELECT * { ?s <urn:p> ?o } LIMIT 1 } }`:   "unknown",
		`INSERT DATA { <a> <urn:p> 1 }`:                                               "unknown",
		`INSERT DATA { << <urn:a> <urn:p> 1 >> <urn:q> 2 }`:                           "unknown",
		`what`: "unknown",
	} {
		got := ReadTouched(text)
		said := fmt.Sprint(got.Subjects, " ", got.Graphs)
		if b := got.Bindings; b != nil {
			said += fmt.Sprint(" ", b.Subjects, " ", b.Others, " ", b.Dataset)
			if b.AnyGraph {
				said += " any "
			}
			if len(b.Leading) > 0 {
				said += fmt.Sprint(" leading ", b.Leading, " ")
			}
			said += strings.Join(strings.Fields(b.Pattern), " ")
		}
		if got.Unknown {
			said = "unknown"
		}
		if strings.Join(strings.Fields(said), " ") != strings.Join(strings.Fields(want), " ") {
			t.Errorf("%s:\n%q, want\n%q", text, said, want)
		}
	}
}

// TestKnownAfterUnknown: what a commit of many places, a cleared store or a bulk load touched is unknown;
// the commits after it are known.
func TestKnownAfterUnknown(t *testing.T) {
	s, err := Open(t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var many strings.Builder
	for n := range 2 * maxPlaces {
		fmt.Fprintf(&many, "<urn:many%d> <urn:p> <urn:o> .\n", n)
	}
	for _, c := range []struct {
		name string
		do   func() error
	}{
		{"many places", func() error { return s.Update(t.Context(), "INSERT DATA { "+many.String()+" }") }},
		{"all cleared", func() error { return s.Update(t.Context(), "CLEAR ALL") }},
		{"a bulk load", func() error {
			_, err := s.Load(t.Context(), "", rdfres.NTriples, strings.NewReader(many.String()), LoadOptions{})
			return err
		}},
	} {
		before := place(t, s)
		if err := c.do(); err != nil {
			t.Fatal(c.name, err)
		}
		at := place(t, s)
		if got, _, err := s.TouchedSince(before, nil); err != nil || !got.Unknown {
			t.Errorf("%s: %+v %v", c.name, got, err)
		}
		for n := range 2 {
			if err := s.Update(t.Context(), fmt.Sprintf("INSERT DATA { <urn:one> <urn:p> %q }", fmt.Sprint(c.name, n))); err != nil {
				t.Fatal(err)
			}
		}
		if got, _, err := s.TouchedSince(at, nil); err != nil || got.Unknown || !slices.Equal(got.Subjects, []string{"urn:one"}) {
			t.Errorf("after %s: %+v %v", c.name, got, err)
		}
	}
}

func place(t *testing.T, s *Store) string {
	t.Helper()
	_, at, err := s.TouchedSince("", nil)
	if err != nil {
		t.Fatal(err)
	}
	return at
}
