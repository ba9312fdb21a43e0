package resourcesync

import "time"

// Order is how the known change times of a document run.
type Order int

// The orders. A document with equal or unknown times only is in order.
const (
	InOrder  Order = iota // none is before the one above it
	Reversed              // none is after the one above it, and some are before: newest first
	Mixed
)

// String gives "in order", "reversed" or "mixed".
func (o Order) String() string {
	return [...]string{"in order", "reversed", "mixed"}[o]
}

// orderTrack watches a row of times.
type orderTrack struct {
	last     time.Time
	up, down bool
}

func (o *orderTrack) add(t time.Time) {
	if t.IsZero() {
		return
	}
	if !o.last.IsZero() {
		o.up = o.up || t.After(o.last)
		o.down = o.down || t.Before(o.last)
	}
	o.last = t
}

func (o *orderTrack) order() Order {
	switch {
	case !o.down:
		return InOrder
	case o.up:
		return Mixed
	}
	return Reversed
}

// times tells how the times of entries run, and what they say of the dialect.
type times struct {
	sawDateTime, sawLastMod bool
	byDateTime, byLastMod   orderTrack
}

// track notes the times of an entry.
func (t *times) track(e *Entry) {
	if !e.Meta.DateTime.IsZero() {
		t.sawDateTime = true
		t.byDateTime.add(e.Meta.DateTime)
	}
	if !e.LastMod.IsZero() {
		t.sawLastMod = true
		t.byLastMod.add(e.LastMod)
	}
}

// Order says how the change times of the entries read so far run; after the end
// of the document, how they run in it. It means something for change documents
// and for indexes and archives of old dialects.
func (r *Reader) Order() Order {
	if r.times.sawDateTime {
		return r.times.byDateTime.order()
	}
	return r.times.byLastMod.order()
}
