package sparqlsink

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/rsbridge/rsbridge/internal/sparql"
	"github.com/rsbridge/rsbridge/rdfres"
)

const mostOfSubject = 10_000 // triples

// Subject asks a store for the triples of an entity as subject: in one graph ("" is the default
// graph), or in the entity's own, whose template graph is ("" is the entity).
func Subject(ctx context.Context, c *sparql.Client, perEntity bool, graph, entity string) (out []rdfres.Triple, err error) {
	if perEntity {
		graph = strings.ReplaceAll(cmp.Or(graph, "{entity}"), "{entity}", entity)
	}
	subject := rdfres.NewIRI(entity)
	where := string(subject) + " ?p ?o"
	if graph != "" {
		where = fmt.Sprintf("GRAPH %s { %s }", rdfres.NewIRI(graph), where)
	}
	for t, err := range c.Construct(ctx, fmt.Sprintf("CONSTRUCT { %s ?p ?o } WHERE { %s } LIMIT %d", subject, where, mostOfSubject)) {
		if err != nil {
			return nil, fmt.Errorf("description of %s in the mirror: %w", entity, err)
		}
		out = append(out, t)
	}
	return out, nil
}
