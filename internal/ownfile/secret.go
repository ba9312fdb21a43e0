package ownfile

import (
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Secret gives the random bytes in a file. It makes the file if it is not there, durably. lost says
// what to do about a damaged one.
func Secret(file string, size int, lost string) ([]byte, error) {
	secret := make([]byte, size)
	switch kept, err := os.ReadFile(file); {
	case err == nil && len(kept) == size:
		return kept, nil
	case err == nil:
		return nil, fmt.Errorf("%s has %d bytes, want %d: restore it from a backup, or %s", file, len(kept), size, lost)
	case !IsAbsent(err):
		return nil, err
	}
	if _, err := rand.Read(secret); err != nil {
		return nil, err
	}
	if err := MkdirAll(filepath.Dir(file)); err != nil {
		return nil, err
	}
	write := func(w io.Writer) error { _, err := w.Write(secret); return err }
	if err := Replace(file, write); err != nil {
		return nil, err
	}
	return secret, Sync(filepath.Dir(file))
}
