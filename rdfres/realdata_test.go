package rdfres

import (
	"bytes"
	"errors"
	"github.com/rsbridge/rsbridge/internal/teststores"
	"slices"
	"testing"
)

// Real graphs go through every format and come back whole: an ontology of
// thousands of nested blank nodes, and a vocabulary of long texts.
func TestRealData(t *testing.T) {
	for _, c := range []struct {
		name    string
		format  Format
		triples int
	}{{"data/223p.ttl.gz", Turtle, 8871}, {"data/schemaorg/15.0.nt.gz", NTriples, 16330}} {
		data := teststores.ReadShared(t, c.name)
		ts, err := Decode(c.format, data, ReadOptions{Name: c.name})
		if err != nil {
			t.Fatal(err)
		}
		if len(ts) != c.triples {
			t.Errorf("%s: %d triples, want %d", c.name, len(ts), c.triples)
		}
		for _, f := range []Format{NTriples, JSONLD, Turtle, RDFXML} {
			out, err := EncodeChecked(f, "http://e/none", ts)
			if errors.Is(err, ErrCannotCarry) && f == RDFXML {
				t.Logf("%s: %v", c.name, err)
				continue
			}
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
				continue
			}
			t.Logf("%s as %s: %d bytes, %d of N-Triples", c.name, f, len(out), len(lines(ts)))
			if got, ok := SniffFormat(out[:min(len(out), 4096)]); !ok || got != f && !(f == Turtle && got == NTriples) {
				t.Errorf("%s as %s: told to be %q", c.name, f, got)
			}
			var streamed []Triple
			for q, err := range Read(bytes.NewReader(out), f, ReadOptions{}) {
				if err != nil {
					t.Fatal(err)
				}
				streamed = append(streamed, q.Triple)
			}
			if !slices.Equal(SortUnique(streamed), ts) {
				t.Errorf("%s as %s: what is streamed differs", c.name, f)
			}
		}
	}
}
