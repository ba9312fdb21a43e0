package feed

import "context"

// Finder finds the set to be read. An implementer guarantees:
//   - Discover gives one set, or an error with the reason. It asks the source each time. A source
//     that offers nothing yet is [ErrNothingYet].
//   - Still gives an offer only if nothing was published since the cursor came to its end, and if
//     run after run has found the same one (Trust). It may be nil at any time.
//   - StillNamed forgets which lists are not there, if the offer names them no more.
//   - LeadsToSource never tells false of an address that cannot be asked now.
//   - Settle ends a run: the next one asks anew for what this one has found out.
type Finder interface {
	Discover(ctx context.Context) (*Offer, error)
	Still(ctx context.Context, c *Cursor) *Offer
	Trust(o *Offer)
	StillNamed(ctx context.Context, o *Offer) error
	LeadsToSource(ctx context.Context, address string) bool
	Settle()
}
