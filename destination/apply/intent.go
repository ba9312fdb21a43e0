package apply

import (
	"context"
	"errors"
	"fmt"

	"github.com/rsbridge/rsbridge/destination/keep"
	"github.com/rsbridge/rsbridge/destination/ledger"
)

// intentOf is the memory of a batch until it is recorded.
func intentOf(kind ledger.IntentKind, ops []*Op) ledger.Intent {
	size := 0
	for _, o := range ops {
		size += o.size()
	}
	in := ledger.NewIntent(kind, size)
	for _, o := range ops {
		if o.fault != nil || o.Settle {
			continue
		}
		if o.packed == nil && o.Record != nil {
			o.packed = ledger.Pack(o.wire)
		}
		in = in.Add(ledger.Intended{Loc: o.Loc, Replaces: o.Replaces, Record: o.Record, Body: o.packed})
	}
	return in
}

// Redo finishes the batches of a crash or a failed write. A batch may stand in
// the mirror whole, in part or not at all; afterwards it does. Where there are two,
// they are of different resources, all new: their order does not matter.
func (ap *Applier) Redo(ctx context.Context) error {
	ap.unfinished.Store(false)
	for slot := range byte(ledger.Slots) {
		err := ap.redoBatch(ctx, slot)
		if errors.Is(err, ledger.ErrIntent) {
			err = ap.giveUp(ctx, slot, err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// giveUp leaves a batch to the comparison: the cursor is before it, and what stands of it
// in the mirror is told by that, where no record has it.
func (ap *Applier) giveUp(ctx context.Context, slot byte, why error) error {
	ap.Log.Error("a batch that was under way cannot be done again; the mirror is compared instead", "error", why)
	b := ap.Store.Batch()
	defer b.Close()
	return ap.Done(ctx, slot, b, func(m *keep.Meta) { m.OweMirror(ledger.ErrIntent.Error()) })
}

func (ap *Applier) redoBatch(ctx context.Context, slot byte) error {
	kind, all, err := ap.Ledger.Pending(ctx, slot)
	if err != nil || kind == 0 {
		return err
	}
	var ops []*Op
	for _, e := range all {
		o := &Op{Loc: e.Loc, Replaces: e.Replaces, Record: e.Record, packed: e.Body}
		if o.wire, err = ledger.Unpack(e.Body); err != nil {
			return fmt.Errorf("%w: %w", ledger.ErrIntent, err)
		}
		ops = append(ops, o)
	}
	if kind == ledger.OfFiles {
		return ap.redoFiles(ctx, slot, ops)
	}
	ap.Log.Info("redoing the batch that was under way", "resources", len(ops))
	if err := ap.BeforeRedo(ctx); err != nil {
		return err
	}
	var c Counts
	ap.SpaceLock.Lock()
	defer ap.SpaceLock.Unlock()
	// What the record says may be in the mirror or not: deletions of the old and
	// insertions of the new state are both repeated.
	return ap.content.apply(ctx, &inFlight{slot: slot}, ops, nil, &c, ap.Meta.Stage == ledger.Baseline, nil)
}
