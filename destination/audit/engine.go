package audit

import "context"

// Engine repairs. An implementer guarantees:
//   - Repair makes records and mirror equal to the source.
//   - PutWhole writes a mirror without updates, unless it is as recorded.
//   - Unexplained takes the number of triples in another form than given, against the normal form.
//     It tells whether the store keeps them otherwise than was known.
type Engine interface {
	Repair(ctx context.Context) error
	PutWhole(ctx context.Context) error
	Unexplained(ctx context.Context, triples int64) (changed bool, err error)
}
