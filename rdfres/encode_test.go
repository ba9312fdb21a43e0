package rdfres

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
)

// What Encode writes Decode gives back, whatever the order of the triples, and
// the bytes do not depend on it.
func TestRoundTrip(t *testing.T) {
	for _, f := range []Format{JSONLD, NTriples, Turtle, RDFXML} {
		t.Run(string(f), func(t *testing.T) {
			refused := 0
			for seed := range uint64(1500) {
				r := rand.New(rand.NewPCG(seed, 1))
				entity, ts := nastyGraph(r, 1+int(seed%40), seed%2 == 0)
				refused += roundTrip(t, f, entity, ts, r, seed)
				if t.Failed() {
					return
				}
			}
			if f != RDFXML && refused > 0 {
				t.Errorf("%d graphs refused", refused)
			}
			if refused > 1400 {
				t.Errorf("%d of 1500 graphs refused", refused)
			}
		})
	}
}

func roundTrip(t *testing.T, f Format, entity string, ts []Triple, r *rand.Rand, seed uint64) (refused int) {
	t.Helper()
	before := slices.Clone(ts)
	data, err := Encode(f, entity, ts)
	if f == RDFXML && CarriesRDFXML(ts) != (err == nil) {
		t.Errorf("seed %d: CarriesRDFXML says %v, Encode %v", seed, CarriesRDFXML(ts), err)
	}
	if errors.Is(err, ErrCannotCarry) {
		return 1
	}
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	if !slices.Equal(before, ts) {
		t.Fatalf("seed %d: Encode changed what it was given", seed)
	}
	want := SortUnique(slices.Clone(ts))
	got, err := Decode(f, data, ReadOptions{})
	if err != nil {
		t.Fatalf("seed %d: %v\n%s", seed, err, data)
	}
	if !slices.Equal(got, want) {
		t.Fatalf("seed %d: got\n%swant\n%sfrom\n%s", seed, lines(got), lines(want), data)
	}
	again, err := Encode(f, entity, inAnyOrder(r, ts))
	if err != nil || !bytes.Equal(again, data) {
		t.Fatalf("seed %d: the bytes depend on the order: %v\n%s\n%s", seed, err, data, again)
	}
	checked, err := EncodeChecked(f, entity, ts)
	if err != nil || !bytes.Equal(checked, data) {
		t.Fatalf("seed %d: EncodeChecked: %v", seed, err)
	}
	return 0
}

func TestEncodeCheckedTellsWhatIsLost(t *testing.T) {
	bad := []Triple{{NewIRI("relative"), NewIRI("http://e/p"), NewLiteral("a", "", "")}}
	for _, f := range []Format{JSONLD, NTriples, Turtle, RDFXML} {
		if _, err := EncodeChecked(f, "http://e/s", bad); !errors.Is(err, ErrCannotCarry) {
			t.Errorf("%s: %v", f, err)
		}
	}
}

// No format promises a literal that another reader of ours refuses.
func TestEncodeCheckedLanguage(t *testing.T) {
	for _, f := range []Format{JSONLD, NTriples, Turtle, RDFXML} {
		if _, err := EncodeChecked(f, "http://e/s", []Triple{{"<http://e/s>", "<http://e/p>", `"x"@en--ltr`}}); err == nil {
			t.Errorf("%s carries a language tag that is none", f)
		} else if f == JSONLD && !errors.Is(err, ErrCannotCarry) {
			t.Error(err)
		}
	}
}
