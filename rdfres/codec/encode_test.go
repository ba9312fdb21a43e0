package codec_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/rdfres/codec"
	"github.com/rsbridge/rsbridge/rdfres/internal/rdftest"
	"github.com/rsbridge/rsbridge/rdfres/rdfxml"
)

// What Encode writes Decode gives back, whatever the order of the triples, and
// the bytes do not depend on it.
func TestRoundTrip(t *testing.T) {
	for _, f := range []rdfres.Format{rdfres.JSONLD, rdfres.NTriples, rdfres.Turtle, rdfres.RDFXML} {
		t.Run(string(f), func(t *testing.T) {
			refused := 0
			for seed := range uint64(1500) {
				r := rand.New(rand.NewPCG(seed, 1))
				entity, ts := rdftest.NastyGraph(r, 1+int(seed%40), seed%2 == 0)
				refused += roundTrip(t, f, entity, ts, r, seed)
				if t.Failed() {
					return
				}
			}
			if f != rdfres.RDFXML && refused > 0 {
				t.Errorf("%d graphs refused", refused)
			}
			if refused > 1400 {
				t.Errorf("%d of 1500 graphs refused", refused)
			}
		})
	}
}

func roundTrip(t *testing.T, f rdfres.Format, entity string, ts []rdfres.Triple, r *rand.Rand, seed uint64) (refused int) {
	t.Helper()
	before := slices.Clone(ts)
	data, err := codec.Encode(f, entity, ts)
	if f == rdfres.RDFXML && rdfxml.Carries(ts) != (err == nil) {
		t.Errorf("seed %d: CarriesRDFXML says %v, Encode %v", seed, rdfxml.Carries(ts), err)
	}
	if errors.Is(err, rdfres.ErrCannotCarry) {
		return 1
	}
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	if !slices.Equal(before, ts) {
		t.Fatalf("seed %d: Encode changed what it was given", seed)
	}
	want := rdfres.SortUnique(slices.Clone(ts))
	got, err := codec.Decode(f, data, rdfres.ReadOptions{})
	if err != nil {
		t.Fatalf("seed %d: %v\n%s", seed, err, data)
	}
	if !slices.Equal(got, want) {
		t.Fatalf("seed %d: got\n%swant\n%sfrom\n%s", seed, rdftest.Lines(got), rdftest.Lines(want), data)
	}
	again, err := codec.Encode(f, entity, rdftest.InAnyOrder(r, ts))
	if err != nil || !bytes.Equal(again, data) {
		t.Fatalf("seed %d: the bytes depend on the order: %v\n%s\n%s", seed, err, data, again)
	}
	checked, err := codec.EncodeChecked(f, entity, ts)
	if err != nil || !bytes.Equal(checked, data) {
		t.Fatalf("seed %d: EncodeChecked: %v", seed, err)
	}
	return 0
}

func TestEncodeCheckedTellsWhatIsLost(t *testing.T) {
	bad := []rdfres.Triple{{S: rdfres.NewIRI("relative"), P: rdfres.NewIRI("http://e/p"), O: rdfres.NewLiteral("a", "", "")}}
	for _, f := range []rdfres.Format{rdfres.JSONLD, rdfres.NTriples, rdfres.Turtle, rdfres.RDFXML} {
		if _, err := codec.EncodeChecked(f, "http://e/s", bad); !errors.Is(err, rdfres.ErrCannotCarry) {
			t.Errorf("%s: %v", f, err)
		}
	}
}

// No format promises a literal that another reader of ours refuses.
func TestEncodeCheckedLanguage(t *testing.T) {
	for _, f := range []rdfres.Format{rdfres.JSONLD, rdfres.NTriples, rdfres.Turtle, rdfres.RDFXML} {
		if _, err := codec.EncodeChecked(f, "http://e/s", []rdfres.Triple{{S: "<http://e/s>", P: "<http://e/p>", O: `"x"@en--ltr`}}); err == nil {
			t.Errorf("%s carries a language tag that is none", f)
		} else if f == rdfres.JSONLD && !errors.Is(err, rdfres.ErrCannotCarry) {
			t.Error(err)
		}
	}
}
