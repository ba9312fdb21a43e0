package feed

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Position is how far a source was read, and what was learned of it on the way.
type Position struct {
	LastPoll  time.Time `json:"last_poll,omitzero"`
	Cursor    Cursor    `json:"cursor"`
	Inventory ListState `json:"inventory"`      // the last Resource List or Dump processed as a whole
	Until     time.Time `json:"until,omitzero"` // the mirror is the source as it was then
	Missing   Missing   `json:"missing,omitzero"`
	Older     OlderList `json:"older,omitzero"`
	Absent    []string  `json:"absent,omitempty"` // lists and dumps that the source names and does not have
	Rises     bool      `json:"rises,omitempty"`  // the Change Lists of an index without times were in their order
}

// Cursor is how far the Change Lists are applied.
type Cursor struct {
	Time     time.Time `json:"time,omitzero"` // everything before is applied
	Had      time.Time `json:"had,omitzero"`  // when the list or dump was had that is of Time, where that was still to come
	Told     time.Time `json:"told,omitzero"` // what that list or dump says to be of, where it is so late that Time is another
	Sequence *uint64   `json:"sequence,omitempty"`
	List     string    `json:"list,omitempty"`
	Position int       `json:"position,omitempty"` // entries of List that are applied
	Identity string    `json:"identity,omitempty"` // of the last of them
	Closed   bool      `json:"closed,omitempty"`   // List has an end and is applied up to it
	Root     ListState `json:"root"`               // of the Change List or index, when all of it was applied
	Last     ListState `json:"last,omitzero"`      // of List, when all of it was applied
	Filled   ListState `json:"filled,omitzero"`    // likewise of the last Change List before it that has changes, where List has none
	Begin    time.Time `json:"begin,omitzero"`     // where List begins
	Newest   *Newest   `json:"newest,omitempty"`   // the change of Identity, to find it again
	Taken    *Newest   `json:"taken,omitempty"`    // the last changed resource of the list or dump that was taken, until a package of its time was read
	Seen     *seen     `json:"seen,omitempty"`     // the list that was last applied up to its end, of those with changes
	Read     []uint64  `json:"read,omitempty"`     // the lists of the last poll that was not cut off, see download.name
	again    time.Time // of the first change of before the cursor that an earlier list of this poll has handed out
	Unproven *bool     // set where the lists do not tell whether they reach back to a list or dump; nil: not asked
	Trail    *Trail    // of the poll
	Reads    []uint64  // the lists of this poll, see Read
	anew     bool      // an earlier list of this poll has handed out changes without times: what follows them follows them again
	Ahead    *Newest   `json:"ahead,omitempty"` // the last of the changes that are being applied, or that a comparison saw: some of them, up to it, may stand in the mirror
}

// ListState recognizes a document that did not change.
type ListState struct {
	URL      string    `json:"url,omitempty"`
	ETag     string    `json:"etag,omitempty"`
	Modified string    `json:"modified,omitempty"`
	Digest   string    `json:"digest,omitempty"` // sha-256 of the body
	At       time.Time `json:"at,omitzero"`
	Size     int64     `json:"size,omitempty"` // bytes as they came, of a list whose At alone tells that it is the same
	Index    bool      `json:"index,omitempty"`
	Numbered bool      `json:"numbered,omitempty"` // its root tells the position in the source's log
	Untold   bool      `json:"untold,omitempty"`   // nothing proves which of its lists is the last
	Vague    bool      `json:"vague,omitempty"`    // some of its entries tell nothing by which another state of their resource is seen
	Package  bool      `json:"package,omitempty"`  // it is a package of a Change Dump
	Fresh    bool      `json:"fresh,omitempty"`    // it was had so soon after At that another list may have the same
	Ahead    bool      `json:"ahead,omitempty"`    // At was still to come by both clocks, so that no other list is older for it

	// What is below an index, which is asked for too until the time of the index alone
	// tells that it is the same: it has none, or lists that were begun in that minute or
	// on that day may still have been under way.
	Parts []listPart `json:"parts,omitempty"`
	past  bool       // they need not be kept
}

// listPart recognizes a document below an index.
type listPart struct {
	URL      string `json:"url"`
	ETag     string `json:"etag,omitempty"`
	Modified string `json:"modified,omitempty"`
	Digest   string `json:"digest"`
}

// stands tells that the document, with its parts, stands for what it names: an index without
// a time stays as it is while its parts change, as a list of addresses alone does while what
// they lead to changes. With a time it does as well until that has gone by: it may be a day.
func (l *ListState) stands() bool {
	told := !l.At.IsZero() && !l.Fresh
	return told || !l.Vague && (!l.Index || len(l.Parts) > 0)
}

// sameParts tells that another one has the same documents below it, as far as they are kept.
func (l *ListState) sameParts(o *ListState) bool {
	same := func(a, b listPart) bool { return a.URL == b.URL && a.Digest == b.Digest }
	return len(l.Parts) == 0 || slices.EqualFunc(l.Parts, o.Parts, same)
}

// Mark tells the list, with what is below it as far as that is kept, from another one.
func (l *ListState) Mark() string {
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

// Kept is what is remembered of a list or dump that was processed.
func (l *ListState) Kept() ListState {
	k := *l
	if k.past {
		k.Parts = nil
	}
	return k
}

// Applied is the time before which a list without numbers has nothing new. The end of a
// list may be later than its last change, and a snapshot say that it is of a time to come.
func (c *Cursor) Applied() time.Time {
	at := c.Had
	if n := c.Newest; n != nil && !n.Time.IsZero() {
		at = n.Time
	}
	if !at.IsZero() && at.Before(c.Time) {
		return at
	}
	return c.Time
}

// Before tells that everything before a time is applied, whatever of it the lists still have.
func (c *Cursor) Before(t time.Time) bool {
	return !t.After(c.Time) && (c.Had.IsZero() || !t.After(c.Had))
}

// stands is the time up to which the changes are applied that the source has told.
func (c *Cursor) stands() time.Time {
	if n := c.Newest; n != nil && n.Time.After(c.Time) { // by a clock that is ahead
		return n.Time
	}
	return c.Time
}

// ReachesBack watches that for the lists that are read from a cursor.
func (c *Cursor) ReachesBack(ask bool) func() error {
	unproven := false
	if ask && c.Newest == nil {
		c.Unproven = &unproven
	}
	return func() error {
		if unproven {
			return ErrUnreached
		}
		return nil
	}
}

// reach moves the cursor to a later time, and never to one that was still to come when the
// list was given: what comes until then is not applied.
func (c *Cursor) reach(t, served time.Time) {
	if t.After(served) {
		t = served
	}
	if t.After(c.Time) {
		c.Time = t
	}
}

// stand puts the cursor at the end of a list. A list without changes leaves the one before it
// known, which has the newest change.
func (c *Cursor) stand(end *Change) {
	switch {
	case end.position > 0:
		c.Seen, c.Filled = end.seen, ListState{}
		if k := c.Seen; k != nil && (c.Newest == nil || len(k.Tail) == 0 || uint32(k.Tail[0]) != hash32(c.Identity)) {
			k.Tail = nil
		}
	case c.Filled.URL != "":
	case c.Last.URL != end.List && !c.Last.Package:
		c.Filled = c.Last
	default: // nothing that could be asked for again was before it
		c.Filled = end.state
	}
	c.List, c.Position, c.Closed = end.List, end.position, end.closed
	c.Last, c.Begin = end.state, end.from
}

// Passed tells that a change is not met any more by who goes on from here.
func (c *Cursor) Passed(n *Newest) bool {
	return !n.Time.After(c.Time) || c.Newest != nil && !n.Time.After(c.Newest.Time)
}

// coversWith tells whether the first change of a list follows the cursor by its
// number, so that a hole in the times is none in the changes.
func (c *Cursor) coversWith(dl *Download, src *Source) bool {
	if c.Sequence == nil {
		return false
	}
	r, err := src.Docs.Reader(dl)
	if err != nil {
		return false
	}
	e, err := r.Next()
	if err != nil {
		h := r.Head()
		s, ok := sequenceOf(&h.Meta)
		return ok && s <= *c.Sequence
	}
	s, ok := sequenceOf(&e.Meta)
	return ok && s <= *c.Sequence+1
}

// Number is the position in the source's log, 0 where it tells none.
func (c *Cursor) Number() uint64 {
	if c.Sequence == nil {
		return 0
	}
	return *c.Sequence
}

// maxRead bounds of how many lists it is remembered that they were read.
const maxRead = 256

// Take moves the cursor behind a change.
func (c *Cursor) Take(ch *Change) {
	c.List, c.Position, c.Identity, c.Closed = ch.List, ch.position, ch.Item.Identity(), false
	c.Newest, c.Last, c.Filled = newestOf(ch.Item), ListState{}, ListState{}
	c.Read = nil
	c.Root = ListState{URL: c.Root.URL} // should this run be cut off, the cursor is of none that was read to its end
	c.reach(ch.Item.Time, ch.Served)
	if s := ch.Item.Sequence; s > 0 {
		c.Sequence = &s
	}
}

// End moves the cursor to the end of a list.
func (c *Cursor) End(ch *Change) {
	c.stand(ch)
	if c.Reads = append(c.Reads, ch.Document); len(c.Reads) > 2*maxRead {
		c.Reads = slices.Clone(c.Reads[len(c.Reads)-maxRead:])
	}
	if n := ch.newest; n != nil && (c.Newest == nil || n.Sequence == 0 && !n.Time.Before(c.Newest.Time)) {
		c.Newest = n
	}
	if n := c.Taken; n != nil && !ch.until.Before(n.Time) {
		c.Taken = nil
	}
	if ch.closed {
		c.reach(ch.until, ch.Served)
	}
	if ch.sequence != nil && (c.Sequence == nil || *ch.sequence > *c.Sequence) {
		s := *ch.sequence
		c.Sequence = &s
	}
}

// Finish moves the cursor behind everything that the changes had, of which dl is the root.
func (c *Cursor) Finish(address string, dl *Download) {
	c.Read, c.Reads = c.Reads[max(0, len(c.Reads)-maxRead):], nil
	c.Root = ListState{URL: address, ETag: dl.etag(), Modified: dl.modified(), Digest: dl.Digest.String(), Index: dl.index, Numbered: dl.numbered, Untold: dl.untold}
}

// Precedes tells that its newest change is of before that of another cursor, as where lists overlap.
func (c *Cursor) Precedes(o *Cursor) bool {
	return o.Newest != nil && c.Newest != nil && c.Newest.Sequence == 0 && c.Newest.Time.Before(o.Newest.Time)
}

// ErrUnreached says that nothing in the Change Lists proves that they reach back to the list or
// dump at which the cursor stands: they do not tell where they begin, and have later changes alone.
var ErrUnreached = errors.New("the Change Lists do not reach back to the list that is mirrored")
