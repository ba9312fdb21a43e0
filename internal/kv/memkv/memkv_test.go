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
