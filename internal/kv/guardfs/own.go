package guardfs

import (
	"os"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/rsbridge/rsbridge/internal/ownfile"
)

// Own is fs (nil: the disk) with files only their owner may read. It makes a removed folder again.
func Own(fs vfs.FS) vfs.FS {
	if fs == nil {
		fs = vfs.Default
	}
	if _, own := fs.(ownFS); own {
		return fs
	}
	return ownFS{fs}
}

type ownFS struct{ vfs.FS }

func (o ownFS) Create(name string, c vfs.DiskWriteCategory) (f vfs.File, err error) {
	err = ownfile.Again(o.PathDir(name), func() error {
		f, err = o.FS.Create(name, c)
		return err
	})
	if err == nil && f.Fd() != vfs.InvalidFd {
		if err = os.Chmod(name, ownfile.FileMode); err != nil {
			f.Close()
			return nil, err
		}
	}
	return f, err
}

func (o ownFS) MkdirAll(dir string, _ os.FileMode) error {
	return ownfile.Blocked(o.FS.MkdirAll(dir, ownfile.FolderMode))
}

// Unwrap lets Pebble look below.
func (o ownFS) Unwrap() vfs.FS { return o.FS }
