// Package service tells the service manager how the daemon stands, by the protocol of sd_notify:
// READY, RELOADING, STOPPING, STATUS, and WATCHDOG while the daemon works. Without a manager
// waiting for it, nothing is sent.
package service

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
)

// Check looks whether the daemon works, and tells how it stands in a line. An error, or no answer
// in time, is no proof of work: the watchdog is not fed.
type Check func(ctx context.Context) (status string, err error)

// Manager is the connection to the service manager.
type Manager struct {
	send     func(state string)
	watchdog time.Duration // the manager kills a process silent for so long; 0: never
	log      *slog.Logger

	mu      sync.Mutex
	check   Check // nil: while the daemon opens its state, or waits for room on the disk
	pending bool  // the manager waits for READY
	last    string
}

// every is the time between two looks without a watchdog.
const every = 30 * time.Second

// New finds the manager in the environment. It gives nil without one; all methods of nil do nothing.
func New(log *slog.Logger) *Manager {
	if sent, err := daemon.SdNotify(false, "STATUS=starting"); err != nil || !sent {
		if err != nil {
			log.Warn("the service manager cannot be told anything", "error", err)
		}
		return nil
	}
	watchdog, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		log.Warn("the watchdog of the service manager is not fed", "error", err)
	}
	return newManager(watchdog, log, func(state string) {
		if _, err := daemon.SdNotify(false, state); err != nil {
			log.Warn("the service manager was not told", "state", state, "error", err)
		}
	})
}

func newManager(watchdog time.Duration, log *slog.Logger, send func(string)) *Manager {
	return &Manager{send: send, watchdog: watchdog, log: log, pending: true}
}

// Opening tells of work before requests are served: the state is opened, or waits for room. That
// may take long, and nothing can be checked meanwhile.
func (m *Manager) Opening() { m.become(nil, "", "opening the state") }

// Serving tells that requests are served, also after a reload. check is asked from now on.
func (m *Manager) Serving(check Check) { m.become(check, "READY=1", "serving") }

// Reloading tells that the configuration is read again; Serving ends it.
func (m *Manager) Reloading() {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pending = true
	m.tell("RELOADING=1\n"+daemon.SdNotifyMonotonicUsec(), "reading the configuration again")
}

// Reloaded tells that the daemon serves as before a reload.
func (m *Manager) Reloaded() {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pending = false
	m.tell("READY=1", "serving")
}

// Stopping tells that the daemon ends.
func (m *Manager) Stopping() { m.become(nil, "STOPPING=1", "stopping") }

func (m *Manager) become(check Check, state, status string) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.check = check
	if state != "" {
		m.pending = false
	}
	m.tell(state, status)
}

// tell sends a state with its status. The caller holds m.mu.
func (m *Manager) tell(state, status string) {
	if status = strings.Join(strings.Fields(status), " "); status != m.last {
		m.last = status
		state = strings.TrimPrefix(state+"\nSTATUS="+status, "\n")
	}
	if state != "" {
		m.send(state)
	}
}

// Run feeds the watchdog until ctx ends, and asks for more time while the manager waits for READY.
func (m *Manager) Run(ctx context.Context) {
	if m == nil {
		return
	}
	period := every
	if m.watchdog > 0 {
		period = min(period, m.watchdog/3)
	}
	ticks := time.NewTicker(period)
	defer ticks.Stop()
	var asked chan outcome // a check under way
	for {
		select {
		case <-ctx.Done():
			return
		case got := <-asked:
			asked = nil
			m.answer(got)
			continue
		case <-ticks.C:
		}
		m.mu.Lock()
		check := m.check
		if m.pending {
			m.send(fmt.Sprintf("EXTEND_TIMEOUT_USEC=%d", (3 * period).Microseconds()))
		}
		m.mu.Unlock()
		switch {
		case check == nil:
			m.answer(outcome{})
		case asked == nil:
			asked = make(chan outcome, 1)
			go ask(ctx, check, period, asked)
		}
	}
}

// outcome is of a check.
type outcome struct {
	check  Check
	status string
	err    error
}

func ask(ctx context.Context, check Check, limit time.Duration, to chan<- outcome) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	status, err := check(ctx)
	to <- outcome{check, status, err}
}

// answer feeds the watchdog after a good check.
func (m *Manager) answer(o outcome) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if o.err != nil {
		m.log.Error("the daemon does not work; the watchdog is not fed", "error", o.err)
		return
	}
	if o.check == nil || m.check == nil || m.pending {
		o.status = m.last // of before
	}
	feed := ""
	if m.watchdog > 0 {
		feed = "WATCHDOG=1"
	}
	m.tell(feed, o.status)
}
