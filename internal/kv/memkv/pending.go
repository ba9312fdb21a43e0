package memkv

import "bytes"

// changed is a state with pairs, changed by giving another one.
type changed[T any] interface {
	set(key, value []byte) T
	deleteRange(lo, hi []byte) T
}

// pending are the writes of a batch, in their order.
type pending[T changed[T]] struct {
	ops  []func(T) T
	size int
}

func (p *pending[T]) Set(key, value []byte) {
	k, v := bytes.Clone(key), bytes.Clone(value)
	p.size += len(k) + len(v)
	p.ops = append(p.ops, func(to T) T { return to.set(k, v) })
}

func (p *pending[T]) Delete(key []byte) { p.DeleteRange(key, append(bytes.Clone(key), 0)) }

func (p *pending[T]) DeleteRange(lo, hi []byte) {
	l, h := bytes.Clone(lo), bytes.Clone(hi)
	p.size += len(l) + len(h)
	p.ops = append(p.ops, func(to T) T { return to.deleteRange(l, h) })
}

func (p *pending[T]) Grow(int) {}

func (p *pending[T]) Size() int { return p.size }

// take empties the batch.
func (p *pending[T]) take() []func(T) T {
	ops := p.ops
	p.ops, p.size = nil, 0
	return ops
}

func (p *pending[T]) Close() error {
	p.take()
	return nil
}
