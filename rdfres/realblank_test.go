package rdfres_test

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rsbridge/rsbridge/internal/teststores"
	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/rdfres/codec"
)

// TestRealBlankNodes names the blank nodes of a SHACL vocabulary, nested to many
// levels.
func TestRealBlankNodes(t *testing.T) {
	var ts []rdfres.Triple
	for q, err := range codec.Read(bytes.NewReader(teststores.ReadShared(t, "data/223p.ttl.gz")), rdfres.Turtle, rdfres.ReadOptions{Base: "http://example.org/"}) {
		if err != nil {
			t.Fatal(err)
		}
		ts = append(ts, q.Triple)
	}
	want, comps := rdfres.CheckNames(t, ts, rdfres.NameOptions{})
	if n := rdfres.CountNodes(ts); len(comps) < 400 || n < 1000 {
		t.Errorf("%d components of %d blank nodes", len(comps), n)
	}
	got, _ := rdfres.CheckNames(t, rdfres.Shuffled(ts, rand.New(rand.NewPCG(7, 8))), rdfres.NameOptions{})
	if !slices.Equal(got, want) {
		t.Error("other names for the same graph")
	}
}
