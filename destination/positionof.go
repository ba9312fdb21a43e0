package destination

import (
	"context"
	"fmt"

	"github.com/rsbridge/rsbridge/destination/feed"
	"github.com/rsbridge/rsbridge/destination/keep"
	"github.com/rsbridge/rsbridge/destination/ledger"
)

// positionOf keeps a position in the record of a destination.
type positionOf struct{ d *Destination }

func (p positionOf) Position() feed.Position { return p.d.mem.SnapshotMeta().At }

func (p positionOf) Keep(ctx context.Context, change func(*feed.Position)) error {
	return p.d.mem.SaveMeta(ctx, func(m *keep.Meta) { change(&m.At) })
}

func (p positionOf) Stage() ledger.Stage { return p.d.mem.SnapshotMeta().Stage }

// Wait returns when the source may have more than the last Sync has read: by a poll, or by a
// value on Options.Wake. It is not called beside Sync or Audit.
func (d *Destination) Wait(ctx context.Context) error {
	m := d.mem.SnapshotMeta()
	d.fetch.Begin()
	if err := feed.Notified(d.src, d.opt.Wake).Wait(ctx, m.At); err != nil {
		return fmt.Errorf("wait for %s: %w", d.cfg.Name, err)
	}
	return nil
}
