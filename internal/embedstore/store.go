package embedstore

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/rsbridge/rsbridge/internal/kv/guardfs"
	"github.com/rsbridge/rsbridge/internal/ownfile"
)

// ErrLocked comes from Open when another process (or another Store of this one)
// holds the folder; the message names the holder.
var ErrLocked = errors.New("store is in use")

// ErrClosed comes from every use of a Store after Close.
var ErrClosed = errors.New("store is closed")

// ErrGone comes from every use of a Store after its folder was removed, or replaced by another,
// while it was open.
var ErrGone = errors.New("the folder of the store was removed or replaced while the store is open: end this process, bring the folder back, as from a backup, and start again; what was written meanwhile is lost")

// Options for Open. The zero value is sensible.
type Options struct {
	CacheBytes   int64            // block cache; default 64 MiB
	Logger       *slog.Logger     // nil: silent
	Budget       Budget           // of each query and update
	MaxBodyBytes int64            // of one HTTP request body, decompressed; default 64 GiB
	Now          func() time.Time // default time.Now

	// Context ends an Open waiting for room on a full disk; nil: it waits for ever.
	Context context.Context

	fs vfs.FS // for tests; nil: the disk
}

// Store is an open embedded store. Safe for concurrent use; writes run one
// after the other, reads beside them.
type Store struct {
	dir  string
	opts Options
	log  *slog.Logger
	db   *pebble.DB
	popt *pebble.Options
	disk *guardfs.Guard
	lock *pebble.Lock
	home os.FileInfo // of the lock's file

	// writer is the right to write: a slot for one writer.
	writer chan struct{}
	// next is the number of the next new term; owned by the writer.
	next uint64
	// leftTerms: the dictionary holds terms from next on, left by a failed write; owned by the
	// writer.
	leftTerms bool
	commits   commits

	// users counts the readers of the database, for Close to wait.
	mu     sync.Mutex
	users  int
	closed bool
	idle   chan struct{}          // closed when users falls to 0 after Close
	budget atomic.Pointer[Budget] // of a query without its own
	quit   context.Context
	stop   context.CancelFunc

	forced forced
}

// forced are ways for large writes that tests force on small ones.
type forced struct {
	bulk, spill bool
	chunk       int // records in memory, instead of the usual bounds; 0: those
}

// complete fills in the defaults.
func (o *Options) complete() {
	if o.CacheBytes <= 0 {
		o.CacheBytes = 64 << 20
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.MaxBodyBytes <= 0 {
		o.MaxBodyBytes = 64 << 30
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Context == nil {
		o.Context = context.Background()
	}
}

// Open opens or makes the store in dir. A held folder gives an error wrapping ErrLocked with the
// name of the holder.
func Open(dir string, o Options) (*Store, error) {
	o.complete()
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("open store %s: %w", dir, err)
	}
	if err := ownfile.MkdirAll(abs); err != nil {
		return nil, fmt.Errorf("open store %s: %w", dir, err)
	}
	if o.fs == nil { // else the store is elsewhere
		if _, err := vacant(abs); err != nil {
			return nil, fmt.Errorf("open store %s: %w", dir, err)
		}
	}
	o.fs = guardfs.Own(o.fs)
	if err := guardfs.NoFolders(o.fs, abs); err != nil {
		return nil, fmt.Errorf("open store %s: %w", dir, err)
	}
	lock, err := lockFolder(abs, o.Now())
	if err != nil {
		return nil, fmt.Errorf("open store %s: %w", dir, err)
	}
	s := &Store{dir: abs, opts: o, log: o.Logger, lock: lock, writer: make(chan struct{}, 1), idle: make(chan struct{}), commits: commits{news: make(chan struct{})}}
	s.SetBudget(o.Budget)
	s.quit, s.stop = context.WithCancel(context.Background())
	if err := s.open(); err != nil {
		if s.db != nil {
			s.disk.Close(s.db.Close) // the error of open says more
		}
		s.stop()
		if s.disk == nil || !s.disk.Stays() {
			lock.Close()
		}
		return nil, fmt.Errorf("open store %s: %w", dir, err)
	}
	return s, nil
}

// Holds tells whether a folder holds a store, or the remains of one; if not, other names something
// else in it.
func Holds(dir string) (store bool, other string, err error) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return false, "", err
	}
	for _, f := range files {
		name := f.Name()
		if name == stateFile {
			return false, "the state of rsbridge (file " + name + ")", nil
		}
		if name == guardfs.SyncedFile || strings.HasPrefix(name, "marker.manifest.") || strings.HasPrefix(name, "MANIFEST-") {
			store = true
		}
		// hidden, or of an interrupted first start
		own := slices.ContainsFunc([]string{".", lockFile, holderFile, "lost+found", guardfs.SyncedFile},
			func(prefix string) bool { return strings.HasPrefix(name, prefix) })
		if name == "tmp" {
			left, err := os.ReadDir(filepath.Join(dir, name))
			own = err == nil && len(left) == 0
		}
		if !own {
			other = name
		}
	}
	if store {
		other = ""
	}
	return store, other, nil
}

// vacant refuses a folder with foreign files and no store: a store removes files named like its
// own, and everything in tmp.
func vacant(dir string) (store bool, err error) {
	store, other, err := Holds(dir)
	if err == nil && other != "" {
		err = fmt.Errorf("the folder holds %s, and no store: give one that is new or empty", other)
	}
	return store, err
}

func (s *Store) open() (err error) {
	if err := os.RemoveAll(s.tmp("")); err != nil {
		return fmt.Errorf("remove what an earlier run left: %w", err)
	}
	if err := ownfile.MkdirAll(s.tmp("")); err != nil {
		return err
	}
	if s.home, err = os.Stat(filepath.Join(s.dir, lockFile)); err != nil {
		return err
	}
	s.popt = pebbleOptions(s.opts.CacheBytes)
	s.popt.Lock = s.lock
	s.disk = guardfs.New("store", s.opts.fs, s.log)
	if s.db, err = s.disk.Open(s.opts.Context, s.dir, s.popt); err != nil {
		return err
	}
	v := pebbleView{s.db}
	val, ok, err := v.get(keyVersion)
	if err != nil {
		return err
	}
	if !ok {
		b := s.db.NewBatch()
		b.Set(keyVersion, binary.BigEndian.AppendUint32(nil, storeVersion), nil)
		b.Set(keyNext, binary.BigEndian.AppendUint64(nil, 1), nil)
		if err := s.apply(b, pebble.Sync); err != nil {
			return err
		}
	} else if err := versionFault(val); err != nil {
		return err
	}
	return s.readNext()
}

// readNext reads the numbers of the next term and the last commit, and removes terms left by an unfinished write.
func (s *Store) readNext() error {
	val, ok, err := pebbleView{s.db}.get(keyNext)
	if err != nil {
		return err
	}
	if err := nextFault(val, ok, nil); err != nil {
		return err
	}
	s.next = binary.BigEndian.Uint64(val)
	if s.commits.last, err = readMark(pebbleView{s.db}); err != nil {
		return err
	}
	return s.dropTermsFrom(s.next)
}

// mergeLoads is the number of loads before they are merged with the level below. For a million
// entities in 49 loads, two of them and a first level of 64 MiB below took a fifth more of the
// processor's time for merging, and half as much again for reading all afterwards.
const mergeLoads = 8

// pebbleOptions are those of the store and, with its own cache, of a scratch space.
func pebbleOptions(cache int64) *pebble.Options {
	o := &pebble.Options{
		CacheSize:                   cache,
		MemTableSize:                16 << 20,
		MemTableStopWritesThreshold: 3,
		FormatMajorVersion:          pebble.FormatNewest,
		MaxOpenFiles:                500,
		L0CompactionThreshold:       2 * mergeLoads, // Pebble counts each twice
		L0StopWritesThreshold:       4 * mergeLoads,
		LBaseMaxBytes:               256 << 20,
	}
	for i := range o.Levels {
		l := &o.Levels[i]
		l.FilterPolicy = bloom.FilterPolicy(10)
		l.BlockSize = 16 << 10
		l.IndexBlockSize = 64 << 10
	}
	o.Experimental.L0CompactionConcurrency = 4
	o.EnsureDefaults()
	return o
}

// apply makes a batch part of the store. The batch is over afterwards.
func (s *Store) apply(b *pebble.Batch, o *pebble.WriteOptions) error {
	abandoned, err := false, s.disk.Room(s.db, s.dir, b.Len())
	if err == nil {
		abandoned, err = s.disk.Do(func() error { return s.db.Apply(b, o) })
	}
	if !abandoned {
		err = errors.Join(err, b.Close())
	}
	return writeError(err)
}

func writeError(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("write the store: %w", err)
}

func (s *Store) tmp(name string) string { return filepath.Join(s.dir, "tmp", name) }

// begin marks the database as in use; done ends that.
func (s *Store) begin() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	if err := s.disk.ReadErr(); err != nil {
		return err
	}
	if err := s.atHome(); err != nil {
		return err
	}
	s.users++
	return nil
}

// atHome checks that the folder is still the opened one: Pebble goes on with its open files, and
// its writes would be lost.
func (s *Store) atHome() error {
	now, err := os.Stat(filepath.Join(s.dir, lockFile))
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && !os.SameFile(now, s.home):
		return fmt.Errorf("store in %s: %w", s.dir, ErrGone)
	}
	return nil // reads and writes report this themselves
}

// Check tells whether the store can be used at present.
func (s *Store) Check() error {
	if err := s.begin(); err != nil {
		return err
	}
	s.done()
	return s.disk.Err()
}

func (s *Store) done() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users--
	if s.closed && s.users == 0 {
		close(s.idle)
	}
}

// beginWrite waits for the right to write. endWrite gives it back.
func (s *Store) beginWrite(ctx context.Context) error {
	if err := s.begin(); err != nil {
		return err
	}
	select {
	case s.writer <- struct{}{}:
		if s.quit.Err() == nil {
			err := s.disk.Err()
			if err == nil && s.disk.TakeSettled() { // a failed write may hold
				s.leftTerms = true
				err = s.readNext()
			}
			if err == nil && s.leftTerms {
				err = s.dropTermsFrom(s.next)
				s.leftTerms = err != nil
			}
			if err != nil {
				s.endWrite()
				return writeError(err)
			}
			return nil
		}
		<-s.writer
	case <-s.quit.Done():
	case <-ctx.Done():
		s.done()
		return context.Cause(ctx)
	}
	s.done()
	return ErrClosed
}

func (s *Store) endWrite() {
	<-s.writer
	s.done()
}

// bound gives a context ending with the store too.
func (s *Store) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	release := context.AfterFunc(s.quit, func() { cancel(ErrClosed) })
	return ctx, func() { release(); cancel(context.Canceled) }
}

// Close ends the store. It makes requests under way fail with ErrClosed and waits for them, and for
// the Close of every open Result and Snapshot. Idempotent.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		<-s.idle
		return nil
	}
	s.closed = true
	if s.users == 0 {
		close(s.idle)
	}
	s.mu.Unlock()
	s.stop()
	<-s.idle
	stays, err := s.disk.Close(s.db.Close)
	if stays {
		return fmt.Errorf("close store %s: %w; the folder stays locked until this process ends", s.dir, err)
	}
	os.Remove(filepath.Join(s.dir, holderFile))
	if err := errors.Join(err, s.lock.Close()); err != nil {
		return fmt.Errorf("close store %s: %w", s.dir, err)
	}
	return nil
}

// Stats are the sizes of a store.
type Stats struct {
	Triples   int64 // in all graphs
	Graphs    int64 // named graphs
	DiskBytes int64
}

// Stats counts the present content of the store.
func (s *Store) Stats() (Stats, error) {
	if err := s.begin(); err != nil {
		return Stats{}, err
	}
	defer s.done()
	var st Stats
	err := graphCounts(pebbleView{s.db}, func(g id, n int64) bool {
		st.Triples += n
		if g != 0 {
			st.Graphs++
		}
		return true
	})
	st.DiskBytes = int64(s.db.Metrics().DiskSpaceUsage())
	return st, err
}

const (
	holderFile = "holder.json"
	lockFile   = "LOCK"     // Pebble's
	stateFile  = "RSBRIDGE" // of the state, with files of Pebble too
)

// holder is the process with the open folder.
type holder struct {
	PID     int       `json:"pid"`
	Program string    `json:"program"`
	Since   time.Time `json:"since"`
}

// LockedError is ErrLocked of a process that left its name.
type LockedError struct{ holder }

// Process is its number.
func (e *LockedError) Process() int { return e.PID }

func (e *LockedError) Error() string {
	return fmt.Sprintf("%v by process %d (%s, since %s): stop it, or use its addresses", ErrLocked, e.PID, e.Program, e.Since.Format(time.RFC3339))
}

func (e *LockedError) Unwrap() error { return ErrLocked }

func lockFolder(dir string, now time.Time) (*pebble.Lock, error) {
	lock, err := takeLock(dir)
	if err != nil {
		return nil, err
	}
	data, _ := json.Marshal(holder{os.Getpid(), filepath.Base(os.Args[0]), now.UTC()})
	if err := os.WriteFile(filepath.Join(dir, holderFile), append(data, '\n'), ownfile.FileMode); err != nil {
		lock.Close()
		return nil, err
	}
	return lock, nil
}

// takeLock locks a folder; its error names the holder.
func takeLock(dir string) (*pebble.Lock, error) {
	lock, err := pebble.LockDirectory(dir, vfs.Default)
	var path *fs.PathError // the lock cannot be made; nobody has it
	if errors.As(err, &path) {
		return nil, err
	}
	if err != nil {
		var h holder
		data, rerr := os.ReadFile(filepath.Join(dir, holderFile))
		if rerr != nil || json.Unmarshal(data, &h) != nil || h.PID == 0 {
			return nil, fmt.Errorf("%w by a process that left no name (%v): close it first", ErrLocked, err)
		}
		return nil, &LockedError{h}
	}
	if err := os.Chmod(filepath.Join(dir, lockFile), ownfile.FileMode); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return lock, nil
}
