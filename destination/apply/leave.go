package apply

import (
	"context"

	"github.com/rsbridge/rsbridge/destination/item"
	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/internal/kv"
)

// Leave makes a resource leave, with the former locations of its entity. it is the deleting change,
// nil if not at hand.
func (b *Batcher) Leave(ctx context.Context, loc ledger.Hash, it *item.Item, how ledger.Leaving) error {
	ap := b.ap
	how.Since = ap.Options.Now().UTC()
	if it != nil {
		how.Item = it.Encode()
	}
	locs := []ledger.Hash{loc}
	switch f, err := ap.Ledger.Fault(ctx, loc); {
	case err != nil:
		return err
	case f != nil:
		locs = append(locs, f.Replaces...)
	}
	for i, at := range locs {
		rec, err := ap.Ledger.Record(ctx, at)
		if err != nil {
			return err
		}
		mark := &Op{Loc: at, Item: it}
		switch {
		case i > 0 && rec == nil:
			continue
		case rec != nil && !rec.Has(ledger.FlagKept):
			l := how
			was, err := ap.Ledger.Leaving(ctx, at)
			if err != nil {
				return err
			}
			if was != nil {
				l.Since, l.Accepted = was.Since, was.Accepted
				if l.Item == nil && was.Becomes == nil {
					l.Item, l.Implied = was.Item, l.Implied && was.Implied
				}
				l.Empty, l.Unread = l.Empty && l.Implied, l.Unread && l.Implied // a change deleted it too
			}
			if !l.Unread {
				l.By = ""
			}
			mark.Settle, mark.leaves = true, &l
		}
		if err := b.Add(ctx, mark); err != nil {
			return err
		}
	}
	return nil
}

// mostEmptied bounds the kept bytes of a file until it may take the place of another.
const mostEmptied = 64 << 10

// empties makes a resource leave if the mirror would have nothing of it any more, and tells whether it
// does. Triples left out by new settings of the mirror do not count.
func (b *Batcher) empties(ctx context.Context, p *Op, empty bool) (bool, error) {
	ap := b.ap
	if p.Record == nil || !ap.content.void(p.Record, empty) || len(p.Replaces) > 0 || len(p.Raw) > mostEmptied {
		return false, nil
	}
	old, err := ap.Ledger.Record(ctx, p.Loc)
	switch {
	case err != nil:
		return false, err
	case old == nil || old.Has(ledger.FlagKept) || old.Unselected() > 0 || old.Graph.IsZero() && p.Record.Unselected()+p.Record.Unmapped() > 0:
		return false, nil
	case ap.content.void(old, false) || old.Normal == p.Record.Normal:
		return false, nil
	}
	l := &ledger.Leaving{Since: ap.Options.Now().UTC(), Item: p.Item.Encode(), Becomes: p.Record.Encode(), Body: p.Raw}
	was, err := ap.Ledger.Leaving(ctx, p.Loc)
	if err != nil {
		return false, err
	}
	if was != nil {
		l.Since, l.Accepted = was.Since, was.Accepted
	}
	return true, b.Add(ctx, &Op{Loc: p.Loc, Item: p.Item, Settle: true, leaves: l})
}

// Becoming is the next record of a leaving resource, nil if it goes.
func Becoming(l *ledger.Leaving) (*ledger.Record, error) {
	if l == nil || l.Becomes == nil {
		return nil, nil
	}
	return ledger.DecodeRecord(l.Becomes)
}

// begin notes and tells what is pending of a resource; false if the operation has nothing else.
func (ap *Applier) begin(ctx context.Context, b kv.Batch, o *Op) bool {
	ap.tell(ctx, o)
	if o.leaves != nil {
		ap.Ledger.PutLeaving(b, o.Loc, o.leaves)
	} else if !o.Settle {
		ap.Ledger.Stay(b, o.Loc)
	}
	if o.fault != nil {
		ap.Ledger.PutFault(b, o.Loc, o.fault)
		return false
	}
	ap.Ledger.DropFault(b, o.Loc)
	return !o.Settle
}

// touch keeps resources as they are before operations, while the mirror may have to go back.
func (ap *Applier) touch(ctx context.Context, b kv.Batch, locs ...ledger.Hash) error {
	m := ap.SnapshotMeta()
	span, ok := m.Back.Span()
	if !ok {
		return nil
	}
	return ap.Ledger.Touch(ctx, b, span, locs, func(rec *ledger.Record, f *ledger.Fault) *ledger.Touched {
		t := &ledger.Touched{}
		if rec != nil && !rec.Has(ledger.FlagKept) {
			t.State, t.Item = ap.StateOf(rec).String(), item.Of(rec).Encode()
		}
		if f != nil {
			t.Item, t.Pending = f.Item, true
		}
		return t
	})
}

// deletionOf is the deleting change of a leaving resource, nil if a list lacks it or it becomes empty.
func deletionOf(l *ledger.Leaving) (*item.Item, error) {
	if l.Becomes != nil {
		return nil, nil
	}
	return ChangeOf(l)
}

// ChangeOf is the source's last change of a leaving resource, nil if a list lacks it.
func ChangeOf(l *ledger.Leaving) (*item.Item, error) {
	if len(l.Item) == 0 {
		return nil, nil
	}
	return item.Decode(l.Item)
}
