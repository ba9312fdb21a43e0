package destination

import (
	"cmp"
	"context"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/rsbridge/rsbridge/destination/feed"
	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/destination/obtain"
	"github.com/rsbridge/rsbridge/destination/pairs"
	"github.com/rsbridge/rsbridge/internal/clip"
	"github.com/rsbridge/rsbridge/rdfres"
)

// living asks resources without an entry for a sign of life at their addresses. Nothing is asked before the
// first question. A resource not asked for lives: the mirror would lose it.
type living struct {
	d      *Destination
	locs   pairs.Departures
	lost   map[ledger.Hash]bool
	known  func() string // an answering address if any answers, nil: they do
	silent bool          // the addresses answer nothing
	once   sync.Once
	first  string // a living one, and its answer
	gone   map[ledger.Hash]bool
	err    error

	mu    sync.Mutex
	fresh string // a resource of a change, perhaps a list of them
	named map[ledger.Hash]string
}

// maxAsked bounds the requests of a run for resources without an entry.
const maxAsked = 1000

func newLiving(d *Destination, locs pairs.Departures) *living {
	l := &living{d: d, locs: locs, lost: make(map[ledger.Hash]bool, len(locs)), gone: map[ledger.Hash]bool{}, named: map[ledger.Hash]string{}}
	for _, g := range locs {
		l.lost[g.Loc] = true
	}
	return l
}

// One names a living one with its answer, "" for none.
func (l *living) One(ctx context.Context) (string, error) {
	l.once.Do(func() { l.err = l.ask(ctx) })
	return l.first, l.err
}

// Named notes the resources named by a new entry. It stays one itself.
func (l *living) Named(ts []rdfres.Triple, entry string) {
	note := func(address string) {
		if loc := ledger.HashOf(address); l.lost[loc] {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.named[loc] = cmp.Or(l.named[loc], entry)
		}
	}
	for _, t := range ts {
		for _, x := range [2]rdfres.Term{t.S, t.O} {
			switch x.Kind() {
			case rdfres.KindIRI:
				note(x.IRI())
			case rdfres.KindLiteral:
				text, _, _ := x.Literal()
				note(text)
			}
		}
	}
}

// see looks at a listed and recorded resource. One of a change since the last list was never seen beside the
// losses of this one.
func (l *living) see(ctx context.Context, listed time.Time, p *pairs.Pair) error {
	rec := p.Record
	if len(l.lost) == 0 || !rec.Time.After(listed) || rec.Unselected() > 0 || p.File() || !obtain.HoldsAddresses(p.Item.Promise.Type) {
		return nil
	}
	bare := rec.Has(ledger.FlagNotRDF) || rec.Graph == rdfres.GraphDigest(nil)
	if rec.Triples > 0 {
		ts, err := l.d.mem.Ledger.Triples(ctx, p.Loc, rec)
		if err != nil {
			return err
		}
		l.Named(ts, rec.Loc)
		bare = obtain.IsBare(ts)
	}
	if bare {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.fresh = cmp.Or(l.fresh, rec.Loc)
	}
	return nil
}

// leaving is how one of them leaves. It waits while it lives beside a possible list.
func (l *living) leaving(ctx context.Context, loc ledger.Hash, unread *feed.Unread) (ledger.Leaving, error) {
	how := ledger.Leaving{Implied: true, By: cmp.Or(l.named[loc], l.fresh)}
	if how.By == "" {
		was, err := l.d.mem.Ledger.Leaving(ctx, loc)
		if err != nil {
			return how, err
		}
		if was != nil && was.By != "" && !l.lost[ledger.HashOf(was.By)] && !l.d.mem.Ledger.Lacks(ctx, ledger.HashOf(was.By)) {
			how.By = was.By
		}
	}
	if how.By == "" && !unread.Asks() {
		return how, nil
	}
	_, err := l.One(ctx)
	how.Unread = !l.gone[loc]
	return how, err
}

func (l *living) ask(ctx context.Context) error {
	if l.known != nil {
		at := l.known()
		if l.silent = at == ""; !l.silent { // members of packages alone are not asked for
			l.silent, _ = l.d.obtains.Fetch.IsGone(ctx, at)
		}
	}
	var mu sync.Mutex
	asks, actx := errgroup.WithContext(ctx)
	asks.SetLimit(l.d.cfg.Concurrency)
	asked := 0
	for _, g := range l.locs {
		rec, err := l.d.mem.Ledger.Record(ctx, g.Loc)
		if err != nil {
			return err
		}
		leaves, err := l.d.mem.Ledger.Leaving(ctx, g.Loc)
		if err != nil {
			return err
		}
		note := func(gone bool, answer string) {
			mu.Lock()
			defer mu.Unlock()
			if gone {
				l.gone[g.Loc] = true
			} else if l.first == "" {
				l.first = clip.Middle(rec.Loc) + " has lost its entry and " + answer
			}
		}
		switch {
		case rec == nil || leaves != nil && leaves.Accepted || !l.d.stand.Holds(rec): // nothing is lost with it
			note(true, "")
		case l.silent || asked == maxAsked:
			note(false, "was not asked")
		default:
			asked++
			asks.Go(func() error {
				note(l.d.obtains.Fetch.IsGone(actx, rec.Loc))
				return actx.Err()
			})
		}
	}
	return asks.Wait()
}
