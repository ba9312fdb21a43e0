package feed

import "context"

// Finder finds the set to be read. An implementer guarantees:
//   - Discover gives one set, or an error with the reason. It asks the source each time, and keeps
//     no answer. A source that offers nothing yet is [ErrNothingYet].
//   - StillNamed forgets which lists are not there, if the offer names them no more.
//   - LeadsToSource never tells false of an address that cannot be asked now.
//   - Settle ends a run: the next one asks anew for what this one has found out.
type Finder interface {
	Discover(ctx context.Context) (*Offer, error)
	StillNamed(ctx context.Context, o *Offer) error
	LeadsToSource(ctx context.Context, address string) bool
	Settle()
}
