package embedstore

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/internal/kv/guardfs"
	"github.com/rsbridge/rsbridge/internal/kv/kvtest"
	"github.com/rsbridge/rsbridge/internal/teststores"
	"github.com/rsbridge/rsbridge/rdfres"
)

// TestDamage breaks each file that a killed process left: all that was answered is there, or opening
// or reading names the wrong file and the remedy.
func TestDamage(t *testing.T) {
	teststores.Sequential(t)
	dir := t.TempDir()
	s, err := Open(dir, Options{CacheBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	const writes = 40
	for i := range writes {
		s.forced.bulk = i%20 == 9 // some go into tables at once, and the last ones into the log
		if _, err := s.Load(t.Context(), "", rdfres.NTriples, strings.NewReader(document(i)), LoadOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	killed := t.TempDir()
	if err := os.CopyFS(killed, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	logs, err := filepath.Glob(filepath.Join(killed, "*.log"))
	if err != nil || len(logs) == 0 {
		t.Fatal(logs, err)
	}
	kvtest.Damage(t, killed, writes*5, func(dir string) (int64, error) {
		tried := Try(dir)
		n, err := readAll(t.Context(), dir)
		if tried != nil && err == nil && !strings.Contains(tried.Error(), "file "+lockFile) || errors.Is(err, guardfs.ErrDamaged) && strings.Contains(err.Error(), "missing") && tried == nil {
			t.Errorf("Try gives %v, Open %v", tried, err)
		}
		return n, err
	}, "MANIFEST-", ".sst", filepath.Base(slices.Max(logs)))
}

// readAll opens a store and reads all of it.
func readAll(ctx context.Context, dir string) (int64, error) {
	s, err := Open(dir, Options{CacheBytes: 1 << 20})
	if err != nil {
		return 0, err
	}
	defer s.Close()
	return s.Verify(ctx)
}
