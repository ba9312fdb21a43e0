package embedstore

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/rsbridge/rsbridge/internal/kv/guardfs"
)

// Try tells why Open could not open the store in a folder, and leaves the folder unchanged: a store
// held (ErrLocked), damaged, or of a newer version, or another folder's content. A missing folder,
// or one without a store yet, is right.
func Try(dir string) error {
	return readOnly(dir, func(*pebble.DB, *guardfs.Guard) error { return nil })
}

// Read gives f the store in a folder, for queries alone, if there is one. Like Try, it leaves the
// folder as it is.
func Read(dir string, f func(*Store) error) error {
	return readOnly(dir, func(db *pebble.DB, disk *guardfs.Guard) error {
		home, err := os.Stat(filepath.Join(dir, lockFile))
		if err != nil {
			return err
		}
		var o Options
		o.complete()
		s := &Store{dir: dir, opts: o, log: o.Logger, db: db, disk: disk, home: home, writer: make(chan struct{}), idle: make(chan struct{})}
		s.SetBudget(Budget{})
		s.quit, s.stop = context.WithCancel(context.Background())
		defer s.stop()
		return f(s)
	})
}

// Graphs gives the graphs of the store in a folder, as terms ("": the default graph), and
// their numbers of triples. Like Try, it leaves the folder as it is.
func Graphs(dir string, f func(graph string, triples int64) error) error {
	return readOnly(dir, func(db *pebble.DB, _ *guardfs.Guard) error {
		v := pebbleView{db}
		r := newTermReader(v, nil)
		defer r.close()
		var wrong error
		err := graphCounts(v, func(g id, n int64) bool {
			name := ""
			if name, wrong = r.term(g); wrong == nil && n > 0 {
				wrong = f(name, n)
			}
			return wrong == nil
		})
		return errors.Join(err, wrong)
	})
}

// readOnly opens the store in a folder for reading, if there is one.
func readOnly(dir string, look func(*pebble.DB, *guardfs.Guard) error) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("open store %s: %w", dir, err)
		}
	}()
	found, err := vacant(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil || !found {
		return err
	}
	if _, err := os.Stat(filepath.Join(dir, lockFile)); err != nil {
		if errors.Is(err, fs.ErrNotExist) { // Open would make it, and this leaves the folder unchanged
			err = guardfs.Remake(fmt.Errorf("file %s is missing", lockFile), lockFile)
		}
		return err
	}
	lock, err := takeLock(dir)
	if err != nil {
		return err
	}
	defer lock.Close()
	o := pebbleOptions(8 << 20)
	o.Lock, o.ReadOnly = lock, true
	disk := guardfs.New("store", vfs.Default, nil)
	db, err := disk.Open(context.Background(), dir, o)
	if errors.Is(err, pebble.ErrDBDoesNotExist) { // of an interrupted first start
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	v := pebbleView{db}
	val, ok, err := v.get(keyVersion)
	if err != nil || !ok { // of an interrupted first start
		return err
	}
	if err := versionFault(val); err != nil {
		return err
	}
	val, ok, err = v.get(keyNext)
	if err = errors.Join(err, nextFault(val, ok, err)); err != nil {
		return err
	}
	return look(db, disk)
}

// version is the version number in a store.
func version(val []byte) uint32 {
	return binary.BigEndian.Uint32(append(make([]byte, 4), val...)[len(val):])
}

func versionFault(val []byte) error {
	if n := version(val); n != storeVersion {
		return fmt.Errorf("the store has format version %d and this program knows %d: use the program that wrote it, and load its dump here", n, storeVersion)
	}
	return nil
}

func nextFault(val []byte, ok bool, err error) error {
	if err == nil && (!ok || len(val) != 8) {
		return guardfs.Damage(errors.New("the number of its next term is missing"))
	}
	return nil
}
