package pebblekv

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/internal/kv/kvtest"
)

// TestDamage breaks each file that a killed process left: all that was committed is there, or
// opening or reading names the wrong file and the remedy.
func TestDamage(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(t.Context(), dir, Options{memTable: 64 << 10})
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(3, 4))
	const keys = 40
	for key := range keys {
		value := make([]byte, 8<<10)
		for i := range value {
			value[i] = byte(r.Uint32())
		}
		b := s.Batch()
		b.Set(fmt.Appendf(nil, "%04d", key), value)
		if err := b.Commit(t.Context(), true); err != nil {
			t.Fatal(err)
		}
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		if key == keys/2 {
			if err := s.db.Flush(); err != nil {
				t.Fatal(err)
			}
		}
	}
	// The copy takes a moment: a table that is begun in it would be copied empty, and named by a manifest copied later.
	for {
		m := s.db.Metrics()
		if m.MemTable.Count == 1 && m.Flush.NumInProgress == 0 && m.Compact.NumInProgress == 0 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	must := []string{"MANIFEST-"}
	levels, err := s.db.SSTables()
	if err != nil {
		t.Fatal(err)
	}
	for _, tables := range levels {
		for _, table := range tables {
			must = append(must, fmt.Sprintf("%06d.sst", table.FileNum))
		}
	}
	if len(must) == 1 {
		t.Fatal("no table")
	}
	killed := t.TempDir()
	if err := os.CopyFS(killed, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	kvtest.Damage(t, killed, keys, countKeys, append(must, newest(t, killed, "*.log"))...)
}

// newest is the name of the newest file of a kind.
func newest(t *testing.T, dir, kind string) string {
	files, err := filepath.Glob(filepath.Join(dir, kind))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	return filepath.Base(slices.Max(files))
}

func countKeys(dir string) (n int64, err error) {
	s, err := Open(context.Background(), dir, Options{})
	if err != nil {
		return 0, err
	}
	defer s.Close()
	for _, err := range s.Scan(context.Background(), nil, nil) {
		if err != nil {
			return 0, err
		}
		n++
	}
	return n, nil
}
