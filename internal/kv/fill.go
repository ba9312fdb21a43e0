package kv

import (
	"context"
	"errors"
	"iter"
)

// fillBytes are written together into a store without a Loader.
const fillBytes = 4 << 20

// Fill writes pairs in the order of their keys into an empty store, durably, and returns their number.
// A Loader takes all or none of them.
func Fill(ctx context.Context, s Store, pairs iter.Seq2[Pair, error]) (n int64, err error) {
	if l, ok := s.(Loader); ok {
		return fillLoad(ctx, l.Load(), pairs)
	}
	b := s.Batch()
	defer func() { err = errors.Join(err, b.Close()) }()
	for p, err := range pairs {
		if err != nil {
			return n, err
		}
		b.Set(p.Key, p.Value)
		if n++; b.Size() >= fillBytes {
			if err := b.Commit(ctx, false); err != nil {
				return n, err
			}
		}
	}
	return n, b.Commit(ctx, true)
}

func fillLoad(ctx context.Context, l Load, pairs iter.Seq2[Pair, error]) (n int64, err error) {
	defer func() { err = errors.Join(err, l.Close()) }()
	run := l.Run()
	for p, err := range pairs {
		if err == nil {
			err = ctx.Err()
		}
		if err == nil {
			err = run.Set(p.Key, p.Value)
		}
		if err != nil {
			return n, err
		}
		n++
	}
	return n, l.Commit(ctx)
}

// ReadAll reads a whole store, and so its checksums. It returns the number of pairs.
func ReadAll(ctx context.Context, s Store) (n int64, err error) {
	snap := s.Snapshot(ctx)
	defer func() { err = errors.Join(err, snap.Close()) }()
	for _, err := range snap.Scan(ctx, nil, nil) {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}
