package feed

import (
	"context"
	"reflect"
	"time"

	"github.com/rsbridge/rsbridge/destination/fetch"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// A poll without news costs the source one request. While the Change List at the cursor is unchanged, the
// documents above it are seldom read. An unchanged way is trusted for as long as it was unchanged before, mostTrust
// at most. So a wrong answer on the way is trusted no longer than it lasted.

// mostTrust bounds the time until a moved set is noticed, if its old lists still stand.
const mostTrust = 10 * time.Minute

// trust is an offer found by run after run.
type trust struct {
	offer       *Offer // nil: none
	first, last time.Time
}

// Trust is for the end of a run in sync with a discovered offer. nil is for any other end.
func (src *Source) Trust(o *Offer) {
	t, now := &src.trusted, src.Docs.opt.Now()
	switch {
	case o == nil:
		*t = trust{}
	case reflect.DeepEqual(o, t.offer):
		t.last = now
	default:
		*t = trust{o, now, now}
	}
}

// holds tells whether the offer need not be discovered anew.
func (t *trust) holds(now time.Time) bool {
	age := now.Sub(t.last)
	return t.offer != nil && age >= 0 && age < min(t.last.Sub(t.first), mostTrust)
}

// early is the answer of Still, for the poll of the same run.
type early struct {
	at cursor
	dl *Download // nil: nothing was published
	rd *resourcesync.Reader
}

// Still gives the trusted offer if nothing was published since the cursor came to its end. Else it
// is nil.
func (src *Source) Still(ctx context.Context, c *Cursor) *Offer {
	o, at := src.trusted.offer, c.at
	if !src.trusted.holds(src.Docs.opt.Now()) || o.ChangeList == "" || at.Root.URL != o.ChangeList || at.Ahead != nil {
		return nil
	}
	src.forgetEarly()
	if at.Root.Index && at.Root.Numbered && !at.Closed && at.Last.ETag != "" {
		// Whatever is published goes into the open list, and begins another one by closing it.
		is, err := src.Docs.listIs(ctx, fetch.Request{Attempts: 1}, &at.Last)
		if err != nil || !is {
			return nil
		}
		src.early = &early{at: c.at}
		return o
	}
	dl, rd, err := src.askChanges(ctx, fetch.Request{URL: o.ChangeList, Attempts: 1}, resourcesync.ChangeList, c)
	if err != nil {
		return nil // told by the discovery, or by the next question
	}
	if src.early = (&early{c.at, dl, rd}); dl != nil {
		return nil
	}
	return o
}

// takeEarly gives the answer to an earlier question.
func (src *Source) takeEarly(address string, c *Cursor) *early {
	e := src.early
	if e == nil || e.at.Root.URL != address || !reflect.DeepEqual(e.at, c.at) {
		return nil
	}
	src.early = nil
	return e
}

func (src *Source) forgetEarly() {
	if src.early != nil {
		src.early.dl.Close()
		src.early = nil
	}
}
