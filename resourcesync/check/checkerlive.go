package check

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"mime"
	"net/url"
	"strings"
	"time"

	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/rdfres/codec"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// This file fetches a sample of the resources of a set: rules 67, 70, 106 to 112, 124, 128.

func (c *Checker) live(ctx context.Context, d *seen) error {
	told := map[string]bool{}
	for _, last := range []bool{true, false} { // a resource is fetched once, by its last entry in the sample
		for i := range c.cover.sample {
			e := &c.cover.sample[i]
			if last && !c.isLast(e) || told[e.Loc] {
				continue
			}
			told[e.Loc] = true
			if err := c.resource(ctx, d, e); err != nil {
				return err
			}
		}
	}
	return nil
}

// isLast tells an entry without later changes of its resource.
func (c *Checker) isLast(e *resourcesync.Entry) bool {
	last := c.cover.changes[e.Loc]
	return last.change == "" || e.Meta.Change != "" && !e.Meta.DateTime.Before(last.at)
}

func (c *Checker) resource(ctx context.Context, d *seen, e *resourcesync.Entry) error {
	last := c.cover.changes[e.Loc]
	got, err := c.o.Fetch(ctx, e.Loc)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		c.find(d, 107, SeverityWarning, 0, "the resource %s cannot be fetched: %v", clip(e.Loc), err)
		return nil
	}
	defer got.Body.Close()
	if last.change == resourcesync.Deleted || e.Meta.Change == resourcesync.Deleted && last.change == "" {
		if got.Status == 200 {
			c.find(d, 112, SeverityInfo, 0, "%s was deleted, but answers 200", clip(e.Loc))
		}
		return nil
	}
	if got.Status != 200 {
		c.find(d, 107, SeverityWarning, 0, "the resource %s answers %d", clip(e.Loc), got.Status)
		return nil
	}
	got.Body = c.resourceBody(d, 0, e, got.ContentType, got.Body)
	if err := c.coversLink(ctx, d, e, got); err != nil {
		return err
	}
	if !c.isLast(e) {
		return nil
	}
	if err := c.sameAsPromised(ctx, d, e.Loc, promise{&e.Meta.Hash, e.Meta.Length, e.Meta.Type, e.Meta.Encoding, e.LastMod}, got, [4]int{107, 108, 109, 110}); err != nil {
		return err
	}
	for i := range e.Links {
		if err := c.linked(ctx, d, e, &e.Links[i]); err != nil {
			return err
		}
	}
	return nil
}

// rootBytes are enough for the root of a document.
const rootBytes = 16 << 10

// resourceBody is rule 70 for the body of an entry: it is no list, though no capability says
// that it is one. The body is given from its beginning.
func (c *Checker) resourceBody(d *seen, line int, e *resourcesync.Entry, contentType string, body io.ReadCloser) io.ReadCloser {
	in := bufio.NewReaderSize(body, rootBytes)
	first, _ := in.Peek(rootBytes) // a failure comes again with the read of the body
	plain, err := unpacked(bytes.NewReader(first))
	if err == nil && e.Meta.Capability == "" { // else the check of the document has told
		root, _ := io.ReadAll(io.LimitReader(plain, rootBytes)) // cut off, when it is packed
		typ := resourcesync.NormalizeType(cmp.Or(e.Meta.Type, contentType))
		list := ""
		switch kind := resourcesync.DocumentKind(root); {
		case kind != "":
			c.find(d, 70, SeverityError, line, "the entry %s leads to a %s, which is no resource", clip(e.Loc), kind)
		case resourcesync.IsTextList(root) && !isTable(typ):
			list = "list of addresses as text"
		case isArrayOfAddresses(root):
			list = "list of addresses as JSON"
		case resourcesync.IsFeed(root):
			list = "feed"
		case isPageOfLinks(root):
			list = "page of links"
		}
		if list != "" {
			c.find(d, 70, SeverityWarning, line, "the entry %s leads to a %s: mirrors do not follow it", clip(e.Loc), list)
		}
	}
	return struct {
		io.Reader
		io.Closer
	}{in, body}
}

// promise is a document's statement about a resource.
type promise struct {
	hash           *resourcesync.Hashes
	length         int64
	typ, encoding  string
	lastModifiedAt time.Time
}

// sameAsPromised compares an answer with its promise; rules are those for
// length, encoding, type and hash.
func (c *Checker) sameAsPromised(ctx context.Context, d *seen, loc string, p promise, got *Fetched, rules [4]int) error {
	if p.typ != "" && got.ContentType != "" && resourcesync.NormalizeType(p.typ) != resourcesync.NormalizeType(got.ContentType) {
		c.find(d, rules[2], SeverityWarning, 0, "%s is of type %q, promised was %q", clip(loc), clip(got.ContentType), clip(p.typ))
	}
	if p.encoding != got.ContentEncoding {
		c.find(d, rules[1], SeverityWarning, 0, "%s has the content coding %q, promised was %q", clip(loc), clip(got.ContentEncoding), clip(p.encoding))
		return nil // length and hash are of the coded body
	}
	sums := newDigests()
	if err := c.readBody(d, 0, loc, p, got.ContentType, got.Body, sums); err != nil {
		if ctx.Err() == nil {
			c.find(d, rules[0], SeverityWarning, 0, "the resource %s cannot be fetched: %v", clip(loc), err)
		}
		return ctx.Err()
	}
	what := "the resource " + clip(loc)
	c.promises(d, rules[0], SeverityWarning, 0, what, &resourcesync.Hashes{}, p.length, sums)
	c.promises(d, rules[3], SeverityWarning, 0, what, p.hash, -1, sums)
	if !p.lastModifiedAt.IsZero() && got.LastModified != "" {
		at, err := time.Parse("Mon, 02 Jan 2006 15:04:05 GMT", got.LastModified)
		if err == nil && !at.Equal(p.lastModifiedAt.Truncate(time.Second)) {
			c.find(d, 111, SeverityWarning, 0, "%s was last modified %s, lastmod is %s", clip(loc), resourcesync.FormatTime(at), resourcesync.FormatTime(p.lastModifiedAt))
		}
	}
	return nil
}

// mostRDF bounds an RDF body and its expansion.
const mostRDF = 64 << 20

// readBody reads a body to its end, and is rules 124 and 128: RDF can be read as such, and is not empty
// without a promise. The error is of the read.
func (c *Checker) readBody(d *seen, line int, loc string, p promise, contentType string, body io.Reader, sums *digests) error {
	in := &failing{r: io.TeeReader(body, sums)}
	if format, ok := formatOf(loc, p.typ, contentType); ok {
		_, params, _ := mime.ParseMediaType(contentType)
		plain, err := unpacked(in)
		if err == nil {
			for _, err = range codec.Read(plain, format, rdfres.ReadOptions{Base: loc, Charset: params["charset"], MaxBytes: mostRDF, Lax: true}) {
				if err != nil {
					break
				}
			}
		}
		switch {
		case in.err != nil:
		case sums.size == 0 && p.length != 0 && !(p.length < 0 && sums.prove(p.hash)):
			c.find(d, 128, SeverityWarning, line, "the resource %s has no bytes, and neither a length of 0 nor the hash of nothing is promised: mirrors do not believe it at once", clip(loc))
		case sums.size == 0:
		case err == nil:
		case errors.Is(err, rdfres.ErrRemoteContext):
			c.find(d, 124, SeverityInfo, line, "the resource %s was not read as RDF, since its context is elsewhere: %v", clip(loc), err)
		default:
			c.find(d, 124, SeverityWarning, line, "the resource %s cannot be read as RDF (%s): %v", clip(loc), format, err)
		}
	}
	if in.err == nil {
		_, in.err = io.Copy(io.Discard, in)
	}
	return in.err
}

// failing keeps the failure of a reader.
type failing struct {
	r   io.Reader
	err error
}

func (f *failing) Read(p []byte) (int, error) {
	n, err := f.r.Read(p)
	if err != nil && err != io.EOF {
		f.err = err
	}
	return n, err
}

// formatOf is the format of RDF by a media type, or by the suffix of an address, if nothing else has those.
func formatOf(loc string, types ...string) (rdfres.Format, bool) {
	for _, t := range types {
		switch t = resourcesync.NormalizeType(t); t {
		case "", "application/octet-stream", "application/gzip":
			continue
		case "text/plain", "application/xml", "text/xml", "application/json":
			return "", false
		}
		return rdfres.FormatByMediaType(t)
	}
	u, err := url.Parse(loc)
	if err != nil {
		return "", false
	}
	name := strings.TrimSuffix(strings.ToLower(u.Path), ".gz")
	if strings.HasSuffix(name, ".xml") || strings.HasSuffix(name, ".json") {
		return "", false
	}
	return rdfres.FormatBySuffix(name)
}

// linked is rule 106. The entry promises a duplicate.
func (c *Checker) linked(ctx context.Context, d *seen, e *resourcesync.Entry, l *resourcesync.Link) error {
	p := promise{&l.Hash, l.Length, l.Type, l.Encoding, time.Time{}}
	switch m := &e.Meta; {
	case !resourcesync.HasScheme(l.Href) || l.Path != "":
		return nil
	case l.Rel == resourcesync.RelDuplicate:
		p = promise{&m.Hash, m.Length, m.Type, m.Encoding, time.Time{}}
	case l.Type == "" && l.Length < 0 && l.Hash.IsZero():
		return nil
	}
	got, err := c.o.Fetch(ctx, l.Href)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		c.find(d, 106, SeverityWarning, 0, "the %s link %s cannot be fetched: %v", clip(l.Rel), clip(l.Href), err)
		return nil
	}
	defer got.Body.Close()
	if got.Status != 200 {
		c.find(d, 106, SeverityWarning, 0, "the %s link %s answers %d", clip(l.Rel), clip(l.Href), got.Status)
		return nil
	}
	return c.sameAsPromised(ctx, d, l.Href, p, got, [4]int{106, 106, 106, 106})
}

// resolve gives a reference as an address, if it can.
func resolve(base, ref string) string {
	u, err := url.Parse(base)
	if err != nil {
		return ref
	}
	if u, err = u.Parse(ref); err != nil {
		return ref
	}
	return u.String()
}

// coversLink is rule 67: a resourcesync link of a resource leads to a Capability
// List of its set.
func (c *Checker) coversLink(ctx context.Context, d *seen, e *resourcesync.Entry, got *Fetched) error {
	target := "" // the first
	for _, l := range resourcesync.HeaderLinks(got.Links, resourcesync.RelResourceSync) {
		if !resourcesync.HasScheme(l) {
			l = resolve(e.Loc, l)
		}
		if d.isAt(l) {
			return nil
		}
		if target == "" {
			target = l
		}
	}
	if target == "" {
		return nil
	}
	outer := c.cover
	c.cover = nil
	defer func() { c.cover = outer }()
	list, err := c.document(ctx, target)
	if err != nil {
		return err
	}
	if list.problem != "" {
		c.find(d, 67, SeverityError, 0, "%s has a resourcesync link to %s: %s", clip(e.Loc), clip(target), list.problem)
	} else if k := list.head.Meta.Capability; k != resourcesync.CapabilityList {
		c.find(d, 67, SeverityError, 0, "%s has a resourcesync link to %s, which has the capability %q, want capabilitylist", clip(e.Loc), clip(target), clip(string(k)))
	}
	return nil
}
