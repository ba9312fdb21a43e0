package feed

import (
	"context"
	"time"

	"github.com/rsbridge/rsbridge/destination/item"
)

// Log is what a source tells of its changes. An implementer guarantees:
//   - Changes come in the order of the source's log. One may come again, none is left out.
//   - With strict, a gap is a [*GapError] before any change behind it. So is a log other than the
//     one in which the cursor stands.
//   - A [Poll] is nil only if nothing was published since its cursor came to its end.
//   - Heard, Follows, LeadsOn and AddChanges apply nothing, and move no cursor.
//   - LooksBack changes nothing but its cursor's memory of lists.
//   - Stands is 0 until a source has told its position, and of the last answer then.
//   - PastCaches holds to the end of the run.
//
// Whoever gets a Poll or [ChangePackages] closes it.
type Log interface {
	Poll(ctx context.Context, o *Offer, c *Cursor) (*Poll, error)
	EachChange(ctx context.Context, o *Offer, from *Cursor, strict bool, f func(Change) error) error
	Heard(ctx context.Context, c *Cursor) error
	Follows(ctx context.Context, o *Offer, from Cursor, tell func(*item.Item)) (bool, error)
	LooksBack(ctx context.Context, c *Cursor, looks bool) (why string, asked bool, err error)
	LeadsOn(ctx context.Context, o *Offer, v *Inventory) (bool, error)
	AddChanges(ctx context.Context, o *Offer, v *Inventory) (first time.Time, err error)
	ReadChangeDump(ctx context.Context, o *Offer) (*ChangePackages, error)
	Stands() uint64
	PastCaches(why string) (asked bool)
}
