package apply

import (
	"context"
	"fmt"

	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/internal/clip"
	"github.com/rsbridge/rsbridge/internal/kv"
)

// keepVersion puts the old state of a replaced or deleted resource, at its present or former
// location, among the versions.
func (ap *Applier) keepVersion(ctx context.Context, b kv.Batch, number uint64, loc ledger.Hash, o *Op, old *ledger.Record) error {
	until := ap.Options.Now().UTC()
	switch {
	case o.Record != nil && !o.Record.Time.IsZero():
		until = o.Record.Time
	case o.Record == nil && o.Item != nil && !o.Item.Time.IsZero():
		until = o.Item.Time
	case o.Record != nil && o.Record.LastMod.After(old.Since()) && o.Record.LastMod.Before(until): // of a list
		until = o.Record.LastMod
	}
	if err := ap.Ledger.KeepVersion(ctx, b, number, loc, old, until, o.Record == nil); err != nil {
		return fmt.Errorf("keep the version of %s: %w", clip.Middle(old.Loc), err)
	}
	return nil
}

// leftBefore is the unapplied deletion of a resource back again, nil for none: a version ends
// with it.
func (ap *Applier) leftBefore(ctx context.Context, ch *delta) (*Op, error) {
	if ap.Config.Keep != "versions" || ch.old == nil || ch.op.Record == nil {
		return nil, nil
	}
	l, err := ap.Ledger.Leaving(ctx, ch.op.Loc)
	if err != nil || l == nil {
		return nil, err
	}
	it, err := deletionOf(l)
	if err != nil || it == nil {
		return nil, err
	}
	return &Op{Loc: ch.op.Loc, Item: it}, nil
}

// keepLeft keeps the version of a resource back without a change.
func (ap *Applier) keepLeft(ctx context.Context, b kv.Batch, past *uint64, ch *delta) error {
	left, err := ap.leftBefore(ctx, ch)
	if err != nil || left == nil {
		return err
	}
	*past++
	return ap.keepVersion(ctx, b, ap.Meta.Versions+*past, ch.op.Loc, left, ch.old)
}
