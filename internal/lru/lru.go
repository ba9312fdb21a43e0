// Package lru keeps what is costly to make, within a bound.
package lru

import (
	"container/list"
	"context"
	"fmt"
	"sync"
)

// Cache keeps values by key, up to a sum of sizes. It lets go of those asked for longest
// ago. Each value is built by one caller at a time.
type Cache[V any] struct {
	sizeOf func(key string, v V) int64
	most   int64

	mu    sync.Mutex // guards all below
	size  int64
	order *list.List // of *item[V], the newest in front
	items map[string]*list.Element
}

type item[V any] struct {
	key   string
	ready chan struct{} // closed when value and err are set
	value V
	err   error
	size  int64
}

// New makes a Cache for values of at most so much in sum.
func New[V any](most int64, sizeOf func(key string, v V) int64) *Cache[V] {
	return &Cache[V]{sizeOf: sizeOf, most: most, order: list.New(), items: map[string]*list.Element{}}
}

// Len is the number of values, those being built included.
func (c *Cache[V]) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.items)
}

// Get gives the value of a key, built if it is not there. A failed build is not kept.
func (c *Cache[V]) Get(ctx context.Context, key string, build func() (V, error)) (V, error) {
	for {
		c.mu.Lock()
		e, found := c.items[key]
		if !found {
			it := &item[V]{key: key, ready: make(chan struct{})}
			e = c.order.PushFront(it)
			c.items[key] = e
			c.mu.Unlock()
			c.fill(e, it, build)
			return it.value, it.err
		}
		c.order.MoveToFront(e)
		c.mu.Unlock()
		it := e.Value.(*item[V])
		select {
		case <-it.ready:
		case <-ctx.Done():
			var none V
			return none, ctx.Err()
		}
		if it.err == nil {
			return it.value, nil
		}
		// The one who built it may have gone away; try it ourselves.
	}
}

func (c *Cache[V]) fill(e *list.Element, it *item[V], build func() (V, error)) {
	ended := false
	defer func() {
		if !ended { // in a panic
			it.err = fmt.Errorf("building the document %s ended in a panic", it.key)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if it.err != nil {
			c.order.Remove(e)
			delete(c.items, it.key)
		} else {
			it.size = c.sizeOf(it.key, it.value)
			c.size += it.size
			for back := c.order.Back(); c.size > c.most && back != nil; {
				old := back.Value.(*item[V])
				prev := back.Prev()
				if old.size > 0 && back != e { // not those being built
					c.size -= old.size
					c.order.Remove(back)
					delete(c.items, old.key)
				}
				back = prev
			}
			if c.size > c.most { // larger than all the room there is
				c.size -= it.size
				c.order.Remove(e)
				delete(c.items, it.key)
			}
		}
		close(it.ready)
	}()
	it.value, it.err = build()
	ended = true
}
