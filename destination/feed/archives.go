package feed

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/rsbridge/rsbridge/destination/fetch"
	"github.com/rsbridge/rsbridge/internal/clip"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// archived lists the documents of an archive, in the order of their times; none without an
// address.
func (src *Documents) archived(ctx context.Context, address string, kind resourcesync.Capability) ([]part, error) {
	if address == "" {
		return nil, nil
	}
	dl, r, err := src.document(ctx, fetch.Request{URL: address}, kind)
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
			case len(all) >= src.lim.Parts:
				return fmt.Errorf("archive %s names more than %d documents", clip.Middle(address), src.lim.Parts)
			}
			seen[e.Loc] = true
			all = append(all, part{URL: e.Loc, From: e.Meta.From, Until: e.Meta.Until, at: e.Meta.At, lastmod: e.LastMod, old: r.Head().LegacyLinks})
			return nil
		})
	}
	if r.Head().Index {
		parts, err := src.parts(ctx, dl, r, kind)
		if err == nil {
			err = src.eachPart(ctx, parts, kind, func(_ part, pdl *Download, pr *resourcesync.Reader) error { return collect(pr, pdl.URL) })
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

// archiveOf is the archive of a capability: as the Capability List says, or the document's own
// link of the relation archives.
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

// namesOf names lists as they are, see download.name, as far as they can be had.
func (src *Documents) namesOf(ctx context.Context, lists []part) (names []uint64) {
	for _, p := range lists {
		if p.pkg != nil {
			continue
		}
		dl, _, err := src.document(ctx, fetch.Request{URL: p.URL, Attempts: 1}, resourcesync.ChangeList)
		if err != nil {
			src.log.Debug("a list whose changes are applied cannot be had", "list", p.URL, "error", err)
			continue
		}
		names = append(names, dl.name())
		dl.Close()
	}
	return names
}

// archivedPackages are the packages of all Change Dumps in an archive.
func (src *Documents) archivedPackages(ctx context.Context, address string) ([]part, error) {
	dumps, err := src.archived(ctx, address, resourcesync.ChangeDumpArchive)
	if err != nil {
		return nil, err
	}
	var all []part
	for _, p := range dumps {
		c, err := src.changeDump(ctx, p.URL)
		if err != nil {
			return nil, err
		}
		if all = append(all, c.parts()...); len(all) > src.lim.Parts {
			return nil, fmt.Errorf("archive %s names more than %d packages", clip.Middle(address), src.lim.Parts)
		}
	}
	return all, nil
}

// interval is the time covered by a document with changes; an open one has no end.
type interval struct{ from, until time.Time }

// covered gives the first uncovered time from lo to hi, zero for none.
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
