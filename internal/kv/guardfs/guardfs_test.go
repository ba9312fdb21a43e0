package guardfs

import (
	"errors"
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

// tight is a disk that says how much is free.
type tight struct {
	vfs.FS
	free atomic.Uint64
}

func (f *tight) GetDiskUsage(string) (vfs.DiskUsage, error) {
	return vfs.DiskUsage{AvailBytes: f.free.Load()}, nil
}

func TestRoom(t *testing.T) {
	fs := &tight{FS: vfs.NewMem()}
	fs.free.Store(1 << 40)
	g := New("state", fs, nil)
	db, err := g.Open(t.Context(), "db", &pebble.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := g.Room(db, "db", 1<<30); err != nil {
		t.Error(err)
	}
	fs.free.Store(2 << 20)
	if err := g.Room(db, "db", 1<<10); err != nil {
		t.Error(err)
	}
	err = g.Room(db, "db", 2<<20)
	if !IsFull(err) || !strings.Contains(err.Error(), "make room") {
		t.Errorf("Room = %v", err)
	}
	if g.Err() != nil {
		t.Errorf("a refusal broke the database: %v", g.Err())
	}
}

// TestScratch fills a scratch database on a disk that fails: writes end, nobody
// waits for ever, and Err says why.
func TestScratch(t *testing.T) {
	for _, kind := range []string{".sst", "MANIFEST", ""} {
		t.Run(kind, func(t *testing.T) {
			var armed atomic.Bool
			fs := errorfs.Wrap(vfs.Default, errorfs.InjectorFunc(func(op errorfs.Op) error {
				if armed.Load() && op.Kind.ReadOrWrite() == errorfs.OpIsWrite && op.Kind != errorfs.OpFileClose && op.Kind != errorfs.OpRemove && strings.Contains(op.Path, kind) {
					return &os.PathError{Op: "write", Path: op.Path, Err: syscall.ENOSPC}
				}
				return nil
			}))
			g := Scratch("scratch", fs, nil)
			db, err := g.Open(t.Context(), t.TempDir(), &pebble.Options{DisableWAL: true, MemTableSize: 256 << 10, L0CompactionThreshold: 2})
			if err != nil {
				t.Fatal(err)
			}
			armed.Store(true)
			for i := 0; i < 20_000 && g.Err() == nil; i++ {
				if err := db.Set(fmt.Appendf(nil, "%08d", i*7919%20_000), make([]byte, 200), pebble.NoSync); err != nil {
					break
				}
			}
			if err := g.Err(); !IsFull(err) {
				t.Errorf("Err = %v", err)
			}
			if stays, err := g.Close(db.Close); stays {
				t.Errorf("Close left goroutines behind: %v", err)
			}
		})
	}
}

func TestOpenTellsThePanic(t *testing.T) {
	fs := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData {
			return errors.New("the disk is gone")
		}
		return nil
	}))
	if _, err := New("state", fs, nil).Open(t.Context(), "db", &pebble.Options{}); err == nil || !strings.Contains(err.Error(), "the disk is gone") {
		t.Errorf("Open = %v", err)
	}
}
