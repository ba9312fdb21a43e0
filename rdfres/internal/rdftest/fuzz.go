package rdftest

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/rdfres/codec"
)

// ReadAll gives the statements of a document.
func ReadAll(doc []byte, f rdfres.Format, o rdfres.ReadOptions) (qs []rdfres.Quad, err error) {
	for q, err := range codec.Read(bytes.NewReader(doc), f, o) {
		if err != nil {
			return nil, err
		}
		qs = append(qs, q)
	}
	return qs, nil
}

// CheckGraph checks what a reader of a whole format gave: canonical terms, and
// a graph that the deterministic formats carry.
func CheckGraph(t *testing.T, doc []byte, qs []rdfres.Quad) {
	t.Helper()
	var ts []rdfres.Triple
	for _, q := range qs {
		for _, term := range []rdfres.Term{q.S, q.P, q.O} {
			if err := term.Check(); err != nil && !strings.Contains(err.Error(), "language tag") && !strings.Contains(err.Error(), "after the term") {
				t.Fatalf("%q: %v", doc, err)
			}
		}
		if q.P.Kind() != rdfres.KindIRI || q.S.Kind() == rdfres.KindLiteral || q.S.Kind() == rdfres.KindNone {
			t.Fatalf("%q: no triple: %s", doc, q.AppendLine(nil))
		}
		ts = append(ts, q.Triple)
	}
	ts = rdfres.SortUnique(ts)
	data, err := codec.Encode(rdfres.JSONLD, "http://e/s", ts)
	if err != nil {
		t.Fatalf("%q: %v", doc, err)
	}
	back, err := codec.Decode(rdfres.JSONLD, data, rdfres.ReadOptions{})
	if err != nil || !slices.Equal(back, ts) {
		t.Fatalf("%q: %v\n%s\n%swant\n%s", doc, err, data, Lines(back), Lines(ts))
	}
}

// FuzzFormat is a fuzz target for the reader of a format.
func FuzzFormat(f *testing.F, format rdfres.Format) {
	f.Fuzz(func(t *testing.T, doc []byte) {
		o := rdfres.ReadOptions{Base: "http://e/base", Context: func(address string) ([]byte, string, error) {
			return []byte(`{"@context":{"e":"http://e/","far":{"@id":"e:far","@context":"http://c/next"}}}`), address, nil
		}}
		qs, err := ReadAll(doc, format, o)
		if err != nil {
			return
		}
		CheckGraph(t, doc, qs)
	})
}
