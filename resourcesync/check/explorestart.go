package check

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"

	"github.com/rsbridge/rsbridge/resourcesync"
)

// This file finds the documents of a site: an address that is none itself may
// link to some (specification, section 6.3).

const maxPage = 4 << 20 // bytes of a page or robots.txt

// start explores the address of Explore.
func (x *explorer) start(ctx context.Context, n *Node) error {
	got, err := x.o.Fetch(ctx, n.Location)
	if err != nil {
		n.Faults = append(n.Faults, err.Error())
		return fmt.Errorf("resourcesync: exploring %s: %w", clip(n.Location), err)
	}
	defer got.Body.Close()
	x.read++
	x.seen[n.Location] = true
	var page []byte
	if got.Status == 200 {
		body, err := x.body(n, got)
		if err != nil {
			n.Faults = append(n.Faults, err.Error())
			return fmt.Errorf("resourcesync: exploring %s: %w", clip(n.Location), err)
		}
		kept := &prefix{most: maxPage}
		leads := x.parse(ctx, n, got, io.TeeReader(body, kept), false, "", "")
		if n.Kind != "" {
			got.Body.Close()
			x.follow(ctx, n, leads, x.o.Depth)
			return nil
		}
		if name := resourcesync.RootName(kept.data); name == "urlset" || name == "sitemapindex" || errors.Is(x.failed, resourcesync.ErrDialect) {
			return x.failed
		}
		// The reader stopped at the root element; the rest of the page has links.
		_, _ = io.CopyN(kept, body, maxPage) // a part is better than nothing
		page = kept.data
	}
	n.Kind = "page"
	if err := x.site(ctx, n, got, page); err != nil {
		if got.Status != 200 {
			n.Faults = append(n.Faults, fmt.Sprintf("it cannot be fetched: status %d", got.Status))
		}
		n.Faults = append(n.Faults, err.Error())
		return fmt.Errorf("resourcesync: exploring %s: %w", clip(n.Location), err)
	}
	n.Faults, n.Entries = nil, int64(len(n.Children))
	return nil
}

// prefix keeps the first bytes written to it.
type prefix struct {
	data []byte
	most int
}

func (p *prefix) Write(b []byte) (int, error) {
	p.data = append(p.data, b[:min(len(b), p.most-len(p.data))]...)
	return len(b), nil
}

// site goes on with the ways into a site.
func (x *explorer) site(ctx context.Context, n *Node, got *Fetched, page []byte) error {
	ways, err := fetch(x.o.Fetch).ways(ctx, n.base(), got.Links, page)
	if err != nil {
		return err
	}
	var leads []lead
	for _, way := range ways[:min(len(ways), x.o.MaxChildren)] {
		leads = append(leads, lead{loc: way})
	}
	x.follow(ctx, n, leads, max(x.o.Depth, 1))
	return nil
}

// fetch gets an address, as CheckerOptions.Fetch says.
type fetch func(ctx context.Context, url string) (*Fetched, error)

// ways looks for the ways into a site, at the address of one of its pages:
// the well-known address, Link headers and links of the page, or else robots.txt.
// There is one at least.
func (f fetch) ways(ctx context.Context, address string, links []string, page []byte) (ways []string, err error) {
	base, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	for _, target := range resourcesync.HeaderLinks(links, resourcesync.RelResourceSync) {
		if u, err := base.Parse(target); err == nil {
			ways = append(ways, u.String())
		}
	}
	ways = append(ways, resourcesync.PageLinks(bytes.NewReader(page), base)...)
	if base.Host != "" {
		wellKnown := (&url.URL{Scheme: base.Scheme, Host: base.Host, Path: "/.well-known/resourcesync"}).String()
		if f.offers(ctx, wellKnown) {
			ways = append([]string{wellKnown}, ways...)
		} else if len(ways) == 0 {
			ways = f.robots(ctx, base)
		}
	}
	if len(ways) == 0 {
		return nil, errors.New("it is no ResourceSync document, and neither links of the page, the well-known address nor robots.txt lead to one; give the address of a Source Description, a Capability List or a list")
	}
	for i := 0; i < len(ways); i++ { // each once
		ways = append(ways[:i+1], slices.DeleteFunc(ways[i+1:], func(way string) bool { return way == ways[i] })...)
	}
	return ways, nil
}

// offers tells whether there is something at an address.
func (f fetch) offers(ctx context.Context, address string) bool {
	got, err := f(ctx, address)
	if err != nil {
		return false
	}
	got.Body.Close()
	return got.Status == 200
}

// robots gives the addresses of Sitemap lines in robots.txt.
func (f fetch) robots(ctx context.Context, base *url.URL) []string {
	got, err := f(ctx, (&url.URL{Scheme: base.Scheme, Host: base.Host, Path: "/robots.txt"}).String())
	if err != nil {
		return nil
	}
	defer got.Body.Close()
	if got.Status != 200 {
		return nil
	}
	text, err := io.ReadAll(io.LimitReader(got.document(), maxPage))
	if err != nil {
		return nil
	}
	return resourcesync.RobotsLinks(string(text), base)
}
