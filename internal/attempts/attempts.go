// Package attempts tells a run about its failed requests and the next attempts. The context of
// the run carries the listener, so no room between the run and the request knows of either.
package attempts

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Failed is a failed request with another attempt to come. The zero value: no request waits.
type Failed struct {
	Attempt int       // number of the next attempt, from 2
	At      time.Time // of the next attempt
	Why     string
}

// waits are the waiting requests of a run.
type waits struct {
	listener func(Failed)

	mu  sync.Mutex // guards the field below, and orders the calls of listener
	all []*Request // the oldest wait first
}

type waitsKey struct{}

// With is a context for work with a listener. The listener hears of the oldest wait: at each of its
// attempts, when another wait becomes the oldest, and with the zero value when the last wait ends.
// It is called by one request at a time.
func With(ctx context.Context, listener func(Failed)) context.Context {
	return context.WithValue(ctx, waitsKey{}, &waits{listener: listener})
}

// Request is one request with all its attempts. One goroutine uses it.
type Request struct {
	of    *waits // nil: nobody listens
	place string

	last Failed // guarded by of.mu
}

// Begin begins a request to a place, such as a store: an answer to one request to a place ends the
// waits of all others there. End the request.
func Begin(ctx context.Context, place string) *Request {
	of, _ := ctx.Value(waitsKey{}).(*waits)
	return &Request{of: of, place: place}
}

// Fail tells of a failed attempt, before the pause. f is not the zero value.
func (r *Request) Fail(f Failed) {
	r.change(func(all []*Request) []*Request {
		r.last = f
		if !slices.Contains(all, r) {
			all = append(all, r)
		}
		return all
	})
}

// End tells that no attempt follows, and whether the place has answered.
func (r *Request) End(answered bool) {
	r.change(func(all []*Request) []*Request {
		return slices.DeleteFunc(all, func(w *Request) bool { return w == r || answered && w.place == r.place })
	})
}

// change changes the waits, and tells the listener of another oldest one.
func (r *Request) change(do func([]*Request) []*Request) {
	if r.of == nil {
		return
	}
	r.of.mu.Lock()
	defer r.of.mu.Unlock()
	before := r.of.oldest()
	r.of.all = do(r.of.all)
	if now := r.of.oldest(); now != before {
		r.of.listener(now)
	}
}

func (w *waits) oldest() Failed {
	if len(w.all) == 0 {
		return Failed{}
	}
	return w.all[0].last
}
