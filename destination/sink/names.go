package sink

import "context"

// Names is the record of the paths of files: each belongs to one address. An implementer, the
// caller of a [Files] mirror, guarantees:
//   - Owner tells whether a path is taken by any address, and whether by this one.
//   - Owner knows a path of Take at once, and one of Free when that is durable.
//   - Both become durable after the files.
type Names interface {
	Owner(ctx context.Context, name, loc string) (own, taken bool, err error)
	Take(name, loc string)
	Free(name string)
}
