package destination

import (
	"context"
	"errors"
	"fmt"

	"github.com/rsbridge/rsbridge/destination/feed"
	"github.com/rsbridge/rsbridge/destination/item"
	"github.com/rsbridge/rsbridge/destination/keep"
	"github.com/rsbridge/rsbridge/destination/ledger"
)

// Everything that a source has costs least from its Resource Dump. Where only some
// of it is wanted, the Resource List may cost less, with what is wanted one by one:
// a part of the source by prefixes, which the list tells before anything is fetched,
// or the rest of a baseline that was interrupted. Costs are bytes, and a request is
// worth some of them (requestCost).

// unknownPackages are the resources that are fetched one by one rather than from a
// dump that does not tell how long it is.
const unknownPackages = feed.PackageFew

// cheapest tells whether a baseline is taken from the Resource Dump. If it is not,
// v is what the source says now where that had to be read to know; the caller closes
// it.
func (r *run) cheapest(ctx context.Context, o *feed.Offer, m *keep.Meta) (v *feed.Inventory, dump bool, err error) {
	d := r.d
	part := len(d.cfg.Select.Prefixes) > 0 && len(d.cfg.Select.Classes) == 0 // of classes the list tells nothing
	rest := m.Stage == ledger.Baseline && m.Resources > 0
	switch {
	case o.ResourceDump == "" || o.ResourceList == "":
		return nil, o.ResourceDump != "", nil
	case m.Resources > 0 && (!rest || m.ByList):
		return nil, false, nil
	case !part && !rest:
		return nil, true, nil
	}
	ofDump, told, err := d.src.DumpCost(ctx, o)
	if err != nil {
		return nil, m.Resources == 0, ctx.Err() // told when it is read again
	}
	read := func() int64 { return d.fetch.Received() + feed.RequestCost*d.fetch.Sent() }
	start := read()
	wanted, cost := 0, int64(0)
	v, err = d.src.ReadInventoryOf(ctx, o, feed.Always, func(it *item.Item) error {
		if !d.needed(it) {
			return nil
		}
		if rest {
			rec, err := d.mem.Ledger.Record(ctx, ledger.HashOf(it.Loc))
			if err != nil {
				return err
			}
			if rec != nil && !rec.Has(ledger.FlagKept) {
				if v, _ := it.Differs(rec); v.Same(o.Followed()) {
					return nil
				}
			}
		}
		wanted++
		cost += feed.RequestCost + max(0, it.Promise.Length)
		if told && read()-start+cost > ofDump || !told && wanted > unknownPackages {
			return errCostsMore
		}
		return nil
	})
	if err != nil {
		if !errors.Is(err, errCostsMore) {
			d.mem.Log.Warn("what of the source is wanted cannot be told before its dump is read", "error", err)
			return nil, m.Resources == 0, ctx.Err()
		}
		r.why("what is wanted costs more one by one than the Resource Dump")
		return nil, true, nil
	}
	than := "less than the Resource Dump"
	if told {
		than += fmt.Sprintf(" of %d bytes", ofDump)
	}
	r.why("%d resources are wanted, which cost %s one by one", wanted, than)
	return v, false, nil
}

// errCostsMore ends the reading of a list.
var errCostsMore = errors.New("costs more than the dump")
