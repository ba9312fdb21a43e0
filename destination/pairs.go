package destination

import (
	"bytes"
	"context"
	"iter"

	"github.com/rsbridge/rsbridge/destination/feed"
	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/internal/kv"
)

// merged pairs the source's resources with the records, by location.
func (d *Destination) merged(ctx context.Context, v *feed.Inventory, snap kv.Reader) iter.Seq2[pairing, error] {
	return func(yield func(pairing, error) bool) {
		nextItem, stopItems := iter.Pull2(v.Items())
		defer stopItems()
		nextRec, stopRecs := iter.Pull2(d.led.Records(ctx, snap))
		defer stopRecs()
		il, it, iok := nextItem()
		rl, rec, rok := nextRec()
		for iok || rok {
			if iok && it.Err != nil {
				yield(pairing{}, it.Err)
				return
			}
			if rok && rec.Err != nil {
				yield(pairing{}, rec.Err)
				return
			}
			p := pairing{}
			switch {
			case iok && (!rok || string(il[:]) < string(rl[:])):
				p.loc, p.it = il, it.Item
				il, it, iok = nextItem()
			case rok && (!iok || string(rl[:]) < string(il[:])):
				p.loc, p.rec = rl, rec.Record
				rl, rec, rok = nextRec()
			default:
				p.loc, p.it, p.rec = il, it.Item, rec.Record
				il, it, iok = nextItem()
				rl, rec, rok = nextRec()
			}
			if !yield(p, nil) {
				return
			}
		}
	}
}

// withFaults adds the faults to pairs, also those of locations without a pair.
func (d *Destination) withFaults(ctx context.Context, pairs iter.Seq2[pairing, error]) iter.Seq2[pairing, error] {
	return func(yield func(pairing, error) bool) {
		next, stop := iter.Pull2(d.led.Faults(ctx))
		defer stop()
		loc, f, ok := next()
		before := func(other *ledger.Hash) bool { // yields the faults before another location; nil: all others
			for ok && f.Err == nil && (other == nil || bytes.Compare(loc[:], other[:]) < 0) {
				if !yield(pairing{loc: loc, fault: f.Fault}, nil) {
					return false
				}
				loc, f, ok = next()
			}
			if f.Err != nil {
				yield(pairing{}, f.Err)
			}
			return f.Err == nil
		}
		for p, err := range pairs {
			if err != nil {
				yield(pairing{}, err)
				return
			}
			if !before(&p.loc) {
				return
			}
			if ok && loc == p.loc {
				p.fault = f.Fault
				loc, f, ok = next()
			}
			if !yield(p, nil) {
				return
			}
		}
		before(nil)
	}
}

// pairing is one location as the source (it) and the records (rec) have it.
type pairing struct {
	loc ledger.Hash
	it  *feed.Item     // nil: not in the source; Change "deleted": told to be gone
	rec *ledger.Record // nil: not recorded

	fault *ledger.Fault // nil: none, or not asked for
}

// there tells whether the source has the resource now.
func (p *pairing) there() bool { return p.it != nil && p.it.Change != "deleted" }

// here tells whether we have it as current.
func (p *pairing) here() bool { return p.rec != nil && !p.rec.Has(ledger.FlagKept) }

// disagrees tells whether the two differ.
func (p *pairing) disagrees() bool {
	if p.there() && p.here() {
		v, _ := p.it.Differs(p.rec)
		return v == feed.Different
	}
	return p.there() != p.here()
}

// file tells a file behind descriptions.
func (p *pairing) file() bool {
	return p.it != nil && p.it.File || p.rec != nil && p.rec.Has(ledger.FlagFile)
}
