package engine_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/internal/embedstore"
	. "github.com/rsbridge/rsbridge/internal/embedstore/engine"
	"github.com/rsbridge/rsbridge/rdfres"
	gordf "github.com/tggo/goRDFlib"
	"github.com/tggo/goRDFlib/nt"
	"github.com/tggo/goRDFlib/sparql"
)

// flat is the simplest Data: triples of the default graph.
type flat []rdfres.Triple

func (f flat) Match(p Pattern) iter.Seq2[rdfres.Quad, error] {
	return func(yield func(rdfres.Quad, error) bool) {
		for _, t := range f {
			if p.G == "" && (p.S == "" || p.S == t.S) && (p.P == "" || p.P == t.P) && (p.O == "" || p.O == t.O) {
				if !yield(rdfres.Quad{Triple: t}, nil) {
					return
				}
			}
		}
	}
}

func (f flat) Graphs() ([]rdfres.Term, error) { return nil, nil }

func iri(s string) rdfres.Term { return rdfres.NewIRI("http://x/" + s) }

// TestMended lists what goRDFlib answers wrongly and this package mends: the
// first count is goRDFlib's own answer, shown to be wrong still; the second the
// right one.
func TestMended(t *testing.T) {
	text := "<http://x/a> <http://x/p> <http://x/b> .\n<http://x/b> <http://x/q> \"x\" .\n<http://x/p> <http://x/p> <http://x/p> .\n_:m <http://x/q> <http://x/a> .\n"
	_, snap := open(t, text)
	raw := gordf.NewGraph()
	if err := nt.Parse(raw, strings.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		why, query  string
		wrong, want int
	}{
		{"a variable that stands twice in a pattern is compared with itself only by luck", "SELECT * { ?x <http://x/p> ?x }", 2, 1},
		{"a literal as subject is taken for anything", "SELECT * { ?s <http://x/q> ?o . ?o ?p ?z }", 5, 1},
		{"a term that is no IRI as predicate is taken for anything", "SELECT * { ?s <http://x/q> ?o . ?a ?o ?z }", 4, 0},
		{"a blank node in a pattern is another one each time", "SELECT ?a { ?a <http://x/p> _:b . _:b <http://x/q> ?c }", 4, 1},
		{"an error is false, and its negation true", "SELECT * { ?s ?p ?o FILTER(!(?nothing = <http://x/a>)) }", 4, 0},
		{"what is unbound differs from everything", "SELECT * { ?s ?p ?o FILTER(?nothing != <http://x/a>) }", 4, 0},
		{"an unbound variable is no blank node, instead of an error", "SELECT * { ?s ?p ?o FILTER(!isBlank(?nothing)) }", 4, 0},
		{"the filter of an OPTIONAL does not see the left side", "SELECT ?z { ?s <http://x/p> ?o OPTIONAL { ?z <http://x/q> ?w FILTER(?s = <http://x/a>) } FILTER(bound(?z)) }", 0, 2},
		{"a path backwards from a literal finds nothing", `SELECT * { ?s <http://x/q>+ "x" }`, 0, 1},
		{"a path of no step does not lead to a literal", `SELECT * { ?s <http://x/q>? "x" }`, 0, 2},
	} {
		r, err := sparql.Query(raw, c.query)
		if err != nil {
			t.Fatalf("%s: %v", c.query, err)
		}
		if len(r.Bindings) != c.wrong {
			t.Errorf("goRDFlib gives %d rows, the table says %d: %s (%s)", len(r.Bindings), c.wrong, c.query, c.why)
		}
		got, err := Query(context.Background(), snap, c.query, Options{})
		if err != nil || len(got.Rows) != c.want {
			t.Errorf("%s: %v, %v, want %d rows", c.query, got, err, c.want)
		}
	}
}

// TestRefused lists what goRDFlib answers wrongly and nothing mends.
func TestRefused(t *testing.T) {
	for why, query := range map[string]string{
		"literals of different types with the same letters are equal": `SELECT * { ?s ?p ?o FILTER(?o = "1") }`,
		"terms that cannot be compared are ordered by letters":        `SELECT * { ?s ?p ?o FILTER(?o < 5) }`,
		"strlen of an IRI is a number":                                `SELECT * { ?s ?p ?o FILTER(strlen(?s) = 10) }`,
		"Go's regular expressions, and false for bad ones":            `SELECT * { ?s ?p ?o FILTER(regex(?o, "a")) }`,
		"lang is in lower case":                                       `SELECT * { ?s ?p ?o FILTER(lang(?o) = "en") }`,
		"integers are computed as doubles":                            `SELECT (?o + 1 AS ?x) { ?s ?p ?o }`,
		"AVG of integers is a double":                                 `SELECT (AVG(?o) AS ?x) { ?s ?p ?o }`,
		"SUM of nothing that is a number":                             `SELECT (SUM(?o) AS ?x) { ?s ?p ?o }`,
		"MIN by letters":                                              `SELECT (MIN(?o) AS ?x) { ?s ?p ?o }`,
		"HAVING":                                                      `SELECT ?s { ?s ?p ?o } GROUP BY ?s HAVING (COUNT(*) > 1)`,
		"unknown functions are unbound":                               `PREFIX x: <http://x/> SELECT (x:f(?o) AS ?x) { ?s ?p ?o }`,
		"order by letters":                                            `SELECT * { ?s ?p ?o } ORDER BY ?o`,
		"the order within a sub-select decides":                       `SELECT * { { SELECT ?o { ?s ?p ?o } ORDER BY ?o LIMIT 1 } }`,
		"FROM is passed over":                                         `SELECT * FROM <http://x/g> { ?s ?p ?o }`,
		"negated sets forget inverse steps":                           `SELECT * { ?s !(<http://x/p>|^<http://x/q>) ?o }`,
		"literals end at an escaped quote":                            `SELECT * { ?s ?p "a\"b" }`,
		"nested blank nodes are dropped":                              `SELECT * { ?s ?p [ ?q [ ?r ?o ] ] }`,
		"EXISTS of more than patterns does not see the row":           `SELECT * { ?s ?p ?o FILTER EXISTS { ?o ?q ?z FILTER(?z = ?s) } }`,
		"deep texts end the process":                                  `SELECT * { ?s ?p ?o FILTER(` + strings.Repeat("(", 100_000) + `1` + strings.Repeat(")", 100_000) + `) }`,
		"so do long negations":                                        `SELECT * { ?s ?p ?o FILTER(` + strings.Repeat("! ", 100_000) + `true) }`,
	} {
		if _, err := Query(context.Background(), flat{}, query, Options{}); !errors.Is(err, ErrRefused) {
			t.Errorf("%s: %.100s: %v", why, query, err)
		}
	}
}

// TestMovedJoins: the closure of blank nodes, and patterns right of a join, over
// data that would be looked at for each row.
func TestMovedJoins(t *testing.T) {
	var b strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&b, "<http://x/s%d> <http://x/p> _:b%d .\n_:b%d <http://x/q> \"%d\" .\n<http://x/s%d> <http://x/n> <http://x/s%d> <http://x/g> .\n", i, i, i, i, i, (i+1)%2000)
	}
	_, snap := open(t, b.String())
	values := func(v string) string {
		s := "VALUES " + v + " {"
		for i := range 200 {
			s += fmt.Sprintf(" <http://x/s%d>", i)
		}
		return s + " }"
	}
	for _, c := range []struct {
		query string
		want  int
	}{
		{"SELECT * { { " + values("?s") + " ?s ?p ?o } UNION { " + values("?e") + " ?e ?p1 ?s FILTER(isBlank(?s)) ?s ?p ?o } }", 400},
		{"SELECT * { { ?s <http://x/p> ?o } UNION { ?s <http://x/q> ?o } " + values("?s") + " }", 200},
		{"SELECT * { " + values("?s") + " { ?s <http://x/p> ?o OPTIONAL { ?o <http://x/q> ?z } } }", 200},
		{"SELECT * { " + values("?s") + " GRAPH ?g { ?s <http://x/n> ?o } }", 200},
		{"SELECT * { ?s <http://x/p> ?o GRAPH ?g { ?s <http://x/n> ?n } FILTER(?n = <http://x/s7>) }", 1},
		{"SELECT * { ?s <http://x/p> ?o MINUS { ?o <http://x/q> ?z } }", 0},
	} {
		// The budget holds only when the bindings are pushed down.
		r, err := Query(context.Background(), snap, c.query, Options{Budget: Budget{Rows: 20_000}})
		if err != nil || len(r.Rows) != c.want {
			t.Errorf("%.200s: %v, want %d", c.query, err, c.want)
		}
	}
	var be *BudgetError
	_, err := Query(context.Background(), snap, "SELECT * { { { ?s <http://x/p> ?o } UNION { ?s <http://x/q> ?o } "+values("?s")+" } }", Options{Budget: Budget{Rows: 2000}}.Unmoved())
	if !errors.As(err, &be) || be.What != "rows" {
		t.Errorf("without moving: %v", err)
	}
}

func TestBudget(t *testing.T) {
	var f flat
	for i := range 300 {
		f = append(f, rdfres.Triple{S: iri(fmt.Sprint("s", i)), P: iri("p"), O: iri("o")})
	}
	cross := "SELECT * { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i }"
	var be *BudgetError
	if _, err := Query(context.Background(), f, cross, Options{Budget: Budget{Rows: 10_000}}); !errors.As(err, &be) || be.What != "rows" {
		t.Errorf("rows: %v", err)
	}
	if _, err := Query(context.Background(), f, cross, Options{Budget: Budget{MemoryBytes: 1 << 20}}); !errors.As(err, &be) || be.What != "memory" {
		t.Errorf("memory: %v", err)
	}
	if _, err := Query(context.Background(), f, cross, Options{Budget: Budget{Time: 1}}); !errors.As(err, &be) || be.What != "time" {
		t.Errorf("time: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Query(ctx, f, cross, Options{Budget: Budget{Time: time.Hour}}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	big := "{ VALUES ?%c {" + strings.Repeat(" <http://x/a>", 3000) + " } } "
	if _, err := Query(context.Background(), f, "SELECT * { "+fmt.Sprintf(big+big, 'x', 'y')+"}", Options{Budget: Budget{Rows: 10_000}}); !errors.As(err, &be) || be.What != "rows" {
		t.Errorf("products of VALUES: %v", err)
	}
}

// broken fails or panics when it is read.
type broken struct {
	flat
	panics bool
}

func (b broken) Match(Pattern) iter.Seq2[rdfres.Quad, error] {
	if b.panics {
		panic("boom")
	}
	return func(yield func(rdfres.Quad, error) bool) { yield(rdfres.Quad{}, errors.New("disk gone")) }
}

func TestFailures(t *testing.T) {
	for _, b := range []broken{{}, {panics: true}} {
		_, err := Query(context.Background(), b, "SELECT * { ?s ?p ?o }", Options{})
		if want := map[bool]string{false: "disk gone", true: "boom"}[b.panics]; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestTermsKeepTheirSpelling: what goRDFlib would write otherwise comes back as it was.
func TestTermsKeepTheirSpelling(t *testing.T) {
	var f flat
	for _, o := range []rdfres.Term{`"a"@EN-gb`, `"a"@en-GB`, `"a"@abcdefghij`, `"01"^^<` + "http://www.w3.org/2001/XMLSchema#integer>",
		`"1.0e5"^^<http://www.w3.org/2001/XMLSchema#decimal>`, `"1.0e5"^^<http://www.w3.org/2001/XMLSchema#double>`, `"TRUE"^^<http://www.w3.org/2001/XMLSchema#boolean>`,
		`"\"\n\\"`, `""`, `"x"^^<http://x/\u0020t>`, `<http://x/\u0020a>`, `_:b1`, `<>`, `"0"^^<urn:rsbridge:engine:aside>`} {
		f = append(f, rdfres.Triple{S: iri("s"), P: iri("p"), O: o})
	}
	r, err := Query(context.Background(), f, "SELECT DISTINCT ?o { ?s ?p ?o . ?t ?q ?o }", Options{})
	if err != nil || len(r.Rows) != len(f) {
		t.Fatalf("%v, %d rows, want %d", err, len(r.Rows), len(f))
	}
	for _, tr := range f {
		if !slices.ContainsFunc(r.Rows, func(row []rdfres.Term) bool { return row[0] == tr.O }) {
			t.Errorf("%s did not come back", tr.O)
		}
	}
}

func TestModify(t *testing.T) {
	ctx := context.Background()
	_, snap := open(t, "<http://x/a> <http://x/p> \"1\" .\n<http://x/b> <http://x/p> \"2\" <http://x/g> .\n<http://x/b> <http://x/p> <http://x/a> <http://x/g> .\n")
	del, ins, err := Modify(ctx, snap, `PREFIX x: <http://x/> DELETE { GRAPH ?g { ?s x:p ?o } } INSERT { ?s x:moved ?o . ?o x:by [] . GRAPH x:h { ?s x:in ?g } } WHERE { GRAPH ?g { ?s x:p ?o } }`, Options{})
	if err != nil || len(del) != 2 || len(ins) != 4 {
		t.Fatalf("%v\n%v\n%v", err, del, ins)
	}
	if del[0].G != "<http://x/g>" || !slices.Contains(ins, rdfres.Quad{Triple: rdfres.Triple{S: iri("b"), P: iri("in"), O: iri("g")}, G: iri("h")}) {
		t.Errorf("%v %v", del, ins)
	}
	if del, _, err = Modify(ctx, snap, `DELETE WHERE { <http://x/a> ?p ?o }`, Options{}); err != nil || len(del) != 1 || del[0].O != `"1"` {
		t.Errorf("%v %v", del, err)
	}
	for _, text := range []string{"CLEAR ALL", "DELETE WHERE { ?s ?p ?o } ; DELETE WHERE { ?s ?p ?o }", "WITH <http://x/g> DELETE { ?s ?p ?o } WHERE { ?s ?p ?o }"} {
		if _, _, err := Modify(ctx, snap, text, Options{}); !errors.Is(err, ErrRefused) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// FuzzQuery: no text ends the process, and what the store answers too, it
// answers the same.
func FuzzQuery(f *testing.F) {
	s, snap := open(f, "<http://x/a> <http://x/p> <http://x/b> .\n<http://x/b> <http://x/q> \"x\" <http://x/g> .\n_:m <http://x/q> _:m .\n")
	f.Add("SELECT * { ?s ?p ?o FILTER(!isBlank(?s)) OPTIONAL { ?o <http://x/q>+ ?z } }")
	f.Add("CONSTRUCT { ?s ?p _:x } { VALUES ?s { <http://x/a> } GRAPH ?g { ?s ?p ?o } MINUS { ?s a ?o } }")
	f.Add("ASK { { SELECT ?s (COUNT(*) AS ?n) { ?s ?p ?o } GROUP BY ?s } }")
	f.Fuzz(func(t *testing.T, text string) {
		want, err := own(s, text, embedstore.QueryOptions{})
		if err != nil {
			// The engine is asked only for what the store's parser takes.
			Query(context.Background(), snap, text, Options{Budget: Budget{Rows: 10_000}})
			return
		}
		got, err := Query(context.Background(), snap, text, Options{Budget: Budget{Rows: 10_000}})
		if err != nil || strings.Contains(strings.ToUpper(text), "LIMIT") || strings.Contains(strings.ToUpper(text), "OFFSET") {
			return
		}
		if a, b := answer(got, false), answer(want, false); !slices.Equal(a, b) {
			t.Errorf("%s: %q, want %q", text, a, b)
		}
	})
}
