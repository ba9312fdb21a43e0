package destination

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/rsbridge/rsbridge/destination/fetch"
	"github.com/rsbridge/rsbridge/internal/clip"
	"github.com/rsbridge/rsbridge/internal/extsort"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// The manifests of a Resource Dump say as much as a Resource List does. They are
// read where the source has no list: from the copies that it links to (contents),
// else from the packages themselves.

// dumpPackages lists the packages of a Resource Dump, of which state tells more then.
func (src *documents) dumpPackages(ctx context.Context, dl *download, rd *resourcesync.Reader, state *listState) ([]pkg, error) {
	var packages []pkg
	collect := func(rd *resourcesync.Reader, address string) error {
		return eachEntry(rd, address, func(e *resourcesync.Entry) error {
			switch {
			case len(packages) >= src.lim.parts:
				return fmt.Errorf("%s names more than %d packages", clip.Middle(address), src.lim.parts)
			case e.Loc == "":
				return fmt.Errorf("%s line %d: a package has no loc; without it nothing can be concluded", clip.Middle(address), e.Line)
			}
			p := pkg{url: e.Loc, promise: fetch.Promise{Hashes: e.Meta.Hash, Length: e.Meta.Length, Type: fetch.Essence(e.Meta.Type)}}
			if !e.HasMeta {
				p.promise.Length = -1
			}
			if p.promise.Unproven() && (e.LastMod.IsZero() || unsettled(e.LastMod, fetch.ServedAt(dl.Header, src.opt.Now()))) {
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
	parts, err := src.parts(ctx, dl, rd, resourcesync.ResourceDump)
	if err == nil {
		err = src.eachPartNoted(ctx, parts, resourcesync.ResourceDump, &state.Parts, func(_ part, pdl *download, pr *resourcesync.Reader) error { return collect(pr, pdl.URL) })
	}
	return packages, err
}

// dumpInventory is readInventory of a source without a Resource List.
func (src *source) dumpInventory(ctx context.Context, o *offer, v *inventory, known *listState) error {
	dl, rd, err := src.unlessKnown(ctx, o.ResourceDump, resourcesync.ResourceDump, known)
	if err != nil {
		return err
	}
	defer dl.Close()
	h := rd.Head()
	v.isOf(o.ResourceDump, h, dl, src.opt.Now())
	v.outdated = src.olderThanTaken(o, v, dl, h)
	packages, err := src.dumpPackages(ctx, dl, rd, &v.state)
	if err != nil {
		return fmt.Errorf("Resource Dump: %w", err)
	}
	for _, p := range packages {
		if err := src.manifestInventory(ctx, p, v); err != nil {
			return fmt.Errorf("package %s: %w", clip.Middle(p.url), err)
		}
	}
	return src.overlay(ctx, o, v)
}

// manifestInventory adds what one package holds.
func (src *source) manifestInventory(ctx context.Context, p pkg, v *inventory) error {
	each := func(r *resourcesync.Reader) error {
		return eachEntry(r, "the manifest of "+p.url, func(e *resourcesync.Entry) error {
			it := newItem(e, nil, "the manifest of "+p.url)
			it.Change, it.Package = "", p.url
			if it.Blind {
				v.blind++
			}
			if v.listed++; v.listed%10_000 == 0 {
				src.opt.Progress("list", v.listed, 0)
			}
			return v.add(it)
		})
	}
	if p.contents != "" && src.fetch.MayFetch(p.contents) {
		dl, r, err := src.document(ctx, fetch.Request{URL: p.contents}, resourcesync.ResourceDumpManifest)
		if err == nil {
			return errors.Join(each(r), dl.Close())
		}
		if !p.isZIP() || ctx.Err() != nil || errors.Is(err, fetch.ErrSourceGone) {
			return err
		}
		src.log.Warn("the copy of a manifest could not be used; the package is read", "package", p.url, "error", err)
	}
	if !p.isZIP() {
		return fmt.Errorf("it is of type %q; only ZIP packages are read, and it links to no copy of its manifest", p.promise.Type)
	}
	dl, z, err := src.openPackage(ctx, p, 0)
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
func (src *documents) openPackage(ctx context.Context, p pkg, attempts int) (*download, *resourcesync.Package, error) {
	dl, err := src.downloadPackage(ctx, p, attempts)
	if err != nil {
		return nil, nil, err
	}
	z, err := src.zipIn(dl, p)
	if err != nil {
		return nil, nil, errors.Join(err, dl.Close())
	}
	return dl, z, nil
}

// downloadPackage downloads a package and verifies it whole.
func (src *documents) downloadPackage(ctx context.Context, p pkg, attempts int) (*download, error) {
	if p.promise.Length > src.lim.pkg {
		return nil, fmt.Errorf("%w: %d bytes are promised, at most %d are taken (%s)", fetch.ErrTooLarge, p.promise.Length, src.lim.pkg, src.opt.Settings.Of("max_package_bytes"))
	}
	dl, err := src.download(ctx, fetch.Request{URL: p.url, Accept: "application/zip, */*;q=0.1", MaxBytes: src.lim.pkg, Attempts: attempts})
	if errors.Is(err, fetch.ErrTooLarge) {
		err = fmt.Errorf("%w (%s)", err, src.opt.Settings.Of("max_package_bytes"))
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
func (src *documents) zipIn(dl *download, p pkg) (*resourcesync.Package, error) {
	return resourcesync.OpenPackage(dl.ReaderAt(), dl.Size, resourcesync.PackageOptions{MaxEntryBytes: src.lim.pkg, Reader: src.readerOptions(p.url)})
}

// readManifests reads the manifests that packages have beside them.
func (src *source) readManifests(ctx context.Context, packages []pkg) (_ *inventory, err error) {
	for _, p := range packages {
		if p.contents == "" {
			return nil, fmt.Errorf("package %s has no link to its contents", clip.Middle(p.url))
		}
	}
	sorter, err := extsort.New(src.opt.TempDir, src.opt.MemoryBytes/2)
	if err != nil {
		return nil, fmt.Errorf("temporary files: %w", err)
	}
	v := &inventory{sorter: sorter}
	defer func() {
		if err != nil {
			v.Close()
		}
	}()
	for _, p := range packages {
		dl, rd, err := src.document(ctx, fetch.Request{URL: p.contents}, resourcesync.ResourceDumpManifest)
		if err != nil {
			return nil, err
		}
		err = eachEntry(rd, p.contents, func(e *resourcesync.Entry) error {
			it := newItem(e, nil, p.contents)
			it.Change = ""
			v.listed++
			return v.add(it)
		})
		if err := errors.Join(err, dl.Close()); err != nil {
			return nil, err
		}
	}
	return v, nil
}

type pkg struct {
	url      string
	promise  fetch.Promise
	contents string // address of a copy of its manifest, "" for none
}

// isZIP tells whether a package may be one, by its type and else its suffix.
func (p *pkg) isZIP() bool {
	switch p.promise.Type {
	case "application/zip", "application/x-zip-compressed":
		return true
	case "", "application/octet-stream":
		switch strings.ToLower(path.Ext(strings.SplitN(p.url, "?", 2)[0])) {
		case ".warc", ".tar", ".tgz", ".gz", ".bz2", ".xz", ".zst", ".7z", ".rar":
			return false
		}
		return true
	}
	return false
}

// downloaded is a package, or why it could not be had.
type downloaded struct {
	dl  *download
	err error
}

// downloadAhead downloads packages in their order, each while the one before it is read. stop
// closes what nobody took.
func (src *documents) downloadAhead(ctx context.Context, packages []pkg) (ready <-chan downloaded, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	out := make(chan downloaded)
	go func() { // ends before stop returns
		defer close(out)
		for _, p := range packages {
			if ctx.Err() != nil {
				return
			}
			dl, err := src.downloadPackage(ctx, p, 0)
			out <- downloaded{dl, err}
		}
	}()
	return out, func() {
		cancel()
		for p := range out {
			if p.err == nil {
				p.dl.Close()
			}
		}
	}
}

func (src *documents) readMember(z *resourcesync.Package, path string) ([]byte, error) {
	if path == "" {
		return nil, errors.New("the manifest gives no path")
	}
	body, err := z.ReadFile(path, src.lim.resource)
	if errors.Is(err, resourcesync.ErrLimit) {
		err = fmt.Errorf("%w: %w (%s)", fetch.ErrTooLarge, err, src.opt.Settings.Of("max_resource_bytes"))
	}
	return body, err
}

// errMismatch marks a response that is not as promised, by its length, hash or graph digest.
var errMismatch = errors.New("does not keep its promise")

// mismatchHint goes with errMismatch: what is fetched is fetched again by each run, later
// and later.
const mismatchHint = " (changed on the way, or by the source without announcing it; it is tried again, and if that stays so the source has to publish it anew)"
