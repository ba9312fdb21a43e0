package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"sync/atomic"
	"time"

	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/rdfres"
)

// Doubt is a resource received without a promise. Later runs ask for it again, rarer and rarer.
type Doubt struct {
	Graph rdfres.Digest `json:"-"`              // the state in doubt; a record of another state has no doubt
	State string        `json:"state"`          // Graph in hexadecimal
	Run   string        `json:"run"`            // the last run that received it
	Since time.Time     `json:"since"`          // the first answer
	Asked time.Time     `json:"asked,omitzero"` // the last one after it
	ETag  string        `json:"etag,omitempty"` // of its location
	Odd   bool          `json:"odd,omitempty"`  // it is asked for more often
	Item  []byte        `json:"item"`           // the source's entry; the feed reads it
}

// leastPause is between two questions for a plausible answer.
const leastPause = time.Hour

// Next is the time of the next question: the answer has then stood twice as long as at the last one. Zero is at
// once.
func (g *Doubt) Next() time.Time {
	pause := g.Asked.Sub(g.Since)
	switch {
	case g.Asked.IsZero():
		return time.Time{}
	case !g.Odd:
		pause = max(pause, leastPause)
	}
	return g.Asked.Add(pause)
}

// Due tells that it is asked again, also after the clock was set back.
func (g *Doubt) Due(now time.Time) bool { return !now.Before(g.Next()) || now.Before(g.Asked) }

// Rest tells until when no doubt is due, so that none is read. A new doubt ends it.
type Rest struct{ until atomic.Int64 }

// Until begins a rest.
func (r *Rest) Until(t time.Time) { r.until.Store(t.UnixNano()) }

// Lasts tells of a rest.
func (r *Rest) Lasts(now time.Time) bool { return now.UnixNano() < r.until.Load() }

// DoubtOr is a doubt, or why it cannot be read.
type DoubtOr struct {
	*Doubt
	Err error
}

// Doubt reads the doubt about a resource, nil for none.
func (l *Ledger) Doubt(ctx context.Context, loc Hash) (*Doubt, error) {
	if l.noDoubts.Load() {
		return nil, nil
	}
	raw, err := l.store.Get(ctx, Key(KindDoubt, l.dest, loc))
	if errors.Is(err, kv.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return decodeDoubt(raw)
}

func decodeDoubt(raw []byte) (*Doubt, error) {
	g := &Doubt{}
	err := json.Unmarshal(raw, g)
	if err == nil {
		g.Graph, err = rdfres.ParseDigest(g.State)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: doubt: %w", ErrDamaged, err)
	}
	return g, nil
}

// Doubts yields all doubts of a consistent state. The sequence ends after the first error.
func (l *Ledger) Doubts(ctx context.Context, r kv.Reader) iter.Seq2[Hash, DoubtOr] {
	return func(yield func(Hash, DoubtOr) bool) {
		if l.noDoubts.Load() {
			return
		}
		prefix := Key(KindDoubt, l.dest)
		for pair, err := range r.Scan(ctx, prefix, kv.PrefixEnd(prefix)) {
			var loc Hash
			var g *Doubt
			if err == nil {
				copy(loc[:], pair.Key[len(prefix):])
				g, err = decodeDoubt(pair.Value)
			}
			if !yield(loc, DoubtOr{g, err}) || err != nil {
				return
			}
		}
	}
}

// PutDoubt adds a doubt to a batch.
func (l *Ledger) PutDoubt(b kv.Batch, loc Hash, g *Doubt) {
	g.State = g.Graph.String()
	raw, err := json.Marshal(g)
	if err != nil {
		panic("ledger: doubt cannot be written: " + err.Error()) // plain fields only
	}
	l.noDoubts.Store(false)
	if g.Asked.IsZero() {
		l.Rest.until.Store(0)
	}
	b.Set(Key(KindDoubt, l.dest, loc), raw)
}

// DropDoubt adds the removal of a doubt to a batch.
func (l *Ledger) DropDoubt(b kv.Batch, loc Hash) {
	if !l.noDoubts.Load() {
		b.Delete(Key(KindDoubt, l.dest, loc))
	}
}

// LookForDoubts notes when there are none, as LookForFaults does.
func (l *Ledger) LookForDoubts(ctx context.Context) error {
	l.noDoubts.Store(false)
	for _, g := range l.Doubts(ctx, l.store) {
		return g.Err
	}
	l.noDoubts.Store(true)
	return nil
}
