package feed

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/rsbridge/rsbridge/resourcesync"
)

// Position is how far a source was read, and the knowledge gained on the way. Only the feed reads
// it. Its keeper keeps the encoding, and tells the feed about the mirror.
type Position struct{ at position }

func (p Position) MarshalJSON() ([]byte, error)     { return json.Marshal(p.at) }
func (p *Position) UnmarshalJSON(text []byte) error { return json.Unmarshal(text, &p.at) }

// Position is the place behind an inventory for Changes to go on.
func (v *Inventory) Position() (p Position) {
	p.Take(v, false)
	return p
}

// Cursor is the place in the changes.
func (p *Position) Cursor() *Cursor { return &p.at.Cursor }

// MoveTo is for a mirror with all changes up to a cursor.
func (p *Position) MoveTo(c Cursor) { p.at.Cursor = c }

// Take is for a mirror made equal to a list or dump, and to the changes after it. rests tells that nothing
// else says the same yet: one document of it may be wrong.
func (p *Position) Take(v *Inventory, rests bool) {
	p.at.Inventory, p.at.Cursor = v.list.kept(rests), v.Cursor()
}

// TrustList ends the doubt in a taken list or dump.
func (p *Position) TrustList() { p.at.Inventory.Rests = false }

// ForgetList is for a mirror of no list or dump any more. The cursor stays.
func (p *Position) ForgetList() { p.at.Inventory = listState{} }

// DoubtList has the taken list read anew, though not an older one.
func (p *Position) DoubtList() {
	l := &p.at.Inventory
	*l = listState{URL: l.URL, At: l.At, Ahead: l.Ahead}
}

// ListTime is the time of the taken list or dump, by the source.
func (p *Position) ListTime() time.Time { return p.at.Inventory.At }

// HasTaken tells whether the taken list or dump has an address.
func (p *Position) HasTaken(address string) bool {
	return p.HasList() && p.at.Inventory.URL == address
}

// HasList tells whether a list or dump was taken as a whole.
func (p *Position) HasList() bool { return p.at.Inventory.URL != "" }

// IsAfter tells whether the taken list is of a later time than another one, both by the source.
func (p *Position) IsAfter(v *Inventory) bool {
	return v.list.At.Before(p.at.Inventory.At) && !p.at.Inventory.Ahead
}

// LeaveSource forgets the lists of a former source or place. The cursor stays.
func (p *Position) LeaveSource() {
	p.at.Inventory, p.at.Missing, p.at.Rises = listState{}, missing{}, false
}

// LastPoll is the beginning of the last poll that was read to its end.
func (p *Position) LastPoll() time.Time { return p.at.LastPoll }

// Polled is for a poll read to its end, by its beginning.
func (p *Position) Polled(at time.Time) { p.at.LastPoll = at }

// Until is the time of a mirror of the source as it was then; else zero.
func (p *Position) Until() time.Time { return p.at.Until }

// IsPast tells of a mirror of a time.
func (p *Position) IsPast() bool { return !p.at.Until.IsZero() }

// StandAt makes it the position of a mirror of a time; zero is the present.
func (p *Position) StandAt(t time.Time) { p.at.Until = t }

// Absent are lists and dumps named by the source and not there.
func (p *Position) Absent() []string { return p.at.Absent }

// Lacks is why changes are missing, "" if none is.
func (p *Position) Lacks() string { return p.at.Missing.Why }

// DropMissing is for changes after the missing ones, or a source without them, being applied.
func (p *Position) DropMissing() {
	m := &p.at.Missing
	m.Lists, m.Former, m.Dropped = bounded(m.all()), nil, true
}

// BridgeMissing is for the changes from the cursor on being applied, those of missing lists too.
func (p *Position) BridgeMissing() {
	if !p.at.Missing.Dropped { // else the cursor was behind them
		p.at.Missing = p.at.Missing.former()
	}
}

// FoundMissing is for missing changes that were applied.
func (p *Position) FoundMissing() { p.at.Missing = missing{} }

// PassMissing is for missing changes that a person lets pass.
func (p *Position) PassMissing() {
	p.at.Passed = bounded(append(slices.Clone(p.at.Passed), p.at.Missing.all()...))
	p.at.Missing = missing{}
}

// Waits is why an older list or dump is not taken yet, "" for none.
func (p *Position) Waits() string { return p.at.Older.Why }

// HasOlder tells whether something of an older list or dump is kept.
func (p *Position) HasOlder() bool { return p.at.Older != olderList{} }

// ForgetOlder is for a list or dump taken after it.
func (p *Position) ForgetOlder() { p.at.Older = olderList{} }

// WaitFor has an older list or dump wait.
func (p *Position) WaitFor(kind resourcesync.Capability, v *Inventory, now time.Time) {
	old := &p.at.Older
	old.Why = fmt.Sprintf("the %s%s is older than the one%s that was taken: it is an old copy, or the source was set back; it is taken when it is still there a day later, or at once by sync --full", KindName(kind), ofTime(v.list.At), ofTime(p.at.Inventory.At))
	if old.Since.IsZero() {
		old.Since = now.UTC()
	}
}

// Refuse keeps an older Resource Dump as compared with the mirror, and different.
func (p *Position) Refuse(v *Inventory) { p.at.Older.Other = v.list.Digest }

// HasRefused tells whether that is so.
func (p *Position) HasRefused(v *Inventory) bool { return p.at.Older.Other == v.list.Digest }

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

// Ahead is the last change that may stand in the mirror already: an interrupted run was applying it, or a
// comparison has seen it.
func (c *Cursor) Ahead() *Newest { return c.at.Ahead }

// SetAhead sets Ahead, nil for none.
func (c *Cursor) SetAhead(n *Newest) { c.at.Ahead = n }

// Passed tells whether a change lies behind the cursor: later polls do not meet it.
func (c *Cursor) Passed(n *Newest) bool { return c.at.passed(n) }

// Precedes tells whether its newest change is older than the other cursor's.
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

// Lose forgets the place in the lists, after a gap. all forgets the time too.
func (c *Cursor) Lose(all bool) {
	if all {
		c.at.Time = time.Time{}
	}
	c.at.Sequence, c.at.Identity, c.at.Newest, c.at.Seen, c.at.Said = nil, "", nil, nil, nil
}

// MayBeLaterThan tells whether a mirror at the cursor may be later than a snapshot of a time.
func (c *Cursor) MayBeLaterThan(t time.Time) bool {
	at := &c.at
	if at.List == "" && at.Ahead == nil && at.Newest == nil {
		return false
	}
	return !t.After(at.Time) || at.Newest != nil && at.Newest.Time.IsZero()
}

// IsAt tells whether it is at the same change as another one, in lists that looked the same.
func (c *Cursor) IsAt(o *Cursor) bool {
	a, b := &c.at, &o.at
	return a.Newest != nil && b.Newest != nil && *a.Newest == *b.Newest && reflect.DeepEqual(a.Seen, b.Seen) && reflect.DeepEqual(a.Said, b.Said)
}

// ReadAgain has the changes after it read, also from documents that were read before.
func (c *Cursor) ReadAgain() { c.at.Root = listState{URL: c.at.Root.URL} }

// Heard is what notifications tell of a source, zero for nothing.
type Heard struct {
	Position uint64    // of its newest change
	Since    time.Time // of the first change heard of and not read yet
}

// Unnumbered tells of changes heard of without their positions: they are news until the source is read.
func (h Heard) Unnumbered() bool { return h.Position == 0 && !h.Since.IsZero() }
