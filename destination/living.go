package destination

import (
	"context"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/destination/pairs"
)

// living tells which resources without an entry are at their addresses still. Nothing is asked before the
// first question. A resource that was not asked for lives: the mirror would lose it.
type living struct {
	d      *Destination
	locs   pairs.Departures
	known  func() string // an address that answers if any does, nil: they do
	once   sync.Once
	first  string // one that lives
	gone   map[ledger.Hash]bool
	silent bool // the addresses answer nothing
	err    error
}

// maxAsked bounds the requests of a run for resources without an entry.
const maxAsked = 1000

func newLiving(d *Destination, locs pairs.Departures) *living { return &living{d: d, locs: locs} }

// one is the address of one that lives, "" for none.
func (l *living) one(ctx context.Context) (string, error) {
	l.once.Do(func() { l.err = l.ask(ctx) })
	return l.first, l.err
}

// is tells of one of them whether it lives.
func (l *living) is(ctx context.Context, loc ledger.Hash) (bool, error) {
	_, err := l.one(ctx)
	return !l.gone[loc], err
}

func (l *living) ask(ctx context.Context) error {
	l.gone = map[ledger.Hash]bool{}
	if l.known != nil {
		if at := l.known(); at == "" || l.d.obtains.Fetch.IsGone(ctx, at) { // what is only in packages is not asked for
			l.silent = true
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
		note := func(gone bool) {
			mu.Lock()
			defer mu.Unlock()
			if gone {
				l.gone[g.Loc] = true
			} else if l.first == "" {
				l.first = rec.Loc
			}
		}
		switch {
		case rec == nil || leaves != nil && leaves.Accepted || !l.d.stand.Holds(rec): // nothing is lost with it
			mu.Lock()
			l.gone[g.Loc] = true
			mu.Unlock()
		case l.silent || asked == maxAsked:
			note(false)
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
