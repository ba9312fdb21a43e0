// Package guardfs stands between Pebble and the disk, so that a disk that is
// full or fails is an error of the request that met it, never the end or the
// hanging of the process.
//
// Pebble answers a failure to write its log, its manifest or its folder by
// ending the process, partly with panics that cannot be recovered from (locks
// are unlocked twice), and repeats a flush that failed at once and for ever while
// writers wait. A Guard is Pebble's file system, logger and event listener; it
// notes the first failure, and Do runs what writes beside the caller, who leaves
// when the failure is known. After a failure nothing is written any more until
// the database is opened again, which settles what is on disk.
package guardfs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Guard watches over one database. Safe for concurrent use.
type Guard struct {
	what    string
	log     *slog.Logger
	fs      vfs.FS
	scratch bool
	failed  chan struct{} // closed with the first failure

	armed  atomic.Bool // opening has ended
	parked atomic.Bool // some goroutine of Pebble will never come back

	mu     sync.Mutex // guards the writing of what follows
	first  atomic.Pointer[error]
	noRead atomic.Bool // what Pebble would answer cannot be trusted
}

// New guards a database on fs (nil: the disk). what names it in messages, e.g.
// "state"; log nil is silent.
func New(what string, fs vfs.FS, log *slog.Logger) *Guard {
	if fs == nil {
		fs = vfs.Default
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Guard{what: what, log: log, fs: fs, failed: make(chan struct{})}
}

// Scratch guards a database that is thrown away: after a failure Pebble is told
// that all is well, so that it neither waits nor stops, and whoever uses the
// scratch learns from Err that what it holds is worth nothing.
func Scratch(what string, fs vfs.FS, log *slog.Logger) *Guard {
	g := New(what, fs, log)
	g.scratch = true
	return g
}

// Open opens the database in dir with the guard's file system, logger and
// listener put into o. While it is opened every failure, panics of Pebble among
// them, is an error of Open.
func (g *Guard) Open(dir string, o *pebble.Options) (db *pebble.DB, err error) {
	defer func() {
		if r := recover(); r != nil {
			db, err = nil, fmt.Errorf("pebble: %v", r)
		}
		if err != nil {
			if first := g.Err(); first != nil {
				err = errors.Join(err, first)
			}
		}
	}()
	o.FS = &guardFS{FS: g.fs, g: g}
	o.Logger = g
	o.EventListener = g.listener()
	if g.scratch {
		o.L0StopWritesThreshold = 1 << 30 // nobody waits for a compaction that cannot succeed
	}
	db, err = pebble.Open(dir, o)
	g.armed.Store(true)
	return db, err
}

// Do runs write, which is a call into Pebble that may wait for ever or panic
// when the disk has failed. When the guard learns of a failure and write does
// not come back, Do leaves it behind with the first failure: whether it holds is
// known when the database is opened again, so reads are refused from then on.
// What write uses must not be touched again when abandoned is true.
func (g *Guard) Do(write func() error) (abandoned bool, err error) {
	if err := g.Err(); err != nil {
		return false, err
	}
	done := make(chan error, 1)
	go func() {
		defer func() {
			if r := recover(); r != nil {
				g.Broken(fmt.Errorf("%v", r))
				done <- g.Err()
			}
		}()
		done <- write()
	}()
	select {
	case err := <-done:
		return false, err
	case <-g.failed:
	}
	ctx, cancel := context.WithTimeout(context.Background(), doGrace)
	defer cancel()
	select {
	case err := <-done:
		return false, err
	case <-ctx.Done():
		g.noRead.Store(true)
		return true, g.Err()
	}
}

// doGrace is how long what is under way may still end after a failure: the
// failure may be another's.
const doGrace = 200 * time.Millisecond

// Room checks that n more bytes can be written to dir together with what db
// still has to flush. Its error wraps ENOSPC; nothing is broken by it, and the
// same write succeeds when there is room again. It looks before Pebble would
// run into the wall, which would end all writing.
func (g *Guard) Room(db *pebble.DB, dir string, n int) error {
	u, err := g.fs.GetDiskUsage(dir)
	if err != nil { // this file system cannot tell
		return nil
	}
	need := uint64(n) + reserve
	if u.AvailBytes > need+plenty {
		return nil
	}
	need += db.Metrics().WAL.Size
	if u.AvailBytes >= need {
		return nil
	}
	return fmt.Errorf("%w: %d bytes are free for %s, and at least %d are needed; make room, then do it again", syscall.ENOSPC, u.AvailBytes, dir, need)
}

const (
	reserve = 1 << 20 // for manifests and the like
	plenty  = 1 << 30 // free space beyond which nothing is counted
)

// IsFull tells whether err comes from a disk without room, or a quota that is used up.
func IsFull(err error) bool {
	return err != nil && (errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) ||
		strings.Contains(err.Error(), syscall.ENOSPC.Error())) // where Pebble keeps the words only
}

// Fail notes that from now on nothing can be written.
func (g *Guard) Fail(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.first.Load() != nil {
		return
	}
	if !g.scratch {
		err = fmt.Errorf("%w (writing has stopped; when the disk is in order, start again)", err)
	}
	g.first.Store(&err)
	close(g.failed)
	g.log.Error(g.what+" cannot be written", "error", err)
}

// Broken notes that reads cannot be trusted either.
func (g *Guard) Broken(err error) {
	g.Fail(err)
	g.noRead.Store(true)
}

// Err is the first failure, with what to do; nil while all is well.
func (g *Guard) Err() error {
	if p := g.first.Load(); p != nil {
		return *p
	}
	return nil
}

// ReadErr is Err when reads are refused too.
func (g *Guard) ReadErr() error {
	if g.noRead.Load() {
		return g.Err()
	}
	return nil
}

// Close runs closeDB, which closes the database. stays tells that it could not
// be closed: its goroutines and its lock last until the process ends. err is
// then the first failure.
func (g *Guard) Close(closeDB func() error) (stays bool, err error) {
	if g.parked.Load() {
		return true, g.Err()
	}
	done := make(chan error, 1)
	go func() {
		defer func() {
			if r := recover(); r != nil {
				done <- fmt.Errorf("pebble: %v", r)
			}
		}()
		done <- closeDB()
	}()
	select {
	case err := <-done:
		return false, err
	case <-g.failed:
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeGrace)
	defer cancel()
	select {
	case err := <-done:
		return false, err
	case <-ctx.Done():
		return true, g.Err()
	}
}

// closeGrace is how long Close waits for a Pebble whose disk has failed.
const closeGrace = 1 * time.Second

// Infof is Pebble's account of what it does.
func (g *Guard) Infof(format string, args ...any) {
	g.log.Debug("pebble: " + fmt.Sprintf(format, args...))
}

// Errorf is what Pebble could get over.
func (g *Guard) Errorf(format string, args ...any) {
	g.log.Warn("pebble: " + fmt.Sprintf(format, args...))
}

// Fatalf is where Pebble would end the process.
func (g *Guard) Fatalf(format string, args ...any) {
	g.Broken(fmt.Errorf("pebble: "+format, args...))
}

// retryPause keeps Pebble, which repeats a flush that failed at once and for
// ever, from using a whole core for it.
const retryPause = 20 * time.Millisecond

func (g *Guard) listener() *pebble.EventListener {
	return &pebble.EventListener{
		BackgroundError: func(err error) {
			g.Fail(fmt.Errorf("pebble, in the background: %w", err))
			time.Sleep(retryPause)
		},
		DataCorruption: func(info pebble.DataCorruptionInfo) {
			g.Fail(fmt.Errorf("pebble: damaged file %s: %w", info.Path, info.Details))
		},
		DiskSlow: func(info pebble.DiskSlowInfo) {
			g.log.Warn("the disk of the "+g.what+" is slow", "path", info.Path, "duration", info.Duration)
		},
	}
}
