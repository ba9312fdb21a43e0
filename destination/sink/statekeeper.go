package sink

import (
	"context"

	"github.com/rsbridge/rsbridge/rdfres"
)

// StateKeeper mirrors have a state graph, with the names of their own graphs and the
// provenance of descriptions. An implementer guarantees:
//   - Owns tells of graphs of its own for entities; CanOwn whether a graph may be one.
//   - EachOwned gives owned graphs of any mark, some twice.
//   - EachTold gives the provenance, if Tells.
//   - Freshen replaces the freshness of the mirror; without triples it removes it. Checkpoint and
//     provenance stay as they are.
//   - PutsGraphs tells of graphs for each entity without updates: Batch.Put has them.
type StateKeeper interface {
	Owns() bool
	CanOwn(graph string) bool
	EachOwned(ctx context.Context, f func(graph, mark string) error) error
	Tells() bool
	EachTold(ctx context.Context, f func(rdfres.Triple) error) error
	Freshen(ctx context.Context, freshness []rdfres.Triple) error
	PutsGraphs() bool
}
