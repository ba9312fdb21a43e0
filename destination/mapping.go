package destination

import (
	"context"
	"crypto/sha256"
	"fmt"

	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/destination/sink"
	"github.com/rsbridge/rsbridge/internal/clip"
	"github.com/rsbridge/rsbridge/rdfres"
)

// With map each description is verified as ever, goes through a CONSTRUCT, and
// what that makes is stored. The record keeps the digest of the source's graph, by
// which lists and inventories are compared, and that of what was made of it, by
// which the kept representation is proven. Blank nodes of the result are named by
// what they are and where they come from, so that they stay while it stays.

// mapped puts a representation through the map.
func (d *Destination) mapped(ctx context.Context, o *outcome) error {
	if d.mapping == nil || o.rec.Triples == 0 || o.rec.Has(ledger.FlagUnselected) {
		return nil
	}
	ts, err := o.triples()
	if err != nil {
		return err
	}
	made, noValue, err := d.mapping.Apply(ctx, o.rec.Entity, ts)
	if err == nil {
		made, _, err = rdfres.NameBlanks(made, rdfres.NameOptions{Scope: o.it.Loc, WorkLimit: d.lim.blankWork})
	}
	if err == nil {
		err = sink.CheckTriples(made)
	}
	if err != nil {
		return fmt.Errorf("%s %w: map: %w", clip.Middle(o.it.Loc), errContent, err)
	}
	if int64(len(made)) > d.lim.triples {
		return fmt.Errorf("%s %w: map makes %d triples, at most %d are taken (%s)", clip.Middle(o.it.Loc), errContent, len(made), d.lim.triples, d.cfg.Settings.Of("max_resource_triples"))
	}
	o.wire, o.ts, o.noValue = appendLines(nil, made), made, noValue
	o.rec.Triples = int64(len(made))
	o.rec.Flags |= ledger.FlagMapped
	o.rec.Made = rdfres.GraphDigest(made)
	return nil
}

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
	m := d.snapshotMeta()
	if m.Map == id || m.Stage == ledger.None {
		if m.Map != id {
			return false, d.saveMeta(ctx, func(m *meta) { m.Map = id })
		}
		return false, nil
	}
	r.why("the map was changed: everything is fetched and mapped again")
	if r.dry {
		return true, nil
	}
	snap := d.store.Snapshot(ctx)
	defer snap.Close()
	b := d.store.Batch()
	defer b.Close()
	for loc, rec := range d.led.Records(ctx, snap) {
		if rec.Err != nil {
			return false, rec.Err
		}
		rec.AskAgain()
		d.led.PutRecord(b, loc, rec.Record)
		if b.Size() > 4<<20 {
			if err := b.Commit(ctx, true); err != nil {
				return false, err
			}
		}
	}
	return true, d.commit(ctx, b, func(m *meta) {
		m.Map = id
		m.OweSource("the map was changed")
	})
}
