package destination

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rsbridge/rsbridge/resourcesync"
)

// An index may name Change Lists that are not there: retention took them and left their
// entries, or somebody is just putting them up. One that lies before the cursor has
// nothing to tell, and a list behind it shows that by where it begins. Else its changes
// may be lost, which is a gap as any other. It is remembered, so that it is no new gap in
// the next poll: a list or dump that is of a time at which it was missed already, behind
// which others are, has its changes. Should it be back, it is read from where we stood.

// absent is a Change List that is remembered as one that its index names and that is not
// there.
type absent struct {
	URL      string    `json:"url"`
	Seen     time.Time `json:"seen,omitzero"`      // when it was first missed with another list behind it, by the source's clock: it has no later changes
	Since    time.Time `json:"since,omitzero"`     // where we stood: its later changes are not applied
	Sequence *uint64   `json:"sequence,omitempty"` // likewise
	Covered  bool      `json:"covered,omitempty"`  // its changes are in what was taken since, though no times tell so
	Untimed  bool      `json:"untimed,omitempty"`  // lists before it have changes without times: what it changed again, they would set back
	Open     bool      `json:"open,omitempty"`     // the gap that is told is for its sake
}

// maxAbsent bounds how many are remembered. Those before them lie before them.
const maxAbsent = 1000

// missed is a Change List that a pass over an index did not find.
type missed struct {
	url      string
	followed bool // another list is behind it
	untimed  bool // changes without times are before it
}

// passed tells that all changes of the list are before a cursor.
func (a *absent) passed(from *cursor) bool {
	return a.Covered || !a.Seen.IsZero() && (from.Time.IsZero() || !from.applied().Before(a.Seen))
}

// isGone tells an answer that a thing is not there from one that it cannot be had now.
func isGone(err error) bool {
	var fe *fetchError
	return errors.As(err, &fe) && fe.Gone
}

func (m *meta) absentAt(url string) *absent {
	if i := slices.IndexFunc(m.Absent, func(a absent) bool { return a.URL == url }); i >= 0 {
		return &m.Absent[i]
	}
	return nil
}

// take is for a list or dump that was taken whole: the mirror is of its time.
func (m *meta) take(v *inventory) {
	m.Cursor = v.cursor()
	m.Absent = slices.Clone(m.Absent)
	for i := range m.Absent {
		a := &m.Absent[i]
		a.Since, a.Sequence, a.Open = m.Cursor.Time, m.Cursor.Sequence, false
		a.Covered = !a.Seen.IsZero() && m.Cursor.Time.IsZero() // it tells no time: it is of now
	}
}

// bridged is for what archives had of them.
func (m *meta) bridged() {
	m.Absent = slices.Clone(m.Absent)
	for i := range m.Absent {
		a := &m.Absent[i]
		a.Since, a.Sequence, a.Covered = m.Cursor.applied(), m.Cursor.Sequence, !a.Seen.IsZero()
	}
}

// remember keeps the lists that a pass has missed. open tells that a gap is told for their sake.
func (m *meta) remember(all []missed, seen time.Time, open bool) {
	var out []absent
	for _, x := range all[max(0, len(all)-maxAbsent):] {
		a := absent{URL: x.url, Since: m.Cursor.applied(), Sequence: m.Cursor.Sequence}
		if was := m.absentAt(x.url); was != nil {
			a = *was
		}
		if a.Untimed = a.Untimed || x.untimed; x.followed && a.Seen.IsZero() {
			a.Seen = seen
		}
		a.Open = a.Open || open
		out = append(out, a)
	}
	m.Absent = out
}

// forget drops those that a pass without a gap did not miss any more, and with the last of
// those for whose sake a gap was told, the gap.
func (m *meta) forget(all []missed) {
	m.Absent = slices.DeleteFunc(slices.Clone(m.Absent), func(a absent) bool {
		return !slices.ContainsFunc(all, func(x missed) bool { return x.url == a.URL })
	})
	if m.GapAbsent && !slices.ContainsFunc(m.Absent, func(a absent) bool { return a.Open }) {
		m.Gap, m.GapAbsent = "", false
	}
}

// missedOf finds all that an index names and that are not there.
func (d *Destination) missedOf(ctx context.Context, dl *download) ([]missed, error) {
	r, err := d.reader(dl)
	if err != nil {
		return nil, err
	}
	var all []missed
	err = d.eachChangeOf(ctx, dl, r, &cursor{missed: &all}, false, func(change) error { return nil })
	return all, err
}

// noteMissing remembers them before a gap is closed that is for their sake.
func (d *Destination) noteMissing(ctx context.Context, dl *download) error {
	all, err := d.missedOf(ctx, dl)
	if err != nil {
		return err
	}
	return d.saveMeta(func(m *meta) { m.remember(all, dl.missedAt(d.opt.Now()), false) })
}

// missedAt is a time at which what a list named was there or not: its server tells whole seconds.
func (d *download) missedAt(now time.Time) time.Time {
	return servedAt(d.header, now).Add(time.Second)
}

// stillAbsent tells whether none of the lists is back that are remembered.
func (d *Destination) stillAbsent(ctx context.Context) (bool, error) {
	for _, a := range d.snapshotMeta().Absent {
		dl, _, err := d.document(ctx, request{url: a.URL}, resourcesync.ChangeList)
		switch {
		case err == nil:
			return false, dl.Close()
		case !isGone(err):
			return false, err
		}
	}
	return true, nil
}

// behindUntimed leaves out what is before a list that is remembered, as far as no times
// tell that it lies before the cursor.
func (d *Destination) behindUntimed(ctx context.Context, parts []part, from *cursor) ([]part, error) {
	m := d.snapshotMeta()
	for i := len(parts) - 2; i >= 0; i-- {
		a := m.absentAt(parts[i].url)
		if a == nil || !a.Untimed || a.Open || !a.passed(from) {
			continue
		}
		dl, _, err := d.document(ctx, request{url: a.URL}, resourcesync.ChangeList)
		switch {
		case isGone(err):
			return parts[i:], nil
		case err != nil:
			return nil, err
		}
		if err := dl.Close(); err != nil {
			return nil, err
		}
	}
	return parts, nil
}

// back makes a list be read from where we stood when it was missed, and those behind it.
func (c *cursor) back(a *absent) {
	if a.Since.IsZero() && a.Sequence == nil {
		c.anew = true
		return
	}
	if c.since.IsZero() || a.Since.Before(c.since) {
		c.since = a.Since
	}
	if c.again.IsZero() || a.Since.Before(c.again) {
		c.again = a.Since
	}
	if s := a.Sequence; s != nil && c.Sequence != nil && *s < *c.Sequence {
		n := *s
		c.Sequence = &n
	}
}

// behind looks at the lists that are not there before one that is, before any of its changes is
// handed out. The last of them says it of all.
func (p *proof) behind(s *changeScan, from *cursor, m *meta) error {
	falls := !p.began.IsZero() && !s.minTime.IsZero() && s.minTime.Before(p.began)
	if p.trusted != "" && falls { // the order is another one than it seemed
		return &gapError{why: fmt.Sprintf("Change List %s is not there, though it is named, and the lists are in no order that tells where it lies", shorten(p.trusted)), absent: true}
	}
	p.falls = falls && (p.read < 2 || p.falls)
	p.read++
	if !s.minTime.IsZero() {
		p.began = s.minTime
	}
	gone, reached := p.gone, p.reached
	p.gone, p.reached = nil, time.Time{}
	if s.closed {
		p.reached = s.head.Meta.Until
	}
	if len(gone) == 0 {
		return nil
	}
	last := gone[len(gone)-1]
	f, n, at := s.head.Meta.From, p.from.Newest, from.applied()
	if a := m.absentAt(last.url); a != nil && a.passed(p.from) {
		return nil
	}
	if !last.untimed {
		switch {
		case s.numbered && from.Sequence != nil && s.firstSeq <= *from.Sequence+1,
			s.sight.seen && !n.Time.IsZero(),
			!f.IsZero() && !p.from.Time.IsZero() && !f.After(at),
			!f.IsZero() && !f.After(reached):
			return nil
		case !s.minTime.IsZero() && s.minTime.Before(at) && !falls:
			p.trusted = last.url
			return nil
		}
	}
	return p.absent(gone, "")
}

// absent is the gap of lists that are not there.
func (p *proof) absent(gone []missed, and string) error {
	which := fmt.Sprintf("Change List %s is named and not there", shorten(gone[0].url))
	if n := len(gone); n > 1 {
		which = fmt.Sprintf("%d Change Lists are named and not there (%s up to %s)", n, shorten(gone[0].url), shorten(gone[n-1].url))
	}
	if and == "" {
		and = "; nothing tells that all changes were before those that are mirrored"
	}
	return &gapError{why: which + and, absent: true}
}

// endless is behind after the last list: an index of the newest first may lack the oldest.
func (p *proof) endless() error {
	if len(p.gone) == 0 || p.falls && p.began.Before(p.from.applied()) {
		return nil
	}
	return p.absent(p.gone, ", and no other is behind it: later changes may be in it")
}
