package ledger

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/rsbridge/rsbridge/internal/kv"
)

// destKinds are the kinds of records below a destination, spaceKinds below a space.
var (
	destKinds  = []byte{KindResource, KindBody, KindFault, KindFaults, KindIntent, KindDiff, KindPast, KindGhost, KindOther, KindFile, KindLeaving, KindDoubt, KindTouched, KindMeta}
	spaceKinds = []byte{KindOwned, KindGraph, KindRewritten, KindForm}
)

// Extent is how much there is of a destination.
type Extent struct {
	Records   int64 // of all kinds
	Resources int64 // of them
	Files     int64 // non-RDF resources with a file
	Triples   int64 // owned by this destination alone
}

// Extent counts the records of the destination, and its triples.
func (l *Ledger) Extent(ctx context.Context) (e Extent, err error) {
	snap := l.store.Snapshot(ctx)
	defer snap.Close()
	e.Records = 1 // its name
	for _, kind := range destKinds {
		prefix := Key(kind, l.dest)
		for pair, err := range snap.Scan(ctx, prefix, kv.PrefixEnd(prefix)) {
			if err != nil {
				return e, err
			}
			switch e.Records++; {
			case kind == KindResource:
				e.Resources++
			case kind == KindOther && len(pair.Value) > 0:
				e.Files++
			}
			if e.Records%4096 == 0 && ctx.Err() != nil {
				return e, ctx.Err()
			}
		}
	}
	var subject Hash
	ours, others := map[Hash]bool{}, map[Hash]bool{} // of one subject
	settle := func() {
		for h := range ours {
			if !others[h] {
				e.Triples++
			}
		}
		clear(ours)
		clear(others)
	}
	n := 0
	prefix := Key(KindOwned, l.space)
	for pair, err := range snap.Scan(ctx, prefix, kv.PrefixEnd(prefix)) {
		if n++; err == nil && n%4096 == 0 {
			err = ctx.Err()
		}
		if err != nil {
			return e, err
		}
		subj, o, ok := SplitOwned(pair.Key)
		if !ok || len(pair.Value)%16 != 0 {
			continue // a comparison tells of it
		}
		if subj != subject {
			settle()
			subject = subj
		}
		into := others
		if o.Dest == l.dest {
			e.Records++
			into = ours
		}
		for h := range slices.Chunk(pair.Value, 16) {
			into[Hash(h)] = true
		}
	}
	settle()
	for _, err := range l.inSpace(ctx, snap, KindGraph) {
		if err != nil {
			return e, err
		}
		e.Records++
	}
	return e, nil
}

// inSpace yields the records of the destination in its space, of some kinds.
func (l *Ledger) inSpace(ctx context.Context, r kv.Reader, kinds ...byte) iter.Seq2[kv.Pair, error] {
	return func(yield func(kv.Pair, error) bool) {
		for _, kind := range kinds {
			prefix := Key(kind, l.space)
			for pair, err := range r.Scan(ctx, prefix, kv.PrefixEnd(prefix)) {
				var o Owner
				if err == nil && kind == KindOwned {
					_, o, _ = SplitOwned(pair.Key)
				} else if err == nil {
					o, _, _ = splitGraph(pair.Value)
				}
				if (err != nil || o.Dest == l.dest) && (!yield(pair, err) || err != nil) {
					return
				}
			}
		}
	}
}

// Alone tells whether no other destination writes into a space.
func (l *Ledger) Alone(ctx context.Context, space ID) (bool, error) {
	for k, err := range All(ctx, l.store) {
		if err != nil || k.Space == space && k.Dest != l.dest {
			return false, err
		}
	}
	return true, nil
}

// Forget removes all records of the destination, and those of its space if nobody else
// writes there. It may be repeated. The caller has LockNumbers.
func (l *Ledger) Forget(ctx context.Context, name string) error {
	alone, err := l.Alone(ctx, l.space)
	if err != nil {
		return err
	}
	if !alone {
		if err := l.LeaveSpace(ctx); err != nil {
			return err
		}
	}
	b := l.store.Batch()
	defer b.Close()
	for _, kind := range destKinds {
		b.DeleteRange(Key(kind, l.dest), kv.PrefixEnd(Key(kind, l.dest)))
	}
	if alone {
		if err := l.DropSpace(ctx, b); err != nil {
			return err
		}
	}
	b.Delete(NameKey(KindDestName, name))
	if err := b.Commit(ctx, true); err != nil {
		return fmt.Errorf("write the records: %w", err)
	}
	return nil
}

// CopySpace copies the entries of the destination to the index of another space.
func (l *Ledger) CopySpace(ctx context.Context, to ID) error {
	b := l.store.Batch()
	defer b.Close()
	snap := l.store.Snapshot(ctx)
	defer snap.Close()
	for pair, err := range l.inSpace(ctx, snap, KindOwned, KindGraph) {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		b.Set(append(Key(pair.Key[0], to), pair.Key[5:]...), pair.Value)
		if b.Size() > 4<<20 {
			if err := b.Commit(ctx, false); err != nil {
				return err
			}
		}
	}
	return b.Commit(ctx, true)
}

// LeaveSpace removes the entries of the destination from an index that others use.
func (l *Ledger) LeaveSpace(ctx context.Context) error {
	b := l.store.Batch()
	defer b.Close()
	snap := l.store.Snapshot(ctx)
	defer snap.Close()
	for pair, err := range l.inSpace(ctx, snap, KindOwned, KindGraph) {
		if err != nil {
			return err
		}
		if b.Delete(pair.Key); b.Size() > 4<<20 {
			if err := b.Commit(ctx, false); err != nil {
				return err
			}
		}
	}
	return b.Commit(ctx, true)
}

// DropSpace adds to a batch the removal of a space without destinations. The findings of a store's probe go with
// its last space.
func (l *Ledger) DropSpace(ctx context.Context, b kv.Batch) error {
	all, err := Spaces(ctx, l.store)
	if err != nil {
		return err
	}
	s := all[l.space]
	for _, kind := range spaceKinds {
		b.DeleteRange(Key(kind, l.space), kv.PrefixEnd(Key(kind, l.space)))
	}
	b.Delete(s.key())
	delete(all, l.space)
	for _, other := range all {
		if other.Target == s.Target {
			return nil
		}
	}
	b.Delete(NameKey(KindProbe, s.Target))
	return nil
}
