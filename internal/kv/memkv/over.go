package memkv

import (
	"bytes"
	"context"
	"iter"
	"slices"
	"sort"
	"sync"

	"github.com/rsbridge/rsbridge/internal/kv"
)

// Over is a store over another one that nobody changes. It is read through; what is written stays in memory,
// and is forgotten with it. Close leaves the other one open.
func Over(base kv.Store) kv.Store { return &draft{base: base} }

type draft struct {
	base kv.Store

	mu     sync.Mutex // guards the fields below
	view   view
	closed bool
}

// view is a state of a draft, and never changes.
type view struct {
	base kv.Reader
	own  *node
	gone []span // keys of base without a value, sorted and disjoint
}

// span is of the keys from lo, without hi; nil: no upper bound.
type span struct{ lo, hi []byte }

func (g span) ends(before []byte) bool { return g.hi != nil && bytes.Compare(g.hi, before) <= 0 }

func (v view) lacks(key []byte) bool {
	i := sort.Search(len(v.gone), func(i int) bool { return !v.gone[i].ends(key) })
	return i < len(v.gone) && bytes.Compare(v.gone[i].lo, key) <= 0
}

func (v view) set(key, value []byte) view {
	v.own = v.own.set(key, value)
	return v
}

func (v view) deleteRange(lo, hi []byte) view {
	if hi != nil && bytes.Compare(lo, hi) >= 0 {
		return v
	}
	v.own = v.own.deleteRange(lo, hi)
	first := sort.Search(len(v.gone), func(i int) bool { g := v.gone[i]; return g.hi == nil || bytes.Compare(g.hi, lo) >= 0 })
	last := first
	for all := (span{lo, hi}); ; last++ {
		if last == len(v.gone) || all.hi != nil && bytes.Compare(v.gone[last].lo, all.hi) > 0 {
			v.gone = slices.Concat(v.gone[:first], []span{all}, v.gone[last:])
			return v
		}
		g := v.gone[last]
		if bytes.Compare(g.lo, all.lo) < 0 {
			all.lo = g.lo
		}
		if g.hi == nil || all.hi != nil && bytes.Compare(g.hi, all.hi) > 0 {
			all.hi = g.hi
		}
	}
}

func (v view) Get(ctx context.Context, key []byte) ([]byte, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if value, ok := v.own.get(key); ok {
		return append([]byte{}, value...), nil
	}
	if v.lacks(key) {
		return nil, kv.ErrNotFound
	}
	return v.base.Get(ctx, key)
}

func (v view) Scan(ctx context.Context, lo, hi []byte) iter.Seq2[kv.Pair, error] {
	return v.scan(ctx, v.base.Scan(ctx, lo, hi), func(visit func(*node) bool) { v.own.ascend(lo, hi, visit) }, bytes.Compare)
}

func (v view) ScanReverse(ctx context.Context, lo, hi []byte) iter.Seq2[kv.Pair, error] {
	return v.scan(ctx, v.base.ScanReverse(ctx, lo, hi), func(visit func(*node) bool) { v.own.descend(lo, hi, visit) },
		func(a, b []byte) int { return bytes.Compare(b, a) })
}

// GetMany asks base for the rest at once.
func (v view) GetMany(ctx context.Context, keys [][]byte) ([][]byte, error) {
	values := make([][]byte, len(keys))
	var rest [][]byte
	var places []int
	for i, key := range keys {
		if value, ok := v.own.get(key); ok {
			values[i] = append([]byte{}, value...)
		} else if !v.lacks(key) {
			rest, places = append(rest, key), append(places, i)
		}
	}
	found, err := kv.GetMany(ctx, v.base, rest)
	if err != nil {
		return nil, err
	}
	for i, value := range found {
		values[places[i]] = value
	}
	return values, nil
}

// ScanMany asks base for all ranges at once.
func (v view) ScanMany(ctx context.Context, ranges []kv.Range) iter.Seq2[kv.Pair, error] {
	return v.scan(ctx, kv.ScanMany(ctx, v.base, ranges), func(visit func(*node) bool) {
		for _, in := range ranges {
			if !v.own.ascend(in.Lo, in.Hi, visit) {
				return
			}
		}
	}, bytes.Compare)
}

// scan merges the pairs of base with the own ones, in the same order.
func (v view) scan(ctx context.Context, base iter.Seq2[kv.Pair, error], own func(visit func(*node) bool), order func(a, b []byte) int) iter.Seq2[kv.Pair, error] {
	return func(yield func(kv.Pair, error) bool) {
		next, stop := iter.Pull2(base)
		defer stop()
		p, err, some := next()
		more := true
		upTo := func(key []byte) bool { // hands out the pairs of base before key, nil: all
			for more && some {
				if err != nil {
					yield(kv.Pair{}, err)
					return false
				}
				c := -1
				if key != nil {
					c = order(p.Key, key)
				}
				if c > 0 {
					return true
				}
				if c < 0 && !v.lacks(p.Key) && !yield(p, nil) {
					return false
				}
				p, err, some = next()
			}
			return true
		}
		var l lent
		own(func(n *node) bool {
			more = upTo(n.key) && l.yield(ctx, n, yield)
			return more
		})
		if more {
			upTo(nil)
		}
	}
}

func (s *draft) now() (view, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return view{}, kv.ErrClosed
	}
	v := s.view
	v.base = s.base
	return v, nil
}

func (s *draft) Get(ctx context.Context, key []byte) ([]byte, error) {
	v, err := s.now()
	if err != nil {
		return nil, err
	}
	return v.Get(ctx, key)
}

func (s *draft) Scan(ctx context.Context, lo, hi []byte) iter.Seq2[kv.Pair, error] {
	return s.seq(func(v view) iter.Seq2[kv.Pair, error] { return v.Scan(ctx, lo, hi) })
}

func (s *draft) ScanReverse(ctx context.Context, lo, hi []byte) iter.Seq2[kv.Pair, error] {
	return s.seq(func(v view) iter.Seq2[kv.Pair, error] { return v.ScanReverse(ctx, lo, hi) })
}

func (s *draft) GetMany(ctx context.Context, keys [][]byte) ([][]byte, error) {
	v, err := s.now()
	if err != nil {
		return nil, err
	}
	return v.GetMany(ctx, keys)
}

func (s *draft) ScanMany(ctx context.Context, ranges []kv.Range) iter.Seq2[kv.Pair, error] {
	return s.seq(func(v view) iter.Seq2[kv.Pair, error] { return v.ScanMany(ctx, ranges) })
}

// seq takes the view at the first step.
func (s *draft) seq(of func(view) iter.Seq2[kv.Pair, error]) iter.Seq2[kv.Pair, error] {
	return func(yield func(kv.Pair, error) bool) {
		v, err := s.now()
		if err != nil {
			yield(kv.Pair{}, err)
			return
		}
		of(v)(yield)
	}
}

func (s *draft) Snapshot(ctx context.Context) kv.Snapshot {
	v, err := s.now()
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return &snapshot{err: err}
	}
	base := s.base.Snapshot(ctx)
	v.base = base
	return &draftSnapshot{v, base.Close}
}

type draftSnapshot struct {
	view
	end func() error
}

func (s *draftSnapshot) Close() error { return s.end() }

func (s *draft) Batch() kv.Batch { return &draftBatch{s: s} }

func (s *draft) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return nil
}

// draftBatch changes the view of a draft.
type draftBatch struct {
	s *draft
	pending[view]
}

func (b *draftBatch) Commit(ctx context.Context, _ bool) error {
	ops := b.take()
	if err := kv.NotBegun(ctx); err != nil {
		return err
	}
	b.s.mu.Lock()
	defer b.s.mu.Unlock()
	if b.s.closed {
		return kv.ErrClosed
	}
	for _, op := range ops {
		b.s.view = op(b.s.view)
	}
	return nil
}
