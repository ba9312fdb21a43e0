package destination

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/rsbridge/rsbridge/destination/fetch"
	"github.com/rsbridge/rsbridge/internal/clip"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// The manifests of a Resource Dump say as much as a Resource List does. They are
// read where the source has no list: from the copies that it links to (contents),
// else from the packages themselves.

// dumpPackages lists the packages of a Resource Dump, of which state tells more then.
func (d *Destination) dumpPackages(ctx context.Context, dl *download, rd *resourcesync.Reader, state *listState) ([]pkg, error) {
	var packages []pkg
	collect := func(rd *resourcesync.Reader, address string) error {
		return eachEntry(rd, address, func(e *resourcesync.Entry) error {
			switch {
			case len(packages) >= d.lim.parts:
				return fmt.Errorf("%s names more than %d packages", clip.Middle(address), d.lim.parts)
			case e.Loc == "":
				return fmt.Errorf("%s line %d: a package has no loc; without it nothing can be concluded", clip.Middle(address), e.Line)
			}
			p := pkg{url: e.Loc, promise: fetch.Promise{Hashes: e.Meta.Hash, Length: e.Meta.Length, Type: fetch.Essence(e.Meta.Type)}}
			if !e.HasMeta {
				p.promise.Length = -1
			}
			if p.promise.Unproven() && (e.LastMod.IsZero() || unsettled(e.LastMod, fetch.ServedAt(dl.Header, d.opt.Now()))) {
				state.Vague = true // another package at its address would look the same
			}
			if l := e.Link(resourcesync.RelContents); l != nil {
				p.contents = l.Href
			}
			packages = append(packages, p)
			return nil
		})
	}
	if !rd.Head().Index {
		return packages, collect(rd, dl.URL)
	}
	parts, err := d.parts(ctx, dl, rd, resourcesync.ResourceDump)
	if err == nil {
		err = d.eachPartNoted(ctx, parts, resourcesync.ResourceDump, &state.Parts, func(_ part, pdl *download, pr *resourcesync.Reader) error { return collect(pr, pdl.URL) })
	}
	return packages, err
}

// dumpInventory is readInventory of a source without a Resource List.
func (d *Destination) dumpInventory(ctx context.Context, o *offer, v *inventory, known *listState) error {
	dl, rd, err := d.unlessKnown(ctx, o.ResourceDump, resourcesync.ResourceDump, known)
	if err != nil {
		return err
	}
	defer dl.Close()
	h := rd.Head()
	v.isOf(o.ResourceDump, h, dl, d.opt.Now())
	v.outdated = d.olderThanTaken(o, v, dl, h)
	packages, err := d.dumpPackages(ctx, dl, rd, &v.state)
	if err != nil {
		return fmt.Errorf("Resource Dump: %w", err)
	}
	for _, p := range packages {
		if err := d.manifestInventory(ctx, p, v); err != nil {
			return fmt.Errorf("package %s: %w", clip.Middle(p.url), err)
		}
	}
	return d.overlay(ctx, o, v)
}

// manifestInventory adds what one package holds.
func (d *Destination) manifestInventory(ctx context.Context, p pkg, v *inventory) error {
	each := func(r *resourcesync.Reader) error {
		return eachEntry(r, "the manifest of "+p.url, func(e *resourcesync.Entry) error {
			it := newItem(e, nil, "the manifest of "+p.url)
			it.Change, it.Package = "", p.url
			if it.Blind {
				v.blind++
			}
			if v.listed++; v.listed%10_000 == 0 {
				d.opt.Progress("list", v.listed, 0)
			}
			return v.add(it)
		})
	}
	if p.contents != "" && d.fetch.MayFetch(p.contents) {
		dl, r, err := d.document(ctx, fetch.Request{URL: p.contents}, resourcesync.ResourceDumpManifest)
		if err == nil {
			return errors.Join(each(r), dl.Close())
		}
		if !p.isZIP() || ctx.Err() != nil || errors.Is(err, fetch.ErrSourceGone) {
			return err
		}
		d.log.Warn("the copy of a manifest could not be used; the package is read", "package", p.url, "error", err)
	}
	if !p.isZIP() {
		return fmt.Errorf("it is of type %q; only ZIP packages are read, and it links to no copy of its manifest", p.promise.Type)
	}
	dl, z, err := d.openPackage(ctx, p, 0)
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

// openPackage downloads a package, verifies it whole and opens it.
func (d *Destination) openPackage(ctx context.Context, p pkg, attempts int) (*download, *resourcesync.Package, error) {
	dl, err := d.downloadPackage(ctx, p, attempts)
	if err != nil {
		return nil, nil, err
	}
	z, err := d.zipIn(dl, p)
	if err != nil {
		return nil, nil, errors.Join(err, dl.Close())
	}
	return dl, z, nil
}

// downloadPackage downloads a package and verifies it whole.
func (d *Destination) downloadPackage(ctx context.Context, p pkg, attempts int) (*download, error) {
	if p.promise.Length > d.lim.pkg {
		return nil, fmt.Errorf("%w: %d bytes are promised, at most %d are taken (%s)", fetch.ErrTooLarge, p.promise.Length, d.lim.pkg, d.cfg.Settings.Of("max_package_bytes"))
	}
	dl, err := d.download(ctx, fetch.Request{URL: p.url, Accept: "application/zip, */*;q=0.1", MaxBytes: d.lim.pkg, Attempts: attempts})
	if errors.Is(err, fetch.ErrTooLarge) {
		err = fmt.Errorf("%w (%s)", err, d.cfg.Settings.Of("max_package_bytes"))
	}
	if err != nil {
		return nil, err
	}
	if err := dl.Verify(p.promise.Length, p.promise.Hashes); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %w%s", errMismatch, err, mismatchHint), dl.Close())
	}
	return dl, nil
}

// zipIn opens what was downloaded. A member that is too large fails by itself, when it is
// read (readMember).
func (d *Destination) zipIn(dl *download, p pkg) (*resourcesync.Package, error) {
	return resourcesync.OpenPackage(dl.ReaderAt(), dl.Size, resourcesync.PackageOptions{MaxEntryBytes: d.lim.pkg, Reader: d.readerOptions(p.url)})
}

// packageCache has the packages that single resources were taken from in a run.
type packageCache struct {
	mu   sync.Mutex
	open map[string]*cachedPackage
}

type cachedPackage struct {
	dl  *download
	zip *resourcesync.Package
	err error
}

// maxCached bounds the packages that are downloaded for single resources in one run.
const maxCached = 8

// obtainPackaged takes one resource from the package whose manifest told of it,
// where its own address does not give it.
func (d *Destination) obtainPackaged(ctx context.Context, it *item) (*outcome, error) {
	if err := d.placeAllowed(it.Package); err != nil {
		return nil, err
	}
	c := &d.packages
	c.mu.Lock()
	p := c.open[it.Package]
	if p == nil {
		if len(c.open) >= maxCached {
			c.mu.Unlock()
			return nil, fmt.Errorf("package %s: %d others were opened in this run already", clip.Middle(it.Package), maxCached)
		}
		p = &cachedPackage{}
		p.dl, p.zip, p.err = d.openPackage(ctx, pkg{url: it.Package, promise: fetch.Promise{Length: -1}}, 2)
		if c.open == nil {
			c.open = map[string]*cachedPackage{}
		}
		if ctx.Err() == nil {
			c.open[it.Package] = p
		}
	}
	c.mu.Unlock()
	if p.err != nil {
		return nil, fmt.Errorf("package %s: %w", clip.Middle(it.Package), p.err)
	}
	body, err := d.readMember(p.zip, it.Path)
	if err == nil {
		err = it.Promise.Verify(body)
	}
	if err != nil {
		return nil, fmt.Errorf("package %s: %s: %w", clip.Middle(it.Package), clip.Middle(it.Path), err)
	}
	return d.representMember(ctx, it, body)
}

func (c *packageCache) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.open {
		p.dl.Close()
	}
	c.open = nil
}
