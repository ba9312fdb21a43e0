package destination

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/rsbridge/rsbridge/destination/feed"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// bridgeGap applies what archives, or a Change Dump, have between the cursor and
// the lists that are offered now. It tells whether the gap is closed; if not,
// nothing is changed but what they had in order.
func (d *Destination) bridgeGap(ctx context.Context, r *run, o *feed.Offer, dl *feed.Download) (bool, error) {
	from := d.snapshotMeta().Cursor
	if from.Time.IsZero() {
		return false, nil
	}
	rd, err := d.src.Docs.Reader(dl)
	if err != nil {
		return false, err
	}
	head := *rd.Head()
	address, kind := o.Changes()
	var current []feed.Part
	if kind == resourcesync.ChangeDump {
		c, err := d.src.Docs.ListPackages(ctx, dl, rd)
		if err != nil {
			return false, err
		}
		current = c.Parts()
	} else if current, err = d.src.Docs.Parts(ctx, dl, rd, kind); err != nil {
		return false, err
	}
	feed.SortParts(current)
	type way struct {
		name  string
		parts func() ([]feed.Part, error)
	}
	var ways []way
	if a := feed.ArchiveOf(o.ChangeArchive, &head); a != "" && kind == resourcesync.ChangeList {
		ways = append(ways, way{"the archive of Change Lists", func() ([]feed.Part, error) { return d.src.Docs.Archived(ctx, a, resourcesync.ChangeListArchive) }})
	}
	if o.ChangeDump != "" && kind == resourcesync.ChangeList {
		ways = append(ways, way{"the Change Dump", func() ([]feed.Part, error) {
			c, err := d.src.Docs.ReadChangeDump(ctx, o.ChangeDump)
			if err != nil {
				return nil, err
			}
			return c.Parts(), nil
		}})
	}
	a := o.DumpArchive
	if kind == resourcesync.ChangeDump {
		a = feed.ArchiveOf(a, &head)
	}
	if a != "" {
		ways = append(ways, way{"the archive of Change Dumps", func() ([]feed.Part, error) { return d.src.Docs.ArchivedPackages(ctx, a) }})
	}
	for i, way := range ways {
		old, err := way.parts()
		if err == nil {
			var closed bool
			var read []uint64
			if read, closed, err = d.bridgeWith(ctx, r, o, old, current); closed {
				r.why("closed from %s", way.name)
				r.mode("incremental")
				w := d.window(r, o, d.snapshotMeta().Cursor)
				w.at.Reads = read
				return true, w.finish(ctx, dl, address)
			}
		}
		if err != nil && (i == len(ways)-1 || ctx.Err() != nil || d.ownFailure(err)) {
			return false, err
		}
		if err != nil {
			d.log.Warn("gap: a way to close it could not be used", "way", way.name, "error", err)
		}
	}
	return false, nil
}

// bridgeWith applies what old documents, and then those that are offered now and are not of
// the same times, have after the cursor. It tells which lists are applied with them, see
// cursor.Read.
func (d *Destination) bridgeWith(ctx context.Context, r *run, o *feed.Offer, old, current []feed.Part) (read []uint64, closed bool, err error) {
	from := d.snapshotMeta().Cursor
	early := func(p feed.Part) bool { return p.From.IsZero() || !p.From.After(from.Time) }
	if !slices.ContainsFunc(old, early) {
		return nil, false, nil // they begin behind the cursor: there is no use in downloading them
	}
	feed.SortParts(old)
	parts := slices.DeleteFunc(slices.Clone(old), func(p feed.Part) bool { return !p.Until.IsZero() && p.Until.Before(from.Applied()) })
	var has []feed.Interval
	for _, p := range parts {
		if !p.From.IsZero() && !p.Until.IsZero() {
			has = append(has, feed.Interval{From: p.From, Until: p.Until})
		}
	}
	n := len(parts)
	var left []feed.Part
	for i, p := range current {
		end := p.Until
		if end.IsZero() && i+1 < len(current) {
			end = current[i+1].From
		}
		begin := p.From
		if begin.Before(from.Applied()) {
			begin = from.Applied()
		}
		same := func(q feed.Part) bool {
			return q.URL == p.URL || !p.From.IsZero() && q.From.Equal(p.From) && q.Until.Equal(end)
		}
		within := !p.From.IsZero() && !end.IsZero() && (end.Before(from.Applied()) || feed.Covered(has, begin, end.Add(1)).IsZero()) // a change of its end may come after theirs
		switch {
		case within || slices.ContainsFunc(parts[:n], same):
			left = append(left, p)
		case d.src.IsMissing(p.URL):
			return nil, false, nil
		default:
			parts = append(parts, p)
		}
	}
	w := d.window(r, o, from)
	defer w.close()
	from.Trail = new(feed.Trail)
	p := &feed.Proof{From: &from, Old: true}
	err = d.src.EachChangeIn(ctx, parts, &from, p, func(c feed.Change) error { return w.add(ctx, c) })
	switch {
	case err != nil:
	case w.ahead != nil:
		err = w.unmet()
	case from.Newest != nil && !p.Met: // the lists did not have it either: it may be another history
		err = &feed.GapError{Why: fmt.Sprintf("the change at which we stand (%s) is not in them", from.Newest)}
	}
	var gap *feed.GapError
	if errors.As(err, &gap) {
		d.log.Info("the gap stays", "why", gap.Why)
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	w.stays = false
	if err := w.apply(ctx, nil); err != nil {
		return nil, false, err
	}
	return append(w.at.Reads, d.src.NamesOf(ctx, left)...), true, nil
}
