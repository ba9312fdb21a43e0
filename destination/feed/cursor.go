package feed

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"
)

// position is inside of a Position.
type position struct {
	LastPoll  time.Time `json:"last_poll,omitzero"`
	Cursor    Cursor    `json:"cursor"`
	Inventory listState `json:"inventory"`      // the last Resource List or Dump processed as a whole
	Until     time.Time `json:"until,omitzero"` // the mirror is the source as it was then
	Missing   missing   `json:"missing,omitzero"`
	Older     olderList `json:"older,omitzero"`
	Absent    []string  `json:"absent,omitempty"` // lists and dumps named by the source and not there
	Passed    []string  `json:"passed,omitempty"` // missing Change Lists that a person let pass
	Rises     bool      `json:"rises,omitempty"`  // the Change Lists of an index without times were in their order
}

// cursor is how far the Change Lists are applied.
type cursor struct {
	Time     time.Time `json:"time,omitzero"` // everything before is applied
	Had      time.Time `json:"had,omitzero"`  // when the list or dump of Time was had, if Time was still to come
	Told     time.Time `json:"told,omitzero"` // the list's or dump's own time, if it is too late to be Time
	Sequence *uint64   `json:"sequence,omitempty"`
	List     string    `json:"list,omitempty"`
	Position int       `json:"position,omitempty"` // applied entries of List
	Identity string    `json:"identity,omitempty"` // of the last of them
	Closed   bool      `json:"closed,omitempty"`   // List has an end and is applied up to it
	Root     listState `json:"root"`               // of the Change List or index, when all of it was applied
	Last     listState `json:"last,omitzero"`      // of List, when all of it was applied
	Filled   listState `json:"filled,omitzero"`    // likewise of the last Change List with changes before it, if List has none
	Begin    time.Time `json:"begin,omitzero"`     // the beginning of List
	Newest   *Newest   `json:"newest,omitempty"`   // the change of Identity, to find it again
	Taken    *Newest   `json:"taken,omitempty"`    // the last changed resource of the taken list or dump, until a package of its time was read
	Seen     *seen     `json:"seen,omitempty"`     // the last fully applied list with changes
	Said     *said     `json:"said,omitempty"`     // the last fully applied list with numbers
	Read     []uint64  `json:"read,omitempty"`     // the lists of the last complete poll, see Download.name
	Earlier  []earlier `json:"earlier,omitempty"`  // the last lists that were read
	Packages []uint64  `json:"packages,omitempty"` // the addresses of the packages of the Change Dump, as it was applied
	Heard    []heard   `json:"heard,omitempty"`    // the lists read of late, of a source of changes alone
	hears    bool      // further ones are remembered
	again    time.Time // of the first change of before the cursor in an earlier list of this poll
	unproven *bool     // set if the lists do not tell whether they reach back to a list or dump; nil: not asked
	trail    *trail    // of the poll
	reads    []uint64  // the lists of this poll, see Read
	anew     bool      // an earlier list of this poll had changes without times: their successors succeed them again
	Ahead    *Newest   `json:"ahead,omitempty"` // the last change being applied, or seen by a comparison: some up to it may stand in the mirror
}

// listState recognizes an unchanged document.
type listState struct {
	URL      string    `json:"url,omitempty"`
	ETag     string    `json:"etag,omitempty"`
	Modified string    `json:"modified,omitempty"`
	Digest   string    `json:"digest,omitempty"` // sha-256 of the body
	At       time.Time `json:"at,omitzero"`
	Size     int64     `json:"size,omitempty"` // bytes as they came; set if At alone recognizes the list
	Index    bool      `json:"index,omitempty"`
	Numbered bool      `json:"numbered,omitempty"` // its root tells the position in the source's log
	Untold   bool      `json:"untold,omitempty"`   // nothing proves the order of its lists
	Vague    bool      `json:"vague,omitempty"`    // some of its entries have no measure to see another state of their resource by
	Package  bool      `json:"package,omitempty"`  // it is a package of a Change Dump
	Fresh    bool      `json:"fresh,omitempty"`    // it was had so soon after At: another list may have the same time
	Ahead    bool      `json:"ahead,omitempty"`    // At was still to come by both clocks, and makes no other list older

	// Documents below an index. They are asked for until the time of the index alone recognizes
	// it: it has none, or lists begun in the same minute or on the same day may have been under
	// way.
	Parts []listPart `json:"parts,omitempty"`
	Rests bool       `json:"rests,omitempty"` // the mirror rests on it alone: they are asked for at any time
	past  bool       // they need not be kept else
}

// listPart recognizes a document below an index.
type listPart struct {
	URL      string `json:"url"`
	ETag     string `json:"etag,omitempty"`
	Modified string `json:"modified,omitempty"`
	Digest   string `json:"digest"`
}

// stands tells whether the document, with its parts, stands for everything it names. An index
// without a time stays the same while its parts change, as a bare list of addresses does while
// the resources change. A document with a time stands for them once the time has gone by: it may
// be a day.
func (l *listState) stands() bool {
	told := !l.At.IsZero() && !l.Fresh
	return told || !l.Vague && (!l.Index || len(l.Parts) > 0)
}

// sameParts tells whether another one has the same documents below it, as far as they are kept.
func (l *listState) sameParts(o *listState) bool {
	same := func(a, b listPart) bool { return a.URL == b.URL && a.Digest == b.Digest }
	return len(l.Parts) == 0 || slices.EqualFunc(l.Parts, o.Parts, same)
}

// mark tells the list and the kept documents below it from another one.
func (l *listState) mark() string {
	if len(l.Parts) == 0 {
		return l.Digest
	}
	h := sha256.New()
	fmt.Fprintln(h, l.Digest)
	for _, p := range l.Parts {
		fmt.Fprintln(h, p.Digest)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// kept is the memory of a processed list or dump.
func (l *listState) kept(rests bool) listState {
	k := *l
	if k.Rests = rests && len(k.Parts) > 0; k.past && !rests {
		k.Parts = nil
	}
	return k
}

// applied is the time before which a list without numbers has nothing new. The end of a list may
// be later than its last change, and a snapshot may claim a time to come.
func (c *cursor) applied() time.Time {
	at := c.Had
	if n := c.Newest; n != nil && !n.Time.IsZero() {
		at = n.Time
	}
	if !at.IsZero() && at.Before(c.Time) {
		return at
	}
	return c.Time
}

// before tells whether everything before a time is applied, whatever the lists still have of it.
func (c *cursor) before(t time.Time) bool {
	return !t.After(c.Time) && (c.Had.IsZero() || !t.After(c.Had))
}

// stands is the time of the last applied change, as told by the source.
func (c *cursor) stands() time.Time {
	if n := c.Newest; n != nil && n.Time.After(c.Time) { // by a clock ahead
		return n.Time
	}
	return c.Time
}

// reachesBack watches the lists read from a cursor for it.
func (c *cursor) reachesBack(ask bool) func() error {
	unproven := false
	if ask && c.Newest == nil {
		c.unproven = &unproven
	}
	return func() error {
		if unproven {
			return ErrUnreached
		}
		return nil
	}
}

// reach moves the cursor to a later time, and never to a time still to come when the list was
// given: changes until then are not applied.
func (c *cursor) reach(t, served time.Time) {
	if t.After(served) {
		t = served
	}
	if t.After(c.Time) {
		c.Time = t
	}
}

// stand puts the cursor at the end of a list. A list without changes leaves the one before it
// known, with the newest change.
func (c *cursor) stand(end *Change) {
	switch {
	case end.position > 0:
		c.Seen, c.Said, c.Filled = end.seen, end.said, listState{}
		if k := c.Seen; k != nil && (c.Newest == nil || len(k.Tail) == 0 || uint32(k.Tail[0]) != hash32(c.Identity)) {
			k.Tail = nil
		}
	case c.Filled.URL != "":
	case c.Last.URL != end.List && !c.Last.Package:
		c.Filled = c.Last
	default: // nothing before it could be asked for again
		c.Filled = end.state
	}
	c.List, c.Position, c.Closed = end.List, end.position, end.closed
	c.Last, c.Begin = end.state, end.from
}

// passed tells whether the polls from here on do not meet a change any more.
func (c *cursor) passed(n *Newest) bool {
	return !n.Time.After(c.Time) || c.Newest != nil && !n.Time.After(c.Newest.Time)
}

// coversWith tells whether the first change of a list follows the cursor by its number. A hole in
// the times is none in the changes then.
func (c *cursor) coversWith(dl *Download, src *Source) bool {
	if c.Sequence == nil {
		return false
	}
	r, err := src.Docs.reader(dl)
	if err != nil {
		return false
	}
	e, err := r.Next()
	if err != nil {
		h := r.Head()
		s, ok := h.Meta.Sequence()
		return ok && s <= *c.Sequence
	}
	s, ok := e.Meta.Sequence()
	return ok && s <= *c.Sequence+1
}

// number is the position in the source's log, 0 for none.
func (c *cursor) number() uint64 {
	if c.Sequence == nil {
		return 0
	}
	return *c.Sequence
}

// maxRead bounds the memory of lists read.
const maxRead = 256

// take moves the cursor behind a change.
func (c *cursor) take(ch *Change) {
	c.List, c.Position, c.Identity, c.Closed = ch.List, ch.position, ch.Item.Identity(), false
	c.Newest, c.Said, c.Last, c.Filled = newestOf(ch.Item), nil, listState{}, listState{}
	c.Read = nil
	c.Root = listState{URL: c.Root.URL} // should this run be cut off, the cursor is of no fully read document
	c.reach(ch.Item.Time, ch.Served)
	if s := ch.Item.Sequence; s > 0 {
		c.Sequence = &s
	}
}

// end moves the cursor to the end of a list.
func (c *cursor) end(ch *Change) {
	c.stand(ch)
	c.note(ch)
	if c.reads = append(c.reads, ch.Document); len(c.reads) > 2*maxRead {
		c.reads = slices.Clone(c.reads[len(c.reads)-maxRead:])
	}
	if n := ch.newest; n != nil && (c.Newest == nil || n.Sequence == 0 && !n.Time.Before(c.Newest.Time)) {
		c.Newest = n
	}
	if n := c.Taken; n != nil && !ch.until.Before(n.Time) {
		c.Taken = nil
	}
	c.Packages = ch.packages
	c.hear(ch)
	if ch.closed {
		c.reach(ch.until, ch.Served)
	}
}

// finish moves the cursor behind all changes; dl is their root.
func (c *cursor) finish(address string, dl *Download) {
	c.Read, c.reads = c.reads[max(0, len(c.reads)-maxRead):], nil
	if dl.tail { // nothing is known of the rest
		c.Root = listState{URL: address}
		return
	}
	c.Root = listState{URL: address, ETag: dl.etag(), Modified: dl.modified(), Digest: dl.Digest.String(), Index: dl.index, Numbered: dl.numbered, Untold: dl.untold}
}

// precedes tells whether its newest change is of before the other cursor's, as with overlapping
// lists.
func (c *cursor) precedes(o *cursor) bool {
	return o.Newest != nil && c.Newest != nil && c.Newest.Sequence == 0 && c.Newest.Time.Before(o.Newest.Time)
}

// ErrUnreached says: nothing proves the Change Lists to reach back to the list or dump at the
// cursor. They do not tell their beginning, and have later changes alone.
var ErrUnreached = errors.New("the Change Lists do not reach back to the list that is mirrored")

// nextPoll begins another poll.
func (c *cursor) nextPoll() { c.reads = nil }
