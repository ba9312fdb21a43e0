package embedstore

import (
	"context"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/rdfres"
)

func TestMapping(t *testing.T) {
	ts, err := rdfres.Decode(rdfres.Turtle, []byte(`@prefix e: <http://e/> . e:a e:name "A" ; e:part [ e:n 1 ] . e:b e:name "B" .`), rdfres.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	m, err := ParseMapping(`PREFIX e: <http://e/> PREFIX s: <http://s/>
CONSTRUCT { ?entity s:label ?n ; s:part ?p . ?p s:n ?v ; s:upper ?u . _:x s:of ?entity } WHERE { ?entity e:name ?n OPTIONAL { ?entity e:part ?p . ?p e:n ?v BIND(STR(?v) AS ?u) } }`)
	if err != nil {
		t.Fatal(err)
	}
	got, err := m.Apply(context.Background(), "http://e/a", rdfres.SortUnique(ts))
	if err != nil {
		t.Fatal(err)
	}
	named, _, err := rdfres.NameBlanks(got, rdfres.NameOptions{})
	if err != nil {
		t.Fatal(err)
	}
	text := ""
	for _, q := range named {
		text += string(q.AppendLine(nil))
	}
	if len(got) != 5 || !strings.Contains(text, `<http://e/a> <http://s/label> "A"`) || !strings.Contains(text, `<http://s/upper> "1"`) || strings.Contains(text, `"B"`) {
		t.Errorf("made %s", text)
	}
	if got, err := m.Apply(context.Background(), "http://e/none", ts); err != nil || len(got) != 0 {
		t.Error(got, err)
	}
	if _, err := m.Apply(context.Background(), "http://e/a> } #", ts); err == nil {
		t.Error("an IRI broke out")
	}
	for _, bad := range []string{
		"", "SELECT * WHERE { ?s ?p ?o }", "CONSTRUCT { ?s ?p ?o } FROM <http://g> WHERE { ?s ?p ?o }", "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o } VALUES ?s { <http://a> }",
		"CONSTRUCT { ?s ?p } WHERE { ?s ?p ?o }", "CONSTRUCT { ?s ?p ?o } WHERE { SERVICE <http://127.0.0.1:1/> { ?s ?p ?o } }",
		"CONSTRUCT{?s ?p ?o}WHERE{?s<http://p>?o.FILTER(?o<1)SERVICE?s{?s ?p ?o}FILTER(?o>1)}",
	} {
		if _, err := ParseMapping(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

// Names that a map uses may hold what is a keyword elsewhere.
func TestMappingWithKeywordsAsNames(t *testing.T) {
	ts := []rdfres.Triple{{S: "<http://e/a>", P: "<http://e/from>", O: `"1"`}, {S: "<http://e/a>", P: "<http://e/service>", O: `"2"`}}
	for _, text := range []string{
		`PREFIX e: <http://e/> CONSTRUCT { ?entity <http://s/describe-with> ?from ; <http://s/using> $service } WHERE { ?entity e:from ?from ; e:service $service }`,
		`PREFIX from: <http://e/> CONSTRUCT { ?entity <http://s/bindings> ?with , ?using } WHERE { ?entity from:from ?with ; from:service ?using }`,
	} {
		m, err := ParseMapping(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got, err := m.Apply(context.Background(), "http://e/a", ts); err != nil || len(got) != 2 {
			t.Errorf("%s: %v %v", text, got, err)
		}
	}
}

// What an entity is called has no part in whether a map can be evaluated.
func TestMappingOfNames(t *testing.T) {
	m, err := ParseMapping(`CONSTRUCT { ?entity <http://s/label> ?n ; a <http://s/Record> ; <http://s/of> ?x } WHERE { ?entity <http://e/name> ?n OPTIONAL { ?x <http://e/part> ?entity } FILTER(STRSTARTS(STR(?entity), "http://e/")) }`)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		"http://e/Z\u00fcrich", "http://e/\U0001F600", "http://e/service/1", "http://e/gone-with-the-wind", "http://e/describe", "http://e/FROM/using", "http://e/bindings", "http://e/?a=(b)&c=-'d'", "http://e/((((((((((-!!!!!!",
	} {
		e := rdfres.NewIRI(name)
		ts := []rdfres.Triple{{S: e, P: rdfres.NewIRI("http://e/name"), O: rdfres.NewLiteral("N", "", "")}, {S: rdfres.NewIRI("http://e/other"), P: rdfres.NewIRI("http://e/part"), O: e}}
		got, err := m.Apply(context.Background(), name, ts)
		if err != nil || len(got) != 3 {
			t.Errorf("%s: %v %v", name, got, err)
		}
	}
	if got, err := m.Apply(context.Background(), "http://f/a", []rdfres.Triple{{S: "<http://f/a>", P: "<http://e/name>", O: `"N"`}}); err != nil || len(got) != 0 {
		t.Error(got, err)
	}
}
