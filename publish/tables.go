package publish

import (
	"bytes"
	"compress/flate"
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/rsbridge/rsbridge/internal/accept"
	"github.com/rsbridge/rsbridge/publish/offer"
	"github.com/rsbridge/rsbridge/publish/pages"
)

// Documents as tables: NAME.xml has the pages NAME.html, NAME.2.html, and so on. A browser is led there. The
// address of a document answers with XML or leads away, so a cache between never holds a page in its
// place, and needs no Vary.

// navigates tells a person in a browser from a program. Some programs name HTML without meaning it,
// or like a browser does: they get XML if they take any.
func navigates(r *http.Request) bool {
	page, named := accept.Weight(r.Header["Accept"], "text/html")
	xml, _ := accept.Weight(r.Header["Accept"], xmlType, "text/xml")
	if !named || page <= xml {
		return false
	}
	return xml == 0 || r.Header.Get("Sec-Fetch-Dest") == "document" || r.Header.Get("Upgrade-Insecure-Requests") == "1"
}

// seePage leads a browser from the address of a document to its page.
func seePage(w http.ResponseWriter, document string) error {
	h := w.Header()
	h.Set("Location", pages.PageOf(document, 1))
	h.Set("Cache-Control", "no-store")
	h.Set("Vary", "Accept, Sec-Fetch-Dest, Upgrade-Insecure-Requests")
	w.WriteHeader(http.StatusSeeOther)
	return nil
}

// tableOf gives the document of a page and the number of the page.
func tableOf(path string) (document string, n int, ok bool) {
	base, ok := strings.CutSuffix(path, ".html")
	n = 1
	if i := strings.LastIndexByte(base, '.'); i > strings.LastIndexByte(base, '/') {
		var err error
		if n, err = strconv.Atoi(base[i+1:]); err != nil || n < 2 || strconv.Itoa(n) != base[i+1:] {
			return "", 0, false
		}
		base = base[:i]
	}
	return base + ".xml", n, ok
}

// serveTable answers for the page of a document below /SET/.
func (s *set) serveTable(w http.ResponseWriter, r *http.Request, snap *snapshot, path string) error {
	xml, n, ok := tableOf(path)
	if !ok {
		return errNoDocument
	}
	head, rest, more := strings.Cut(xml, "/")
	var d *document
	var err error
	switch {
	case xml == "capabilitylist.xml":
		d, err = s.capabilityListDoc(snap)
	case !more:
		d, err = snap.document(r.Context(), xml)
	case head == "archives":
		d, err = s.archive.document(r.Context(), rest)
	default:
		rec := s.packageOf(xml)
		if rec == nil || rec.Manifest != xml {
			return errNoDocument
		}
		f, _, err := s.files.Store.Open(r.Context(), xml, 0, -1)
		if err != nil {
			return errNoDocument
		}
		defer f.Close()
		page, err := pages.ListPage(r.Context(), s.p.site(), s.people(w, r, snap), s.at.url+"/"+xml, f, n)
		return s.p.sendPage(w, r, page, noPage(err))
	}
	if err != nil {
		return err
	}
	return s.p.sendTable(w, r, s.people(w, r, snap), s.at.url+"/"+xml, d, n)
}

// serveSourceTable answers for the page of the Source Description, or of a part of it.
func (p *Publisher) serveSourceTable(w http.ResponseWriter, r *http.Request, path string) error {
	xml, n, ok := tableOf(path)
	if !ok {
		return errNoDocument
	}
	part := 0
	if digits, is := strings.CutPrefix(strings.TrimSuffix(xml, ".xml"), "/sourcedescription-"); is {
		if part, ok = pageNumber(digits); !ok {
			return errNoDocument
		}
	} else if xml != "/sourcedescription.xml" {
		return errNoDocument
	}
	d, err := p.sourceDescription(part)
	if err != nil {
		return err
	}
	address := p.wellKnown()
	if part > 0 {
		address = p.base + xml
	}
	return p.sendTable(w, r, nil, address, d, n)
}

// sendTable answers with page n of a document.
func (p *Publisher) sendTable(w http.ResponseWriter, r *http.Request, set *pages.Set, address string, d *document, n int) error {
	key := nameTag("page %s %s %s %d %v", layout, d.etag, address, n, set != nil && set.Static)
	page, err := p.cache.Get(r.Context(), key, func() (*document, error) {
		body, err := d.body.Deflate()
		if err != nil {
			return nil, err
		}
		page, err := pages.ListPage(r.Context(), p.site(), set, address, untilDone{r.Context(), flate.NewReader(bytes.NewReader(body.Deflated))}, n)
		if err != nil {
			return nil, noPage(err)
		}
		return packed(page, offer.HTMLType)
	})
	return p.send(w, r, page, err)
}

func noPage(err error) error {
	if errors.Is(err, pages.ErrNoPage) {
		return notFound("This document has no page of that number.")
	}
	return err
}

// untilDone ends a reading when nobody waits for it any more.
type untilDone struct {
	ctx context.Context
	r   io.Reader
}

func (u untilDone) Read(p []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	return u.r.Read(p)
}
