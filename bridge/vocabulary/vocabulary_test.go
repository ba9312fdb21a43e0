package vocabulary

import (
	"errors"
	"fmt"
	"testing"

	"github.com/rsbridge/rsbridge/publish"
	"github.com/rsbridge/rsbridge/rdfres"
)

// TestVocabularyCounts: what passes is counted, and passes unchanged.
func TestVocabularyCounts(t *testing.T) {
	boom := errors.New("boom")
	iri := rdfres.NewIRI
	found := func(yield func(rdfres.Description, error) bool) {
		for i := range 3 {
			e := iri(fmt.Sprintf("http://example.org/%d", i))
			d := rdfres.Description{Entity: e.IRI(), Triples: []rdfres.Triple{
				{S: e, P: iri(rdfTypeIRI), O: iri("http://example.org/C")},
				{S: e, P: iri("http://example.org/p"), O: rdfres.NewBlank("b")},
				{S: rdfres.NewBlank("b"), P: iri(rdfTypeIRI), O: iri("http://example.org/D")}, // no entity's class
			}}
			if i == 0 {
				d.Triples = append(d.Triples, rdfres.Triple{S: e, P: iri(rdfTypeIRI), O: iri("http://example.org/E")})
			}
			if !yield(d, nil) {
				return
			}
		}
		yield(rdfres.Description{}, boom)
	}
	c := New()
	n := 0
	for d, err := range c.Through(found) {
		if n++; n == 4 != errors.Is(err, boom) || n < 4 && len(d.Triples) < 3 {
			t.Errorf("%d: %v %v", n, d, err)
		}
	}
	got := c.Record()
	want := publish.Vocabulary{Classes: 2, Properties: 2,
		LargestClasses:    []publish.Count{{IRI: "http://example.org/C", Count: 3}, {IRI: "http://example.org/E", Count: 1}},
		LargestProperties: []publish.Count{{IRI: rdfTypeIRI, Count: 7}, {IRI: "http://example.org/p", Count: 3}}}
	if n != 4 || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%d: %+v, want %+v", n, got, want)
	}
	for i := range countedTerms + 1 {
		c.add(c.classes, iri(fmt.Sprintf("http://example.org/class/%d", i)))
	}
	if got := c.Record(); got.Classes != 0 {
		t.Errorf("too many to count: %d", got.Classes)
	}
}
