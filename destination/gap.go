package destination

import (
	"context"
	"errors"
	"fmt"

	"github.com/rsbridge/rsbridge/destination/feed"
	"github.com/rsbridge/rsbridge/destination/keep"
)

// setsBack is why a mirror that followed changes may not be made equal to an inventory without
// those after it: that may be of before them.
func setsBack(v *feed.Inventory, m *keep.Meta) error {
	if v.Missing == nil || m.Source == "" || !m.At.Cursor().MayBeLaterThan(v.At) {
		return nil
	}
	return fmt.Errorf("%w: %w; nothing was changed (sync without --full goes on; a newer list or dump ends it)", errSetsBack, v.Missing)
}

var errSetsBack = errors.New("the mirror may be later than the Resource List or Dump, and the changes after that cannot be read")

// unlessBack is for a dump, of which the changes after it are read later.
func (d *Destination) unlessBack(ctx context.Context, o *feed.Offer, m *keep.Meta) func(*feed.Inventory) (bool, error) {
	return func(v *feed.Inventory) (bool, error) {
		if !o.Followed() || !m.At.Cursor().IsInList() {
			return true, nil
		}
		_, err := d.src.LeadsOn(ctx, o, v)
		var gap *feed.GapError
		if errors.As(err, &gap) && gap.Missing != nil {
			v.Missing = gap
			err = setsBack(v, m)
			return err == nil, err
		}
		return true, nil // others are told when the changes are applied
	}
}
