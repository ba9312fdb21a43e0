package feed

import (
	"context"
	"errors"
	"fmt"

	"github.com/rsbridge/rsbridge/destination/fetch"
	"github.com/rsbridge/rsbridge/destination/item"
	"github.com/rsbridge/rsbridge/internal/clip"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// The manifests of a Resource Dump say as much as a Resource List does. They are read for a
// source without a list: from linked copies (contents), else from the packages themselves.

// dumpPackages lists the packages of a Resource Dump, and completes state.
func (src *Documents) dumpPackages(ctx context.Context, dl *Download, rd *resourcesync.Reader, state *listState) ([]Package, error) {
	var packages []Package
	collect := func(rd *resourcesync.Reader, address string) error {
		return eachEntry(rd, address, func(e *resourcesync.Entry) error {
			switch {
			case len(packages) >= src.lim.Parts:
				return fmt.Errorf("%s names more than %d packages", clip.Middle(address), src.lim.Parts)
			case e.Loc == "":
				return fmt.Errorf("%s line %d: a package has no loc; without it nothing can be concluded", clip.Middle(address), e.Line)
			}
			p := Package{URL: e.Loc, Promise: fetch.Promise{Hashes: e.Meta.Hash, Length: e.Meta.Length, Type: fetch.Essence(e.Meta.Type)}}
			if !e.HasMeta {
				p.Promise.Length = -1
			}
			if p.Promise.Unproven() && (e.LastMod.IsZero() || item.Unsettled(e.LastMod, fetch.ServedAt(dl.Header, src.opt.Now()))) {
				state.Vague = true // another package at its address would look the same
			}
			if l := e.Link(resourcesync.RelContents); l != nil {
				p.Contents = l.Href
			}
			packages = append(packages, p)
			return nil
		})
	}
	if !rd.Head().Index {
		return packages, collect(rd, dl.URL)
	}
	parts, err := src.parts(ctx, dl, rd, resourcesync.ResourceDump)
	if err == nil {
		err = src.eachPartNoted(ctx, parts, resourcesync.ResourceDump, &state.Parts, func(_ part, pdl *Download, pr *resourcesync.Reader) error { return collect(pr, pdl.URL) })
	}
	return packages, err
}

// dumpInventory is readInventory of a source without a Resource List.
func (src *Source) dumpInventory(ctx context.Context, o *Offer, v *Inventory, known *listState) error {
	dl, rd, err := src.unlessKnown(ctx, o.ResourceDump, resourcesync.ResourceDump, known)
	if err != nil {
		return err
	}
	defer dl.Close()
	h := rd.Head()
	v.isOf(o.ResourceDump, h, dl, src.Docs.opt.Now())
	v.Outdated = src.olderThanTaken(o, v, dl, h)
	packages, err := src.Docs.dumpPackages(ctx, dl, rd, &v.list)
	if err != nil {
		return fmt.Errorf("Resource Dump: %w", err)
	}
	for i, p := range packages {
		src.Docs.opt.Progress("manifests", int64(i), int64(len(packages)))
		if err := src.manifestInventory(ctx, p, v); err != nil {
			return fmt.Errorf("package %s: %w", clip.Middle(p.URL), err)
		}
	}
	return src.overlay(ctx, o, v)
}

// manifestInventory adds the contents of one package.
func (src *Source) manifestInventory(ctx context.Context, p Package, v *Inventory) error {
	each := func(r *resourcesync.Reader) error {
		return eachEntry(r, "the manifest of "+p.URL, func(e *resourcesync.Entry) error {
			it := item.New(e, nil, "the manifest of "+p.URL)
			it.Change, it.Package = "", p.URL
			v.Unread.See(e, it)
			v.Listed++
			return v.Add(it)
		})
	}
	if p.Contents != "" && src.Docs.fetch.MayFetch(p.Contents) {
		dl, r, err := src.Docs.document(ctx, fetch.Request{URL: p.Contents}, resourcesync.ResourceDumpManifest)
		if err == nil {
			return errors.Join(each(r), dl.Close())
		}
		if !p.IsZIP() || ctx.Err() != nil || errors.Is(err, fetch.ErrSourceGone) {
			return err
		}
		src.Docs.log.Warn("the copy of a manifest could not be used; the package is read", "package", p.URL, "error", err)
	}
	if !p.IsZIP() {
		return fmt.Errorf("it is of type %q; only ZIP packages are read, and it links to no copy of its manifest", p.Promise.Type)
	}
	dl, z, err := src.Docs.OpenPackage(ctx, p, 0)
	if err != nil {
		return err
	}
	defer dl.Close()
	r, closer, err := z.Manifest()
	if err != nil {
		return err
	}
	return errors.Join(each(r), closer.Close())
}
