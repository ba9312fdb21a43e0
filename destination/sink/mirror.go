package sink

import "context"

// Mirror takes the changes of one destination. An implementer guarantees:
//   - Apply makes a batch true, and then writes the checkpoint, both durably.
//   - After an error any part may stand. The same batch comes again, perhaps from another
//     process after a crash, and does no harm.
//   - A batch may be without data: its checkpoint is written.
//   - A queue (a mirror without [Reader]) gets each change, also of a page without triples, at
//     least once.
//
// Calls of one mirror never overlap. Mirrors with more to offer are also Marked, Reader, Keeper,
// Learner, Loader, Packer, StateKeeper, Whole or Files.
type Mirror interface {
	Apply(ctx context.Context, b *Batch, cp *Checkpoint) error
}
