package memkv_test

import (
	"errors"
	"testing"

	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/internal/kv/kvtest"
	"github.com/rsbridge/rsbridge/internal/kv/memkv"
)

func TestStore(t *testing.T) {
	kvtest.Run(t, func(testing.TB) kv.Store { return memkv.New() })
}

func TestCrashForgetsWhatWasNotSynced(t *testing.T) {
	s := memkv.New()
	b := s.Batch()
	put := func(key string, sync bool) {
		t.Helper()
		b.Set([]byte(key), []byte("v"))
		if err := b.Commit(t.Context(), sync); err != nil {
			t.Fatal(err)
		}
	}
	put("a", true)
	put("b", false)
	put("c", false)
	if got := s.Unsynced(); got != 2 {
		t.Fatalf("Unsynced() = %d, want 2", got)
	}
	for keep, want := range []string{"a", "ab", "abc"} {
		got := ""
		for p, err := range s.Crash(keep).Scan(t.Context(), nil, nil) {
			if err != nil {
				t.Fatal(err)
			}
			got += string(p.Key)
		}
		if got != want {
			t.Errorf("Crash(%d) holds %q, want %q", keep, got, want)
		}
	}
}

func TestFailCommits(t *testing.T) {
	s := memkv.New()
	full := errors.New("no space left on device")
	s.FailCommits(func(bool) error { return full })
	b := s.Batch()
	b.Set([]byte("a"), nil)
	if err := b.Commit(t.Context(), true); !errors.Is(err, full) {
		t.Fatalf("Commit = %v, want %v", err, full)
	}
	if _, err := s.Get(t.Context(), []byte("a")); !errors.Is(err, kv.ErrNotFound) {
		t.Fatalf("Get after a failed commit = %v, want ErrNotFound", err)
	}
}

// A draft passes the suite over a store of other keys, all of them deleted in the draft, and leaves that
// store as it was.
func TestOver(t *testing.T) {
	base := memkv.New()
	b := base.Batch()
	for _, key := range []string{"\x00", "a", "a7", "ab", "b", "k1", "k2", "o", "p", "p\xff", "p\xffa", "q", "z", "\xff\xff"} {
		b.Set([]byte(key), []byte("of the base"))
	}
	if err := b.Commit(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	count := func(s kv.Store) (n int) {
		for _, err := range s.Scan(t.Context(), nil, nil) {
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
		return n
	}
	kvtest.Run(t, func(t testing.TB) kv.Store {
		s := memkv.Over(base)
		if n := count(s); n != 14 {
			t.Fatalf("%d keys of the base are read through", n)
		}
		b := s.Batch()
		b.DeleteRange([]byte("b"), []byte("p"))
		b.Delete([]byte("a"))
		b.Delete([]byte("a7"))
		b.DeleteRange([]byte("a"), []byte("k2"))
		b.DeleteRange([]byte("p"), nil)
		b.DeleteRange(nil, []byte("a"))
		if err := b.Commit(t.Context(), true); err != nil {
			t.Fatal(err)
		}
		return s
	})
	if n := count(base); n != 14 {
		t.Fatalf("%d keys are left in the base", n)
	}
}
