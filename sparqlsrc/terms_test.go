package sparqlsrc

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/internal/sparql"
	"github.com/rsbridge/rsbridge/internal/sparql/sparqltest"
	"github.com/rsbridge/rsbridge/rdfres"
)

// Terms of RDF 1.2, and language tags that are none, are the failure of their
// entity, named, and of nobody else, in whatever way a store is read.
func TestTermsBeyondRDF11(t *testing.T) {
	const ex = "<http://example.org/"
	for _, o := range []struct{ term, says string }{
		{`"x"@en--ltr`, `the literal "x"@en--ltr has the language tag "en--ltr"`},
		{`"x"@en_US`, `the literal "x"@en_US has the language tag "en_US"`},
		{`<<( <http://example.org/s> <http://example.org/p> "o >> \" \\"@en )>>`, `the triple term <<( <http://example.org/s>`},
		{`<<( <http://example.org/s> <http://example.org/p> <<( _:c <http://example.org/p> _:c )>> )>>`, `the triple term <<(`},
	} {
		triples := []rdfres.Triple{{S: ex + "c>", P: ex + "p>", O: `"c"`}, {S: ex + "bad>", P: ex + "p>", O: `"fine"`},
			{S: ex + "owner>", P: ex + "p>", O: "_:b"}, {S: "_:b", P: ex + "q>", O: `"in b"`}}
		for i := range 4 {
			triples = append(triples, rdfres.Triple{S: rdfres.Term(fmt.Sprintf("%se%d>", ex, i)), P: ex + "p>", O: `"e"`})
		}
		st := sparqltest.New(triples...)
		st.Add("", rdfres.Triple{S: ex + "bad>", P: ex + "p>", O: "<urn:odd>"}, rdfres.Triple{S: "_:b", P: ex + "p>", O: "<urn:odd>"})
		st.Rewrite = func(op, _ string, content []byte) []byte {
			text := string(content)
			if strings.HasPrefix(text, "{") { // JSON results
				return []byte(strings.ReplaceAll(text, `{"type":"uri","value":"urn:odd"}`, jsonOf(o.term)))
			}
			return []byte(strings.ReplaceAll(text, "<urn:odd>", o.term))
		}
		for _, way := range []sparql.Reading{sparql.ReadGraphStore, sparql.ReadConstruct, sparql.ReadSelectTSV, sparql.ReadSelectJSON, "batches", "construct"} {
			cfg := Config{}
			switch way {
			case "batches":
				cfg.Strategy = "batches"
			case "construct":
				cfg.Describe = `CONSTRUCT { ?entity <http://example.org/p> ?o } WHERE { ?entity <http://example.org/p> ?o }`
			}
			s := source(t, st, cfg)
			if cfg.Strategy == "" && cfg.Describe == "" {
				s.SetCapabilities(sparql.Capabilities{Readings: []sparql.Reading{way, sparql.ReadSelectJSON}})
			}
			what := fmt.Sprintf("%s by %s", o.term, way)
			sc, err := s.Scan(context.Background())
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			got := map[string]int{}
			for d, err := range sc.Descriptions() {
				if err != nil {
					t.Fatalf("%s: %v", what, err)
				}
				got[d.Entity] = len(d.Triples)
			}
			if _, there := got["http://example.org/bad"]; there || got["http://example.org/c"] != 1 || got["http://example.org/e3"] != 1 {
				t.Errorf("%s: %v", what, got)
			}
			failed := sc.Failed()
			if len(failed) == 0 || failed["http://example.org/bad"] == nil || !strings.Contains(failed["http://example.org/bad"].Error(), o.says) {
				t.Errorf("%s: failed %v", what, failed)
			}
			if way != "construct" {
				if failed["http://example.org/owner"] == nil {
					t.Errorf("%s: a blank node that leads there did not fail: %v", what, failed)
				}
				if x := sc.Stats(); x.Triples != 10 || x.Covered != 5 {
					t.Errorf("%s: %+v", what, x)
				}
			}
			if err := sc.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

func jsonOf(term string) string {
	if strings.HasPrefix(term, "<<") {
		return `{"type":"triple","value":{"subject":{"type":"uri","value":"http://example.org/s"},"predicate":{"type":"uri","value":"http://example.org/p"},"object":` +
			`{"type":"triple","value":{"subject":{"type":"bnode","value":"c"},"predicate":{"type":"uri","value":"http://example.org/p"},"object":{"type":"literal","value":"\" >>","xml:lang":"en"}}}}}`
	}
	if lang, ok := strings.CutPrefix(term, `"x"@en--`); ok { // as SPARQL 1.2 has it
		return `{"type":"literal","value":"x","xml:lang":"en","its:dir":"` + lang + `"}`
	}
	return `{"type":"literal","value":"x","xml:lang":"` + term[4:] + `"}`
}

// What a selection leaves out is not kept by the second look before deletions:
// orphan components are of a set without a selection only.
func TestDescribeOrphansOfSelection(t *testing.T) {
	st := sparqltest.New(rdfres.Triple{S: "<http://example.org/e1>", P: "<http://example.org/p>", O: `"1"`},
		rdfres.Triple{S: "_:o", P: "<http://example.org/p>", O: `"orphan"`})
	all, _ := scanAll(t, source(t, st, Config{}))
	var orphan string
	for e := range all {
		if strings.HasPrefix(e, orphanPrefix) {
			orphan = e
		}
	}
	for _, sel := range []Select{{}, {Prefixes: []string{"http://example.org/e"}}, {Prefixes: []string{"urn:"}}, {Classes: []string{"http://example.org/C"}},
		{Query: "SELECT ?entity WHERE { ?entity <http://example.org/p> ?o }"}} {
		for _, describe := range []string{"", "scbd"} {
			ds, err := source(t, st, Config{Select: sel, Describe: describe}).Describe(context.Background(), []string{orphan})
			if err != nil || len(ds) != 1 {
				t.Fatalf("%+v: %v, %v", sel, ds, err)
			}
			if there := len(ds[0].Triples) > 0; there != sel.isZero() {
				t.Errorf("%+v %s: the orphan has %d triples", sel, describe, len(ds[0].Triples))
			}
		}
	}
}

// Two literals that the store writes alike are no part that was sent twice: they
// are one here, which is told once.
func TestWrittenAlike(t *testing.T) {
	const double = "^^<http://www.w3.org/2001/XMLSchema#double>"
	for _, subject := range []rdfres.Term{"<http://example.org/s>", "_:b"} {
		st := sparqltest.New(rdfres.Triple{S: subject, P: "<http://example.org/p>", O: `"INF"` + double},
			rdfres.Triple{S: subject, P: "<http://example.org/p>", O: `"1e400"` + double},
			rdfres.Triple{S: "<http://example.org/other>", P: "<http://example.org/p>", O: `"x"`})
		alike := func(_, _ string, content []byte) []byte {
			return []byte(strings.ReplaceAll(string(content), `1e400"`, `INF"`))
		}
		st.Rewrite = alike
		var log strings.Builder
		for _, strategy := range []string{"", "batches"} {
			log.Reset()
			s := source(t, st, Config{Strategy: strategy, Logger: slog.New(slog.NewTextHandler(&log, nil))})
			for range 2 {
				got, x := scanAll(t, s)
				if len(got) != 2 || x.Triples != 2 || x.Covered != 2 {
					t.Errorf("%s %q: %v, %+v", subject, strategy, got, x)
				}
			}
			if n := strings.Count(log.String(), "writes alike"); n != 1 || !strings.Contains(log.String(), "INF") {
				t.Errorf("%s %q: told %d times:\n%s", subject, strategy, n, log.String())
			}
		}
	}
}

// An entity that cannot be described does not keep hints from the others.
func TestNamedFailed(t *testing.T) {
	const ex = "<http://example.org/"
	st := sparqltest.New(rdfres.Triple{S: ex + "a>", P: ex + "p>", O: `"a"`}, rdfres.Triple{S: ex + "bad>", P: ex + "p>", O: `"x"@en--ltr`},
		rdfres.Triple{S: ex + "deep>", P: ex + "p>", O: "_:b"}, rdfres.Triple{S: "_:b", P: ex + "p>", O: `"x"@en--ltr`})
	for _, describe := range []string{"", "scbd", `CONSTRUCT { ?entity ?p ?o } WHERE { ?entity ?p ?o FILTER(isLiteral(?o)) }`} {
		s := source(t, st, Config{Describe: describe})
		named, err := s.Named()
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range []string{"a", "bad", "deep"} {
			if err := named.Add("http://example.org/" + e); err != nil {
				t.Fatal(err)
			}
		}
		got := map[string]int{}
		for d, err := range named.Descriptions(context.Background()) {
			if err != nil {
				t.Fatalf("%q: %v", describe, err)
			}
			got[d.Entity] = len(d.Triples)
		}
		if _, there := got["http://example.org/bad"]; there || got["http://example.org/a"] != 1 || named.Failed()["http://example.org/bad"] == nil {
			t.Errorf("%q: %v, failed %v", describe, got, named.Failed())
		}
		if _, there := got["http://example.org/deep"]; len(describe) < 5 && (there || named.Failed()["http://example.org/deep"] == nil) {
			t.Errorf("%q: %v, failed %v", describe, got, named.Failed())
		}
		if _, err := s.Describe(context.Background(), []string{"http://example.org/bad"}); err == nil {
			t.Errorf("%q: described", describe)
		}
		if err := named.Close(); err != nil {
			t.Error(err)
		}
	}
}
