package check

import (
	"hash/maphash"
	"strconv"
	"time"

	"github.com/rsbridge/rsbridge/resourcesync"
)

// This file checks entries against each other: rules 68, 80, 84 to 86, 89, 90,
// 94, 104, 113, 115, 126.

// sequenceState holds each entry against the entries before it.
type sequenceState struct {
	report       *report
	capabilities map[string]int // line of each, in a capabilitylist
	packageType  string

	last     time.Time // of the entries so far: change time, or begin of the interval
	lastLine int
	until    time.Time // of the entry before
	number   uint64    // the highest rsb:sequence of the changes so far
	numbered int       // its line, 0 for none
	change   string    // its kind
	openLine int       // of an entry without until
	any      bool

	locs, paths hashSet
}

// hashSet remembers short facts by 64-bit hashes of strings, up to a bound.
type hashSet struct {
	seed maphash.Seed
	m    map[uint64]uint8
	full bool
}

const maxRemembered = 1_000_000

func (h *hashSet) key(s string) uint64 {
	if h.m == nil {
		h.seed = maphash.MakeSeed()
		h.m = map[uint64]uint8{}
	}
	return maphash.String(h.seed, s)
}

// swap sets the fact of s and gives the one before; there is none when ok is false.
func (h *hashSet) swap(s string, fact uint8) (before uint8, ok bool) {
	k := h.key(s)
	before, ok = h.m[k]
	if !ok && len(h.m) >= maxRemembered {
		h.full = true
		return 0, false
	}
	h.m[k] = fact
	return before, ok
}

func (v *validator) sequence(e *resourcesync.Entry) {
	c := v.head.Meta.Capability
	if v.head.Index {
		if c == resourcesync.ChangeList || c == resourcesync.ChangeDump {
			v.seq.partInOrder(e)
		}
		return
	}
	switch c {
	case resourcesync.ResourceList:
		if _, twice := v.seq.locs.swap(e.Loc, 0); twice && e.Loc != "" {
			v.report.add(68, SeverityWarning, e.Line, "the resource %s stands in the list twice", clip(e.Loc))
		}
	case resourcesync.ChangeList, resourcesync.ChangeDumpManifest, resourcesync.ChangeNotification:
		v.seq.changeInOrder(e)
		v.seq.numberInOrder(e, c == resourcesync.ChangeList)
		v.seq.plausible(e)
	case resourcesync.ChangeDump:
		t := e.Meta.From
		if t.IsZero() {
			t = e.LastMod
		}
		v.seq.notBefore(85, SeverityWarning, e, t, "package")
	case resourcesync.ChangeListArchive, resourcesync.ChangeDumpArchive:
		v.seq.archiveInOrder(e)
	}
	if c.Manifest() && e.Meta.Path != "" {
		if _, twice := v.seq.paths.swap(e.Meta.Path, 0); twice {
			v.report.add(80, SeverityInfo, e.Line, "the path %q is used twice", clip(e.Meta.Path))
		}
	}
	if c == resourcesync.ResourceList || c.Manifest() || c == resourcesync.ChangeList {
		v.pairs.note(e)
	}
}

// notBefore reports an entry with a time before that of an entry above it.
func (s *sequenceState) notBefore(rule int, severity string, e *resourcesync.Entry, t time.Time, what string) {
	if t.IsZero() {
		return
	}
	if t.Before(s.last) {
		s.report.add(rule, severity, e.Line, "the %s %s of %s stands after that of %s in line %d; want the order of time",
			what, clip(e.Loc), resourcesync.FormatTime(t), resourcesync.FormatTime(s.last), s.lastLine)
		return
	}
	s.last, s.lastLine = t, e.Line
}

func (s *sequenceState) changeInOrder(e *resourcesync.Entry) {
	s.notBefore(84, SeverityError, e, e.Meta.DateTime, "change of")
}

// numberInOrder is rule 126. Change Lists have every change, other documents some.
func (s *sequenceState) numberInOrder(e *resourcesync.Entry, all bool) {
	text, ok := e.Meta.Ext[resourcesync.ExtSequence]
	if !ok {
		return
	}
	n, err := strconv.ParseUint(text, 10, 64)
	switch {
	case err != nil:
		s.report.add(126, SeverityWarning, e.Line, "rsb:sequence %q is no number", clip(text))
		return
	case s.numbered == 0:
	case n == s.number && moves(s.change, e.Meta.Change): // one change
	case n == s.number:
		s.report.add(126, SeverityWarning, e.Line, "change %d of %s has the number of that in line %d", n, clip(e.Loc), s.numbered)
	case n < s.number:
		s.report.add(126, SeverityWarning, e.Line, "change %d of %s stands after change %d in line %d", n, clip(e.Loc), s.number, s.numbered)
		return
	case n > s.number+1 && all:
		s.report.add(126, SeverityWarning, e.Line, "change %d of %s follows change %d in line %d, and none is told of between: mirrors see a gap", n, clip(e.Loc), s.number, s.numbered)
	}
	s.number, s.numbered, s.change = n, e.Line, e.Meta.Change
}

// moves tells of the entries of one change by which a resource has another address: it has another
// extension in another format.
func moves(a, b string) bool {
	return a == "deleted" && b == "created" || a == "created" && b == "deleted"
}

// partInOrder checks the entries in an index of change documents.
func (s *sequenceState) partInOrder(e *resourcesync.Entry) {
	s.notBefore(86, SeverityError, e, e.Meta.From, "part")
	if s.openLine > 0 {
		s.report.add(89, SeverityInfo, e.Line, "the part in line %d is open (no until) and not the last one", s.openLine)
		s.openLine = 0
	}
	s.adjoins(90, e)
	if e.Meta.Until.IsZero() && !e.Meta.From.IsZero() {
		s.openLine = e.Line
	}
}

// adjoins checks that an interval begins at the end of the one before.
func (s *sequenceState) adjoins(rule int, e *resourcesync.Entry) {
	if from := e.Meta.From; s.any && !from.IsZero() && !s.until.IsZero() && !from.Equal(s.until) {
		what := "a gap"
		if from.Before(s.until) {
			what = "an overlap"
		}
		s.report.add(rule, SeverityWarning, e.Line, "%s: %s begins at %s, the one before ended at %s", what, clip(e.Loc), resourcesync.FormatTime(from), resourcesync.FormatTime(s.until))
	}
	s.any, s.until = true, e.Meta.Until
}

func (s *sequenceState) archiveInOrder(e *resourcesync.Entry) {
	t := e.Meta.From
	if t.IsZero() {
		t = e.Meta.Until
	}
	s.notBefore(113, SeverityError, e, t, "document")
	if s.any && !s.until.IsZero() && e.Meta.From.After(s.until) {
		s.report.add(115, SeverityWarning, e.Line, "a gap: %s begins at %s, the one before ended at %s", clip(e.Loc), resourcesync.FormatTime(e.Meta.From), resourcesync.FormatTime(s.until))
	}
	s.any, s.until = true, e.Meta.Until
}

// plausible is rule 94.
func (s *sequenceState) plausible(e *resourcesync.Entry) {
	code := changeCode(e.Meta.Change)
	if code == 0 || e.Loc == "" {
		return
	}
	before, ok := s.locs.swap(e.Loc, code)
	if !ok {
		return
	}
	was := [...]string{"", resourcesync.Created, resourcesync.Updated, resourcesync.Deleted}[before]
	gone := before == 3
	if gone != (code == 1) {
		s.report.add(94, SeverityInfo, e.Line, "%s is %s after it was %s", clip(e.Loc), e.Meta.Change, was)
	}
}

func changeCode(change string) uint8 {
	switch change {
	case resourcesync.Created:
		return 1
	case resourcesync.Updated:
		return 2
	case resourcesync.Deleted:
		return 3
	}
	return 0
}

// pairState watches describedby and describes, for links back.
type pairState struct {
	seed maphash.Seed
	locs map[uint64]struct{}
	says map[[3]uint64]int // relation, from, to: line
	full bool
}

const maxPairs = 200_000

func (p *pairState) note(e *resourcesync.Entry) {
	if p.locs == nil {
		p.seed = maphash.MakeSeed()
		p.locs = map[uint64]struct{}{}
		p.says = map[[3]uint64]int{}
	}
	if len(p.locs) >= maxRemembered || len(p.says) >= maxPairs {
		p.full = true
		return
	}
	from := maphash.String(p.seed, e.Loc)
	p.locs[from] = struct{}{}
	for i := range e.Links {
		l := &e.Links[i]
		relation := uint64(0)
		switch l.Rel {
		case resourcesync.RelDescribedBy:
			relation = 1
		case resourcesync.RelDescribes:
			relation = 2
		default:
			continue
		}
		p.says[[3]uint64{relation, from, maphash.String(p.seed, l.Href)}] = e.Line
	}
}

// endOfEntries reports on rules about all entries.
func (v *validator) endOfEntries() {
	if v.seq.locs.full || v.seq.paths.full {
		rule := 68
		if v.head.Meta.Capability.Changes() {
			rule = 94
		}
		v.report.add(rule, SeverityInfo, 0, "resources that stand twice were looked for among the first %d entries only", maxRemembered)
	}
	first := 0
	missing := 0
	for fact, line := range v.pairs.says {
		if _, listed := v.pairs.locs[fact[2]]; !listed {
			continue
		}
		if _, back := v.pairs.says[[3]uint64{3 - fact[0], fact[2], fact[1]}]; back {
			continue
		}
		missing++
		if first == 0 || line < first {
			first = line
		}
	}
	if missing > 0 {
		v.report.add(104, SeverityInfo, first, "%d links describedby or describes have no link back from the entry they lead to; this is the first", missing)
	}
}
