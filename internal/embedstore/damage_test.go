package embedstore

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/internal/kv/guardfs"
	"github.com/rsbridge/rsbridge/rdfres"
)

// TestDamage flips bits of the files that a killed process left, logs and tables: all
// that was answered is there, or opening or reading names the wrong file and the remedy.
// So with a log or a table that is cut, and broken options.
func TestDamage(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir, Options{CacheBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	const writes = 40
	for i := range writes {
		s.forceBulk = i%20 == 9 // some go into tables at once, and the last ones into the log
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
	var files []string
	err = filepath.WalkDir(killed, func(path string, e fs.DirEntry, err error) error {
		if info, ierr := os.Stat(path); ierr == nil && !e.IsDir() && info.Size() > 0 {
			files = append(files, path)
		}
		return err
	})
	if err != nil || len(files) < 5 {
		t.Fatal(files, err)
	}
	logs, err := filepath.Glob(filepath.Join(killed, "*.log"))
	if err != nil || len(logs) == 0 {
		t.Fatal(logs, err)
	}
	newest := slices.Max(logs) // older ones may be obsolete
	r := rand.New(rand.NewPCG(7, 8))
	told := 0
	for _, path := range files {
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		rel, _ := filepath.Rel(killed, path)
		for round := range 5 {
			where := t.TempDir()
			if err := os.CopyFS(where, os.DirFS(killed)); err != nil {
				t.Fatal(err)
			}
			bad := bytes.Clone(whole)
			log := strings.HasSuffix(path, ".log")
			bit := r.IntN(len(bad) * 8)
			switch {
			case round == 4 && (log || strings.HasSuffix(path, ".sst")):
				bad = bad[:bit/8]
			case round == 4 && strings.HasPrefix(rel, "OPTIONS-"):
				bad = bytes.Replace(bad, []byte("comparer="), []byte("comparer-"), 1)
			default:
				bad[bit/8] ^= 1 << (bit % 8)
			}
			if err := os.WriteFile(filepath.Join(where, rel), bad, 0o600); err != nil {
				t.Fatal(err)
			}
			n, err := readAll(t.Context(), where)
			switch {
			case err == nil && n != writes*5:
				t.Errorf("%s, bit %d: %d triples of %d, and no error", rel, bit, n, writes*5)
			case err != nil:
				told++
				if !errors.Is(err, guardfs.ErrDamaged) || !strings.Contains(err.Error(), filepath.Base(rel)) || !strings.Contains(err.Error(), "backup") {
					t.Errorf("%s, bit %d: the error names no file or no remedy: %v", rel, bit, err)
				}
			case round == 4 && (path == newest || strings.HasSuffix(path, ".sst") || strings.HasPrefix(rel, "OPTIONS-")):
				t.Errorf("%s: opened and read", rel)
			}
		}
	}
	if told < len(files) {
		t.Errorf("%d faults of %d files were told", told, len(files))
	}
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
