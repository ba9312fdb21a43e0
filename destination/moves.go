package destination

import (
	"context"
	"errors"

	"github.com/rsbridge/rsbridge/destination/apply"
	"github.com/rsbridge/rsbridge/destination/feed"
	"github.com/rsbridge/rsbridge/destination/item"
	"github.com/rsbridge/rsbridge/destination/keep"
	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/destination/pairs"
	"github.com/rsbridge/rsbridge/internal/extsort"
)

// pairMoves takes out of a window of changes the deletions whose entity has
// another location in the same window, and gives what each of those replaces.
func (d *Destination) pairMoves(ctx context.Context, items []*item.Item) (map[ledger.Hash][]ledger.Hash, error) {
	homes := map[string]*item.Item{}
	deletions := 0
	for _, it := range items {
		switch {
		case it == nil || it.Bad != "":
		case it.Change == "deleted":
			deletions++
		case it.Entity != "":
			homes[it.Entity] = it
		}
	}
	if deletions == 0 || len(homes) == 0 {
		return nil, nil
	}
	left := map[ledger.Hash][]ledger.Hash{}
	for i, it := range items {
		if it == nil || it.Bad != "" || it.Change != "deleted" {
			continue
		}
		loc, entity := ledger.HashOf(it.Loc), it.Entity
		if rec, err := d.mem.Ledger.Record(ctx, loc); err != nil {
			return nil, err
		} else if rec != nil {
			entity = rec.Entity
		}
		if home := homes[entity]; home != nil && entity != "" {
			to := ledger.HashOf(home.Loc)
			left[to] = append(left[to], loc)
			d.fates.Superseded(it, home)
			items[i] = nil
		}
	}
	return left, nil
}

// moveUnlisted finds those of gone whose entity a dump has elsewhere, and gives
// the rest. What could not be stored at its new location keeps the old one until it can.
func (d *Destination) moveUnlisted(ctx context.Context, b *apply.Batcher, listed *extsort.Sorter, gone pairs.Departures) (rest pairs.Departures, err error) {
	if len(gone) == 0 {
		return gone, nil
	}
	gone.Sort()
	for rec, err := range listed.Sort() {
		if err != nil {
			return nil, err
		}
		if len(rec.Value) != 16 {
			continue
		}
		from := gone.Claim(ledger.Hash(rec.Value))
		if len(from) == 0 {
			continue
		}
		loc := ledger.Hash(rec.Key)
		f, err := d.mem.Ledger.Fault(ctx, loc)
		if err != nil {
			return nil, err
		}
		if f != nil {
			f.Replace(from)
			f.Next, f.Run = d.opt.Now().UTC(), "" // at the end of this run
			batch := d.mem.Store.Batch()
			d.mem.Ledger.PutFault(batch, loc, f)
			err := batch.Commit(ctx, true)
			batch.Close()
			if err != nil {
				return nil, err
			}
			continue
		}
		rec, err := d.mem.Ledger.Record(ctx, loc)
		if err == nil {
			err = b.Add(ctx, &apply.Op{Loc: loc, Record: rec, Replaces: from})
		}
		if err != nil {
			return nil, err
		}
	}
	return gone.Rest(), nil
}

// recheckHeld compares again where deletions are held for what a list lacks, and the list
// has changed since.
func (r *run) recheckHeld(ctx context.Context, o *feed.Offer, m *keep.Meta) error {
	if m.HeldDeletions == nil || !m.HeldDeletions.Implied || r.dry || r.full || !o.Followed() || r.rep.Mode == "baseline" {
		return nil
	}
	when := feed.UnlessTaken
	if r.accept != "" { // what goes must still be said
		when = feed.Always
	}
	_, err := r.compareAgain(ctx, o, when, "deletions were held; the source's list was compared again")
	return err
}

// compareAgain compares with the list or dump of the source, and goes on from there, if it
// is one that when lets read and not older than the mirror.
func (r *run) compareAgain(ctx context.Context, o *feed.Offer, when feed.When, why string) (compared bool, err error) {
	d := r.d
	var end func(*keep.Meta)
	switch {
	case o.ResourceList != "":
		end, err = r.compareNewer(ctx, o, when)
	case o.ResourceDump != "":
		end, err = r.dumpNewer(ctx, o, when)
	default:
		return false, nil
	}
	if errors.Is(err, feed.ErrUnchanged) || errors.Is(err, feed.ErrStale) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	r.mode("baseline")
	r.why("%s", why)
	return true, d.stand.Checkpoint(ctx, ledger.Following, end)
}
