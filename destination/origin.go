package destination

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/destination/sink"
	"github.com/rsbridge/rsbridge/internal/clip"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/rdfres"
)

// Origin is the address of the representation that an entity of the mirror came
// from: at the source, or, where the source tells that it has it from elsewhere
// (via), there; "" when the mirror has no such entity. It is found by the
// triples about the entity, so an entity without any has none.
func (d *Destination) Origin(ctx context.Context, entity string) (string, error) {
	_, rec, err := d.recordOf(ctx, entity)
	if err != nil {
		return "", fmt.Errorf("origin of %s: %w", clip.Middle(entity), err)
	}
	if rec == nil || rec.Has(ledger.FlagKept) {
		return "", nil
	}
	return rec.Origin(), nil
}

// recordOf finds the record of an entity, nil when there is none.
func (d *Destination) recordOf(ctx context.Context, entity string) (ledger.Hash, *ledger.Record, error) {
	graph := ""
	if d.mirror.Layout.PerEntity {
		g, err := d.mirror.Layout.GraphOf(entity)
		if err != nil {
			return ledger.Hash{}, nil, nil // it can have no graph, so it is not here
		}
		graph = g
	}
	for _, subject := range d.namedBy(entity) {
		prefix := ledger.Key(ledger.KindOwned, d.mem.Space, sink.SubjectHash(graph, subject))
		for pair, err := range d.mem.Store.Scan(ctx, prefix, kv.PrefixEnd(prefix)) {
			if err != nil {
				return ledger.Hash{}, nil, err
			}
			_, o, ok := ledger.SplitOwned(pair.Key)
			if !ok || o.Dest != d.mem.Dest {
				continue
			}
			rec, err := d.mem.Ledger.Record(ctx, o.Loc)
			if err != nil {
				return ledger.Hash{}, nil, err
			}
			if rec != nil && rec.Entity == entity {
				return o.Loc, rec, nil
			}
		}
	}
	return ledger.Hash{}, nil, nil
}

// namedBy are the subjects that the description of an entity may have: the entity; of
// a component its blank nodes, the first ones, as not each of them need be a subject.
func (d *Destination) namedBy(entity string) (subjects []rdfres.Term) {
	digest, ordinal, ok := rdfres.CutOrphan(entity)
	if !ok {
		return []rdfres.Term{rdfres.NewIRI(entity)}
	}
	for position := range 20 {
		names := rdfres.ComponentNames{Digest: digest, Position: map[rdfres.Term]int{"": position}}
		subjects = append(subjects, rdfres.Skolemize(names.Name("", ordinal), d.mirror.Layout.Authority))
	}
	return subjects
}

// Describe gives the description of an entity that the mirror has, as it was at a
// time or, when that is zero, as it is: false when there is none. What was before
// is known where versions are kept (keep: versions), as far back as the mirror has
// seen it.
func (d *Destination) Describe(ctx context.Context, entity string, at time.Time) (v ledger.Version, ok bool, err error) {
	if !at.IsZero() {
		for past, err := range d.Versions(ctx, entity) {
			if err != nil {
				return v, false, fmt.Errorf("versions of %s: %w", clip.Middle(entity), err)
			}
			if at.Before(past.Until) {
				return past, !at.Before(past.From), nil
			}
		}
	}
	loc, rec, err := d.recordOf(ctx, entity)
	if err == nil && rec != nil && (at.IsZero() || !at.Before(rec.Since())) {
		v = ledger.Version{Entity: rec.Entity, Location: rec.Loc, From: rec.Since(), Graph: rec.Graph}
		v.Triples, err = d.mem.Ledger.Proven(ctx, loc, rec)
		ok = true
	}
	if err != nil {
		return v, false, fmt.Errorf("description of %s: %w", clip.Middle(entity), err)
	}
	return v, ok, nil
}

// Versions yields the seen former versions of an entity, the oldest first. keep: versions keeps
// each version in a Change List. A source with mementos gives the bytes of all, another source
// only those current at some poll. The sequence ends after the first error.
func (d *Destination) Versions(ctx context.Context, entity string) iter.Seq2[ledger.Version, error] {
	return d.mem.Ledger.Versions(ctx, entity)
}
