package sparqlsink

import (
	"context"
	"errors"
	"fmt"

	"github.com/rsbridge/rsbridge/destination/sink"
	"github.com/rsbridge/rsbridge/internal/sparql"
	"github.com/rsbridge/rsbridge/rdfres"
)

// In the per-entity layout any graph of the store may be of somebody else. So
// the mirror itself names ours: one triple in the state graph for each, GRAPH terms#mirror
// MARK. It comes and goes with its graph. By these triples graphs without a record are found,
// after the records were lost or restored from a backup.

const (
	ownedBy    = sink.PropPrefix + "mirror" // of a graph: the mark of its destination
	predKeptBy = sink.PropPrefix + "keptBy" // of a description: the same
)

// Owns tells whether the mirror keeps the names of its graphs.
func (m *Mirror) Owns() bool {
	return m.Layout.PerEntity && m.Client.Endpoint().Query != ""
}

// Tells tells whether provenance can be written.
func (m *Mirror) Tells() bool { return true }

// ownership is the triple of a graph of ours.
func (m *Mirror) ownership(graph string) sink.Statement {
	return sink.Statement{Graph: sink.StateGraph, Triple: rdfres.Triple{S: rdfres.NewIRI(graph), P: rdfres.NewIRI(ownedBy), O: rdfres.NewIRI(m.Mark)}}
}

// CanOwn tells whether the name of a graph comes back as it was given: any other
// name would be another graph's.
func (m *Mirror) CanOwn(graph string) bool {
	if !m.Owns() {
		return false
	}
	st := m.ownership(graph)
	return m.Keeps(&st) == nil
}

// disownText is an update to remove the ownership of graphs.
func (m *Mirror) disownText(graphs []string) string {
	if len(graphs) == 0 || !m.Owns() {
		return ""
	}
	b := []byte("DELETE DATA { GRAPH <" + sink.StateGraph + "> {\n")
	for _, g := range graphs {
		b = appendSPARQL(b, m.ownership(g).Triple)
	}
	return string(append(b, "} } ;\n"...))
}

// EachOwned yields the owned graphs of the mirror, of any mark. One may
// come twice.
func (m *Mirror) EachOwned(ctx context.Context, f func(graph, mark string) error) error {
	const pattern = "GRAPH <" + sink.StateGraph + "> { ?g <" + ownedBy + "> ?m } "
	return m.reader.rows(ctx, pattern, []string{"?g", "?m"}, nil, func(r sparql.Row) error {
		if r[0].Kind() != rdfres.KindIRI {
			return nil
		}
		return f(r[0].IRI(), r[1].IRI())
	})
}

// EachTold yields the provenance of this destination. A triple may come
// twice.
func (m *Mirror) EachTold(ctx context.Context, f func(rdfres.Triple) error) error {
	pattern := "GRAPH <" + sink.StateGraph + "> { ?s <" + predKeptBy + "> <" + m.Mark + "> . ?s ?p ?o } "
	return m.reader.rows(ctx, pattern, []string{"?s", "?p", "?o"}, nil, func(r sparql.Row) error {
		return f(rdfres.Triple{S: r[0], P: r[1], O: r[2]})
	})
}

// Lines counts the lines of this destination in the state graph.
func (m *Mirror) Lines(ctx context.Context) (int64, error) {
	s, err := m.Client.Select(ctx, fmt.Sprintf("SELECT (COUNT(*) AS ?n) WHERE { GRAPH <%s> { { <%s> ?p ?o } UNION { <%s> ?p ?o } UNION { ?o <%s> <%s> } UNION { ?d <%s> <%s> ; ?p ?o } } }",
		sink.StateGraph, m.Mark, sink.FreshnessOf(m.Mark), ownedBy, m.Mark, predKeptBy, m.Mark))
	if err != nil {
		return 0, fmt.Errorf("count the lines in %s: %w", sink.StateGraph, err)
	}
	for row, err := range s.Rows {
		if err != nil {
			return 0, fmt.Errorf("count the lines in %s: %w", sink.StateGraph, err)
		}
		return numberOf(row)
	}
	return 0, fmt.Errorf("count the lines in %s: no answer", sink.StateGraph)
}

func numberOf(row sparql.Row) (n int64, err error) {
	if len(row) == 1 && row[0].Kind() == rdfres.KindLiteral {
		lex, _, _ := row[0].Literal()
		if _, err := fmt.Sscanf(lex, "%d", &n); err == nil {
			return n, nil
		}
	}
	return 0, errors.New("the answer is no number")
}

// Forget removes the lines of this destination from the state graph.
func (m *Mirror) Forget(ctx context.Context, _ bool) error {
	return m.Client.Update(ctx, fmt.Sprintf(`DELETE WHERE { GRAPH <%[1]s> { <%[2]s> ?p ?o } } ;
DELETE WHERE { GRAPH <%[1]s> { <%[5]s> ?p ?o } } ;
DELETE WHERE { GRAPH <%[1]s> { ?g <%[3]s> <%[2]s> } } ;
DELETE { GRAPH <%[1]s> { ?d ?p ?o } } WHERE { GRAPH <%[1]s> { ?d <%[4]s> <%[2]s> ; ?p ?o } }`, sink.StateGraph, m.Mark, ownedBy, predKeptBy, sink.FreshnessOf(m.Mark)))
}

// Freshen replaces the freshness of the mirror, in one request.
func (m *Mirror) Freshen(ctx context.Context, freshness []rdfres.Triple) error {
	b := fmt.Appendf(nil, "DELETE WHERE { GRAPH <%s> { <%s> ?p ?o } }", sink.StateGraph, sink.FreshnessOf(m.Mark))
	if len(freshness) > 0 {
		b = fmt.Appendf(b, " ;\nINSERT DATA { GRAPH <%s> {\n", sink.StateGraph)
		for _, t := range freshness {
			b = appendSPARQL(b, t)
		}
		b = append(b, "} }"...)
	}
	return m.Client.Update(ctx, string(b))
}
