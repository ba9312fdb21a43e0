package apply

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/rsbridge/rsbridge/destination/item"
	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/destination/obtain"
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
func (ap *Applier) leavingState(ctx context.Context, loc ledger.Hash) (rdfres.Digest, error) {
	l, err := ap.Ledger.Leaving(ctx, loc)
	if err != nil {
		return rdfres.Digest{}, err
	}
	rec, err := Becoming(l)
	return ap.StateOf(rec), err
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
func (b *Batcher) weigh(ctx context.Context, o *Outcome) error {
	ap := b.ap
	if o.Err != nil || !o.Unproven || !o.Item.AsOf.IsZero() || ap.Fates.Quiet {
		return nil
	}
	loc := ledger.HashOf(o.Item.Loc)
	rec, err := ap.Ledger.Record(ctx, loc)
	if err != nil {
		return err
	}
	g, err := ap.Ledger.Doubt(ctx, loc)
	if err != nil {
		return err
	}
	was, came := ap.StateOf(rec), ap.StateOf(o.Record)
	if came == (rdfres.Digest{}) {
		return nil // nothing is kept of it
	}
	if was == came {
		if g != nil && g.Graph == came {
			b.confirm(loc, g)
		}
		return nil
	}
	leaving, err := ap.leavingState(ctx, loc)
	if err != nil || leaving == came { // confirmed before
		return err
	}
	f, err := ap.Ledger.Fault(ctx, loc)
	if err != nil {
		return err
	}
	why := ""
	switch other := ap.twins.of(o.Item.Loc, was, came); {
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
		if f == nil || f.Came != came.String() || f.Doubted == ap.RunName() {
			o.Err = fmt.Errorf("%s: %w", clip.Middle(o.Item.Loc), &doubtfulError{why + ", and neither length nor hash is promised", came})
			if g != nil {
				g.Run = ap.RunName()
				b.mark(loc, g)
			}
			return nil
		}
	}
	b.mark(loc, &ledger.Doubt{Graph: came, Run: ap.RunName(), Since: ap.Options.Now().UTC(), ETag: o.ETag, Odd: why != "", Item: o.Item.Encode()})
	return nil
}

// Again takes a second answer, and tells whether it is another one.
func (b *Batcher) Again(o *Outcome) (other bool) {
	loc := ledger.HashOf(o.Item.Loc)
	switch {
	case o.confirms(b.ap):
		b.confirm(loc, o.doubt)
	case o.Record == nil:
		b.unmark(loc)
	default:
		return true
	}
	return false
}

// Confirm asks again for resources taken without a promise. other gets those without an answer, and with
// another one: nothing of it is taken.
func (ap *Applier) Confirm(ctx context.Context, snap kv.Reader, obtains *obtain.Obtainer, other func(it *item.Item, came *ledger.Record, err error) error) error {
	b := ap.Batch(ctx, &Counts{}, false)
	err := obtain.InOrder(ctx, ap.Config.Concurrency, ap.Doubted(ctx, snap, obtains, func(g *ledger.Doubt) bool { return g.Odd || g.Asked.IsZero() }), func(o *Outcome) error {
		switch {
		case o.Err != nil:
		case o.confirms(ap):
			b.confirm(ledger.HashOf(o.Item.Loc), o.doubt)
			return nil
		case o.Record == nil:
			return nil
		}
		return other(o.Item, o.Record, o.Err)
	})
	return errors.Join(err, b.writeMarks(ctx))
}

// confirm takes note of a second equal answer.
func (b *Batcher) confirm(loc ledger.Hash, g *ledger.Doubt) {
	if now := b.ap.Options.Now().UTC(); g.Run != b.ap.RunName() && g.Due(now) {
		g.Run, g.Asked = b.ap.RunName(), now
		b.mark(loc, g)
	}
}

func (b *Batcher) mark(loc ledger.Hash, g *ledger.Doubt) {
	b.ap.Ledger.PutDoubt(b.changedMarks(), loc, g)
}
func (b *Batcher) unmark(loc ledger.Hash) { b.ap.Ledger.DropDoubt(b.changedMarks(), loc) }

func (b *Batcher) changedMarks() kv.Batch {
	if b.marks == nil {
		b.marks = b.ap.Store.Batch()
	}
	return b.marks
}

// writeMarks makes the doubts durable, before their resources.
func (b *Batcher) writeMarks(ctx context.Context) error {
	if b.marks == nil {
		return nil
	}
	marks := b.marks
	b.marks = nil
	defer marks.Close()
	return marks.Commit(ctx, false)
}

// Doubted are jobs to ask again for resources taken by earlier runs without a promise.
func (ap *Applier) Doubted(ctx context.Context, snap kv.Reader, obtains *obtain.Obtainer, wanted func(*ledger.Doubt) bool) iter.Seq2[Job, error] {
	return func(yield func(Job, error) bool) {
		for loc, g := range ap.Ledger.Doubts(ctx, snap) {
			if g.Err != nil {
				yield(nil, g.Err)
				return
			}
			if !wanted(g.Doubt) || g.Run == ap.RunName() {
				continue
			}
			rec, err := ap.Ledger.Record(ctx, loc)
			if err != nil {
				yield(nil, err)
				return
			}
			it, err := item.Decode(g.Item)
			if err != nil {
				yield(nil, err)
				return
			}
			it.Ask.Tried = true
			leaving, err := ap.leavingState(ctx, loc)
			if err != nil {
				yield(nil, err)
				return
			}
			ask := Known(it, nil) // of another state: not asked
			if ap.StateOf(rec) == g.Graph || leaving == g.Graph {
				it.Ask.ETag = g.ETag
				ask = JobOf(obtains.Job(it))
			}
			if !yield(func(ctx context.Context) *Outcome {
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
func (o *Outcome) confirms(ap *Applier) bool {
	return o.Same || o.Record != nil && ap.StateOf(o.Record) == o.doubt.Graph
}
