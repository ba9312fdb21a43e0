package feed

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/rsbridge/rsbridge/destination/fetch"
	"github.com/rsbridge/rsbridge/internal/clip"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// An index may name Change Lists not yet, or no more, there: retention took them and left their
// entries, or somebody is just putting them up. If a list behind a missing one begins before the
// cursor, the missing one has nothing to tell and is passed over. Else its changes may be lost: a
// gap. The cursor never goes past it, so a returned list is read as if it had always been there.
// Meanwhile the mirror follows the Resource List. A source without one is followed past the gap,
// and from its first change again when the list is back.

// surveyed is a run's knowledge of a Change List in an index.
type surveyed struct {
	gone       bool
	empty      bool      // nothing in it tells a time, and nothing else either
	begin, end time.Time // of its changes; zero if it does not tell
}

// Missing are Change Lists with a told gap. They stay known after their index has dropped them:
// their changes are not back.
type Missing struct {
	Lists []string  `json:"lists"`
	At    time.Time `json:"at"` // when they were missed last, by the source's clock
	Why   string    `json:"why"`
	Root  bool      `json:"root,omitempty"` // it is the root of the changes, and nothing else

	// Lists there and left unread while the gap is open. Those dropped by the time it is closed
	// are missing too, unless a later inventory was taken.
	Unread []string `json:"unread,omitempty"`

	// Some were dropped at At, and the changes after them applied. The changes of all of them are
	// in a later list or dump, or, if it tells no time, in any without this digest.
	Dropped bool   `json:"dropped,omitempty"`
	Digest  string `json:"digest,omitempty"`
}

// maxMissing bounds how many are kept by name. One without a name stands for the others: it
// never comes back.
const maxMissing = 1000

// Bounded keeps each name once.
func Bounded(names []string) (kept []string) {
	seen := map[string]bool{}
	for _, n := range names {
		if seen[n] {
			continue
		}
		if len(kept) == maxMissing {
			return append(kept, "")
		}
		seen[n], kept = true, append(kept, n)
	}
	return kept
}

// absentError is of a part named and not there.
type absentError struct {
	url string
	err error
}

func (e *absentError) Error() string { return e.err.Error() }
func (e *absentError) Unwrap() error { return e.err }

// IsGone tells a missing thing from an unavailable one.
func IsGone(err error) bool {
	var fe *fetch.Error
	return errors.As(err, &fe) && fe.Gone
}

// errSurveyed ends a pass over Change Lists after finding one missing. Now it is known, and the
// pass is to be made again.
var errSurveyed = errors.New("a Change List is not there")

func Again(pass func() error) error {
	for {
		if err := pass(); !errors.Is(err, errSurveyed) {
			return err
		}
	}
}

// survey looks at Change Lists: their presence and their times.
func (src *Source) survey(ctx context.Context, parts []Part) error {
	if src.surveys == nil {
		src.surveys = map[string]surveyed{}
	}
	seen := addresses(parts)
	for _, p := range parts {
		if _, ok := src.surveys[p.URL]; ok {
			continue
		}
		s, err := src.surveyOne(ctx, p, seen)
		if err != nil {
			return err
		}
		src.surveys[p.URL] = s
	}
	return nil
}

func (src *Source) surveyOne(ctx context.Context, p Part, seen map[string]bool) (s surveyed, err error) {
	dl, r, err := src.Docs.part(ctx, p, seen, resourcesync.ChangeList)
	if IsGone(err) {
		src.Docs.log.Warn("a change list is named and not there", "list", p.URL, "error", err)
		return surveyed{gone: true}, nil
	}
	if err != nil {
		return s, err
	}
	defer dl.Close()
	if r.Head().Index {
		return s, nil
	}
	s.empty, s.begin, s.end = true, r.Head().Meta.From, r.Head().Meta.Until
	begins, ends, untimed := !s.begin.IsZero(), !s.end.IsZero(), false
	err = EachEntry(r, dl.URL, func(e *resourcesync.Entry) error {
		t := changeTime(r, e)
		s.empty, untimed = false, untimed || t.IsZero()
		if !t.IsZero() && !begins && (s.begin.IsZero() || t.Before(s.begin)) {
			s.begin = t
		}
		if !ends && t.After(s.end) {
			s.end = t
		}
		return nil
	})
	if untimed && !begins {
		s.begin = time.Time{}
	}
	s.empty = s.empty && !begins
	return s, err
}

// IsMissing tells of a list: this run looked for it, and it is not there.
func (src *Source) IsMissing(list string) bool { return src.surveys[list].gone }

// direction tells whether the surveyed lists present are in the order of their times or in the
// reverse order; neither if nothing proves it. Fewer than two prove nothing.
func (src *Source) direction(parts []Part) (rises, falls bool, lists int) {
	rises, falls = true, true
	moves := false
	var last surveyed
	for _, p := range parts {
		s := src.surveys[p.URL]
		if s.gone || s.empty {
			continue
		}
		if s.begin.IsZero() {
			return false, false, len(parts)
		}
		if lists++; lists > 1 {
			rises = rises && !s.begin.Before(last.begin) && !s.begin.Before(last.end)
			falls = falls && !s.begin.After(last.begin) && !s.end.After(last.begin)
			moves = moves || !s.begin.Equal(last.begin)
		}
		last = s
	}
	return rises && moves, falls && moves, lists
}

// inOrder puts the lists of an index in the order of their times. It looks for the order in the
// lists if the index does not tell it. An order told by neither is noted of the index.
func (src *Source) inOrder(ctx context.Context, dl *Download, parts []Part) error {
	if SortParts(parts) || len(parts) < 2 {
		return nil
	}
	if err := src.survey(ctx, parts); err != nil {
		return err
	}
	rises, falls, lists := src.direction(parts)
	if falls {
		src.Docs.log.Warn("index of Change Lists has the newest first and does not say so; they are read from the oldest on", "lists", len(parts))
		slices.Reverse(parts)
	}
	if lists >= 2 && rises != src.keeper.Position().Rises {
		if err := src.keeper.Keep(func(m *Position) { m.Rises = rises }); err != nil {
			return err
		}
	}
	dl.untold = !falls && !src.rise(parts)
	return nil
}

// rise tells whether the lists are proven to be in the order of their times: by their index, by
// their contents, or by those of earlier, more lists.
func (src *Source) rise(parts []Part) bool {
	if _, oldestFirst := byLastmod(parts); oldestFirst || !slices.ContainsFunc(parts, untimed) {
		return true
	}
	rises, _, lists := src.direction(parts)
	return rises || lists < 2 && src.keeper.Position().Rises
}

// present leaves out the lists known as missing. With strict, missing lists are a *GapError,
// unless they lie before the cursor.
func (src *Source) present(parts []Part, from *Cursor, strict bool) ([]Part, error) {
	gone := func(p Part) bool { return src.surveys[p.URL].gone }
	var lost []string
	for i := len(parts) - 1; i >= 0; i-- {
		switch {
		case !gone(parts[i]):
		case src.liesBefore(parts, i, from):
			parts = parts[i+1:] // and so do those before it
			i = 0
		default:
			lost = append(lost, parts[i].URL)
		}
	}
	if len(lost) == 0 {
		return parts, nil
	}
	if !strict {
		return slices.DeleteFunc(slices.Clone(parts), gone), nil
	}
	slices.Reverse(lost)
	which := fmt.Sprintf("Change List %s is named and not there", clip.Middle(lost[0]))
	if n := len(lost); n > 1 {
		which = fmt.Sprintf("%d Change Lists are named and not there (%s up to %s)", n, clip.Middle(lost[0]), clip.Middle(lost[n-1]))
	}
	return nil, &GapError{Why: which + ", and nothing tells that all their changes are before those that are mirrored", Missing: lost, Unread: src.unread(parts, lost, from), Timed: !slices.ContainsFunc(parts, untimed)}
}

// unread are the lists present with possible changes after the cursor.
func (src *Source) unread(parts []Part, lost []string, from *Cursor) (lists []string) {
	for i, p := range parts {
		if p.URL == from.List {
			lists = nil
		}
		if !slices.Contains(lost, p.URL) && !src.liesBefore(parts, i, from) && (p.URL != from.List || !from.Closed) {
			lists = append(lists, p.URL)
		}
	}
	return lists
}

// MissingOf makes a gap of a missing Change List, or package of a Change Dump, for an inventory
// to close.
func MissingOf(o *Offer, err error) error {
	address, kind := o.Changes()
	var absent *absentError
	if !o.Listed() || !errors.As(err, &absent) {
		return err
	}
	switch {
	case absent.url == address:
		by := resourcesync.ResourceList
		if o.ResourceList == "" {
			by = resourcesync.ResourceDump
		}
		return &GapError{Why: fmt.Sprintf("%s %s is named and not there", KindName(kind), clip.Middle(address)), Missing: []string{address}, Root: true,
			Then: fmt.Sprintf("; the mirror follows the %s until it is back", KindName(by))}
	case kind == resourcesync.ChangeDump:
		return &GapError{Why: fmt.Sprintf("%s of the Change Dump is named and not there", clip.Middle(absent.url)), Missing: []string{absent.url}}
	}
	return err
}

// ChangesRoot opens the first document of the changes.
func (src *Source) ChangesRoot(ctx context.Context, r fetch.Request, kind resourcesync.Capability) (*Download, *resourcesync.Reader, error) {
	dl, rd, err := src.Docs.Document(ctx, r, kind)
	switch {
	case IsGone(err):
		err = &absentError{r.URL, fmt.Errorf("%s: %w", KindName(kind), err)}
	case err != nil:
		err = fmt.Errorf("%s: %w", KindName(kind), err)
	}
	return dl, rd, err
}

// noteThere keeps whether a requested list or dump is there.
func (src *Source) noteThere(address string, err error) error {
	absent := src.keeper.Position().Absent
	switch known := slices.Contains(absent, address); {
	case IsGone(err) && !known:
		absent = append(slices.Clone(absent), address)
	case err == nil && known:
		absent = slices.DeleteFunc(slices.Clone(absent), func(a string) bool { return a == address })
	default:
		return nil
	}
	return src.keeper.Keep(func(m *Position) { m.Absent = absent })
}

func untimed(p Part) bool { return p.From.IsZero() }

// liesBefore tells whether all changes of a missing list are before the cursor.
func (src *Source) liesBefore(parts []Part, i int, from *Cursor) bool {
	end := parts[i].Until
	for _, p := range parts[i+1:] {
		if !end.IsZero() {
			break
		}
		if end = p.From; end.IsZero() {
			end = src.surveys[p.URL].begin
		}
	}
	snapshot := end.Before(from.Time) && (from.Had.IsZero() || end.Before(from.Had))
	return !end.IsZero() && i < len(parts)-1 && src.rise(parts) && (snapshot || end.Before(from.Applied()))
}

// MissedAt is when an index was as it is; servers tell whole seconds.
func (src *Source) MissedAt(dl *Download) time.Time {
	if dl == nil { // there is none
		return src.Docs.opt.Now().Add(time.Second)
	}
	age, _ := strconv.Atoi(dl.Header.Get("Age"))
	return fetch.ServedAt(dl.Header, src.Docs.opt.Now()).Add(time.Duration(max(0, age)+1) * time.Second)
}

// Named are the root of the changes and the documents named by it.
func (src *Source) Named(ctx context.Context, o *Offer, dl *Download) (map[string]bool, error) {
	r, err := src.Docs.Reader(dl)
	if err != nil {
		return nil, err
	}
	var parts []Part
	var indexed []string
	address, kind := o.Changes()
	if kind == resourcesync.ChangeDump {
		var c *ChangePackages
		if c, err = src.Docs.ListPackages(ctx, dl, r); err == nil {
			parts, indexed = c.Parts(), c.indexed
		}
	} else {
		parts, err = src.Docs.Parts(ctx, dl, r, resourcesync.ChangeList)
	}
	names := addresses(parts)
	for _, a := range append(indexed, address) {
		names[a] = true
	}
	return names, err
}
