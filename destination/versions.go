package destination

import (
	"context"
	"fmt"
	"iter"

	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/internal/clip"
	"github.com/rsbridge/rsbridge/internal/kv"
)

// keepVersion puts the old state of a replaced or deleted resource, at its present or former
// location, among the versions.
func (ap *applier) keepVersion(ctx context.Context, b kv.Batch, number uint64, loc ledger.Hash, o *op, old *ledger.Record) error {
	until := ap.opt.Now().UTC()
	switch {
	case o.rec != nil && !o.rec.Changed.IsZero():
		until = o.rec.Changed
	case o.rec == nil && o.it != nil && !o.it.Time.IsZero():
		until = o.it.Time
	case o.rec != nil && o.rec.LastMod.After(old.Since()) && o.rec.LastMod.Before(until): // of a list
		until = o.rec.LastMod
	}
	if err := ap.Ledger.KeepVersion(ctx, b, number, loc, old, until, o.rec == nil); err != nil {
		return fmt.Errorf("keep the version of %s: %w", clip.Middle(old.Loc), err)
	}
	return nil
}

// leftBefore is the unapplied deletion of a resource back again, nil for none: a version ends
// with it.
func (ap *applier) leftBefore(ctx context.Context, ch *delta) (*op, error) {
	if ap.cfg.Keep != "versions" || ch.old == nil || ch.op.rec == nil {
		return nil, nil
	}
	l, err := ap.Ledger.Leaving(ctx, ch.op.loc)
	if err != nil || l == nil {
		return nil, err
	}
	it, err := deletionOf(l)
	if err != nil || it == nil {
		return nil, err
	}
	return &op{loc: ch.op.loc, it: it}, nil
}

// keepLeft keeps the version of a resource back without a change.
func (ap *applier) keepLeft(ctx context.Context, b kv.Batch, past *uint64, ch *delta) error {
	left, err := ap.leftBefore(ctx, ch)
	if err != nil || left == nil {
		return err
	}
	*past++
	return ap.keepVersion(ctx, b, ap.Meta.Versions+*past, ch.op.loc, left, ch.old)
}

// Versions yields the seen former versions of an entity, the oldest first. keep: versions keeps
// each version in a Change List. A source with mementos gives the bytes of all, another source
// only those current at some poll. The sequence ends after the first error.
func (d *Destination) Versions(ctx context.Context, entity string) iter.Seq2[ledger.Version, error] {
	return d.mem.Ledger.Versions(ctx, entity)
}
