package bridge

import (
	"cmp"
	"context"
	"encoding/json"
	"iter"
	"slices"

	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/publish"
	"github.com/rsbridge/rsbridge/rdfres"
)

const (
	countedTerms   = 100000 // most distinct classes and properties; with more there is no number
	countedShown   = 100    // of each are named in the description of the set, the largest
	rdfTypeIRI     = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
	countsInRecord = "counts/"
)

// vocabularyCounts are the classes and properties in the descriptions of a scan.
type vocabularyCounts struct {
	classes    map[rdfres.Term]int64 // entities of each
	properties map[rdfres.Term]int64 // triples of each
	over       bool                  // there are more than are counted
}

func newCounts() *vocabularyCounts {
	return &vocabularyCounts{classes: map[rdfres.Term]int64{}, properties: map[rdfres.Term]int64{}}
}

// through counts the passing descriptions.
func (c *vocabularyCounts) through(found iter.Seq2[rdfres.Description, error]) iter.Seq2[rdfres.Description, error] {
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

func (c *vocabularyCounts) add(m map[rdfres.Term]int64, t rdfres.Term) {
	if n, ok := m[t]; ok || len(m) < countedTerms {
		m[t] = n + 1
	} else {
		c.over = true
	}
}

// record is the kept form of the counts.
func (c *vocabularyCounts) record() publish.Vocabulary {
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

func (m setMemory) saveCounts(b kv.Batch, v publish.Vocabulary) error {
	raw, err := json.Marshal(v)
	if err == nil {
		b.Set([]byte(countsInRecord+m.set), raw)
	}
	return err
}

// counts are those of the last complete scan, zero when there are none.
func (m setMemory) counts(ctx context.Context) (v publish.Vocabulary) {
	raw, err := m.records.Get(ctx, []byte(countsInRecord+m.set))
	if err != nil || json.Unmarshal(raw, &v) != nil {
		return publish.Vocabulary{}
	}
	return v
}
