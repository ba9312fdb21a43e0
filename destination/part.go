package destination

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"github.com/rsbridge/rsbridge/destination/item"
	"github.com/rsbridge/rsbridge/destination/keep"
	"github.com/rsbridge/rsbridge/destination/ledger"
)

// expected is the record of a resource before it is fetched: by classes it may still be outside.
func (d *Destination) expected(it *item.Item) *ledger.Record {
	if d.obtains.Select.Outside(it) {
		return &ledger.Record{Flags: ledger.FlagUnselected}
	}
	return &ledger.Record{}
}

// partID names the settings of the part, and of kept resources beyond it.
func (d *Destination) partID() string {
	if d.obtains.Select.Whole() && d.cfg.Keep != "deleted" {
		return "whole"
	}
	raw, err := json.Marshal([]any{d.obtains.Select.Classes, d.obtains.Select.Prefixes, d.cfg.Keep == "deleted"})
	if err != nil {
		panic("destination: part cannot be named: " + err.Error()) // strings only
	}
	return fmt.Sprintf("%x", sha256.Sum256(raw))
}

// outdated tells whether a record may differ under the present configuration: it is newly in the
// part or outside of it, or only its description tells; or it was kept, and nothing is any more.
func (d *Destination) outdated(ctx context.Context, loc ledger.Hash, rec *ledger.Record) bool {
	if rec.Has(ledger.FlagKept) {
		return d.cfg.Keep != "deleted"
	}
	was := !rec.Has(ledger.FlagUnselected)
	switch {
	case rec.Has(ledger.FlagNotRDF):
		return was != d.obtains.Select.SelectedOther(rec)
	case d.obtains.Select.Whole() || d.obtains.Select.HasPrefix(rec.Entity):
		return !was
	case !was && d.obtains.Select.HasPrefix(rec.Loc): // it may be no RDF
		return true
	case len(d.obtains.Select.Classes) == 0:
		return was
	case !was || rec.Has(ledger.FlagMapped): // there is no description
		return true
	}
	ts, err := d.mem.Ledger.Proven(ctx, loc, rec)
	return err != nil || !d.obtains.Select.Selected(rec.Entity, ts)
}

// reselect has resources compared and fetched again after a change of the part's configuration.
func (r *run) reselect(ctx context.Context) (bool, error) {
	d := r.d
	id := d.partID()
	m := d.mem.SnapshotMeta()
	if m.Stage == ledger.None {
		return false, d.mem.SaveMeta(ctx, func(m *keep.Meta) { m.Part = id })
	}
	if m.Part == id {
		return false, nil
	}
	snap := d.mem.Store.Snapshot(ctx)
	defer snap.Close()
	b := d.mem.Store.Batch()
	defer b.Close()
	var some, back, others, unselected, unmapped int64
	for loc, rec := range d.mem.Ledger.Records(ctx, snap) {
		if rec.Err != nil {
			return false, rec.Err
		}
		if !d.outdated(ctx, loc, rec.Record) {
			continue
		}
		some++
		if rec.Has(ledger.FlagKept) {
			rec.Flags &^= ledger.FlagKept
			back++
			unselected += rec.Unselected()
			unmapped += rec.Unmapped()
			if rec.Has(ledger.FlagNotRDF) {
				others++
			}
		} else {
			rec.AskAgain()
		}
		d.mem.Ledger.PutRecord(b, loc, rec.Record)
		if b.Size() > 4<<20 {
			if err := b.Commit(ctx, true); err != nil {
				return false, err
			}
		}
	}
	if some > 0 {
		r.why("select or keep was changed: %d resources are compared again", some)
		r.reselected = true
	}
	return some > 0, d.mem.Commit(ctx, b, func(m *keep.Meta) {
		if m.Part = id; some > 0 {
			m.OweSource("select or keep was changed")
		}
		m.Resources += back
		m.NotRDF += others
		m.Unselected += unselected
		m.Unmapped += unmapped
	})
}
