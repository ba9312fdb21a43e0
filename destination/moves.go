package destination

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/rsbridge/rsbridge/destination/feed"
	"github.com/rsbridge/rsbridge/destination/keep"
	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/destination/pairs"
	"github.com/rsbridge/rsbridge/internal/extsort"
	"github.com/rsbridge/rsbridge/internal/kv"
)

// An entity whose representation got another address (another base_url or
// prefix, another format) is one resource that moved. The record of the location
// that it left, and what that owns, goes in the same batch that stores the new
// one, so that neither is lost when the other fails; it is no deletion, and
// nothing is held because of it. Only what the source says itself counts: a
// describes link or rsb:entity at the new location.

// departure is a location that the source does not have any more.
type departure struct {
	entity ledger.Hash
	loc    ledger.Hash
	moved  bool
}

// move is an entity that has left a location for another.
type move struct{ to, from ledger.Hash }

// moves are sorted by the new location; the old ones by themselves.
type moves struct {
	pairs []move
	from  []ledger.Hash
}

// left tells whether a location was left for another.
func (m *moves) left(loc ledger.Hash) bool {
	_, ok := slices.BinarySearchFunc(m.from, loc, ledger.Hash.Compare)
	return ok
}

// to gives the locations that were left for this one.
func (m *moves) to(loc ledger.Hash) []ledger.Hash {
	i, ok := slices.BinarySearchFunc(m.pairs, loc, func(p move, l ledger.Hash) int { return p.to.Compare(l) })
	if !ok {
		return nil
	}
	var out []ledger.Hash
	for ; i < len(m.pairs) && m.pairs[i].to == loc; i++ {
		out = append(out, m.pairs[i].from)
	}
	return out
}

// entityHash is zero for no entity, which never moves.
func entityHash(entity string) ledger.Hash {
	if entity == "" {
		return ledger.Hash{}
	}
	return ledger.HashOf(entity)
}

// claim finds departures of an entity that are not taken yet.
func claim(gone []departure, entity ledger.Hash) []ledger.Hash {
	if entity == (ledger.Hash{}) {
		return nil
	}
	i, ok := slices.BinarySearchFunc(gone, entity, func(g departure, e ledger.Hash) int { return ledger.Hash.Compare(g.entity, e) })
	if !ok {
		return nil
	}
	var out []ledger.Hash
	for ; i < len(gone) && gone[i].entity == entity; i++ {
		if !gone[i].moved {
			gone[i].moved = true
			out = append(out, gone[i].loc)
		}
	}
	return out
}

func sortDepartures(gone []departure) {
	slices.SortFunc(gone, func(a, b departure) int {
		return cmp.Or(ledger.Hash.Compare(a.entity, b.entity), ledger.Hash.Compare(a.loc, b.loc))
	})
}

// findMoves compares what is gone with what is listed, by entity. It costs
// nothing but a pass over the list while nothing is gone.
func (d *Destination) findMoves(ctx context.Context, v *feed.Inventory, snap kv.Reader) (*moves, error) {
	m := &moves{}
	var gone []departure
	for p, err := range pairs.Of(ctx, d.mem.Ledger, v, snap) {
		if err != nil {
			return nil, err
		}
		if p.Record != nil && !p.There() && p.Record.Entity != "" && !p.Record.Has(ledger.FlagKept) {
			gone = append(gone, departure{entity: ledger.HashOf(p.Record.Entity), loc: p.Loc})
		}
	}
	if len(gone) == 0 {
		return m, nil
	}
	sortDepartures(gone)
	for p, err := range pairs.Of(ctx, d.mem.Ledger, v, snap) {
		if err != nil {
			return nil, err
		}
		if !p.There() {
			continue
		}
		for _, from := range claim(gone, entityHash(p.Item.Entity)) {
			m.pairs = append(m.pairs, move{to: p.Loc, from: from})
			m.from = append(m.from, from)
		}
	}
	slices.SortFunc(m.from, ledger.Hash.Compare) // pairs came in the order of the new locations
	return m, nil
}

// pairMoves takes out of a window of changes the deletions whose entity has
// another location in the same window, and gives what each of those replaces.
func (d *Destination) pairMoves(ctx context.Context, items []*feed.Item) (map[ledger.Hash][]ledger.Hash, error) {
	homes := map[string]*feed.Item{}
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

// replacing makes a job tell what its resource replaces.
func replacing(j job, locs []ledger.Hash) job {
	if len(locs) == 0 {
		return j
	}
	return func(ctx context.Context) *outcome {
		o := j(ctx)
		o.replaces = locs
		return o
	}
}

// moveUnlisted finds those of gone whose entity a dump has elsewhere, and gives
// the rest. What could not be stored at its new location keeps the old one until it can.
func (d *Destination) moveUnlisted(ctx context.Context, b *batcher, listed *extsort.Sorter, gone []departure) (rest []departure, err error) {
	if len(gone) == 0 {
		return gone, nil
	}
	sortDepartures(gone)
	for rec, err := range listed.Sort() {
		if err != nil {
			return nil, err
		}
		if len(rec.Value) != 16 {
			continue
		}
		from := claim(gone, ledger.Hash(rec.Value))
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
			err = b.add(ctx, &op{loc: loc, rec: rec, replaces: from})
		}
		if err != nil {
			return nil, err
		}
	}
	return slices.DeleteFunc(gone, func(g departure) bool { return g.moved }), nil
}

// recheckHeld compares again where deletions are held for what a list lacks, and the list
// has changed since.
func (r *run) recheckHeld(ctx context.Context, o *feed.Offer, m *keep.Meta) error {
	if m.HeldDeletions == nil || !m.HeldDeletions.Implied || r.dry || r.full || !o.Followed() || r.rep.Mode == "baseline" {
		return nil
	}
	_, err := r.compareAgain(ctx, o, &m.Inventory, "deletions were held; the source's list was compared again")
	return err
}

// compareAgain compares with the list or dump of the source, and goes on from there, if it
// is another than known and not older than the mirror.
func (r *run) compareAgain(ctx context.Context, o *feed.Offer, known *feed.ListState, why string) (compared bool, err error) {
	d := r.d
	var end func(*keep.Meta)
	switch {
	case o.ResourceList != "":
		end, err = r.compareNewer(ctx, o, known)
	case o.ResourceDump != "":
		end, err = r.dumpNewer(ctx, o, known)
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
