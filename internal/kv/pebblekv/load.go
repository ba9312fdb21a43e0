package pebblekv

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/objstorage/objstorageprovider"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/internal/kv/guardfs"
	"github.com/rsbridge/rsbridge/internal/ownfile"
)

const (
	// loadFolder holds the tables of loads under way. Those left by a killed process
	// are removed at the next opening.
	loadFolder = "load"
	// tableBytes is about how large a table becomes, before it is packed.
	tableBytes = 64 << 20
	// roomBytes are written between two looks at how much room the disk has.
	roomBytes = 4 << 20
)

var _ kv.Loader = (*Store)(nil)

// Load begins a load. Its runs are written as sorted tables beside the store,
// packed as in its lowest level, and made part of it in one durable step: they go
// through no log, no memory and no compaction.
func (s *Store) Load() kv.Load { return &load{s: s} }

type load struct {
	s *Store

	mu    sync.Mutex // guards the fields below
	runs  []*run
	paths []string
}

// run writes its tables one after the other.
type run struct {
	l     *load
	w     *sstable.Writer
	bytes int
	room  int // bytes until the next look for room
	err   error
}

var tableNumber atomic.Uint64

func (l *load) Run() kv.Run {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := &run{l: l}
	l.runs = append(l.runs, r)
	return r
}

func (r *run) Set(key, value []byte) error {
	if r.err != nil {
		return r.err
	}
	if r.w == nil || r.bytes >= tableBytes {
		r.err = errors.Join(r.finish(), r.begin())
	}
	if r.err == nil && r.bytes >= r.room {
		r.room = r.bytes + roomBytes
		r.err = r.l.s.guard.Room(r.l.s.db, r.l.s.dir, roomBytes)
	}
	if r.err == nil {
		r.bytes += len(key) + len(value)
		r.err = r.w.Set(key, value)
	}
	if r.err != nil {
		r.err = fmt.Errorf("load into state %s: %w", r.l.s.dir, r.err)
	}
	return r.err
}

// begin opens the next table.
func (r *run) begin() error {
	s := r.l.s
	err := s.writable()
	if err == nil {
		err = s.guard.Room(s.db, s.dir, roomBytes)
	}
	if err != nil {
		return err
	}
	dir := filepath.Join(s.dir, loadFolder)
	if err := s.opts.FS.MkdirAll(dir, ownfile.FolderMode); err != nil {
		return err
	}
	path := filepath.Join(dir, strconv.FormatUint(tableNumber.Add(1), 10)+".sst")
	f, err := s.opts.FS.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	r.l.mu.Lock()
	r.l.paths = append(r.l.paths, path)
	r.l.mu.Unlock()
	lowest := len(s.opts.Levels) - 1
	r.w = sstable.NewWriter(objstorageprovider.NewFileWritable(f), s.opts.MakeWriterOptions(lowest, s.db.TableFormat()))
	r.bytes, r.room = 0, roomBytes
	return nil
}

// finish closes the table under way; it is on disk then.
func (r *run) finish() error {
	if r.w == nil {
		return nil
	}
	w := r.w
	r.w = nil
	return w.Close()
}

func (l *load) Commit(ctx context.Context) error {
	if err := l.commit(ctx); err != nil {
		return fmt.Errorf("load into state %s: %w", l.s.dir, err)
	}
	return nil
}

func (l *load) commit(ctx context.Context) error {
	s := l.s
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.runs {
		if r.err == nil {
			r.err = r.finish()
		}
		if r.err != nil {
			return r.err
		}
	}
	if err := errors.Join(s.writable(), kv.NotBegun(ctx)); err != nil {
		return err
	}
	if len(l.paths) == 0 {
		return nil
	}
	if err := s.guard.Room(s.db, s.dir, 0); err != nil {
		return err
	}
	paths := l.paths
	l.paths = nil // they are Pebble's from here on
	_, err := s.guard.Do(func() error { return s.db.Ingest(context.WithoutCancel(ctx), paths) })
	if err == nil {
		err = s.guard.Failure()
	}
	if err != nil && !guardfs.IsFull(err) {
		s.guard.Fail(err)
	}
	return err
}

func (l *load) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.runs {
		if r.w != nil {
			_ = r.finish() // it is not wanted
		}
	}
	l.runs = nil
	var errs []error
	for _, path := range l.paths {
		errs = append(errs, l.s.opts.FS.Remove(path))
	}
	l.paths = nil
	return errors.Join(errs...)
}
