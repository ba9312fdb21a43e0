package rdfres

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"github.com/rsbridge/rsbridge/internal/teststores"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"
)

// TestRDFC10Suite is the whole W3C suite of RDFC-1.0.
func TestRDFC10Suite(t *testing.T) {
	manifest, err := csv.NewReader(bytes.NewReader(teststores.ReadShared(t, "fixtures/rdfc10/manifest.csv"))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, row := range manifest[1:] {
		name, hash, eval, hasMap := row[0], row[5], row[6], row[7] == "TRUE"
		ran++
		t.Run(name, func(t *testing.T) {
			in := readQuads(t, teststores.ReadShared(t, "fixtures/rdfc10/"+name+"-in.nq"))
			got, issued, err := Canonicalize(in, CanonOptions{Hash: hash})
			if eval == "RDFC10NegativeEvalTest" {
				if !errors.Is(err, ErrWorkLimit) {
					t.Fatalf("Canonicalize: %v, want ErrWorkLimit", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if want := teststores.ReadShared(t, "fixtures/rdfc10/"+name+"-rdfc10.nq"); !bytes.Equal(got, want) {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
			if hasMap {
				var want map[string]string
				if err := json.Unmarshal(teststores.ReadShared(t, "fixtures/rdfc10/"+name+"-rdfc10map.json"), &want); err != nil {
					t.Fatal(err)
				}
				if !maps.Equal(issued, want) {
					t.Errorf("issued %v, want %v", issued, want)
				}
			}
		})
	}
	if ran < 64 {
		t.Errorf("the manifest has %d tests", ran)
	}
}

func readQuads(t testing.TB, data []byte) (qs []Quad) {
	t.Helper()
	for line := range bytes.Lines(data) {
		q, ok, err := ParseLine(bytes.TrimRight(line, "\r\n"))
		if err != nil {
			t.Fatal(err)
		}
		if ok {
			qs = append(qs, q)
		}
	}
	return qs
}

// clique is n blank nodes of which each knows each: a poison graph.
func clique(n int) (ts []Triple) {
	for i := range n {
		for j := range n {
			if i != j {
				ts = append(ts, Triple{bnode(i), "<urn:knows>", bnode(j)})
			}
		}
	}
	return ts
}

func bnode(i int) Term { return Term(fmt.Sprintf("_:b%d", i)) }

func TestCanonicalizeUnknownHash(t *testing.T) {
	if _, _, err := Canonicalize(nil, CanonOptions{Hash: "MD5"}); err == nil || !strings.Contains(err.Error(), "MD5") {
		t.Errorf("err = %v, want one that names MD5", err)
	}
}

func TestWorkLimitErrorNamesPlace(t *testing.T) {
	ts := append(clique(12), Triple{"<http://example.org/poisoned>", "<urn:p>", bnode(0)}, Triple{bnode(3), "<urn:p>", "<urn:other>"})
	_, err := LabelComponent(append(ts, clique(14)...), NameOptions{})
	var limit *WorkLimitError
	if !errors.As(err, &limit) || !errors.Is(err, ErrWorkLimit) {
		t.Fatalf("err = %v, want a *WorkLimitError", err)
	}
	if limit.Near != "<http://example.org/poisoned>" || limit.Limit != DefaultWorkLimit || limit.Nodes < 10 {
		t.Errorf("%+v", limit)
	}
}

// TestLimitCanBeRaised shows that what the limit refuses is only slow.
func TestLimitCanBeRaised(t *testing.T) {
	ts := clique(5)
	if _, err := LabelComponent(ts, NameOptions{WorkLimit: 50}); !errors.Is(err, ErrWorkLimit) {
		t.Fatalf("limit 50: %v", err)
	}
	for _, limit := range []int{0, 1 << 30, -1} {
		if _, err := LabelComponent(ts, NameOptions{WorkLimit: limit}); err != nil {
			t.Errorf("limit %d: %v", limit, err)
		}
	}
}

// FuzzCanonicalize: any relabelled permutation of a dataset has the same
// canonical form, and the issued identifiers lead from one to the other.
func FuzzCanonicalize(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 1, 2, 4, 5, 6}, uint64(1))
	f.Add([]byte("cyclecycle"), uint64(7))
	f.Fuzz(func(t *testing.T, shape []byte, seed uint64) {
		qs := quadsFrom(shape)
		o := CanonOptions{WorkLimit: 20_000}
		want, issued, err := Canonicalize(qs, o)
		if err != nil {
			if !errors.Is(err, ErrWorkLimit) {
				t.Fatal(err)
			}
			return
		}
		if len(readQuads(t, want)) == 0 && len(qs) > 0 {
			t.Fatal("nothing written")
		}
		seen := map[string]bool{}
		for _, label := range issued {
			if seen[label] {
				t.Fatalf("%s issued twice", label)
			}
			seen[label] = true
		}
		other := shuffleQuads(qs, seed)
		got, _, err := Canonicalize(other, CanonOptions{WorkLimit: -1})
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Fatalf("relabelled\n%s\nwant\n%s", got, want)
		}
		again, _, err := Canonicalize(readQuads(t, want), CanonOptions{WorkLimit: -1})
		if err != nil || !bytes.Equal(again, want) {
			t.Fatalf("canonical form is not its own: %v\n%s\nwant\n%s", err, again, want)
		}
	})
}

// quadsFrom makes a small dataset of bytes, three a quad.
func quadsFrom(shape []byte) (qs []Quad) {
	if len(shape) > 60 {
		shape = shape[:60]
	}
	term := func(b byte) Term {
		if b%8 < 6 {
			return bnode(int(b) % 8)
		}
		return Term(fmt.Sprintf("<urn:i%d>", b%3))
	}
	for len(shape) >= 3 {
		q := Quad{Triple: Triple{term(shape[0]), Term(fmt.Sprintf("<urn:p%d>", shape[1]%2)), term(shape[2])}}
		if shape[2]%16 == 15 {
			q.O = `"x"`
		}
		if shape[1] > 128 {
			// No blank graph names: see Canonicalize.
			q.G = Term(fmt.Sprintf("<urn:g%d>", shape[1]%3))
		}
		qs = append(qs, q)
		shape = shape[3:]
	}
	return qs
}

func shuffleQuads(qs []Quad, seed uint64) []Quad {
	rng := rand.New(rand.NewPCG(seed, 1))
	names := map[Term]Term{}
	fresh := rng.Perm(4*len(qs) + 1)
	rename := func(t Term) Term {
		if t.Kind() != KindBlank {
			return t
		}
		if names[t] == "" {
			names[t] = Term(fmt.Sprintf("_:x%d", fresh[len(names)]))
		}
		return names[t]
	}
	out := make([]Quad, 0, len(qs)+2)
	for _, i := range rng.Perm(len(qs)) {
		q := qs[i]
		q.S, q.O, q.G = rename(q.S), rename(q.O), rename(q.G)
		out = append(out, q)
		if rng.IntN(4) == 0 {
			out = append(out, q)
		}
	}
	return out
}

// TestBlankGraphNamesAreNotCanonical keeps the example of Canonicalize true.
func TestBlankGraphNamesAreNotCanonical(t *testing.T) {
	qs := []Quad{
		{Triple{"_:a", "<urn:p>", "_:a"}, "_:x"}, {Triple{"_:x", "<urn:p>", "_:b"}, ""},
		{Triple{"_:a", "<urn:p>", "_:b"}, "_:y"}, {Triple{"_:y", "<urn:p>", "_:a"}, ""},
	}
	forms := map[string]bool{}
	for _, order := range [][]Quad{qs, {qs[2], qs[3], qs[0], qs[1]}} {
		got, _, err := Canonicalize(order, CanonOptions{})
		if err != nil {
			t.Fatal(err)
		}
		forms[string(got)] = true
	}
	if len(forms) != 2 {
		t.Error("it is canonical after all: correct the comment of Canonicalize, widen FuzzCanonicalize")
	}
}
