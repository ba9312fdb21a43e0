// Package vocabulary counts the classes and properties in the descriptions of a scan.
package vocabulary

import (
	"cmp"
	"iter"
	"slices"

	"github.com/rsbridge/rsbridge/publish"
	"github.com/rsbridge/rsbridge/rdfres"
)

const (
	countedTerms = 100000 // most distinct classes and properties; with more there is no number
	countedShown = 100    // of each are named in the description of the set, the largest
	rdfTypeIRI   = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
)

// Counts are the classes and properties in the descriptions of a scan.
type Counts struct {
	classes    map[rdfres.Term]int64 // entities of each
	properties map[rdfres.Term]int64 // triples of each
	over       bool                  // there are more than are counted
}

// New counts nothing yet.
func New() *Counts {
	return &Counts{classes: map[rdfres.Term]int64{}, properties: map[rdfres.Term]int64{}}
}

// Through counts the passing descriptions.
func (c *Counts) Through(found iter.Seq2[rdfres.Description, error]) iter.Seq2[rdfres.Description, error] {
	rdfType := rdfres.NewIRI(rdfTypeIRI)
	return func(yield func(rdfres.Description, error) bool) {
		for d, err := range found {
			if err == nil {
				entity := rdfres.NewIRI(d.Entity)
				for _, t := range d.Triples {
					c.add(c.properties, t.P)
					if t.P == rdfType && t.S == entity && t.O.Kind() == rdfres.KindIRI {
						c.add(c.classes, t.O)
					}
				}
			}
			if !yield(d, err) {
				return
			}
		}
	}
}

func (c *Counts) add(m map[rdfres.Term]int64, t rdfres.Term) {
	if n, ok := m[t]; ok || len(m) < countedTerms {
		m[t] = n + 1
	} else {
		c.over = true
	}
}

// Record is the kept form of the counts.
func (c *Counts) Record() publish.Vocabulary {
	if c.over {
		return publish.Vocabulary{}
	}
	largest := func(m map[rdfres.Term]int64) (out []publish.Count) {
		for t, n := range m {
			out = append(out, publish.Count{IRI: t.IRI(), Count: n})
		}
		slices.SortFunc(out, func(a, b publish.Count) int { return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.IRI, b.IRI)) })
		return out[:min(len(out), countedShown)]
	}
	return publish.Vocabulary{Classes: int64(len(c.classes)), Properties: int64(len(c.properties)),
		LargestClasses: largest(c.classes), LargestProperties: largest(c.properties)}
}
