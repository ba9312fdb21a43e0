package sparql

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/rdfres"
)

func TestEscape(t *testing.T) {
	for _, iri := range []string{"http://example.org/a>b", "http://example.org/a b", "a\nb", `a"b`, "a{b", "a}b", `a\u003Eb`, "a^b", "a`b", "a|b", "a<b", "\xff"} {
		if out, err := EscapeIRI(iri); err == nil {
			t.Errorf("%q became %s", iri, out)
		}
		if out, err := EscapeTerm(rdfres.NewIRI(iri)); err == nil {
			t.Errorf("term %q became %s", iri, out)
		}
		if out, err := EscapeTerm(rdfres.NewLiteral("x", "", iri)); err == nil {
			t.Errorf("datatype %q became %s", iri, out)
		}
	}
	for in, want := range map[rdfres.Term]string{
		rdfres.NewIRI("http://example.org/ä?x=1#y"):           "<http://example.org/ä?x=1#y>",
		rdfres.NewLiteral("a\"b\\c\nd\re\tf} ; DROP", "", ""): `"a\"b\\c\nd\re\tf} ; DROP"`,
		rdfres.NewLiteral("x", "en-GB", ""):                   `"x"@en-GB`,
		rdfres.NewLiteral("1", "", xsd+"integer"):             `"1"^^<` + xsd + `integer>`,
	} {
		if got, err := EscapeTerm(in); err != nil || got != want {
			t.Errorf("%s: %s, %v", in, got, err)
		}
	}
	if _, err := EscapeTerm(rdfres.NewLiteral("x", "en> }", "")); err == nil {
		t.Error("a language tag broke out")
	}
	if _, err := EscapeTerm("_:b"); err == nil {
		t.Error("a blank node was written")
	}
}

// What is written for a query reads back as the same term.
func FuzzEscapeTerm(f *testing.F) {
	f.Add("a\"b\\", "en")
	f.Add("\u0000\t\x7f\ufffe", "")
	f.Fuzz(func(t *testing.T, lexical, lang string) {
		term := rdfres.NewLiteral(lexical, lang, "")
		if term.Check() != nil {
			return
		}
		out, err := EscapeTerm(term)
		if err != nil {
			t.Fatalf("%q: %v", term, err)
		}
		got, err := parseTerm([]byte(out))
		if err != nil || got != term {
			t.Fatalf("%q was written as %s and read as %q, %v", term, out, got, err)
		}
	})
}

func FuzzTSV(f *testing.F) {
	f.Add([]byte("?a\t?b\n<x:y>\t\"v\"@en\n1.5\t_:x\n"))
	f.Add([]byte("?a\n'''x'''^^<x:y>\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, vars, err := newTSV(bytes.NewReader(data))
		if err != nil {
			return
		}
		for {
			row, err := r.next()
			if err != nil {
				return
			}
			if len(row) != len(vars) {
				t.Fatalf("%d columns of %d", len(row), len(vars))
			}
			for _, x := range row {
				if x != "" && x.Kind() == rdfres.KindNone {
					t.Fatalf("no term: %q", x)
				}
			}
		}
	})
}

func FuzzJSON(f *testing.F) {
	f.Add([]byte(`{"head":{"vars":["a"]},"results":{"bindings":[{"a":{"type":"uri","value":"x:y"}}]}}`))
	f.Add([]byte(`{"head":{},"boolean":true}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, vars, isAsk, _, err := newJSON(bytes.NewReader(data))
		if err != nil || isAsk {
			return
		}
		for {
			row, err := r.next()
			if err == io.EOF {
				if !strings.HasSuffix(strings.TrimSpace(string(data)), "}") {
					t.Fatalf("a cut document was accepted: %q", data)
				}
				return
			}
			if err != nil {
				return
			}
			if len(row) != len(vars) {
				t.Fatalf("%d columns of %d", len(row), len(vars))
			}
		}
	})
}

// What a store may resolve is not named in a query that looks for it.
func TestNameIRI(t *testing.T) {
	for iri, ok := range map[string]bool{
		"http://e.example/a/./b": false, "http://e.example/a/../b": false, "http://e.example/.": false, "http://e.example/a/..": false,
		"urn:x:a/./b": false, "http://e.example/..?x": false, "http://e.example/a b": false,
		"http://e.example/.a": true, "http://e.example/a./b": true, "http://e.example/...": true, "http://e.example/?x=/../y": true, "http://e.example/#/./y": true,
	} {
		if _, err := NameIRI(iri); (err == nil) != ok {
			t.Errorf("%s: %v", iri, err)
		}
	}
}
