package sink

import (
	"context"
	"iter"

	"github.com/rsbridge/rsbridge/rdfres"
)

// Reader mirrors are read back by audits. An implementer guarantees:
//   - Has answers for one statement, if Asks tells of a mirror for single questions.
//   - Count is of all triples, if Countable.
//   - ReadSingle gives all triples of a single graph, some twice. add raises got.
//   - ReadGraphs gives the triples of all wanted graphs, some twice.
//   - ReadGraph gives the triples of one graph.
type Reader interface {
	Asks() bool
	Has(ctx context.Context, st *Statement) (bool, error)
	Countable() bool
	Count(ctx context.Context) (int64, error)
	ReadSingle(ctx context.Context, got *int64, add func(rdfres.Triple) error) error
	ReadGraphs(ctx context.Context, wanted func(graph string) (bool, error), add func(graph string, t rdfres.Triple) error) error
	ReadGraph(ctx context.Context, graph string) iter.Seq2[rdfres.Triple, error]
}
