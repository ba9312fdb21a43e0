package destination

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/rsbridge/rsbridge/resourcesync"
)

// bridgeGap applies what archives, or a Change Dump, have between the cursor and
// the lists that are offered now. It tells whether the gap is closed; if not,
// nothing is changed but what they had in order.
func (d *Destination) bridgeGap(ctx context.Context, r *run, o *offer, dl *download) (bool, error) {
	from := d.snapshotMeta().Cursor
	if from.Time.IsZero() {
		return false, nil
	}
	rd, err := d.src.reader(dl)
	if err != nil {
		return false, err
	}
	head := *rd.Head()
	address, kind := o.changes()
	var current []part
	if kind == resourcesync.ChangeDump {
		c, err := d.src.listPackages(ctx, dl, rd)
		if err != nil {
			return false, err
		}
		current = c.parts()
	} else if current, err = d.src.parts(ctx, dl, rd, kind); err != nil {
		return false, err
	}
	sortParts(current)
	type way struct {
		name  string
		parts func() ([]part, error)
	}
	var ways []way
	if a := archiveOf(o.ChangeArchive, &head); a != "" && kind == resourcesync.ChangeList {
		ways = append(ways, way{"the archive of Change Lists", func() ([]part, error) { return d.src.archived(ctx, a, resourcesync.ChangeListArchive) }})
	}
	if o.ChangeDump != "" && kind == resourcesync.ChangeList {
		ways = append(ways, way{"the Change Dump", func() ([]part, error) {
			c, err := d.src.readChangeDump(ctx, o.ChangeDump)
			if err != nil {
				return nil, err
			}
			return c.parts(), nil
		}})
	}
	a := o.DumpArchive
	if kind == resourcesync.ChangeDump {
		a = archiveOf(a, &head)
	}
	if a != "" {
		ways = append(ways, way{"the archive of Change Dumps", func() ([]part, error) { return d.src.archivedPackages(ctx, a) }})
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
				w.at.reads = read
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
func (d *Destination) bridgeWith(ctx context.Context, r *run, o *offer, old, current []part) (read []uint64, closed bool, err error) {
	from := d.snapshotMeta().Cursor
	early := func(p part) bool { return p.from.IsZero() || !p.from.After(from.Time) }
	if !slices.ContainsFunc(old, early) {
		return nil, false, nil // they begin behind the cursor: there is no use in downloading them
	}
	sortParts(old)
	parts := slices.DeleteFunc(slices.Clone(old), func(p part) bool { return !p.until.IsZero() && p.until.Before(from.applied()) })
	var has []interval
	for _, p := range parts {
		if !p.from.IsZero() && !p.until.IsZero() {
			has = append(has, interval{p.from, p.until})
		}
	}
	n := len(parts)
	var left []part
	for i, p := range current {
		end := p.until
		if end.IsZero() && i+1 < len(current) {
			end = current[i+1].from
		}
		begin := p.from
		if begin.Before(from.applied()) {
			begin = from.applied()
		}
		same := func(q part) bool {
			return q.url == p.url || !p.from.IsZero() && q.from.Equal(p.from) && q.until.Equal(end)
		}
		within := !p.from.IsZero() && !end.IsZero() && (end.Before(from.applied()) || covered(has, begin, end.Add(1)).IsZero()) // a change of its end may come after theirs
		switch {
		case within || slices.ContainsFunc(parts[:n], same):
			left = append(left, p)
		case d.src.isMissing(p.url):
			return nil, false, nil
		default:
			parts = append(parts, p)
		}
	}
	w := d.window(r, o, from)
	defer w.close()
	from.trail = new(trail)
	p := &proof{from: &from, old: true}
	err = d.src.eachChangeIn(ctx, parts, &from, p, func(c change) error { return w.add(ctx, c) })
	switch {
	case err != nil:
	case w.ahead != nil:
		err = w.unmet()
	case from.Newest != nil && !p.met: // the lists did not have it either: it may be another history
		err = &gapError{why: fmt.Sprintf("the change at which we stand (%s) is not in them", from.Newest)}
	}
	var gap *gapError
	if errors.As(err, &gap) {
		d.log.Info("the gap stays", "why", gap.why)
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	w.stays = false
	if err := w.apply(ctx, nil); err != nil {
		return nil, false, err
	}
	return append(w.at.reads, d.src.namesOf(ctx, left)...), true, nil
}
