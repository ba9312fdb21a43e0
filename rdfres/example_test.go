package rdfres_test

import (
	"fmt"
	"slices"

	"github.com/rsbridge/rsbridge/rdfres"
)

func triples(lines ...string) (ts []rdfres.Triple) {
	for _, line := range lines {
		q, _, err := rdfres.ParseLine([]byte(line))
		if err != nil {
			panic(err)
		}
		ts = append(ts, q.Triple)
	}
	return ts
}

// A description takes blank nodes along. The symmetric one has those who lead to the node, too.
func ExampleGraph() {
	g := rdfres.NewGraph(triples(
		`<urn:berlin> <urn:mayor> _:m .`,
		`_:m <urn:name> "Kai" .`,
		`<urn:germany> <urn:capital> <urn:berlin> .`,
	))
	for _, s := range slices.Sorted(g.Subjects) {
		fmt.Println(s, len(g.CBD(s)), len(g.SCBD(s)))
	}
	// Output:
	// <urn:berlin> 2 3
	// <urn:germany> 1 1
	// _:m 1 2
}

// Two documents with other names of blank nodes are one dataset.
func ExampleCanonicalize() {
	for _, label := range []string{"_:x", "_:b42"} {
		var qs []rdfres.Quad
		for _, t := range triples(`<urn:berlin> <urn:mayor> `+label+` .`, label+` <urn:name> "Kai" .`) {
			qs = append(qs, rdfres.Quad{Triple: t})
		}
		nquads, _, err := rdfres.Canonicalize(qs, rdfres.CanonOptions{})
		if err != nil {
			panic(err)
		}
		fmt.Print(string(nquads))
	}
	// Output:
	// <urn:berlin> <urn:mayor> _:c14n0 .
	// _:c14n0 <urn:name> "Kai" .
	// <urn:berlin> <urn:mayor> _:c14n0 .
	// _:c14n0 <urn:name> "Kai" .
}
