package destination

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rsbridge/rsbridge/destination/feed"
	"github.com/rsbridge/rsbridge/destination/fetch"
	"github.com/rsbridge/rsbridge/internal/clip"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// gap is what is told of changes that are lost, "" for none.
func (m *meta) gap() string {
	if m.Gap == "" {
		return m.Missing.Why
	}
	return m.Gap
}

// closeGap is for a list or dump that was taken whole and is where the cursor stands: what was
// lost before it does not matter any more.
func (m *meta) closeGap() {
	m.Gap, m.GapFrom, m.GapSince = "", nil, time.Time{}
	later := m.Cursor.Time.After(m.Missing.At)
	if m.Cursor.Time.IsZero() {
		later = m.Inventory.Mark() != m.Missing.Digest
	}
	if later && m.Missing.Dropped {
		m.Missing = feed.Missing{}
	}
}

const notClosed = "; the source has no newer inventory to close it with"

// miss keeps the lists for which a gap is told.
func (d *Destination) miss(o *feed.Offer, gap *feed.GapError, dl *feed.Download) error {
	return d.saveMeta(func(m *meta) {
		next := feed.Missing{At: d.src.MissedAt(dl), Why: "gap: " + gap.Why + cmp.Or(gap.Then, notClosed), Dropped: m.Missing.Dropped, Digest: m.Inventory.Mark()}
		next.Lists = feed.Bounded(append(slices.Clone(m.Missing.Lists), gap.Missing...))
		next.Root = gap.Root && len(next.Lists) == 1
		if o.Listed() { // else they are read
			next.Unread = feed.Bounded(append(m.unread(), gap.Unread...))
		}
		m.Missing = next
	})
}

// unread are the lists that were not read when a gap was told, and are not in what was taken
// since.
func (m *meta) unread() []string {
	if m.Inventory.At.After(m.Missing.At) {
		return nil
	}
	return slices.Clone(m.Missing.Unread)
}

// unproven is why nothing may be concluded from an inventory: it was taken before a gap that
// is open, or changes after it are in lists that are missing, so that what the mirror has of them
// would be taken for wrong, or what it lacks not be seen.
func unproven(v *feed.Inventory, m *meta) error {
	switch {
	case m.Missing.Why != "":
		return &unprovenError{m.Missing.Why}
	case m.Gap != "" && !v.Stale(&m.Cursor) && v.State.URL == m.Inventory.URL && v.State.Digest == m.Inventory.Digest:
		return &unprovenError{m.Gap}
	case v.Missing != nil:
		return &unprovenError{"gap: " + v.Missing.Error()}
	}
	return nil
}

// unprovenError is why a source that answers does not tell what it has.
type unprovenError struct{ why string }

func (e *unprovenError) Error() string { return e.why }

// setsBack is why a mirror that followed changes may not be made equal to an inventory without
// those after it: that may be of before them.
func setsBack(v *feed.Inventory, m *meta) error {
	c := &m.Cursor
	if v.Missing == nil || m.Source == "" || c.List == "" && c.Ahead == nil && c.Newest == nil || v.At.After(c.Time) && (c.Newest == nil || !c.Newest.Time.IsZero()) {
		return nil
	}
	return fmt.Errorf("%w: %w; nothing was changed (sync without --full goes on; a newer list or dump ends it)", errSetsBack, v.Missing)
}

var errSetsBack = errors.New("the mirror may be later than the Resource List or Dump, and the changes after that cannot be read")

// unlessBack is for a dump, of which the changes after it are read later.
func (d *Destination) unlessBack(ctx context.Context, o *feed.Offer, m *meta) func(*feed.Inventory) (bool, error) {
	return func(v *feed.Inventory) (bool, error) {
		if !o.Followed() || m.Cursor.List == "" {
			return true, nil
		}
		from := v.Cursor()
		err := feed.Again(func() error {
			return feed.MissingOf(o, d.src.EachChange(ctx, o, &from, true, func(feed.Change) error { return nil }))
		})
		var gap *feed.GapError
		if errors.As(err, &gap) && gap.Missing != nil {
			v.Missing = gap
			err = setsBack(v, m)
			return err == nil, err
		}
		return true, nil // others are told when the changes are applied
	}
}

// found is for a pass that met no gap. The lists that are named were read, or lie before the
// cursor, and are missing no more. Those that are not named stay missing, and the cursor is
// behind them. One list with everything since the cursor of before leaves none missing, as when
// the missing one has another address. The root of the changes may be any list, dump or index.
func (d *Destination) found(ctx context.Context, o *feed.Offer, dl *feed.Download, from *feed.Cursor) error {
	m := d.snapshotMeta()
	if len(m.Missing.Lists) == 0 || m.Missing.Dropped || !o.Listed() {
		return nil
	}
	r, err := d.src.Docs.Reader(dl)
	if err != nil {
		return err
	}
	if h := r.Head(); (m.Missing.Root || h.Meta.Capability == resourcesync.ChangeList && !h.Index) && !h.Meta.From.IsZero() && from.Before(h.Meta.From) {
		return d.saveMeta(func(m *meta) { m.Missing = feed.Missing{} })
	}
	named, err := d.src.Named(ctx, o, dl)
	if err != nil {
		return err
	}
	return d.saveMeta(func(m *meta) {
		isNamed := func(l string) bool { return named[l] }
		unread := slices.DeleteFunc(m.unread(), isNamed)
		m.Missing.Lists = feed.Bounded(append(slices.DeleteFunc(slices.Clone(m.Missing.Lists), isNamed), unread...))
		m.Missing.Unread = nil
		if len(m.Missing.Lists) == 0 {
			m.Missing = feed.Missing{}
			return
		}
		if len(unread) > 0 {
			m.Missing.Why = fmt.Sprintf("gap: Change List %s is named no more, and it was not read, since another one was named and not there%s", clip.Middle(unread[0]), notClosed)
		}
		m.Missing.Dropped, m.Missing.At, m.Missing.Digest = true, d.src.MissedAt(dl), m.Inventory.Mark()
	})
}

// returnMissing is for a source without an inventory, of which what came after such lists was applied:
// with one that is back everything is applied again from the first change on.
func (d *Destination) returnMissing(ctx context.Context, r *run, o *feed.Offer, dl *feed.Download) error {
	named, err := d.src.Named(ctx, o, dl)
	if err != nil {
		return err
	}
	var left []string
	lists := d.snapshotMeta().Missing.Lists
	for _, l := range lists {
		if named[l] {
			dl, _, err := d.src.Docs.Document(ctx, fetch.Request{URL: l}, resourcesync.ChangeList)
			if err == nil {
				dl.Close()
				continue
			}
			if !feed.IsGone(err) {
				return err
			}
		}
		left = append(left, l)
	}
	if len(left) == len(lists) {
		return nil
	}
	r.why("Change Lists that were not there are back: everything is applied again from the first change on")
	return d.saveMeta(func(m *meta) {
		m.Cursor, m.Missing.Lists = feed.Cursor{}, left
		if len(left) == 0 {
			m.Missing = feed.Missing{}
		}
	})
}

// stillNamed forgets what is not there and is not named any more.
func (d *Destination) stillNamed(o *feed.Offer) error {
	named := func(a string) bool { return a == o.ResourceList || a == o.ResourceDump }
	absent := d.snapshotMeta().Absent
	kept := slices.DeleteFunc(slices.Clone(absent), func(a string) bool { return !named(a) })
	if len(kept) == len(absent) {
		return nil
	}
	return d.saveMeta(func(m *meta) { m.Absent = kept })
}
