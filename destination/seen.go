package destination

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"time"
)

// seen is what a list without numbers looked like when all of it was applied.
// Times are often of whole seconds, and lists sorted by more than the time: a
// change may come to stand before the one at which the cursor stands. At tells
// whether that happened at the newest time, and Before at an earlier one.
type seen struct {
	List   string    `json:"list"`
	Begin  time.Time `json:"begin,omitzero"`
	Time   time.Time `json:"time"`             // the newest of the list
	At     tally     `json:"at"`               // entries of that time
	Before tally     `json:"before"`           // entries of earlier times
	All    tally     `json:"all"`              // entries
	Grown  bool      `json:"grown,omitempty"`  // they are in the order in which they came, and not in that of their times
	First  uint32    `json:"first,omitempty"`  // its first entry, or the last where the newest are first
	Locs   []uint32  `json:"locs,omitempty"`   // of the entries of that time, as far as they are few
	Newest bool      `json:"newest,omitempty"` // it has the change at which the cursor stands
}

// maxSeen bounds what is remembered of the entries of one time.
const maxSeen = 256

func hash32(s string) uint32 {
	h := hashString(s)
	return binary.BigEndian.Uint32(h[:])
}

func hash64(s string) uint64 {
	h := hashString(s)
	return binary.BigEndian.Uint64(h[:])
}

// tally is the number of entries and the sum of their digests, in any order.
type tally struct {
	N   int    `json:"n"`
	Sum uint64 `json:"sum,string"`
}

func (t *tally) add(s string) {
	h := hashString(s)
	t.N++
	t.Sum += binary.BigEndian.Uint64(h[:])
}

// entries of an earlier time may be written again with the hash of now; what
// happened to which resource, and when, stays.
func briefly(it *item) string { return it.identity() }

func fully(it *item) string {
	return it.identity() + " " + it.Promise.Hashes.String() + " " + strconv.FormatInt(it.Promise.Length, 10) + " " + stamp(it.LastMod)
}

// looker compares a list with what was seen of it, and sees it anew.
type looker struct {
	was            *seen // nil: not this list
	before, at     tally // as of was.Time
	start          tally // at, up to the change of the cursor
	now            seen
	newest, passed tally           // entries of now.Time, fully and briefly
	all            tally           // entries of the list that was seen, this one or another
	prefix         tally           // as many entries as those
	oldest         uint32          // the entry at the end, where the newest are first
	told           map[uint32]bool // resources with entries of was.Time or later
}

// A change of a time that is still to come has a wrong one, which says nothing of those
// before it.
func (l *looker) look(it *item, cursor bool, latest time.Time) {
	if l.now.All.add(briefly(it)); l.now.All.N == l.all.N {
		l.prefix = l.now.All
	}
	l.oldest = hash32(briefly(it))
	if l.now.All.N == 1 {
		l.now.First = l.oldest
	}
	if it.Time.IsZero() {
		return
	}
	if l.was != nil && len(l.was.Locs) > 0 && !it.Time.Before(l.was.Time) {
		if l.told == nil {
			l.told = map[uint32]bool{}
		}
		l.told[hash32(it.Loc)] = true
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
			l.before.add(briefly(it))
		case 0:
			l.at.add(fully(it))
		}
		if cursor {
			l.start = l.at
		}
	}
	switch it.Time.Compare(l.now.Time) {
	case -1:
		l.now.Before.add(briefly(it))
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
	l.passed.add(briefly(it))
}

// end gives what is remembered of the list, nil where it has nothing.
func (l *looker) end(list string, begin time.Time) *seen {
	if l.now.All.N == 0 {
		return nil
	}
	l.now.List, l.now.Begin, l.now.At = list, begin, l.newest
	return &l.now
}

// again tells whether something else than before stands at the newest time of
// before, up to the change of the cursor.
func (l *looker) again() bool { return l.was != nil && l.start != l.was.At }

// begins tells that the list begins with all of what was seen, under this name or another.
func (l *looker) begins() bool { return l.all.N > 0 && l.prefix == l.all }

// kept tells that the list begins with what it was as a whole.
func (l *looker) kept() bool { return l.was != nil && l.begins() }

// grew tells that the list begins with what it was as a whole, so that what follows is
// what is new, whatever its times are. One that did not grow may have its newest first.
func (l *looker) grew() bool {
	return l.kept() && (l.now.All.N > l.was.All.N || l.was.Grown)
}

// late is a gap when changes have come in before the newest time of before, or others are
// gone. A list that has lost entries at its beginning cannot tell; one that had its end does
// not lose them.
func (l *looker) late(begin time.Time, ended bool) error {
	if l.was == nil || l.grew() || !begin.Equal(l.was.Begin) {
		return nil
	}
	begun := ended || l.now.First == l.was.First // as it did before
	if begun && l.again() {
		for _, loc := range l.was.Locs {
			if !l.told[loc] {
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
	return &gapError{why: fmt.Sprintf("Change List %s has %s of before %s, up to which it had been applied: they came late, or their times are wrong", shorten(l.was.List), what, stamp(l.was.Time))}
}

func (l *looker) gone() error {
	return &gapError{why: fmt.Sprintf("Change List %s lacks changes up to %s that it had: it was rewritten, or the source was set back", shorten(l.was.List), stamp(l.was.Time))}
}
