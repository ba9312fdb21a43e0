package sink

import "context"

// FileBatch is one write of files. An implementer guarantees:
//   - Put writes a representation. A fresh address has no path yet.
//   - Remove removes the file of an address, and tells whether it had one.
//   - Home moves the file of an address from a displaced path to its own, if nothing is there any more.
//   - Clear is Remove, with a file that a crash left before its path was recorded.
//   - Flush makes the batch durable. Without it any part may stand.
//   - Close ends the write.
type FileBatch interface {
	Put(ctx context.Context, loc string, body []byte, fresh bool) error
	Remove(ctx context.Context, loc string) (bool, error)
	Home(ctx context.Context, loc string) error
	Clear(ctx context.Context, loc string) error
	Flush() error
	Close()
}
