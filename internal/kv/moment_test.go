package kv_test

import (
	"errors"
	"testing"

	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/internal/kv/kvtest"
	"github.com/rsbridge/rsbridge/internal/kv/memkv"
)

// TestMoment: a moment keeps one snapshot for all, from the first write to its last holder.
func TestMoment(t *testing.T) {
	s := &kvtest.Full{Store: memkv.New(), Left: 10}
	set := func(value string) {
		b := s.Batch()
		defer b.Close()
		b.Set([]byte("a"), []byte(value))
		if err := b.Commit(t.Context(), true); err != nil {
			t.Fatal(err)
		}
	}
	holds := func(snap kv.Snapshot, want string) {
		t.Helper()
		if v, err := snap.Get(t.Context(), []byte("a")); string(v) != want || err != nil {
			t.Errorf("a is %q, %v; want %q", v, err, want)
		}
	}
	open := func(want int) {
		t.Helper()
		if s.Open != want {
			t.Errorf("%d snapshots are open, want %d", s.Open, want)
		}
	}
	set("1")
	m := kv.NewMoment(s)
	m.Hold()
	early := m.Snapshot(t.Context())
	open(1)
	if err := early.Close(); err != nil {
		t.Fatal(err)
	}
	open(0) // nothing is held while nothing is written

	early = m.Snapshot(t.Context())
	m.Freeze(t.Context())
	m.Freeze(t.Context())
	set("2")
	late, other := m.Snapshot(t.Context()), m.Snapshot(t.Context())
	open(2)
	for _, snap := range []kv.Snapshot{early, late, other} {
		holds(snap, "1")
	}
	if err := errors.Join(m.Release(), m.Release(), early.Close(), other.Close(), other.Close()); err != nil {
		t.Fatal(err)
	}
	open(1)
	holds(late, "1")
	if err := late.Close(); err != nil {
		t.Fatal(err)
	}
	open(0)
}
