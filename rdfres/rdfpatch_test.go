package rdfres

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func patchTriple(r *rand.Rand) Triple {
	t := Triple{S: NewIRI("http://example.org/e" + strconv.Itoa(r.IntN(4))), P: NewIRI("http://example.org/p" + strconv.Itoa(r.IntN(3)))}
	switch r.IntN(5) {
	case 0:
		t.O = NewBlank("b" + strconv.Itoa(r.IntN(4)))
	case 1:
		t.O = NewLiteral("a \"quoted\"\nline . \\ "+strconv.Itoa(r.IntN(4)), "", "")
	case 2:
		t.O = NewLiteral("é"+strconv.Itoa(r.IntN(4)), "en", "")
	case 3:
		t.O = NewLiteral(strconv.Itoa(r.IntN(4)), "", "http://www.w3.org/2001/XMLSchema#integer")
	default:
		t.O = NewIRI("http://example.org/o" + strconv.Itoa(r.IntN(4)))
	}
	if r.IntN(5) == 0 {
		t.S = NewBlank("b" + strconv.Itoa(r.IntN(4)))
	}
	return t
}

// TestPatchMakesTheTarget: what is written, read and applied to the one graph is
// the other.
func TestPatchMakesTheTarget(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		var a, b []Triple
		for range r.IntN(12) {
			a = append(a, patchTriple(r))
		}
		b = slices.Clone(a)
		for range r.IntN(5) {
			b = append(b, patchTriple(r))
		}
		for range r.IntN(5) {
			if len(b) > 0 {
				b = slices.Delete(b, 0, 1)
			}
		}
		a, b = SortUnique(a), SortUnique(b)
		deleted, added := DiffTriples(a, b)
		headers := []PatchHeader{{"id", NewIRI("uuid:1")}, {"prev", NewIRI("uuid:0")}, {"note", NewLiteral("x", "", "")}}
		patch := AppendPatch(nil, headers, deleted, added)
		got, gotHeaders, err := ApplyPatch(a, patch, ReadOptions{})
		if err != nil || !slices.Equal(got, b) || !slices.Equal(gotHeaders, headers) {
			t.Fatalf("%v\n%s\nof %v makes %v, want %v (%v)", err, patch, a, got, b, gotHeaders)
		}
		if len(deleted)+len(added) > len(a)+len(b) {
			t.Fatalf("a patch of %d rows between %d and %d triples", len(deleted)+len(added), len(a), len(b))
		}
	}
}

// TestReadPatch: what the text form may have, and what it may not.
func TestReadPatch(t *testing.T) {
	const whole = "# by hand\r\nH id <uuid:1> .\nH  prev <uuid:0>.  # before\n\nPA \"ex\" \"http://example.org/\" .\nPA ex: <http://example.org/> .\nPD \"ex\" .\nTX .\n" +
		"D <_:a:b> <http://example.org/p> \"1\"^^<http://www.w3.org/2001/XMLSchema#integer> .\nA _:b <http://example.org/p> \"x\"@en <http://example.org/g> .\r\nTA .\nTX.\nTC .\n"
	var codes []string
	for row, err := range ReadPatch(strings.NewReader(whole), ReadOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		codes = append(codes, row.Code)
		switch row.Code {
		case "A":
			if row.Quad.G != NewIRI("http://example.org/g") || row.Line != 10 {
				t.Errorf("%+v", row)
			}
		case "PA":
			if row.Header != (PatchHeader{"ex", NewIRI("http://example.org/")}) {
				t.Errorf("%+v", row)
			}
		case "D":
			if row.Quad.S != NewBlank("a:b") {
				t.Errorf("%+v", row)
			}
		}
	}
	if got := strings.Join(codes, " "); got != "H H PA PA PD TX D A TA TX TC" {
		t.Errorf("rows %s", got)
	}
	for _, bad := range []string{
		"X .", "H .", "H id .", "H id _:b .", "H id <uuid:1>", "A <http://e/s> <http://e/p> .", "A \"s\" <http://e/p> <http://e/o> .",
		"A <http://e/s> _:p <http://e/o> .", "A <http://e/s> <_:p> <http://e/o> .", "A <http://e/s> <http://e/p> <http://e/o> . x", "TX", "TX . TC .",
		"A <_:> <http://e/p> <http://e/o> .", "A <_:x <http://e/p> <http://e/o> .", "PA ex <http://e/> .", "PA ex: _:b .", "D <s> <http://e/p> <http://e/o> .", "A \xff .",
	} {
		var err error
		for _, e := range ReadPatch(strings.NewReader(bad), ReadOptions{Name: "test"}) {
			err = e
		}
		var se *SyntaxError
		if !errors.As(err, &se) || se.Line != 1 {
			t.Errorf("%q: %v", bad, err)
		}
	}
	for _, bad := range []string{"A <http://e/s> <http://e/p> <http://e/o> .", "TX .", "TX .\nTX .", "TC .", "TX .\nA <http://e/s> <http://e/p> <http://e/o> <http://e/g> .\nTC ."} {
		if _, _, err := ApplyPatch(nil, []byte(bad), ReadOptions{}); err == nil {
			t.Errorf("%q is applied", bad)
		}
	}
	if _, _, err := ApplyPatch(nil, []byte(whole), ReadOptions{MaxBytes: 20}); !errors.Is(err, ErrTooLarge) {
		t.Errorf("beyond the bound: %v", err)
	}
}

// FuzzRDFPatch: nothing makes the reader panic, and what is read is written and
// read again as the same.
func FuzzRDFPatch(f *testing.F) {
	f.Add([]byte("H id <uuid:1> .\nTX .\nD <http://e/s> <http://e/p> \"x\"@en .\nA _:b <http://e/p> <_:c> .\nTC .\n"))
	f.Add([]byte("PA \"ex\" <http://e/> .\nPD \"ex\" .\nTX .\nTA .\n"))
	f.Add([]byte("TX .\nA <http://e/s> <http://e/p> \"\\u00e9\\n\"^^<http://e/d> .\nTC ."))
	f.Fuzz(func(t *testing.T, data []byte) {
		after, headers, err := ApplyPatch(nil, data, ReadOptions{})
		if err != nil {
			return
		}
		patch := AppendPatch(nil, headers, nil, after)
		again, sameHeaders, err := ApplyPatch(nil, patch, ReadOptions{})
		if err != nil || !slices.Equal(again, after) || !slices.Equal(sameHeaders, headers) {
			t.Fatalf("%q is written as %q, which gives %v %v (%v), want %v %v", data, patch, again, sameHeaders, err, after, headers)
		}
		deleted, added := DiffTriples(after, nil)
		if len(added) > 0 || len(deleted) != len(after) {
			t.Fatalf("%v less everything: %v %v", after, deleted, added)
		}
	})
}
