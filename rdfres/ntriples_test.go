package rdfres

import (
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/rdfres/internal/chars"
)

func TestParseLine(t *testing.T) {
	const s, p = "<http://e/s>", "<http://e/p>"
	for _, c := range []struct{ name, line, want string }{
		{"iris", `<http://e/s> <http://e/p> <http://e/o> .`, `<http://e/s> <http://e/p> <http://e/o> .`},
		{"no white space", `<http://e/s><http://e/p><http://e/o>.`, `<http://e/s> <http://e/p> <http://e/o> .`},
		{"tabs and a comment", "\t<http://e/s>\t<http://e/p>\t\"a\"\t.\t# hm", `<http://e/s> <http://e/p> "a" .`},
		{"blank nodes", `_:a.b <http://e/p> _:1·x.`, `_:a.b <http://e/p> _:1·x .`},
		{"label with colon", `_::a:b <http://e/p> _:c .`, `_::a:b <http://e/p> _:c .`},
		{"language keeps its case", s + p + `"a"@zh-Hant-TW.`, s + " " + p + ` "a"@zh-Hant-TW .`},
		{"datatype", s + p + `"1"^^<http://e/d> .`, s + " " + p + ` "1"^^<http://e/d> .`},
		{"xsd:string is left out", s + p + `"1"^^<http://www.w3.org/2001/XMLSchema#string> .`, s + " " + p + ` "1" .`},
		{"xsd:string escaped", s + p + `"1"^^<http://www.w3.org/2001/XMLSchema#strin\u0067> .`, s + " " + p + ` "1" .`},
		{"escapes", s + p + `"\t\b\n\r\f\"\'\\\u0041\U0001F303\u0001\u007F" .`, s + " " + p + ` "\t\b\n\r\f\"'\\A🌃\u0001\u007F" .`},
		{"raw controls", s + p + "\"a\tb\x01\x7f\" .", s + " " + p + ` "a\tb\u0001\u007F" .`},
		{"noncharacters", s + p + "\"\uFFFE\uFFFF\uFFFD\\uFFFE\" .", s + " " + p + " \"\\uFFFE\\uFFFF\uFFFD\\uFFFE\" ."},
		{"IRI escapes", `<http://e/\u00e9\u0020\u003E> <http://e/p> "\u00E9"^^<http://e/\u0064> .`, `<http://e/é\u0020\u003E> <http://e/p> "é"^^<http://e/d> .`},
		{"graph", s + p + `"a"@en <http://e/g> .`, s + " " + p + ` "a"@en <http://e/g> .`},
		{"graph blank", s + p + `"a" _:g .`, s + " " + p + ` "a" _:g .`},
	} {
		q, ok, err := ParseLine([]byte(c.line))
		if err != nil || !ok {
			t.Errorf("%s: %v %v", c.name, ok, err)
			continue
		}
		if got := strings.TrimSuffix(string(q.AppendLine(nil)), "\n"); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
		var sc LineScanner
		if _, err := sc.Scan([]byte(c.want)); err != nil || string(sc.AppendLine(nil)) != c.want+"\n" {
			t.Errorf("%s: canonical line changes: %q %v", c.name, sc.AppendLine(nil), err)
		}
		if sc.Canonical && string(q.AppendLine(nil)) != c.want+"\n" {
			t.Errorf("%s: called canonical", c.name)
		}
	}
	for _, line := range []string{"", "  \t", "# a comment", "  # another", `VERSION "1.2"`, "\tVERSION\t\"1.2-basic\" # RDF 1.2", `VERSION"1\u002E2"`} {
		if _, ok, err := ParseLine([]byte(line)); ok || err != nil {
			t.Errorf("%q: %v %v", line, ok, err)
		}
	}
}

func TestParseLineRefuses(t *testing.T) {
	const s, p = "<http://e/s>", "<http://e/p>"
	for _, c := range []struct{ line, reason string }{
		{`<http://e/ s> <http://e/p> <http://e/o> .`, "a space cannot stand in an IRI"},
		{`<http://e/{s}> <http://e/p> <http://e/o> .`, "'{' cannot stand"},
		{`<http://e/\u00ZZ11> <http://e/p> <http://e/o> .`, "hexadecimal"},
		{`<http://e/\n> <http://e/p> <http://e/o> .`, "unknown escape"},
		{`<s> <http://e/p> <http://e/o> .`, "relative"},
		{`<http://e/s> <p> <http://e/o> .`, "relative"},
		{s + p + `"a"^^<d> .`, "relative"},
		{s + p + `"a"^^xsd:string .`, "datatype"},
		{s + p + `"a" "b" .`, "a literal cannot be the graph"},
		{`"a"` + p + s + " .", "a literal cannot be the subject"},
		{s + "_:p" + s + " .", "predicate"},
		{s + p + s, "no '.'"},
		{s + p + s + " . " + s, "after the '.'"},
		{s + p + ".", "the object cannot begin with '.'"},
		{s + p + `"a`, "no '\"'"},
		{s + p + `"a\`, "no '\"'"},
		{s + p + `"a\x" .`, "unknown escape"},
		{s + p + `"\uD800" .`, "surrogate"},
		{s + p + `"\uD83D\uDE00" .`, "surrogate"},
		{s + p + `"\U00110000" .`, "beyond"},
		{s + p + `"\U0001F30" .`, "hexadecimal"},
		{s + p + "\"a\xff\" .", "UTF-8"},
		{s + p + "\"a\xed\xa0\x80\" .", "UTF-8"},
		{s + p + `"a"@1 .`, "language tag"},
		{s + p + `"a"@en- .`, "the graph cannot begin"},
		{s + p + `'a' .`, "cannot begin with"},
		{`_: <http://e/p> "a" .`, "no label"},
		{`_:-a <http://e/p> "a" .`, "no label"},
		{`_:a <http://e/p> 1 .`, "cannot begin"},
		{`@prefix a: <http://e/> .`, "cannot begin with '@'"},
		{`VERSION 1.2`, "column 1: the subject cannot begin with 'V'"},
		{`VERSION "1.2`, "column 1: the subject cannot begin with 'V'"},
		{`VERSION "1.2" .`, "column 1: the subject cannot begin with 'V'"},
		{`VERSION "1.2"@en`, "column 1: the subject cannot begin with 'V'"},
		{`version "1.2"`, "column 1: the subject cannot begin with 'v'"},
		{s + p + `"a" VERSION "1.2" .`, "the graph cannot begin with 'V'"},
		{s + p + `<<( <http://e/s> <http://e/p> "a" )>> .`, "line 1, column 25: triple terms and reified triples (<< of RDF 1.2) cannot be read: have the source write RDF 1.1"},
	} {
		q, ok, err := ParseLine([]byte(c.line))
		if err == nil {
			t.Errorf("%s: accepted as %v (%v)", c.line, q, ok)
		} else if !strings.Contains(err.Error(), c.reason) {
			t.Errorf("%s: %v, want %q", c.line, err, c.reason)
		}
	}
}

// The scanner remembers the subject of the line before; an escaped one must
// not come back as it was written.
func TestLineScannerRemembersCanonicalSubjectsOnly(t *testing.T) {
	var sc LineScanner
	for range 3 {
		if ok, err := sc.Scan([]byte(`<http://e/\u003e> <http://e/p> "a" .`)); !ok || err != nil {
			t.Fatal(ok, err)
		}
		if string(sc.S) != `<http://e/\u003E>` {
			t.Fatalf("subject %s", sc.S)
		}
	}
}

func TestShorthandType(t *testing.T) {
	for text, want := range map[string]string{"42": "integer", "-01": "integer", "+1.50": "decimal", ".5": "decimal", "1e6": "double", "1.E-6": "double", "true": "boolean", "false": "boolean"} {
		if got := ShorthandType([]byte(text)); got != "http://www.w3.org/2001/XMLSchema#"+want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
	for _, none := range []string{"", "a", "1.", "1e", "+", "TRUE", "1 2", ".", "e5"} {
		if got := ShorthandType([]byte(none)); got != "" {
			t.Errorf("%s: %s", none, got)
		}
	}
}

func TestTermParts(t *testing.T) {
	for _, c := range []struct {
		term                    Term
		kind                    TermKind
		lexical, lang, datatype string
		iri, label              string
	}{
		{NewIRI("http://e/a b"), KindIRI, "", "", "", "http://e/a b", ""},
		{NewIRI(`http://e/"\`), KindIRI, "", "", "", `http://e/"\`, ""},
		{NewBlank("a"), KindBlank, "", "", "", "", "a"},
		{NewLiteral("", "", ""), KindLiteral, "", "", chars.XSDString, "", ""},
		{NewLiteral("a\n\"\\\x00", "", chars.XSDString), KindLiteral, "a\n\"\\\x00", "", chars.XSDString, "", ""},
		{NewLiteral(`"@en`, "", ""), KindLiteral, `"@en`, "", chars.XSDString, "", ""},
		{NewLiteral("a", "en-GB", "ignored"), KindLiteral, "a", "en-GB", chars.RDFLangString, "", ""},
		{NewLiteral("a", "", chars.RDFLangString), KindLiteral, "a", "", chars.RDFLangString, "", ""},
		{NewLiteral("a", "", `http://e/">`), KindLiteral, "a", "", `http://e/">`, "", ""},
		{"", KindNone, "", "", "", "", ""},
	} {
		lexical, lang, datatype := c.term.Literal()
		if c.term.Kind() != c.kind || lexical != c.lexical || lang != c.lang || datatype != c.datatype || c.term.IRI() != c.iri || c.term.Label() != c.label {
			t.Errorf("%s: %v %q %q %q %q %q", c.term, c.term.Kind(), lexical, lang, datatype, c.term.IRI(), c.term.Label())
		}
		if c.term == "" {
			continue
		}
		if err := c.term.Check(); err != nil && c.term != NewLiteral("a", "", "x") {
			t.Errorf("%s: %v", c.term, err)
		}
	}
	if a, b := NewBlank("nodeID://b1"), NewBlank("nodeID://b2"); a == b || a.Check() != nil {
		t.Errorf("odd labels: %s %s", a, b)
	}
}
