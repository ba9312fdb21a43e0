package kv

import (
	"bytes"
	"context"
	"errors"
	"iter"
)

// Many is a Reader that answers many questions in few round trips. The functions GetMany and ScanMany ask any Reader,
// and check the ranges.
//
// A Snapshot answers all of its moment. A Store may answer each key, and each pair also of one range, as of another
// moment: the earliest is that of the call, or of the first step. Ask a snapshot for what belongs together.
type Many interface {
	// GetMany returns the values of keys in their order, nil for a key that is not there. Keys come in any order, also
	// twice. It holds all values in memory, and they are copies. With an error there are none.
	GetMany(ctx context.Context, keys [][]byte) ([][]byte, error)
	// ScanMany yields the pairs of ranges in key order. The ranges ascend and do not overlap; those without keys yield
	// nothing. For the rest it is as Scan: slices are valid until the next step, and the sequence ends after the first
	// error. The end of ctx is one, at the next step.
	ScanMany(ctx context.Context, ranges []Range) iter.Seq2[Pair, error]
}

// Range is of the keys with Lo <= key < Hi; Hi is not nil.
type Range struct{ Lo, Hi []byte }

// ErrRanges comes from ScanMany with ranges that do not ascend, or overlap.
var ErrRanges = errors.New("ranges of keys overlap, or do not ascend")

// ascend tells whether ScanMany takes the ranges.
func ascend(ranges []Range) bool {
	for i, in := range ranges {
		if in.Hi == nil || bytes.Compare(in.Lo, in.Hi) > 0 || i > 0 && bytes.Compare(ranges[i-1].Hi, in.Lo) > 0 {
			return false
		}
	}
	return true
}

// GetMany is that of Many, of any Reader.
func GetMany(ctx context.Context, r Reader, keys [][]byte) ([][]byte, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
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

// ScanMany is that of Many, of any Reader. Ranges that overlap or do not ascend give ErrRanges, and no pair.
func ScanMany(ctx context.Context, r Reader, ranges []Range) iter.Seq2[Pair, error] {
	if !ascend(ranges) {
		return func(yield func(Pair, error) bool) { yield(Pair{}, ErrRanges) }
	}
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

// Asker is a Reader that is asked many questions as it can be. Views of readers embed it.
type Asker struct{ Reader }

var _ Many = Asker{}

func (a Asker) GetMany(ctx context.Context, keys [][]byte) ([][]byte, error) {
	return GetMany(ctx, a.Reader, keys)
}

func (a Asker) ScanMany(ctx context.Context, ranges []Range) iter.Seq2[Pair, error] {
	return ScanMany(ctx, a.Reader, ranges)
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
