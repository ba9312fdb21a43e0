package destination

import (
	"context"
	"fmt"
	"time"

	"github.com/rsbridge/rsbridge/destination/fetch"
	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/internal/clip"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// Many changes cost many requests; a Change Dump has their bytes in one package.
// What a Change List says decides which changes there are and what is promised of
// them; the package is only another place of the same bytes, taken when it costs
// less than fetching each. What it lacks, or has otherwise, is fetched by itself.

const (
	requestCost   = 16 << 10 // bytes that a request is worth
	packageFew    = 50       // changes that are fetched one by one in any case
	packageWindow = 20_000   // changes that are looked at together where there is a Change Dump
)

// changePackages are the packages of a Change Dump, read once in a run.
type changePackages struct {
	indexed []string // documents below an index
	list    []changePackage
	used    int // packages
	served  int // changes
}

type changePackage struct {
	pkg
	from, until time.Time
	lastmod     time.Time
	old         bool // of a dialect that lists the newest first
	worth       bool // another place of bytes: what it costs is known, and it can be read
	tried       bool
	dl          *download
	zip         *resourcesync.Package
	paths       map[ledger.Hash]string
}

func (c *changePackages) close() {
	for i := range c.list {
		c.list[i].dl.Close()
	}
}

// changeKey names the bytes of one change; ok is false where nothing is promised
// that tells them from others.
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

// readChangeDump lists the packages of the source's Change Dump.
func (src *documents) readChangeDump(ctx context.Context, address string) (*changePackages, error) {
	dl, rd, err := src.document(ctx, fetch.Request{URL: address}, resourcesync.ChangeDump)
	if err != nil {
		return nil, fmt.Errorf("Change Dump: %w", err)
	}
	defer dl.Close()
	return src.listPackages(ctx, dl, rd)
}

func (src *documents) listPackages(ctx context.Context, dl *download, rd *resourcesync.Reader) (*changePackages, error) {
	c := &changePackages{}
	collect := func(r *resourcesync.Reader, address string) error {
		return eachEntry(r, address, func(e *resourcesync.Entry) error {
			if len(c.list) >= src.lim.parts {
				return fmt.Errorf("%s names more than %d packages", clip.Middle(address), src.lim.parts)
			}
			p := changePackage{pkg: pkg{url: e.Loc, promise: fetch.Promise{Hashes: e.Meta.Hash, Length: e.Meta.Length, Type: fetch.Essence(e.Meta.Type)}}, from: e.Meta.From, until: e.Meta.Until, lastmod: e.LastMod, old: r.Head().LegacyLinks}
			if e.Loc == "" {
				return fmt.Errorf("%s line %d: a package has no loc; without it nothing can be concluded", clip.Middle(address), e.Line)
			}
			if !e.HasMeta {
				p.promise.Length = -1
			}
			if l := e.Link(resourcesync.RelContents); l != nil {
				p.contents = l.Href
			}
			p.worth = p.isZIP() && p.promise.Length > 0 && p.promise.Length <= src.lim.pkg
			c.list = append(c.list, p)
			return nil
		})
	}
	if rd.Head().Index {
		parts, err := src.parts(ctx, dl, rd, resourcesync.ChangeDump)
		if err != nil {
			return nil, err
		}
		return c, src.eachPart(ctx, parts, resourcesync.ChangeDump, func(p part, pdl *download, pr *resourcesync.Reader) error {
			c.indexed = append(c.indexed, p.url)
			return collect(pr, pdl.URL)
		})
	}
	return c, collect(rd, dl.URL)
}

// open downloads a package and reads what is in it.
func (p *changePackage) open(ctx context.Context, src *documents) error {
	dl, z, err := src.openPackage(ctx, p.pkg, 2)
	if err != nil {
		return fmt.Errorf("package %s: %w", clip.Middle(p.url), err)
	}
	fail := func(err error) error {
		dl.Close()
		return fmt.Errorf("package %s: %w", clip.Middle(p.url), err)
	}
	manifest, closer, err := z.Manifest()
	if err != nil {
		return fail(err)
	}
	defer closer.Close()
	paths := map[ledger.Hash]string{}
	err = eachEntry(manifest, "manifest", func(e *resourcesync.Entry) error {
		it := newItem(e, nil, "the manifest of "+p.url)
		if k, ok := changeKey(it.Loc, it.Promise); ok && it.Bad == "" && it.Path != "" && it.Change != "deleted" {
			paths[k] = it.Path
		}
		return nil
	})
	if err != nil {
		return fail(err)
	}
	p.dl, p.zip, p.paths = dl, z, paths
	return nil
}

// choose downloads the packages that cost less than their changes one by one.
func (c *changePackages) choose(ctx context.Context, src *source, wanted []*item) {
	for i := range c.list {
		p := &c.list[i]
		if p.tried || !p.worth {
			continue
		}
		n, cost := 0, int64(0)
		for _, it := range wanted {
			if !it.Time.IsZero() && !it.Time.Before(p.from) && (p.until.IsZero() || !it.Time.After(p.until)) {
				n++
				cost += requestCost + max(0, it.Promise.Length)
			}
		}
		if n < packageFew || p.promise.Length+requestCost >= cost {
			continue
		}
		p.tried = true
		if err := p.open(ctx, &src.documents); err != nil {
			src.log.Warn("a package of the Change Dump could not be used; its changes are fetched one by one", "error", err)
			continue
		}
		c.used++
	}
}

// dumpCost is what the packages of the dump cost; told is false where one of them
// does not tell its length.
func (src *documents) dumpCost(ctx context.Context, o *offer) (cost int64, told bool, err error) {
	dl, rd, err := src.document(ctx, fetch.Request{URL: o.ResourceDump}, resourcesync.ResourceDump)
	if err != nil {
		return 0, false, err
	}
	defer dl.Close()
	packages, err := src.dumpPackages(ctx, dl, rd, &listState{})
	told = true
	for _, p := range packages {
		told = told && p.promise.Length >= 0
		cost += requestCost + p.promise.Length
	}
	return cost, told, err
}

// body gives the bytes that a package has of a change, nil if none has them.
func (c *changePackages) body(src *source, it *item) []byte {
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
		body, err := src.readMember(p.zip, path)
		if err == nil {
			err = it.Promise.Verify(body)
		}
		if err != nil {
			src.log.Warn("package member is not as promised; fetching it by itself", "loc", it.Loc, "path", path, "error", err)
			return nil
		}
		c.served++
		if body == nil {
			body = []byte{}
		}
		return body
	}
	return nil
}
