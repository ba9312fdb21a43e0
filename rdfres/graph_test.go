package rdfres

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/internal/teststores"
)

func TestCBD(t *testing.T) {
	ts := []Triple{
		{"<urn:e>", "<urn:p>", "_:a"}, {"<urn:e>", "<urn:p>", "_:b"}, {"<urn:e>", "<urn:knows>", "<urn:f>"},
		{"_:a", "<urn:p>", "_:c"}, {"_:b", "<urn:p>", "_:c"}, {"_:c", "<urn:p>", "_:a"}, // shared, and a cycle
		{"_:c", "<urn:p>", "<urn:e>"}, {"_:c", "<urn:v>", `"1"`},
		{"<urn:f>", "<urn:v>", `"not this"`}, {"_:z", "<urn:p>", "_:a"},
		{"_:z", "<urn:v>", `"2"`}, {"_:y", "<urn:p>", "_:z"}, {"_:z", "<urn:about>", "<urn:e>"}, {"<urn:g>", "<urn:q>", "_:y"},
	}
	rng := rand.New(rand.NewPCG(1, 1))
	for range 20 {
		rng.Shuffle(len(ts), func(i, j int) { ts[i], ts[j] = ts[j], ts[i] })
		g := NewGraph(append(slices.Clone(ts), ts[:3]...))
		cbd := SortUnique(slices.DeleteFunc(slices.Clone(ts), func(x Triple) bool {
			return !slices.Contains([]Term{"<urn:e>", "_:a", "_:b", "_:c"}, x.S)
		}))
		if got := g.CBD("<urn:e>"); !slices.Equal(got, cbd) {
			t.Fatalf("CBD = %v, want %v", got, cbd)
		}
		// Inbound: <urn:e> is the object of _:c and _:z, which lead to _:a, _:b, _:y.
		scbd := append(slices.Clone(cbd), Triple{"_:z", "<urn:about>", "<urn:e>"}, Triple{"_:y", "<urn:p>", "_:z"},
			Triple{"_:z", "<urn:p>", "_:a"}, Triple{"<urn:g>", "<urn:q>", "_:y"})
		if got := g.SCBD("<urn:e>"); !slices.Equal(got, SortUnique(scbd)) {
			t.Fatalf("SCBD = %v, want %v", got, SortUnique(scbd))
		}
		if got := g.CBD("<urn:nothing>"); got != nil {
			t.Fatalf("CBD of what is not there = %v", got)
		}
	}
	g := NewGraph(ts)
	if got, err := g.BoundedCBD("<urn:e>", 8); err != nil || len(got) != 8 {
		t.Errorf("bound 8: %d triples, %v", len(got), err)
	}
	_, err := g.BoundedCBD("<urn:e>", 7)
	var large *TooLargeError
	if !errors.Is(err, ErrTooLarge) || !errors.As(err, &large) || large.Entity != "<urn:e>" || !strings.Contains(err.Error(), "more than 7") {
		t.Errorf("bound 7: %v", err)
	}
	if n := len(slices.Collect(g.Subjects)); n != 8 {
		t.Errorf("%d subjects", n)
	}
}

func TestDeepCBD(t *testing.T) {
	teststores.Sequential(t)
	ts := chain(100_000)
	if got := len(NewGraph(ts).CBD("<urn:e>")); got != len(ts) {
		t.Errorf("%d triples, want %d", got, len(ts))
	}
	if got := len(NewGraph(ts).SCBD(termNil)); got != 100_001 {
		t.Errorf("inbound: %d triples", got)
	}
}
