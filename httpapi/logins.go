package httpapi

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"
)

// logins slows failed logins, per client address, and logs them. Only answers to wrong tokens wait.
// A right token is never delayed, so nobody can lock others out.
type logins struct {
	log *slog.Logger

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
	freeFailures  = 3           // answered at once: a person mistypes
	failureEvery  = time.Second // then one answer in this time
	longestDelay  = 10 * time.Second
	mostWaiting   = 32   // per client; more are refused without waiting
	mostClients   = 4096 // clients remembered
	tellEvery     = time.Minute
	forgetAfter   = 2 * time.Minute
	failedMessage = "failed logins to the administration"
)

func newLogins(log *slog.Logger) *logins {
	return &logins{log: log, clients: map[netip.Prefix]*failures{}}
}

// failed counts a failed login, and waits until it may be answered. It is false, and does
// not wait, when too many answers to this client wait already.
func (l *logins) failed(ctx context.Context, remote string) bool {
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
	f.untold++
	if now.Sub(f.told) >= tellEvery {
		l.tell(client, f, now)
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

// tell logs the failures not logged yet.
func (l *logins) tell(client netip.Prefix, f *failures, now time.Time) {
	who := "others"
	if client.IsValid() {
		who = client.Addr().String()
	}
	l.log.Warn(failedMessage, "client", who, "count", f.untold)
	f.told, f.untold = now, 0
}

// sweep forgets quiet clients, and logs their remaining failures.
func (l *logins) sweep(now time.Time) {
	if now.Sub(l.swept) < tellEvery {
		return
	}
	l.swept = now
	for client, f := range l.clients {
		if now.Sub(f.last) < forgetAfter || f.waiting > 0 {
			continue
		}
		if f.untold > 0 {
			l.tell(client, f, now)
		}
		delete(l.clients, client)
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
