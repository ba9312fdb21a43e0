package keep

import (
	"cmp"
	"math"
	"time"

	"github.com/rsbridge/rsbridge/destination/feed"
)

// Lag is the lag in seconds: now minus the commit time of the oldest change
// not applied, 0 if there is none, growing since the last successful poll while
// the source cannot be reached, nil while nothing is known, as after an interrupted sync, and if
// something without a time keeps the mirror from being in sync.
func (m *Meta) Lag(now time.Time, unreachable bool) *float64 {
	if m.At.LastPoll().IsZero() || m.Interrupted {
		return nil
	}
	switch {
	case !m.Behind.IsZero():
		return seconds(now, m.Behind)
	case unreachable:
		return seconds(now, m.At.LastPoll())
	case !m.IsInSync():
		return nil
	}
	return seconds(now, now)
}

func seconds(now, since time.Time) *float64 {
	s := max(0, math.Round(now.Sub(since).Seconds()*1000)/1000)
	return &s
}

// LagBeside is the lag with the changes heard of since the last poll; pending counts resources that
// failed. The changes are those behind the position, and those not applied before it. They are nil
// if that is not known: without numbers, while the source cannot be reached or is older than the
// mirror, and if something else keeps the mirror from being in sync.
func (m *Meta) LagBeside(h feed.Heard, now time.Time, pending int64, unreachable bool) (inSeconds *float64, changes *uint64) {
	inSeconds = m.Lag(now, unreachable)
	if inSeconds == nil {
		return nil, nil
	}
	at := m.At.Cursor().Sequence()
	if m.Behind.IsZero() && (h.Unnumbered() || at != nil && h.Position > *at) {
		inSeconds = seconds(now, h.Since)
	}
	if at == nil || h.Unnumbered() {
		return inSeconds, nil
	}
	newest := max(m.Newest, h.Position)
	if newest < *at {
		return inSeconds, nil
	}
	n := newest - *at + uint64(pending)
	if m.HeldDeletions != nil {
		n += uint64(m.HeldDeletions.Deletions)
	}
	if n == 0 && (unreachable || !m.IsInSync()) {
		return inSeconds, nil
	}
	return inSeconds, &n
}

// Reads notes the time of the first change of those to be applied next, and the position of the
// source's log, 0 without numbers: a long run tells how far behind it is. Whatever failed before is
// older.
func (m *Meta) Reads(first, now time.Time, newest uint64, pending int64) {
	m.Newest = cmp.Or(newest, m.Newest)
	if first.IsZero() {
		first = now
	}
	if m.Behind.IsZero() || pending == 0 || first.Before(m.Behind) {
		m.Behind = first
	}
}

// HasRead notes the end of a run that has read everything, or not. oldest is the time of the oldest
// change not applied.
func (m *Meta) HasRead(began, oldest time.Time, newest uint64, complete bool) {
	m.Newest = cmp.Or(newest, m.Newest)
	if complete {
		m.At.Polled(began.UTC())
		m.Behind, m.Newest = oldest, max(m.Newest, m.At.Cursor().Number(), m.Unpublished.Sequence)
	}
}
