package feed

import (
	"context"
	"fmt"
	"time"

	"github.com/rsbridge/rsbridge/destination/fetch"
	"github.com/rsbridge/rsbridge/destination/item"
	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/internal/clip"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// Many changes cost many requests; a Change Dump has their bytes in one package. The Change List
// alone decides about changes and promises. A package is another place of the same bytes, taken
// if it costs less than single requests. Missing and differing members are fetched by themselves.

const (
	RequestCost   = 16 << 10 // bytes of one request's worth
	PackageFew    = 50       // changes fetched one by one in any case
	PackageWindow = 20_000   // changes looked at together beside a Change Dump
)

// ChangePackages are the packages of a Change Dump, read once in a run.
type ChangePackages struct {
	docs    *Documents
	indexed []string // documents below an index
	list    []changePackage
	Used    int // packages
	Served  int // changes
}

type changePackage struct {
	Package
	from, until time.Time
	lastmod     time.Time
	old         bool // of a dialect with the newest first
	worth       bool // another place of bytes: its cost is known, and it can be read
	tried       bool
	dl          *Download
	ZIP         *resourcesync.Package
	paths       map[ledger.Hash]string
}

func (c *ChangePackages) Close() {
	for i := range c.list {
		c.list[i].dl.Close()
	}
}

// changeKey names the bytes of one change; ok is false without a promise to tell them from
// others.
func changeKey(loc string, p fetch.Promise) (ledger.Hash, bool) {
	h := p.Hashes.SHA256
	if h == "" {
		h = p.Hashes.SHA1
	}
	if h == "" {
		h = p.Hashes.MD5
	}
	return ledger.HashOf(loc + " " + h), h != ""
}

// ReadChangeDump lists the packages of the Change Dump.
func (src *Source) ReadChangeDump(ctx context.Context, o *Offer) (*ChangePackages, error) {
	return src.Docs.changeDump(ctx, o.ChangeDump)
}

func (src *Documents) changeDump(ctx context.Context, address string) (*ChangePackages, error) {
	dl, rd, err := src.document(ctx, fetch.Request{URL: address}, resourcesync.ChangeDump)
	if err != nil {
		return nil, fmt.Errorf("Change Dump: %w", err)
	}
	defer dl.Close()
	return src.listPackages(ctx, dl, rd)
}

func (src *Documents) listPackages(ctx context.Context, dl *Download, rd *resourcesync.Reader) (*ChangePackages, error) {
	c := &ChangePackages{docs: src}
	collect := func(r *resourcesync.Reader, address string) error {
		return eachEntry(r, address, func(e *resourcesync.Entry) error {
			if len(c.list) >= src.lim.Parts {
				return fmt.Errorf("%s names more than %d packages", clip.Middle(address), src.lim.Parts)
			}
			p := changePackage{Package: Package{URL: e.Loc, Promise: fetch.Promise{Hashes: e.Meta.Hash, Length: e.Meta.Length, Type: fetch.Essence(e.Meta.Type)}}, from: e.Meta.From, until: e.Meta.Until, lastmod: e.LastMod, old: r.Head().LegacyLinks}
			if e.Loc == "" {
				return fmt.Errorf("%s line %d: a package has no loc; without it nothing can be concluded", clip.Middle(address), e.Line)
			}
			if !e.HasMeta {
				p.Promise.Length = -1
			}
			if l := e.Link(resourcesync.RelContents); l != nil {
				p.Contents = l.Href
			}
			p.worth = p.IsZIP() && p.Promise.Length > 0 && p.Promise.Length <= src.lim.Package
			c.list = append(c.list, p)
			return nil
		})
	}
	if rd.Head().Index {
		parts, err := src.parts(ctx, dl, rd, resourcesync.ChangeDump)
		if err != nil {
			return nil, err
		}
		return c, src.eachPart(ctx, parts, resourcesync.ChangeDump, func(p part, pdl *Download, pr *resourcesync.Reader) error {
			c.indexed = append(c.indexed, p.URL)
			return collect(pr, pdl.URL)
		})
	}
	return c, collect(rd, dl.URL)
}

// open downloads a package and reads its manifest.
func (p *changePackage) open(ctx context.Context, src *Documents) error {
	dl, z, err := src.OpenPackage(ctx, p.Package, 2)
	if err != nil {
		return fmt.Errorf("package %s: %w", clip.Middle(p.URL), err)
	}
	fail := func(err error) error {
		dl.Close()
		return fmt.Errorf("package %s: %w", clip.Middle(p.URL), err)
	}
	manifest, closer, err := z.Manifest()
	if err != nil {
		return fail(err)
	}
	defer closer.Close()
	paths := map[ledger.Hash]string{}
	err = eachEntry(manifest, "manifest", func(e *resourcesync.Entry) error {
		it := item.New(e, nil, "the manifest of "+p.URL)
		if k, ok := changeKey(it.Loc, it.Promise); ok && it.Bad == "" && it.Path != "" && it.Change != "deleted" {
			paths[k] = it.Path
		}
		return nil
	})
	if err != nil {
		return fail(err)
	}
	p.dl, p.ZIP, p.paths = dl, z, paths
	return nil
}

// Choose downloads the packages cheaper than their changes one by one.
func (c *ChangePackages) Choose(ctx context.Context, wanted []*item.Item) {
	for i := range c.list {
		p := &c.list[i]
		if p.tried || !p.worth {
			continue
		}
		n, cost := 0, int64(0)
		for _, it := range wanted {
			if !it.Time.IsZero() && !it.Time.Before(p.from) && (p.until.IsZero() || !it.Time.After(p.until)) {
				n++
				cost += RequestCost + max(0, it.Promise.Length)
			}
		}
		if n < PackageFew || p.Promise.Length+RequestCost >= cost {
			continue
		}
		p.tried = true
		if err := p.open(ctx, c.docs); err != nil {
			c.docs.log.Warn("a package of the Change Dump could not be used; its changes are fetched one by one", "error", err)
			continue
		}
		c.Used++
	}
}

// DumpCost is the cost of the dump's packages; told is false if one of them does not tell its
// length.
func (src *Source) DumpCost(ctx context.Context, o *Offer) (cost int64, told bool, err error) {
	dl, rd, err := src.Docs.document(ctx, fetch.Request{URL: o.ResourceDump}, resourcesync.ResourceDump)
	if err != nil {
		return 0, false, err
	}
	defer dl.Close()
	packages, err := src.Docs.dumpPackages(ctx, dl, rd, &listState{})
	told = true
	for _, p := range packages {
		told = told && p.Promise.Length >= 0
		cost += RequestCost + p.Promise.Length
	}
	return cost, told, err
}

// Body gives a change's bytes from a package, nil if none has them.
func (c *ChangePackages) Body(it *item.Item) []byte {
	k, ok := changeKey(it.Loc, it.Promise)
	if c == nil || !ok || it.Bad != "" {
		return nil
	}
	for i := range c.list {
		p := &c.list[i]
		path, ok := p.paths[k]
		if !ok {
			continue
		}
		body, err := c.docs.ReadMember(p.ZIP, path)
		if err == nil {
			err = it.Promise.Verify(body)
		}
		if err != nil {
			c.docs.log.Warn("package member is not as promised; fetching it by itself", "loc", it.Loc, "path", path, "error", err)
			return nil
		}
		c.Served++
		if body == nil {
			body = []byte{}
		}
		return body
	}
	return nil
}
