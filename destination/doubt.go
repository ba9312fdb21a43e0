package destination

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/rsbridge/rsbridge/destination/feed"
	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/internal/clip"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/rdfres"
)

// Nothing proves an answer without hash, length or lastmod: it may be an error page, or of another
// resource. A second answer in a later run does.
//
//   - A plausible answer is taken, and asked for once more by the next run.
//   - An odd one is taken when a later run receives the same. It is empty, has no subject of before,
//     or came for another resource too.
//
// Two answers may be wrong alike. So each is asked for again whenever it has stood twice as long, a
// plausible one not within the hour.

// doubtfulError is of an odd answer not taken yet.
type doubtfulError struct {
	why  string
	came rdfres.Digest
}

func (e *doubtfulError) Error() string {
	return "the answer " + e.why + ": it is taken when a later run receives the same"
}

// leavingState is the next state of an emptied resource, zero for none.
func (ap *applier) leavingState(ctx context.Context, loc ledger.Hash) (rdfres.Digest, error) {
	l, err := ap.Ledger.Leaving(ctx, loc)
	if err != nil {
		return rdfres.Digest{}, err
	}
	rec, err := becoming(l)
	return ap.planner.stand.StateOf(rec), err
}

// twins are unproven answers of a run by their digest, to find equal ones of several resources.
type twins map[rdfres.Digest]twin

type twin struct {
	loc    string
	before rdfres.Digest // of its record
}

// mostTwins bounds how many are remembered.
const mostTwins = 50_000

// of gives another resource with the same answer, "" for none. Resources that had the same before
// share a document.
func (t *twins) of(loc string, before, came rdfres.Digest) string {
	other, ok := (*t)[came]
	if !ok {
		if *t == nil || len(*t) >= mostTwins {
			*t = twins{}
		}
		(*t)[came] = twin{loc, before}
		return ""
	}
	if other.loc == loc || other.before == before && before != (rdfres.Digest{}) {
		return ""
	}
	return other.loc
}

// weigh decides whether an unproven answer is taken, and notes the next question.
func (b *batcher) weigh(ctx context.Context, o *outcome) error {
	d := b.d
	if o.Err != nil || !o.Unproven || !o.Item.AsOf.IsZero() || d.planning != nil {
		return nil
	}
	loc := ledger.HashOf(o.Item.Loc)
	rec, err := d.mem.Ledger.Record(ctx, loc)
	if err != nil {
		return err
	}
	g, err := d.mem.Ledger.Doubt(ctx, loc)
	if err != nil {
		return err
	}
	was, came := d.stand.StateOf(rec), d.stand.StateOf(o.Record)
	if came == (rdfres.Digest{}) {
		return nil // nothing is kept of it
	}
	if was == came {
		if g != nil && g.Graph == came {
			b.confirm(loc, g)
		}
		return nil
	}
	leaving, err := d.applier.leavingState(ctx, loc)
	if err != nil || leaving == came { // confirmed before
		return err
	}
	f, err := d.mem.Ledger.Fault(ctx, loc)
	if err != nil {
		return err
	}
	why := ""
	switch other := d.twins.of(o.Item.Loc, was, came); {
	case f != nil && f.Doubted == ledger.AsRecorded && f.Came != came.String() && o.Item.Change == "":
		why = "differs from what was recorded and is lost"
	case o.Empty:
		why = "is empty"
	case o.Strange:
		why = "says nothing of any subject of before"
	case other != "":
		why = "is the same as that of " + clip.Middle(other)
	}
	if why != "" && (o.Empty || rec != nil && !rec.Has(ledger.FlagKept)) {
		if f == nil || f.Came != came.String() || f.Doubted == d.runName() {
			o.Err = fmt.Errorf("%s: %w", clip.Middle(o.Item.Loc), &doubtfulError{why + ", and neither length nor hash is promised", came})
			if g != nil {
				g.Run = d.runName()
				b.mark(loc, g)
			}
			return nil
		}
	}
	b.mark(loc, &ledger.Doubt{Graph: came, Run: d.runName(), Since: d.opt.Now().UTC(), ETag: o.ETag, Odd: why != "", Item: o.Item.Encode()})
	return nil
}

// confirm takes note of a second equal answer.
func (b *batcher) confirm(loc ledger.Hash, g *ledger.Doubt) {
	if now := b.d.opt.Now().UTC(); g.Run != b.d.runName() && g.Due(now) {
		g.Run, g.Asked = b.d.runName(), now
		b.mark(loc, g)
	}
}

func (b *batcher) mark(loc ledger.Hash, g *ledger.Doubt) {
	b.d.mem.Ledger.PutDoubt(b.changedMarks(), loc, g)
}
func (b *batcher) unmark(loc ledger.Hash) { b.d.mem.Ledger.DropDoubt(b.changedMarks(), loc) }

func (b *batcher) changedMarks() kv.Batch {
	if b.marks == nil {
		b.marks = b.d.mem.Store.Batch()
	}
	return b.marks
}

// writeMarks makes the doubts durable, before their resources.
func (b *batcher) writeMarks(ctx context.Context) error {
	if b.marks == nil {
		return nil
	}
	marks := b.marks
	b.marks = nil
	defer marks.Close()
	return marks.Commit(ctx, false)
}

// maxAgain bounds the confirmed answers of one run.
const maxAgain = 1000

// confirmTaken asks again for what earlier runs took without a promise.
func (r *run) confirmTaken(ctx context.Context) error {
	d := r.d
	if r.dry || !d.mem.SnapshotMeta().Until.IsZero() {
		return nil
	}
	now := d.opt.Now()
	if d.mem.Ledger.Rest.Lasts(now) {
		return nil
	}
	b := d.batcher(ctx, &r.c, false)
	defer b.wait()
	snap := d.mem.Store.Snapshot(ctx)
	defer snap.Close()
	n, other := int64(0), int64(0)
	rests, again, next := true, 0, now.Add(24*time.Hour)
	due := func(g *ledger.Doubt) bool {
		at := g.Next()
		switch {
		case g.Run == d.runName(), !at.IsZero() && again == maxAgain:
			rests = false
			return false
		case !g.Due(now):
			if at.Before(next) {
				next = at
			}
			return false
		case !at.IsZero():
			again++
		}
		rests = false
		return true
	}
	err := d.pipeline(ctx, d.doubted(ctx, snap, due), func(o *outcome) error {
		n++
		d.opt.Progress("confirm", n, 0)
		loc := ledger.HashOf(o.Item.Loc)
		switch {
		case o.Err != nil:
			d.mem.Log.Debug("what was received without a promise cannot be confirmed now", "loc", clip.Middle(o.Item.Loc), "error", o.Err)
		case o.confirms(d):
			b.confirm(loc, o.doubt)
		case o.Record == nil:
			b.unmark(loc)
		default:
			other++
			return b.outcome(ctx, o)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if rests {
		d.mem.Ledger.Rest.Until(next)
	}
	if other > 0 {
		r.mode("incremental")
		r.why("%d resources came otherwise than before, without a promise", other)
	}
	return b.settle(ctx)
}

// doubted are jobs to ask again for resources taken by earlier runs without a promise.
func (d *Destination) doubted(ctx context.Context, snap kv.Reader, wanted func(*ledger.Doubt) bool) iter.Seq2[job, error] {
	return func(yield func(job, error) bool) {
		for loc, g := range d.mem.Ledger.Doubts(ctx, snap) {
			if g.Err != nil {
				yield(nil, g.Err)
				return
			}
			if !wanted(g.Doubt) || g.Run == d.runName() {
				continue
			}
			rec, err := d.mem.Ledger.Record(ctx, loc)
			if err != nil {
				yield(nil, err)
				return
			}
			it, err := feed.DecodeItem(g.Item)
			if err != nil {
				yield(nil, err)
				return
			}
			it.Tried = true
			leaving, err := d.applier.leavingState(ctx, loc)
			if err != nil {
				yield(nil, err)
				return
			}
			ask := known(it, nil) // of another state: not asked
			if d.stand.StateOf(rec) == g.Graph || leaving == g.Graph {
				it.ETag = g.ETag
				ask = by(d.obtains.Job(it))
			}
			if !yield(func(ctx context.Context) *outcome {
				o := ask(ctx)
				o.doubt = g.Doubt
				return o
			}, nil) {
				return
			}
		}
	}
}

// confirms tells whether an answer equals the one in doubt.
func (o *outcome) confirms(d *Destination) bool {
	return o.Same || o.Record != nil && d.stand.StateOf(o.Record) == o.doubt.Graph
}
