package kv_test

import (
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/internal/kv/memkv"
	"github.com/rsbridge/rsbridge/internal/kv/pebblekv"
)

// some are n pairs in order, the last one with an error if there is one.
func some(n int, err error) iter.Seq2[kv.Pair, error] {
	return func(yield func(kv.Pair, error) bool) {
		for i := range n {
			last := error(nil)
			if i == n-1 {
				last = err
			}
			if !yield(kv.Pair{Key: fmt.Appendf(nil, "key %08d", i), Value: []byte(strings.Repeat("v", i%100))}, last) {
				return
			}
		}
	}
}

// TestFill: everything is there, or with an error nothing, where the store can do so.
func TestFill(t *testing.T) {
	engine, err := pebblekv.Open(t.Context(), t.TempDir(), pebblekv.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	boom := errors.New("boom")
	if n, err := kv.Fill(t.Context(), engine, some(10, boom)); !errors.Is(err, boom) {
		t.Errorf("%d, %v", n, err)
	}
	if n, err := kv.ReadAll(t.Context(), engine); n != 0 || err != nil {
		t.Errorf("a failed one left %d pairs, %v", n, err)
	}
	for name, s := range map[string]kv.Store{"pebble": engine, "memory": memkv.New()} {
		const pairs = 100_000 // of more than a batch
		if n, err := kv.Fill(t.Context(), s, some(pairs, nil)); n != pairs || err != nil {
			t.Errorf("%s: %d, %v", name, n, err)
		}
		if n, err := kv.ReadAll(t.Context(), s); n != pairs || err != nil {
			t.Errorf("%s: %d pairs, %v", name, n, err)
		}
		if v, err := s.Get(t.Context(), []byte("key 00000099")); len(v) != 99 || err != nil {
			t.Errorf("%s: %q, %v", name, v, err)
		}
		if n, err := kv.Fill(t.Context(), s, some(0, nil)); n != 0 || err != nil {
			t.Errorf("%s: %d, %v", name, n, err)
		}
	}
}
