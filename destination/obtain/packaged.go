package obtain

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/rsbridge/rsbridge/destination/feed"
	"github.com/rsbridge/rsbridge/destination/fetch"
	"github.com/rsbridge/rsbridge/destination/item"
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
func (ob *Obtainer) obtainPackaged(ctx context.Context, it *item.Item) (*Outcome, error) {
	if err := ob.PlaceAllowed(it.Package); err != nil {
		return nil, err
	}
	c := ob.packages
	c.mu.Lock()
	p := c.open[it.Package]
	if p == nil {
		if len(c.open) >= maxCached {
			c.mu.Unlock()
			return nil, fmt.Errorf("package %s: %d others were opened in this run already", clip.Middle(it.Package), maxCached)
		}
		p = &cachedPackage{}
		p.dl, p.zip, p.err = ob.Packages.OpenPackage(ctx, feed.Package{URL: it.Package, Promise: fetch.Promise{Length: -1}}, 2)
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
	body, err := ob.Packages.ReadMember(p.zip, it.Path)
	if err == nil {
		err = it.Promise.Verify(body)
	}
	if err != nil {
		return nil, fmt.Errorf("package %s: %s: %w", clip.Middle(it.Package), clip.Middle(it.Path), err)
	}
	return ob.representMember(ctx, it, body)
}

func (c *packageCache) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.open {
		p.dl.Close()
	}
	c.open = nil
}

// packaged represents a member of a package. After a broken promise the resource is fetched
// by itself.
func (ob *Obtainer) packaged(ctx context.Context, it *item.Item, body []byte, err error) *Outcome {
	if it.Bad != "" {
		return ob.obtainSingly(ctx, it)
	}
	if err == nil {
		err = it.Promise.Verify(body)
	}
	if err == nil {
		var o *Outcome
		if o, err = ob.representMember(ctx, it, body); err == nil {
			return o
		}
		if errors.Is(err, ErrContent) {
			return &Outcome{Item: it, Err: err}
		}
	}
	ob.Log.Warn("package member is not as promised; fetching it by itself", "loc", it.Loc, "path", it.Path, "error", err)
	o := ob.obtainSingly(ctx, it)
	if o.Err != nil {
		o.Err = fmt.Errorf("in the package: %w; by itself: %w", err, o.Err)
	}
	return o
}

// representMember is represent of a member of a package. An empty one proves nothing.
func (ob *Obtainer) representMember(ctx context.Context, it *item.Item, body []byte) (*Outcome, error) {
	p := item.Place{URL: it.Loc, Promise: it.Promise}
	o, err := ob.represent(ctx, it, p, body, fetch.Kind{})
	if err == nil && o.Empty && unpromised(p) && ob.isMirrored(ctx, it.Loc) {
		return nil, errEmptyMember
	}
	return o, err
}

var errEmptyMember = errors.New("it is empty, and neither length nor hash is promised")

// Member obtains a resource of an open package. The package must stay open until then.
func (ob *Obtainer) Member(z *resourcesync.Package, it *item.Item) func(context.Context) *Outcome {
	return func(ctx context.Context) *Outcome {
		body, err := ob.Packages.ReadMember(z, it.Path)
		return ob.packaged(ctx, it, body, err)
	}
}

// Opened obtains a resource of the package that it was met in, and reads its bytes at once.
func (ob *Obtainer) Opened(it *item.Item) func(context.Context) *Outcome {
	body, err := ob.Packages.ReadMember(it.Ask.Opened, it.Path)
	return func(ctx context.Context) *Outcome { return ob.packaged(ctx, it, body, err) }
}

// Body obtains a resource of bytes at hand, or by itself where they are not as promised.
func (ob *Obtainer) Body(it *item.Item, body []byte) func(context.Context) *Outcome {
	return func(ctx context.Context) *Outcome {
		o, err := ob.representMember(ctx, it, body)
		if err != nil {
			return ob.Obtain(ctx, it)
		}
		return o
	}
}
