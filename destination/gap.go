package destination

import (
	"context"
	"errors"
	"fmt"

	"github.com/rsbridge/rsbridge/destination/feed"
	"github.com/rsbridge/rsbridge/destination/keep"
)

// unproven is why nothing may be concluded from an inventory: it was taken before a gap that
// is open, or changes after it are in lists that are missing, so that what the mirror has of them
// would be taken for wrong, or what it lacks not be seen.
func unproven(v *feed.Inventory, m *keep.Meta) error {
	switch {
	case m.Missing.Why != "":
		return &unprovenError{m.Missing.Why}
	case m.Gap != "" && !v.Stale(&m.Cursor) && v.State.URL == m.Inventory.URL && v.State.Digest == m.Inventory.Digest:
		return &unprovenError{m.Gap}
	case v.Missing != nil:
		return &unprovenError{"gap: " + v.Missing.Error()}
	}
	return nil
}

// unprovenError is why a source that answers does not tell what it has.
type unprovenError struct{ why string }

func (e *unprovenError) Error() string { return e.why }

// setsBack is why a mirror that followed changes may not be made equal to an inventory without
// those after it: that may be of before them.
func setsBack(v *feed.Inventory, m *keep.Meta) error {
	c := &m.Cursor
	if v.Missing == nil || m.Source == "" || !c.MayBeLaterThan(v.At) {
		return nil
	}
	return fmt.Errorf("%w: %w; nothing was changed (sync without --full goes on; a newer list or dump ends it)", errSetsBack, v.Missing)
}

var errSetsBack = errors.New("the mirror may be later than the Resource List or Dump, and the changes after that cannot be read")

// unlessBack is for a dump, of which the changes after it are read later.
func (d *Destination) unlessBack(ctx context.Context, o *feed.Offer, m *keep.Meta) func(*feed.Inventory) (bool, error) {
	return func(v *feed.Inventory) (bool, error) {
		if !o.Followed() || !m.Cursor.IsInList() {
			return true, nil
		}
		from := v.Cursor()
		err := feed.Again(func() error {
			return feed.MissingOf(o, d.src.EachChange(ctx, o, &from, true, func(feed.Change) error { return nil }))
		})
		var gap *feed.GapError
		if errors.As(err, &gap) && gap.Missing != nil {
			v.Missing = gap
			err = setsBack(v, m)
			return err == nil, err
		}
		return true, nil // others are told when the changes are applied
	}
}
