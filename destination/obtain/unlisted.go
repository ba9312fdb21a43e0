package obtain

import (
	"context"

	"github.com/rsbridge/rsbridge/rdfres"
)

// Unlisted are resources without an entry. An implementer guarantees:
//   - One names a living one with its answer, "" for none.
//   - Named takes the triples of a new entry: it stays a resource.
type Unlisted interface {
	One(context.Context) (string, error)
	Named(ts []rdfres.Triple, entry string)
}
