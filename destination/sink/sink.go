package sink

import (
	"context"
	"encoding/json"
	"iter"
	"log/slog"

	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/rdfres"
)

// Sink is a store, a file, a folder or a queue for mirrors. Several destinations may
// share one, and use it at once.
type Sink interface {
	// Name is for people, in errors and reports.
	Name() string
	// Address is a URL, the same in each process: the records know the sink by it. It has
	// no secrets. Of a path on this machine it is http://KIND.invalid/PATH.
	Address() string
	// Open gives the mirror of one destination. It connects to nothing: the first call of
	// the mirror does. It refuses a layout it cannot hold; without graphs, Layout.PerEntity.
	// The caller may change the place between calls of the mirror.
	Open(*Place) (Mirror, error)
	// Close ends the sink, after its destinations.
	Close() error
}

// Place is a mirror's own: its layout, its name in checkpoints, and its source.
type Place struct {
	Layout Layout
	Mark   string
	Source string // address of the source, without secrets
	Log    *slog.Logger
}

// Mirror takes the changes of one destination. Further interfaces below are for mirrors
// with more to offer: an implementer needs none of them.
type Mirror interface {
	// Apply makes a batch true, and then writes the checkpoint, both durably. Calls of one
	// mirror never overlap.
	//
	// After an error any part may stand, and the same batch comes again: perhaps from another
	// process, after a crash. A batch may be without data. A queue (a mirror without Reader)
	// gets each change, also of a page without triples, at least once.
	Apply(ctx context.Context, b *Batch, cp *Checkpoint) error
}

// Marked mirrors give checkpoints back. Without them records and mirror are never held
// against each other at the start of a run.
type Marked interface {
	// Checkpoint is the mirror's own, nil for none.
	Checkpoint(ctx context.Context) (*Checkpoint, error)
	// Others are checkpoints of other marks over the same graph, by mark.
	Others(ctx context.Context, graph string) (map[string]*Checkpoint, error)
	// IsEmpty asks for anything in the mirror's place, apart from some graphs.
	IsEmpty(ctx context.Context, besides iter.Seq[string]) (bool, error)
	// Lines counts the mirror's own bookkeeping.
	Lines(ctx context.Context) (int64, error)
	// Forget removes the bookkeeping, as the last act of a mirror. With data the sink may
	// remove the rest too.
	Forget(ctx context.Context, data bool) error
}

// Reader mirrors are read back by audits.
type Reader interface {
	// Asks tells of a mirror for single questions, as by Has.
	Asks() bool
	Has(ctx context.Context, st *Statement) (bool, error)
	// Countable tells whether Count can be asked.
	Countable() bool
	Count(ctx context.Context) (int64, error)
	// ReadSingle gives all triples of a single graph, some twice. add raises got.
	ReadSingle(ctx context.Context, got *int64, add func(rdfres.Triple) error) error
	// ReadGraphs gives the triples of all wanted graphs, some twice.
	ReadGraphs(ctx context.Context, wanted func(graph string) (bool, error), add func(graph string, t rdfres.Triple) error) error
	// ReadGraph gives the triples of one graph.
	ReadGraph(ctx context.Context, graph string) iter.Seq2[rdfres.Triple, error]
}

// Keeper mirrors change or refuse some statements.
type Keeper interface {
	// Keeps refuses a statement the sink cannot hold as it is, by ErrUnusable.
	Keeps(st *Statement) error
	KeepsAll(sts []Statement) error
	KeepsGraph(graph string) error
	// Exact tells of a statement without any detour.
	Exact(st *Statement) bool
	// SameValue tells whether one literal may be the sink's form of the other.
	SameValue(a, b rdfres.Term) bool
	// Refused tells an answer about content from a sink out of order.
	Refused(err error) bool
	// Restore brings graphs back, after a batch was refused.
	Restore(ctx context.Context, b *Batch) error
	// TakeBack undoes the rest of a refused batch.
	TakeBack(ctx context.Context, b *Batch) error
}

// Learner mirrors rewrite some statements, each place in its own way, and find out how. The
// caller keeps the findings, and hashes statements in their normal form.
//
// An implementer guarantees: Learn removes what it wrote; the same findings have the same
// normal form for ever; two statements are one in the place just if they have one normal form.
type Learner interface {
	// Learn asks the place.
	Learn(ctx context.Context) (*Findings, error)
	// Take makes findings the ones to work with, and sets the normal form of the layout.
	// It refuses a layout the place cannot hold.
	Take(*Findings) error
	// Named is the place's own name in its last answer, "" for unknown. With another name
	// the findings are asked for anew.
	Named() string
}

// Findings tell how a place rewrites statements.
type Findings struct {
	NormalForm rdfres.NormalForm `json:"normal_form"`
	Unanswered []string          `json:"unanswered,omitempty"` // questions for the next run
	Facts      json.RawMessage   `json:"facts"`                // the sink's own
}

// Loader mirrors take large batches of additions faster than others.
type Loader interface {
	// Limit is how many statements a batch should have.
	Limit() int
	// Pace is how many triples of an upload the sink took lately in a good time; 0 unknown.
	Pace() int
	CanBulk() bool
	BulkTriples() int
	Postable(sts []Statement) bool
	// Uploads prepares statements for Bulk, nil for too many.
	Uploads(sts []Statement) any
	Bulk(ctx context.Context, sts []Statement, ready any) error
	CanPostPacked() bool
	PostPacked(ctx context.Context, p *Packed, sts []Statement) error
	// TakesLong tells of a sink for uploads of many seconds.
	TakesLong() bool
}

// Packed are triples to upload: packed N-Triples, as the records keep them.
type Packed struct {
	Parts   [][]byte
	Bytes   int // unpacked
	Triples int64
}

// StateKeeper mirrors have a state graph, with the names of their own graphs and the
// provenance of descriptions.
type StateKeeper interface {
	Owns() bool
	CanOwn(graph string) bool
	// EachOwned gives owned graphs of any mark, some twice.
	EachOwned(ctx context.Context, f func(graph, mark string) error) error
	// Tells tells whether provenance can be written.
	Tells() bool
	EachTold(ctx context.Context, f func(rdfres.Triple) error) error
	// Freshen replaces the freshness of the mirror; without triples it removes it. Checkpoint and
	// provenance stay as they are.
	Freshen(ctx context.Context, freshness []rdfres.Triple) error
	// PutsGraphs tells of graphs for each entity without updates: Batch.Put has them.
	PutsGraphs() bool
}

// Whole mirrors are replaced as a whole, at the end of a run with changes.
type Whole interface {
	// Absent tells of no mirror at all; a mirror of nothing is one.
	Absent() bool
	// Foreign tells of a mirror that somebody has changed or replaced since it was written.
	Foreign() (bool, error)
	// Replace gets parts of canonical N-Triples; blank nodes are of the part's authority.
	Replace(ctx context.Context, authorities []string, each func(put PutPart) error) error
}

// PutPart takes lines of some resources, canonical N-Triples, with blank nodes of an
// authority. It does not keep them.
type PutPart func(authority string, lines []byte) error

// Files mirrors keep representations as files, instead of triples, at paths of their own
// choice. One destination has such a mirror. A file is its former bytes or its new ones,
// whatever happens, and each write may come again.
type Files interface {
	// Again opens the folder that is there now, and makes a missing one: the first with all folders
	// above it, a removed one only below the folder that it was in, else NoPlaceError. A dry call
	// makes nothing.
	Again(first, dry bool) error
	// Begin starts a write of about n representations.
	Begin(names Names, n int) FileBatch
	// Find gives the path of an address, "" for none.
	Find(ctx context.Context, names Names, loc string) (string, error)
	// InTheWay is ForeignFileError for a file that Put would replace, without a record of its
	// path and with other bytes than body. For a nil body each file has other bytes.
	InTheWay(ctx context.Context, names Names, loc string, body []byte) error
	// Digest is the SHA-256 of a file.
	Digest(name string) (rdfres.Digest, error)
	// Remove removes a file, if there is one, and folders without any.
	Remove(name string) error
	// Displaced tells of a path that is not an address's own, since something is or was in the way.
	Displaced(name string) bool
	// All gives the paths of all files, the sink's own bookkeeping apart.
	All(ctx context.Context) iter.Seq2[string, error]
}

// FileBatch is one write of files.
type FileBatch interface {
	// Put writes a representation. A fresh address has no path yet.
	Put(ctx context.Context, loc string, body []byte, fresh bool) error
	// Remove removes the file of an address, and tells whether it had one.
	Remove(ctx context.Context, loc string) (bool, error)
	// Home moves the file of an address from a displaced path to its own, if nothing is there any more.
	Home(ctx context.Context, loc string) error
	// Clear is Remove, with a file that a crash left before its path was recorded.
	Clear(ctx context.Context, loc string) error
	// Flush makes the batch durable. Without it any part may stand.
	Flush() error
	Close()
}

// Names is the caller's record of paths: each belongs to one address, known by its hash.
// It becomes durable after the files.
type Names interface {
	Owner(ctx context.Context, name string) (loc ledger.Hash, ok bool, err error)
	Take(name string, loc ledger.Hash)
	Free(name string)
}
