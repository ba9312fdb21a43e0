package rdfres

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/internal/teststores"
)

// Shuffled is ts with fresh labels, in another order, with doubles.
func Shuffled(ts []Triple, rng *rand.Rand) []Triple {
	qs := make([]Quad, len(ts))
	for i, t := range ts {
		qs[i] = Quad{Triple: t}
	}
	out := make([]Triple, 0, len(qs))
	for _, q := range shuffleQuads(qs, rng.Uint64()) {
		out = append(out, q.Triple)
	}
	return out
}

// randomGraph makes graphs of the shapes that break naming: trees, chains,
// shared nodes, cycles, equal siblings, self loops, several IRIs to one node.
func randomGraph(rng *rand.Rand, nodes int) (ts []Triple) {
	pred := func() Term { return Term(fmt.Sprintf("<urn:p%d>", rng.IntN(2))) }
	shape := rng.IntN(6)
	for i := range nodes {
		switch shape {
		case 0: // tree
			if i > 0 {
				ts = append(ts, Triple{bnode(rng.IntN(i)), pred(), bnode(i)})
			}
		case 1: // free tree: either direction
			if i > 0 {
				a, b := bnode(rng.IntN(i)), bnode(i)
				if rng.IntN(2) == 0 {
					a, b = b, a
				}
				ts = append(ts, Triple{a, pred(), b})
			}
		case 2: // directed acyclic, shared nodes
			for j := range i {
				if rng.IntN(3) == 0 {
					ts = append(ts, Triple{bnode(j), pred(), bnode(i)})
				}
			}
		case 3: // cycles
			ts = append(ts, Triple{bnode(i), "<urn:p0>", bnode((i + 1) % nodes)})
		case 4: // anything, self loops too
			for range 2 {
				ts = append(ts, Triple{bnode(rng.IntN(nodes)), pred(), bnode(rng.IntN(nodes))})
			}
		case 5: // many components
			if i%3 != 0 {
				ts = append(ts, Triple{bnode(i - 1), "<urn:p0>", bnode(i)})
			}
		}
		if rng.IntN(4) == 0 {
			ts = append(ts, Triple{Term(fmt.Sprintf("<urn:e%d>", rng.IntN(3))), pred(), bnode(i)})
		}
		if rng.IntN(3) == 0 {
			ts = append(ts, Triple{bnode(i), "<urn:v>", Term(fmt.Sprintf("%q", fmt.Sprint(rng.IntN(2))))})
		}
	}
	for range rng.IntN(3) {
		ts = append(ts, Triple{"<urn:e0>", "<urn:q>", Term(fmt.Sprintf("<urn:o%d>", rng.IntN(3)))})
	}
	return ts
}

// bruteCanonical is the least of all namings: an oracle for isomorphism.
func bruteCanonical(ts []Triple) string {
	var nodes []Term
	for _, t := range ts {
		for _, x := range []Term{t.S, t.O} {
			if x.Kind() == KindBlank && !slices.Contains(nodes, x) {
				nodes = append(nodes, x)
			}
		}
	}
	perm := make([]int32, len(nodes))
	for i := range perm {
		perm[i] = int32(i)
	}
	best := ""
	for {
		out := make([]Triple, len(ts))
		for i, t := range ts {
			for _, x := range []*Term{&t.S, &t.O} {
				if k := slices.Index(nodes, *x); k >= 0 {
					*x = bnode(int(perm[k]))
				}
			}
			out[i] = t
		}
		var b []byte
		for _, t := range SortUnique(out) {
			b = t.AppendLine(b)
		}
		if best == "" || string(b) < best {
			best = string(b)
		}
		if !nextPermutation(perm) {
			return best
		}
	}
}

func CountNodes(ts []Triple) int {
	nodes := map[Term]bool{}
	for _, t := range ts {
		for _, x := range []Term{t.S, t.O} {
			if x.Kind() == KindBlank {
				nodes[x] = true
			}
		}
	}
	return len(nodes)
}

// CheckNames names ts and checks what every naming must hold to.
func CheckNames(t testing.TB, ts []Triple, o NameOptions) ([]Triple, []Component) {
	t.Helper()
	before := slices.Clone(ts)
	named, comps, err := NameBlanks(ts, o)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(before, ts) {
		t.Fatal("the input was changed")
	}
	if got, want := len(named), len(SortUnique(before)); got != want {
		t.Fatalf("%d triples, want %d", got, want)
	}
	if got, want := CountNodes(named), CountNodes(ts); got != want {
		t.Fatalf("%d blank nodes, want %d", got, want)
	}
	names := map[Term]Term{}
	all := 0
	for i, c := range comps {
		if i > 0 && cmp.Or(bytes.Compare(comps[i-1].Names.Digest[:], c.Names.Digest[:]), comps[i-1].Ordinal-c.Ordinal) >= 0 {
			t.Fatal("components out of order")
		}
		for node := range c.Names.Position {
			name := c.Names.Name(node, c.Ordinal)
			if !IsWireName(name.Label()) {
				t.Fatalf("%s is no wire name", name)
			}
			names[node] = name
		}
		all += len(c.Triples)
	}
	mapped := make([]Triple, len(ts))
	for i, tr := range ts {
		if n, ok := names[tr.S]; ok {
			tr.S = n
		}
		if n, ok := names[tr.O]; ok {
			tr.O = n
		}
		mapped[i] = tr
	}
	if !slices.Equal(SortUnique(mapped), named) {
		t.Fatal("the result is not the input under its names")
	}
	if all > len(named) {
		t.Fatal("a triple is in two components")
	}
	return named, comps
}

func digests(comps []Component) (ds []Digest) {
	for _, c := range comps {
		ds = append(ds, c.Names.Digest)
	}
	return ds
}

func TestNamesDoNotDependOnLabels(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range 3000 {
		ts := randomGraph(rng, 1+rng.IntN(12))
		want, comps := CheckNames(t, ts, NameOptions{WorkLimit: -1})
		got, comps2 := CheckNames(t, Shuffled(ts, rng), NameOptions{WorkLimit: -1})
		if !slices.Equal(got, want) {
			t.Fatalf("graph %d: relabelled\n%v\nwant\n%v\nof\n%v", i, got, want, ts)
		}
		if !slices.Equal(digests(comps), digests(comps2)) {
			t.Fatalf("graph %d: other digests", i)
		}
		// Wire names in the input are labels like any other.
		again, _ := CheckNames(t, want, NameOptions{WorkLimit: -1})
		if !slices.Equal(again, want) {
			t.Fatalf("graph %d: named again\n%v\nwant\n%v", i, again, want)
		}
	}
}

// TestDigestsTellGraphsApart compares with brute force: equal results exactly
// for isomorphic graphs, with NameBlanks and with RDFC-1.0.
func TestDigestsTellGraphsApart(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	byBrute, byNames, byCanon := map[string]string{}, map[string]string{}, map[string]string{}
	for range 2500 {
		ts := randomGraph(rng, 1+rng.IntN(4))
		brute := bruteCanonical(ts)
		named, _ := CheckNames(t, ts, NameOptions{WorkLimit: -1})
		var qs []Quad
		for _, x := range ts {
			qs = append(qs, Quad{Triple: x})
		}
		canon, _, err := Canonicalize(qs, CanonOptions{})
		if err != nil {
			t.Fatal(err)
		}
		n := fmt.Sprint(named)
		for _, m := range []struct {
			of       map[string]string
			from, to string
		}{{byBrute, brute, n}, {byNames, n, brute}, {byCanon, string(canon), brute}} {
			if was, ok := m.of[m.from]; ok && was != m.to {
				t.Fatalf("isomorphism is not kept:\n%s\n%s\n%s", m.from, m.to, was)
			}
			m.of[m.from] = m.to
		}
	}
	if len(byBrute) < 300 || len(byBrute) != len(byNames) || len(byCanon) != len(byBrute) {
		t.Errorf("%d graphs by brute force, %d by names, %d by RDFC-1.0", len(byBrute), len(byNames), len(byCanon))
	}
}

func TestSiblingsKeepTheirNames(t *testing.T) {
	build := func(street string) []Triple {
		return []Triple{
			{"<urn:e>", "<urn:address>", "_:a"}, {"_:a", "<urn:street>", Term(fmt.Sprintf("%q", street))},
			{"<urn:e>", "<urn:address>", "_:b"}, {"_:b", "<urn:street>", `"Kept"`}, {"_:b", "<urn:geo>", "_:c"}, {"_:c", "<urn:lat>", `"1"`},
		}
	}
	names := func(ts []Triple) map[Term]Term {
		out := map[Term]Term{}
		_, comps := CheckNames(t, ts, NameOptions{})
		for _, c := range comps {
			for n := range c.Names.Position {
				out[n] = c.Names.Name(n, c.Ordinal)
			}
		}
		return out
	}
	one, two := names(build("Old")), names(build("New"))
	if one["_:a"] == two["_:a"] {
		t.Error("_:a kept its name though it changed")
	}
	if one["_:b"] != two["_:b"] || one["_:c"] != two["_:c"] {
		t.Error("a sibling was renamed")
	}
}

func TestEqualNodesStayTwo(t *testing.T) {
	ts := []Triple{{"<urn:e>", "<urn:p>", "_:a"}, {"<urn:e>", "<urn:p>", "_:b"}, {"_:a", "<urn:v>", `"1"`}, {"_:b", "<urn:v>", `"1"`}}
	named, comps := CheckNames(t, ts, NameOptions{})
	if len(named) != 4 || len(comps) != 2 || comps[0].Ordinal != 0 || comps[1].Ordinal != 1 || comps[0].Names.Digest != comps[1].Names.Digest {
		t.Fatalf("%v %v", named, comps)
	}
	if name := comps[1].Names.Name("_:a", 1); name == "" && comps[1].Names.Name("_:b", 1) == "" {
		t.Error("no name")
	}
	if !strings.HasSuffix(comps[1].Triples[0].S.Label(), "n0d1") && !strings.HasSuffix(comps[1].Triples[1].S.Label(), "n0d1") {
		t.Errorf("no ordinal: %v", comps[1].Triples)
	}
}

func TestScopeAndOrphans(t *testing.T) {
	ts := []Triple{{"_:a", "<urn:v>", `"1"`}}
	_, global := CheckNames(t, ts, NameOptions{})
	_, scoped := CheckNames(t, ts, NameOptions{Scope: "http://example.org/doc"})
	if global[0].Names.Digest == scoped[0].Names.Digest {
		t.Error("the scope is not in the digest")
	}
	if !global[0].Names.Orphan {
		t.Error("not an orphan")
	}
	d := global[0].Names.Digest
	if got := OrphanEntity(d, 2); got != "urn:rsbridge:component:"+d.String()+"-2" {
		t.Error(got)
	}
	_, led := CheckNames(t, append(ts, Triple{"<urn:e>", "<urn:p>", "_:a"}), NameOptions{})
	if led[0].Names.Orphan || led[0].Names.Digest == d {
		t.Error("an IRI leads to it")
	}
	if got := led[0].Names.Name("_:stranger", 0); got != "" {
		t.Errorf("a name for a stranger: %s", got)
	}
}

// TestNamesAreStable holds the names themselves: they are in mirrors.
func TestNamesAreStable(t *testing.T) {
	for _, tt := range []struct {
		name string
		ts   []Triple
		want string
	}{
		{"leaf", []Triple{{"<urn:e>", "<urn:p>", "_:a"}, {"_:a", "<urn:v>", `"1"`}}, goldenLeaf},
		{"tree", []Triple{{"<urn:e>", "<urn:p>", "_:a"}, {"_:a", "<urn:q>", "_:b"}, {"_:a", "<urn:q>", "_:c"}, {"_:c", "<urn:v>", `"1"`}}, goldenTree},
		{"cycle", []Triple{{"_:a", "<urn:q>", "_:b"}, {"_:b", "<urn:q>", "_:a"}, {"<urn:e>", "<urn:p>", "_:a"}}, goldenCycle},
		{"ties", []Triple{{"_:a", "<urn:q>", "_:b"}, {"_:b", "<urn:q>", "_:c"}, {"_:c", "<urn:q>", "_:a"}, {"_:c", "<urn:q>", "_:d"}, {"_:d", "<urn:q>", "_:b"}, {"_:a", "<urn:q>", "_:d"}}, goldenTies},
	} {
		_, comps := CheckNames(t, tt.ts, NameOptions{})
		if got := comps[0].Names.Digest.String(); got != tt.want {
			t.Errorf("%s: digest %s, want %s", tt.name, got, tt.want)
		}
	}
}

func TestLabelComponentRefuses(t *testing.T) {
	for name, ts := range map[string][]Triple{
		"nothing":        nil,
		"a ground one":   {{"_:a", "<urn:p>", "_:b"}, {"<urn:s>", "<urn:p>", "<urn:o>"}},
		"two components": {{"_:a", "<urn:p>", `"1"`}, {"_:b", "<urn:p>", `"1"`}},
		"tree and cycle": {{"_:r", "<urn:p>", `"1"`}, {"_:a", "<urn:p>", "_:b"}, {"_:b", "<urn:p>", "_:a"}},
	} {
		if _, err := LabelComponent(ts, NameOptions{}); !errors.Is(err, ErrNotComponent) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, bad := range []Triple{{}, {"_:a", "_:b", `"1"`}, {`"x"`, "<urn:p>", "_:a"}, {"_:a", "<urn:p>", ""}} {
		if _, err := LabelComponent([]Triple{bad}, NameOptions{}); err == nil {
			t.Errorf("%v: no error", bad)
		}
	}
}

// The large shapes end quickly, or the test binary's timeout says so.
func chain(n int) (ts []Triple) {
	ts = append(ts, Triple{"<urn:e>", "<urn:list>", bnode(0)})
	for i := range n {
		ts = append(ts, Triple{bnode(i), termFirst, Term(fmt.Sprintf("\"%d\"", i%10))})
		next := termNil
		if i+1 < n {
			next = bnode(i + 1)
		}
		ts = append(ts, Triple{bnode(i), termRest, next})
	}
	return ts
}

func star(n int) (ts []Triple) {
	for i := 1; i <= n; i++ {
		ts = append(ts, Triple{bnode(0), "<urn:p>", bnode(i)})
	}
	return ts
}

func ring(n int, marked bool) (ts []Triple) {
	for i := range n {
		ts = append(ts, Triple{bnode(i), "<urn:p>", bnode((i + 1) % n)})
	}
	if marked {
		ts = append(ts, Triple{bnode(0), "<urn:v>", `"here"`})
	}
	return ts
}

// grid is a directed grid: every inner node is shared, nothing has content.
func grid(w, h int) (ts []Triple) {
	for y := range h {
		for x := range w {
			if x+1 < w {
				ts = append(ts, Triple{bnode(y*w + x), "<urn:right>", bnode(y*w + x + 1)})
			}
			if y+1 < h {
				ts = append(ts, Triple{bnode(y*w + x), "<urn:down>", bnode(y*w + x + w)})
			}
		}
	}
	return ts
}

func TestLargeComponents(t *testing.T) {
	teststores.Sequential(t)
	twoRoots := func(n int) []Triple { // two roots share n equal, empty nodes
		ts := star(n)
		for i := 1; i <= n; i++ {
			ts = append(ts, Triple{"_:other", "<urn:p>", bnode(i)})
		}
		return append(ts, Triple{"_:other", "<urn:v>", `"1"`})
	}
	for name, ts := range map[string][]Triple{
		"chain":       chain(100_000),
		"star":        star(100_000),
		"ring":        ring(300, false),
		"marked ring": ring(40_000, true),
		"grid":        grid(120, 120),
		"two roots":   twoRoots(10_000),
		"two roots with a shared tail": append(append(chain(20_000), Triple{"_:x", "<urn:p>", bnode(700)}),
			Triple{"_:y", "<urn:p>", bnode(700)}),
	} {
		rng := rand.New(rand.NewPCG(5, 6))
		one, err := LabelComponent(ts, NameOptions{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		qs := make([]Triple, 0, len(ts))
		for _, i := range rng.Perm(len(ts)) {
			qs = append(qs, ts[i])
		}
		two, err := LabelComponent(qs, NameOptions{})
		if err != nil || one.Digest != two.Digest {
			t.Errorf("%s: %v, other digest %v", name, err, one.Digest != two.Digest)
		}
		if len(slices.Compact(slices.Sorted(maps.Values(one.Position)))) != CountNodes(ts) {
			t.Errorf("%s: positions are not unique", name)
		}
	}
}

func TestPoisonEnds(t *testing.T) {
	for name, ts := range map[string][]Triple{"clique of 12": clique(12), "ring of 2000": ring(2000, false)} {
		if _, err := LabelComponent(ts, NameOptions{}); !errors.Is(err, ErrWorkLimit) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzNameBlanks(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 1, 2, 4, 5, 6}, uint64(1))
	f.Add([]byte("a shared node and a tail"), uint64(9))
	f.Fuzz(func(t *testing.T, shape []byte, seed uint64) {
		var ts []Triple
		for _, q := range quadsFrom(shape) {
			ts = append(ts, q.Triple)
		}
		want, _, err := NameBlanks(ts, NameOptions{WorkLimit: 20_000})
		if errors.Is(err, ErrWorkLimit) {
			return
		}
		CheckNames(t, ts, NameOptions{WorkLimit: -1})
		got, _ := CheckNames(t, Shuffled(ts, rand.New(rand.NewPCG(seed, 2))), NameOptions{WorkLimit: -1})
		if !slices.Equal(got, want) {
			t.Fatalf("relabelled\n%v\nwant\n%v", got, want)
		}
	})
}

func BenchmarkLabelComponent(b *testing.B) {
	small := func(nodes int) []Triple {
		ts := []Triple{{"<http://example.org/entity>", "<http://example.org/address>", bnode(0)}}
		for i := range nodes {
			ts = append(ts, Triple{bnode(i), "<http://example.org/street>", `"Main Street"`}, Triple{bnode(i), "<http://example.org/number>", `"12"`})
			if i > 0 {
				ts = append(ts, Triple{bnode((i - 1) / 2), "<http://example.org/part>", bnode(i)})
			}
		}
		return ts
	}
	for _, bm := range []struct {
		name string
		ts   []Triple
	}{{"1 node", small(1)}, {"2 nodes", small(2)}, {"5 nodes", small(5)}, {"chain of 10000", chain(10_000)}, {"chain of 100000", chain(100_000)},
		{"star of 100000", star(100_000)}, {"ring of 300", ring(300, false)}, {"marked ring of 300", ring(300, true)}, {"grid of 10000", grid(100, 100)}} {
		b.Run(bm.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := LabelComponent(bm.ts, NameOptions{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("poison", func(b *testing.B) {
		ts := clique(12)
		for b.Loop() {
			if _, err := LabelComponent(ts, NameOptions{}); err == nil {
				b.Fatal("no error")
			}
		}
	})
}
