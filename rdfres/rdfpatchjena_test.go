package rdfres

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/rsbridge/rsbridge/internal/teststores"
	"github.com/rsbridge/rsbridge/rdfres/internal/chars"
)

// TestJenaAppliesOurPatches: a history of graphs, each made from the one before by a patch
// of ours in Jena, is the history there as well, with shared blank nodes, deletions of
// triples of blank nodes, and literals of every kind.
func TestJenaAppliesOurPatches(t *testing.T) {
	jar := teststores.Jena(t)
	r := rand.New(rand.NewPCG(7, 11))
	wire := func(n int) Term {
		return NewBlank(fmt.Sprintf("rsb%040xn%dd%d", n/3, n%3, n%2))
	}
	odd := []Term{
		NewLiteral("a \"quoted\"\nline \t\r\b\f\\ \x01\x7f\uffff \U0001F600 \u00e9 _:x <_:y>", "", ""), NewLiteral("é", "de-Latn-AT", ""),
		NewLiteral("01", "", chars.XSDInteger), NewLiteral("x", "", "http://example.org/Caf%C3%A9"), NewIRI("http://example.org/é%20?q=1#f"), NewIRI("urn:x:_:y"), NewLiteral("", "", ""),
	}
	name := func() Term {
		if r.IntN(2) == 0 {
			return wire(r.IntN(9))
		}
		return NewIRI(fmt.Sprintf("http://example.org/e%d", r.IntN(4)))
	}
	dir := t.TempDir()
	first := filepath.Join(dir, "first.nt")
	args := []string{"-cp", jar, filepath.Join("testdata", "jena", "ApplyPatches.java"), first}
	var before []Triple
	for i := range 9 {
		before = append(before, Triple{wire(i), NewIRI("http://example.org/p1"), wire(i / 2)}, Triple{name(), NewIRI("http://example.org/p2"), odd[i%len(odd)]})
	}
	before = SortUnique(before)
	var lines []byte
	for _, x := range before {
		lines = x.AppendLine(lines)
	}
	if err := os.WriteFile(first, lines, 0o600); err != nil {
		t.Fatal(err)
	}
	var history [][]Triple
	for version := range 200 {
		after := slices.Clone(before)
		for range 1 + r.IntN(12) {
			x := Triple{S: name(), P: NewIRI(fmt.Sprintf("http://example.org/p%d", r.IntN(3))), O: odd[r.IntN(len(odd))]}
			if r.IntN(2) == 0 {
				x.O = name()
			}
			after = append(after, x)
		}
		for range min(len(before), r.IntN(12)) {
			i := r.IntN(len(before))
			after = slices.DeleteFunc(after, func(x Triple) bool { return x == before[i] })
		}
		after = SortUnique(after)
		deleted, added := DiffTriples(before, after)
		headers := []PatchHeader{{"id", NewIRI(fmt.Sprintf("ni:///sha-256;%d", version+1))}, {"prev", NewIRI(fmt.Sprintf("ni:///sha-256;%d", version))}}
		file := filepath.Join(dir, fmt.Sprintf("%d.rdfp", version))
		if err := os.WriteFile(file, AppendPatch(nil, headers, deleted, added), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, file)
		before, history = after, append(history, after)
	}
	java := exec.Command("java", args...)
	var said bytes.Buffer
	java.Stderr = &said
	out, err := java.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, said.Bytes())
	}
	graphs := bytes.Split(bytes.TrimSuffix(out, []byte("#\n")), []byte("#\n"))
	if len(graphs) != len(history) {
		t.Fatalf("Jena made %d graphs of %d patches", len(graphs), len(history))
	}
	for version, graph := range graphs {
		var want []Quad
		got := readQuads(t, graph)
		for _, x := range history[version] {
			want = append(want, Quad{Triple: x})
		}
		a, _, err1 := Canonicalize(got, CanonOptions{})
		b, _, err2 := Canonicalize(want, CanonOptions{})
		if err1 != nil || err2 != nil || !bytes.Equal(a, b) {
			t.Fatalf("version %d: %v %v: Jena has\n%swant\n%s", version, err1, err2, a, b)
		}
	}
}
