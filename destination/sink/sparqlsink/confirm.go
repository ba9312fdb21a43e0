package sparqlsink

import (
	"context"
	"errors"
	"fmt"

	"github.com/rsbridge/rsbridge/destination/sink"
	"github.com/rsbridge/rsbridge/internal/clip"
	"github.com/rsbridge/rsbridge/internal/sparql"
	"github.com/rsbridge/rsbridge/rdfres"
)

// A confirmed write may not be done: Virtuoso 7 answers 201 Created to an unread upload. So
// each batch is read back before its checkpoint, unless requests are atomic. At the end of a
// baseline the number of triples is compared with the records.

// confirm reads the subjects (per-entity: the graphs) of a plan back.
func (m *Mirror) confirm(ctx context.Context, p *sink.Batch) error {
	if m.Caps.Transactional || len(p.Remove)+len(p.Add) == 0 {
		return nil
	}
	const absent, there = 1, 2
	want := make(map[sink.Hash]byte, len(p.Add)+len(p.Remove))
	pairs := map[string]bool{} // graph, subject and predicate of inserted literals: is there one?
	pair := func(graph string, t rdfres.Triple) string { return graph + " " + string(t.S) + " " + string(t.P) }
	var keys []string
	known := map[string]bool{}
	touch := func(st *sink.Statement) {
		k := st.Graph
		if !m.Layout.PerEntity {
			k = st.Triple.S.IRI()
		}
		if k != "" && !known[k] {
			known[k] = true
			keys = append(keys, k)
		}
	}
	for i := range p.Remove {
		st := &p.Remove[i]
		if st.HasBlank() || st.Graph == sink.StateGraph {
			continue
		}
		want[st.Hash] = absent
		touch(st)
	}
	for i := range p.Add {
		st := &p.Add[i]
		if st.Graph == sink.StateGraph {
			continue // an audit finds it
		}
		want[st.Hash] = there
		touch(st)
		if st.Triple.O.Kind() == rdfres.KindLiteral {
			pairs[pair(st.Graph, st.Triple)] = false
		}
	}
	seen := func(graph string, t rdfres.Triple) error {
		h := sink.TripleHash(graph, m.Layout.NormalForm.Triple(t))
		switch want[h] {
		case absent:
			return fmt.Errorf("%w: %s is still there", sink.ErrUnconfirmed, clip.Middle(tripleText(t)))
		case there:
			delete(want, h)
		}
		if t.O.Kind() == rdfres.KindLiteral {
			k := pair(graph, t)
			if _, ok := pairs[k]; ok {
				pairs[k] = true
			}
		}
		return nil
	}
	parts := m.reader.parts(m.reader.pattern(), "?s", "?p", "?o")
	row := func(r sparql.Row) error { return seen("", rdfres.Triple{S: r[0], P: r[1], O: r[2]}) }
	if m.Layout.PerEntity {
		parts = m.reader.parts("GRAPH ?g { ?s ?p ?o } ", "?g", "?s", "?p", "?o")
		row = func(r sparql.Row) error { return seen(r[0].IRI(), rdfres.Triple{S: r[1], P: r[2], O: r[3]}) }
	}
	parts.Confirm = len(p.Remove) > 0 // triples left out of an answer would pass for deleted
	err := parts.Of(ctx, keys, row)
	if errors.Is(err, sink.ErrUnconfirmed) {
		return err
	}
	if err != nil {
		return fmt.Errorf("read back what was written: %v", err) // a failure of reading, no refusal
	}
	for i := range p.Add {
		st := &p.Add[i]
		if st.Graph != sink.StateGraph && want[st.Hash] == there && !pairs[pair(st.Graph, st.Triple)] { // another literal may be the store's form of it
			return fmt.Errorf("%w: %s is not there", sink.ErrUnconfirmed, clip.Middle(tripleText(st.Triple)))
		}
	}
	return nil
}

func tripleText(t rdfres.Triple) string { return string(t.S) + " " + string(t.P) + " " + string(t.O) }
