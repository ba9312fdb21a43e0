package guardfs

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// fills is a disk on which writes to files of a kind find no room while full. What it
// says of its free space is of before, as when another process fills it.
func fills(fs vfs.FS, kind string, full *atomic.Bool, met chan<- struct{}) vfs.FS {
	return errorfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if full.Load() && (op.Kind == errorfs.OpFileWrite || op.Kind == errorfs.OpCreate) && strings.Contains(op.Path, kind) {
			select {
			case met <- struct{}{}:
			default:
			}
			return &os.PathError{Op: "write", Path: op.Path, Err: syscall.ENOSPC}
		}
		return nil
	}))
}

// TestRoomIsMade fills the disk while a database is written: the write that meets it is
// refused, others too, and all goes on when there is room. Nothing acknowledged is lost,
// and what was left is there whole, or not.
func TestRoomIsMade(t *testing.T) {
	for _, kind := range []string{".log", ".sst", "MANIFEST", ""} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			var full atomic.Bool
			mem := vfs.NewMem()
			g := New("store", fills(mem, kind, &full, nil), nil)
			o := func() *pebble.Options { return &pebble.Options{MemTableSize: 64 << 10} }
			db, err := g.Open(t.Context(), "db", o())
			if err != nil {
				t.Fatal(err)
			}
			acked := map[int]bool{}
			write := func(i int) error {
				_, err := g.Do(func() error { return db.Set(fmt.Appendf(nil, "%04d", i), make([]byte, 10_000), pebble.Sync) })
				if err == nil {
					acked[i] = true
				}
				return err
			}
			for round := range 2 {
				full.Store(true)
				refused := false
				for i := round * 100; i < round*100+40; i++ {
					if err := write(i); err != nil {
						refused = true
						if !IsFull(err) {
							t.Errorf("write %d: %v", i, err)
						}
						break
					}
				}
				if !refused {
					t.Fatal("400 kB were written to a full disk")
				}
				full.Store(false)
				for g.Err() != nil { // a moment
					if g.Failure() != nil {
						t.Fatal(g.Failure())
					}
				}
				if err := write(round*100 + 50); err != nil {
					t.Errorf("there is room, and a write fails: %v", err)
				}
			}
			if stays, err := g.Close(db.Close); stays || err != nil {
				t.Fatalf("Close: %v, %v", stays, err)
			}
			db, err = New("store", mem, nil).Open(t.Context(), "db", o())
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			for i := range acked {
				if _, closer, err := db.Get(fmt.Appendf(nil, "%04d", i)); err != nil {
					t.Errorf("write %d was acknowledged: %v", i, err)
				} else {
					closer.Close()
				}
			}
		})
	}
}

// TestOpenOnFullDisk: a database with writes in its log is refused where there is no
// room to begin with, and waits where the room goes meanwhile, until there is some or
// nobody waits any more.
func TestOpenOnFullDisk(t *testing.T) {
	for _, kind := range []string{".log", ".sst", "MANIFEST", "dbtmp", ""} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			mem := makeImage(t, 40, pebble.FormatNewest).restore(t, "", nil)
			none := &tight{FS: mem}
			if _, err := New("store", none, nil).Open(t.Context(), "db", &pebble.Options{}); !IsFull(err) || !strings.Contains(err.Error(), "make room") {
				t.Errorf("no room: %v", err)
			}

			var full atomic.Bool
			full.Store(true)
			met := make(chan struct{})
			ctx, cancel := context.WithCancel(t.Context())
			g := New("store", fills(makeImage(t, 40, pebble.FormatNewest).restore(t, "", nil), kind, &full, met), nil)
			go func() { <-met; cancel() }()
			if _, err := g.Open(ctx, "db", &pebble.Options{FormatMajorVersion: pebble.FormatNewest}); err == nil || !g.Stays() {
				t.Errorf("opened on a full disk: %v, %v", err, g.Stays())
			}

			go func() { <-met; full.Store(false) }()
			g = New("store", fills(mem, kind, &full, met), nil)
			db, err := g.Open(t.Context(), "db", &pebble.Options{FormatMajorVersion: pebble.FormatNewest})
			if err != nil {
				t.Fatal(err)
			}
			for i := range 40 {
				if _, closer, err := db.Get(fmt.Appendf(nil, "%05d", i)); err != nil {
					t.Errorf("key %d: %v", i, err)
				} else {
					closer.Close()
				}
			}
			if stays, err := g.Close(db.Close); stays || err != nil {
				t.Errorf("Close: %v, %v", stays, err)
			}
		})
	}
}
