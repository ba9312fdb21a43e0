package ownfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Try tells whether a folder can be written, or a missing one made: it makes a file or
// a folder and removes it again.
func Try(dir string) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("folder %s: %w", dir, err)
		}
	}()
	at := dir
	for {
		info, err := os.Stat(at)
		if err == nil && !info.IsDir() {
			return fmt.Errorf("%s is no folder", at)
		}
		if err == nil {
			break
		}
		above := filepath.Dir(at)
		if !errors.Is(err, fs.ErrNotExist) || above == at {
			return err
		}
		at = above
	}
	if at != dir {
		made, err := os.MkdirTemp(at, ".rsbridge-check-")
		if err != nil {
			return fmt.Errorf("it is not there and cannot be made: %w", err)
		}
		return os.Remove(made)
	}
	f, err := os.CreateTemp(at, ".rsbridge-check-")
	if err != nil {
		return fmt.Errorf("it cannot be written: %w", err)
	}
	_, err = f.Write(make([]byte, 4096)) // a full disk takes a name still
	return errors.Join(err, f.Close(), os.Remove(f.Name()))
}

// Size is the length of all files below a folder. A file removed meanwhile, or
// unreadable, counts nothing.
func Size(dir string) (n int64) {
	_ = fs.WalkDir(os.DirFS(dir), ".", func(_ string, f fs.DirEntry, err error) error {
		if err != nil || f.IsDir() {
			return nil
		}
		if info, err := f.Info(); err == nil {
			n += info.Size()
		}
		return nil
	})
	return n
}
