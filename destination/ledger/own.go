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

// Owned are a resource's triples with one subject: sorted hashes, 16 bytes each.
type Owned struct {
	Subject Hash
	Hashes  []byte
}

// Owning is a resource that owns triples of a subject.
type Owning struct {
	Owner
	Hashes []byte // sorted, 16 bytes each
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
func (l *Ledger) Own(b kv.Batch, loc Hash, o Owned) {
	b.Set(OwnedKey(l.space, o.Subject, l.dest, loc), o.Hashes)
}

// Disown adds to a batch that a resource owns no triple of a subject.
func (l *Ledger) Disown(b kv.Batch, loc, subject Hash) {
	b.Delete(OwnedKey(l.space, subject, l.dest, loc))
}

// DisownAll adds to a batch that a resource owns nothing. It reads the whole index: for a
// resource whose subjects are not known any more.
func (l *Ledger) DisownAll(ctx context.Context, b kv.Batch, loc Hash) error {
	prefix := Key(KindOwned, l.space)
	for pair, err := range l.store.Scan(ctx, prefix, kv.PrefixEnd(prefix)) {
		if err != nil {
			return err
		}
		if _, o, ok := SplitOwned(pair.Key); ok && o == (Owner{l.dest, loc}) {
			b.Delete(slices.Clone(pair.Key))
		}
	}
	return nil
}

// Owners yields the resources that own triples of a subject, of all destinations. Hashes are
// valid until the next step. The sequence ends after the first error.
func (l *Ledger) Owners(ctx context.Context, subject Hash) iter.Seq2[Owning, error] {
	return func(yield func(Owning, error) bool) {
		for pair, err := range l.scanOwned(ctx, l.store, Key(KindOwned, l.space, subject)) {
			if !yield(pair.Owning, err) || err != nil {
				return
			}
		}
	}
}

// SubjectOwning is an entry of the ownership index.
type SubjectOwning struct {
	Subject Hash
	Owning
}

// Index yields the whole ownership index, by subject. Hashes are valid until the next step.
// The sequence ends after the first error.
func (l *Ledger) Index(ctx context.Context, r kv.Reader) iter.Seq2[SubjectOwning, error] {
	return l.scanOwned(ctx, r, Key(KindOwned, l.space))
}

func (l *Ledger) scanOwned(ctx context.Context, r kv.Reader, prefix []byte) iter.Seq2[SubjectOwning, error] {
	return func(yield func(SubjectOwning, error) bool) {
		for pair, err := range r.Scan(ctx, prefix, kv.PrefixEnd(prefix)) {
			var s SubjectOwning
			if err == nil {
				var ok bool
				if s.Subject, s.Owner, ok = SplitOwned(pair.Key); !ok || len(pair.Value)%16 != 0 {
					err = fmt.Errorf("%w: ownership", ErrDamaged)
				}
				s.Hashes = pair.Value
			}
			if !yield(s, err) || err != nil {
				return
			}
		}
	}
}

// GraphOwner reads the owner of a per-entity graph; ok is false for none.
func (l *Ledger) GraphOwner(ctx context.Context, graph string) (o Owner, ok bool, err error) {
	v, err := l.store.Get(ctx, Key(KindGraph, l.space, HashOf(graph)))
	if errors.Is(err, kv.ErrNotFound) {
		return o, false, nil
	}
	if err == nil {
		o, _, err = splitGraph(v)
	}
	return o, err == nil, err
}

// OwnsGraph tells whether a per-entity graph belongs to a resource of this destination.
func (l *Ledger) OwnsGraph(ctx context.Context, graph string, loc Hash) bool {
	o, ok, err := l.GraphOwner(ctx, graph)
	return err == nil && ok && o == Owner{l.dest, loc}
}

// PutGraph adds the owner of a per-entity graph to a batch.
func (l *Ledger) PutGraph(b kv.Batch, graph string, loc Hash) {
	v := binary.BigEndian.AppendUint32(nil, uint32(l.dest))
	b.Set(Key(KindGraph, l.space, HashOf(graph)), append(append(v, loc[:]...), graph...))
}

// DropGraph adds to a batch that nobody owns a per-entity graph.
func (l *Ledger) DropGraph(b kv.Batch, graph string) {
	b.Delete(Key(KindGraph, l.space, HashOf(graph)))
}

// Graph is a per-entity graph and its owner.
type Graph struct {
	Hash  Hash
	Owner Owner
	IRI   string
}

// Graphs yields the per-entity graphs of the space, of all destinations, by hash. The
// sequence ends after the first error.
func (l *Ledger) Graphs(ctx context.Context, r kv.Reader) iter.Seq2[Graph, error] {
	return func(yield func(Graph, error) bool) {
		prefix := Key(KindGraph, l.space)
		for pair, err := range r.Scan(ctx, prefix, kv.PrefixEnd(prefix)) {
			var g Graph
			if err == nil && len(pair.Key) != len(prefix)+16 {
				err = fmt.Errorf("%w: owner of a graph", ErrDamaged)
			}
			if err == nil {
				g.Hash = Hash(pair.Key[len(prefix):])
				g.Owner, g.IRI, err = splitGraph(pair.Value)
			}
			if !yield(g, err) || err != nil {
				return
			}
		}
	}
}

func splitGraph(v []byte) (o Owner, graph string, err error) {
	if len(v) < 20 {
		return o, "", fmt.Errorf("%w: owner of a graph", ErrDamaged)
	}
	return Owner{ID(binary.BigEndian.Uint32(v)), Hash(v[4:20])}, string(v[20:]), nil
}
