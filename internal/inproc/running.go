package inproc

import (
	"net/http"
	"sync"
	"time"
)

// Running counts running handlers: after its client has gone, a handler still reads for a moment what is closed
// next. Clients in the same process do so too.
type Running struct {
	mu   sync.Mutex
	n    int
	none chan struct{} // of a waiting caller; closed without running handlers
}

// Begin is called at the begin of a request, End at its end.
func (a *Running) Begin() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.n++
}

// End ends a request.
func (a *Running) End() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.n--; a.n == 0 && a.none != nil {
		close(a.none)
		a.none = nil
	}
}

// Counted is h, with its requests counted.
func (a *Running) Counted(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.Begin()
		defer a.End()
		h.ServeHTTP(w, r)
	})
}

// Wait returns when there is none, or after the limit.
func (a *Running) Wait(limit time.Duration) {
	a.mu.Lock()
	if a.n > 0 && a.none == nil {
		a.none = make(chan struct{})
	}
	none := a.none
	a.mu.Unlock()
	if none == nil {
		return
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-none:
	case <-timer.C:
	}
}

// Awaited tells whether somebody waits.
func (a *Running) Awaited() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.none != nil
}
