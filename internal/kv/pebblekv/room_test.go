package pebblekv

import (
	"errors"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/rsbridge/rsbridge/internal/kv"
)

// TestSettled: the disk gets full while a commit is written. It fails, and may hold when
// there is room: nothing is written then until the store was opened again, which can be
// done, and shows the commit whole or not at all.
func TestSettled(t *testing.T) {
	var full atomic.Bool
	fs := errorfs.Wrap(vfs.Default, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if full.Load() && op.Kind == errorfs.OpFileWrite && strings.HasSuffix(op.Path, ".log") {
			return &os.PathError{Op: "write", Path: op.Path, Err: syscall.ENOSPC}
		}
		return nil
	}))
	dir := t.TempDir()
	s, err := Open(t.Context(), dir, Options{fs: fs})
	if err != nil {
		t.Fatal(err)
	}
	commit := func(key string) error {
		b := s.Batch()
		defer b.Close()
		b.Set([]byte(key+" 1"), nil)
		b.Set([]byte(key+" 2"), nil)
		return b.Commit(t.Context(), true)
	}
	if err := commit("before"); err != nil {
		t.Fatal(err)
	}
	full.Store(true)
	if err := commit("left"); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("a commit on a full disk: %v", err)
	}
	if err := commit("refused"); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("another one: %v", err)
	}
	if _, err := s.Get(t.Context(), []byte("left 1")); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("it is not known whether the commit holds, and a read says %v", err)
	}
	select {
	case <-s.Settled():
		t.Error("settled on a full disk")
	default:
	}
	full.Store(false)
	<-s.Settled()
	if err := commit("late"); !errors.Is(err, errReopen) {
		t.Errorf("a commit before the store was opened again: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = Open(t.Context(), dir, Options{}); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	there := func(key string) bool {
		_, err1 := s.Get(t.Context(), []byte(key+" 1"))
		_, err2 := s.Get(t.Context(), []byte(key+" 2"))
		if err1 != nil && !errors.Is(err1, kv.ErrNotFound) || (err1 == nil) != (err2 == nil) {
			t.Errorf("%s: %v, %v", key, err1, err2)
		}
		return err1 == nil
	}
	if !there("before") || there("refused") || there("late") {
		t.Errorf("before %v, refused %v, late %v", there("before"), there("refused"), there("late"))
	}
	there("left")
	if err := commit("after"); err != nil || !there("after") {
		t.Error(err)
	}
}
