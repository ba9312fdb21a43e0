package destination

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"sync"

	"github.com/rsbridge/rsbridge/resourcesync"
)

// contexts are the JSON-LD contexts that representations name, as one run had them.
// They are fetched from hosts that may be fetched from, and from no other.
type contexts struct {
	mu  sync.Mutex
	had map[string]*heldContext
}

type heldContext struct {
	mu   sync.Mutex // of who fetches it: those that need another do not wait
	done bool
	doc  []byte
	at   string // its address after redirects
	err  error  // why it could not be had
}

const (
	acceptContext = "application/ld+json, application/json;q=0.9"
	keptContexts  = 100 // a source may name another in every resource
)

func (c *contexts) get(ctx context.Context, d *Destination, address string) (doc []byte, at string, err error) {
	c.mu.Lock()
	h := c.had[address]
	if h == nil {
		if h = new(heldContext); c.had == nil || len(c.had) >= keptContexts {
			c.had = map[string]*heldContext{}
		}
		c.had[address] = h
	}
	c.mu.Unlock()
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.done {
		h.doc, h.at, h.err = d.fetchContext(ctx, address, true)
		h.done = ctx.Err() == nil
	}
	return h.doc, h.at, h.err
}

// forget ends a run: the next one asks for them again.
func (c *contexts) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.had = nil
}

// fetchContext fetches a context; what is a page may link to it (as https://schema.org does).
func (d *Destination) fetchContext(ctx context.Context, address string, link bool) (doc []byte, at string, err error) {
	a, err := d.fetch.get(ctx, request{url: address, accept: acceptContext, gzip: true, max: d.lim.page, attempts: 2, fresh: true})
	if err != nil {
		return nil, "", err
	}
	if bytes.HasPrefix(bytes.TrimLeft(a.body, "\xef\xbb\xbf \t\r\n"), []byte("{")) {
		return a.body, a.url, nil
	}
	if base, err := url.Parse(a.url); err == nil && link {
		for _, target := range resourcesync.HeaderLinks(a.header.Values("Link"), resourcesync.RelAlternate) {
			if u, err := base.Parse(target); err == nil && d.fetch.allowed(u) == nil {
				return d.fetchContext(ctx, u.String(), false)
			}
		}
	}
	return nil, "", fmt.Errorf("%s is no JSON object", shorten(a.url))
}
