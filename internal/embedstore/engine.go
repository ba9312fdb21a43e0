package embedstore

import (
	"context"
	"errors"
)

// ErrUnsupported marks what SPARQL 1.1 allows and this store cannot answer.
var ErrUnsupported = errors.New("cannot be answered by the embedded store")

// engine answers what the store's own executor does not: it gets the text and
// the snapshot that the request sees.
type engine interface {
	Query(ctx context.Context, snap *Snapshot, text string, o QueryOptions) (*Result, error)
}
