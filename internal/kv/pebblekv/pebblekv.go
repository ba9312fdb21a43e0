// Package pebblekv is the embedded kv.Store, on Pebble.
//
// A store is a folder. Beside Pebble's own files it holds RSBRIDGE, which names
// the version of the folder's form, and HOLDER, the address of the process with it open.
//
// A full disk is an error of the commit that met it, and the next one works when
// there is room again. If the disk got full during the write of a commit, and that
// one was left, it may hold although it failed: Settled then tells that the store
// has to be opened again, and until then all commits fail.
//
// Any other failure of the disk is an error of the commit that met it, never the
// end of the process. From then on every commit fails with the first cause until
// the store is opened again, which settles what is on disk: Pebble's own state is
// not defined after such a failure, and to go on would be a guess. Reads go on as
// long as Pebble can answer them and no commit is left of which nobody knows
// whether it holds.
//
// A damaged file is refused, when it is opened or read (guardfs.ErrDamaged); a commit
// being written when the process died is not there, and no damage.
package pebblekv

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/sstable/block"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/internal/kv/guardfs"
	"github.com/rsbridge/rsbridge/internal/ownfile"
)

// Errors of Open for a caller to branch on; the same as those of kv.
var (
	ErrLocked = kv.ErrLocked
	ErrNewer  = kv.ErrNewer
)

// ErrReadOnly comes from every commit to a store that was opened for reading.
var ErrReadOnly = errors.New("opened for reading only")

// Options for Open; the zero value is sensible.
type Options struct {
	// CacheBytes bounds the cache of blocks read; 0: 32 MiB. Two to four
	// memtables of 12 MiB come on top.
	CacheBytes int64
	// Logger gets Pebble's messages, at debug level, and failures; nil: silent.
	Logger *slog.Logger
	// Holder is named in the ErrLocked of others, e.g. an admin address.
	Holder string
	// LockWait is how long to wait for a locked store; 0: not at all.
	LockWait time.Duration
	// ReadOnly opens an existing store for reading: nothing is written into
	// the folder, so it works on a full disk. Every commit gives
	// ErrReadOnly.
	ReadOnly bool

	fs       vfs.FS // for tests; nil: the disk
	memTable uint64 // for tests; 0: memTableBytes
}

// A memtable takes at least two of the batches in which a first baseline is recorded for
// an RDF4J, of more than 4 MiB with what it adds to each key: a batch of more than half of
// it is flushed alone. And mergeFiles lie over one another in the highest level until they
// are merged with what is below. With 8 MiB and 5 files, merging took a fifth of the
// processor's time of such a baseline, with 12 MiB and 8 files a fifteenth; with 12 a
// baseline of 100,000 resources into a dump takes a thirtieth less, and one of a million
// 276 MB of memory instead of 268.
const (
	memTableBytes = 12 << 20
	mergeFiles    = 12
)

// blockBytes is the size packed together, and lowestBytes in the lowest level, where
// nearly everything is. Values are often alike, but a block is read and unpacked whole
// for each value. Of the descriptions of the benchmarks, 980 bytes each, MinLZ makes 196 bytes
// in blocks of 32 KiB, the fastest Zstandard 155.
const (
	blockBytes  = 16 << 10
	lowestBytes = 32 << 10
)

// lowest packs what stays: by the middle level of MinLZ (on arm64 Snappy), unless Zstandard makes it
// smaller by a third, as it does the log. A first scan packs in half of the time of Zstandard so. A
// Zstandard block takes twice as long to read.
var lowest = func() *block.CompressionProfile {
	p := *block.BalancedCompression
	p.Name, p.MinReductionPercent, p.AdaptiveReductionCutoffPercent = "MinLZ or ZSTD1", 12, 30
	if p.OtherBlocks.Level > 0 { // Snappy has none
		p.OtherBlocks.Level = 2
	}
	return &p
}()

// Store is an open store.
type Store struct {
	db      *pebble.DB
	opts    *pebble.Options
	dir     string
	lock    *pebble.Lock
	guard   *guardfs.Guard
	read    bool       // for reading only
	closing sync.Mutex // guards closed
	closed  bool
}

var (
	_ kv.Store   = (*Store)(nil)
	_ kv.Settler = (*Store)(nil)
)

// Engine opens the folder of an address.
func Engine(ctx context.Context, dir string, o kv.OpenOptions) (kv.Store, error) {
	if dir == "" {
		return nil, errors.New("open state: the address names no folder")
	}
	s, err := Open(ctx, dir, Options{Logger: o.Logger, ReadOnly: o.ReadOnly})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Open opens or makes the store in dir. A folder held by another process gives
// an error that wraps ErrLocked and names the holder; one written by a newer
// version gives ErrNewer, and nothing in it is touched. The end of ctx ends the waiting
// for a locked folder, and for room on a full disk.
func Open(ctx context.Context, dir string, o Options) (*Store, error) {
	if o.CacheBytes == 0 {
		o.CacheBytes = 32 << 20
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.fs = guardfs.Own(o.fs)
	if o.memTable == 0 {
		o.memTable = memTableBytes
	}
	s := &Store{dir: dir, read: o.ReadOnly, guard: guardfs.New("state", o.fs, o.Logger)}
	if err := s.open(ctx, o); err != nil {
		return nil, fmt.Errorf("open state %s: %w", dir, err)
	}
	return s, nil
}

func (s *Store) open(ctx context.Context, o Options) (err error) {
	if err := guardfs.NoFolders(o.fs, s.dir); err != nil {
		return err
	}
	if err := checkForm(s.dir); err != nil {
		return err
	}
	if !o.ReadOnly {
		if err := o.fs.MkdirAll(s.dir, ownfile.FolderMode); err != nil {
			return err
		}
	}
	if s.lock, err = acquire(ctx, s.dir, o); err != nil {
		return err
	}
	defer func() {
		if err != nil && !s.guard.Stays() {
			s.lock.Close()
		}
	}()
	if err := checkForm(s.dir); err != nil { // again: now nobody else can write it
		return err
	}
	if !o.ReadOnly {
		if err := writeForm(s.dir); err != nil {
			return err
		}
		if err := writeHolder(s.dir, o.Holder); err != nil {
			return err
		}
	}
	cache := pebble.NewCache(o.CacheBytes)
	defer cache.Unref()
	opts := &pebble.Options{
		Lock:                        s.lock,
		ReadOnly:                    o.ReadOnly,
		Cache:                       cache,
		FormatMajorVersion:          pebble.FormatTableFormatV6,
		MemTableSize:                o.memTable,
		MemTableStopWritesThreshold: 4,
		L0CompactionThreshold:       2 * mergeFiles, // Pebble counts each twice,
		L0StopWritesThreshold:       4 * mergeFiles,
		CompactionConcurrencyRange:  func() (int, int) { return 1, 2 },
	}
	opts.Levels[0].FilterPolicy = bloom.FilterPolicy(10)
	for i := range opts.Levels {
		opts.Levels[i].BlockSize = blockBytes
		opts.Levels[i].Compression = func() *block.CompressionProfile { return block.FastestCompression }
	}
	opts.Levels[len(opts.Levels)-1].BlockSize = lowestBytes
	opts.Levels[len(opts.Levels)-1].Compression = func() *block.CompressionProfile { return lowest }
	if !o.ReadOnly { // of a killed process
		if err := o.fs.RemoveAll(filepath.Join(s.dir, loadFolder)); err != nil {
			return err
		}
	}
	db, err := s.guard.Open(ctx, s.dir, opts)
	if errors.Is(err, pebble.ErrDBDoesNotExist) { // to be read, and its first start was interrupted
		return fmt.Errorf("%w: %w", fs.ErrNotExist, err)
	}
	if err != nil {
		return err
	}
	s.db, s.opts = db, opts
	return nil
}

// errReopen comes from commits after a failed one that may hold now.
var errReopen = errors.New("the disk was full, and a commit that failed may hold: open the state again")

// writable tells why nothing can be written.
func (s *Store) writable() error {
	err := errors.Join(s.usable(), s.guard.Err())
	if err == nil && s.read {
		err = ErrReadOnly
	}
	if err == nil && guardfs.IsClosed(s.guard.Settled()) {
		err = errReopen
	}
	return err
}

// Settled is closed when the store has to be opened again, and can be: commits
// failed for want of room that may hold now.
func (s *Store) Settled() <-chan struct{} { return s.guard.Settled() }

// Get returns a copy of the value, or kv.ErrNotFound.
func (s *Store) Get(ctx context.Context, key []byte) ([]byte, error) { return s.get(ctx, s.db, key) }

// Scan yields the pairs with lo <= key < hi in key order.
func (s *Store) Scan(ctx context.Context, lo, hi []byte) iter.Seq2[kv.Pair, error] {
	return s.scan(ctx, s.db, lo, hi, false)
}

// ScanReverse is Scan from the highest key down.
func (s *Store) ScanReverse(ctx context.Context, lo, hi []byte) iter.Seq2[kv.Pair, error] {
	return s.scan(ctx, s.db, lo, hi, true)
}

func (s *Store) usable() error {
	s.closing.Lock()
	defer s.closing.Unlock()
	if s.closed {
		return fmt.Errorf("state %s: %w", s.dir, kv.ErrClosed)
	}
	return s.guard.ReadErr()
}

func (s *Store) get(ctx context.Context, r pebble.Reader, key []byte) ([]byte, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err := s.usable(); err != nil {
		return nil, err
	}
	v, closer, err := r.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, kv.ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("read state %s: %w", s.dir, guardfs.ReadError(err))
	}
	out := append([]byte{}, v...)
	if err := closer.Close(); err != nil {
		return nil, fmt.Errorf("read state %s: %w", s.dir, guardfs.ReadError(err))
	}
	return out, nil
}

func (s *Store) scan(ctx context.Context, r pebble.Reader, lo, hi []byte, reverse bool) iter.Seq2[kv.Pair, error] {
	return func(yield func(kv.Pair, error) bool) {
		fail := func(err error) { yield(kv.Pair{}, fmt.Errorf("read state %s: %w", s.dir, guardfs.ReadError(err))) }
		if err := s.usable(); err != nil {
			fail(err)
			return
		}
		if ctx.Err() != nil {
			yield(kv.Pair{}, context.Cause(ctx))
			return
		}
		if hi != nil && bytes.Compare(lo, hi) >= 0 {
			return
		}
		it, err := r.NewIter(&pebble.IterOptions{LowerBound: lo, UpperBound: hi})
		if err != nil {
			fail(err)
			return
		}
		defer it.Close()
		ok := false
		if reverse {
			ok = it.Last()
		} else {
			ok = it.First()
		}
		ended := ctx.Done()
		for ok {
			select {
			case <-ended:
				yield(kv.Pair{}, context.Cause(ctx))
				return
			default:
			}
			v, err := it.ValueAndErr()
			if err == nil {
				err = s.guard.ReadErr()
			}
			if err != nil {
				fail(err)
				return
			}
			if !yield(kv.Pair{Key: it.Key(), Value: v}, nil) {
				return
			}
			if reverse {
				ok = it.Prev()
			} else {
				ok = it.Next()
			}
		}
		if err := errors.Join(it.Error(), s.guard.ReadErr()); err != nil {
			fail(err)
		}
	}
}

// Snapshot is the present moment.
func (s *Store) Snapshot(ctx context.Context) kv.Snapshot {
	if ctx.Err() != nil {
		return &snapshot{s: s, cause: context.Cause(ctx)}
	}
	if s.usable() != nil {
		return &snapshot{s: s}
	}
	return &snapshot{s: s, snap: s.db.NewSnapshot()}
}

type snapshot struct {
	s     *Store
	snap  *pebble.Snapshot // nil: the store was not usable when it was taken
	cause error            // why it was not taken
	once  sync.Once
}

func (n *snapshot) Get(ctx context.Context, key []byte) ([]byte, error) {
	if n.snap == nil {
		return nil, n.err()
	}
	return n.s.get(ctx, n.snap, key)
}

func (n *snapshot) Scan(ctx context.Context, lo, hi []byte) iter.Seq2[kv.Pair, error] {
	return n.scan(ctx, lo, hi, false)
}

func (n *snapshot) ScanReverse(ctx context.Context, lo, hi []byte) iter.Seq2[kv.Pair, error] {
	return n.scan(ctx, lo, hi, true)
}

func (n *snapshot) scan(ctx context.Context, lo, hi []byte, reverse bool) iter.Seq2[kv.Pair, error] {
	if n.snap == nil {
		return func(yield func(kv.Pair, error) bool) { yield(kv.Pair{}, n.err()) }
	}
	return n.s.scan(ctx, n.snap, lo, hi, reverse)
}

func (n *snapshot) err() error {
	if n.cause != nil {
		return n.cause
	}
	if err := n.s.usable(); err != nil {
		return err
	}
	return kv.ErrClosed
}

func (n *snapshot) Close() (err error) {
	n.once.Do(func() {
		if n.snap != nil && n.s.usable() == nil {
			err = n.snap.Close()
		}
	})
	return err
}

// Close waits for work in the background and gives the folder free.
// After a failure of the disk that Pebble cannot recover from, the folder stays
// locked until the process ends; the error says so.
func (s *Store) Close() error {
	s.closing.Lock()
	if s.closed {
		s.closing.Unlock()
		return nil
	}
	s.closed = true
	s.closing.Unlock()

	stays, err := s.guard.Close(s.db.Close)
	if stays {
		return fmt.Errorf("close state %s: %w; the folder stays locked until this process ends", s.dir, err)
	}
	if !s.read {
		os.Remove(filepath.Join(s.dir, holderFile))
	}
	if err := errors.Join(err, s.lock.Close()); err != nil {
		return fmt.Errorf("close state %s: %w", s.dir, err)
	}
	return nil
}
