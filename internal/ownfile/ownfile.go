// Package ownfile makes the files and folders of the state and of embedded stores:
// nobody but their owner reads them, and a folder that was removed while the
// program runs is made again.
package ownfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Modes of what is made here.
const (
	FileMode   fs.FileMode = 0o600
	FolderMode fs.FileMode = 0o700
)

// MkdirAll makes a folder, and those above it.
func MkdirAll(dir string) error { return Blocked(os.MkdirAll(dir, FolderMode)) }

// Blocked adds the remedy to the error of a folder not made because of a file in its place.
func Blocked(err error) error {
	if errors.Is(err, syscall.ENOTDIR) {
		return fmt.Errorf("%w (a file is in the place of this folder: move it away)", err)
	}
	return err
}

// IsAbsent tells whether err is of a missing file. A file in place of its folder makes it missing too.
func IsAbsent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// Again calls make, and once more after making dir, where make fails because dir is
// not there. The folder above dir must be: without it dir would be another's place.
func Again(dir string, make func() error) error {
	err := make()
	if dir == "" || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if merr := os.Mkdir(dir, FolderMode); merr != nil && !errors.Is(merr, fs.ErrExist) {
		return err
	}
	return make()
}

// Create makes a file, or empties it.
func Create(name string) (f *os.File, err error) {
	err = Again(filepath.Dir(name), func() error {
		f, err = os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC, FileMode)
		return err
	})
	return f, err
}

// CreateTemp is os.CreateTemp.
func CreateTemp(dir, pattern string) (f *os.File, err error) {
	err = Again(dir, func() error {
		f, err = os.CreateTemp(dir, pattern)
		return err
	})
	return f, err
}

// MkdirTemp is os.MkdirTemp.
func MkdirTemp(dir, pattern string) (made string, err error) {
	err = Again(dir, func() error {
		made, err = os.MkdirTemp(dir, pattern)
		return err
	})
	return made, err
}

// Replace puts a file in place whole or not at all. It is durable once the folder is (Sync).
func Replace(name string, write func(io.Writer) error) error {
	f, err := Create(name + ".tmp")
	if err != nil {
		return err
	}
	if err = write(f); err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// Sync makes the names in a folder durable.
func Sync(dir string) error {
	if !syncsFolders {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
