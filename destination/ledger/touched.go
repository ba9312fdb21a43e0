package ledger

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"

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

// Span numbers the times between places to go back to.
type Span uint32

func (l *Ledger) touchedKey(s Span) []byte {
	return binary.BigEndian.AppendUint32(Key(KindTouched, l.dest), uint32(s))
}

// Touch keeps the states of resources, by record and fault, unless they were touched before in this span.
func (l *Ledger) Touch(ctx context.Context, b kv.Batch, s Span, locs []Hash, was func(*Record, *Fault) *Touched) error {
	for some := range slices.Chunk(locs, atOnce) {
		keys := make([][]byte, len(some))
		for i, loc := range some {
			keys[i] = append(l.touchedKey(s), loc[:]...)
		}
		touched, err := kv.GetMany(ctx, l.store, keys)
		if err != nil {
			return err
		}
		var first []Hash
		for i, loc := range some {
			if touched[i] == nil {
				first = append(first, loc)
			}
		}
		recs, err := RecordsAt(ctx, l, first)
		if err != nil {
			return err
		}
		for i, loc := range first {
			f, err := l.Fault(ctx, loc)
			if err != nil {
				return err
			}
			raw, err := json.Marshal(was(recs[i], f))
			if err != nil {
				panic("ledger: touched cannot be written: " + err.Error()) // plain fields only
			}
			b.Set(append(l.touchedKey(s), loc[:]...), raw)
		}
	}
	return nil
}

// TouchedOr is a touched resource, or why it cannot be read.
type TouchedOr struct {
	*Touched
	Err error
}

// Touched yields the resources touched since the beginning of a span, each once, as before. The
// sequence ends after the first error.
func (l *Ledger) Touched(ctx context.Context, r kv.Reader, since Span) iter.Seq2[Hash, TouchedOr] {
	return func(yield func(Hash, TouchedOr) bool) {
		var spans []Span
		end := kv.PrefixEnd(Key(KindTouched, l.dest))
		for pair, err := range r.Scan(ctx, l.touchedKey(since), end) {
			var loc Hash
			t, again := &Touched{}, false
			if err == nil {
				at := len(pair.Key) - len(loc)
				copy(loc[:], pair.Key[at:])
				if s := Span(binary.BigEndian.Uint32(pair.Key[at-4:])); len(spans) == 0 || spans[len(spans)-1] != s {
					spans = append(spans, s)
				}
				if err = json.Unmarshal(pair.Value, t); err != nil {
					err = fmt.Errorf("%w: touched: %w", ErrDamaged, err)
				}
			}
			for i := 0; err == nil && i < len(spans)-1 && !again; i++ {
				again, err = l.isTouched(ctx, r, spans[i], loc)
			}
			if !again && !yield(loc, TouchedOr{t, err}) || err != nil {
				return
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

// Untouch adds to a batch that nothing was touched before a span.
func (l *Ledger) Untouch(b kv.Batch, before Span) {
	b.DeleteRange(Key(KindTouched, l.dest), l.touchedKey(before))
}
