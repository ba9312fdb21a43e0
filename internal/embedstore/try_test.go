package embedstore

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"

	"github.com/rsbridge/rsbridge/rdfres"
)

// files are the contents of a folder, by name.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			out[path] = ""
			return err
		}
		raw, err := os.ReadFile(path)
		out[path] = string(raw)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Try finds what Open would fail with, and leaves the folder as it is, also that of a
// store that was killed.
func TestTry(t *testing.T) {
	filled := func(t *testing.T, kill bool) string {
		dir := t.TempDir()
		s, err := Open(dir, Options{})
		if err == nil {
			_, err = s.Load(t.Context(), "", rdfres.NTriples, strings.NewReader("<a:b> <a:b> <a:b> .\n"), LoadOptions{})
		}
		if err != nil {
			t.Fatal(err)
		}
		if !kill {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			return dir
		}
		t.Cleanup(func() { s.Close() })
		killed := t.TempDir() // what is on disk while it is open
		if err := os.CopyFS(killed, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
		return killed
	}
	change := func(t *testing.T, dir string, b func(*pebble.DB) error) {
		db, err := pebble.Open(dir, pebbleOptions(8<<20))
		if err == nil {
			err = errors.Join(b(db), db.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name string
		dir  func(t *testing.T) string
		says string
	}{
		{"not there", func(t *testing.T) string { return filepath.Join(t.TempDir(), "none") }, ""},
		{"empty", func(t *testing.T) string { return t.TempDir() }, ""},
		{"closed", func(t *testing.T) string { return filled(t, false) }, ""},
		{"killed", func(t *testing.T) string { return filled(t, true) }, ""},
		{"foreign", func(t *testing.T) string {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "letter.txt"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			return dir
		}, "the folder holds letter.txt, and no store"},
		{"newer", func(t *testing.T) string {
			dir := filled(t, false)
			change(t, dir, func(db *pebble.DB) error {
				return db.Set(keyVersion, binary.BigEndian.AppendUint32(nil, storeVersion+1), pebble.Sync)
			})
			return dir
		}, "format version"},
		{"damaged", func(t *testing.T) string {
			dir := filled(t, false)
			change(t, dir, func(db *pebble.DB) error { return db.Delete(keyNext, pebble.Sync) })
			return dir
		}, "damaged: the number of its next term"},
		{"without its manifest", func(t *testing.T) string {
			dir := filled(t, false)
			names, err := filepath.Glob(filepath.Join(dir, "MANIFEST-*"))
			if err != nil || len(names) == 0 {
				t.Fatal(names, err)
			}
			for _, name := range names {
				if err := os.Remove(name); err != nil {
					t.Fatal(err)
				}
			}
			return dir
		}, "MANIFEST"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := c.dir(t)
			var before map[string]string
			if _, err := os.Stat(dir); err == nil {
				before = contents(t, dir)
			}
			err := Try(dir)
			if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("Try: %v, want %q", err, c.says)
			}
			if before == nil {
				if _, err := os.Stat(dir); err == nil {
					t.Error("Try made the folder")
				}
			} else if after := contents(t, dir); len(after) != len(before) {
				t.Errorf("Try left %d files of %d", len(after), len(before))
			} else {
				for name, was := range before {
					if is, there := after[name]; !there || is != was {
						t.Errorf("Try changed %s", name)
					}
				}
			}
			s, opened := Open(dir, Options{})
			if opened == nil {
				opened = s.Close()
			}
			if (opened == nil) != (err == nil) {
				t.Errorf("Open gives %v, Try %v", opened, err)
			}
		})
	}
	s, err := Open(t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var locked *LockedError
	if err := Try(s.dir); !errors.Is(err, ErrLocked) || !errors.As(err, &locked) || locked.Process() != os.Getpid() {
		t.Errorf("of one that is open: %v", err)
	}
}
