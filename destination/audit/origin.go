package audit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rsbridge/rsbridge/destination/feed"
	"github.com/rsbridge/rsbridge/destination/fetch"
	"github.com/rsbridge/rsbridge/destination/item"
	"github.com/rsbridge/rsbridge/destination/keep"
	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/destination/obtain"
	"github.com/rsbridge/rsbridge/destination/pairs"
	"github.com/rsbridge/rsbridge/internal/clip"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/rdfres"
)

// confirmTaken asks again for resources taken without a promise.
func (a *pass) confirmTaken(ctx context.Context, snap kv.Reader) error {
	unknown := 0
	err := a.Doubts.Confirm(ctx, snap, func(it *item.Item, came *ledger.Record, err error) error {
		if err == nil {
			return a.otherAnswer(came, it)
		}
		if unknown++; a.told.lost == nil {
			a.told.lost = fmt.Errorf("%s was received once, without a promise, and cannot be confirmed: %w", clip.Middle(it.Loc), err)
		}
		return nil
	})
	if unknown > 0 {
		a.Log.Warn("audit: what was received without a promise cannot be confirmed", "resources", unknown, "error", a.told.lost)
	}
	return err
}

// asked is a recorded resource, fetched again.
type asked struct {
	loc    ledger.Hash
	is     *ledger.Record // with the digests of another graph
	entry  *item.Item     // nil: it has no other graph
	detail string         // of the finding, "" for none
	err    error
}

func (q *asked) Failed() error { return q.err }

// origin fetches every recorded resource again, from its present place, and compares the graphs.
func (a *pass) origin(ctx context.Context, v *feed.Inventory, snap kv.Reader) error {
	jobs := func(yield func(obtain.Task[*asked], error) bool) {
		for p, err := range pairs.Of(ctx, a.Ledger, v, snap) {
			if err != nil {
				yield(nil, err)
				return
			}
			loc, rec := p.Loc, p.Record
			if rec == nil {
				continue
			}
			if rec.Has(ledger.FlagKept) || !a.Holds(rec) {
				continue
			}
			it := item.Of(rec)
			it.LastMod, it.Time, it.Via = time.Time{}, time.Time{}, ""
			if rec.Has(ledger.FlagWireNames) {
				it.Promise.Graph = rec.Graph
			}
			if p.There() {
				it.Promise.Type = p.Item.Promise.Type
				for _, other := range p.Item.Others {
					if other.Promise.Type != p.Item.Promise.Type { // no copy: it may be a bad one
						other.Promise = fetch.Promise{Length: -1, Type: other.Promise.Type, Encoding: other.Promise.Encoding}
					}
					it.Others = append(it.Others, other)
				}
			}
			if rec.Has(ledger.FlagUnselected) && a.Obtains.Select.Outside(it) { // of this nothing is in the mirror either, and nothing is fetched
				continue
			}
			entry := p.Item
			if !p.There() || a.told.older { // the list is of an earlier state
				entry = item.Of(rec)
			}
			if !yield(func(ctx context.Context) *asked { return a.askOrigin(ctx, loc, rec, it, entry) }, nil) {
				return
			}
		}
	}
	return obtain.InOrder(ctx, a.Config.Concurrency, jobs, func(q *asked) error {
		switch {
		case q.detail == "":
			return nil
		case q.entry != nil:
			return a.otherAnswer(q.is, q.entry)
		}
		a.sourceDiffers = true
		return a.event(q.loc, rankDifferent, event{Entity: q.is.Entity, Location: q.is.Loc, Detail: q.detail})
	})
}

// askOrigin fetches a recorded resource again; entry is its entry if it has another graph.
func (a *pass) askOrigin(ctx context.Context, loc ledger.Hash, rec *ledger.Record, it, entry *item.Item) *asked {
	q := &asked{loc: loc, is: &ledger.Record{Loc: rec.Loc, Entity: rec.Entity}}
	o := a.Obtains.Obtain(ctx, it)
	switch {
	case o.Err != nil && (ctx.Err() != nil || errors.Is(o.Err, fetch.ErrSourceGone)):
		q.err = o.Err
	case o.Err != nil:
		q.detail = "at the source: " + clip.Middle(o.Err.Error())
	case o.Record.Graph != rec.Graph && !(rec.Has(ledger.FlagNotRDF) && (rec.Graph.IsZero() || o.Record.Graph.IsZero())):
		q.is.Graph, q.is.Normal = o.Record.Graph, o.Record.Normal
		q.entry, q.detail = entry, otherGraph
	case rec.Via == "":
	default:
		if err := a.Obtains.PlaceAllowed(rec.Via); err != nil {
			a.told.unasked.Add(1)
			a.Log.Debug("audit: the first source is not asked", "loc", rec.Loc, "via", rec.Via, "error", err)
			break
		}
		a.told.origins.Add(1)
		q.detail, q.err = a.Obtains.FirstSource(ctx, rec, a.Mirror.Layout.NormalForm)
	}
	return q
}

const otherGraph = "the source gives another graph than is recorded"

// otherAnswer makes a finding of an answer other than the record.
func (a *pass) otherAnswer(rec *ledger.Record, it *item.Item) error {
	a.sourceDiffers = true
	e := event{Entity: rec.Entity, Location: rec.Loc, Detail: otherGraph}
	if !a.SnapshotMeta().IsPast() {
		e.Came, e.Item = a.StateOf(rec).String(), it.Encode()
	}
	return a.event(ledger.HashOf(rec.Loc), rankDifferent, e)
}

// doubt makes an answer pending without a list or change of it: the source may err for a moment. A repair
// in the same run does not take it.
func (a *pass) doubt(ctx context.Context, b kv.Batch, loc ledger.Hash, e *event) (*ledger.Fault, error) {
	f, err := a.Ledger.Fault(ctx, loc)
	if err != nil || f != nil {
		return f, err
	}
	it, err := item.Decode(e.Item)
	if err != nil {
		return nil, err
	}
	came, err := rdfres.ParseDigest(e.Came)
	if err != nil {
		return nil, err
	}
	it.Ask.Tried = true
	f = a.Doubts.Doubtful(ctx, it, loc, "differs from what is recorded, and the source tells of no change", came)
	a.Ledger.PutFault(b, loc, f)
	if a.SnapshotMeta().CompareSource != "" {
		return f, nil
	}
	return f, a.SaveMeta(ctx, func(m *keep.Meta) { m.OweSource("an audit found another description than recorded") })
}
