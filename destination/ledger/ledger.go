package ledger

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/rdfres"
)

// Ledger keeps the records of one destination. Reading is safe beside one writer.
type Ledger struct {
	store       kv.Store
	log         *slog.Logger
	dest, space ID
	state       State // as it was committed; the writer's own

	noFaults, noneLeaving, noDoubts atomic.Bool // known to be so; see Look

	Rest Rest // of doubts

	counting sync.Mutex
	counted  int64        // faults, at the last count
	touched  atomic.Int64 // since then

	mu       sync.Mutex
	replaced map[Hash]bool // nil: not read yet; see Replaced
}

// New opens the records of a destination whose mirror is in a space.
func New(store kv.Store, log *slog.Logger, dest, space ID) *Ledger {
	return &Ledger{store: store, log: log, dest: dest, space: space}
}

// Of opens the records of another destination of the same space.
func (l *Ledger) Of(dest ID) *Ledger { return New(l.store, l.log, dest, l.space) }

// In opens the records of the same destination, whose mirror is in another space.
func (l *Ledger) In(space ID) *Ledger { return New(l.store, l.log, l.dest, space) }

// Forgetful reads the same records and forgets everything that is written.
func (l *Ledger) Forgetful() *Ledger {
	f := New(kv.Forget(l.store), l.log, l.dest, l.space)
	f.state = l.state
	return f
}

// Record reads the record of a resource, nil for none.
func (l *Ledger) Record(ctx context.Context, loc Hash) (*Record, error) {
	raw, err := l.store.Get(ctx, Key(KindResource, l.dest, loc))
	if errors.Is(err, kv.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return DecodeRecord(raw)
}

// atOnce is how many keys are asked for at once.
const atOnce = 500

// RecordsAt reads the records of resources, nil for none.
func RecordsAt(ctx context.Context, l *Ledger, locs []Hash) ([]*Record, error) {
	recs := make([]*Record, 0, len(locs))
	for some := range slices.Chunk(locs, atOnce) {
		raw, err := getMany(ctx, l, KindResource, some)
		if err != nil {
			return nil, err
		}
		for _, b := range raw {
			var rec *Record
			if b != nil {
				if rec, err = DecodeRecord(b); err != nil {
					return nil, err
				}
			}
			recs = append(recs, rec)
		}
	}
	return recs, nil
}

// mostAhead are the triples and the bytes of one resource that are read ahead, at most.
const mostAhead, mostAheadBytes = 1000, 64 << 10

// ReadBodies reads the kept representations of records: their triples are asked for no more. Those of big
// resources, or of unknown size, stay where they are.
func ReadBodies(ctx context.Context, l *Ledger, recs map[Hash]*Record) error {
	var locs []Hash
	for loc, rec := range recs {
		if length, _ := rec.Promised(); length >= 0 && length <= mostAheadBytes && rec.Triples > 0 && rec.Triples <= mostAhead {
			locs = append(locs, loc)
		}
	}
	slices.SortFunc(locs, Hash.Compare)
	raw, err := getMany(ctx, l, KindBody, locs)
	if err != nil {
		return err
	}
	for i, loc := range locs {
		recs[loc].body = raw[i]
	}
	return nil
}

// DropBody forgets what ReadBodies has read.
func (r *Record) DropBody() { r.body = nil }

func getMany(ctx context.Context, l *Ledger, kind byte, locs []Hash) ([][]byte, error) {
	keys := make([][]byte, len(locs))
	for i, loc := range locs {
		keys[i] = Key(kind, l.dest, loc)
	}
	return kv.GetMany(ctx, l.store, keys)
}

// RecordOr is a record, or why it cannot be read.
type RecordOr struct {
	*Record
	Err error
}

// Records yields all records, or those behind a location, in the order of their locations'
// hashes. The sequence ends after the first error.
func (l *Ledger) Records(ctx context.Context, r kv.Reader, behind ...Hash) iter.Seq2[Hash, RecordOr] {
	return func(yield func(Hash, RecordOr) bool) {
		prefix := Key(KindResource, l.dest)
		for pair, err := range r.Scan(ctx, After(KindResource, l.dest, behind...), kv.PrefixEnd(prefix)) {
			var loc Hash
			var rec *Record
			if err == nil {
				copy(loc[:], pair.Key[len(prefix):])
				rec, err = DecodeRecord(pair.Value)
			}
			if !yield(loc, RecordOr{rec, err}) || err != nil {
				return
			}
		}
	}
}

// PutRecord adds a record to a batch.
func (l *Ledger) PutRecord(b kv.Batch, loc Hash, r *Record) {
	b.Set(Key(KindResource, l.dest, loc), r.Encode())
}

// PutBody adds a packed body to a batch; an empty one removes it.
func (l *Ledger) PutBody(b kv.Batch, loc Hash, packed []byte) {
	if k := Key(KindBody, l.dest, loc); len(packed) > 0 {
		b.Set(k, packed)
	} else {
		b.Delete(k)
	}
}

// Drop adds the removal of a record and its body to a batch. Ownership is the caller's.
func (l *Ledger) Drop(b kv.Batch, loc Hash) {
	b.Delete(Key(KindResource, l.dest, loc))
	b.Delete(Key(KindBody, l.dest, loc))
}

// Body reads the kept representation: sorted canonical N-Triples.
func (l *Ledger) Body(ctx context.Context, loc Hash) ([]byte, error) {
	raw, err := l.store.Get(ctx, Key(KindBody, l.dest, loc))
	if err != nil {
		return nil, fmt.Errorf("kept representation: %w", err)
	}
	return Unpack(raw)
}

// Triples reads the kept representation of a record as it stands.
func (l *Ledger) Triples(ctx context.Context, loc Hash, rec *Record) (_ []rdfres.Triple, err error) {
	var wire []byte
	if rec.body != nil {
		wire, err = Unpack(rec.body)
	} else {
		wire, err = l.Body(ctx, loc)
	}
	if err != nil {
		return nil, err
	}
	return ParseWire(wire)
}

// Proven reads the kept representation, and proves it by the recorded digest.
func (l *Ledger) Proven(ctx context.Context, loc Hash, rec *Record) ([]rdfres.Triple, error) {
	if rec.Triples == 0 {
		return nil, nil
	}
	ts, err := l.Triples(ctx, loc, rec)
	if err != nil {
		return nil, err
	}
	want := rec.Graph
	if rec.Has(FlagMapped) {
		want = rec.Made
	}
	if rdfres.GraphDigest(ts) != want {
		return nil, fmt.Errorf("%w: kept representation of %s has another digest than recorded", ErrDamaged, rec.Loc)
	}
	return ts, nil
}
