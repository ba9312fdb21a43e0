package destination

import (
	"context"

	"github.com/rsbridge/rsbridge/destination/feed"
	"github.com/rsbridge/rsbridge/destination/keep"
)

// A source may publish its changes later than it makes them: with the next dump, or by a schedule
// of its list. Its inventory tells how far it is. Until the changes are published the mirror is
// neither in sync nor proven to be equal.

// notePublished keeps the source's changes before the run that no list or dump had at its end.
// root is of the beginning.
func (d *Destination) notePublished(ctx context.Context, root *feed.InventoryDoc) error {
	m := d.mem.SnapshotMeta()
	var next keep.Unpublished
	if root.Beyond(m.At.Cursor()) {
		next = m.UnpublishedAt(root.Sequence, root.Time)
	}
	if next == m.Unpublished {
		return nil
	}
	return d.mem.SaveMeta(ctx, func(m *keep.Meta) { m.Unpublished = next })
}
