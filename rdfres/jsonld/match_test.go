package jsonld_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/rdfres/codec"
	"github.com/rsbridge/rsbridge/rdfres/internal/rdftest"
	"github.com/rsbridge/rsbridge/rdfres/jsonld"
)

// The usual form is not left to Decode, which takes several times as long.
func TestMatchJSONLD(t *testing.T) {
	long := make([]rdfres.Triple, 200)
	for i := range long {
		long[i] = rdfres.Triple{S: "<http://e/s>", P: "<http://e/p>", O: rdfres.NewLiteral(fmt.Sprintf("the literal %03d", i), "", "")}
	}
	for name, ts := range map[string][]rdfres.Triple{
		"description": rdftest.Sample(4711).Triples,
		"empty":       {},
		"many":        long,
		"terms": rdftest.Parse(t, `<s> <p> "" .
<s> <p> "a\"b\\c\n\t\u0001\u007F\uFFFE\u00e4\U0001F600 longer than a word of eight" .
<s> <p> "ï¿½ï¿½ï¿½" .
<s> <p> "a"@en-GB .
<s> <p> "a"^^<d> .
<s> <p> <urn:x> .
<s> <p> <s> .
<s> <pp> "b" .
<s> <p#> "b" .
<s> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <C> .
<s> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> _:rsbx .
<s> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> "no class" .
<s> <p> _:a .
_:a <p> _:b .
_:b <p> _:c .
_:c <p> _:b .
_:other <p> "c" .`),
	} {
		ts = rdfres.SortUnique(slices.Clone(ts))
		data, err := codec.Encode(rdfres.JSONLD, "http://e/s", ts)
		if err != nil {
			t.Fatal(err)
		}
		if !jsonld.Matches(data, ts) {
			t.Errorf("%s: left to Decode: %s", name, data)
		}
	}
}

// checkMatch: what Matches takes for ts is ts for Decode.
func checkMatch(t *testing.T, data []byte, ts []rdfres.Triple) (taken bool) {
	t.Helper()
	if !jsonld.Matches(data, ts) {
		return false
	}
	if got, err := codec.Decode(rdfres.JSONLD, data, rdfres.ReadOptions{}); err != nil || !slices.Equal(got, ts) {
		t.Fatalf("taken for\n%sis\n%s%v\n%s", rdftest.Lines(ts), rdftest.Lines(got), err, data)
	}
	return true
}

func TestMatchJSONLDTakesNothingElse(t *testing.T) {
	whole, changed := 0, 0
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 7))
		entity, ts := rdftest.NastyGraph(r, 1+int(seed%12), seed%2 == 0)
		ts = rdfres.SortUnique(slices.Clone(ts))
		data, err := codec.Encode(rdfres.JSONLD, entity, ts)
		if err != nil {
			continue
		}
		if checkMatch(t, data, ts) {
			whole++
		}
		for i := range ts { // one too few, or another
			if checkMatch(t, data, slices.Delete(slices.Clone(ts), i, i+1)) {
				t.Fatalf("a triple too many is not seen: %s", data)
			}
			other := slices.Clone(ts)
			other[i].O = rdfres.NewLiteral("other", "", "")
			if checkMatch(t, data, rdfres.SortUnique(other)) && !slices.Contains(ts, other[i]) {
				t.Fatalf("another triple is not seen: %s", data)
			}
		}
		for range 40 {
			if checkMatch(t, spoil(r, data), ts) {
				changed++
			}
		}
	}
	if whole < 1000 {
		t.Errorf("only %d of 3000 documents were taken", whole)
	}
	t.Logf("%d of 3000, and %d of 120000 that were changed", whole, changed)
}

// spoil changes a document in a place or two.
func spoil(r *rand.Rand, data []byte) []byte {
	data = slices.Clone(data)
	const bytesOfForm = "\"\\{}[],:@_<> \n\x00\x7f\xef\xbf\xbeaA0u-"
	for range 1 + r.IntN(2) {
		at := r.IntN(len(data))
		switch r.IntN(5) {
		case 0:
			data[at] = bytesOfForm[r.IntN(len(bytesOfForm))]
		case 1:
			data = slices.Delete(data, at, min(len(data)-1, at+1+r.IntN(8)))
		case 2:
			data = slices.Insert(data, at, bytesOfForm[r.IntN(len(bytesOfForm))])
		case 3: // a piece again, somewhere
			piece := slices.Clone(data[at:min(len(data), at+r.IntN(60))])
			data = slices.Insert(data, r.IntN(len(data)), piece...)
		case 4: // another member
			for from, to := range map[string]string{`"@value"`: `"@id"`, `"@language"`: `"@type"`, `"@id"`: `"@graph"`, `"@type"`: `"@list"`} {
				if i := bytes.Index(data[at:], []byte(from)); i >= 0 && r.IntN(2) == 0 {
					data = slices.Replace(data, at+i, at+i+len(from), []byte(to)...)
					break
				}
			}
		}
		if len(data) == 0 {
			return []byte("[")
		}
	}
	return data
}

func FuzzMatchJSONLD(f *testing.F) {
	for seed := range uint64(40) {
		entity, ts := rdftest.NastyGraph(rand.New(rand.NewPCG(seed, 8)), 1+int(seed%6), false)
		if data, err := codec.Encode(rdfres.JSONLD, entity, ts); err == nil {
			f.Add(data, string(rdftest.Lines(rdfres.SortUnique(ts))))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, graph string) {
		ts, err := codec.Decode(rdfres.NTriples, []byte(graph), rdfres.ReadOptions{})
		if err == nil {
			checkMatch(t, data, ts)
		}
		if ts, err = codec.Decode(rdfres.JSONLD, data, rdfres.ReadOptions{}); err == nil { // of itself
			checkMatch(t, data, ts)
		}
	})
}
