package bridge

import (
	"context"
	"fmt"

	"github.com/rsbridge/rsbridge/changetrack"
	"github.com/rsbridge/rsbridge/destination"
	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/rdfres/codec"
)

// Held is what waits for a person, of a set or of a destination, with a page of what would
// be deleted.
type Held = destination.Held

// mostLabelled is the longest representation, in bytes, that is read for a label.
const mostLabelled = 64 << 10

// SetHeld is what is held of a set, with up to limit of the entities that would be deleted
// after a place (Held.Next; "" is the beginning). ErrNothingHeld if nothing is.
func (b *Bridge) SetHeld(name, after string, limit int) (*Held, error) {
	s := b.sets[name]
	if s == nil {
		return nil, fmt.Errorf("set %s: %w; there are: %s", name, ErrUnknown, names(b.sets))
	}
	v := s.log.View()
	defer v.Close()
	h := s.held(v.Held())
	if h == nil {
		return nil, fmt.Errorf("set %s: %w", name, ErrNothingHeld)
	}
	out := &Held{ID: h.ID, Reason: h.Reason, Deletions: h.Deletions, Of: h.Of, Time: h.Time, Items: []destination.HeldItem{}}
	var from *rdfres.Digest
	if after != "" {
		key, err := rdfres.ParseDigest(after)
		if err != nil {
			return nil, fmt.Errorf("after=%s: %w", after, err)
		}
		from = &key
	}
	last := ""
	for st, err := range v.HeldDeletions(from) {
		if err != nil {
			return nil, fmt.Errorf("what is held of set %s: %w", name, err)
		}
		if len(out.Items) == limit {
			out.Next = rdfres.EntityKey(last).String()
			break
		}
		loc, err := b.pub.Location(name, st.Entity)
		if err != nil {
			return nil, err
		}
		out.Items = append(out.Items, destination.HeldItem{Entity: st.Entity, Location: loc, Label: labelOf(v, st)})
		last = st.Entity
	}
	return out, nil
}

// labelOf is a name of an entity for people, "" where its description gives none.
func labelOf(v *changetrack.View, st changetrack.State) string {
	if st.Current == nil || st.Current.Fixity.Length > mostLabelled {
		return ""
	}
	blob, err := v.Representation(st.Entity, st.Current.Sequence)
	if err != nil {
		return ""
	}
	data, err := blob.Bytes()
	if err != nil {
		return ""
	}
	ts, err := codec.Decode(st.Current.Format, data, rdfres.ReadOptions{Name: st.Entity})
	if err != nil {
		return ""
	}
	return rdfres.Label(rdfres.NewIRI(st.Entity), ts)
}

// DestinationHeld is SetHeld for the deletions that a mirror holds.
func (b *Bridge) DestinationHeld(ctx context.Context, name, after string, limit int) (*Held, error) {
	d, err := b.Destination(name)
	if err != nil {
		return nil, err
	}
	h, err := d.Held(ctx, after, limit)
	if err == nil && h == nil {
		err = fmt.Errorf("destination %s: %w", name, ErrNothingHeld)
	}
	return h, err
}
