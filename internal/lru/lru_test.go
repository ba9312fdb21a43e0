package lru

import (
	"context"
	"errors"
	"sync"
	"testing"
)

func TestCache(t *testing.T) {
	c := New(10, func(_ string, v int) int64 { return int64(v) })
	built := 0
	get := func(key string, v int, fail error) (int, error) {
		return c.Get(t.Context(), key, func() (int, error) { built++; return v, fail })
	}
	broken := errors.New("broken")
	for i, step := range []struct {
		key   string
		value int
		fail  error
		built int // in all
		kept  int
	}{
		{"a", 4, nil, 1, 1}, {"a", 4, nil, 1, 1}, {"b", 5, nil, 2, 2}, {"a", 4, nil, 2, 2}, // b is the older one now
		{"c", 3, nil, 3, 2}, {"a", 4, nil, 3, 2}, {"b", 5, nil, 4, 2}, // c has gone
		{"d", 11, nil, 5, 0}, {"d", 11, nil, 6, 0}, // larger than all the room there is
		{"e", 1, broken, 7, 0}, {"e", 1, nil, 8, 1},
	} {
		v, err := get(step.key, step.value, step.fail)
		if err != step.fail || err == nil && v != step.value || built != step.built || c.Len() != step.kept {
			t.Errorf("step %d: %d, %v, %d built, %d kept; want %+v", i, v, err, built, c.Len(), step)
		}
	}
}

// Many ask at once: one builds, the others wait or give up, and the next builds after a
// failure or a panic.
func TestOneBuilds(t *testing.T) {
	c := New(10, func(string, int) int64 { return 1 })
	start, proceed := make(chan struct{}), make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		defer func() { recover() }()
		c.Get(t.Context(), "a", func() (int, error) { close(start); <-proceed; panic("broken") })
	})
	<-start
	gone, leave := context.WithCancel(t.Context())
	leave()
	if _, err := c.Get(gone, "a", func() (int, error) { return 0, nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("a caller that left: %v", err)
	}
	var mu sync.Mutex
	built := 0
	for range 20 {
		all.Go(func() {
			v, err := c.Get(t.Context(), "a", func() (int, error) {
				mu.Lock()
				defer mu.Unlock()
				built++
				return 7, nil
			})
			if v != 7 || err != nil {
				t.Errorf("%d, %v", v, err)
			}
		})
	}
	close(proceed)
	all.Wait()
	if built != 1 {
		t.Errorf("built %d times", built)
	}
}
