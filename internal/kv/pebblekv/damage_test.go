package pebblekv

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/internal/kv/guardfs"
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
	killed := t.TempDir()
	if err := os.CopyFS(killed, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	told := map[string]bool{}
	for _, kind := range []string{"*.sst", "*.log", "MANIFEST-*", "OPTIONS-*", formFile} {
		files, err := filepath.Glob(filepath.Join(killed, kind))
		if err != nil || len(files) == 0 {
			t.Fatal(kind, files, err)
		}
		for _, path := range files {
			whole, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for round := range 4 {
				bad := bytes.Clone(whole)
				switch {
				case kind == formFile:
					bad = []byte("rsbridge stat\x00 1\n")
				case round == 3 && kind == "*.sst":
					bad = bad[:len(bad)/2]
				case round == 3 && kind == "OPTIONS-*":
					bad = bytes.Replace(bad, []byte("comparer="), []byte("comparer-"), 1)
				case len(bad) > 0:
					bad[r.IntN(len(bad))] ^= 1 << r.IntN(8)
				}
				where := t.TempDir()
				if err := os.CopyFS(where, os.DirFS(killed)); err != nil {
					t.Fatal(err)
				}
				name := filepath.Base(path)
				if err := os.WriteFile(filepath.Join(where, name), bad, 0o600); err != nil {
					t.Fatal(err)
				}
				n, err := countKeys(where)
				switch {
				case err == nil && n != keys:
					t.Errorf("%s, round %d: %d keys of %d, and no error", name, round, n, keys)
				case err != nil && (!errors.Is(err, guardfs.ErrDamaged) || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "backup")):
					t.Errorf("%s, round %d: the error names no file or no remedy: %v", name, round, err)
				case err != nil:
					told[kind] = true
				}
			}
		}
		if !told[kind] {
			t.Errorf("%s: nothing was told", kind)
		}
	}
}

func countKeys(dir string) (n int, err error) {
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
