package kv_test

import (
	"errors"
	"testing"

	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/internal/kv/memkv"
)

func TestForget(t *testing.T) {
	store := memkv.New()
	b := store.Batch()
	b.Set([]byte("a"), []byte("1"))
	if err := errors.Join(b.Commit(t.Context(), true), b.Close()); err != nil {
		t.Fatal(err)
	}
	view := kv.Forget(store)
	b = view.Batch()
	b.Set([]byte("b"), []byte("2"))
	b.Delete([]byte("a"))
	if err := b.Commit(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	if n := b.Size(); n != view.Batch().Size() {
		t.Errorf("a batch holds %d bytes after its commit", n)
	}
	b.DeleteRange(nil, nil)
	if err := errors.Join(b.Commit(t.Context(), true), b.Close(), view.Close()); err != nil {
		t.Fatal(err)
	}
	for _, s := range []kv.Store{view, store} {
		if v, err := s.Get(t.Context(), []byte("a")); string(v) != "1" || err != nil {
			t.Errorf("a is %q, %v", v, err)
		}
		if _, err := s.Get(t.Context(), []byte("b")); !errors.Is(err, kv.ErrNotFound) {
			t.Errorf("b is there: %v", err)
		}
	}
}
