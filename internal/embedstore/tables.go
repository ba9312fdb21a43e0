package embedstore

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/objstorage/objstorageprovider"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// tableBytes is about how large one sorted table becomes.
const tableBytes = 32 << 20

// tables writes keys in ascending order into sorted tables beside the store. ingest makes all of
// them part of it in one step: it survives a crash or leaves nothing.
type tables struct {
	s     *Store
	group *tableGroup
	w     *sstable.Writer
	size  int
}

// tableGroup are the tables of one transaction; their key ranges may not touch.
type tableGroup struct {
	s     *Store
	mu    sync.Mutex
	paths []string
}

var tableNumber atomic.Int64

func newTables(s *Store) *tables { return &tables{s: s, group: &tableGroup{s: s}} }

// sibling writes another range of keys of the same transaction.
func (t *tables) sibling() *tables { return &tables{s: t.s, group: t.group} }

func (t *tables) writer() (*sstable.Writer, error) {
	if t.w != nil && t.size < tableBytes {
		return t.w, nil
	}
	if err := t.finish(); err != nil {
		return nil, err
	}
	path := t.s.tmp("table" + strconv.FormatInt(tableNumber.Add(1), 10) + ".sst")
	f, err := t.s.opts.fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, fmt.Errorf("write a table: %w", err)
	}
	t.group.mu.Lock()
	t.group.paths = append(t.group.paths, path)
	t.group.mu.Unlock()
	t.w = sstable.NewWriter(objstorageprovider.NewFileWritable(f), t.s.popt.MakeWriterOptions(0, t.s.db.TableFormat()))
	t.size = 0
	return t.w, nil
}

func (t *tables) set(key, value []byte) error {
	w, err := t.writer()
	if err != nil {
		return err
	}
	t.size += len(key) + len(value)
	return w.Set(key, value)
}

func (t *tables) del(key []byte) error {
	w, err := t.writer()
	if err != nil {
		return err
	}
	t.size += len(key)
	return w.Delete(key)
}

// finish closes the table under way.
func (t *tables) finish() error {
	if t.w == nil {
		return nil
	}
	err := t.w.Close()
	t.w = nil
	if err != nil {
		return fmt.Errorf("write a table: %w", err)
	}
	return nil
}

// ingest makes the tables of the whole group part of the store; all of them
// must be finished.
func (t *tables) ingest(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if len(t.group.paths) == 0 {
		return nil
	}
	if err := t.s.disk.Room(t.s.db, t.s.dir, 0); err != nil {
		return writeError(err)
	}
	// Not cancelled half way: a begun step is finished.
	paths := slices.Clone(t.group.paths)
	_, err := t.s.disk.Do(func() error { return t.s.db.Ingest(context.WithoutCancel(ctx), paths) })
	return writeError(err)
}

// discard closes and removes the remaining tables.
func (t *tables) discard() {
	if t.w != nil {
		t.w.Close()
		t.w = nil
	}
	t.group.mu.Lock()
	defer t.group.mu.Unlock()
	for _, p := range t.group.paths {
		os.Remove(p)
	}
	t.group.paths = nil
}
