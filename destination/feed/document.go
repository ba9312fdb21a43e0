package feed

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rsbridge/rsbridge/destination/fetch"
	"github.com/rsbridge/rsbridge/internal/clip"
	"github.com/rsbridge/rsbridge/resourcesync"
)

func (src *Documents) readerOptions(base string) resourcesync.ReaderOptions {
	return resourcesync.ReaderOptions{BaseURL: base, MaxBytes: src.lim.Document, MaxEntries: src.lim.entries, KeepFaulty: true,
		Warn: func(text string) { src.lapses.log(src.log, base, text) }}
}

// lapses are the pardoned faults of documents: each is told once.
type lapses struct {
	mu   sync.Mutex
	told map[uint64]bool
}

const maxLapses = 10_000

func (l *lapses) log(log *slog.Logger, document, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := hash64(document + " " + text)
	if l.told[at] {
		return
	}
	if l.told == nil || len(l.told) >= maxLapses {
		l.told = map[uint64]bool{}
	}
	l.told[at] = true
	log.Warn("a document is not by the specification, and is read all the same", "document", clip.Middle(document), "warning", text)
}

// reader opens a downloaded document with all its pages. A body without any document, such as a
// page for people, gives errNotDocument.
func (src *Documents) reader(dl *Download) (*resourcesync.Reader, error) {
	if dl.ZIP != nil {
		return dl.manifest()
	}
	o := src.readerOptions(dl.URL)
	o.Part = dl.part
	if o.Page = dl.page; len(dl.pages) > 0 {
		o.Next = dl.pages[0].next
	}
	r, err := src.readerWith(dl, o)
	if err == nil {
		dl.span(r.Head())
	}
	return r, err
}

func (src *Documents) readerWith(dl *Download, o resourcesync.ReaderOptions) (*resourcesync.Reader, error) {
	body, err := dl.Open()
	if err != nil {
		return nil, err
	}
	b := bufio.NewReader(src.fetch.Shown(body)) // for the look at its head: the reader has a buffer of its own
	head, err := b.Peek(512)
	if err != nil && err != io.EOF && !errors.Is(err, bufio.ErrBufferFull) {
		return nil, fmt.Errorf("%s: %w", clip.Middle(dl.URL), err)
	}
	if !resourcesync.IsTextList(head) && (notXML(head) || isPage(head, dl.Header.Get("Content-Type"))) {
		return nil, fmt.Errorf("%s: %w: it begins with %s (a login or error page in its place? nothing was changed)", clip.Middle(dl.URL), errNotDocument, strconv.QuoteToASCII(string(head[:min(len(head), 40)])))
	}
	o.ContentType = dl.Header.Get("Content-Type")
	r, err := resourcesync.NewReader(b, o)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", clip.Middle(dl.URL), err)
	}
	if dl.pkg != nil {
		dl.pkg.complete(r.Head())
	}
	dl.index = r.Head().Index
	_, dl.numbered = r.Head().Meta.Sequence()
	return r, nil
}

func notXML(head []byte) bool {
	if len(head) >= 2 && (head[0] == 0xfe && head[1] == 0xff || head[0] == 0xff && head[1] == 0xfe) {
		return false // UTF-16: the reader's business
	}
	head = bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")), " \t\r\n\x00")
	return len(head) == 0 || head[0] != '<'
}

// isPage tells a page for people by its beginning: HTML may begin with any element of its head,
// XHTML with an XML declaration. A body served as a page is one unless its root is a document's.
func isPage(head []byte, contentType string) bool {
	switch strings.ToLower(resourcesync.RootName(head)) {
	case "html", "head", "body", "title", "meta", "link", "base", "style", "script":
		return true
	case "urlset", "sitemapindex":
		return false
	}
	t := fetch.Essence(contentType)
	return t == "text/html" || t == "application/xhtml+xml"
}

// document downloads and opens a document of the given capability; none at all is taken for a
// Resource List.
func (src *Documents) document(ctx context.Context, r fetch.Request, want resourcesync.Capability) (*Download, *resourcesync.Reader, error) {
	return src.documentAmong(ctx, r, nil, want)
}

// documentAmong is Document for a part of an index; siblings are all parts.
func (src *Documents) documentAmong(ctx context.Context, r fetch.Request, siblings map[string]bool, want resourcesync.Capability) (*Download, *resourcesync.Reader, error) {
	r.Accept, r.Gzip, r.MaxBytes = acceptDocument, true, src.lim.Document
	dl, err := src.list(ctx, r, siblings)
	if err != nil {
		return nil, nil, err
	}
	if dl.NotModified {
		return dl, nil, nil
	}
	rd, err := src.openAs(dl, want)
	if err != nil {
		dl.Close()
		return nil, nil, err
	}
	return dl, rd, nil
}

// openAs opens a document of the given capability. A Sitemap index may name feeds beside its
// lists.
func (src *Documents) openAs(dl *Download, want resourcesync.Capability) (*resourcesync.Reader, error) {
	rd, err := src.reader(dl)
	if err != nil {
		return nil, err
	}
	got := rd.Head().Meta.Capability
	if got == want || want == resourcesync.ResourceList && (got == "" || dl.part && rd.Head().Feed) {
		return rd, nil
	}
	return nil, fmt.Errorf("%s was announced as %s and is a document of capability %q (the source contradicts itself: tell who runs it; nothing was changed)", clip.Middle(dl.URL), want, got)
}

// part is a document below an index, or the only document.
type part struct {
	URL         string
	From, Until time.Time
	at          time.Time
	lastmod     time.Time
	old         bool           // a dialect with the newest first
	meta        bool           // the index tells from or until
	sequence    *uint64        // position in the source's log, as the index tells
	pkg         *changePackage // the document is the manifest of this package
	left        bool           // the source names it no more: nothing tells up to when it was written, if it does not
}

// parts lists the documents of an opened document: itself, or those named by its index (and the
// indexes below it), in their order.
func (src *Documents) parts(ctx context.Context, dl *Download, r *resourcesync.Reader, want resourcesync.Capability) ([]part, error) {
	h := r.Head()
	if !h.Index {
		return []part{{URL: dl.URL, From: h.Meta.From, Until: h.Meta.Until, at: h.SnapshotTime()}}, nil
	}
	var out []part
	return out, src.collectParts(ctx, dl.URL, r, want, &out, map[string]bool{dl.URL: true}, 0)
}

func (src *Documents) collectParts(ctx context.Context, address string, r *resourcesync.Reader, want resourcesync.Capability, out *[]part, seen map[string]bool, depth int) error {
	for {
		e, err := r.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("index %s: %w", clip.Middle(address), err)
		}
		if e.Loc == "" {
			return fmt.Errorf("index %s line %d: an entry has no loc; without that document nothing can be concluded", clip.Middle(address), e.Line)
		}
		if seen[e.Loc] {
			if e.Loc == address || depth > 0 {
				return fmt.Errorf("index %s turns in circles: it names %s again", clip.Middle(address), clip.Middle(e.Loc))
			}
			continue
		}
		seen[e.Loc] = true
		if len(*out) >= src.lim.Parts {
			return fmt.Errorf("index %s names more than %d documents", clip.Middle(address), src.lim.Parts)
		}
		p := part{URL: e.Loc, From: e.Meta.From, Until: e.Meta.Until, at: e.Meta.At, lastmod: e.LastMod, old: r.Head().LegacyLinks, meta: !e.Meta.From.IsZero() || !e.Meta.Until.IsZero()}
		if s, ok := e.Meta.Sequence(); ok {
			p.sequence = &s
		}
		*out = append(*out, p)
	}
}

// eachEntry calls f for the entries of an opened document, in order. An entry is valid
// until f returns.
func eachEntry(r *resourcesync.Reader, address string, f func(*resourcesync.Entry) error) error {
	e := &resourcesync.Entry{}
	for {
		err := r.NextInto(e)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", clip.Middle(address), err)
		}
		if err := f(e); err != nil {
			return err
		}
	}
}

// eachPart opens the documents one after the other; an index below an index is
// followed, never in circles.
func (src *Documents) eachPart(ctx context.Context, parts []part, want resourcesync.Capability, f func(part, *Download, *resourcesync.Reader) error) error {
	return src.eachPartNoted(ctx, parts, want, nil, f)
}

// eachPartNoted is eachPart with notes of the opened documents.
func (src *Documents) eachPartNoted(ctx context.Context, parts []part, want resourcesync.Capability, opened *[]listPart, f func(part, *Download, *resourcesync.Reader) error) error {
	return src.eachPartDepth(ctx, parts, want, addresses(parts), 0, opened, f)
}

func addresses(parts []part) map[string]bool {
	names := map[string]bool{}
	for _, p := range parts {
		names[p.URL] = true
	}
	return names
}

// part opens one of the documents of an index; seen are all. A cache may give an older state than the index
// tells of: its missing entries would be taken for deleted, or for applied. So it is asked for past caches.
func (src *Documents) part(ctx context.Context, p part, seen map[string]bool, want resourcesync.Capability) (*Download, *resourcesync.Reader, error) {
	if p.pkg != nil {
		return p.pkg.document(ctx, src)
	}
	for fresh := false; ; fresh = true {
		dl, r, err := src.documentAmong(ctx, fetch.Request{URL: p.URL, Fresh: fresh}, seen, want)
		if err != nil || p.sequence == nil {
			return dl, r, err
		}
		s, ok := r.Head().Meta.Sequence()
		if !ok || s >= *p.sequence {
			return dl, r, nil
		}
		dl.Close()
		if fresh {
			return nil, nil, fmt.Errorf("%s stands at change %d, and its index says that it stands at %d: a cache between here and the source gives what was before; nothing was concluded from it", clip.Middle(p.URL), s, *p.sequence)
		}
		src.log.Warn("a document is older than its index says; it is asked for past caches", "document", p.URL, "sequence", s, "index", *p.sequence)
	}
}

func (src *Documents) eachPartDepth(ctx context.Context, parts []part, want resourcesync.Capability, seen map[string]bool, depth int, opened *[]listPart, f func(part, *Download, *resourcesync.Reader) error) error {
	for _, p := range parts {
		dl, r, err := src.part(ctx, p, seen, want)
		if IsGone(err) {
			return &absentError{p.URL, err}
		}
		if err != nil {
			return err
		}
		if opened != nil {
			*opened = append(*opened, listPart{URL: p.URL, ETag: dl.etag(), Modified: dl.modified(), Digest: dl.Digest.String()})
		}
		if r.Head().Index {
			if depth >= src.lim.depth {
				dl.Close()
				return fmt.Errorf("%s: indexes are nested more than %d deep", clip.Middle(p.URL), src.lim.depth)
			}
			var below []part
			err = src.collectParts(ctx, dl.URL, r, want, &below, seen, depth+1)
			if err == nil {
				err = src.eachPartDepth(ctx, below, want, seen, depth+1, opened, f)
			}
		} else {
			err = f(p, dl, r)
		}
		dl.Close()
		if err != nil {
			return err
		}
	}
	return nil
}
