package sink

import (
	"context"
	"iter"

	"github.com/rsbridge/rsbridge/rdfres"
)

// Files mirrors keep representations as files, instead of triples, at paths of their own
// choice. One destination has such a mirror. An implementer guarantees:
//   - A file is its former bytes or its new ones, whatever happens, and each write may come again.
//   - Again opens the folder that is there now, and makes a missing one: the first with all folders
//     above it, a removed one only below the folder that it was in, else [NoPlaceError]. A dry call
//     makes nothing.
//   - Begin starts a write of about n representations.
//   - Find gives the path of an address, "" for none.
//   - InTheWay is [ForeignFileError] for a file that Put would replace, without a record of its
//     path and with other bytes than body. For a nil body each file has other bytes.
//   - Digest is the SHA-256 of a file.
//   - Remove removes a file, if there is one, and folders without any.
//   - Displaced tells of a path that is not an address's own, since something is or was in the way.
//   - All gives the paths of all files, the sink's own bookkeeping apart.
type Files interface {
	Again(first, dry bool) error
	Begin(names Names, n int) FileBatch
	Find(ctx context.Context, names Names, loc string) (string, error)
	InTheWay(ctx context.Context, names Names, loc string, body []byte) error
	Digest(name string) (rdfres.Digest, error)
	Remove(name string) error
	Displaced(name string) bool
	All(ctx context.Context) iter.Seq2[string, error]
}
