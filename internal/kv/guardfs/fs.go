package guardfs

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// guardFS is the file system of a Guard. A failure to write the log, the manifest
// or the folder is noted and not told to Pebble: the goroutine that met it stays
// where it is. Pebble does these writes without the lock that readers need, so
// reads go on. Failures to write tables are told: Pebble repeats that work. A
// scratch is told nothing.
//
// While the database is opened everything is told; Open returns it.
type guardFS struct {
	vfs.FS
	g *Guard
}

var _ vfs.FS = (*guardFS)(nil)

// check returns what Pebble is told, or never returns.
func (fs *guardFS) check(what, path string, err error) error {
	g := fs.g
	if err == nil || !g.armed.Load() {
		return err
	}
	noted := fmt.Errorf("%s %s: %w", what, filepath.Base(path), err)
	if g.scratch {
		g.Fail(noted)
		return nil
	}
	if strings.HasSuffix(path, ".sst") {
		return err
	}
	g.parked.Store(true)
	g.Fail(noted)
	select {}
}

func (fs *guardFS) file(f vfs.File, path string) vfs.File {
	if f == nil {
		return nil
	}
	return &guardFile{File: f, fs: fs, path: path}
}

// made gives a scratch that gets no file one in memory: what Pebble still writes
// of a scratch that has failed is little, since whoever uses it ends.
func (fs *guardFS) made(what string, f vfs.File, name string, c vfs.DiskWriteCategory, err error) (vfs.File, error) {
	told := fs.check(what, name, err)
	if err != nil && told == nil {
		return vfs.NewMem().Create("lost", c)
	}
	return fs.file(f, name), told
}

func (fs *guardFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := fs.FS.Create(name, c)
	return fs.made("create", f, name, c, err)
}

func (fs *guardFS) ReuseForWrite(from, to string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := fs.FS.ReuseForWrite(from, to, c)
	return fs.made("reuse", f, to, c, err)
}

func (fs *guardFS) Rename(from, to string) error {
	return fs.check("rename", to, fs.FS.Rename(from, to))
}

func (fs *guardFS) OpenDir(name string) (vfs.File, error) {
	f, err := fs.FS.OpenDir(name)
	return fs.file(f, name), err
}

// Unwrap is for Pebble, which looks for what lies below.
func (fs *guardFS) Unwrap() vfs.FS { return fs.FS }

type guardFile struct {
	vfs.File
	fs   *guardFS
	path string
}

func (f *guardFile) Write(p []byte) (int, error) {
	n, err := f.File.Write(p)
	return f.wrote(p, n, err)
}

func (f *guardFile) WriteAt(p []byte, off int64) (int, error) {
	n, err := f.File.WriteAt(p, off)
	return f.wrote(p, n, err)
}

func (f *guardFile) wrote(p []byte, n int, err error) (int, error) {
	told := f.fs.check("write", f.path, err)
	if told == nil {
		n = len(p)
	}
	return n, told
}

func (f *guardFile) Sync() error { return f.fs.check("sync", f.path, f.File.Sync()) }

func (f *guardFile) SyncData() error { return f.fs.check("sync", f.path, f.File.SyncData()) }

func (f *guardFile) SyncTo(length int64) (bool, error) {
	full, err := f.File.SyncTo(length)
	return full, f.fs.check("sync", f.path, err)
}
