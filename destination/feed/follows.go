package feed

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/rsbridge/rsbridge/destination/fetch"
	"github.com/rsbridge/rsbridge/destination/item"
)

// Follows tells whether the changes offered now have everything since a cursor. tell gets the changed
// resources, first nil: a pass begins anew.
func (src *Source) Follows(ctx context.Context, o *Offer, from Cursor, tell func(*item.Item)) (bool, error) {
	address, kind := o.Changes()
	dl, rd, err := src.changesRoot(ctx, fetch.Request{URL: address}, kind)
	if err != nil {
		return false, ctx.Err() // told when the changes are read
	}
	defer dl.Close()
	var follows, unproven bool
	var j joints
	err = Again(func() error {
		tell(nil)
		follows, unproven, j = false, false, joints{from: &from.at, number: from.Number(), until: from.at.Time}
		at := from.at
		at.unproven = &unproven
		return src.eachChangeOf(ctx, dl, rd, &at, true, func(c Change) error {
			follows = !c.Unproven
			j.look(&c)
			if c.Item != nil {
				tell(c.Item)
			}
			return nil
		})
	})
	if err == nil && follows {
		err = src.Heard(ctx, &from)
	}
	var absent *absentError
	if gap := (*GapError)(nil); errors.As(err, &gap) || errors.As(err, &absent) {
		return false, nil
	}
	if err != nil || !follows || unproven {
		return false, err
	}
	lacks := src.keeper.Position().at.Missing
	lists := lacks.all()
	if len(lists) == 0 || !dl.index || j.holds() {
		return true, nil
	}
	named, _, err := src.named(ctx, o, dl)
	return err == nil && !slices.ContainsFunc(lists, func(l string) bool { return !named[l] }), err
}

// joints are the places between lists read one after the other. A list with the changes between two of
// them may be named no more.
type joints struct {
	from    *cursor
	number  uint64    // of the last change
	until   time.Time // the end of the last list, zero while it is open
	holed   bool      // some change has no number, or not the next one
	apart   bool      // some list does not begin where the last one ended
	further bool      // a list was read
}

func (j *joints) look(c *Change) {
	if c.Item != nil {
		n := c.Item.Sequence
		j.holed = j.holed || n == 0 || n > j.number+1
		j.number = max(j.number, n)
		return
	}
	begins := !c.from.IsZero() && !j.until.IsZero() && !c.from.After(j.until)
	j.apart = j.apart || !begins && (j.further || c.List != j.from.List)
	if j.further, j.until = true, (time.Time{}); c.closed {
		j.until = c.until
	}
}

// holds tells that no change can have been between the lists, or behind them.
func (j *joints) holds() bool {
	return j.from.Sequence != nil && !j.holed || j.further && !j.apart && j.until.IsZero()
}
