package codec_test

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/rsbridge/rsbridge/internal/teststores"
	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/rdfres/codec"
	"github.com/rsbridge/rsbridge/rdfres/internal/rdftest"
)

// Real graphs go through every format and come back whole: an ontology of
// thousands of nested blank nodes, and a vocabulary of long texts.
func TestRealData(t *testing.T) {
	for _, c := range []struct {
		name    string
		format  rdfres.Format
		triples int
	}{{"data/223p.ttl.gz", rdfres.Turtle, 8871}, {"data/schemaorg/15.0.nt.gz", rdfres.NTriples, 16330}} {
		data := teststores.ReadShared(t, c.name)
		ts, err := codec.Decode(c.format, data, rdfres.ReadOptions{Name: c.name})
		if err != nil {
			t.Fatal(err)
		}
		if len(ts) != c.triples {
			t.Errorf("%s: %d triples, want %d", c.name, len(ts), c.triples)
		}
		for _, f := range []rdfres.Format{rdfres.NTriples, rdfres.JSONLD, rdfres.Turtle, rdfres.RDFXML} {
			out, err := codec.EncodeChecked(f, "http://e/none", ts)
			if errors.Is(err, rdfres.ErrCannotCarry) && f == rdfres.RDFXML {
				t.Logf("%s: %v", c.name, err)
				continue
			}
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
				continue
			}
			t.Logf("%s as %s: %d bytes, %d of N-Triples", c.name, f, len(out), len(rdftest.Lines(ts)))
			if got, ok := codec.SniffFormat(out[:min(len(out), 4096)]); !ok || got != f && !(f == rdfres.Turtle && got == rdfres.NTriples) {
				t.Errorf("%s as %s: told to be %q", c.name, f, got)
			}
			var streamed []rdfres.Triple
			for q, err := range codec.Read(bytes.NewReader(out), f, rdfres.ReadOptions{}) {
				if err != nil {
					t.Fatal(err)
				}
				streamed = append(streamed, q.Triple)
			}
			if !slices.Equal(rdfres.SortUnique(streamed), ts) {
				t.Errorf("%s as %s: what is streamed differs", c.name, f)
			}
		}
	}
}
