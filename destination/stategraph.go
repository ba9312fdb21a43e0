package destination

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/rsbridge/rsbridge/destination/sink"
	"github.com/rsbridge/rsbridge/internal/sparql"
	"github.com/rsbridge/rsbridge/rdfres"
)

// In the per-entity layout any graph of the store may be of somebody else. So
// the mirror itself says which ones are ours: one triple in the state graph for
// each, GRAPH terms#mirror MARK, which comes with the graph and goes with it. By
// them graphs are found that no record knows, after a backup of the records was
// restored or the records were lost.

const (
	ownedBy    = sink.PropPrefix + "mirror" // of a graph: the mark of its destination
	predKeptBy = sink.PropPrefix + "keptBy" // of a description: the same
)

// owns tells whether the mirror keeps the names of its graphs.
func (m *mirror) owns() bool {
	return m.lay.PerEntity && !m.gspOnly() && m.client.Endpoint().Query != ""
}

// ownership is the triple that makes a graph ours.
func (m *mirror) ownership(graph string) sink.Statement {
	return sink.Statement{Graph: sink.StateGraph, Triple: rdfres.Triple{S: rdfres.NewIRI(graph), P: rdfres.NewIRI(ownedBy), O: rdfres.NewIRI(m.mark)}}
}

// canOwn tells whether the name of a graph comes back as it was given: any other
// name would be that of another graph.
func (m *mirror) canOwn(graph string) bool {
	if !m.owns() {
		return false
	}
	st := m.ownership(graph)
	return m.keeps(&st) == nil
}

// disownText is an update that removes the ownership of graphs.
func (m *mirror) disownText(graphs []string) string {
	if len(graphs) == 0 || !m.owns() {
		return ""
	}
	b := []byte("DELETE DATA { GRAPH <" + sink.StateGraph + "> {\n")
	for _, g := range graphs {
		b = appendSPARQL(b, m.ownership(g).Triple)
	}
	return string(append(b, "} } ;\n"...))
}

// eachOwned yields the graphs that are owned in the mirror, of any mark. One may
// come twice.
func (m *mirror) eachOwned(ctx context.Context, f func(graph, mark string) error) error {
	const pattern = "GRAPH <" + sink.StateGraph + "> { ?g <" + ownedBy + "> ?m } "
	return m.rows(ctx, pattern, []string{"?g", "?m"}, nil, func(r sparql.Row) error {
		if r[0].Kind() != rdfres.KindIRI {
			return nil
		}
		return f(r[0].IRI(), r[1].IRI())
	})
}

// eachTold yields the provenance that is of this destination. A triple may come
// twice.
func (m *mirror) eachTold(ctx context.Context, f func(rdfres.Triple) error) error {
	pattern := "GRAPH <" + sink.StateGraph + "> { ?s <" + predKeptBy + "> <" + m.mark + "> . ?s ?p ?o } "
	return m.rows(ctx, pattern, []string{"?s", "?p", "?o"}, nil, func(r sparql.Row) error {
		return f(rdfres.Triple{S: r[0], P: r[1], O: r[2]})
	})
}

// countLines counts the lines of this destination in the state graph.
func (m *mirror) countLines(ctx context.Context) (int64, error) {
	if m.gspOnly() {
		cp, err := m.readCheckpoint(ctx)
		if err != nil || cp == nil {
			return 0, err
		}
		return int64(len(cp.Triples(m.mark))), nil
	}
	s, err := m.client.Select(ctx, fmt.Sprintf("SELECT (COUNT(*) AS ?n) WHERE { GRAPH <%s> { { <%s> ?p ?o } UNION { ?o <%s> <%s> } UNION { ?d <%s> <%s> ; ?p ?o } } }",
		sink.StateGraph, m.mark, ownedBy, m.mark, predKeptBy, m.mark))
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

// dropLines removes the lines of this destination from the state graph.
func (m *mirror) dropLines(ctx context.Context) error {
	if m.gspOnly() {
		return m.client.DeleteGraph(ctx, sink.StateGraph+":"+strings.TrimPrefix(m.mark, sink.MarkPrefix))
	}
	return m.client.Update(ctx, fmt.Sprintf(`DELETE WHERE { GRAPH <%[1]s> { <%[2]s> ?p ?o } } ;
DELETE WHERE { GRAPH <%[1]s> { ?g <%[3]s> <%[2]s> } } ;
DELETE { GRAPH <%[1]s> { ?d ?p ?o } } WHERE { GRAPH <%[1]s> { ?d <%[4]s> <%[2]s> ; ?p ?o } }`, sink.StateGraph, m.mark, ownedBy, predKeptBy))
}
