// Package guardfs stands between Pebble and the disk, so that a disk that is
// full or fails is an error of the request that met it, never the end or the
// hanging of the process.
//
// Pebble answers a failure to write its log, its manifest or its folder by
// ending the process, partly with panics that cannot be recovered from (locks
// are unlocked twice), and repeats a flush that failed at once and for ever while
// writers wait. A Guard is Pebble's file system, logger and event listener, and Do
// runs what writes beside the caller, who leaves when the disk has failed.
//
// A full disk passes: what is under way waits for room, new writes are refused,
// and all goes on when there is room again. After any other failure nothing is
// written any more until the database is opened again, which settles what is on
// disk.
//
// A Guard also looks at the logs before Pebble reads them (see ErrDamaged).
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
	failed  chan struct{} // closed with the first failure

	armed    atomic.Bool  // opening has ended
	parked   atomic.Bool  // some goroutine of Pebble will never come back
	waiting  atomic.Int32 // goroutines of Pebble that wait for room
	stale    atomic.Bool  // a write has come back that Do had left
	flushing atomic.Bool

	mu      sync.Mutex // guards the writing of what follows
	first   atomic.Pointer[error]
	noRead  atomic.Bool           // what Pebble would answer cannot be trusted
	full    atomic.Pointer[error] // why something of Pebble waits for room, or is done again
	told    time.Time             // when full was logged
	left    atomic.Int32          // writes that Do has left, and that have not come back
	settled chan struct{}         // closed when one has come back, and none is left
}

// New guards a database on fs (nil: the disk). what names it in messages, e.g.
// "state"; log nil is silent.
func New(what string, fs vfs.FS, log *slog.Logger) *Guard {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Guard{what: what, log: log, fs: Own(fs), failed: make(chan struct{}), settled: make(chan struct{})}
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
// them, is an error of Open. One that finds no room to begin with is an error too;
// where the disk gets full meanwhile, Open waits for room until ctx ends. After an
// error Stays tells whether the folder is still in use.
func (g *Guard) Open(ctx context.Context, dir string, o *pebble.Options) (*pebble.DB, error) {
	if !g.scratch {
		if err := checkLogs(g.fs, dir); err != nil {
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
		o.L0StopWritesThreshold = 1 << 30 // nobody waits for a compaction that cannot succeed
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
		r.db, r.err = pebble.Open(dir, o)
	}()
	var r opened
	stays := false
	select {
	case r = <-done:
	case <-ctx.Done():
		tick := time.NewTicker(roomPause)
		defer tick.Stop()
		for ended := false; !ended; { // what can be opened is: its folder is free again when it is closed
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
	if r.err != nil && !stays && g.Err() != nil {
		r.err = errors.Join(r.err, g.Err())
	}
	g.parked.Store(stays)
	g.armed.Store(true)
	return r.db, r.err
}

// Do runs write, which is a call into Pebble that may wait for ever or panic
// when the disk has failed. When the guard learns of a failure, or of a disk that
// is full, and write does not come back, Do leaves it behind: whether it holds is
// known when it comes back (Settled), or else when the database is opened again;
// until then reads are refused. What write uses must not be touched again when
// abandoned is true.
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
	// doGrace is how long what is under way may still end after a failure: the
	// failure may be another's.
	doGrace = 200 * time.Millisecond
	// roomPatience is how long a write waits for room.
	roomPatience = time.Second
	// roomPause is between two looks for room.
	roomPause = 100 * time.Millisecond
	// fullPause is between two lines in the log about a full disk.
	fullPause = time.Minute
)

// leave waits in the background for a write that Do has left.
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

// errLeft is the answer while a write that Do has left is about to come back.
var errLeft = fmt.Errorf("%w a moment ago, and an earlier write is still under way; do it again", syscall.ENOSPC)

// Settled is closed when writes that Do has left have come back: what was told of
// them may be wrong.
func (g *Guard) Settled() <-chan struct{} { return g.settled }

// TakeSettled tells, once, that writes that Do has left have come back.
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

// noteFull notes why something waits for room.
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

// fullErr is why something waits for room, nil where nothing does.
func (g *Guard) fullErr() error {
	if p := g.full.Load(); p != nil {
		return *p
	}
	return nil
}

// RoomToOpen tells why a database in dir has no room to be opened; nil: it has.
func RoomToOpen(dir string) error { return New("", nil, nil).roomToOpen(dir) }

// roomToOpen checks that Pebble can begin. How much it writes of what is in the logs
// is not known; it waits where the disk gets full.
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
	log := db.Metrics().WAL.Size
	if need += log; u.AvailBytes < need {
		if log >= reserve && u.AvailBytes >= log/2+reserve { // tables are packed, and their log goes then
			g.flush(db)
		}
		return noRoom(u.AvailBytes, need, dir)
	}
	if g.waiting.Load() == 0 { // work on tables that failed is done again
		g.full.Store(nil)
	}
	return nil
}

// flush has what is in the log written to tables, unless that is under way.
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

// Err is why nothing can be written, with what to do; nil while all is well.
func (g *Guard) Err() error {
	if err := g.Failure(); err != nil {
		return err
	}
	if g.waiting.Load() == 0 && g.left.Load() == 0 {
		return nil
	}
	return cmp.Or(g.fullErr(), errLeft)
}

// Failure is the first failure that does not pass.
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

// Stays tells that the database could not be closed, or not be opened: its
// goroutines and its lock last until the process ends.
func (g *Guard) Stays() bool { return g.parked.Load() }

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
			err = fmt.Errorf("pebble, in the background: %w", err)
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
			g.Fail(fmt.Errorf("pebble: damaged file %s: %w", info.Path, info.Details))
		},
		DiskSlow: func(info pebble.DiskSlowInfo) {
			g.log.Warn("the disk of the "+g.what+" is slow", "path", info.Path, "duration", info.Duration)
		},
	}
}
