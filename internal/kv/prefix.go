package kv

import (
	"bytes"
	"context"
	"iter"
)

// Prefix is a view of the keys below prefix; the prefix is neither seen nor
// written by the caller. Views can be nested. Close of a view does nothing: the
// underlying store belongs to its opener.
func Prefix(s Store, prefix []byte) Store {
	root, base := unwrap(s)
	return &prefixStore{under{root, concat(base, prefix)}, root}
}

// Join is a view of batch b that writes into the key space of s. b may come from
// any store that is cut from the same underlying store as s. Commit of any of
// the views, or of b, commits them all at once; Close of a view does nothing.
func Join(s Store, b Batch) Batch {
	_, prefix := unwrap(s)
	if p, ok := b.(*prefixBatch); ok {
		b = p.root
	}
	return &prefixBatch{root: b, prefix: prefix, joined: true}
}

// PrefixEnd is the smallest key greater than all keys with this prefix, nil if none.
func PrefixEnd(prefix []byte) []byte {
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] != 0xff {
			end := bytes.Clone(prefix[:i+1])
			end[i]++
			return end
		}
	}
	return nil
}

func unwrap(s Store) (root Store, prefix []byte) {
	if p, ok := s.(*prefixStore); ok {
		return p.root, p.prefix
	}
	return s, nil
}

func concat(a, b []byte) []byte {
	out := make([]byte, 0, len(a)+len(b))
	return append(append(out, a...), b...)
}

// bounds places a range of the view in the store below.
func bounds(prefix, lo, hi []byte) (from, to []byte) {
	if hi == nil {
		return concat(prefix, lo), PrefixEnd(prefix)
	}
	return concat(prefix, lo), concat(prefix, hi)
}

// under reads below a prefix.
type under struct {
	r      Reader
	prefix []byte
}

func (u under) Get(ctx context.Context, key []byte) ([]byte, error) {
	return u.r.Get(ctx, concat(u.prefix, key))
}

func (u under) Scan(ctx context.Context, lo, hi []byte) iter.Seq2[Pair, error] {
	from, to := bounds(u.prefix, lo, hi)
	return strip(u.r.Scan(ctx, from, to), len(u.prefix))
}

func (u under) ScanReverse(ctx context.Context, lo, hi []byte) iter.Seq2[Pair, error] {
	from, to := bounds(u.prefix, lo, hi)
	return strip(u.r.ScanReverse(ctx, from, to), len(u.prefix))
}

func strip(seq iter.Seq2[Pair, error], n int) iter.Seq2[Pair, error] {
	if n == 0 {
		return seq
	}
	return func(yield func(Pair, error) bool) {
		for p, err := range seq {
			if err == nil {
				p.Key = p.Key[n:]
			}
			if !yield(p, err) {
				return
			}
		}
	}
}

type prefixStore struct {
	under
	root Store
}

var _ Store = (*prefixStore)(nil)

func (p *prefixStore) Snapshot(ctx context.Context) Snapshot {
	s := p.root.Snapshot(ctx)
	return &prefixSnapshot{under{s, p.prefix}, s}
}
func (p *prefixStore) Batch() Batch {
	return &prefixBatch{root: p.root.Batch(), prefix: p.prefix}
}
func (p *prefixStore) Close() error { return nil }

type prefixSnapshot struct {
	under
	root Snapshot
}

func (p *prefixSnapshot) Close() error { return p.root.Close() }

type prefixBatch struct {
	root   Batch
	prefix []byte
	joined bool // closed by its owner, somebody else
}

func (p *prefixBatch) Set(key, value []byte) { p.root.Set(concat(p.prefix, key), value) }
func (p *prefixBatch) Delete(key []byte)     { p.root.Delete(concat(p.prefix, key)) }
func (p *prefixBatch) DeleteRange(lo, hi []byte) {
	p.root.DeleteRange(bounds(p.prefix, lo, hi))
}
func (p *prefixBatch) Grow(bytes int)                              { p.root.Grow(bytes) }
func (p *prefixBatch) Size() int                                   { return p.root.Size() }
func (p *prefixBatch) Commit(ctx context.Context, sync bool) error { return p.root.Commit(ctx, sync) }
func (p *prefixBatch) Close() error {
	if p.joined {
		return nil
	}
	return p.root.Close()
}

// BeginLoad begins a load into the key space of s; ok is false where the store
// cannot load.
func BeginLoad(s Store) (l Load, ok bool) {
	root, prefix := unwrap(s)
	loader, ok := root.(Loader)
	if !ok {
		return nil, false
	}
	return prefixLoad{loader.Load(), prefix}, true
}

type prefixLoad struct {
	Load
	prefix []byte
}

func (p prefixLoad) Run() Run {
	return &prefixRun{p.Load.Run(), bytes.Clone(p.prefix), len(p.prefix)}
}

type prefixRun struct {
	root Run
	key  []byte
	cut  int
}

func (p *prefixRun) Set(key, value []byte) error {
	p.key = append(p.key[:p.cut], key...)
	return p.root.Set(p.key, value)
}
