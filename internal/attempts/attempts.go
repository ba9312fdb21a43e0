// Package attempts tells a run about its failed requests and the next attempts. The context of
// the run carries the listener, so no room between the run and the request knows of either.
package attempts

import (
	"context"
	"time"
)

// Failed is a failed request with another attempt to come. The zero value is good news: the
// request was answered after all.
type Failed struct {
	Attempt int       // number of the next attempt, from 2
	At      time.Time // of the next attempt
	Why     string
}

type listenerKey struct{}

// With is a context for work with a listener. Requests at the same time call it at the same time.
func With(ctx context.Context, listener func(Failed)) context.Context {
	return context.WithValue(ctx, listenerKey{}, listener)
}

// Tell tells the listener of the context, if there is one.
func Tell(ctx context.Context, f Failed) {
	if listener, ok := ctx.Value(listenerKey{}).(func(Failed)); ok {
		listener(f)
	}
}
