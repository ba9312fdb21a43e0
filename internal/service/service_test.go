package service

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// told collects what a manager is sent.
type told struct {
	mu   sync.Mutex
	list []string
}

func (t *told) send(s string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.list = append(t.list, s)
}

// take gives the messages since the last call.
func (t *told) take() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := strings.Join(t.list, " | ")
	t.list = nil
	return s
}

// TestWatchdog: the watchdog is fed while checks answer well. An error, and a check without an
// end, leave it hungry; an opening state is given time.
func TestWatchdog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var to told
		m := newManager(30*time.Second, slog.New(slog.DiscardHandler), to.send)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go m.Run(ctx)
		pass := func(d time.Duration, want string) {
			t.Helper()
			time.Sleep(d) // virtual
			synctest.Wait()
			if got := to.take(); got != want {
				t.Errorf("it was told %q, want %q", got, want)
			}
		}
		m.Opening()
		pass(10*time.Second, "STATUS=opening the state | EXTEND_TIMEOUT_USEC=30000000 | WATCHDOG=1")
		var fault atomic.Pointer[error]
		stuck := make(chan struct{})
		m.Serving(func(ctx context.Context) (string, error) {
			if err := fault.Load(); err != nil {
				return "", *err
			}
			return "2 of 7 need you", nil
		})
		pass(0, "READY=1\nSTATUS=serving")
		pass(10*time.Second, "WATCHDOG=1\nSTATUS=2 of 7 need you")
		pass(10*time.Second, "WATCHDOG=1")
		failed := errors.New("the state cannot be read")
		fault.Store(&failed)
		pass(20*time.Second, "")
		fault.Store(nil)
		pass(10*time.Second, "WATCHDOG=1")
		m.Serving(func(ctx context.Context) (string, error) { <-stuck; return "well", nil }) // a lock that nobody gives back
		to.take()
		pass(time.Minute, "")
		close(stuck)
		pass(0, "WATCHDOG=1\nSTATUS=well")
		m.Stopping()
		pass(0, "STOPPING=1\nSTATUS=stopping")
	})
}

// TestReload: a reload is told with its time, and so is its end.
func TestReload(t *testing.T) {
	var to told
	m := newManager(0, slog.New(slog.DiscardHandler), to.send)
	m.Serving(func(context.Context) (string, error) { return "", nil })
	m.Reloading()
	m.Reloaded()
	got := to.take()
	if !strings.HasPrefix(got, "READY=1\nSTATUS=serving | RELOADING=1\nMONOTONIC_USEC=") || !strings.HasSuffix(got, " | READY=1\nSTATUS=serving") {
		t.Errorf("it was told %q", got)
	}
}

// TestSocket: the messages arrive at the socket of the environment; without one there is no
// manager, and nothing fails.
func TestSocket(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	t.Setenv("NOTIFY_SOCKET", "")
	nobody := New(log)
	nobody.Opening()
	nobody.Serving(nil)
	nobody.Reloading()
	nobody.Reloaded()
	nobody.Stopping()
	nobody.Run(t.Context())
	if nobody != nil {
		t.Error("there is a manager without a socket")
	}
	at := filepath.Join(t.TempDir(), "s")
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: at, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	t.Setenv("NOTIFY_SOCKET", at)
	t.Setenv("WATCHDOG_USEC", "3000000")
	m := New(log)
	if m == nil || m.watchdog != 3*time.Second {
		t.Fatalf("the manager is %+v", m)
	}
	m.Serving(nil)
	for _, want := range []string{"STATUS=starting", "READY=1\nSTATUS=serving"} {
		buf := make([]byte, 1000)
		n, err := l.Read(buf)
		if err != nil || string(buf[:n]) != want {
			t.Errorf("%q arrived (%v), want %q", buf[:n], err, want)
		}
	}
}
