package guardfs

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// guardFS is the file system of a Guard.
//
// A write without room is not reported to Pebble. It waits, and is repeated until there is room.
// Once the database is open, failed writes of tables are reported: Pebble frees their room and
// repeats the work.
//
// Any other failed write of the log, the manifest or the folder is noted, not reported: its
// goroutine never returns. Pebble does these writes without the lock of readers, so reads go on.
// While the database is being opened such a failure is reported, and Open returns it. A scratch
// gets no reports.
type guardFS struct {
	vfs.FS
	g *Guard
}

var _ vfs.FS = (*guardFS)(nil)

// do runs op again and again while there is no room, and returns the error to report to Pebble. It
// may never return.
func (fs *guardFS) do(what, path string, op func() error) error {
	g := fs.g
	err := op()
	if IsFull(err) && g.waits(path) {
		err = g.untilRoom(noted(what, path, err), op)
	}
	return fs.check(what, path, err)
}

func noted(what, path string, err error) error {
	return fmt.Errorf("%s %s: %w", what, filepath.Base(path), err)
}

// check returns the error to report to Pebble, or never returns.
func (fs *guardFS) check(what, path string, err error) error {
	g := fs.g
	if err == nil {
		return nil
	}
	if !g.armed.Load() {
		g.ioFailed.Store(true)
		return err
	}
	if g.scratch {
		g.Fail(noted(what, path, err))
		return nil
	}
	if strings.HasSuffix(path, ".sst") {
		return err
	}
	g.parked.Store(true)
	g.Fail(noted(what, path, err))
	select {}
}

func (fs *guardFS) file(f vfs.File, path string) vfs.File {
	if f == nil {
		return nil
	}
	out := &guardFile{File: f, fs: fs, path: path}
	out.isLog, out.number, out.counted = logOrManifest(path)
	return out
}

// made gives a scratch a file in memory for one it could not create. Pebble writes little after the
// failure, since the user of the scratch ends.
func (fs *guardFS) made(f vfs.File, name string, c vfs.DiskWriteCategory, err, told error) (vfs.File, error) {
	if err != nil && told == nil {
		return vfs.NewMem().Create("lost", c)
	}
	return fs.file(f, name), told
}

func (fs *guardFS) Create(name string, c vfs.DiskWriteCategory) (f vfs.File, err error) {
	told := fs.do("create", name, func() error {
		f, err = fs.FS.Create(name, c)
		return err
	})
	if manifest, ok := markedManifest(filepath.Base(name)); ok && err == nil {
		_, number, _ := logOrManifest(manifest)
		fs.g.synced.mark(number)
	}
	return fs.made(f, name, c, err, told)
}

// ReuseForWrite begins an empty file: the records of an old log behind those of a
// new one could not be told from damage.
func (fs *guardFS) ReuseForWrite(from, to string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if err := fs.FS.Remove(from); err != nil {
		return nil, fs.check("remove", from, err)
	}
	return fs.Create(to, c)
}

func (fs *guardFS) Rename(from, to string) error {
	return fs.do("rename", to, func() error { return fs.FS.Rename(from, to) })
}

// Open notes the name: some of Pebble's errors about a wrong file do not tell it.
func (fs *guardFS) Open(name string, o ...vfs.OpenOption) (vfs.File, error) {
	if !fs.g.armed.Load() {
		fs.g.lastRead.Store(name)
	}
	return fs.FS.Open(name, o...)
}

func (fs *guardFS) OpenDir(name string) (vfs.File, error) {
	f, err := fs.FS.OpenDir(name)
	if err != nil {
		return nil, err
	}
	return &guardFile{File: f, fs: fs, path: name, isFolder: true}, nil
}

// Unwrap lets Pebble look below.
func (fs *guardFS) Unwrap() vfs.FS { return fs.FS }

type guardFile struct {
	vfs.File
	fs   *guardFS
	path string

	// The length of a log or manifest is noted with each sync. One goroutine writes and syncs it.
	counted, isLog bool
	isFolder       bool
	number         uint64
	written        atomic.Int64
	noted          atomic.Bool
}

func (f *guardFile) Write(p []byte) (int, error) {
	return f.write(p, func(done int) (int, error) { return f.File.Write(p[done:]) })
}

func (f *guardFile) WriteAt(p []byte, off int64) (int, error) {
	return f.write(p, func(done int) (int, error) { return f.File.WriteAt(p[done:], off+int64(done)) })
}

// write writes the rest of p after each failure.
func (f *guardFile) write(p []byte, rest func(done int) (int, error)) (int, error) {
	done := 0
	told := f.fs.do("write", f.path, func() error {
		n, err := rest(done)
		done += n
		return err
	})
	if told == nil {
		done = len(p)
	}
	f.written.Add(int64(done))
	return done, told
}

// Preallocate does nothing: on a small disk the room of a log is missing for tables.
func (f *guardFile) Preallocate(int64, int64) error { return nil }

func (f *guardFile) Sync() error { return f.sync(f.File.Sync) }

func (f *guardFile) SyncData() error { return f.sync(f.File.SyncData) }

func (f *guardFile) sync(sync func() error) error {
	length, marked := f.written.Load(), f.fs.g.synced.toMark()
	err := sync()
	if err == nil && f.counted && !f.isLog && !f.noted.Swap(true) { // else a marker may name a manifest without a name on disk
		err = syncFolder(f.fs.FS, filepath.Dir(f.path))
	}
	if err := f.fs.check("sync", f.path, err); err != nil {
		return err
	}
	switch {
	case f.isFolder:
		err = f.fs.g.synced.marks(marked)
	case !f.counted || length == 0:
	case f.isLog:
		err = f.fs.g.synced.log(f.number, uint64(length), !f.noted.Swap(true))
	default:
		err = f.fs.g.synced.manifest(f.number, uint64(length))
	}
	if err != nil {
		f.fs.g.log.Warn("the length of a log was not noted: should the log be cut, nobody would notice", "error", noted("write", SyncedFile, err))
	}
	return nil
}

func (f *guardFile) SyncTo(length int64) (bool, error) {
	full, err := f.File.SyncTo(length)
	return full, f.fs.check("sync", f.path, err)
}
