package audit

import (
	"context"

	"github.com/rsbridge/rsbridge/destination/item"
	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/rdfres"
)

// Doubts are about answers without a promise. An implementer guarantees:
//   - Doubtful is the fault of a resource with an answer of the digest came. The answer is not taken.
//   - Confirm asks again for resources taken without a promise. other gets those without an answer
//     (err), and those with another one: nothing of it is taken.
type Doubts interface {
	Doubtful(ctx context.Context, it *item.Item, loc ledger.Hash, why string, came rdfres.Digest) *ledger.Fault
	Confirm(ctx context.Context, snap kv.Reader, other func(it *item.Item, came *ledger.Record, err error) error) error
}
