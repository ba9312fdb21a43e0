package publish

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/rsbridge/rsbridge/changetrack"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/publish/packing"
	"github.com/rsbridge/rsbridge/publish/patch"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// Handler serves the public addresses: /.well-known/resourcesync, /SET/..., and the pages for
// people. It routes on the escaped path, so an escaped slash is not a slash. It answers below the
// path of the base URL as well as at the root, since a proxy in front may send either.
//
// GET, HEAD and OPTIONS; bodies have a length, a strong ETag, and go out as gzip to clients
// accepting it. Any origin may read them.
func (p *Publisher) Handler() http.Handler { return http.HandlerFunc(p.serve) }

func (p *Publisher) serve(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Access-Control-Expose-Headers", "*")
	switch r.Method {
	case http.MethodGet, http.MethodHead:
	case http.MethodOptions:
		h.Set("Allow", "GET, HEAD, OPTIONS")
		h.Set("Access-Control-Allow-Methods", "GET, HEAD, OPTIONS")
		h.Set("Access-Control-Allow-Headers", "Accept, Accept-Datetime, If-Modified-Since, If-None-Match, Range")
		w.WriteHeader(http.StatusNoContent)
		return
	default:
		h.Set("Allow", "GET, HEAD, OPTIONS")
		p.fail(w, r, &statusError{code: http.StatusMethodNotAllowed, reason: "This address can only be read."})
		return
	}
	if p.closed.Load() {
		p.fail(w, r, &statusError{code: http.StatusServiceUnavailable, reason: "The source is being closed."})
		return
	}
	if err := p.route(w, r); err != nil {
		p.fail(w, r, err)
	}
}

// below is the escaped path of a request below the base URL.
func (p *Publisher) below(r *http.Request) string {
	path := r.URL.EscapedPath()
	for _, base := range *p.paths.Load() {
		if rest, ok := strings.CutPrefix(path, base); ok && (rest == "" || rest[0] == '/') {
			return rest
		}
	}
	return path
}

func (p *Publisher) route(w http.ResponseWriter, r *http.Request) error {
	path := p.below(r)
	switch path {
	case "", "/":
		return p.serveHome(w, r)
	case "/.well-known/resourcesync":
		if r.URL.RawQuery == "" && navigates(r) {
			return seePage(w, p.base+"/sourcedescription.xml")
		}
		d, err := p.sourceDescription(0)
		return p.send(w, r, d, err)
	case "/favicon.ico", "/favicon.svg":
		return p.serveFavicon(w, r)
	case "/.well-known/void":
		w.Header().Set("Location", p.base+"/about")
		w.WriteHeader(http.StatusFound)
		return nil
	case "/about", "/about.ttl", "/about.jsonld", "/about.nt", "/about.rdf", "/about.html":
		return p.serveSourceAbout(w, r, path)
	case "/robots.txt":
		return p.serveRobots(w, r)
	}
	if digits, ok := strings.CutPrefix(path, "/sourcedescription-"); ok {
		digits, ok := strings.CutSuffix(digits, ".xml")
		n, known := pageNumber(digits)
		if !ok || !known {
			return p.serveSourceTable(w, r, path)
		}
		if r.URL.RawQuery == "" && navigates(r) {
			return seePage(w, p.sourceDescriptionPart(n))
		}
		d, err := p.sourceDescription(n)
		return p.send(w, r, d, err)
	}
	if strings.HasPrefix(path, "/sourcedescription.") {
		return p.serveSourceTable(w, r, path)
	}
	name, rest, more := strings.Cut(path[1:], "/")
	s, snap := p.present(r.Context(), name)
	defer snap.release()
	if s == nil {
		return p.formerSet(r, name, rest)
	}
	if err := snap.unreadable(); err != nil {
		return err
	}
	if !more || rest == "" {
		h := w.Header()
		h.Set("Location", s.at.about())
		w.WriteHeader(http.StatusSeeOther)
		return nil
	}
	return s.route(w, r, snap, rest)
}

// route answers below /SET/. snap is nil before the first publication.
func (s *set) route(w http.ResponseWriter, r *http.Request, snap *snapshot, path string) error {
	ctx := r.Context()
	head, rest, more := strings.Cut(path, "/")
	if document, xml := strings.CutSuffix(path, ".xml"); xml && r.URL.RawQuery == "" && (!more || !entityFolder(head)) && navigates(r) {
		return seePage(w, s.at.url+"/"+document+".xml")
	}
	switch head {
	case "capabilitylist.html":
		if !more {
			return s.serveTable(w, r, snap, path)
		}
	case "capabilitylist.xml":
		if !more {
			return s.serveCapabilityList(w, r, snap)
		}
	case "about", "about.ttl", "about.jsonld", "about.nt", "about.rdf", "about.html":
		if !more {
			return s.serveAbout(w, r, snap, head)
		}
	}
	if snap == nil {
		return notFound("The set %s has not been published yet.", s.cfg.Name).hint("It will be after the first complete scan of its store; ask again then.")
	}
	if (head == "browse.html" || head == "browse" && more) && staysStatic(w, r) {
		return s.serveAlphabet(w, r, snap, path)
	}
	if more {
		switch head {
		case "r", "timegate", "timemap", "history", "compare":
			serve := s.serveDescription
			switch head {
			case "timegate":
				serve = s.serveTimeGate
			case "timemap":
				serve = s.serveTimeMap
			case "history", "compare":
				serve = func(w http.ResponseWriter, r *http.Request, snap *snapshot, rest string) error {
					return s.serveHistory(w, r, snap, head, rest)
				}
			}
			err := serve(w, r, snap, rest)
			if moved := (*movedError)(nil); errors.As(err, &moved) {
				err = s.at.redirect(moved.entity, head, rest, r.URL.RawQuery)
			}
			return err
		case "patch":
			return s.servePatch(w, r, snap, rest)
		case "inventory":
			d, err := snap.inventoryNode(ctx, rest)
			return s.p.send(w, r, d, err)
		case "archives", "resourcedump", "changedump":
			if strings.HasSuffix(path, ".html") {
				return s.serveTable(w, r, snap, path)
			}
			if head != "archives" {
				return s.serveDumpFile(w, r, path)
			}
			d, err := s.archive.document(ctx, rest)
			return s.p.send(w, r, d, err)
		}
		return errNoDocument
	}
	switch {
	case head == "search", head == "browse":
		return s.serveNames(w, r, snap, head)
	case strings.HasSuffix(path, ".html"):
		return s.serveTable(w, r, snap, path)
	}
	d, err := snap.document(ctx, path)
	return s.p.send(w, r, d, err)
}

// entityFolder tells the folders below /SET/ with names of entities from those with documents.
func entityFolder(head string) bool {
	switch head {
	case "r", "timegate", "timemap", "history", "compare", "patch", "inventory":
		return true
	}
	return false
}

// pageNumber reads the number of a part of an index.
func pageNumber(digits string) (int, bool) {
	n, err := strconv.Atoi(digits)
	return n, err == nil && n > 0 && fmt.Sprintf("%05d", n) == digits
}

// numberedList answers for the address of one Change List. A merged one is redirected to the list
// it is in.
func (snap *snapshot) numberedList(ctx context.Context, digits string) (*document, error) {
	s := snap.set
	first, _, _ := strings.Cut(digits, "-")
	n, err := strconv.ParseUint(first, 10, 64)
	if err != nil || fmt.Sprintf("%06d", n) != first {
		return nil, errNoDocument
	}
	if n < snap.lists[0].Number {
		return nil, &statusError{code: http.StatusGone, reason: fmt.Sprintf("Change List %d is no longer kept.", n),
			detail: []string{fmt.Sprintf("The changes since %s are listed at %s/changelist.xml.", resourcesync.FormatTime(snap.lists[0].From), s.at.url)}}
	}
	l, ok := snap.list(n)
	if !ok {
		return nil, errNoDocument
	}
	if listName(l) == "changelist-"+digits {
		return snap.changeListDoc(ctx, l)
	}
	if l.Through == 0 {
		return nil, errNoDocument
	}
	return nil, &statusError{code: http.StatusMovedPermanently, reason: "This Change List is now a part of a longer one.", location: s.at.listAddress(l), detail: []string{s.at.listAddress(l)}}
}

// send answers with a document or hands its error on.
func (p *Publisher) send(w http.ResponseWriter, r *http.Request, d *document, err error) error {
	if err != nil {
		return err
	}
	p.answer(w, r, d)
	return nil
}

func (s *set) servePatch(w http.ResponseWriter, r *http.Request, snap *snapshot, name string) error {
	var kind *patch.Kind
	var digits string
	for _, k := range patch.Kinds {
		if rest, ok := strings.CutSuffix(name, k.Suffix); ok {
			kind, digits = k, rest
		}
	}
	n, err := strconv.ParseUint(digits, 10, 64)
	if kind == nil || err != nil || strconv.FormatUint(n, 10) != digits {
		return errNoDocument
	}
	data, err := snap.kv.Get(r.Context(), keyOf(kind.ID, n))
	if errors.Is(err, kv.ErrNotFound) {
		return notFound("There is no patch of this kind for the change %d.", n).hint("A patch is offered where it is smaller than the representation, as long as its Change List is kept.")
	}
	if err != nil {
		return err
	}
	sum := sha256.Sum256(data)
	s.p.answer(w, r, &document{etag: packing.Tag(sum[:]), contentType: kind.MediaType, immutable: true, body: changetrack.PlainBlob(data)})
	return nil
}

func (p *Publisher) serveRobots(w http.ResponseWriter, r *http.Request) error {
	if !p.o.Robots {
		return errNoDocument
	}
	var b strings.Builder
	b.WriteString("User-agent: *\nAllow: /\n")
	for _, name := range p.names {
		if s := p.lookup(name); s.offers(resourcesync.ResourceList) {
			b.WriteString("Sitemap: " + s.at.url + "/resourcelist.xml\n")
		}
	}
	d, err := packed([]byte(b.String()), "text/plain; charset=utf-8")
	return p.send(w, r, d, err)
}

// unescapePath undoes percent escapes by a client or proxy; names have none of their own.
func unescapePath(s string) (string, error) {
	if strings.IndexByte(s, '%') < 0 {
		return s, nil
	}
	u, err := url.PathUnescape(s)
	if err != nil {
		return "", notFound("The address has a broken percent escape.")
	}
	return u, nil
}
