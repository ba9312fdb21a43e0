package fetch

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"sync"

	"github.com/rsbridge/rsbridge/internal/clip"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// Contexts are the JSON-LD contexts of representations, as one run had them.
// They come from permitted hosts only.
type Contexts struct {
	fetch *Client

	mu  sync.Mutex
	had map[string]*heldContext
}

type heldContext struct {
	mu   sync.Mutex // held by the fetching caller; callers for another context do not wait
	done bool
	doc  []byte
	at   string // its address after redirects
	err  error  // why it could not be had
}

const (
	acceptContext = "application/ld+json, application/json;q=0.9"
	keptContexts  = 100 // a source may name another in every resource
)

// NewContexts are none yet.
func NewContexts(f *Client) *Contexts { return &Contexts{fetch: f} }

// Get is the document at an address, and its address after redirects. Callers for the same
// context wait for one request.
func (c *Contexts) Get(ctx context.Context, address string) (doc []byte, at string, err error) {
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
		h.doc, h.at, h.err = c.fetchContext(ctx, address, true)
		h.done = ctx.Err() == nil
	}
	return h.doc, h.at, h.err
}

// Forget ends a run: the next one asks for them again.
func (c *Contexts) Forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.had = nil
}

// fetchContext fetches a context; a page may link to it (as https://schema.org does).
func (c *Contexts) fetchContext(ctx context.Context, address string, link bool) (doc []byte, at string, err error) {
	a, err := c.fetch.Get(ctx, Request{URL: address, Accept: acceptContext, Gzip: true, MaxBytes: c.fetch.lim.Page, Attempts: 2, Fresh: true})
	if err != nil {
		return nil, "", err
	}
	if bytes.HasPrefix(bytes.TrimLeft(a.Body, "\xef\xbb\xbf \t\r\n"), []byte("{")) {
		return a.Body, a.URL, nil
	}
	if base, err := url.Parse(a.URL); err == nil && link {
		for _, target := range resourcesync.HeaderLinks(a.Header.Values("Link"), resourcesync.RelAlternate) {
			if u, err := base.Parse(target); err == nil && c.fetch.Allowed(u) == nil {
				return c.fetchContext(ctx, u.String(), false)
			}
		}
	}
	return nil, "", fmt.Errorf("%s is no JSON object", clip.Middle(a.URL))
}
