package rdfres

import (
	"errors"
	"strings"
	"testing"
)

func FuzzCheckIRI(f *testing.F) {
	for _, s := range []string{"http://e/a b", "http://e/é", "http://e/a\\u0020", "", "http://e/\"^^<", "http://e/\x00", "urn:x", "\u2028", "a}b{"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, iri string) {
		at := strings.IndexAny(iri, "\x00\x01\x02\x03\x04\x05\x06\a\b\t\n\v\f\r\x0e\x0f\x10\x11\x12\x13\x14\x15\x16\x17\x18\x19\x1a\x1b\x1c\x1d\x1e\x1f <>\"{}|^`\\")
		for _, term := range []Term{NewIRI(iri), NewLiteral("a\\ b\n>", "", iri)} {
			var bad *IRIError
			switch err := CheckIRI(term); {
			case (err != nil) != (at >= 0):
				t.Fatalf("%s: %v", term, err)
			case err != nil && (!errors.As(err, &bad) || bad.IRI != iri || bad.Char != rune(iri[at])):
				t.Fatalf("%s: %#v", term, err)
			}
			if CheckIRI([]byte(term)) == nil != (at < 0) {
				t.Fatalf("%s as bytes", term)
			}
		}
		for _, none := range []Term{NewBlank("x"), NewLiteral(iri, "en", ""), NewLiteral(iri, "", ""), ""} {
			if err := CheckIRI(none); err != nil {
				t.Fatalf("%s: %v", none, err)
			}
		}
	})
}
