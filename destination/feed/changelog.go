package feed

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/rsbridge/rsbridge/destination/fetch"
	"github.com/rsbridge/rsbridge/internal/clip"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// A source may tell its changes in a Change Dump alone. Each package is then read by its
// manifest, as a closed Change List, by the same rules of order and gaps. The bytes of the
// changes come out of it. An unreadable package (no ZIP) is replaced by the linked copy of its
// manifest (contents), and its bytes by the representations themselves.

// KindName is a capability as people write it.
func KindName(c resourcesync.Capability) string {
	switch c {
	case resourcesync.ChangeDump:
		return "Change Dump"
	case resourcesync.ResourceDump:
		return "Resource Dump"
	case resourcesync.ResourceList:
		return "Resource List"
	}
	return "Change List"
}

// packagesAfter are the unapplied packages of a Change Dump, in the order of their times, and the
// names of all, as a cursor keeps them. The package at the cursor is the first.
func (src *Source) packagesAfter(ctx context.Context, dl *Download, r *resourcesync.Reader, from *cursor, strict bool) ([]part, []uint64, error) {
	c, err := src.Docs.listPackages(ctx, dl, r)
	if err != nil {
		return nil, nil, fmt.Errorf("Change Dump: %w", err)
	}
	parts := c.parts()
	sortParts(parts)
	names := make([]uint64, len(parts))
	for i := range parts {
		names[i] = hash64(parts[i].URL)
	}
	before := func(p part) bool { return !p.Until.IsZero() && !from.Time.IsZero() && p.Until.Before(from.applied()) }
	at := slices.IndexFunc(parts, func(p part) bool { return p.URL == from.List && from.Closed })
	passed := func(i int) bool { return parts[i].Until.IsZero() && i < at || before(parts[i]) }
	if i := from.unlisted(names, passed); i >= 0 && strict && from.Sequence == nil { // numbers tell it
		return nil, nil, &GapError{Why: fmt.Sprintf("Change Dump %s names %s, of before the change at which we stand, and did not name it when that was applied", clip.Middle(dl.URL), clip.Middle(parts[i].URL))}
	}
	names = names[max(0, len(names)-maxRead):]
	if at >= 0 {
		return parts[at:], names, nil
	}
	if len(parts) > 0 && !slices.ContainsFunc(parts, func(p part) bool { return !before(p) }) {
		return parts[len(parts)-1:], names, nil // reading them tells a source set back from a dump behind the baseline
	}
	return slices.DeleteFunc(parts, before), names, nil
}

// unlisted is a passed package that the Change Dump did not name when it was applied, -1 for none.
// The Change Dump was short then: it drops its oldest packages, and none comes in among others.
func (c *cursor) unlisted(names []uint64, passed func(i int) bool) int {
	late, known := -1, false
	for i, name := range names {
		switch {
		case slices.Contains(c.Packages, name):
			known = true
		case late < 0 && passed(i) && (known || len(c.Packages) < maxRead):
			late = i
		}
	}
	if !known { // they have other names now
		return -1
	}
	return late
}

func (c *ChangePackages) parts() []part {
	parts := make([]part, len(c.list))
	for i := range c.list {
		p := &c.list[i]
		parts[i] = part{URL: p.URL, From: p.from, Until: p.until, lastmod: p.lastmod, old: p.old, meta: true, pkg: p}
	}
	return parts
}

// samePackage tells whether the fully applied package is still the same: by its promised hash,
// else by asking.
func (src *Documents) samePackage(ctx context.Context, p *changePackage, from *cursor) (bool, error) {
	if h := p.Promise.Hashes.SHA256; h != "" {
		return h == from.Last.Digest, nil
	}
	if from.Last.ETag == "" && from.Last.Modified == "" {
		return false, nil
	}
	dl, err := src.download(ctx, fetch.Request{URL: p.URL, ETag: from.Last.ETag, Modified: from.Last.Modified, MaxBytes: src.lim.Package})
	if err != nil {
		return false, err
	}
	defer dl.Close()
	return dl.NotModified || dl.Digest.String() == from.Last.Digest, nil
}

// document opens the manifest of a package as a Change List.
func (p *changePackage) document(ctx context.Context, src *Documents) (*Download, *resourcesync.Reader, error) {
	manifest := p.Contents != "" && src.fetch.MayFetch(p.Contents)
	if !p.IsZIP() && !manifest {
		return nil, nil, fmt.Errorf("package %s is of type %q; only ZIP packages are read, and it links to no copy of its manifest", clip.Middle(p.URL), p.Promise.Type)
	}
	if src.plan != nil && p.IsZIP() {
		src.plan.Fetch(p.Promise.Length)
	}
	if !p.IsZIP() || manifest && src.plan != nil {
		if !p.IsZIP() {
			src.log.Warn("a package that is no ZIP is passed over; its manifest tells what to fetch", "package", p.URL, "type", p.Promise.Type)
		}
		dl, r, err := src.document(ctx, fetch.Request{URL: p.Contents}, resourcesync.ChangeDumpManifest)
		if err == nil {
			dl.pkg, dl.URL = p, p.URL
			p.complete(r.Head())
		}
		return dl, r, err
	}
	dl, z, err := src.OpenPackage(ctx, p.Package, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("package %s: %w", clip.Middle(p.URL), err)
	}
	dl.pkg, dl.URL, dl.ZIP = p, p.URL, z
	r, err := dl.manifest()
	if err == nil {
		if c := r.Head().Meta.Capability; c != resourcesync.ChangeDumpManifest && c != "" {
			err = fmt.Errorf("it was announced as part of a Change Dump and its manifest is of capability %q", c)
		}
	}
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("package %s: %w", clip.Middle(p.URL), err), dl.Close())
	}
	return dl, r, nil
}

// complete fills in the times told by the Change Dump alone.
func (p *changePackage) complete(h *resourcesync.Head) {
	if h.Meta.From.IsZero() {
		h.Meta.From = p.from
	}
	if h.Meta.Until.IsZero() {
		h.Meta.Until = p.until
	}
}

// manifest reads the manifest of a package from its start.
func (d *Download) manifest() (*resourcesync.Reader, error) {
	if d.closer != nil {
		d.closer.Close()
		d.closer = nil
	}
	r, closer, err := d.ZIP.Manifest()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", clip.Middle(d.URL), err)
	}
	d.closer = closer
	d.pkg.complete(r.Head())
	return r, nil
}
