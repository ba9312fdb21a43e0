package kv

import (
	"context"
	"errors"
	"iter"
)

// Many is a Reader of another process: it answers many questions in one round trip.
type Many interface {
	// GetMany returns the values of keys in their order, nil for a key that is not there.
	GetMany(ctx context.Context, keys [][]byte) ([][]byte, error)
	// ScanMany yields the pairs of disjoint ranges in key order, as a Scan of each.
	ScanMany(ctx context.Context, ranges []Range) iter.Seq2[Pair, error]
}

// Range is of the keys with Lo <= key < Hi; Hi is not nil.
type Range struct{ Lo, Hi []byte }

// GetMany returns the values of keys in their order, nil for a key that is not there. It holds them all in memory.
func GetMany(ctx context.Context, r Reader, keys [][]byte) ([][]byte, error) {
	if m, ok := r.(Many); ok {
		return m.GetMany(ctx, keys)
	}
	values := make([][]byte, len(keys))
	for i, k := range keys {
		v, err := r.Get(ctx, k)
		switch {
		case errors.Is(err, ErrNotFound):
		case err != nil:
			return nil, err
		default:
			if values[i] = v; v == nil { // an empty one is there
				values[i] = []byte{}
			}
		}
	}
	return values, nil
}

// ScanMany yields the pairs of disjoint ranges in key order. Each range is read as by a Scan of its own.
func ScanMany(ctx context.Context, r Reader, ranges []Range) iter.Seq2[Pair, error] {
	if m, ok := r.(Many); ok {
		return m.ScanMany(ctx, ranges)
	}
	return func(yield func(Pair, error) bool) {
		for _, in := range ranges {
			for p, err := range r.Scan(ctx, in.Lo, in.Hi) {
				if !yield(p, err) || err != nil {
					return
				}
			}
		}
	}
}

func (u under) GetMany(ctx context.Context, keys [][]byte) ([][]byte, error) {
	whole := make([][]byte, len(keys))
	for i, k := range keys {
		whole[i] = concat(u.prefix, k)
	}
	return GetMany(ctx, u.r, whole)
}

func (u under) ScanMany(ctx context.Context, ranges []Range) iter.Seq2[Pair, error] {
	whole := make([]Range, len(ranges))
	for i, in := range ranges {
		whole[i] = Range{concat(u.prefix, in.Lo), concat(u.prefix, in.Hi)}
	}
	return strip(ScanMany(ctx, u.r, whole), len(u.prefix))
}

// Views of other readers ask them.

func (s forgetful) GetMany(ctx context.Context, keys [][]byte) ([][]byte, error) {
	return GetMany(ctx, s.Store, keys)
}

func (s forgetful) ScanMany(ctx context.Context, ranges []Range) iter.Seq2[Pair, error] {
	return ScanMany(ctx, s.Store, ranges)
}

func (f *frozen) GetMany(ctx context.Context, keys [][]byte) ([][]byte, error) {
	return GetMany(ctx, f.Reader, keys)
}

func (f *frozen) ScanMany(ctx context.Context, ranges []Range) iter.Seq2[Pair, error] {
	return ScanMany(ctx, f.Reader, ranges)
}
