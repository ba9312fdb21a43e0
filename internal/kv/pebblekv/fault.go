package pebblekv

import (
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// fault is Pebble's logger and the memory of what went wrong. Pebble's default
// logger ends the process when a commit fails; this one notes the cause, and
// everything that follows fails with it.
type fault struct {
	log    *slog.Logger
	failed chan struct{} // closed with the first failure

	mu     sync.Mutex // guards the writing of what follows
	first  atomic.Pointer[error]
	noRead atomic.Bool // Pebble may hold locks for ever: reads are refused too
}

func newFault(log *slog.Logger) *fault {
	return &fault{log: log, failed: make(chan struct{})}
}

// fail notes that from now on commits fail.
func (f *fault) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.first.Load() != nil {
		return
	}
	err = fmt.Errorf("%w (writing has stopped; when the disk is in order, start again)", err)
	f.first.Store(&err)
	close(f.failed)
	f.log.Error("state cannot be written", "error", err)
}

// broken notes that reads cannot be trusted either.
func (f *fault) broken(err error) {
	f.fail(err)
	f.noRead.Store(true)
}

func (f *fault) commitErr() error {
	if p := f.first.Load(); p != nil {
		return *p
	}
	return nil
}

func (f *fault) readErr() error {
	if f.noRead.Load() {
		return f.commitErr()
	}
	return nil
}

// Infof is Pebble's account of what it does.
func (f *fault) Infof(format string, args ...any) {
	f.log.Debug("pebble: " + fmt.Sprintf(format, args...))
}

// Errorf is what Pebble could get over.
func (f *fault) Errorf(format string, args ...any) {
	f.log.Warn("pebble: " + fmt.Sprintf(format, args...))
}

// Fatalf is where Pebble would end the process.
func (f *fault) Fatalf(format string, args ...any) {
	f.broken(fmt.Errorf("pebble: "+format, args...))
}

// retryPause keeps Pebble, which repeats a flush that failed at once and for
// ever, from using a whole core for it.
const retryPause = 20 * time.Millisecond

func (f *fault) listener() *pebble.EventListener {
	return &pebble.EventListener{
		BackgroundError: func(err error) {
			f.fail(fmt.Errorf("pebble, in the background: %w", err))
			time.Sleep(retryPause)
		},
		DataCorruption: func(info pebble.DataCorruptionInfo) {
			f.fail(fmt.Errorf("pebble: damaged file %s: %w", info.Path, info.Details))
		},
		DiskSlow: func(info pebble.DiskSlowInfo) {
			f.log.Warn("the disk of the state is slow", "path", info.Path, "duration", info.Duration)
		},
	}
}
