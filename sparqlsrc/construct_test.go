package sparqlsrc

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/internal/sparql/sparqltest"
	"github.com/rsbridge/rsbridge/rdfres"
)

const constructText = `PREFIX ex: <http://example.org/>
BASE <http://base.example/>
CONSTRUCT {
  ?entity a ex:Thing ; ex:name ?name , "fixed"@en ; ex:n 1 , 2.5 , -3e0 , true .
  ?entity ex:part [ ex:value ?name ; ex:list ( 1 ?name ) ] .   # a comment with { and }
  _:x ex:of ?entity ; ex:rel <rel> .
  ?name ex:impossible ?entity .
}
WHERE { ?entity ex:name ?name FILTER(STRSTARTS(STR(?name), "n}")) }`

func nameTriples(n int) []rdfres.Triple {
	var ts []rdfres.Triple
	for i := range n {
		e := rdfres.NewIRI(fmt.Sprintf("http://example.org/e%d", i))
		for k := range 1 + i%2 {
			ts = append(ts, rdfres.Triple{S: e, P: "<http://example.org/name>", O: rdfres.NewLiteral(fmt.Sprintf("n}%d-%d", i, k), "", "")})
		}
		ts = append(ts, rdfres.Triple{S: e, P: "<http://example.org/name>", O: `"other"`})
	}
	return ts
}

func TestConstruct(t *testing.T) {
	st := sparqltest.New(nameTriples(30)...)
	st.Shuffle = true
	s := source(t, st, Config{Describe: constructText, BatchSize: 7})
	got, _ := scanAll(t, s)
	if len(got) != 30 {
		t.Fatalf("%d entities", len(got))
	}
	one := got["http://example.org/e0"]
	var text strings.Builder
	for _, x := range one {
		text.Write(x.AppendLine(nil))
	}
	for _, want := range []string{
		`<http://example.org/e0> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://example.org/Thing> .`,
		`<http://example.org/e0> <http://example.org/name> "n}0-0" .`,
		`<http://example.org/e0> <http://example.org/name> "fixed"@en .`,
		`<http://example.org/e0> <http://example.org/n> "1"^^<http://www.w3.org/2001/XMLSchema#integer> .`,
		`<http://example.org/e0> <http://example.org/n> "2.5"^^<http://www.w3.org/2001/XMLSchema#decimal> .`,
		`<http://example.org/e0> <http://example.org/n> "-3e0"^^<http://www.w3.org/2001/XMLSchema#double> .`,
		`<http://example.org/e0> <http://example.org/n> "true"^^<http://www.w3.org/2001/XMLSchema#boolean> .`,
		`<http://example.org/rel>`,
	} {
		want = strings.Replace(want, "<http://example.org/rel>", "<http://base.example/rel>", 1)
		if !strings.Contains(text.String(), want) {
			t.Errorf("missing %s in\n%s", want, text.String())
		}
	}
	if strings.Contains(text.String(), "impossible") {
		t.Error("a triple with a literal as subject was made")
	}
	if len(one) != 16 {
		t.Errorf("%d triples in\n%s", len(one), text.String())
	}
	// Two rows make two sets of blank nodes; names are the same again.
	parts := 0
	for _, x := range got["http://example.org/e1"] {
		if x.P == "<http://example.org/part>" {
			parts++
		}
	}
	if parts != 2 {
		t.Errorf("e1 has %d parts, want one for each row", parts)
	}
	again, _ := scanAll(t, s)
	diff(t, "again", again, got)
	ds, err := s.Describe(context.Background(), []string{"http://example.org/e1", "http://example.org/e0", "http://example.org/none"})
	if err != nil {
		t.Fatal(err)
	}
	if len(ds) != 3 {
		t.Errorf("%d descriptions", len(ds))
	}
	for _, d := range ds {
		if !slices.Equal(d.Triples, got[d.Entity]) {
			t.Errorf("describe %s differs from the scan", d.Entity)
		}
	}
}

func TestConstructRefused(t *testing.T) {
	for _, q := range []string{
		`CONSTRUCT { ?entity ?p ?o } WHERE { ?entity ?p ?o } LIMIT 10`,
		`CONSTRUCT { ?entity ?p ?o } FROM <http://g> WHERE { ?entity ?p ?o }`,
		`CONSTRUCT { ?entity ?p } WHERE { ?entity ?p ?o }`,
		`CONSTRUCT { "x" ?p ?entity } WHERE { ?entity ?p ?o }`,
		`CONSTRUCT { ?entity no:p ?o } WHERE { ?entity ?p ?o }`,
		`CONSTRUCT { ?entity <rel> ?o } WHERE { ?entity ?p ?o }`,
		`CONSTRUCT { ?entity ?p ?o } WHERE { ?entity ?p ?o`,
		`CONSTRUCT { ?entity ?p ?o `,
		`CONSTRUCT { } WHERE { ?entity ?p ?o }`,
		`CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }`,
		`SELECT ?entity WHERE { ?entity ?p ?o }`,
	} {
		if _, err := parseConstruct(q); err == nil {
			t.Errorf("accepted: %s", q)
		}
	}
	if c, err := parseConstruct(`CONSTRUCT WHERE { ?entity <http://example.org/p> ?o }`); err != nil || len(c.template) != 1 {
		t.Errorf("the short form: %v", err)
	}
}

func FuzzParseConstruct(f *testing.F) {
	f.Add(constructText)
	f.Add(`CONSTRUCT WHERE { ?entity a <x:y> }`)
	f.Add("PREFIX : <a:b> CONSTRUCT { ?entity :p ((),[]) } { ?entity ?p '''a'b''' }")
	f.Fuzz(func(t *testing.T, q string) {
		c, err := parseConstruct(q)
		if err != nil {
			return
		}
		row := make([]rdfres.Term, len(c.vars))
		for i := range row {
			row[i] = "<http://example.org/x>"
		}
		for _, x := range c.fill(row, 1, nil) {
			if x.S.Kind() == rdfres.KindLiteral || x.P.Kind() != rdfres.KindIRI {
				t.Errorf("made %v of %q", x, q)
			}
		}
	})
}

// A variable that is not bound makes no triple (SPARQL 1.1, section 16.2).
func TestConstructUnbound(t *testing.T) {
	st := sparqltest.New(
		rdfres.Triple{S: "<http://example.org/a>", P: "<http://example.org/p>", O: `"1"`},
		rdfres.Triple{S: "<http://example.org/b>", P: "<http://example.org/q>", O: `"2"`},
	)
	s := source(t, st, Config{Describe: `CONSTRUCT { ?entity <http://example.org/x> ?v ; <http://example.org/y> ?w } WHERE {
		{ ?entity <http://example.org/p> ?v } UNION { ?entity <http://example.org/q> ?w } }`})
	got, _ := scanAll(t, s)
	diff(t, "scan", got, map[string][]rdfres.Triple{
		"http://example.org/a": {{S: "<http://example.org/a>", P: "<http://example.org/x>", O: `"1"`}},
		"http://example.org/b": {{S: "<http://example.org/b>", P: "<http://example.org/y>", O: `"2"`}},
	})
	ds, err := s.Describe(context.Background(), []string{"http://example.org/a"})
	if err != nil || len(ds) != 1 || len(ds[0].Triples) != 1 {
		t.Errorf("describe: %v, %v", ds, err)
	}
}

// A query of the user's that leaves its entity unbound names nothing in that row.
func TestSelectUnbound(t *testing.T) {
	st := sparqltest.New(nameTriples(4)...)
	s := source(t, st, Config{Select: Select{Query: `SELECT ?x ?entity WHERE { { ?entity <http://example.org/name> "n}1-0" } UNION { ?x <http://example.org/name> "other" } }`}})
	got, _ := scanAll(t, s)
	if len(got) != 1 || got["http://example.org/e1"] == nil {
		t.Errorf("%d entities", len(got))
	}
	named := 0
	err := s.NamedSince(context.Background(), s.cfg.Select.Query, time.Time{}, func(string) error { named++; return nil })
	if err != nil || named != 1 {
		t.Errorf("a hints query: %d, %v", named, err)
	}
}
