package destination

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rsbridge/rsbridge/destination/fetch"
	"github.com/rsbridge/rsbridge/internal/clip"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// archived lists the documents that an archive names, in the order of their
// times; none without an address.
func (d *Destination) archived(ctx context.Context, address string, kind resourcesync.Capability) ([]part, error) {
	if address == "" {
		return nil, nil
	}
	dl, r, err := d.document(ctx, fetch.Request{URL: address}, kind)
	if err != nil {
		return nil, fmt.Errorf("archive: %w", err)
	}
	defer dl.Close()
	var all []part
	seen := map[string]bool{}
	collect := func(r *resourcesync.Reader, address string) error {
		return eachEntry(r, address, func(e *resourcesync.Entry) error {
			switch {
			case e.Loc == "" || seen[e.Loc]:
				return nil
			case len(all) >= d.lim.parts:
				return fmt.Errorf("archive %s names more than %d documents", clip.Middle(address), d.lim.parts)
			}
			seen[e.Loc] = true
			all = append(all, part{url: e.Loc, from: e.Meta.From, until: e.Meta.Until, at: e.Meta.At, lastmod: e.LastMod, old: r.Head().LegacyLinks})
			return nil
		})
	}
	if r.Head().Index {
		parts, err := d.parts(ctx, dl, r, kind)
		if err == nil {
			err = d.eachPart(ctx, parts, kind, func(_ part, pdl *download, pr *resourcesync.Reader) error { return collect(pr, pdl.URL) })
		}
		if err != nil {
			return nil, fmt.Errorf("archive: %w", err)
		}
	} else if err := collect(r, dl.URL); err != nil {
		return nil, err
	}
	sortParts(all)
	return all, nil
}

// archiveOf is the archive that a capability of the set has: as the Capability
// List says, or the document's own link of the relation archives.
func archiveOf(told string, h *resourcesync.Head) string {
	if told == "" {
		for _, l := range h.Links {
			if l.Rel == resourcesync.RelArchives {
				return l.Href
			}
		}
	}
	return told
}

// bridgeGap applies what archives, or a Change Dump, have between the cursor and
// the lists that are offered now. It tells whether the gap is closed; if not,
// nothing is changed but what they had in order.
func (d *Destination) bridgeGap(ctx context.Context, r *run, o *offer, dl *download) (bool, error) {
	from := d.snapshotMeta().Cursor
	if from.Time.IsZero() {
		return false, nil
	}
	rd, err := d.reader(dl)
	if err != nil {
		return false, err
	}
	head := *rd.Head()
	address, kind := o.changes()
	var current []part
	if kind == resourcesync.ChangeDump {
		c, err := d.listPackages(ctx, dl, rd)
		if err != nil {
			return false, err
		}
		current = c.parts()
	} else if current, err = d.parts(ctx, dl, rd, kind); err != nil {
		return false, err
	}
	sortParts(current)
	type way struct {
		name  string
		parts func() ([]part, error)
	}
	var ways []way
	if a := archiveOf(o.ChangeArchive, &head); a != "" && kind == resourcesync.ChangeList {
		ways = append(ways, way{"the archive of Change Lists", func() ([]part, error) { return d.archived(ctx, a, resourcesync.ChangeListArchive) }})
	}
	if o.ChangeDump != "" && kind == resourcesync.ChangeList {
		ways = append(ways, way{"the Change Dump", func() ([]part, error) {
			c, err := d.readChangeDump(ctx, o.ChangeDump)
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
		ways = append(ways, way{"the archive of Change Dumps", func() ([]part, error) { return d.archivedPackages(ctx, a) }})
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
				w.read = read
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
		case d.surveys[p.url].gone:
			return nil, false, nil
		default:
			parts = append(parts, p)
		}
	}
	w := d.window(r, o, from)
	defer w.close()
	from.trail = new(trail)
	p := &proof{from: &from, old: true}
	err = d.eachChangeIn(ctx, parts, &from, p, func(c change) error { return w.add(ctx, c) })
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
	return append(w.read, d.documents(ctx, left)...), true, nil
}

// documents names lists as they are, see download.name, as far as they can be had.
func (d *Destination) documents(ctx context.Context, lists []part) (names []uint64) {
	for _, p := range lists {
		if p.pkg != nil {
			continue
		}
		dl, _, err := d.document(ctx, fetch.Request{URL: p.url, Attempts: 1}, resourcesync.ChangeList)
		if err != nil {
			d.log.Debug("a list whose changes are applied cannot be had", "list", p.url, "error", err)
			continue
		}
		names = append(names, dl.name())
		dl.Close()
	}
	return names
}

// archivedPackages are the packages of the Change Dumps that an archive names.
func (d *Destination) archivedPackages(ctx context.Context, address string) ([]part, error) {
	dumps, err := d.archived(ctx, address, resourcesync.ChangeDumpArchive)
	if err != nil {
		return nil, err
	}
	var all []part
	for _, p := range dumps {
		c, err := d.readChangeDump(ctx, p.url)
		if err != nil {
			return nil, err
		}
		if all = append(all, c.parts()...); len(all) > d.lim.parts {
			return nil, fmt.Errorf("archive %s names more than %d packages", clip.Middle(address), d.lim.parts)
		}
	}
	return all, nil
}

// interval is the time that a document with changes covers; an open one has no end.
type interval struct{ from, until time.Time }

// covered gives the first time from lo on that no interval covers, zero if all
// up to hi is covered.
func covered(list []interval, lo, hi time.Time) time.Time {
	slices.SortFunc(list, func(a, b interval) int { return a.from.Compare(b.from) })
	for _, i := range list {
		if lo.After(hi) || i.from.After(lo) {
			break
		}
		if i.until.IsZero() {
			return time.Time{}
		}
		if i.until.After(lo) {
			lo = i.until
		}
	}
	if lo.Before(hi) {
		return lo
	}
	return time.Time{}
}
