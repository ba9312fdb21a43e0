package sink

import (
	"context"

	"github.com/rsbridge/rsbridge/rdfres"
)

// Keeper mirrors change or refuse some statements. An implementer guarantees:
//   - Keeps refuses a statement the sink cannot hold as it is, by [ErrUnusable]. KeepsAll and
//     KeepsGraph do so for statements of a resource, and for a graph.
//   - Exact tells of a statement without any detour.
//   - SameValue tells whether one literal may be the sink's form of the other.
//   - Refused tells an answer about content from a sink out of order.
//   - Restore brings graphs back, and TakeBack undoes the rest, after a batch was refused.
type Keeper interface {
	Keeps(st *Statement) error
	KeepsAll(sts []Statement) error
	KeepsGraph(graph string) error
	Exact(st *Statement) bool
	SameValue(a, b rdfres.Term) bool
	Refused(err error) bool
	Restore(ctx context.Context, b *Batch) error
	TakeBack(ctx context.Context, b *Batch) error
}
