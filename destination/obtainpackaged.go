package destination

import (
	"context"
	"fmt"
	"sync"

	"github.com/rsbridge/rsbridge/destination/feed"
	"github.com/rsbridge/rsbridge/destination/fetch"
	"github.com/rsbridge/rsbridge/internal/clip"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// packageCache has the packages that single resources were taken from in a run.
type packageCache struct {
	mu   sync.Mutex
	open map[string]*cachedPackage
}

type cachedPackage struct {
	dl  *feed.Download
	zip *resourcesync.Package
	err error
}

// maxCached bounds the packages that are downloaded for single resources in one run.
const maxCached = 8

// obtainPackaged takes one resource from the package whose manifest told of it,
// where its own address does not give it.
func (d *Destination) obtainPackaged(ctx context.Context, it *feed.Item) (*outcome, error) {
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
		p.dl, p.zip, p.err = d.src.Docs.OpenPackage(ctx, feed.Package{URL: it.Package, Promise: fetch.Promise{Length: -1}}, 2)
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
	body, err := d.src.Docs.ReadMember(p.zip, it.Path)
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
