package feed

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"slices"
	"time"

	"github.com/rsbridge/rsbridge/destination/fetch"
	"github.com/rsbridge/rsbridge/internal/clip"
	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// Some sources divide a list into pages, each with a link to the next one (rel="next"). All
// pages are downloaded together, behind each other in one file, and read as one document:
// without one of them nothing can be concluded from the others.

// page is one of them.
type listPage struct {
	asked, url     string // url: after redirects
	next           string
	etag, modified string
	contentType    string
	entries        rdfres.Digest // its entries
	start, size    int64         // in the file of the download

	at, from, until time.Time // of its root
}

// maxPages bounds the pages of a document.
const maxPages = 10_000

// pageReads bounds the new beginnings of a list with changing pages.
const pageReads = 3

// errPages marks a document with missing or unmatched pages.
var errPages = errors.New("pages")

// list downloads a document with all its pages. siblings are the parts of its index, nil for
// none: no part is the next page of another.
func (src *Documents) list(ctx context.Context, r fetch.Request, siblings map[string]bool) (*Download, error) {
	for try := 1; ; try++ {
		dl, err := src.download(ctx, r)
		if err != nil || dl.NotModified {
			return dl, err
		}
		dl.part = siblings != nil
		settled, err := src.turn(ctx, dl, r, siblings)
		if err == nil && settled {
			return dl, nil
		}
		if cerr := dl.Close(); err != nil || cerr != nil {
			return nil, errors.Join(err, cerr)
		}
		if try == pageReads {
			return nil, fmt.Errorf("%s: its %w change while they are read: nothing was concluded from it", clip.Middle(r.URL), errPages)
		}
		r.ETag, r.Modified, r.Unchanged = "", "", nil
	}
}

// turn downloads the further pages of a document. settled tells whether no page changed while
// others were read: an entry could have escaped all of them.
func (src *Documents) turn(ctx context.Context, dl *Download, r fetch.Request, siblings map[string]bool) (settled bool, err error) {
	rd, err := src.reader(dl)
	if err != nil {
		return true, nil // told by its reader
	}
	h := rd.Head()
	if prev := h.Link("prev"); prev != "" && prev != dl.URL && prev != r.URL && !siblings[prev] && h.Meta.From.IsZero() {
		return false, fmt.Errorf("%s is a later one of the %w of a list (prev leads to %s): give the address of the first", clip.Middle(dl.URL), errPages, clip.Middle(prev))
	}
	next := cmp.Or(h.Link(resourcesync.RelNext), resourcesync.HeaderNext(dl.Header.Values("Link"), dl.URL))
	if dl.ends = next; next == "" || siblings[next] {
		return true, nil
	}
	seen := map[string]bool{r.URL: true}
	sum := sha256.New()
	p := dl
	for asked := r.URL; ; {
		at, err := src.page(p, asked)
		if err != nil {
			return false, err
		}
		if p != dl {
			if at.start, err = dl.append(p); err != nil {
				return false, err
			}
		}
		dl.pages = append(dl.pages, *at)
		sum.Write(p.Digest[:])
		if asked = at.next; asked == "" || siblings[asked] {
			dl.ends = asked
			break
		}
		switch {
		case seen[asked]:
			return false, fmt.Errorf("%s: its %w turn in circles: next leads to %s again", clip.Middle(r.URL), errPages, clip.Middle(asked))
		case len(dl.pages) == maxPages:
			return false, fmt.Errorf("%s has more than %d %w", clip.Middle(r.URL), maxPages, errPages)
		}
		seen[asked] = true
		if p, err = src.download(ctx, fetch.Request{URL: asked, Accept: r.Accept, Gzip: true, MaxBytes: r.MaxBytes, Fresh: r.Fresh, Attempts: r.Attempts}); err != nil {
			return false, pageError(asked, err)
		}
	}
	sum.Sum(dl.Digest[:0])
	for i := range dl.pages {
		if same, err := src.samePage(ctx, &dl.pages[i], r); err != nil || !same {
			return false, err
		}
	}
	return true, nil
}

// pageError is of a page: a missing page does not tell of a missing list.
func pageError(address string, err error) error {
	if IsGone(err) {
		err = errors.New(err.Error())
	}
	return fmt.Errorf("%w: without page %s the list is incomplete: %w", errPages, clip.Middle(address), err)
}

// page reads a downloaded page.
func (src *Documents) page(dl *Download, asked string) (*listPage, error) {
	r, err := src.readerWith(dl, src.readerOptions(dl.URL))
	if err != nil {
		return nil, pageError(asked, err)
	}
	p := &listPage{asked: asked, url: dl.URL, etag: dl.etag(), modified: dl.modified(), contentType: dl.Header.Get("Content-Type"), size: dl.Size}
	sum := sha256.New()
	if err := eachEntry(r, dl.URL, func(e *resourcesync.Entry) error { writeEntry(sum, e); return nil }); err != nil {
		return nil, pageError(asked, err)
	}
	sum.Sum(p.entries[:0])
	m := &r.Head().Meta
	p.at, p.from, p.until = m.At, m.From, m.Until
	p.next = cmp.Or(r.Head().Link(resourcesync.RelNext), resourcesync.HeaderNext(dl.Header.Values("Link"), dl.URL))
	return p, nil
}

func writeEntry(h hash.Hash, e *resourcesync.Entry) {
	m := &e.Meta
	fmt.Fprintf(h, "%q %v %q %v %v %d\n", e.Loc, e.LastMod, m.Change, m.DateTime, m.Hash, m.Length)
}

// samePage asks whether a page still has the same entries.
func (src *Documents) samePage(ctx context.Context, p *listPage, r fetch.Request) (bool, error) {
	dl, err := src.download(ctx, fetch.Request{URL: p.asked, ETag: p.etag, Modified: p.modified, Accept: r.Accept, Gzip: true, MaxBytes: r.MaxBytes, Fresh: r.Fresh, Attempts: r.Attempts})
	if err != nil {
		return false, pageError(p.asked, err)
	}
	defer dl.Close()
	if dl.NotModified {
		return true, nil
	}
	now, err := src.page(dl, p.asked)
	return err == nil && now.entries == p.entries && now.next == p.next, err
}

// append moves the bytes of a further page to the end of the file.
func (d *Download) append(p *Download) (start int64, err error) {
	if n := len(d.pages); n > 0 {
		start = d.pages[n-1].start + d.pages[n-1].size
	}
	return start, d.Body.Append(p.Body, start)
}

// span makes the times of a root those of all pages: from the earliest, and open if one is.
func (d *Download) span(h *resourcesync.Head) {
	earlier := func(t *time.Time, of time.Time) {
		if of.Before(*t) && !of.IsZero() {
			*t = of
		}
	}
	for _, p := range d.pages {
		earlier(&h.Meta.At, p.at)
		earlier(&h.Meta.From, p.from)
		if !p.until.Equal(h.Meta.Until) {
			h.Meta.Until = time.Time{}
		}
	}
}

// page opens a further page of a document. If next leads to another part of the document's index,
// there are no more pages.
func (d *Download) page(address string) (*resourcesync.Page, error) {
	i := slices.IndexFunc(d.pages, func(p listPage) bool { return p.asked == address })
	switch {
	case i > 0:
	case address == d.ends:
		return nil, nil
	default:
		return nil, fmt.Errorf("%s: its %w cannot be followed, since next stands behind the entries (%s)", clip.Middle(d.URL), errPages, clip.Middle(address))
	}
	p := &d.pages[i]
	body, err := d.Section(p.start, p.size, p.url)
	if err != nil {
		return nil, err
	}
	return &resourcesync.Page{URL: p.url, ContentType: p.contentType, Next: p.next, Body: body}, nil
}
