package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"

	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/rdfres"
)

// Touched is a resource as it was before the first operation on it since a position.
type Touched struct {
	State   string `json:"state,omitempty"`   // its digest in hexadecimal, "" without a part in the mirror
	Item    []byte `json:"item,omitempty"`    // how to ask for it, none for an unknown resource; the feed reads it
	Pending bool   `json:"pending,omitempty"` // it had failed: the state lacks Item
}

// Is tells whether a resource, with a record and its digest, is as it was.
func (t *Touched) Is(rec *Record, state rdfres.Digest) bool {
	is := rec != nil && !rec.Has(FlagKept)
	if state == (rdfres.Digest{}) {
		return !is && t.Item == nil
	}
	return t.State == state.String()
}

// Span is the time of a Touched: the last poll with changes, or the open gap.
type Span byte

const (
	SincePoll Span = 1
	SinceGap  Span = 2
)

func (l *Ledger) touchedKey(s Span) []byte { return append(Key(KindTouched, l.dest), byte(s)) }

// Touch keeps the state of a resource, unless it was touched before.
func (l *Ledger) Touch(ctx context.Context, b kv.Batch, s Span, loc Hash, was func() (*Touched, error)) error {
	if is, err := l.isTouched(ctx, l.store, s, loc); is || err != nil {
		return err
	}
	t, err := was()
	if err != nil {
		return err
	}
	raw, err := json.Marshal(t)
	if err != nil {
		panic("ledger: touched cannot be written: " + err.Error()) // plain fields only
	}
	b.Set(append(l.touchedKey(s), loc[:]...), raw)
	return nil
}

// TouchedOr is a touched resource, or why it cannot be read.
type TouchedOr struct {
	*Touched
	Err error
}

// Touched yields the resources touched in some spans, each once, as before the first of them. The
// sequence ends after the first error.
func (l *Ledger) Touched(ctx context.Context, r kv.Reader, spans ...Span) iter.Seq2[Hash, TouchedOr] {
	return func(yield func(Hash, TouchedOr) bool) {
		for i, s := range spans {
			prefix := l.touchedKey(s)
			for pair, err := range r.Scan(ctx, prefix, kv.PrefixEnd(prefix)) {
				var loc Hash
				t, again := &Touched{}, false
				if err == nil {
					copy(loc[:], pair.Key[len(prefix):])
					if err = json.Unmarshal(pair.Value, t); err != nil {
						err = fmt.Errorf("%w: touched: %w", ErrDamaged, err)
					}
				}
				for j := 0; err == nil && j < i && !again; j++ {
					again, err = l.isTouched(ctx, r, spans[j], loc)
				}
				if !again && !yield(loc, TouchedOr{t, err}) || err != nil {
					return
				}
			}
		}
	}
}

func (l *Ledger) isTouched(ctx context.Context, r kv.Reader, s Span, loc Hash) (bool, error) {
	_, err := r.Get(ctx, append(l.touchedKey(s), loc[:]...))
	if errors.Is(err, kv.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// Untouch adds to a batch that nothing is touched yet in a span.
func (l *Ledger) Untouch(b kv.Batch, s Span) {
	b.DeleteRange(l.touchedKey(s), kv.PrefixEnd(l.touchedKey(s)))
}
