package embedstore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/rsbridge/rsbridge/internal/kv/guardfs"
	"github.com/rsbridge/rsbridge/rdfres"
)

// TestDiskFails lets the disk fail at some moment for ever, without a warning by
// its free space. Writes end with the cause and never hang, the process lives,
// what was answered is there when the store is opened again, and every write is
// there whole or not at all.
func TestDiskFails(t *testing.T) {
	for _, way := range []string{"small", "bulk", "overlay"} {
		for _, kind := range []string{".log", ".sst", "MANIFEST", ""} {
			for _, after := range []int64{0, 9} {
				t.Run(fmt.Sprintf("%s %s after %d", way, kind, after), func(t *testing.T) {
					t.Parallel()
					testDiskFails(t, way, kind, after)
				})
			}
		}
	}
}

func testDiskFails(t *testing.T, way, kind string, after int64) {
	dir := t.TempDir()
	var armed, frozen atomic.Bool
	var left atomic.Int64
	left.Store(after)
	fs := errorfs.Wrap(vfs.Default, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() != errorfs.OpIsWrite || op.Kind == errorfs.OpFileClose || op.Kind == errorfs.OpFilePreallocate || op.Kind == errorfs.OpRemove {
			return nil
		}
		if frozen.Load() || armed.Load() && strings.Contains(filepath.Base(op.Path), kind) && left.Add(-1) < 0 {
			return &os.PathError{Op: "write", Path: op.Path, Err: syscall.ENOSPC}
		}
		return nil
	}))
	s, err := Open(dir, Options{fs: fs})
	if err != nil {
		t.Fatal(err)
	}
	s.forced.bulk, s.forced.spill = way == "bulk", way == "overlay"
	armed.Store(true)
	ctx := context.Background()
	var confirmed []int
	var failed error
	for i := range 40 {
		var err error
		if way == "overlay" {
			err = s.Update(ctx, fmt.Sprintf("INSERT DATA { %s }", strings.ReplaceAll(document(i), "\n", " ")))
		} else {
			_, err = s.Load(ctx, "", rdfres.NTriples, strings.NewReader(document(i)), LoadOptions{})
		}
		if err != nil {
			failed = err
			continue // one more and one more: each fails or holds
		}
		confirmed = append(confirmed, i)
	}
	if failed == nil && kind == "" {
		t.Fatal("all was written to a disk that fails")
	}
	if failed != nil && !guardfs.IsFull(failed) {
		t.Errorf("%v does not tell the cause", failed)
	}
	if failed != nil && statusOf(failed) != 507 {
		t.Errorf("%v: status %d", failed, statusOf(failed))
	}
	if err := s.Close(); err != nil {
		t.Logf("Close: %v", err)
	}
	frozen.Store(true)
	// A copy is what the next process finds: this one may hold the lock.
	where := t.TempDir()
	for range 3 {
		if err = os.CopyFS(where, os.DirFS(dir)); err == nil || !errors.Is(err, os.ErrNotExist) {
			break
		}
		where = t.TempDir()
	}
	again, err := Open(where, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	snap, err := again.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer snap.Close()
	for i := range 40 {
		n, err := snap.Count(Pattern{S: rdfres.Term(fmt.Sprintf("<http://example.org/%d>", i))})
		if err != nil {
			t.Fatal(err)
		}
		if n != 0 && n != 5 {
			t.Errorf("document %d is there in part: %d triples of 5", i, n)
		}
		for _, c := range confirmed {
			if c == i && n != 5 {
				t.Errorf("document %d was answered and is not there", i)
			}
		}
	}
}

func document(i int) string {
	var b strings.Builder
	for j := range 5 {
		fmt.Fprintf(&b, "<http://example.org/%d> <http://example.org/p%d> \"%d of %d\" .\n", i, j, j, i)
	}
	return b.String()
}
