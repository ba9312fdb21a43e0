package obtain

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/rsbridge/rsbridge/destination/feed"
	"github.com/rsbridge/rsbridge/destination/fetch"
	"github.com/rsbridge/rsbridge/destination/item"
	"github.com/rsbridge/rsbridge/internal/clip"
)

// obtainAsOf fetches the version of a time from a TimeGate (RFC 7089). A TimeGate knows whole
// seconds, so a version of the requested second may be later than the time. The lists have every
// change since the second began. If none of them, up to the time, is of this resource, the
// version is the last of the second before.
func (ob *Obtainer) obtainAsOf(ctx context.Context, it *item.Item) *Outcome {
	fail := func(format string, a ...any) *Outcome {
		return &Outcome{Item: it, Err: fmt.Errorf("its version of %s %w: "+format, append([]any{feed.Stamp(it.AsOf), ErrContent}, a...)...)}
	}
	if it.Bad != "" || !ob.Needed(it) {
		return ob.obtainSingly(ctx, it)
	}
	if it.Version != nil && ob.PlaceAllowed(it.Version.URL) == nil {
		if o, err := ob.obtainFrom(ctx, it, *it.Version); err == nil {
			return o
		}
	}
	if it.Package != "" && it.Path != "" {
		if o, err := ob.obtainPackaged(ctx, it); err == nil {
			return o
		}
	}
	if it.TimeGate == "" {
		return fail("the source changed it later, and neither lists the change before nor offers versions (memento, timegate)")
	}
	if err := ob.PlaceAllowed(it.TimeGate); err != nil {
		return &Outcome{Item: it, Err: err}
	}
	second := it.AsOf.Truncate(time.Second)
	var a *fetch.Answer
	for _, asOf := range []time.Time{second, second.Add(-time.Second)} {
		var err error
		if a, err = ob.Fetch.Get(ctx, fetch.Request{URL: it.TimeGate, Accept: acceptRDF, MaxBytes: ob.Limits.Resource, Attempts: 3, AsOf: asOf}); err != nil {
			var fe *fetch.Error
			if errors.As(err, &fe) && fe.Gone {
				return fail("the source does not keep it: %v", err)
			}
			return &Outcome{Item: it, Err: err}
		}
		at, err := http.ParseTime(a.Header.Get("Memento-Datetime"))
		switch {
		case err != nil:
			return fail("%s does not tell of when its answer is (Memento-Datetime)", clip.Middle(a.URL))
		case at.After(asOf):
			return fail("the earliest that the source keeps is of %s", feed.Stamp(at))
		}
		if at.Before(second) {
			break
		}
	}
	// Nothing is promised of it; its address tells the format.
	o, err := ob.represent(ctx, it, item.Place{URL: it.Loc, Promise: fetch.Promise{Length: -1}}, a.Body, a.Kind())
	if err != nil {
		return &Outcome{Item: it, Err: err}
	}
	return o
}
