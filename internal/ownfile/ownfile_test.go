package ownfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestFolderIsMadeAgain(t *testing.T) {
	for name, create := range map[string]func(dir string) error{
		"Create":     func(dir string) error { f, err := Create(filepath.Join(dir, "a")); f.Close(); return err },
		"CreateTemp": func(dir string) error { f, err := CreateTemp(dir, "a-*"); f.Close(); return err },
		"MkdirTemp":  func(dir string) error { _, err := MkdirTemp(dir, "a-*"); return err },
	} {
		above := t.TempDir()
		dir := filepath.Join(above, "tmp")
		if err := create(dir); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := create(filepath.Join(above, "gone", "tmp")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s made a folder whose place is gone: %v", name, err)
		}
		err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, walkErr error) error {
			info, err := os.Stat(path)
			if err == nil && info.Mode().Perm()&0o077 != 0 {
				t.Errorf("%s: others may use %s: %v", name, path, info.Mode())
			}
			return errors.Join(walkErr, err)
		})
		if err != nil {
			t.Error(err)
		}
	}
}
