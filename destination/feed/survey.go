package feed

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/rsbridge/rsbridge/destination/item"
	"github.com/rsbridge/rsbridge/internal/clip"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// survey is a run's knowledge of the Change Lists of an index with some missing, or without an
// order: which are there, and the times in them.
type survey struct {
	docs   *Documents
	keeper keeper
	of     map[string]surveyed // by address
}

// forget ends a run.
func (sv *survey) forget() { sv.of = nil }

// knows tells whether a list was looked at.
func (sv *survey) knows(list string) bool {
	_, ok := sv.of[list]
	return ok
}

// surveyed is a run's knowledge of a Change List in an index.
type surveyed struct {
	gone       bool
	empty      bool      // nothing in it tells a time, and nothing else either
	begin, end time.Time // of its changes; zero if it does not tell
}

// look looks at Change Lists: their presence and their times.
func (sv *survey) look(ctx context.Context, parts []part) error {
	if sv.of == nil {
		sv.of = map[string]surveyed{}
	}
	seen := addresses(parts)
	for _, p := range parts {
		if _, ok := sv.of[p.URL]; ok {
			continue
		}
		s, err := sv.lookAt(ctx, p, seen)
		if err != nil {
			return err
		}
		sv.of[p.URL] = s
	}
	return nil
}

func (sv *survey) lookAt(ctx context.Context, p part, seen map[string]bool) (s surveyed, err error) {
	dl, r, err := sv.docs.part(ctx, p, seen, resourcesync.ChangeList)
	if IsGone(err) {
		sv.docs.log.Warn("a change list is named and not there", "list", p.URL, "error", err)
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
	err = eachEntry(r, dl.URL, func(e *resourcesync.Entry) error {
		t := item.ChangeTime(r, e)
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

// isMissing tells of a list: this run looked for it, and it is not there.
func (sv *survey) isMissing(list string) bool { return sv.of[list].gone }

// direction tells whether the surveyed lists present are in the order of their times or in the
// reverse order; neither if nothing proves it. Fewer than two prove nothing.
func (sv *survey) direction(parts []part) (rises, falls bool, lists int) {
	rises, falls = true, true
	moves := false
	var last surveyed
	for _, p := range parts {
		s := sv.of[p.URL]
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
func (sv *survey) inOrder(ctx context.Context, dl *Download, parts []part) error {
	if sortParts(parts) || len(parts) < 2 {
		return nil
	}
	if err := sv.look(ctx, parts); err != nil {
		return err
	}
	rises, falls, lists := sv.direction(parts)
	if falls {
		sv.docs.log.Warn("index of Change Lists has the newest first and does not say so; they are read from the oldest on", "lists", len(parts))
		slices.Reverse(parts)
	}
	if lists >= 2 && rises != sv.keeper.Position().at.Rises {
		if err := sv.keeper.Keep(ctx, func(p *Position) { p.at.Rises = rises }); err != nil {
			return err
		}
	}
	dl.untold = !falls && !sv.rise(parts)
	return nil
}

// rise tells whether the lists are proven to be in the order of their times: by their index, by
// their contents, or by those of earlier, more lists.
func (sv *survey) rise(parts []part) bool {
	if _, oldestFirst := byLastmod(parts); oldestFirst || !slices.ContainsFunc(parts, untimed) {
		return true
	}
	rises, _, lists := sv.direction(parts)
	return rises || lists < 2 && sv.keeper.Position().at.Rises
}

// present leaves out the lists known as missing. With strict, missing lists are a *GapError,
// unless they lie before the cursor.
func (sv *survey) present(parts []part, from *cursor, strict bool) ([]part, error) {
	gone := func(p part) bool { return sv.of[p.URL].gone }
	passed := sv.keeper.Position().at.Passed
	var lost []string
	for i := len(parts) - 1; i >= 0; i-- {
		switch {
		case !gone(parts[i]):
		case sv.liesBefore(parts, i, from):
			parts = parts[i+1:] // and so do those before it
			i = 0
		case slices.Contains(passed, parts[i].URL):
		default:
			lost = append(lost, parts[i].URL)
		}
	}
	if len(lost) == 0 || !strict {
		return slices.DeleteFunc(slices.Clone(parts), gone), nil
	}
	slices.Reverse(lost)
	which := fmt.Sprintf("Change List %s is named and not there", clip.Middle(lost[0]))
	if n := len(lost); n > 1 {
		which = fmt.Sprintf("%d Change Lists are named and not there (%s up to %s)", n, clip.Middle(lost[0]), clip.Middle(lost[n-1]))
	}
	return nil, &GapError{Why: which + ", and nothing tells that all their changes are before those that are mirrored", Missing: lost, unread: sv.unread(parts, lost, from), Timed: !slices.ContainsFunc(parts, untimed)}
}

// unread are the lists present with possible changes after the cursor.
func (sv *survey) unread(parts []part, lost []string, from *cursor) (lists []string) {
	for i, p := range parts {
		if p.URL == from.List {
			lists = nil
		}
		if !slices.Contains(lost, p.URL) && !sv.liesBefore(parts, i, from) && (p.URL != from.List || !from.Closed) {
			lists = append(lists, p.URL)
		}
	}
	return lists
}

func untimed(p part) bool { return p.From.IsZero() }

// liesBefore tells whether all changes of a missing list are before the cursor.
func (sv *survey) liesBefore(parts []part, i int, from *cursor) bool {
	end := parts[i].Until
	for _, p := range parts[i+1:] {
		if !end.IsZero() {
			break
		}
		if end = p.From; end.IsZero() {
			end = sv.of[p.URL].begin
		}
	}
	snapshot := end.Before(from.Time) && (from.Had.IsZero() || end.Before(from.Had))
	return !end.IsZero() && i < len(parts)-1 && sv.rise(parts) && (snapshot || end.Before(from.applied()))
}
