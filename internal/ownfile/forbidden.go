package ownfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Forbidden adds the owner and a remedy to the error of a user uid without the right to a
// file or folder.
func Forbidden(err error, uid int) error {
	if errors.Is(err, syscall.EROFS) {
		return fmt.Errorf("%w (its file system is mounted read-only: mount it for writing, or choose another folder)", err)
	}
	var at *fs.PathError
	if !errors.Is(err, fs.ErrPermission) || !errors.As(err, &at) {
		return err
	}
	// A file not made yet has no owner; its folder has.
	for path := at.Path; ; path = filepath.Dir(path) {
		info, serr := os.Lstat(path)
		owner, known := ownerOf(info)
		switch {
		case serr != nil && path != filepath.Dir(path):
			continue
		case serr != nil || !known:
			return err
		case owner != uid:
			return fmt.Errorf("%w (%s is another user's, number %d: run this as that user)", err, path, owner)
		case info.Mode().Perm()&0o200 == 0:
			return fmt.Errorf("%w (%s is your own, and read-only: chmod u+w %s)", err, path, path)
		}
		return fmt.Errorf("%w (%s is your own: a folder above it, or a rule of the system, forbids it)", err, path)
	}
}
