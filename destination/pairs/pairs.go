// Package pairs puts a source's resources beside what is recorded of them, one by one.
package pairs

import (
	"bytes"
	"context"
	"iter"
	"time"

	"github.com/rsbridge/rsbridge/destination/feed"
	"github.com/rsbridge/rsbridge/destination/item"
	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/internal/kv"
)

// Of pairs the source's resources with the records, by location.
func Of(ctx context.Context, led *ledger.Ledger, v *feed.Inventory, snap kv.Reader) iter.Seq2[Pair, error] {
	return func(yield func(Pair, error) bool) {
		nextItem, stopItems := iter.Pull2(v.Items())
		defer stopItems()
		nextRec, stopRecs := iter.Pull2(led.Records(ctx, snap))
		defer stopRecs()
		il, it, iok := nextItem()
		rl, rec, rok := nextRec()
		for iok || rok {
			if iok && it.Err != nil {
				yield(Pair{}, it.Err)
				return
			}
			if rok && rec.Err != nil {
				yield(Pair{}, rec.Err)
				return
			}
			p := Pair{}
			switch {
			case iok && (!rok || string(il[:]) < string(rl[:])):
				p.Loc, p.Item = il, it.Item
				il, it, iok = nextItem()
			case rok && (!iok || string(rl[:]) < string(il[:])):
				p.Loc, p.Record = rl, rec.Record
				rl, rec, rok = nextRec()
			default:
				p.Loc, p.Item, p.Record = il, it.Item, rec.Record
				il, it, iok = nextItem()
				rl, rec, rok = nextRec()
			}
			if !yield(p, nil) {
				return
			}
		}
	}
}

// WithFaults adds the faults to pairs, also those of locations without a pair.
func WithFaults(ctx context.Context, led *ledger.Ledger, pairs iter.Seq2[Pair, error]) iter.Seq2[Pair, error] {
	return func(yield func(Pair, error) bool) {
		next, stop := iter.Pull2(led.Faults(ctx))
		defer stop()
		loc, f, ok := next()
		before := func(other *ledger.Hash) bool { // yields the faults before another location; nil: all others
			for ok && f.Err == nil && (other == nil || bytes.Compare(loc[:], other[:]) < 0) {
				if !yield(Pair{Loc: loc, Fault: f.Fault}, nil) {
					return false
				}
				loc, f, ok = next()
			}
			if f.Err != nil {
				yield(Pair{}, f.Err)
			}
			return f.Err == nil
		}
		for p, err := range pairs {
			if err != nil {
				yield(Pair{}, err)
				return
			}
			if !before(&p.Loc) {
				return
			}
			if ok && loc == p.Loc {
				p.Fault = f.Fault
				loc, f, ok = next()
			}
			if !yield(p, nil) {
				return
			}
		}
		before(nil)
	}
}

// FailingChanges are the pairs whose fault is of a change since a time, and is not their item's. An older
// one counts if the changes name its resource: their last word on it is known.
func FailingChanges(all iter.Seq2[Pair, error], since time.Time) iter.Seq2[Pair, error] {
	return func(yield func(Pair, error) bool) {
		for p, err := range all {
			if err == nil && (p.Fault == nil || p.FailsOfList() || since.IsZero() || p.Item == nil && p.Fault.Time.Before(since)) {
				continue
			}
			if err == nil && p.Item != nil && p.Item.Time.Equal(p.Fault.Time) {
				continue
			}
			if !yield(p, err) {
				return
			}
		}
	}
}

// Pair is one location as the source and the records have it.
type Pair struct {
	Loc    ledger.Hash
	Item   *item.Item     // nil: not in the source; Change "deleted": told to be gone
	Record *ledger.Record // nil: not recorded

	Fault *ledger.Fault // nil: none, or not asked for
}

// There tells whether the source has the resource now.
func (p *Pair) There() bool { return p.Item != nil && p.Item.Change != "deleted" }

// Here tells whether we have it as current.
func (p *Pair) Here() bool { return p.Record != nil && !p.Record.Has(ledger.FlagKept) }

// Applied tells whether the record is of this very change, or the change is tried again by itself.
func (p *Pair) Applied() bool {
	if p.Item.Time.IsZero() || p.Item.Change == "" {
		return false
	}
	if p.Fault != nil {
		it, err := item.Decode(p.Fault.Item)
		return err == nil && it.Change == p.Item.Change && it.Time.Equal(p.Item.Time)
	}
	if !p.Here() || !p.Record.Time.Equal(p.Item.Time) {
		return false
	}
	v, _ := p.Item.Differs(p.Record)
	return v != item.Different
}

// Disagrees tells whether the two differ.
func (p *Pair) Disagrees() bool {
	if p.There() && p.Here() {
		v, _ := p.Item.Differs(p.Record)
		return v == item.Different
	}
	return p.There() != p.Here()
}

// SeeFaults notes in an inventory all entries leading to lists, or perhaps to lists.
func SeeFaults(ctx context.Context, led *ledger.Ledger, v *feed.Inventory, now time.Time) error {
	for _, f := range led.Faults(ctx) {
		if f.Err != nil {
			return f.Err
		}
		v.Unread.Fails(f.Fault, now)
	}
	return nil
}

// SeeFault does so for one entry of the inventory.
func (p *Pair) SeeFault(v *feed.Inventory, now time.Time) {
	if p.There() && p.Fault != nil {
		v.Unread.Fails(p.Fault, now)
	}
}

// FailsOfList tells of a resource that fails that a list named it, and no change.
func (p *Pair) FailsOfList() bool {
	if p.Fault == nil {
		return false
	}
	it, err := item.Decode(p.Fault.Item)
	return err == nil && it.Change == ""
}

// PromisedOtherwise tells of a resource that fails: by a later list, the change it waits for is none
// any more.
func (p *Pair) PromisedOtherwise(v *feed.Inventory) bool {
	if p.Fault == nil || !p.There() || !v.At.After(p.Fault.Time) {
		return false
	}
	it, err := item.Decode(p.Fault.Item)
	return err == nil && !it.SamePromise(p.Item)
}

// File tells a file behind descriptions.
func (p *Pair) File() bool {
	return p.Item != nil && p.Item.File || p.Record != nil && p.Record.Has(ledger.FlagFile)
}
