package embedstore

import (
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/rsbridge/rsbridge/internal/kv/guardfs"
	"github.com/rsbridge/rsbridge/rdfres"
)

// TestRoomIsMade fills the disk under each kind of file while updates run, and makes room:
// the store goes on by itself, what was answered is there, and what failed is there whole
// or not at all.
func TestRoomIsMade(t *testing.T) {
	for _, kind := range []string{".log", ".sst", "MANIFEST", ""} {
		for _, way := range []string{"small", "bulk", "overlay"} {
			t.Run(kind+" "+way, func(t *testing.T) {
				t.Parallel()
				var full atomic.Bool
				fs := errorfs.Wrap(vfs.Default, errorfs.InjectorFunc(func(op errorfs.Op) error {
					if full.Load() && (op.Kind == errorfs.OpFileWrite || op.Kind == errorfs.OpCreate) && strings.Contains(op.Path, kind) {
						return &os.PathError{Op: "write", Path: op.Path, Err: syscall.ENOSPC}
					}
					return nil
				}))
				s, err := Open(t.TempDir(), Options{fs: fs})
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				write := func(i int) error {
					s.forced.bulk, s.forced.spill = way == "bulk", way == "overlay"
					return s.Update(t.Context(), fmt.Sprintf("INSERT DATA { %s }", strings.ReplaceAll(document(i), "\n", " ")))
				}
				answered := map[int]bool{}
				for round := range 2 {
					full.Store(true)
					for i := round * 10; i < round*10+3; i++ {
						err := write(i)
						if err != nil && (!guardfs.IsFull(err) || statusOf(err) != 507) {
							t.Errorf("write %d: %v, %d", i, err, statusOf(err))
						}
						answered[i] = err == nil
					}
					full.Store(false)
					for s.Check() != nil { // a moment
						if s.disk.Failure() != nil {
							t.Fatal(s.disk.Failure())
						}
					}
					for i := round*10 + 5; i < round*10+8; i++ {
						if err := write(i); err != nil {
							t.Errorf("there is room, and write %d fails: %v", i, err)
						}
						answered[i] = true
					}
				}
				if _, err := s.Verify(t.Context()); err != nil {
					t.Error(err)
				}
				checkDictionary(t, s)
				snap, err := s.Snapshot()
				if err != nil {
					t.Fatal(err)
				}
				defer snap.Close()
				for i, ok := range answered {
					n, err := snap.Count(Pattern{S: rdfres.Term(fmt.Sprintf("<http://example.org/%d>", i))})
					if err != nil || n != 0 && n != 5 || ok && n != 5 {
						t.Errorf("write %d (answered %v): %d triples of 5, %v", i, ok, n, err)
					}
				}
			})
		}
	}
}
