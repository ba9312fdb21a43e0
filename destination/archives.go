package destination

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/rsbridge/rsbridge/destination/fetch"
	"github.com/rsbridge/rsbridge/internal/clip"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// archived lists the documents that an archive names, in the order of their
// times; none without an address.
func (src *documents) archived(ctx context.Context, address string, kind resourcesync.Capability) ([]part, error) {
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
			case len(all) >= src.lim.parts:
				return fmt.Errorf("archive %s names more than %d documents", clip.Middle(address), src.lim.parts)
			}
			seen[e.Loc] = true
			all = append(all, part{url: e.Loc, from: e.Meta.From, until: e.Meta.Until, at: e.Meta.At, lastmod: e.LastMod, old: r.Head().LegacyLinks})
			return nil
		})
	}
	if r.Head().Index {
		parts, err := src.parts(ctx, dl, r, kind)
		if err == nil {
			err = src.eachPart(ctx, parts, kind, func(_ part, pdl *download, pr *resourcesync.Reader) error { return collect(pr, pdl.URL) })
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

// namesOf names lists as they are, see download.name, as far as they can be had.
func (src *source) namesOf(ctx context.Context, lists []part) (names []uint64) {
	for _, p := range lists {
		if p.pkg != nil {
			continue
		}
		dl, _, err := src.document(ctx, fetch.Request{URL: p.url, Attempts: 1}, resourcesync.ChangeList)
		if err != nil {
			src.log.Debug("a list whose changes are applied cannot be had", "list", p.url, "error", err)
			continue
		}
		names = append(names, dl.name())
		dl.Close()
	}
	return names
}

// archivedPackages are the packages of the Change Dumps that an archive names.
func (src *documents) archivedPackages(ctx context.Context, address string) ([]part, error) {
	dumps, err := src.archived(ctx, address, resourcesync.ChangeDumpArchive)
	if err != nil {
		return nil, err
	}
	var all []part
	for _, p := range dumps {
		c, err := src.readChangeDump(ctx, p.url)
		if err != nil {
			return nil, err
		}
		if all = append(all, c.parts()...); len(all) > src.lim.parts {
			return nil, fmt.Errorf("archive %s names more than %d packages", clip.Middle(address), src.lim.parts)
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
