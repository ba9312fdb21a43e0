package ledger

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/rsbridge/rsbridge/internal/kv"
)

// A triple of a space belongs to every resource that has it, of any destination, and goes
// with the last one. Ownership is a set of (triple, resource), never a counter, so that
// writing it twice changes nothing.

// Ownership tells which triples and graphs of a space belong to whom, and writes what a
// destination has there.
type Ownership struct {
	store       kv.Store
	dest, space ID
}

// Ownership is the one of the ledger's space.
func (l *Ledger) Ownership() Ownership { return Ownership{l.store, l.dest, l.space} }

// Owned are a resource's triples with one subject: sorted hashes, 16 bytes each.
type Owned struct {
	Subject Hash
	Hashes  []byte
}

// Owning is a resource that owns triples of a subject.
type Owning struct {
	Owner
	Subject Hash
	Hashes  []byte // sorted, 16 bytes each
}

// Find is the position of a hash in a sorted list.
func Find(list []byte, h Hash) (int, bool) {
	lo, hi := 0, len(list)/16
	for lo < hi {
		mid := (lo + hi) / 2
		switch h.Compare(Hash(list[mid*16:])) {
		case 0:
			return mid, true
		case 1:
			lo = mid + 1
		default:
			hi = mid
		}
	}
	return 0, false
}

// Holds tells whether a sorted list has a hash.
func Holds(list []byte, h Hash) bool {
	_, ok := Find(list, h)
	return ok
}

// Own adds to a batch the triples of a subject that a resource owns.
func (w Ownership) Own(b kv.Batch, loc Hash, o Owned) {
	b.Set(OwnedKey(w.space, o.Subject, w.dest, loc), o.Hashes)
}

// Disown adds to a batch that a resource owns no triple of a subject.
func (w Ownership) Disown(b kv.Batch, loc, subject Hash) {
	b.Delete(OwnedKey(w.space, subject, w.dest, loc))
}

// DisownAll adds to a batch that a resource owns nothing. It reads the whole index: for a
// resource whose subjects are not known any more.
func (w Ownership) DisownAll(ctx context.Context, b kv.Batch, loc Hash) error {
	prefix := Key(KindOwned, w.space)
	for pair, err := range w.store.Scan(ctx, prefix, kv.PrefixEnd(prefix)) {
		if err != nil {
			return err
		}
		if _, o, ok := SplitOwned(pair.Key); ok && o == (Owner{w.dest, loc}) {
			b.Delete(slices.Clone(pair.Key))
		}
	}
	return nil
}

// Owners yields the resources that own triples of subjects, of all destinations. Hashes are
// valid until the next step. The sequence ends after the first error.
func (w Ownership) Owners(ctx context.Context, subjects ...Hash) iter.Seq2[Owning, error] {
	return func(yield func(Owning, error) bool) {
		ranges := make([]kv.Range, len(subjects))
		for i, subject := range subjects {
			prefix := Key(KindOwned, w.space, subject)
			ranges[i] = kv.Range{Lo: prefix, Hi: kv.PrefixEnd(prefix)}
		}
		for pair, err := range kv.ScanMany(ctx, w.store, ranges) {
			o := Owning{Hashes: pair.Value}
			if err == nil {
				var ok bool
				if o.Subject, o.Owner, ok = SplitOwned(pair.Key); !ok || len(pair.Value)%16 != 0 {
					err = fmt.Errorf("%w: ownership", ErrDamaged)
				}
			}
			if !yield(o, err) || err != nil {
				return
			}
		}
	}
}

// GraphOwner reads the owner of a per-entity graph; ok is false for none.
func (w Ownership) GraphOwner(ctx context.Context, graph string) (o Owner, ok bool, err error) {
	v, err := w.store.Get(ctx, Key(KindGraph, w.space, HashOf(graph)))
	if errors.Is(err, kv.ErrNotFound) {
		return o, false, nil
	}
	if err == nil {
		o, _, err = splitGraph(v)
	}
	return o, err == nil, err
}

// OwnsGraph tells whether a per-entity graph belongs to a resource of this destination.
func (w Ownership) OwnsGraph(ctx context.Context, graph string, loc Hash) bool {
	o, ok, err := w.GraphOwner(ctx, graph)
	return err == nil && ok && o == Owner{w.dest, loc}
}

// PutGraph adds the owner of a per-entity graph to a batch.
func (w Ownership) PutGraph(b kv.Batch, graph string, loc Hash) {
	v := binary.BigEndian.AppendUint32(nil, uint32(w.dest))
	b.Set(Key(KindGraph, w.space, HashOf(graph)), append(append(v, loc[:]...), graph...))
}

// DropGraph adds to a batch that nobody owns a per-entity graph.
func (w Ownership) DropGraph(b kv.Batch, graph string) {
	b.Delete(Key(KindGraph, w.space, HashOf(graph)))
}

func splitGraph(v []byte) (o Owner, graph string, err error) {
	if len(v) < 20 {
		return o, "", fmt.Errorf("%w: owner of a graph", ErrDamaged)
	}
	return Owner{ID(binary.BigEndian.Uint32(v)), Hash(v[4:20])}, string(v[20:]), nil
}

// GraphRecord is the owner of a per-entity graph, as recorded.
type GraphRecord struct {
	Hash  Hash
	Dest  ID
	Graph string
}

// GraphRecords yields the owned graphs of a space, by their hashes.
func GraphRecords(ctx context.Context, snap kv.Reader, space ID) iter.Seq2[*GraphRecord, error] {
	return func(yield func(*GraphRecord, error) bool) {
		prefix := Key(KindGraph, space)
		for pair, err := range snap.Scan(ctx, prefix, kv.PrefixEnd(prefix)) {
			if err == nil && (len(pair.Value) < 20 || len(pair.Key) != len(prefix)+16) {
				err = fmt.Errorf("%w: owner of a graph", ErrDamaged)
			}
			if err != nil {
				yield(nil, err)
				return
			}
			r := &GraphRecord{Hash: Hash(pair.Key[len(prefix):]), Dest: ID(binary.BigEndian.Uint32(pair.Value)), Graph: string(pair.Value[20:])}
			if !yield(r, nil) {
				return
			}
		}
	}
}
