package sink

import (
	"context"
	"errors"
	"iter"

	"github.com/rsbridge/rsbridge/rdfres"
)

// Full is a sink's mirror, with all the further interfaces: its own, or plain for those
// it has not.
type Full struct {
	*Place
	Mirror
	Marked
	Reader
	Keeper
	Loader
	Packer
	StateKeeper
	Whole   Whole // nil: it follows each batch
	Files   Files // nil: it keeps triples
	Reads   bool  // an audit can read it back
	Remarks bool  // it gives checkpoints back

	Learner Learner // nil: it has no findings
	Learned bool    // findings are taken
}

// NewFull asks a mirror for its further interfaces.
func NewFull(place *Place, m Mirror) *Full {
	out := &Full{Place: place, Mirror: m, Marked: plain{}, Reader: plain{}, Keeper: plain{}, Loader: plain{}, Packer: plain{}, StateKeeper: plain{}}
	if x, ok := m.(Marked); ok {
		out.Marked, out.Remarks = x, true
	}
	if x, ok := m.(Reader); ok {
		out.Reader, out.Reads = x, true
	}
	if x, ok := m.(Keeper); ok {
		out.Keeper = x
	}
	if x, ok := m.(Loader); ok {
		out.Loader = x
	}
	if x, ok := m.(Packer); ok {
		out.Packer = x
	}
	if x, ok := m.(StateKeeper); ok {
		out.StateKeeper = x
	}
	out.Whole, _ = m.(Whole)
	out.Learner, _ = m.(Learner)
	out.Files, _ = m.(Files)
	return out
}

// plain is a mirror with nothing to offer: it holds everything, in batches, unread.
type plain struct{}

const plainBatch = 5_000 // statements

func (plain) Checkpoint(context.Context) (*Checkpoint, error) { return nil, nil }
func (plain) Others(context.Context, string) (map[string]*Checkpoint, error) {
	return nil, nil
}
func (plain) IsEmpty(context.Context, iter.Seq[string]) (bool, error) { return true, nil }
func (plain) Lines(context.Context) (int64, error)                    { return 0, nil }
func (plain) Forget(context.Context, bool) error                      { return nil }

func (plain) Asks() bool                                    { return false }
func (plain) Has(context.Context, *Statement) (bool, error) { return false, errors.ErrUnsupported }
func (plain) Countable() bool                               { return false }
func (plain) Count(context.Context) (int64, error)          { return 0, errors.ErrUnsupported }
func (plain) ReadSingle(context.Context, *int64, func(rdfres.Triple) error) error {
	return errors.ErrUnsupported
}
func (plain) ReadGraphs(context.Context, func(string) (bool, error), func(string, rdfres.Triple) error) error {
	return errors.ErrUnsupported
}
func (plain) ReadGraph(context.Context, string) iter.Seq2[rdfres.Triple, error] {
	return func(yield func(rdfres.Triple, error) bool) { yield(rdfres.Triple{}, errors.ErrUnsupported) }
}

func (plain) Keeps(*Statement) error                 { return nil }
func (plain) KeepsAll([]Statement) error             { return nil }
func (plain) KeepsGraph(string) error                { return nil }
func (plain) Exact(*Statement) bool                  { return true }
func (plain) SameValue(a, b rdfres.Term) bool        { return rdfres.ValueEqual(a, b) }
func (plain) Refused(error) bool                     { return false }
func (plain) Restore(context.Context, *Batch) error  { return nil }
func (plain) TakeBack(context.Context, *Batch) error { return nil }

func (plain) Limit() int                                   { return plainBatch }
func (plain) CanBulk() bool                                { return false }
func (plain) BulkTriples() int                             { return plainBatch }
func (plain) Postable([]Statement) bool                    { return false }
func (plain) Uploads([]Statement) any                      { return nil }
func (plain) Bulk(context.Context, []Statement, any) error { return errors.ErrUnsupported }

func (plain) CanPostPacked() bool { return false }
func (plain) TakesLong() bool     { return false }
func (plain) Pace() int           { return 0 }
func (plain) PostPacked(context.Context, *Packed, []Statement) error {
	return errors.ErrUnsupported
}

func (plain) Owns() bool                                                      { return false }
func (plain) CanOwn(string) bool                                              { return false }
func (plain) Tells() bool                                                     { return false }
func (plain) PutsGraphs() bool                                                { return false }
func (plain) Freshen(context.Context, []rdfres.Triple) error                  { return errors.ErrUnsupported }
func (plain) EachOwned(context.Context, func(graph, mark string) error) error { return nil }
func (plain) EachTold(context.Context, func(rdfres.Triple) error) error       { return nil }

// Listens tells of a batch with changes for a mirror without triples.
func (m *Full) Listens(b *Batch) bool {
	if !m.Reads && b.Changes != nil {
		for range b.Changes {
			return true
		}
	}
	return false
}
