package pebblekv

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// guardFS stands between Pebble and the disk. Pebble answers a failure to write
// its log, its manifest or its folder by ending the process, partly with panics
// that cannot be recovered from (locks are unlocked twice). So such a failure is
// noted, which ends all commits with the cause, and is not told to Pebble: the
// goroutine that met it stays where it is. Pebble does these writes without the
// lock that readers need, so reads go on. Failures to write tables are told:
// Pebble repeats that work.
//
// While the store is opened everything is told; Open returns it.
type guardFS struct {
	vfs.FS
	fault  *fault
	armed  atomic.Bool // open has ended
	parked atomic.Bool // some goroutine of Pebble will never come back
}

var _ vfs.FS = (*guardFS)(nil)

// check returns err, or never returns.
func (g *guardFS) check(what, path string, err error) error {
	if err == nil || !g.armed.Load() || strings.HasSuffix(path, ".sst") {
		return err
	}
	g.parked.Store(true)
	g.fault.fail(fmt.Errorf("%s %s: %w", what, filepath.Base(path), err))
	select {}
}

func (g *guardFS) file(f vfs.File, path string) vfs.File {
	if f == nil {
		return nil
	}
	return &guardFile{File: f, g: g, path: path}
}

func (g *guardFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := g.FS.Create(name, c)
	return g.file(f, name), g.check("create", name, err)
}

func (g *guardFS) ReuseForWrite(from, to string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := g.FS.ReuseForWrite(from, to, c)
	return g.file(f, to), g.check("reuse", to, err)
}

func (g *guardFS) Rename(from, to string) error {
	return g.check("rename", to, g.FS.Rename(from, to))
}

func (g *guardFS) OpenDir(name string) (vfs.File, error) {
	f, err := g.FS.OpenDir(name)
	return g.file(f, name), err
}

// Unwrap is for Pebble, which looks for what lies below.
func (g *guardFS) Unwrap() vfs.FS { return g.FS }

type guardFile struct {
	vfs.File
	g    *guardFS
	path string
}

func (f *guardFile) Write(p []byte) (int, error) {
	n, err := f.File.Write(p)
	return n, f.g.check("write", f.path, err)
}

func (f *guardFile) WriteAt(p []byte, off int64) (int, error) {
	n, err := f.File.WriteAt(p, off)
	return n, f.g.check("write", f.path, err)
}

func (f *guardFile) Sync() error { return f.g.check("sync", f.path, f.File.Sync()) }

func (f *guardFile) SyncData() error { return f.g.check("sync", f.path, f.File.SyncData()) }

func (f *guardFile) SyncTo(length int64) (bool, error) {
	full, err := f.File.SyncTo(length)
	return full, f.g.check("sync", f.path, err)
}
