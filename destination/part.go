package destination

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/rsbridge/rsbridge/destination/feed"
	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/rdfres"
)

// A part of a source is mirrored with Config.Select: the entities with one of the prefixes or of
// the classes. Outside resources are recorded without triples: they are compared with lists, and
// not fetched again without a change. With prefixes alone, and the entity named by the source,
// they are not fetched at all.

// whole tells whether no part of the source is configured.
func (d *Destination) whole() bool {
	return len(d.cfg.Select.Prefixes)+len(d.cfg.Select.Classes) == 0
}

func (d *Destination) hasPrefix(iri string) bool {
	return slices.ContainsFunc(d.cfg.Select.Prefixes, func(p string) bool { return strings.HasPrefix(iri, p) })
}

// selected tells whether a description is in the part.
func (d *Destination) selected(entity string, ts []rdfres.Triple) bool {
	if d.whole() || d.hasPrefix(entity) {
		return true
	}
	return slices.ContainsFunc(ts, func(t rdfres.Triple) bool {
		return t.P == rdfType && t.S.IRI() == entity && slices.Contains(d.cfg.Select.Classes, t.O.IRI())
	})
}

const rdfType rdfres.Term = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"

// selectedOther tells whether a non-RDF resource is in the part: by prefix of the entity or of the
// address, since it has no class.
func (d *Destination) selectedOther(rec *ledger.Record) bool {
	return d.whole() || d.hasPrefix(rec.Entity) || d.hasPrefix(rec.Loc)
}

// inPart leaves non-RDF resources outside of the part out.
func (d *Destination) inPart(o *outcome) bool {
	if d.selectedOther(o.rec) {
		return true
	}
	o.rec.Flags = o.rec.Flags&^ledger.FlagNotRDF | ledger.FlagUnselected
	o.notRDF = false
	return false
}

// outside tells whether a resource is known to be outside of the part without fetching it.
func (d *Destination) outside(it *feed.Item) bool {
	return len(d.cfg.Select.Classes) == 0 && !d.whole() && it.Bad == "" && it.Entity != "" && !d.hasPrefix(it.Entity) && !d.hasPrefix(it.Loc)
}

// expected is the record of a resource before it is fetched: by classes it may still be outside.
func (d *Destination) expected(it *feed.Item) *ledger.Record {
	if d.outside(it) {
		return &ledger.Record{Flags: ledger.FlagUnselected}
	}
	return &ledger.Record{}
}

// left is the outcome of an outside resource. Its promises stand for it.
func (d *Destination) left(it *feed.Item) *outcome {
	rec := it.Record()
	rec.Flags |= ledger.FlagUnselected
	if rec.Graph = it.Promise.Graph; !rec.Graph.IsZero() {
		rec.Flags |= ledger.FlagWireNames
	}
	return &outcome{it: it, rec: rec}
}

// partID names the settings of the part, and of kept resources beyond it.
func (d *Destination) partID() string {
	if d.whole() && d.cfg.Keep != "deleted" {
		return "whole"
	}
	raw, err := json.Marshal([]any{d.cfg.Select.Classes, d.cfg.Select.Prefixes, d.cfg.Keep == "deleted"})
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
		return was != d.selectedOther(rec)
	case d.whole() || d.hasPrefix(rec.Entity):
		return !was
	case !was && d.hasPrefix(rec.Loc): // it may be no RDF
		return true
	case len(d.cfg.Select.Classes) == 0:
		return was
	case !was || rec.Has(ledger.FlagMapped): // there is no description
		return true
	}
	ts, err := d.led.Proven(ctx, loc, rec)
	return err != nil || !d.selected(rec.Entity, ts)
}

// reselect has resources compared and fetched again after a change of the part's configuration.
func (r *run) reselect(ctx context.Context) (bool, error) {
	d := r.d
	id := d.partID()
	m := d.snapshotMeta()
	if m.Stage == ledger.None {
		return false, d.saveMeta(ctx, func(m *meta) { m.Part = id })
	}
	if m.Part == id {
		return false, nil
	}
	snap := d.store.Snapshot(ctx)
	defer snap.Close()
	b := d.store.Batch()
	defer b.Close()
	var some, back, others, unselected, unmapped int64
	for loc, rec := range d.led.Records(ctx, snap) {
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
		d.led.PutRecord(b, loc, rec.Record)
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
	return some > 0, d.commit(ctx, b, func(m *meta) {
		if m.Part = id; some > 0 {
			m.OweSource("select or keep was changed")
		}
		m.Resources += back
		m.NotRDF += others
		m.Unselected += unselected
		m.Unmapped += unmapped
	})
}
