package feed

import (
	"cmp"
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

// An index may name Change Lists that are not there: retention took them and left their entries, or somebody is
// just writing them.
//
//   - If a list behind a missing one begins before the cursor, all changes of the missing one are applied. It is
//     passed over.
//   - Otherwise its changes may be lost: a gap. The cursor stays before it, so a returned list is read as if it
//     had always been there. Meanwhile the mirror follows the Resource List.
//   - A source without a Resource List is followed past the gap. When the list is back, everything is read again
//     from its first change on.

// missing are Change Lists of a reported gap. They stay known after their index has dropped them: their changes
// are still lost.
type missing struct {
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

	// Former were dropped before these were missed, which may be back any time.
	Former *missing `json:"former,omitempty"`
}

// all are the lists of both.
func (m *missing) all() []string {
	if m.Former == nil {
		return m.Lists
	}
	return slices.Concat(m.Former.Lists, m.Lists)
}

// former is what stays once these are back.
func (m *missing) former() missing {
	if m.Former == nil {
		return missing{}
	}
	return *m.Former
}

// maxMissing bounds how many are kept by name. One without a name stands for the others: it
// never comes back.
const maxMissing = 1000

// bounded keeps each name once.
func bounded(names []string) (kept []string) {
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

// Again makes a pass over changes, and makes it anew each time it finds out that a Change List is not
// there.
func Again(pass func() error) error {
	for {
		if err := pass(); !errors.Is(err, errSurveyed) {
			return err
		}
	}
}

// missingOf makes a [*GapError] of the error of a Change List, or package of a Change Dump, that is not
// there. A Resource List or Dump can close the gap; without one the error stays as it is.
func missingOf(o *Offer, err error) error {
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
		return &GapError{Why: fmt.Sprintf("%s %s is named and not there", KindName(kind), clip.Middle(address)), Missing: []string{address}, root: true,
			then: fmt.Sprintf("; the mirror follows the %s until it is back", KindName(by))}
	case kind == resourcesync.ChangeDump:
		return &GapError{Why: fmt.Sprintf("%s of the Change Dump is named and not there", clip.Middle(absent.url)), Missing: []string{absent.url}}
	}
	return err
}

// changesRoot opens the first document of the changes.
func (src *Source) changesRoot(ctx context.Context, r fetch.Request, kind resourcesync.Capability) (*Download, *resourcesync.Reader, error) {
	dl, rd, err := src.Docs.document(ctx, r, kind)
	switch {
	case IsGone(err):
		err = &absentError{r.URL, fmt.Errorf("%s: %w", KindName(kind), err)}
	case err != nil:
		err = fmt.Errorf("%s: %w", KindName(kind), err)
	}
	return dl, rd, err
}

// noteThere keeps whether a requested list or dump is there.
func (src *Source) noteThere(ctx context.Context, address string, err error) error {
	absent := src.keeper.Position().at.Absent
	switch known := slices.Contains(absent, address); {
	case IsGone(err) && !known:
		absent = append(slices.Clone(absent), address)
	case err == nil && known:
		absent = slices.DeleteFunc(slices.Clone(absent), func(a string) bool { return a == address })
	default:
		return nil
	}
	return src.keeper.Keep(ctx, func(p *Position) { p.at.Absent = absent })
}

// missedAt is the time of the index, by the source's clock: servers tell whole seconds, so the next one.
func (poll *Poll) missedAt() time.Time {
	src, dl := poll.src, poll.root
	if dl == nil { // there is none
		return src.Docs.opt.Now().Add(time.Second)
	}
	age, _ := strconv.Atoi(dl.Header.Get("Age"))
	return fetch.ServedAt(dl.Header, src.Docs.opt.Now()).Add(time.Duration(max(0, age)+1) * time.Second)
}

// chained tells whether Change Lists have everything since a cursor: each ends where the next one begins, and the
// last one is open.
func chained(parts []part, from *Cursor) bool {
	for i := len(parts) - 1; i >= 0; i-- {
		last := i == len(parts)-1
		switch {
		case parts[i].From.IsZero(), last != parts[i].Until.IsZero(), !last && !parts[i].Until.Equal(parts[i+1].From):
			return false
		case from.at.before(parts[i].From):
			return true
		}
	}
	return false
}

// named are the root of the changes and the documents named by it, and its Change Lists.
func (src *Source) named(ctx context.Context, o *Offer, dl *Download) (names map[string]bool, parts []part, err error) {
	r, err := src.Docs.reader(dl)
	if err != nil {
		return nil, nil, err
	}
	var indexed []string
	address, kind := o.Changes()
	if kind == resourcesync.ChangeDump {
		var c *ChangePackages
		if c, err = src.Docs.listPackages(ctx, dl, r); err == nil {
			parts, indexed = c.parts(), c.indexed
		}
	} else {
		parts, err = src.Docs.parts(ctx, dl, r, resourcesync.ChangeList)
	}
	names = addresses(parts)
	for _, a := range append(indexed, address) {
		names[a] = true
	}
	if len(indexed) > 0 {
		parts = nil
	}
	return names, parts, err
}

// NotClosed ends the message of a gap without a newer inventory.
const NotClosed = "; the source has no newer inventory to close it with"

// Told is what is told of a gap that stays open.
func (e *GapError) Told() string { return "gap: " + e.Why + cmp.Or(e.then, NotClosed) }

// Ends gives the message another end.
func (e *GapError) Ends(then string) { e.then = then }

// Miss keeps the missing lists of a gap.
func (poll *Poll) Miss(ctx context.Context, gap *GapError) error {
	return poll.src.keeper.Keep(ctx, func(p *Position) {
		was := p.at.Missing
		next := missing{At: poll.missedAt(), Why: gap.Told(), Digest: p.at.Inventory.mark(), Former: was.Former}
		if was.Dropped && len(was.Lists) > 0 {
			next.Former, next.Lists = &was, bounded(gap.Missing)
		} else {
			next.Lists = bounded(append(slices.Clone(was.Lists), gap.Missing...))
		}
		next.Root = gap.root && len(next.Lists) == 1
		if poll.offer.Listed() { // else they are read
			next.Unread = bounded(append(p.unread(), gap.unread...))
		}
		p.at.Missing = next
	})
}

// unread are the lists left unread beside a gap, and not in a later inventory.
func (p *Position) unread() []string {
	if p.at.Inventory.At.After(p.at.Missing.At) {
		return nil
	}
	return slices.Clone(p.at.Missing.Unread)
}

// CloseMissing is for a list or dump taken whole, with the cursor behind it: earlier losses do
// not matter any more.
func (p *Position) CloseMissing() {
	has := func(m *missing) bool {
		if p.at.Cursor.at.Time.IsZero() {
			return p.at.Inventory.mark() != m.Digest
		}
		return p.at.Cursor.at.Time.After(m.At)
	}
	m := &p.at.Missing
	if m.Former != nil && has(m.Former) {
		m.Former = nil
	}
	if m.Dropped && has(m) {
		*m = missing{}
	}
}

// Found is for a pass without a gap. Lists that the index names were read, or lie before the cursor: they are
// missing no more. Lists that it does not name stay missing, and the cursor is behind them. Nothing is missing if
// the lists have everything since the former cursor: the missing list has another address now, or a wrong index
// named it.
func (poll *Poll) Found(ctx context.Context, from *Cursor) error {
	src, o := poll.src, poll.offer
	at := src.keeper.Position()
	if len(at.at.Missing.Lists) == 0 || at.at.Missing.Dropped || !o.Listed() {
		return nil
	}
	r, err := src.Docs.reader(poll.root)
	if err != nil {
		return err
	}
	if h := r.Head(); (at.at.Missing.Root || h.Meta.Capability == resourcesync.ChangeList && !h.Index) && !h.Meta.From.IsZero() && from.at.before(h.Meta.From) {
		return src.keeper.Keep(ctx, func(p *Position) { p.at.Missing = p.at.Missing.former() })
	}
	named, parts, err := src.named(ctx, poll.offer, poll.root)
	if err != nil {
		return err
	}
	if chained(parts, from) {
		return src.keeper.Keep(ctx, func(p *Position) { p.at.Missing = p.at.Missing.former() })
	}
	return src.keeper.Keep(ctx, func(p *Position) {
		isNamed := func(l string) bool { return named[l] }
		unread := slices.DeleteFunc(p.unread(), isNamed)
		p.at.Missing.Lists = bounded(append(slices.DeleteFunc(slices.Clone(p.at.Missing.Lists), isNamed), unread...))
		p.at.Missing.Unread = nil
		if len(p.at.Missing.Lists) == 0 {
			p.at.Missing = p.at.Missing.former()
			return
		}
		if len(unread) > 0 {
			p.at.Missing.Why = fmt.Sprintf("gap: Change List %s is named no more, and it was not read, since another one was named and not there%s", clip.Middle(unread[0]), NotClosed)
		}
		p.at.Missing.At, p.at.Missing.Digest = poll.missedAt(), p.at.Inventory.mark()
		p.DropMissing()
	})
}

// Returned is for a source without an inventory: the changes after missing lists were applied.
// With one of the lists back, everything is applied again from the first change on.
func (poll *Poll) Returned(ctx context.Context) (some bool, err error) {
	src := poll.src
	named, _, err := src.named(ctx, poll.offer, poll.root)
	if err != nil {
		return false, err
	}
	var left []string
	lacks := src.keeper.Position().at.Missing
	lists := lacks.all()
	for _, l := range lists {
		if named[l] {
			dl, _, err := src.Docs.document(ctx, fetch.Request{URL: l}, resourcesync.ChangeList)
			if err == nil {
				dl.Close()
				continue
			}
			if !IsGone(err) {
				return false, err
			}
		}
		left = append(left, l)
	}
	if len(left) == len(lists) {
		return false, nil
	}
	return true, src.keeper.Keep(ctx, func(p *Position) {
		p.at.Cursor, p.at.Missing.Lists, p.at.Missing.Former = Cursor{}, left, nil
		if len(left) == 0 {
			p.at.Missing = missing{}
		}
	})
}

// StillNamed forgets missing lists and dumps no more named.
func (src *Source) StillNamed(ctx context.Context, o *Offer) error {
	named := func(a string) bool { return a == o.ResourceList || a == o.ResourceDump }
	absent := src.keeper.Position().at.Absent
	kept := slices.DeleteFunc(slices.Clone(absent), func(a string) bool { return !named(a) })
	if len(kept) == len(absent) {
		return nil
	}
	return src.keeper.Keep(ctx, func(p *Position) { p.at.Absent = kept })
}
