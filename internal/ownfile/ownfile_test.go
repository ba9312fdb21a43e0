package ownfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestFolderIsMadeAgain(t *testing.T) {
	for name, make := range map[string]func(dir string) error{
		"Create":     func(dir string) error { f, err := Create(filepath.Join(dir, "a")); f.Close(); return err },
		"CreateTemp": func(dir string) error { f, err := CreateTemp(dir, "a-*"); f.Close(); return err },
		"MkdirTemp":  func(dir string) error { _, err := MkdirTemp(dir, "a-*"); return err },
	} {
		above := t.TempDir()
		dir := filepath.Join(above, "tmp")
		if err := make(dir); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := make(filepath.Join(above, "gone", "tmp")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s made a folder whose place is gone: %v", name, err)
		}
		err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
			info, err := os.Stat(path)
			if err == nil && info.Mode().Perm()&0o077 != 0 {
				t.Errorf("%s: others may use %s: %v", name, path, info.Mode())
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}
