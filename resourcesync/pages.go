package resourcesync

import (
	"cmp"
	"crypto/sha256"
	"io"
	"net/url"
)

// The framework divides a long list with an index. Some sources divide it into pages instead:
// the root of each has a link to the next one, as in feeds. One page alone is not the list.

// RelNext leads to the next page of a document.
const RelNext = "next"

// Page is a further page of a document.
type Page struct {
	URL         string // after redirects
	ContentType string // of its header
	Next        string // the next page, if a header names it
	Body        io.Reader
}

const maxPages = 10_000

// HeaderNext gives the next page named in the Link headers of a document from base, "" for none.
func HeaderNext(links []string, base string) string {
	u, err := url.Parse(base)
	if err != nil {
		return ""
	}
	for _, target := range HeaderLinks(links, RelNext) {
		if next, err := u.Parse(target); err == nil {
			return next.String()
		}
	}
	return ""
}

// turn opens the next page, io.EOF after the last one. It looks at the root of the page
// before only now, since links may follow the entries.
func (r *Reader) turn() (*Reader, error) {
	if r.page == nil {
		r.page, r.pages = &pageReader{head: &r.head, next: r.o.Next}, map[[32]byte]bool{sha256.Sum256([]byte(r.o.BaseURL)): true}
	}
	next := cmp.Or(r.page.head.Link(RelNext), r.page.next)
	if next == "" || r.o.Page == nil {
		return nil, io.EOF
	}
	s := r.d.s
	switch sum := sha256.Sum256([]byte(next)); {
	case r.pages[sum]:
		return nil, s.Failf(ErrInvalid, "its pages turn in circles: next leads to %s again", clip(next))
	case len(r.pages) == maxPages:
		return nil, s.Failf(ErrLimit, "the document has more than %d pages", maxPages)
	default:
		r.pages[sum] = true
	}
	p, err := r.o.Page(next)
	if err != nil {
		return nil, err
	}
	if p == nil {
		return nil, io.EOF
	}
	o := r.o
	o.BaseURL, o.ContentType, o.Page, o.Next, o.Dialect = p.URL, p.ContentType, nil, "", cmp.Or(r.head.Dialect, o.Dialect)
	o.Part = o.Part || !r.head.Index
	page, err := NewReader(p.Body, o)
	if err != nil {
		return nil, err
	}
	if h := &page.head; h.Meta.Capability != r.head.Meta.Capability || h.Index != r.head.Index || h.Feed != r.head.Feed {
		return nil, s.Failf(ErrInvalid, "its next page %s is another kind of document (capability %q)", clip(next), clip(string(h.Meta.Capability)))
	}
	page.passLinks = r.passLinks
	r.page = &pageReader{head: &page.head, next: p.Next}
	return page, nil
}

// pageReader reads the current page.
type pageReader struct {
	head *Head
	next string
}

// listsLists tells whether an entry of a urlset is a document of the same kind. Some sources write
// their index as urlset.
func listsLists(c Capability, e *Entry) bool {
	m := &e.Meta
	switch {
	case c == "" || c.Manifest() || c.Notification() || m.Change != "":
		return false
	case m.Capability != "":
		return m.Capability == c
	case m.Type != "" || m.Length >= 0 || m.Path != "" || !m.Hash.IsZero(): // it tells of a resource or a package
		return false
	case c == ResourceList:
		return !m.At.IsZero() || !m.Completed.IsZero()
	case c == ChangeList:
		return !m.From.IsZero() || !m.Until.IsZero()
	}
	return false
}

// peek reads the first entries ahead. They tell whether a urlset is an index: one entry alone may be
// wrong.
func (r *Reader) peek() {
	if r.head.Index || r.o.Part || r.d.strict || !r.atEntry || !r.signs.Meta {
		return
	}
	for r.atEntry && len(r.ahead) < 2 {
		var e Entry
		if r.aheadErr = r.own(&e); r.aheadErr != nil {
			return
		}
		if r.ahead = append(r.ahead, e); !listsLists(r.head.Meta.Capability, &e) {
			return
		}
		if r.aheadErr = r.toEntry(); r.aheadErr != nil {
			return
		}
	}
	r.head.Index = true
	r.aheadErr = r.d.lapse("index as urlset", "its entries are documents of its own kind (%s): it is read as an index, and should be a <sitemapindex>", r.head.Meta.Capability)
	r.head.Warnings = r.d.warn.list
}
