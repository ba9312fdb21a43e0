package sink

import "context"

// Loader mirrors take large batches of additions faster than others. An implementer guarantees:
//   - Limit is how many statements a batch should have, and BulkTriples how many an upload.
//   - Bulk adds statements, if CanBulk and all are Postable. Adding them again changes nothing.
//   - Uploads prepares statements for Bulk, nil for too many. Bulk takes nil, and prepares them
//     itself.
type Loader interface {
	Limit() int
	CanBulk() bool
	BulkTriples() int
	Postable(sts []Statement) bool
	Uploads(sts []Statement) any
	Bulk(ctx context.Context, sts []Statement, ready any) error
}
