// Package fairconn limits the share of an HTTP server that one client can take:
// connections, and the time of their standstill.
//
// A dump of any length may be read as slowly as the reader likes, as long as some of it
// goes on arriving; the same holds of answers. Nothing here is by total time.
package fairconn

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"sync"
	"time"
)

// The duties of a reader. A dump of any length may take any time, as long as
// some of it goes on arriving.
const (
	lookAgain  = time.Second     // how often the progress of a reader is looked at
	givesWay   = 3 * time.Second // without progress, where others wait for a connection
	stepBytes  = 16 << 10        // the least progress
	longestGap = 2 * time.Minute // without progress, before the connection is closed
	unusedFor  = 2 * time.Second // a connection without a request gives way to others after this
	logAgain   = time.Minute     // between two log lines of one kind
)

// Limits of a listener.
type Limits struct {
	Connections int  // at once
	Client      int  // of them for one client address; 0: no limit
	Loopback    bool // Client is for loopback too: a proxy there may stand for many
}

// Listener is a listener with at most so many connections at once. When they are all
// taken, one of the client with most connections gives way to a client with fewer. So a
// new client is answered at once, however many connections others open and hold.
type Listener struct {
	net.Listener
	limits Limits
	log    *slog.Logger

	mu      sync.Mutex // guards what follows
	conns   map[*conn]bool
	clients map[netip.Prefix]int
	freed   chan struct{}
	stopped bool
	counts  map[string]*counter // of log lines, by their text
}

type counter struct {
	n    int
	told time.Time
}

// New limits the connections of l. Its ConnState and ConnContext must be those of the
// http.Server.
func New(l net.Listener, limits Limits, log *slog.Logger) *Listener {
	return &Listener{Listener: l, limits: limits, log: log, conns: map[*conn]bool{},
		clients: map[netip.Prefix]int{}, freed: make(chan struct{}, 1), counts: map[string]*counter{}}
}

// ConnState is http.Server's.
func (l *Listener) ConnState(c net.Conn, state http.ConnState) { below(c).to(state) }

// ConnContext is http.Server's.
func (l *Listener) ConnContext(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, below(c))
}

// below is the connection of a listener, perhaps below TLS.
func below(c net.Conn) *conn {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	return c.(*conn)
}

type connKey struct{}

// Accept waits for a connection and for room for it.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if c := l.admit(c); c != nil {
			return c, nil
		}
	}
}

// admit makes room for a connection. nil: it is refused.
func (l *Listener) admit(c net.Conn) net.Conn {
	client := clientOf(c.RemoteAddr())
	for {
		l.mu.Lock()
		share := l.clients[client]
		over := l.limits.Client > 0 && share >= l.limits.Client && (l.limits.Loopback || !client.Addr().IsLoopback())
		full := len(l.conns) >= l.limits.Connections
		var victim *conn
		var waited time.Duration
		if over || full {
			victim, waited = l.victim(share, func(o *conn) bool { return !over || o.client == client })
		}
		if !over && !full || victim != nil {
			if victim != nil {
				l.drop(victim)
			}
			n := &conn{Conn: c, l: l, client: client, since: time.Now()}
			l.conns[n] = true
			l.clients[client]++
			l.mu.Unlock()
			if victim != nil {
				l.tell("connections are all taken; one gave way", "client", victim.client, "still_for", waited.Round(time.Second), "limit", l.limits.Connections, "limit_client", l.limits.Client)
				victim.Conn.Close()
			}
			return n
		}
		others := share < len(l.conns)
		l.mu.Unlock()
		// Who has a connection does not make others wait behind this one.
		if over || share > 0 && others {
			c.Close()
			l.tell("a client has too many connections; more are refused", "client", client, "limit_client", l.limits.Client)
			return nil
		}
		l.tell("connections are all taken and busy; more wait", "limit", l.limits.Connections)
		timer := time.NewTimer(time.Second)
		select {
		case <-l.freed:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// victim is the connection that gives way to one of a client with share others; nil: there
// is none. Of those without a request under way it is one of the client with most of them.
// A transfer gives way only if its client has more even afterwards.
func (l *Listener) victim(share int, of func(*conn) bool) (found *conn, waited time.Duration) {
	now, best, held := time.Now(), works, 0
	for c := range l.conns {
		if !of(c) {
			continue
		}
		does, d := c.standing(now)
		n := l.clients[c.client]
		switch {
		case does == works, does == young && n <= share, does == transfers && n < share+2:
			continue
		case does == young:
			does = stands
		}
		if found == nil || cmp.Or(cmp.Compare(best, does), cmp.Compare(n, held), cmp.Compare(d, waited)) > 0 {
			found, waited, best, held = c, d, does, n
		}
	}
	return found, waited
}

// drop forgets a connection.
func (l *Listener) drop(c *conn) {
	if !l.conns[c] {
		return
	}
	delete(l.conns, c)
	if l.clients[c.client]--; l.clients[c.client] == 0 {
		delete(l.clients, c.client)
	}
	select {
	case l.freed <- struct{}{}:
	default:
	}
}

// tell logs a line at most once a minute, with how often it was meant.
func (l *Listener) tell(line string, args ...any) {
	l.mu.Lock()
	c := l.counts[line]
	if c == nil {
		c = new(counter)
		l.counts[line] = c
	}
	c.n++
	n, now := c.n, time.Now()
	if !c.told.IsZero() && now.Sub(c.told) < logAgain {
		l.mu.Unlock()
		return
	}
	c.n, c.told = 0, now
	l.mu.Unlock()
	l.log.Warn(line, append(args, "times", n)...)
}

// CloseUnused closes the connections over which no request has come yet, and those to
// come. Clients open some and never use them, and http.Server waits for them as if a
// request was under way.
func (l *Listener) CloseUnused() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stopped = true
	for c := range l.conns {
		if c.unused() {
			c.Conn.Close()
		}
	}
}

// clientOf is the client of a connection: an address, of IPv6 the network of one client.
func clientOf(a net.Addr) netip.Prefix {
	p, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return netip.Prefix{}
	}
	ip, bits := p.Addr().Unmap().WithZone(""), 64
	if ip.Is4() {
		bits = 32
	} else if ip.IsLoopback() {
		bits = 128
	}
	prefix, _ := ip.Prefix(bits) // the number of bits is right
	return prefix
}

// conn is a connection with a reader that must make progress.
type conn struct {
	net.Conn
	l      *Listener
	client netip.Prefix

	mu      sync.Mutex // guards what follows
	state   http.ConnState
	writing bool
	reading bool      // more of a request's body is to come
	since   time.Time // when it stood still first: the last progress of a write, or change of state
	sent    int64     // bytes
	mark    int64     // of them had arrived at since; -1: not known
}

// to is http.Server's ConnState.
func (c *conn) to(state http.ConnState) {
	c.mu.Lock()
	c.state, c.since, c.reading = state, time.Now(), false
	c.mu.Unlock()
	if state == http.StateNew {
		c.l.mu.Lock()
		stopped := c.l.stopped
		c.l.mu.Unlock()
		if stopped {
			c.Conn.Close()
		}
	}
}

// awaits notes whether more of a request's body is to come.
func (c *conn) awaits(more bool) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reading, c.since = more, time.Now()
}

func (c *conn) unused() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state == http.StateNew
}

// A standing is how readily a connection gives way: the first ones first.
type standing int

const (
	stands    standing = iota // no request is under way, or its reader has stood still for long
	young                     // was opened just now, and may get its request yet
	transfers                 // a body is under way, in either direction
	works                     // a handler is at work
)

// standing tells what a connection does, and for how long it has stood still.
func (c *conn) standing(now time.Time) (standing, time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	d := now.Sub(c.since)
	switch {
	case c.writing && d > givesWay:
		return stands, d
	case c.writing, c.reading && c.state == http.StateActive:
		return transfers, d
	case c.state == http.StateIdle, c.state == http.StateNew && d > unusedFor:
		return stands, d
	case c.state == http.StateNew:
		return young, d
	}
	return works, d
}

// Close also makes room.
func (c *conn) Close() error {
	c.l.mu.Lock()
	c.l.drop(c)
	c.l.mu.Unlock()
	return c.Conn.Close()
}

// Write gives up when the reader takes nothing for long.
func (c *conn) Write(p []byte) (done int, err error) {
	c.begin()
	defer c.end()
	for {
		if err = c.Conn.SetWriteDeadline(time.Now().Add(lookAgain)); err != nil {
			return done, err
		}
		var n int
		n, err = c.Conn.Write(p[done:])
		done += n
		gap := c.wrote(n, err)
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return done, err
		}
		if gap >= longestGap {
			c.l.tell("a reader takes nothing; its connection is closed", "client", c.client, "for", longestGap)
			return done, err
		}
	}
}

func (c *conn) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writing, c.since, c.mark = true, time.Now(), -1
}

func (c *conn) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writing = false
}

// wrote notes that n more bytes were sent and, after a deadline, how many of all have
// arrived. It tells how long there was no progress.
func (c *conn) wrote(n int, err error) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sent += int64(n)
	if err == nil {
		return 0
	}
	now, arrived := time.Now(), c.sent-unread(c.Conn)
	if c.mark < 0 {
		c.mark = arrived
	} else if arrived-c.mark >= stepBytes {
		c.since, c.mark = now, arrived
	}
	return now.Sub(c.since)
}
