package embedstore

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	gordf "github.com/rsbridge/rsbridge/internal/embedstore/engine"
	"github.com/rsbridge/rsbridge/rdfres"
)

// Mapping is a CONSTRUCT that graphs in memory are put through, one at a time.
type Mapping struct {
	text   string
	entity bool // it uses ?entity
}

// ParseMapping checks a CONSTRUCT. Its variable ?entity, where it has one, is
// bound to the IRI that a graph is about. It cannot have FROM, SERVICE, or VALUES
// after the WHERE (they can stand in it), nor values that are computed otherwise
// than by STR and COUNT.
func ParseMapping(text string) (*Mapping, error) {
	q, err := parseQuery(text, "")
	switch {
	case err != nil:
		return nil, err
	case q.form != formConstruct:
		return nil, errors.New("it is no CONSTRUCT")
	case q.hasFrom:
		return nil, errors.New("it has FROM: a description has one graph")
	case q.values != nil:
		return nil, errors.New("it has VALUES after the WHERE: put them into it")
	}
	m := &Mapping{text: text, entity: strings.Contains(text, "?entity") || strings.Contains(text, "$entity")}
	_, err = m.Apply(context.Background(), "urn:example:entity", nil) // what the engine refuses, it refuses always
	return m, err
}

// Apply gives what the CONSTRUCT makes of ts, sorted and without doubles. Blank
// nodes that it makes have labels of this call.
func (m *Mapping) Apply(ctx context.Context, entity string, ts []rdfres.Triple) ([]rdfres.Triple, error) {
	o := gordf.Options{Compare: func(a, b rdfres.Term) int {
		va, vb := termValue(a), termValue(b)
		return orderValues(&va, &vb)
	}}
	if m.entity {
		iri := rdfres.NewIRI(entity)
		if err := rdfres.CheckIRI(string(iri)); err != nil {
			return nil, fmt.Errorf("mapping: %w", err)
		}
		o.Values = map[string]rdfres.Term{"entity": iri}
	}
	r, err := gordf.Query(ctx, inMemory(ts), m.text, o)
	if err != nil {
		return nil, fmt.Errorf("mapping: %w", err)
	}
	return rdfres.SortUnique(r.Triples), nil
}

// inMemory is the default graph of an evaluation.
type inMemory []rdfres.Triple

func (g inMemory) Match(p gordf.Pattern) iter.Seq2[rdfres.Quad, error] {
	return func(yield func(rdfres.Quad, error) bool) {
		if p.G != "" {
			return
		}
		for _, t := range g {
			if (p.S == "" || p.S == t.S) && (p.P == "" || p.P == t.P) && (p.O == "" || p.O == t.O) && !yield(rdfres.Quad{Triple: t}, nil) {
				return
			}
		}
	}
}

func (inMemory) Graphs() ([]rdfres.Term, error) { return nil, nil }
