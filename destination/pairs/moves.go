package pairs

import (
	"cmp"
	"context"
	"slices"

	"github.com/rsbridge/rsbridge/destination/feed"
	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/internal/kv"
)

// An entity with a new address (another base_url or prefix, another format) is one resource, and it
// moved. The record of its old location goes in the batch of the new one: neither is lost if the other
// fails. A move is no deletion, and nothing is held because of it. Only the source's own words count:
// a describes link or rsb:entity at the new location.

// Departure is a location missing from the source.
type Departure struct {
	Loc    ledger.Hash
	entity ledger.Hash
	moved  bool
}

// Departures are sorted by entity once they are Sorted.
type Departures []Departure

// Add adds a recorded location.
func (g *Departures) Add(loc ledger.Hash, rec *ledger.Record) {
	*g = append(*g, Departure{Loc: loc, entity: entityHash(rec.Entity)})
}

// entityHash is zero for no entity: it never moves.
func entityHash(entity string) ledger.Hash {
	if entity == "" {
		return ledger.Hash{}
	}
	return ledger.HashOf(entity)
}

// Sort is called before Claim.
func (g Departures) Sort() {
	slices.SortFunc(g, func(a, b Departure) int {
		return cmp.Or(ledger.Hash.Compare(a.entity, b.entity), ledger.Hash.Compare(a.Loc, b.Loc))
	})
}

// Claim takes the free locations of an entity.
func (g Departures) Claim(entity ledger.Hash) []ledger.Hash {
	if entity == (ledger.Hash{}) {
		return nil
	}
	i, ok := slices.BinarySearchFunc(g, entity, func(g Departure, e ledger.Hash) int { return ledger.Hash.Compare(g.entity, e) })
	if !ok {
		return nil
	}
	var out []ledger.Hash
	for ; i < len(g) && g[i].entity == entity; i++ {
		if !g[i].moved {
			g[i].moved = true
			out = append(out, g[i].Loc)
		}
	}
	return out
}

// Rest are the unclaimed locations.
func (g Departures) Rest() Departures {
	return slices.DeleteFunc(g, func(g Departure) bool { return g.moved })
}

// move is of one entity.
type move struct{ to, from ledger.Hash }

// Moves are sorted by the new location; the old ones by themselves.
type Moves struct {
	pairs    []move
	from     []ledger.Hash
	Unlisted Departures // neither listed nor told of, and not moved
}

// Len counts them.
func (m *Moves) Len() int { return len(m.pairs) }

// Left tells whether a location was left for another.
func (m *Moves) Left(loc ledger.Hash) bool {
	_, ok := slices.BinarySearchFunc(m.from, loc, ledger.Hash.Compare)
	return ok
}

// To gives the former locations of an entity.
func (m *Moves) To(loc ledger.Hash) []ledger.Hash {
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

// FindMoves compares departures with the list, by entity. Without departures it costs one pass over
// the list.
func FindMoves(ctx context.Context, led *ledger.Ledger, v *feed.Inventory, snap kv.Reader) (*Moves, error) {
	m := &Moves{}
	var gone Departures
	for p, err := range Of(ctx, led, v, snap) {
		if err != nil {
			return nil, err
		}
		if p.There() || !p.Here() {
			continue
		}
		if p.Record.Entity != "" {
			gone.Add(p.Loc, p.Record)
		}
		if p.Item == nil && p.Record.Unselected() == 0 && !v.Untold(p.Record) {
			m.Unlisted.Add(p.Loc, p.Record)
		}
	}
	if len(gone) == 0 {
		return m, nil
	}
	gone.Sort()
	for p, err := range Of(ctx, led, v, snap) {
		if err != nil {
			return nil, err
		}
		if !p.There() {
			continue
		}
		for _, from := range gone.Claim(entityHash(p.Item.Entity)) {
			m.pairs = append(m.pairs, move{to: p.Loc, from: from})
			m.from = append(m.from, from)
		}
	}
	slices.SortFunc(m.from, ledger.Hash.Compare) // pairs came in the order of the new locations
	m.Unlisted = slices.DeleteFunc(m.Unlisted, func(g Departure) bool { return m.Left(g.Loc) })
	return m, nil
}
