// Package guardfs stands between Pebble and the disk. A full or failing disk then is an error of
// the request, and never ends or hangs the process.
//
// Pebble ends the process after a failed write of its log, its manifest or its folder, partly with
// panics beyond recovery (locks are unlocked twice). It also repeats a failed flush at once and for
// ever while writers wait. A Guard is Pebble's file system, logger and event listener. Do runs a
// write beside the caller, and the caller leaves when the disk has failed.
//
// A full disk passes: running writes wait for room, new ones are refused, and all goes on when
// there is room again. After any other failure nothing is written until the database is opened
// again.
//
// A Guard also checks the logs before Pebble reads them, and names damaged files (see ErrDamaged).
package guardfs

import (
	"cmp"
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
	synced  *synced
	failed  chan struct{} // closed with the first failure

	armed    atomic.Bool  // opening has ended
	ioFailed atomic.Bool  // a write failed while opening
	lastRead atomic.Value // the file opened last for reading while opening: a string
	parked   atomic.Bool  // some goroutine of Pebble will never come back
	waiting  atomic.Int32 // Pebble's goroutines waiting for room
	stale    atomic.Bool  // a write abandoned by Do has come back
	flushing atomic.Bool

	mu      sync.Mutex // guards the writing of the fields below
	first   atomic.Pointer[error]
	noRead  atomic.Bool           // Pebble's answers cannot be trusted
	full    atomic.Pointer[error] // why something of Pebble waits for room, or is done again
	told    time.Time             // when full was logged
	left    atomic.Int32          // writes abandoned by Do and still running
	settled chan struct{}         // closed when one has come back, and none is left
}

// New guards a database on fs (nil: the disk). name stands in messages, e.g. "state"; log nil is
// silent.
func New(name string, fs vfs.FS, log *slog.Logger) *Guard {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Guard{what: name, log: log, fs: Own(fs), synced: &synced{}, failed: make(chan struct{}), settled: make(chan struct{})}
}

// Scratch guards a throwaway database. After a failure it reports success to Pebble, so Pebble
// neither waits nor stops. The user learns of the failure from Err: the content of the scratch is
// then worthless.
func Scratch(name string, fs vfs.FS, log *slog.Logger) *Guard {
	g := New(name, fs, log)
	g.scratch = true
	return g
}

// Open opens the database in dir with the guard's file system, logger and listener put into o.
// Every failure while opening is an error of Open, panics of Pebble included. So is a disk without
// room at the start. On a disk filled later, Open waits for room until ctx ends. A damaged file is
// an ErrDamaged, a database of a newer version a kv.ErrNewer. After an error Stays tells whether
// the folder is still in use.
func (g *Guard) Open(ctx context.Context, dir string, o *pebble.Options) (*pebble.DB, error) {
	if !g.scratch {
		var err error
		if g.synced, err = checkLogs(g.fs, dir); err != nil {
			return nil, err
		}
	}
	if !g.scratch && !o.ReadOnly {
		if err := g.roomToOpen(dir); err != nil {
			return nil, err
		}
	}
	o.FS = &guardFS{FS: g.fs, g: g}
	o.Logger = g
	o.EventListener = g.listener()
	if g.scratch {
		o.L0StopWritesThreshold = 1 << 30 // do not wait for a compaction: it cannot succeed
	}
	type opened struct {
		db  *pebble.DB
		err error
	}
	done := make(chan opened, 1)
	go func() {
		var r opened
		defer func() {
			if p := recover(); p != nil {
				r = opened{nil, fmt.Errorf("pebble: %v", p)}
			}
			done <- r
		}()
		if !g.scratch && !o.ReadOnly {
			if r.err = g.synced.open(o.FS, dir); r.err != nil {
				return
			}
		}
		r.db, r.err = pebble.Open(dir, o)
	}()
	var r opened
	stays := false
	select {
	case r = <-done:
	case <-ctx.Done():
		tick := time.NewTicker(roomPause)
		defer tick.Stop()
		for ended := false; !ended; { // wait for the opened database: closing it frees the folder
			select {
			case r = <-done:
				ended = true
			case <-tick.C:
				if ended = g.waiting.Load() > 0 || g.Failure() != nil; ended {
					stays, r.err = true, context.Cause(ctx)
				}
			}
		}
	case <-g.failed:
		timer := time.NewTimer(closeGrace)
		defer timer.Stop()
		select {
		case r = <-done:
		case <-timer.C:
			stays, r.err = true, g.Err()
		}
	}
	if !stays {
		if r.err != nil {
			_ = g.synced.close() // the failure of Open says more
		}
		r.err = g.openError(r.err, dir, o.FormatMajorVersion)
	}
	if r.err != nil && !stays && g.Err() != nil {
		r.err = errors.Join(r.err, g.Err())
	}
	g.parked.Store(stays)
	g.armed.Store(true)
	return r.db, r.err
}

// Do runs write, a call into Pebble. After a failure of the disk, or on a full one, write may wait
// for ever or panic; then Do abandons it. Its result is known when it comes back (Settled), or when
// the database is opened again. Until then reads are refused. If abandoned is true, the caller must
// not touch the data of write again.
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
	patience := time.NewTicker(roomPatience)
	defer patience.Stop()
	for {
		select {
		case err := <-done:
			return false, err
		case <-patience.C:
			if err := g.fullErr(); err != nil {
				g.leave(done)
				return true, err
			}
			continue
		case <-g.failed:
		}
		break
	}
	timer := time.NewTimer(doGrace)
	defer timer.Stop()
	select {
	case err := <-done:
		return false, err
	case <-timer.C:
		g.noRead.Store(true)
		return true, g.Err()
	}
}

const (
	// doGrace is the time left to a running write after a failure: the failure may be another's.
	doGrace = 200 * time.Millisecond
	// roomPatience is how long a write waits for room.
	roomPatience = time.Second
	// roomPause is between two looks for room.
	roomPause = 100 * time.Millisecond
	// fullPause is between two lines in the log about a full disk.
	fullPause = time.Minute
)

// leave waits in the background for an abandoned write.
func (g *Guard) leave(done <-chan error) {
	g.left.Add(1)
	go func() {
		<-done
		g.mu.Lock()
		defer g.mu.Unlock()
		g.stale.Store(true)
		if g.left.Add(-1) == 0 && !IsClosed(g.settled) {
			close(g.settled)
		}
	}()
}

// IsClosed tells whether c is closed.
func IsClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// errLeft is the answer shortly before an abandoned write comes back.
var errLeft = fmt.Errorf("%w a moment ago, and an earlier write is still under way; do it again", syscall.ENOSPC)

// Settled is closed when all abandoned writes have come back: their results may differ from the
// errors returned for them.
func (g *Guard) Settled() <-chan struct{} { return g.settled }

// TakeSettled tells, once, of the return of all abandoned writes.
func (g *Guard) TakeSettled() bool { return g.left.Load() == 0 && g.stale.Swap(false) }

// waits tells whether a write to path waits for room.
func (g *Guard) waits(path string) bool {
	return !g.scratch && (!g.armed.Load() || !strings.HasSuffix(path, ".sst"))
}

// untilRoom does op again until it fails for another reason than want of room.
func (g *Guard) untilRoom(why error, op func() error) error {
	g.waiting.Add(1)
	g.noteFull(why)
	for {
		time.Sleep(roomPause)
		err := op()
		if IsFull(err) {
			continue
		}
		if g.waiting.Add(-1) == 0 {
			g.full.Store(nil)
			g.log.Info("there is room for the " + g.what + " again")
		}
		return err
	}
}

func (g *Guard) noteFull(why error) {
	why = fmt.Errorf("%w (make room; what waits for it goes on then)", why)
	g.full.Store(&why)
	g.mu.Lock()
	defer g.mu.Unlock()
	if time.Since(g.told) >= fullPause {
		g.told = time.Now()
		g.log.Error("no room on the disk for the "+g.what, "error", why)
	}
}

// fullErr is why something waits for room; nil if nothing waits.
func (g *Guard) fullErr() error {
	if p := g.full.Load(); p != nil {
		return *p
	}
	return nil
}

// RoomToOpen tells why a database in dir has no room to be opened; nil: it has.
func RoomToOpen(dir string) error { return New("", nil, nil).roomToOpen(dir) }

// roomToOpen checks for room to begin. The amount Pebble writes from the logs is unknown; it waits
// if the disk gets full.
func (g *Guard) roomToOpen(dir string) error {
	u, err := g.fs.GetDiskUsage(dir)
	if err != nil || u.AvailBytes >= reserve { // or this file system cannot tell
		return nil
	}
	return noRoom(u.AvailBytes, reserve, dir)
}

func noRoom(free, need uint64, dir string) error {
	return fmt.Errorf("%w: %d bytes are free for %s, and at least %d are needed; make room, then do it again", syscall.ENOSPC, free, dir, need)
}

// Room checks for room in dir for n more bytes and all data not flushed yet. Its error wraps
// ENOSPC. Nothing is broken by it: the same write succeeds when there is room again. The check
// comes before Pebble meets the full disk and ends all writing.
func (g *Guard) Room(db *pebble.DB, dir string, n int) error {
	u, err := g.fs.GetDiskUsage(dir)
	if err != nil { // this file system cannot tell
		return nil
	}
	need := uint64(n) + reserve
	if u.AvailBytes > need+plenty {
		return nil
	}
	log := db.Metrics().WAL.Size
	if need += log; u.AvailBytes < need {
		if log >= reserve && u.AvailBytes >= log/2+reserve { // tables are packed, and their log goes then
			g.flush(db)
		}
		return noRoom(u.AvailBytes, need, dir)
	}
	if g.waiting.Load() == 0 { // failed work on tables is repeated
		g.full.Store(nil)
	}
	return nil
}

// flush writes the data of the log to tables, unless a flush is running.
func (g *Guard) flush(db *pebble.DB) {
	if !g.flushing.CompareAndSwap(false, true) {
		return
	}
	go func() {
		defer g.flushing.Store(false)
		defer func() { _ = recover() }() // the database was closed, or has failed
		if flushed, err := db.AsyncFlush(); err == nil {
			<-flushed
		}
	}()
}

const (
	reserve = 1 << 20 // for manifests and the like
	plenty  = 1 << 30 // with more free space the check ends early
)

// IsFull tells whether err comes from a disk without room or an exhausted quota.
func IsFull(err error) bool {
	return err != nil && (errors.Is(err, syscall.ENOSPC) || errors.Is(err, errNoRoom) ||
		strings.Contains(err.Error(), syscall.ENOSPC.Error())) // Pebble may keep the words only
}

// Fail notes the end of all writing.
func (g *Guard) Fail(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.first.Load() != nil {
		return
	}
	if !g.scratch && !errors.Is(err, ErrDamaged) {
		err = fmt.Errorf("%w (writing has stopped; when the disk is in order, start again)", err)
	}
	g.first.Store(&err)
	close(g.failed)
	g.log.Error(g.what+" cannot be written", "error", err)
}

// Broken is Fail, and ends reading too.
func (g *Guard) Broken(err error) {
	g.Fail(err)
	g.noRead.Store(true)
}

// Err is the reason against writing, with advice; nil while all is well.
func (g *Guard) Err() error {
	if err := g.Failure(); err != nil {
		return err
	}
	if g.waiting.Load() == 0 && g.left.Load() == 0 {
		return nil
	}
	return cmp.Or(g.fullErr(), errLeft)
}

// Failure is the first permanent failure.
func (g *Guard) Failure() error {
	if p := g.first.Load(); p != nil {
		return *p
	}
	return nil
}

// ReadErr is Err when reads are refused too.
func (g *Guard) ReadErr() error {
	if g.noRead.Load() || g.left.Load() > 0 {
		return g.Err()
	}
	return nil
}

// Stays tells whether the database could not be closed, or not be opened. Its goroutines and its
// lock then last until the process ends.
func (g *Guard) Stays() bool { return g.parked.Load() }

// Close runs closeDB, the close of the database. If it hangs, stays is true and err is the first
// failure. The goroutines and the lock then last until the process ends.
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
		done <- errors.Join(closeDB(), g.synced.close())
	}()
	patience := time.NewTicker(closeGrace)
	defer patience.Stop()
	for {
		select {
		case err := <-done:
			return false, err
		case <-patience.C:
			if err := cmp.Or(g.Err(), g.fullErr()); err != nil {
				g.parked.Store(true)
				return true, err
			}
		}
	}
}

// closeGrace is how long Close waits for Pebble on a failed disk.
const closeGrace = 1 * time.Second

// Infof logs Pebble's progress.
func (g *Guard) Infof(format string, args ...any) {
	g.log.Debug("pebble: " + fmt.Sprintf(format, args...))
}

// Errorf logs errors Pebble could handle.
func (g *Guard) Errorf(format string, args ...any) {
	g.log.Warn("pebble: " + fmt.Sprintf(format, args...))
}

// Fatalf replaces the end of the process asked for by Pebble.
func (g *Guard) Fatalf(format string, args ...any) {
	g.Broken(fmt.Errorf("pebble: "+format, args...))
}

// retryPause slows Pebble's endless retries of a failed flush: without it they use a whole core.
const retryPause = 20 * time.Millisecond

func (g *Guard) listener() *pebble.EventListener {
	return &pebble.EventListener{
		BackgroundError: func(err error) {
			err = fmt.Errorf("pebble, in the background: %w", ReadError(err))
			if IsFull(err) && !g.scratch {
				g.noteFull(err)
			} else {
				g.Fail(err)
			}
			time.Sleep(retryPause)
		},
		FlushEnd: func(info pebble.FlushInfo) {
			if info.Err == nil && g.waiting.Load() == 0 {
				g.full.Store(nil)
			}
		},
		DataCorruption: func(info pebble.DataCorruptionInfo) {
			g.Fail(damagedFile(info.Path, info.Details))
		},
		DiskSlow: func(info pebble.DiskSlowInfo) {
			g.log.Warn("the disk of the "+g.what+" is slow", "path", info.Path, "duration", info.Duration)
		},
	}
}
