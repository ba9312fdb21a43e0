package rdfres

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

// readAll gives the statements of a document.
func readAll(doc []byte, f Format, o ReadOptions) (qs []Quad, err error) {
	for q, err := range Read(bytes.NewReader(doc), f, o) {
		if err != nil {
			return nil, err
		}
		qs = append(qs, q)
	}
	return qs, nil
}

// checkGraph checks what a reader of a whole format gave: canonical terms, and
// a graph that the deterministic formats carry.
func checkGraph(t *testing.T, doc []byte, qs []Quad) {
	t.Helper()
	var ts []Triple
	for _, q := range qs {
		for _, term := range []Term{q.S, q.P, q.O} {
			if err := term.Check(); err != nil && !strings.Contains(err.Error(), "language tag") && !strings.Contains(err.Error(), "after the term") {
				t.Fatalf("%q: %v", doc, err)
			}
		}
		if q.P.Kind() != KindIRI || q.S.Kind() == KindLiteral || q.S.Kind() == KindNone {
			t.Fatalf("%q: no triple: %s", doc, q.AppendLine(nil))
		}
		ts = append(ts, q.Triple)
	}
	ts = SortUnique(ts)
	data, err := Encode(JSONLD, "http://e/s", ts)
	if err != nil {
		t.Fatalf("%q: %v", doc, err)
	}
	back, err := Decode(JSONLD, data, ReadOptions{})
	if err != nil || !slices.Equal(back, ts) {
		t.Fatalf("%q: %v\n%s\n%swant\n%s", doc, err, data, lines(back), lines(ts))
	}
}

// fuzzFormat is a fuzz target for the reader of a format.
func fuzzFormat(f *testing.F, format Format) {
	f.Fuzz(func(t *testing.T, doc []byte) {
		o := ReadOptions{Base: "http://e/base", Context: func(address string) ([]byte, string, error) {
			return []byte(`{"@context":{"e":"http://e/","far":{"@id":"e:far","@context":"http://c/next"}}}`), address, nil
		}}
		qs, err := readAll(doc, format, o)
		if err != nil {
			return
		}
		checkGraph(t, doc, qs)
	})
}
