package destination

import (
	"context"
	"errors"
	"iter"

	"github.com/rsbridge/rsbridge/destination/sink"
	"github.com/rsbridge/rsbridge/rdfres"
)

// mirror is a sink's mirror, with all the further interfaces: its own, or plain for those
// it has not.
type mirror struct {
	*sink.Place
	sink.Mirror
	sink.Marked
	sink.Reader
	sink.Keeper
	sink.Loader
	sink.StateKeeper
	whole  sink.Whole // nil: it follows each batch
	files  sink.Files // nil: it keeps triples
	reads  bool       // an audit can read it back
	remark bool       // it gives checkpoints back

	learner sink.Learner // nil: it has no findings
	learned bool         // findings are taken
}

func newMirror(place *sink.Place, m sink.Mirror) *mirror {
	out := &mirror{Place: place, Mirror: m, Marked: plain{}, Reader: plain{}, Keeper: plain{}, Loader: plain{}, StateKeeper: plain{}}
	if x, ok := m.(sink.Marked); ok {
		out.Marked, out.remark = x, true
	}
	if x, ok := m.(sink.Reader); ok {
		out.Reader, out.reads = x, true
	}
	if x, ok := m.(sink.Keeper); ok {
		out.Keeper = x
	}
	if x, ok := m.(sink.Loader); ok {
		out.Loader = x
	}
	if x, ok := m.(sink.StateKeeper); ok {
		out.StateKeeper = x
	}
	out.whole, _ = m.(sink.Whole)
	out.learner, _ = m.(sink.Learner)
	out.files, _ = m.(sink.Files)
	return out
}

// plain is a mirror with nothing to offer: it holds everything, in batches, unread.
type plain struct{}

const plainBatch = 5_000 // statements

func (plain) Checkpoint(context.Context) (*sink.Checkpoint, error) { return nil, nil }
func (plain) Others(context.Context, string) (map[string]*sink.Checkpoint, error) {
	return nil, nil
}
func (plain) IsEmpty(context.Context, iter.Seq[string]) (bool, error) { return true, nil }
func (plain) Lines(context.Context) (int64, error)                    { return 0, nil }
func (plain) Forget(context.Context, bool) error                      { return nil }

func (plain) Asks() bool                                         { return false }
func (plain) Has(context.Context, *sink.Statement) (bool, error) { return false, errors.ErrUnsupported }
func (plain) Countable() bool                                    { return false }
func (plain) Count(context.Context) (int64, error)               { return 0, errors.ErrUnsupported }
func (plain) ReadSingle(context.Context, *int64, func(rdfres.Triple) error) error {
	return errors.ErrUnsupported
}
func (plain) ReadGraphs(context.Context, func(string) (bool, error), func(string, rdfres.Triple) error) error {
	return errors.ErrUnsupported
}
func (plain) ReadGraph(context.Context, string) iter.Seq2[rdfres.Triple, error] {
	return func(yield func(rdfres.Triple, error) bool) { yield(rdfres.Triple{}, errors.ErrUnsupported) }
}

func (plain) Keeps(*sink.Statement) error                 { return nil }
func (plain) KeepsAll([]sink.Statement) error             { return nil }
func (plain) KeepsGraph(string) error                     { return nil }
func (plain) Exact(*sink.Statement) bool                  { return true }
func (plain) SameValue(a, b rdfres.Term) bool             { return rdfres.ValueEqual(a, b) }
func (plain) Refused(error) bool                          { return false }
func (plain) Restore(context.Context, *sink.Batch) error  { return nil }
func (plain) TakeBack(context.Context, *sink.Batch) error { return nil }

func (plain) Limit() int                                        { return plainBatch }
func (plain) Pace() int                                         { return 0 }
func (plain) CanBulk() bool                                     { return false }
func (plain) BulkTriples() int                                  { return plainBatch }
func (plain) Postable([]sink.Statement) bool                    { return false }
func (plain) Uploads([]sink.Statement) any                      { return nil }
func (plain) CanPostPacked() bool                               { return false }
func (plain) TakesLong() bool                                   { return false }
func (plain) Bulk(context.Context, []sink.Statement, any) error { return errors.ErrUnsupported }
func (plain) PostPacked(context.Context, *sink.Packed, []sink.Statement) error {
	return errors.ErrUnsupported
}

func (plain) Owns() bool                                                      { return false }
func (plain) CanOwn(string) bool                                              { return false }
func (plain) Tells() bool                                                     { return false }
func (plain) PutsGraphs() bool                                                { return false }
func (plain) EachOwned(context.Context, func(graph, mark string) error) error { return nil }
func (plain) EachTold(context.Context, func(rdfres.Triple) error) error       { return nil }

// tellSink adds to a batch its changes by resource, and graphs as they are after it.
func (d *Destination) tellSink(p *sink.Batch, changes []*delta) {
	p.Changes = func(yield func(sink.Change) bool) {
		for _, ch := range changes {
			if ch.same || ch.op.fault != nil || ch.op.settle {
				continue
			}
			if c, ok := ch.told(); ok && !yield(c) {
				return
			}
		}
	}
	if !d.mirror.PutsGraphs() {
		return
	}
	for _, ch := range changes {
		if !ch.same && ch.newGraph != "" {
			p.Put = append(p.Put, sink.Graph{IRI: ch.newGraph, Statements: ch.newSts})
		}
	}
}

// told is the change of a resource, false for a resource outside of select before and after.
func (ch *delta) told() (c sink.Change, ok bool) {
	rec := ch.op.rec
	was, is := ch.old != nil && ch.old.Unselected() == 0, rec != nil && rec.Unselected() == 0
	c = sink.Change{Kind: "updated", Old: ch.oldSts, New: ch.newSts}
	switch {
	case !was && !is:
		return c, false
	case !was:
		c.Kind = "created"
	case !is:
		c.Kind = "deleted"
	}
	if rec == nil {
		rec = ch.old
	}
	c.Location, c.Entity, c.Time = rec.Loc, rec.Entity, rec.Changed
	if it := ch.op.it; it != nil && !it.Time.IsZero() {
		c.Time = it.Time
	}
	return c, true
}

// listens tells of a batch with changes for a mirror without triples.
func (m *mirror) listens(b *sink.Batch) bool {
	if !m.reads && b.Changes != nil {
		for range b.Changes {
			return true
		}
	}
	return false
}
