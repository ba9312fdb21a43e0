package feed

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/rsbridge/rsbridge/destination/item"
	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/internal/clip"
)

// seen is the memory of a fully applied list without numbers. Times are often whole seconds, and lists sorted by
// more than time. So a later change may come to stand before the cursor's: At shows it for the newest time,
// Before for earlier ones.
type seen struct {
	List   string    `json:"list"`
	Begin  time.Time `json:"begin,omitzero"`
	Time   time.Time `json:"time"`            // the newest of the list
	At     tally     `json:"at"`              // entries of this time
	Before tally     `json:"before"`          // entries of earlier times
	All    tally     `json:"all"`             // entries
	Grown  bool      `json:"grown,omitempty"` // they are in the order of their arrival, and not of their times
	First  uint32    `json:"first,omitempty"` // its first entry, or the last if the newest are first
	Locs   []uint32  `json:"locs,omitempty"`  // of the entries of this time, as far as they are few
	Exact  tally     `json:"exact,omitzero"`  // entries without times, with their promises
	Tail   []uint64  `json:"tail,omitempty"`  // trail.back at its end, if it is the cursor's change
}

// maxSeen bounds the memory of the entries of one time.
const maxSeen = 256

func hash32(s string) uint32 { return uint32(hash64(s) >> 32) }

func hash64(s string) uint64 { return ledger.HashOf(s).Brief() }

// tally is the number of entries and the sum of their digests, in any order.
type tally struct {
	N   int    `json:"n"`
	Sum uint64 `json:"sum,string"`
}

func (t *tally) add(digest uint64) {
	t.N++
	t.Sum += digest
}

// Entries of an earlier time may be written again with the hash of now; resource, kind and time
// stay.
func briefly(it *item.Item) uint64 { return hash64(it.Identity()) }

func fully(it *item.Item) uint64 {
	return hash64(it.Identity() + " " + it.Promise.Hashes.String() + " " + strconv.FormatInt(it.Promise.Length, 10) + " " + Stamp(it.LastMod))
}

// looker compares a list with its earlier looks, and sees it anew.
type looker struct {
	was            *seen // nil: not this list
	before, at     tally // as of was.Time
	start          tally // at, up to the change of the cursor
	now            seen
	newest, passed tally    // entries of now.Time, fully and briefly
	all            tally    // entries of the seen list, this one or another
	prefix, exact  tally    // as many entries as those
	trail          trail    // the changes up to here
	told           repeater // the numbered
	oldest         uint32   // the entry at the end, if the newest are first
	falls          bool     // they are
	locs           []uint32 // those of was.Locs with entries of was.Time or later
}

// A change of a time still to come has a wrong one: it says nothing of those before it.
func (l *looker) look(it *item.Item, cursor bool, latest time.Time) {
	brief := briefly(it)
	l.now.All.add(brief)
	if it.Time.IsZero() {
		l.now.Exact.add(fully(it))
	}
	if l.now.All.N == l.all.N {
		l.prefix, l.exact = l.now.All, l.now.Exact
	}
	l.oldest = uint32(brief >> 32)
	l.trail.add(step(it.Loc, l.oldest))
	if l.now.All.N == 1 {
		l.now.First = l.oldest
	}
	if it.Time.IsZero() {
		return
	}
	if l.was != nil && len(l.locs) < len(l.was.Locs) && !it.Time.Before(l.was.Time) {
		if loc := hash32(it.Loc); slices.Contains(l.was.Locs, loc) && !slices.Contains(l.locs, loc) {
			l.locs = append(l.locs, loc)
		}
	}
	if it.Time.After(latest) {
		if l.was != nil && cursor {
			l.start = l.at
		}
		return
	}
	if l.was != nil {
		switch it.Time.Compare(l.was.Time) {
		case -1:
			l.before.add(brief)
		case 0:
			l.at.add(fully(it))
		}
		if cursor {
			l.start = l.at
		}
	}
	switch it.Time.Compare(l.now.Time) {
	case -1:
		l.now.Before.add(brief)
		return
	case 1:
		l.now.Before.N += l.passed.N
		l.now.Before.Sum += l.passed.Sum
		l.now.Time, l.newest, l.passed, l.now.Locs = it.Time, tally{}, tally{}, l.now.Locs[:0]
	}
	if len(l.now.Locs) < maxSeen {
		l.now.Locs = append(l.now.Locs, hash32(it.Loc))
	}
	l.newest.add(fully(it))
	l.passed.add(brief)
}

// end gives the memory of the list, nil for an empty one.
func (l *looker) end(list string, begin time.Time) *seen {
	if l.now.All.N == 0 {
		return nil
	}
	l.now.List, l.now.Begin, l.now.At, l.now.Tail = list, begin, l.newest, l.trail.back()
	return &l.now
}

// again tells whether something else than before stands at the newest time of
// before, up to the change of the cursor.
func (l *looker) again() bool { return l.was != nil && l.start != l.was.At }

// begins tells whether the list begins with all seen entries, under this name or another.
func (l *looker) begins() bool { return l.all.N > 0 && l.prefix == l.all }

// kept tells whether the list begins with its whole earlier self.
func (l *looker) kept() bool { return l.was != nil && l.begins() }

// exactly tells whether the promises of entries without times are the same.
func (l *looker) exactly() bool { return l.was == nil || l.was.Exact.N == 0 || l.exact == l.was.Exact }

// grew tells whether the list begins with its whole earlier self, and goes on: the rest is new then, whatever its
// times are. In a list with the newest first the rest is older.
func (l *looker) grew() bool {
	return l.kept() && (l.now.All.N > l.was.All.N && !(l.falls && l.was.Before.N > 0) || l.was.Grown)
}

// trail is the last changes of all lists of a poll.
type trail struct {
	ring [64]uint64
	n    int
}

// maxTail bounds how many of them are remembered.
const maxTail = 16

// step is a change of a trail.
func step(loc string, change uint32) uint64 { return uint64(hash32(loc))<<32 | uint64(change) }

func (t *trail) add(h uint64) {
	t.ring[t.n%len(t.ring)] = h
	t.n++
}

// follow goes on from another poll.
func (t *trail) follow(tail []uint64) {
	for _, h := range slices.Backward(tail) {
		t.add(h)
	}
}

// back gives them from the last one backwards, each once, as lists may overlap.
func (t *trail) back() (tail []uint64) {
	for i := t.n - 1; i >= max(0, t.n-len(t.ring)) && len(tail) < maxTail; i-- {
		if h := t.ring[i%len(t.ring)]; !slices.Contains(tail, h) {
			tail = append(tail, h)
		}
	}
	return tail
}

// placing looks for the newest change among those like it, by its known tail.
type placing struct {
	tail   []uint64
	found  bool
	back   []uint64 // from the first of those without the tail before it
	passed []uint64 // later changes of the tail's resources
}

// look takes the next change. alike tells whether it looks like the newest one.
func (p *placing) look(t *trail, alike bool) {
	switch {
	case len(p.tail) == 0 || p.found:
	case p.back == nil && !alike:
	case alike && p.follows(t.back(), nil):
		p.found = true
	case p.back == nil:
		p.back = t.back()
	default:
		last := t.ring[(t.n-1)%len(t.ring)]
		if of := sameLoc(last); slices.ContainsFunc(p.tail, of) && !slices.ContainsFunc(p.passed, of) {
			p.passed = append(p.passed, last)
		}
	}
}

// is tells at the end of a list whether it has the newest change. A list may have only the last change of each
// resource. So resources with a change behind the newest one are left out of the comparison.
func (p *placing) is() bool { return p.found || p.back != nil && p.follows(p.back, p.passed) }

// follows compares the predecessors of a change like the newest with the newest's own, as far as
// both reach. One change alone says nothing, unless there was no other.
func (p *placing) follows(back, passed []uint64) bool {
	tail := p.tail
	if len(passed) > 0 {
		again := func(h uint64) bool { return slices.ContainsFunc(passed, sameLoc(h)) }
		back, tail = slices.DeleteFunc(slices.Clone(back), again), slices.DeleteFunc(slices.Clone(tail), again)
	}
	least := 2
	if len(p.tail) < maxTail { // there was no other
		least = min(2, len(tail))
	}
	n := min(len(back), len(tail))
	return n >= least && slices.Equal(back[:n], tail[:n])
}

func sameLoc(h uint64) func(uint64) bool { return func(o uint64) bool { return o>>32 == h>>32 } }

// late is a gap: changes came in before the newest time of the earlier look, or others are gone. A list that has
// lost its first entries cannot show it. An ended list loses none.
func (l *looker) late(begin time.Time, ended bool) error {
	if l.was == nil || l.grew() || !begin.Equal(l.was.Begin) {
		return nil
	}
	// The list begins as before. Retention takes only entries older than the newest.
	begun := ended || l.now.First == l.was.First || l.before == l.was.Before && (l.before.N > 0 || !begin.IsZero())
	if begun && l.again() {
		for _, loc := range l.was.Locs {
			if !slices.Contains(l.locs, loc) {
				return l.gone()
			}
		}
	}
	switch {
	case l.before == l.was.Before, l.before.N < l.was.Before.N && !begun:
		return nil
	case l.before.N < l.was.Before.N:
		return l.gone()
	}
	what := "other changes"
	if n := l.before.N - l.was.Before.N; n > 0 {
		what = fmt.Sprintf("new entries (%d)", n)
	}
	return &GapError{Why: fmt.Sprintf("Change List %s has %s of before %s, up to which it had been applied: they came late, or their times are wrong", clip.Middle(l.was.List), what, Stamp(l.was.Time))}
}

func (l *looker) gone() error {
	return &GapError{Why: fmt.Sprintf("Change List %s lacks changes up to %s that it had: it was rewritten, or the source was set back", clip.Middle(l.was.List), Stamp(l.was.Time))}
}
