package destination

import (
	"context"
	"fmt"
	"time"

	"github.com/rsbridge/rsbridge/destination/feed"
)

// A source may publish its changes later than it makes them: with the next dump, or by a schedule
// of its list. Its inventory tells how far it is. Until the changes are published the mirror is
// neither in sync nor proven to be equal.

// unpublished are the changes of a source not published yet.
type unpublished struct {
	Sequence uint64    `json:"sequence,omitempty"` // Sequence of its newest change, 0: everything is published.
	Since    time.Time `json:"since,omitzero"`     // Since is the time of the first such change, as far as polls have seen it.
}

// notePublished keeps the source's changes before the run that no list or dump had at its end.
// root is of the beginning.
func (d *Destination) notePublished(ctx context.Context, root *feed.InventoryDoc) error {
	m := d.mem.snapshotMeta()
	var next unpublished
	if root.Beyond(&m.Cursor) {
		if next = m.Unpublished; next.Sequence == 0 {
			if next.Since = root.Time; next.Since.IsZero() {
				next.Since = m.Cursor.Time()
			}
		}
		next.Sequence = root.Sequence
	}
	if next == m.Unpublished {
		return nil
	}
	return d.mem.saveMeta(ctx, func(m *meta) { m.Unpublished = next })
}

// notPublished says so in words, "" if everything is published.
func (m *meta) notPublished() string {
	if m.Unpublished.Sequence == 0 {
		return ""
	}
	return fmt.Sprintf("the source stands at change %d and publishes its changes up to %d", m.Unpublished.Sequence, m.Cursor.Number())
}

// behind tells whether some published changes are not applied.
func (a *auditRun) behind(ctx context.Context) (bool, error) {
	probe := &auditRun{d: a.d, offer: a.offer, depth: a.depth, silently: true}
	err := probe.published(ctx, false)
	return probe.sourceDiffers, err
}
