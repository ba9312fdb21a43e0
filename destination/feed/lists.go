package feed

import (
	"context"
	"time"

	"github.com/rsbridge/rsbridge/destination/item"
)

// Lists tell the resources of a set. An implementer guarantees:
//   - An [Inventory] is whole: after an error nothing may be concluded from it. It has the changes
//     after the list too, as far as they follow it (Hole, Missing).
//   - [When] leaves out a known list only if reading it could tell nothing else: [ErrUnchanged].
//   - DumpCost is of bytes that would come. It downloads no package.
//   - An inventory of digests that cannot be used is nil, or ErrInventory below the root.
//
// Whoever gets an Inventory or a [Dump] closes it.
type Lists interface {
	ReadInventory(ctx context.Context, o *Offer, when When) (*Inventory, error)
	ReadInventoryOf(ctx context.Context, o *Offer, when When, look func(*item.Item) error) (*Inventory, error)
	ReadInventoryUntil(ctx context.Context, o *Offer, until time.Time) (*Inventory, error)
	OpenDump(ctx context.Context, o *Offer, when When) (*Dump, error)
	DumpCost(ctx context.Context, o *Offer) (cost int64, told bool, err error)
	DumpIs(ctx context.Context, o *Offer) (taken, another bool, err error)
	InventoryRoot(ctx context.Context, o *Offer) (*InventoryDoc, error)
	InventoryNode(ctx context.Context, address string) (*InventoryDoc, error)
}
