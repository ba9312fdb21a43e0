package sink

import (
	"context"
	"iter"
)

// Marked mirrors give checkpoints back. Without them records and mirror are never held
// against each other at the start of a run. An implementer guarantees:
//   - Checkpoint is the mirror's own, nil for none.
//   - Others are checkpoints of other marks over the same graph, by mark.
//   - IsEmpty asks for anything in the mirror's place, apart from some graphs.
//   - Lines counts the mirror's own bookkeeping.
//   - Forget removes the bookkeeping, as the last act of a mirror. With data the sink may
//     remove the rest too.
type Marked interface {
	Checkpoint(ctx context.Context) (*Checkpoint, error)
	Others(ctx context.Context, graph string) (map[string]*Checkpoint, error)
	IsEmpty(ctx context.Context, besides iter.Seq[string]) (bool, error)
	Lines(ctx context.Context) (int64, error)
	Forget(ctx context.Context, data bool) error
}
