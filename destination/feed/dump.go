package feed

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"

	"github.com/rsbridge/rsbridge/destination/fetch"
	"github.com/rsbridge/rsbridge/destination/item"
	"github.com/rsbridge/rsbridge/internal/clip"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// Dump is an opened Resource Dump, to be read package by package.
type Dump struct {
	Inventory *Inventory // its times and position, without entries
	LeftOut   int64      // files of the source outside of it, as it tells
	Packages  []Package  // see List

	src *Source
	dl  *Download
	rd  *resourcesync.Reader
}

// OpenDump opens the Resource Dump. When tells of a known one, which is ErrUnchanged.
func (src *Source) OpenDump(ctx context.Context, o *Offer, when When) (*Dump, error) {
	dl, rd, err := src.unlessKnown(ctx, o.ResourceDump, resourcesync.ResourceDump, src.known(when))
	if err != nil {
		return nil, err
	}
	h := rd.Head()
	v := &Inventory{}
	v.isOf(o.ResourceDump, h, dl, src.Docs.opt.Now())
	v.list.At = v.At
	v.Outdated = src.olderThanTaken(o, v, dl, h)
	d := &Dump{Inventory: v, src: src, dl: dl, rd: rd}
	d.LeftOut, _ = strconv.ParseInt(h.Meta.Ext[resourcesync.ExtFiles], 10, 64)
	return d, nil
}

func (d *Dump) Close() error { return d.dl.Close() }

// List lists the packages.
func (d *Dump) List(ctx context.Context) (err error) {
	if d.Packages, err = d.src.Docs.dumpPackages(ctx, d.dl, d.rd, &d.Inventory.list); err != nil {
		err = fmt.Errorf("Resource Dump: %w", err)
	}
	return err
}

// HasManifests tells whether all manifests can be read without their packages.
func (d *Dump) HasManifests() bool {
	return !slices.ContainsFunc(d.Packages, func(p Package) bool { return p.Contents == "" })
}

// ReadManifests reads the manifests beside their packages.
func (d *Dump) ReadManifests(ctx context.Context) (_ *Inventory, err error) {
	src := d.src.Docs
	for _, p := range d.Packages {
		if p.Contents == "" {
			return nil, fmt.Errorf("package %s has no link to its contents", clip.Middle(p.URL))
		}
	}
	v, err := NewInventory(src.opt.TempDir, src.opt.MemoryBytes/2)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			v.Close()
		}
	}()
	for _, p := range d.Packages {
		dl, rd, err := src.document(ctx, fetch.Request{URL: p.Contents}, resourcesync.ResourceDumpManifest)
		if err != nil {
			return nil, err
		}
		err = eachEntry(rd, p.Contents, func(e *resourcesync.Entry) error {
			it := item.New(e, nil, p.Contents)
			it.Change = ""
			v.Unread.See(e, it)
			v.Listed++
			return v.Add(it)
		})
		if err := errors.Join(err, dl.Close()); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// PackageError is of an unreadable or missing package. It says nothing of the packages before it.
type PackageError struct{ err error }

func (e *PackageError) Error() string { return e.err.Error() }
func (e *PackageError) Unwrap() error { return e.err }

// OpenedPackage is a downloaded package of a dump, while it is read.
type OpenedPackage struct {
	URL string
	ZIP *resourcesync.Package

	dump *Dump
}

// Open yields the packages in their order. Each is downloaded while the one before it is read.
func (d *Dump) Open(ctx context.Context) iter.Seq2[*OpenedPackage, error] {
	return func(yield func(*OpenedPackage, error) bool) {
		ready, stop := d.src.Docs.downloadAhead(ctx, d.Packages)
		defer stop()
		for _, p := range d.Packages {
			o := &OpenedPackage{URL: p.URL, dump: d}
			next, ok := <-ready
			if !ok {
				yield(o, context.Cause(ctx))
				return
			}
			if next.err != nil {
				if !yield(o, &PackageError{next.err}) {
					return
				}
				continue
			}
			var err error
			if o.ZIP, err = d.src.Docs.zipIn(next.Download, p); err != nil {
				err = &PackageError{err}
			}
			more := yield(o, err)
			next.Close()
			if !more {
				return
			}
		}
	}
}

// Items yields the resources of the manifest. The sequence ends after an error.
func (o *OpenedPackage) Items() iter.Seq2[*item.Item, error] {
	return func(yield func(*item.Item, error) bool) {
		manifest, closer, err := o.ZIP.Manifest()
		if err != nil {
			yield(nil, &PackageError{err})
			return
		}
		defer closer.Close()
		err = eachEntry(manifest, "manifest", func(e *resourcesync.Entry) error {
			it := item.New(e, nil, "the manifest of "+o.URL)
			it.Change, it.Package = "", o.URL
			o.dump.Inventory.Unread.See(e, it)
			if !yield(it, nil) {
				return errEnough
			}
			return nil
		})
		if err != nil && !errors.Is(err, errEnough) {
			yield(nil, &PackageError{err})
		}
	}
}

// downloaded is a package, or why it could not be had.
type downloaded struct {
	*Download
	err error
}

// downloadAhead downloads packages in their order, each while the one before it is read. stop
// closes the rest.
func (src *Documents) downloadAhead(ctx context.Context, packages []Package) (ready <-chan downloaded, stop func()) {
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
				p.Close()
			}
		}
	}
}

// DumpIs tells whether the Resource Dump is the one that was taken, or another one of the same time.
func (src *Source) DumpIs(ctx context.Context, o *Offer) (taken, another bool, err error) {
	was := src.keeper.Position().at.Inventory
	dl, r, err := src.Docs.document(ctx, fetch.Request{URL: o.ResourceDump, ETag: was.ETag, Modified: was.Modified}, resourcesync.ResourceDump)
	if err != nil {
		return false, false, err
	}
	taken = dl.NotModified || dl.Digest.String() == was.Digest
	another = !taken && r.Head().SnapshotTime().Equal(was.At)
	return taken, another, dl.Close()
}
