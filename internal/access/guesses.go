package access

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"
)

// Guesses slows answers to wrong tokens, per client address, and logs their numbers. A right token is never
// delayed, so nobody can lock others out.
type Guesses struct {
	message string
	log     *slog.Logger

	mu      sync.Mutex // guards the fields below
	clients map[netip.Prefix]*failures
	swept   time.Time
}

// failures are those of one client address.
type failures struct {
	next    time.Time // when the next wrong token may be answered
	waiting int       // delayed answers
	last    time.Time
	told    time.Time // when the log last told of them
	untold  int       // failures since
}

const (
	freeFailures = 3           // answered at once: a person mistypes
	failureEvery = time.Second // then one answer in this time
	longestDelay = 10 * time.Second
	mostWaiting  = 32   // per client; more are refused without waiting
	mostClients  = 4096 // clients remembered
	tellEvery    = time.Minute
	forgetAfter  = 2 * time.Minute
)

// NewGuesses logs with a message, such as "failed logins": the first wrong token of a client at once, later
// ones as a number, once a minute.
func NewGuesses(message string, log *slog.Logger) *Guesses {
	return &Guesses{message: message, log: log, clients: map[netip.Prefix]*failures{}}
}

// Failed counts a wrong token, and waits until it may be answered. It is false, and does
// not wait, when too many answers to this client wait already.
func (l *Guesses) Failed(ctx context.Context, remote string) bool {
	client := clientOf(remote)
	l.mu.Lock()
	now := time.Now()
	l.sweep(now)
	f := l.clients[client]
	if f == nil {
		if len(l.clients) >= mostClients {
			client = netip.Prefix{} // they share a place
			f = l.clients[client]
		}
		if f == nil {
			f = &failures{}
			l.clients[client] = f
		}
	}
	f.last = now
	switch f.untold++; {
	case now.Sub(f.told) >= tellEvery:
		l.tell(client, f, now)
	case f.untold == 1: // nobody knows whether more follow
		time.AfterFunc(f.told.Add(tellEvery).Sub(now), func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.tell(client, f, time.Now())
		})
	}
	if earliest := now.Add(-freeFailures * failureEvery); f.next.Before(earliest) {
		f.next = earliest
	}
	f.next = f.next.Add(failureEvery)
	if limit := now.Add(longestDelay); f.next.After(limit) {
		f.next = limit
	}
	wait := f.next.Sub(now)
	if wait <= 0 || f.waiting >= mostWaiting {
		l.mu.Unlock()
		return wait <= 0
	}
	f.waiting++
	l.mu.Unlock()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	l.mu.Lock()
	f.waiting--
	l.mu.Unlock()
	return true
}

// tell logs the failures not logged yet. The caller holds l.mu.
func (l *Guesses) tell(client netip.Prefix, f *failures, now time.Time) {
	if f.untold == 0 {
		return
	}
	who := "others"
	if client.IsValid() {
		who = client.Addr().String()
	}
	l.log.Warn(l.message, "client", who, "count", f.untold)
	f.told, f.untold = now, 0
}

// sweep forgets quiet clients; all their failures are logged by then.
func (l *Guesses) sweep(now time.Time) {
	if now.Sub(l.swept) < tellEvery {
		return
	}
	l.swept = now
	for client, f := range l.clients {
		if now.Sub(f.last) >= forgetAfter && f.waiting == 0 {
			delete(l.clients, client)
		}
	}
}

// clientOf is the address of a client, of IPv6 its network.
func clientOf(remote string) netip.Prefix {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		return netip.Prefix{}
	}
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return netip.Prefix{}
	}
	addr = addr.Unmap().WithZone("")
	bits := 32
	if addr.Is6() {
		bits = 64
	}
	p, _ := addr.Prefix(bits) // the number of bits is right
	return p
}
