package bridge

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"github.com/rsbridge/rsbridge/bridge/config"
	"github.com/rsbridge/rsbridge/changetrack"
	"github.com/rsbridge/rsbridge/destination"
	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/rdfres/codec"
)

// Held is the held run of a set or a destination, with a page of its deletions.
type Held = destination.Held

// mostLabelled is the longest representation, in bytes, read for a label.
const mostLabelled = 64 << 10

// SetHeld is the held run of a set, with up to limit of the deleted entities and files after
// a place (Held.Next; "" is the beginning), or ErrNothingHeld.
func (b *Bridge) SetHeld(ctx context.Context, name, after string, limit int) (*Held, error) {
	s := b.sets[name]
	if s == nil {
		return nil, fmt.Errorf("set %s: %w; there are: %s", name, ErrUnknown, config.NamesOf(b.sets))
	}
	v := s.log.View(ctx)
	defer v.Close()
	h := s.held(ctx, v.Held(ctx))
	if h == nil {
		return nil, fmt.Errorf("set %s: %w", name, ErrNothingHeld)
	}
	out := &Held{ID: h.ID, Reason: h.Reason, Deletions: h.Deletions, Of: h.Of, Time: h.Time, Items: []destination.HeldItem{}}
	last := ""
	for it, err := range s.heldItems(ctx, v, after) {
		if err != nil {
			return nil, fmt.Errorf("what is held of set %s: %w", name, err)
		}
		if len(out.Items) == limit {
			out.Next = last
			break
		}
		out.Items = append(out.Items, it.HeldItem)
		last = it.place
	}
	return out, nil
}

// heldItem is an item and its place in the pages.
type heldItem struct {
	destination.HeldItem
	place string
}

// filePlace begins the places of files; they come after the entities.
const filePlace = "file-"

// heldItems yields the entities, then the files to be deleted, after a place.
func (s *set) heldItems(ctx context.Context, v *changetrack.View, after string) iter.Seq2[heldItem, error] {
	return func(yield func(heldItem, error) bool) {
		text, inFiles := strings.CutPrefix(after, filePlace)
		var from *rdfres.Digest
		if text != "" {
			key, err := rdfres.ParseDigest(text)
			if err != nil {
				yield(heldItem{}, fmt.Errorf("after=%s: %w", after, err))
				return
			}
			from = &key
		}
		if !inFiles {
			for st, err := range v.HeldDeletions(ctx, from) {
				it := heldItem{place: rdfres.EntityKey(st.Entity).String()}
				if err == nil {
					it.Entity, it.Label = st.Entity, labelOf(ctx, v, st)
					it.Location, err = s.bridge.pub.Location(ctx, s.name, st.Entity)
				}
				if !yield(it, err) || err != nil {
					return
				}
			}
			from = nil
		}
		if s.listed().held(ctx) == nil {
			return
		}
		files, err := s.listed().records()
		if err != nil {
			yield(heldItem{}, err)
			return
		}
		for st, err := range files.Gone(ctx, v, from) {
			it := heldItem{place: filePlace + changetrack.FileKey(st.URL).String()}
			if err == nil {
				it.File, it.Location = true, st.URL
				it.Entity, err = firstLeading(ctx, v, st.URL)
			}
			if !yield(it, err) || err != nil {
				return
			}
		}
	}
}

// firstLeading is an entity with a link to a file, "" for none.
func firstLeading(ctx context.Context, v *changetrack.View, file string) (string, error) {
	for entity, err := range v.LeadingTo(ctx, file) {
		return entity, err
	}
	return "", nil
}

// labelOf is an entity's name for people, "" for none in its description.
func labelOf(ctx context.Context, v *changetrack.View, st changetrack.State) string {
	if st.Current == nil || st.Current.Fixity.Length > mostLabelled {
		return ""
	}
	blob, err := v.Representation(ctx, st.Entity, st.Current.Sequence)
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

// DestinationHeld is SetHeld for the held deletions of a mirror.
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
