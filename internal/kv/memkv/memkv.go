// Package memkv is a kv.Store in memory, for tests.
//
// It is strict where the contract of kv is strict: slices given by a scan are
// overwritten at the next step. It can also forget, as a machine does that
// loses power: see Crash.
package memkv

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"sync"

	"github.com/rsbridge/rsbridge/internal/kv"
)

// Store is an ordered key space in memory. The zero value is not usable: New.
type Store struct {
	mu     sync.Mutex // guards the fields below
	root   *node
	since  []*node // roots since the last commit with sync, the synced one first
	closed bool
	fail   func(sync bool) error
}

var (
	_ kv.Store  = (*Store)(nil)
	_ kv.Loader = (*Store)(nil)
)

// New makes an empty store.
func New() *Store { return &Store{since: []*node{nil}} }

// FailCommits lets f decide on every commit from now on: an error means that the
// commit fails with it and writes nothing. nil: no more failures.
func (s *Store) FailCommits(f func(sync bool) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = f
}

// Unsynced is how many commits would be lost in the worst case.
func (s *Store) Unsynced() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.since) - 1
}

// Crash gives what is found after a loss of power that keeps the first keep of
// the commits made since the last one with sync. s itself goes on unchanged.
func (s *Store) Crash(keep int) *Store {
	s.mu.Lock()
	defer s.mu.Unlock()
	root := s.since[min(keep, len(s.since)-1)]
	return &Store{root: root, since: []*node{root}}
}

func (s *Store) now(ctx context.Context) (*reader, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, kv.ErrClosed
	}
	return &reader{s.root}, nil
}

// Get returns a copy of the value, or kv.ErrNotFound.
func (s *Store) Get(ctx context.Context, key []byte) ([]byte, error) {
	r, err := s.now(ctx)
	if err != nil {
		return nil, err
	}
	return r.Get(ctx, key)
}

// Scan yields the pairs with lo <= key < hi in order.
func (s *Store) Scan(ctx context.Context, lo, hi []byte) iter.Seq2[kv.Pair, error] {
	return func(yield func(kv.Pair, error) bool) {
		r, err := s.now(ctx)
		if err != nil {
			yield(kv.Pair{}, err)
			return
		}
		r.Scan(ctx, lo, hi)(yield)
	}
}

// ScanReverse is Scan from the highest key down.
func (s *Store) ScanReverse(ctx context.Context, lo, hi []byte) iter.Seq2[kv.Pair, error] {
	return func(yield func(kv.Pair, error) bool) {
		r, err := s.now(ctx)
		if err != nil {
			yield(kv.Pair{}, err)
			return
		}
		r.ScanReverse(ctx, lo, hi)(yield)
	}
}

// Snapshot is the present moment.
func (s *Store) Snapshot(ctx context.Context) kv.Snapshot {
	r, err := s.now(ctx)
	if err != nil {
		return &snapshot{err: err}
	}
	return &snapshot{reader: *r}
}

// Batch collects writes.
func (s *Store) Batch() kv.Batch { return &batch{s: s} }

// Close ends the use of the store; Crash still gives its contents.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.since = []*node{s.root}
	return nil
}

type reader struct{ root *node }

func (r *reader) Get(ctx context.Context, key []byte) ([]byte, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	v, ok := r.root.get(key)
	if !ok {
		return nil, kv.ErrNotFound
	}
	return append([]byte{}, v...), nil
}

func (r *reader) Scan(ctx context.Context, lo, hi []byte) iter.Seq2[kv.Pair, error] {
	return func(yield func(kv.Pair, error) bool) {
		var p lent
		r.root.ascend(lo, hi, func(n *node) bool { return p.yield(ctx, n, yield) })
	}
}

func (r *reader) ScanReverse(ctx context.Context, lo, hi []byte) iter.Seq2[kv.Pair, error] {
	return func(yield func(kv.Pair, error) bool) {
		var p lent
		r.root.descend(lo, hi, func(n *node) bool { return p.yield(ctx, n, yield) })
	}
}

// lent is a pair, spoiled as soon as the reader may no longer use it.
type lent struct{ key, value []byte }

func (l *lent) yield(ctx context.Context, n *node, yield func(kv.Pair, error) bool) bool {
	if ctx.Err() != nil {
		yield(kv.Pair{}, context.Cause(ctx))
		return false
	}
	l.key = append(l.key[:0], n.key...)
	l.value = append(l.value[:0], n.value...)
	ok := yield(kv.Pair{Key: l.key, Value: l.value}, nil)
	for i := range l.key {
		l.key[i] ^= 0xa5
	}
	for i := range l.value {
		l.value[i] ^= 0xa5
	}
	return ok
}

type snapshot struct {
	reader
	err error
}

func (s *snapshot) Get(ctx context.Context, key []byte) ([]byte, error) {
	if s.err != nil {
		return nil, s.err
	}
	return s.reader.Get(ctx, key)
}

func (s *snapshot) Scan(ctx context.Context, lo, hi []byte) iter.Seq2[kv.Pair, error] {
	if s.err != nil {
		return func(yield func(kv.Pair, error) bool) { yield(kv.Pair{}, s.err) }
	}
	return s.reader.Scan(ctx, lo, hi)
}

func (s *snapshot) ScanReverse(ctx context.Context, lo, hi []byte) iter.Seq2[kv.Pair, error] {
	if s.err != nil {
		return func(yield func(kv.Pair, error) bool) { yield(kv.Pair{}, s.err) }
	}
	return s.reader.ScanReverse(ctx, lo, hi)
}

func (s *snapshot) Close() error {
	s.root, s.err = nil, kv.ErrClosed
	return nil
}

// batch changes the tree of a store.
type batch struct {
	s *Store
	pending[*node]
}

func (b *batch) Commit(ctx context.Context, sync bool) error {
	ops := b.take()
	if err := kv.NotBegun(ctx); err != nil {
		return err
	}
	b.s.mu.Lock()
	defer b.s.mu.Unlock()
	if b.s.closed {
		return kv.ErrClosed
	}
	if b.s.fail != nil {
		if err := b.s.fail(sync); err != nil {
			return err
		}
	}
	root := b.s.root
	for _, op := range ops {
		root = op(root)
	}
	b.s.root = root
	if sync {
		b.s.since = b.s.since[:0]
	}
	b.s.since = append(b.s.since, root)
	return nil
}

// Load collects runs. It is strict about their order.
func (s *Store) Load() kv.Load { return &load{s: s} }

type load struct {
	s    *Store
	runs []*run
}

type run struct {
	b    batch
	last []byte
	err  error
}

func (l *load) Run() kv.Run {
	r := &run{b: batch{s: l.s}}
	l.runs = append(l.runs, r)
	return r
}

func (r *run) Set(key, value []byte) error {
	if r.err == nil && r.last != nil && bytes.Compare(r.last, key) >= 0 {
		r.err = fmt.Errorf("a run of a load: the key %q comes after %q", key, r.last)
	}
	if r.err == nil {
		r.last = bytes.Clone(key)
		r.b.Set(key, value)
	}
	return r.err
}

func (l *load) Commit(ctx context.Context) error {
	all := batch{s: l.s}
	for _, r := range l.runs {
		if r.err != nil {
			return r.err
		}
		all.ops = append(all.ops, r.b.ops...)
	}
	return all.Commit(ctx, true)
}

func (l *load) Close() error {
	l.runs = nil
	return nil
}
