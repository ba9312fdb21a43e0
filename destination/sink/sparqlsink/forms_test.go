package sparqlsink

import (
	"bytes"
	"context"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/rsbridge/rsbridge/destination/sink"
	"github.com/rsbridge/rsbridge/internal/sparql"
	"github.com/rsbridge/rsbridge/internal/teststores"
	"github.com/rsbridge/rsbridge/rdfres"
)

func TestIRIForms(t *testing.T) {
	for iri, want := range map[string]string{
		"http://ex.org/a/./b": "dot-segments", "http://ex.org/a/..": "dot-segments", "urn:x:a/../b": "dot-segments",
		"http://ex.org/a/.?q": "dot-segments", "http://ex.org/a?x=/./b": "", "http://ex.org/#/./x": "", "http://ex.org/a/.../b": "", "http://ex.org/.a": "",
		"HTTP://ex.org/a": "scheme-case", "http://EX.org/a": "host-case", "http://ex.org:80/": "port", "http://ex.org:8080/": "",
		"http://ex.org": "empty-path", "http://ex.org/%41": "percent", "http://ex.org/\u00e9": "unicode", "http://ex.org/": "", "urn:x": "",
	} {
		got := ""
		for _, f := range iriForms {
			if f.has(iri) {
				got = f.name
			}
		}
		if got != want {
			t.Errorf("%s: %q, want %q", iri, got, want)
		}
	}
	for _, f := range iriForms {
		for _, iri := range f.probes {
			if !f.has(iri) || sink.CheckIRI("<"+iri+">") != nil {
				t.Errorf("probe %s of %s", iri, f.name)
			}
		}
	}
	forms := []string{"dot-segments"}
	if got := changedTerm(forms, `"x <http://ex.org/a/./b>"`); got != "" {
		t.Errorf("text of a literal: %q", got)
	}
	if got := changedTerm(forms, `"x"^^<http://ex.org/a/./b>`); got != "http://ex.org/a/./b" {
		t.Errorf("datatype: %q", got)
	}
}

// The probe leaves nothing behind and finds what Fuseki does.
func TestProbeIRIs(t *testing.T) {
	for name, get := range map[string]func(testing.TB) teststores.Server{"fuseki": teststores.Fuseki, "oxigraph": teststores.Oxigraph} {
		t.Run(name, func(t *testing.T) {
			store := get(t)
			client, err := sparql.New(sparql.Endpoint{Name: name, Query: store.Query, Update: store.Update, GraphStore: store.GraphStore})
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			m := New(client, &sink.Place{})
			got, err := m.ProbeIRIs(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			raw, _ := json.Marshal(got)
			want := `{"Update":null,"GSP":null,"Graphs":null}`
			if name == "fuseki" {
				want = `{"Update":["dot-segments"],"GSP":null,"Graphs":null}`
			}
			if !bytes.Equal(raw, []byte(want)) {
				t.Errorf("%s", raw)
			}
			left, err := client.Ask(context.Background(), `ASK { GRAPH ?g { ?s ?p ?o } FILTER(STRSTARTS(STR(?p), "urn:rsbridge:probe:iri:")) }`)
			if err != nil || left {
				t.Errorf("left behind: %v %v", left, err)
			}
		})
	}
}

// Virtuoso holds some literals not at all, and some by updates only.
func TestVirtuosoHolds(t *testing.T) {
	const xsd = "http://www.w3.org/2001/XMLSchema#"
	for literal, want := range map[string]string{"NaN float": "no", " nan double": "no", "-NaN double": "no", "INF double": "yes", "1e5 float": "yes", "x double": "no", "1.5 decimal": "yes", ".5 decimal": "yes",
		"1,5 decimal": "no", "12 integer": "yes", "9223372036854775808 integer": "no", "-9223372036854775808 long": "yes", "1.5 int": "no", "P1Y duration": "no", "PT1H dayTimeDuration": "update", "TRUE boolean": "no",
		"1 boolean": "yes", "NaN string": "yes", "-0001-01-01T00:00:00Z dateTime": "no", "-0001-07-12 date": "no", "-1 gYear": "no", "-0001-12Z gYearMonth": "no", "-5000-01-01 date": "no", "-9999 gYear": "yes",
		"-4716-01-01 date": "yes", "-0044-03-15 date": "yes", "-12345-01-01 date": "yes", "12345-01-01 date": "yes", "2020-01-02T24:00:00Z dateTime": "yes", "2020-01-02T03:04:05+15:00 dateTime": "yes", " date": "no", "garbage date": "yes",
		"-0001-01-01T00:00:00Z dateTimeStamp": "yes", "-1 string": "yes"} {
		lexical, local, _ := strings.Cut(literal, " ")
		if strings.HasPrefix(literal, " nan") {
			lexical, local = " nan", "double"
		}
		got := "no"
		if why, upload := virtuosoHolds(rdfres.NewLiteral(lexical, "", xsd+local)); why == "" && upload {
			got = "yes"
		} else if why == "" {
			got = "update"
		}
		if got != want {
			t.Errorf("%q: %s, want %s", literal, got, want)
		}
	}
}

var codepoint = regexp.MustCompile(`\\u[0-9A-Fa-f]{4}`)

// FuzzUpdateText: whatever safeTriples lets through is one triple in an update.
func FuzzUpdateText(f *testing.F) {
	f.Add("http://a/b", "x\\u0022", "en")
	f.Add("http://a/} ; DROP ALL", "\" } ;\n", "")
	f.Fuzz(func(t *testing.T, iri, lex, lang string) {
		o := rdfres.NewLiteral(lex, lang, "")
		tr := rdfres.Triple{S: rdfres.NewIRI(iri), P: rdfres.NewIRI(iri), O: o}
		if sink.CheckTriples([]rdfres.Triple{tr}) != nil {
			return
		}
		line := string(appendSPARQL(nil, tr))
		if strings.Count(line, "\n") != 1 {
			t.Fatalf("%q", line)
		}
		if !strings.ContainsFunc(lex, unicode.IsControl) { // an engine that undoes \u first reads the same
			undone := codepoint.ReplaceAllStringFunc(line, func(s string) string {
				n, _ := strconv.ParseUint(s[2:], 16, 32)
				return string(rune(n))
			})
			q, ok, err := rdfres.ParseLine([]byte(strings.TrimSuffix(undone, "\n")))
			if err != nil || !ok || q.Triple != tr {
				t.Fatalf("%q undone is %q, which comes back as %v %v", line, undone, q, err)
			}
		}
		q, ok, err := rdfres.ParseLine([]byte(strings.TrimSuffix(line, "\n")))
		if err != nil || !ok || q.Triple != tr {
			t.Fatalf("%q comes back as %v %v", line, q, err)
		}
	})
}
