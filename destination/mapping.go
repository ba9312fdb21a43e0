package destination

import (
	"context"
	"crypto/sha256"
	"fmt"

	"github.com/rsbridge/rsbridge/destination/keep"
	"github.com/rsbridge/rsbridge/destination/ledger"
)

// mapID names a map, "" for none.
func mapID(text string) string {
	if text == "" {
		return ""
	}
	return fmt.Sprintf("%x", sha256.Sum256([]byte(text)))
}

// remap makes everything be fetched and mapped again when the map is another one.
func (r *run) remap(ctx context.Context) (bool, error) {
	d := r.d
	id := mapID(d.cfg.Map)
	m := d.mem.SnapshotMeta()
	if m.Map == id || m.Stage == ledger.None {
		if m.Map != id {
			return false, d.mem.SaveMeta(ctx, func(m *keep.Meta) { m.Map = id })
		}
		return false, nil
	}
	r.why("the map was changed: everything is fetched and mapped again")
	if r.dry {
		return true, nil
	}
	snap := d.mem.Store.Snapshot(ctx)
	defer snap.Close()
	b := d.mem.Store.Batch()
	defer b.Close()
	for loc, rec := range d.mem.Ledger.Records(ctx, snap) {
		if rec.Err != nil {
			return false, rec.Err
		}
		rec.AskAgain()
		d.mem.Ledger.PutRecord(b, loc, rec.Record)
		if b.Size() > 4<<20 {
			if err := b.Commit(ctx, true); err != nil {
				return false, err
			}
		}
	}
	return true, d.mem.Commit(ctx, b, func(m *keep.Meta) {
		m.Map = id
		m.OweSource("the map was changed")
	})
}
