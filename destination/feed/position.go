package feed

import (
	"encoding/json"
	"slices"
	"time"
)

// Cursor is the place of a reader in a source's changes. Only the feed reads it.
type Cursor struct{ at cursor }

// CursorAt is a cursor behind a snapshot of a time; sequence is nil without numbers.
func CursorAt(t time.Time, sequence *uint64) Cursor {
	return Cursor{cursor{Time: t, Sequence: sequence}}
}

func (c Cursor) MarshalJSON() ([]byte, error)     { return json.Marshal(c.at) }
func (c *Cursor) UnmarshalJSON(text []byte) error { return json.Unmarshal(text, &c.at) }

// Time is the time of the last applied change, as far as it is known.
func (c *Cursor) Time() time.Time { return c.at.Time }

// Sequence is the position in the source's log, nil without numbers.
func (c *Cursor) Sequence() *uint64 { return c.at.Sequence }

// Number is the position in the source's log, 0 without numbers.
func (c *Cursor) Number() uint64 { return c.at.number() }

// HasRead tells whether changes were read, or part of them applied.
func (c *Cursor) HasRead() bool { return c.at.List != "" || c.at.Ahead != nil }

// IsInList tells whether the cursor stands in a list, and not behind a snapshot alone.
func (c *Cursor) IsInList() bool { return c.at.List != "" }

// Newest is the change at the cursor, nil for none.
func (c *Cursor) Newest() *Newest { return c.at.Newest }

// Has tells whether a document was read to its end in the last complete poll.
func (c *Cursor) Has(document uint64) bool { return slices.Contains(c.at.Read, document) }

// Ahead is the last change being applied, or seen by a comparison: some up to it may stand in
// the mirror.
func (c *Cursor) Ahead() *Newest { return c.at.Ahead }

// SetAhead notes such a change, nil for none.
func (c *Cursor) SetAhead(n *Newest) { c.at.Ahead = n }

// Passed tells whether the polls from here on do not meet a change any more.
func (c *Cursor) Passed(n *Newest) bool { return c.at.passed(n) }

// Precedes tells whether its newest change is of before the other cursor's.
func (c *Cursor) Precedes(o *Cursor) bool { return c.at.precedes(&o.at) }

// NextPoll begins another poll.
func (c *Cursor) NextPoll() { c.at.nextPoll() }

// Take moves the cursor behind a change, End to the end of a list.
func (c *Cursor) Take(ch *Change) { c.at.take(ch) }
func (c *Cursor) End(ch *Change)  { c.at.end(ch) }

// Finish moves the cursor behind all changes; dl is their root.
func (c *Cursor) Finish(address string, dl *Download) { c.at.finish(address, dl) }

// ReachesBack watches whether the lists reach back to the list or dump at the cursor.
func (c *Cursor) ReachesBack(ask bool) func() error { return c.at.reachesBack(ask) }

// Doubt sets unproven if the lists do not tell whether they reach back to the cursor.
func (c *Cursor) Doubt(unproven *bool) { c.at.unproven = unproven }

// Lose forgets the place in the lists, after a gap. all forgets the time too.
func (c *Cursor) Lose(all bool) {
	if all {
		c.at.Time = time.Time{}
	}
	c.at.Sequence, c.at.Identity, c.at.Newest, c.at.Seen = nil, "", nil, nil
}

// MayBeLaterThan tells whether a mirror at the cursor may be later than a snapshot of a time.
func (c *Cursor) MayBeLaterThan(t time.Time) bool {
	at := &c.at
	if at.List == "" && at.Ahead == nil && at.Newest == nil {
		return false
	}
	return !t.After(at.Time) || at.Newest != nil && at.Newest.Time.IsZero()
}

// IsBehind tells whether it is at another change than the cursor before a gap.
func (c *Cursor) IsBehind(gap *Cursor) bool {
	return c.at.Newest != nil && (gap.at.Newest == nil || *c.at.Newest != *gap.at.Newest)
}
