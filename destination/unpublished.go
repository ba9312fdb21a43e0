package destination

import (
	"context"

	"github.com/rsbridge/rsbridge/destination/keep"
)

// A source may publish its changes later than it makes them: with the next dump, or by a schedule
// of its list. Its inventory tells how far it is. Until the changes are published the mirror is
// neither in sync nor proven to be equal.

// notePublished keeps the source's changes before the run that no list or dump had at its end, for a run that
// has read everything.
func (r *run) notePublished(ctx context.Context) error {
	if !r.complete || !r.until.IsZero() {
		return nil
	}
	m := r.d.mem.SnapshotMeta()
	var next keep.Unpublished
	if root := r.way.root; root.Beyond(m.At.Cursor()) { // of the beginning
		next = m.UnpublishedAt(root.Sequence, root.Time)
	}
	if next == m.Unpublished && !m.At.HasOlder() {
		return nil
	}
	return r.d.mem.SaveMeta(ctx, func(m *keep.Meta) {
		m.Unpublished = next
		m.At.ForgetOlder()
	})
}
