package destination

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rsbridge/rsbridge/resourcesync"
)

// archived lists the documents that an archive names, in the order of their
// times; none without an address.
func (d *Destination) archived(ctx context.Context, address string, kind resourcesync.Capability) ([]part, error) {
	if address == "" {
		return nil, nil
	}
	dl, r, err := d.document(ctx, request{url: address}, kind)
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
				return fmt.Errorf("archive %s names more than %d documents", shorten(address), d.lim.parts)
			}
			seen[e.Loc] = true
			all = append(all, part{url: e.Loc, from: e.Meta.From, until: e.Meta.Until, at: e.Meta.At})
			return nil
		})
	}
	if r.Head().Index {
		parts, err := d.parts(ctx, dl, r, kind)
		if err == nil {
			err = d.eachPart(ctx, parts, kind, func(_ part, pdl *download, pr *resourcesync.Reader) error { return collect(pr, pdl.url) })
		}
		if err != nil {
			return nil, fmt.Errorf("archive: %w", err)
		}
	} else if err := collect(r, dl.url); err != nil {
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

// bridgeGap applies what Change List Archives have between the cursor and the
// lists that are offered now. It tells whether the gap is closed; if not, nothing
// is changed but what the archives had in order.
func (d *Destination) bridgeGap(ctx context.Context, r *run, o *offer, dl *download) (bool, error) {
	rd, err := d.reader(dl)
	if err != nil {
		return false, err
	}
	archive := archiveOf(o.ChangeArchive, rd.Head())
	if archive == "" {
		return false, nil
	}
	parts, err := d.archived(ctx, archive, resourcesync.ChangeListArchive)
	if err != nil {
		return false, err
	}
	from := d.snapshotMeta().Cursor
	if from.Time.IsZero() || len(parts) == 0 {
		return false, nil
	}
	parts = slices.DeleteFunc(parts, func(p part) bool { return !p.until.IsZero() && p.until.Before(from.Time) })
	current, err := d.parts(ctx, dl, rd, resourcesync.ChangeList)
	if err != nil {
		return false, err
	}
	sortParts(current)
	archivedParts := len(parts)
	for _, p := range current {
		same := func(q part) bool {
			return q.url == p.url || !p.from.IsZero() && q.from.Equal(p.from) && q.until.Equal(p.until)
		}
		if !slices.ContainsFunc(parts[:archivedParts], same) {
			parts = append(parts, p)
		}
	}
	w := &window{d: d, r: r, items: map[hash16]int{}, at: from, dump: o.ChangeDump}
	defer w.close()
	err = d.eachChangeIn(ctx, parts, &from, &proof{from: &from}, func(c change) error { return w.add(ctx, c) })
	var gap *gapError
	if errors.As(err, &gap) {
		d.log.Info("archives do not close the gap", "why", gap.why)
		return false, nil
	}
	if err != nil {
		return false, err
	}
	r.why("closed from the archive of Change Lists")
	return true, w.finish(ctx, dl, o.ChangeList)
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
