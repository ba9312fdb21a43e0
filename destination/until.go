package destination

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/rsbridge/rsbridge/destination/feed"
	"github.com/rsbridge/rsbridge/destination/fetch"
	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/internal/clip"
)

// A mirror of a point in time is a comparison with an inventory of that time. It is made from
// an earlier Resource List, archived or not, and the changes after it; or from the present list
// and the changes since, backwards. A resource changed later is in its last change before the
// time, or has a TimeGate, or did not exist. Only Change Lists over all the time between list
// and point prove the rest unchanged: without them there is an error and no mirror.

// syncUntil makes the mirror equal to the source at r.until.
func (r *run) syncUntil(ctx context.Context, o *feed.Offer) error {
	d := r.d
	if now := d.opt.Now(); r.until.After(now) {
		return fmt.Errorf("until %s is in the future", feed.Stamp(r.until))
	}
	r.mode("baseline")
	r.why("the source as it was at %s", feed.Stamp(r.until))
	v, err := d.src.ReadInventoryUntil(ctx, o, r.until)
	if err != nil {
		return err
	}
	if v.Backward {
		r.why("made from its Resource List of %s and the changes since", feed.Stamp(v.State.At))
	} else {
		r.why("made from its Resource List of %s and the changes up to then", feed.Stamp(v.State.At))
	}
	if r.dry {
		_, err := r.compareWith(ctx, o, v)
		return err
	}
	r.atOnce = true
	if why := d.snapshotMeta().CompareMirror; why != "" { // first, to fetch the untrusted kept ones
		r.why("%s: everything in the mirror is compared", why)
		if err := r.compareMirror(ctx); err != nil {
			v.Close()
			return err
		}
	}
	if err := d.checkpoint(ctx, ledger.Baseline, func(m *meta) { d.follow(m); m.Until = r.until }); err != nil {
		v.Close()
		return err
	}
	end, err := r.compareWith(ctx, o, v)
	if err != nil {
		return err
	}
	r.complete, r.departs = true, true
	return d.checkpoint(ctx, ledger.Following, func(m *meta) {
		end(m)
		m.Gap = ""
		m.Inventory = feed.ListState{}
		m.Cursor = feed.CursorAt(r.until, v.Sequence)
	})
}

// leaveUntil goes on to the present from a mirror of a point in time.
func (r *run) leaveUntil(ctx context.Context) error {
	d := r.d
	m := d.snapshotMeta()
	if m.Until.IsZero() {
		return nil
	}
	r.why("the mirror stood at %s, as was asked for, and goes on to the present", feed.Stamp(m.Until))
	again := m.Cursor.Sequence() == nil // lists without numbers may not tell whether they reach back to then
	r.full = r.full || again
	return d.saveMeta(ctx, func(m *meta) {
		if m.Until = (time.Time{}); again {
			m.OweSource("the mirror was one of a time")
		}
	})
}

// obtainAsOf fetches the version of a time from a TimeGate (RFC 7089). A TimeGate knows whole
// seconds, so a version of the requested second may be later than the time. The lists have every
// change since the second began. If none of them, up to the time, is of this resource, the
// version is the last of the second before.
func (d *Destination) obtainAsOf(ctx context.Context, it *feed.Item) *outcome {
	fail := func(format string, a ...any) *outcome {
		return &outcome{it: it, err: fmt.Errorf("its version of %s %w: "+format, append([]any{feed.Stamp(it.AsOf), errContent}, a...)...)}
	}
	if it.Bad != "" || d.outside(it) || d.files == nil && d.passedOver(it) {
		return d.obtainSingly(ctx, it)
	}
	if it.Version != nil && d.placeAllowed(it.Version.URL) == nil {
		if o, err := d.obtainFrom(ctx, it, *it.Version); err == nil {
			return o
		}
	}
	if it.Package != "" && it.Path != "" {
		if o, err := d.obtainPackaged(ctx, it); err == nil {
			return o
		}
	}
	if it.TimeGate == "" {
		return fail("the source changed it later, and neither lists the change before nor offers versions (memento, timegate)")
	}
	if err := d.placeAllowed(it.TimeGate); err != nil {
		return &outcome{it: it, err: err}
	}
	second := it.AsOf.Truncate(time.Second)
	var a *fetch.Answer
	for _, asOf := range []time.Time{second, second.Add(-time.Second)} {
		var err error
		if a, err = d.fetch.Get(ctx, fetch.Request{URL: it.TimeGate, Accept: acceptRDF, MaxBytes: d.lim.Resource, Attempts: 3, AsOf: asOf}); err != nil {
			var fe *fetch.Error
			if errors.As(err, &fe) && fe.Gone {
				return fail("the source does not keep it: %v", err)
			}
			return &outcome{it: it, err: err}
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
	o, err := d.represent(ctx, it, feed.Place{URL: it.Loc, Promise: fetch.Promise{Length: -1}}, a.Body, a.Kind())
	if err != nil {
		return &outcome{it: it, err: err}
	}
	return o
}
