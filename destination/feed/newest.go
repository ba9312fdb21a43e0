package feed

import (
	"fmt"
	"time"

	"github.com/rsbridge/rsbridge/destination/item"
	"github.com/rsbridge/rsbridge/internal/clip"
	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// Newest is the change at the cursor: the last applied one. A number alone proves nothing: the
// log of a source restored from a backup goes back and then grows past our number with other
// changes. So each poll looks for this very change in the offered lists.
type Newest struct {
	Sequence uint64    `json:"sequence,omitempty"` // 0: the source tells none
	Time     time.Time `json:"time,omitzero"`
	Loc      string    `json:"loc"`
	Change   string    `json:"change"`
	Hashes   string    `json:"hashes,omitempty"` // as promised
	Length   int64     `json:"length,omitempty"` // likewise, 0: not told
	LastMod  time.Time `json:"lastmod,omitzero"`
	Graph    string    `json:"graph,omitempty"` // likewise, hexadecimal
}

func newestOf(it *item.Item) *Newest {
	n := &Newest{Sequence: it.Sequence, Time: it.Time, Loc: it.Loc, Change: it.Change, Hashes: it.Promise.Hashes.String(), Length: max(it.Promise.Length, 0), LastMod: it.LastMod}
	if !it.Promise.Graph.IsZero() {
		n.Graph = it.Promise.Graph.String()
	}
	return n
}

// Is tells whether an entry is the applied change.
func (n *Newest) Is(it *item.Item) bool {
	if !n.LooksLike(it) {
		return false
	}
	if n.Length > 0 && it.Promise.Length > 0 && n.Length != it.Promise.Length || !n.LastMod.IsZero() && !it.LastMod.IsZero() && !n.LastMod.Equal(it.LastMod) {
		return false
	}
	if h, err := resourcesync.ParseHashes(n.Hashes); err == nil {
		if equal, known := h.Compare(it.Promise.Hashes); known && !equal {
			return false
		}
	}
	if g, err := rdfres.ParseDigest(n.Graph); n.Graph != "" && err == nil && !it.Promise.Graph.IsZero() {
		return g == it.Promise.Graph
	}
	return true
}

// LooksLike tells of an entry by resource, kind and time alone.
func (n *Newest) LooksLike(it *item.Item) bool {
	return n.Loc == it.Loc && n.Change == it.Change && n.Time.Equal(it.Time)
}

// Dropped is the gap of a source without a change applied in part by an interrupted run.
func (n *Newest) Dropped() error {
	return &GapError{Why: fmt.Sprintf("the source does not tell of a change any more up to which a run was under way that did not end (%s): it was set back, as by restoring a backup, or what told of it is not offered any more", n)}
}

func (n *Newest) String() string {
	if n.Time.IsZero() {
		return fmt.Sprintf("%s %s", clip.Middle(n.Loc), n.Change)
	}
	return fmt.Sprintf("%s %s at %s", clip.Middle(n.Loc), n.Change, Stamp(n.Time))
}

// sighting is a pass's knowledge of the newest change in a list.
type sighting struct {
	seen      bool       // the very change
	other     *item.Item // another change of its number
	backwards *item.Item // a later number with an earlier time
}

func (s *sighting) look(n *Newest, it *item.Item) {
	if n == nil || s.seen {
		return
	}
	switch {
	case n.Is(it) && (n.Sequence == 0 || it.Sequence == 0 || n.Sequence == it.Sequence):
		s.seen = true
	case n.Sequence == 0 || it.Sequence == 0:
	case it.Sequence == n.Sequence && s.other == nil:
		s.other = it
	case it.Sequence > n.Sequence && s.backwards == nil && !it.Time.IsZero() && it.Time.Before(n.Time):
		s.backwards = it
	}
}

// proof is the search for the newest change through the lists of one poll.
type proof struct {
	from    *cursor // the beginning of the poll
	done    bool
	met     bool // by the change itself
	old     bool // the lists are of an archive, and those after it
	earlier bool // a list before it was read

	until  time.Time // the end of the read lists
	begins time.Time // the beginning of the last of them
	open   bool      // one of them has no end

	more  bool   // another list follows, and ends one without an end by its own beginning
	lacks string // the last such list, or a list up to the time of the newest change, with a chance of having had it

	lists   int    // lists looked at
	unknown string // the first of them, if it has only later changes or none and does not tell its beginning
}

// seeks tells whether the newest change is still looked for.
func (p *proof) seeks() bool { return p != nil && p.from.Newest != nil && !p.done }

// knows tells of a list: it was fully applied, and is read again because it is another.
func (p *proof) knows(list string, from time.Time) bool {
	return list == p.from.List && p.from.Closed && p.from.Position > 0 && !from.IsZero() && from.Equal(p.from.Begin)
}

// check looks at the findings in a list, before any of its changes is handed out. A *GapError
// tells of another log than the followed one.
func (p *proof) check(s *changeScan, list string) error {
	n, f := p.from.Newest, s.head.Meta.From
	if f.After(p.begins) {
		p.begins = f
	}
	if n == nil || p.done {
		return nil
	}
	p.lists++
	p.open = p.open || s.head.Meta.Until.IsZero()
	for _, t := range []time.Time{s.head.Meta.Until, s.maxTime} {
		if t.After(p.until) {
			p.until = t
		}
	}
	numbered := n.Sequence > 0 && s.numbered
	switch {
	case s.sight.seen && (!n.Time.IsZero() || numbered || p.inPlace(s, list)):
		p.done, p.met = true, true
		return nil
	case s.sight.other != nil:
		return &GapError{Why: fmt.Sprintf("change %d of the source is now %s, and was %s when it was applied: the source was set back, as by restoring a backup, and went another way", n.Sequence, newestOf(s.sight.other), n)}
	case s.sight.backwards != nil:
		return &GapError{Why: fmt.Sprintf("the source's change %d is of %s, before that of change %d at which we stand (%s): times run backwards, as after restoring a backup", s.sight.backwards.Sequence, Stamp(s.sight.backwards.Time), n.Sequence, Stamp(n.Time))}
	case s.count == 0 || numbered && s.numbers.first > n.Sequence:
		switch {
		case p.earlier:
			return p.lost(n)
		case s.count == 0 && !f.IsZero() && f.Equal(p.from.Begin) && (list == p.from.List || f.Before(n.Time)) && p.from.Position > 0:
			return &GapError{Why: fmt.Sprintf("Change List %s is empty and had the change at which we stand (%s): it was rewritten, or the source was set back", clip.Middle(list), n)}
		case p.lacks != "" || f.IsZero() && p.unknown != "":
		case n.Sequence == 0 && p.lists == 1 && f.IsZero():
			p.unknown = list
		case n.Sequence == 0 && n.Time.IsZero() && (f.IsZero() || p.notBehind(f)):
		case f.IsZero() || f.Equal(p.from.Begin) || !f.Before(n.Time) && !f.After(p.from.stands()):
			p.done = true // it begins right behind the newest change, or is the known list
			return nil
		case f.After(p.from.stands()):
			return &GapError{Why: fmt.Sprintf("the source's Change Lists begin anew at %s, after the change at which we stand (%s)", Stamp(f), n)}
		case s.count > 0 || !s.closed || s.head.Meta.Until.After(n.Time):
			return &GapError{Why: fmt.Sprintf("Change List %s begins before the change at which we stand and does not have it (%s): the source was set back, as by restoring a backup", clip.Middle(list), n)}
		}
		return nil
	case numbered && s.numbers.last < n.Sequence:
		p.earlier = true
		return nil
	case numbered:
		return p.lost(n)
	}
	if n.Time.IsZero() { // only behind a list from the cursor on need it not be
		at, same := p.from.stands(), list == p.from.List && f.Equal(p.from.Begin) || p.notBehind(f)
		p.done = p.lists == 1 && !same && !at.IsZero() && !f.IsZero() && !f.Before(at)
		return nil
	}
	if p.knows(list, f) {
		return &GapError{Why: fmt.Sprintf("Change List %s was at its end, and does not have the change any more at which we stand (%s): it was rewritten, or the source was set back", clip.Middle(list), n)}
	}
	// No numbers: a list over the time of the newest change has it.
	if s.minTime.IsZero() {
		return nil
	}
	if p.lists == 1 && f.IsZero() && !s.minTime.Before(n.Time) {
		p.unknown = list
	}
	begins := s.minTime
	if !f.IsZero() && f.Before(begins) {
		begins = f
	}
	until := s.head.Meta.Until
	endless := until.IsZero() // so are packages of before they told it
	switch {
	case begins.After(n.Time) && p.lacks != "":
		return p.missing(n)
	case s.minTime.Equal(n.Time): // earlier changes are not offered, or they are of another history
		p.lacks = list
	case !begins.Before(n.Time):
	case (endless && p.more || until.Equal(n.Time)) && !s.maxTime.After(n.Time):
		p.lacks = list
	case endless || until.After(n.Time):
		return &GapError{Why: fmt.Sprintf("Change List %s covers the change at which we stand and does not have it (%s): it was rewritten, or the source was set back", clip.Middle(list), n)}
	}
	return nil
}

// stoodIn is the last list with changes as fully applied, with the newest change at its end; nil
// if it is not known.
func (p *proof) stoodIn() *seen {
	if k := p.from.Seen; k != nil && len(k.Tail) > 0 && p.from.Last.URL != "" {
		return k
	}
	return nil
}

// notBehind tells whether a list with this beginning is the newest change's, or an earlier one.
func (p *proof) notBehind(begins time.Time) bool {
	k := p.stoodIn()
	return k != nil && !begins.After(k.Begin)
}

// inPlace tells whether a change that looks like the newest one is it. Neither has a time or number: only the
// changes before them, in their list or in all offered lists, tell them apart.
func (p *proof) inPlace(s *changeScan, list string) bool {
	k, f := p.stoodIn(), s.head.Meta.From
	if k == nil {
		return s.found || !s.closed || !p.knows(list, f)
	}
	if list == k.List && f.Equal(k.Begin) && s.seen.now.First == k.First && s.count < k.All.N {
		return false // it lost entries: a list with each resource once gets one for each loss
	}
	return s.place.is() || s.seen.begins() && !f.IsZero() && f.Equal(k.Begin)
}

func (p *proof) lost(n *Newest) error {
	return &GapError{Why: fmt.Sprintf("change %d of the source, at which we stand (%s), is in no Change List any more, though those around it are: the source was set back, as by restoring a backup", n.Sequence, n)}
}

// missing is for lists that tell no end: the newest change should be in one of them, or in a later list.
func (p *proof) missing(n *Newest) error {
	return &GapError{Why: fmt.Sprintf("neither Change List %s nor those behind it have the change at which we stand (%s): they were rewritten, or the source was set back", clip.Middle(p.lacks), n)}
}

// end tells after the last list: the newest change should have been in one.
func (p *proof) end() error {
	if p == nil || p.done {
		return nil
	}
	if p.from.Newest == nil { // only its last list is known
		if b := p.from.Begin; p.from.Sequence == nil && p.from.Closed && p.begins.Before(b) && !p.begins.IsZero() {
			return &GapError{Why: fmt.Sprintf("the Change List that begins at %s, up to which we stand, is not there any more, and the last one begins at %s: the source was set back, as by restoring a backup", Stamp(b), Stamp(p.begins))}
		}
		return nil
	}
	switch n := p.from.Newest; {
	case p.earlier:
		return &GapError{Why: fmt.Sprintf("the source's changes end before number %d, at which we stand (%s): it was set back, as by restoring a backup", n.Sequence, n)}
	case p.unknown != "":
		return &GapError{Why: fmt.Sprintf("the change at which we stand (%s) is in no Change List any more, and %s does not tell where it begins", n, clip.Middle(p.unknown))}
	case p.lacks != "":
		return p.missing(n)
	case n.Sequence == 0 && n.Time.IsZero():
		return &GapError{Why: fmt.Sprintf("the change at which we stand (%s) is in no Change List any more: they were rewritten, or the source was set back", n)}
	case !p.open && !p.until.IsZero() && p.until.Before(n.Time):
		return &GapError{Why: fmt.Sprintf("the source's changes end at %s, before the one at which we stand (%s): it was set back, or its clock was", Stamp(p.until), n)}
	}
	return nil
}
