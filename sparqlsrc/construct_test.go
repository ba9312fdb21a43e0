package sparqlsrc

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/internal/sparql"
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

// TestConstructLimited: a limit of rows that the store was given since it was probed is
// met while the entities are listed, so that no answer of that length is trusted.
func TestConstructLimited(t *testing.T) {
	st := sparqltest.New(nameTriples(30)...)
	cfg := Config{Describe: "CONSTRUCT { ?entity ?p ?o } WHERE { ?entity ?p ?o }"}
	want, _ := scanAll(t, source(t, st, cfg))
	s := source(t, st, cfg)
	s.SetCapabilities(sparql.Capabilities{Readings: []sparql.Reading{sparql.ReadSelectTSV}, Sample: 10_001, ValuesLimit: 5000})
	st.RowLimit = 7
	got, _ := scanAll(t, s)
	diff(t, "limited", got, want)
}

// TestConstructNoBound: the largest number there is means no bound.
func TestConstructNoBound(t *testing.T) {
	s := source(t, sparqltest.New(nameTriples(5)...), Config{Describe: "CONSTRUCT { ?entity ?p ?o } WHERE { ?entity ?p ?o }", MaxDescriptionTriples: math.MaxInt})
	sc, err := s.Scan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer sc.Close()
	if got, _ := read(t, sc); len(got) != 5 || len(sc.Failed()) > 0 {
		t.Errorf("%d entities, failed %v", len(got), sc.Failed())
	}
}

// TestConstructTooMuch: an entity of which a CONSTRUCT makes too much fails alone, and so
// does one that no query can name.
func TestConstructTooMuch(t *testing.T) {
	ts := nameTriples(5)
	for i := range 40 {
		ts = append(ts, rdfres.Triple{S: "<http://example.org/e3>", P: "<http://example.org/name>", O: rdfres.NewLiteral(fmt.Sprint("n}", i), "", "")})
	}
	s := source(t, sparqltest.New(ts...), Config{Describe: "CONSTRUCT { ?entity ?p ?o } WHERE { ?entity ?p ?o }", MaxDescriptionTriples: 4})
	sc, err := s.Scan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer sc.Close()
	if got, _ := read(t, sc); len(got) != 4 || !sc.IsFailed("http://example.org/e3") {
		t.Errorf("%d entities, failed %v", len(got), sc.Failed())
	}
	named, err := s.Named()
	if err != nil {
		t.Fatal(err)
	}
	defer named.Close()
	for _, e := range []string{"http://example.org/e2", "http://example.org/e3", "http://example.org/a b"} {
		if err := named.Add(e); err != nil {
			t.Fatal(err)
		}
	}
	n := 0
	for d, err := range named.Descriptions(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if n++; d.Entity != "http://example.org/e2" {
			t.Errorf("%s has %d triples", d.Entity, len(d.Triples))
		}
	}
	if n != 1 || len(named.Failed()) != 2 {
		t.Errorf("%d described, failed %v", n, named.Failed())
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

// graphStore is a store with named graphs, and a graph of our own.
func graphStore() *sparqltest.Store {
	st := sparqltest.New()
	for g := range 3 {
		st.Add(fmt.Sprintf("http://g.example/%d", g),
			rdfres.Triple{S: rdfres.NewIRI(fmt.Sprintf("http://example.org/e%d", g)), P: "<http://example.org/name>", O: `"n"`},
			rdfres.Triple{S: "<http://example.org/both>", P: "<http://example.org/name>", O: `"in all"`})
	}
	st.Add("urn:rsbridge:state", rdfres.Triple{S: "<http://example.org/own>", P: "<http://example.org/name>", O: `"own"`})
	return st
}

const namesText = `CONSTRUCT { ?entity <http://example.org/has> [ <http://example.org/value> ?n ] } WHERE { ?entity <http://example.org/name> ?n }`

// A CONSTRUCT is asked over the graphs of the set, however many there are, and a
// triple that stands in several makes one blank node.
func TestConstructGraphs(t *testing.T) {
	for _, graphs := range [][]string{{"*"}, {"http://g.example/0", "http://g.example/1", "http://g.example/2"}, {"http://g.example/0"}} {
		s := source(t, graphStore(), Config{Graphs: graphs, Describe: namesText})
		got, st := scanAll(t, s)
		want, triples := 4, int64(4)
		if len(graphs) == 1 && graphs[0] != "*" {
			want, triples = 2, 2
		}
		if len(got) != want || len(got["http://example.org/both"]) != 2 {
			t.Errorf("%v: %v", graphs, got)
		}
		if st.Triples != triples || st.Constructed != int64(2*want) || st.Covered != 0 || st.LeftOut != 0 {
			t.Errorf("%v: %+v", graphs, st)
		}
		if graphs[0] == "*" && st.Own != 1 {
			t.Errorf("own triples: %+v", st)
		}
		ds, err := s.Describe(context.Background(), []string{"http://example.org/both"})
		if err != nil || len(ds) != 1 || !slices.Equal(ds[0].Triples, got["http://example.org/both"]) {
			t.Errorf("%v: describe %v, %v", graphs, ds, err)
		}
	}
	st := graphStore()
	st.Add("", rdfres.Triple{S: "<http://example.org/d>", P: "<http://example.org/name>", O: `"default"`})
	if _, err := source(t, st, Config{Graphs: []string{"*"}, Describe: namesText}).Scan(context.Background()); err == nil || !strings.Contains(err.Error(), "name the graphs under graphs") {
		t.Errorf("the default graph besides: %v", err)
	}
	st = sparqltest.New(nameTriples(3)...) // no named graph at all
	if got, _ := scanAll(t, source(t, st, Config{Graphs: []string{"*"}, Describe: namesText})); len(got) != 3 {
		t.Errorf("no named graph: %v", got)
	}
}

// The subjects of rsbridge's own graphs are no entities, also where the user's queries
// ask all graphs. What is data elsewhere stays.
func TestConstructOwnSubjects(t *testing.T) {
	st := graphStore()
	st.Add("urn:rsbridge:state", rdfres.Triple{S: "<http://example.org/data>", P: "<http://example.org/name>", O: `"own"`})
	st.Add("", rdfres.Triple{S: "<http://example.org/data>", P: "<http://example.org/name>", O: `"n"`})
	s := source(t, st, Config{Select: Select{Query: `SELECT DISTINCT ?entity WHERE { GRAPH ?g { ?entity <http://example.org/name> ?n } }`},
		Describe: `CONSTRUCT { ?entity <http://example.org/has> ?n } WHERE { GRAPH ?g { ?entity <http://example.org/name> ?n } }`})
	got, _ := scanAll(t, s)
	if len(got) != 5 || got["http://example.org/own"] != nil || got["http://example.org/data"] == nil {
		t.Errorf("%v", got)
	}
	if ds, err := s.Describe(context.Background(), []string{"http://example.org/own"}); err != nil || len(ds) != 1 || len(ds[0].Triples) != 0 {
		t.Errorf("%v, %v", ds, err)
	}
}

// What the bookkeeping tells of an entity is not of its description, whichever way a query goes.
func TestConstructOwnStatements(t *testing.T) {
	data, about := rdfres.NewIRI("http://example.org/data"), rdfres.NewIRI("urn:rsbridge:description:1:2")
	st := sparqltest.New(rdfres.Triple{S: data, P: "<http://example.org/name>", O: `"n"`})
	st.Add("urn:rsbridge:state", rdfres.Triple{S: about, P: "<http://xmlns.com/foaf/0.1/primaryTopic>", O: data})
	st.Add("urn:rsbridge:state", rdfres.Triple{S: about, P: "<urn:rsbridge:terms#keptBy>", O: "<urn:rsbridge:mirror:1>"})
	s := source(t, st, Config{Describe: `CONSTRUCT { ?entity <http://example.org/name> ?n . ?x ?y ?entity . ?entity <http://example.org/in> ?g , ?x }
		WHERE { { ?entity <http://example.org/name> ?n } UNION { GRAPH ?g { ?x ?y ?entity } } }`})
	got, _ := scanAll(t, s)
	if ts := got["http://example.org/data"]; len(got) != 1 || len(ts) != 1 || ts[0].O != `"n"` {
		t.Errorf("%v", got)
	}
}

// The user's SELECT is asked over the graphs of the set, unless it names graphs.
func TestSelectGraphs(t *testing.T) {
	for _, c := range []struct {
		graphs []string
		query  string
		want   int
	}{
		{[]string{"http://g.example/1"}, `SELECT DISTINCT ?entity WHERE { ?entity <http://example.org/name> "n" }`, 1},
		{[]string{"http://g.example/1", "http://g.example/2"}, `PREFIX ex: <http://example.org/> SELECT DISTINCT ?entity { ?entity ex:name ?n }`, 3},
		{[]string{"*"}, `SELECT DISTINCT ?entity WHERE { ?entity <http://example.org/name> "n" }`, 3},
		{[]string{"http://g.example/1"}, `SELECT DISTINCT ?entity WHERE { GRAPH <http://g.example/1> { ?entity <http://example.org/name> ?n } }`, 2},
	} {
		s := source(t, graphStore(), Config{Graphs: c.graphs, Select: Select{Query: c.query}})
		if got, _ := scanAll(t, s); len(got) != c.want {
			t.Errorf("%v %s: %v", c.graphs, c.query, got)
		}
		asked, err := s.overGraphs(context.Background(), c.query)
		if err != nil {
			t.Fatal(err)
		}
		if n, err := s.client.Count(context.Background(), asked.count); err != nil || n < int64(c.want) {
			t.Errorf("%s: counted %d, %v", asked.count, n, err)
		}
	}
}

func TestCheckSelect(t *testing.T) {
	for query, ok := range map[string]bool{
		`SELECT ?entity WHERE { ?entity ?p ?o }`:                                 true,
		`SELECT DISTINCT ?x $entity { ?entity ?p ?x }`:                           true,
		`SELECT * { ?entity ?p ?x }`:                                             true,
		`SELECT (IRI(?x) AS ?entity) WHERE { ?s ?p ?x }`:                         true,
		`SELECT ?s WHERE { ?s ?p ?o }`:                                           false,
		`SELECT (STR(?entity) AS ?s) WHERE { ?entity ?p ?o }`:                    false,
		`SELECT * { ?s ?p ?o }`:                                                  false,
		`SELECT ?s FROM <http://g> { ?s ?p ?entity }`:                            false,
		`SELECT ?s { { SELECT ?entity { ?entity ?p ?o } } }`:                     false,
		`CONSTRUCT { ?entity ?p ?o } WHERE { ?entity ?p ?o }`:                    false,
		`PREFIX e: <x:> SELECT REDUCED ?entity WHERE { ?entity e:p [] } LIMIT 5`: true,
	} {
		if err := CheckSelect(query); (err == nil) != ok {
			t.Errorf("%s: %v", query, err)
		}
	}
	if _, err := New(serve(t, sparqltest.New()), Config{Select: Select{Query: `SELECT ?s { ?s ?p ?o }`}}); err == nil || !strings.Contains(err.Error(), "does not select ?entity") {
		t.Errorf("%v", err)
	}
}
