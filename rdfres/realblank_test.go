package rdfres

import (
	"bytes"
	"github.com/rsbridge/rsbridge/internal/teststores"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestRealBlankNodes names the blank nodes of a SHACL vocabulary, nested to many
// levels.
func TestRealBlankNodes(t *testing.T) {
	var ts []Triple
	for q, err := range Read(bytes.NewReader(teststores.ReadShared(t, "data/223p.ttl.gz")), Turtle, ReadOptions{Base: "http://example.org/"}) {
		if err != nil {
			t.Fatal(err)
		}
		ts = append(ts, q.Triple)
	}
	want, comps := checkNames(t, ts, NameOptions{})
	if n := countNodes(ts); len(comps) < 400 || n < 1000 {
		t.Errorf("%d components of %d blank nodes", len(comps), n)
	}
	got, _ := checkNames(t, shuffled(ts, rand.New(rand.NewPCG(7, 8))), NameOptions{})
	if !slices.Equal(got, want) {
		t.Error("other names for the same graph")
	}
}
