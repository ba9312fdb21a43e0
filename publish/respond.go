package publish

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rsbridge/rsbridge/internal/accept"
	"github.com/rsbridge/rsbridge/publish/kept"
	"github.com/rsbridge/rsbridge/publish/offer"
	"github.com/rsbridge/rsbridge/publish/packing"
	"github.com/rsbridge/rsbridge/publish/pages"
)

// errNoDocument: there is no document at an address.
var errNoDocument = errors.New("there is no document at this address")

// statusError is a status and a reason, sent instead of a document.
type statusError struct {
	code   int
	reason string
	detail []string // advice, line by line

	location, link string // headers, or ""
	cache          string // Cache-Control; "": no-cache
	page           []byte // for people, instead of the reason; nil: none
}

const problemType = "application/problem+json"

// problem is the error for programs.
func (e *statusError) problem() []byte {
	body, err := json.Marshal(struct {
		Type   string `json:"type"`
		Title  string `json:"title"`
		Status int    `json:"status"`
		Detail string `json:"detail"`
		Hint   string `json:"hint,omitempty"`
	}{"about:blank", http.StatusText(e.code), e.code, e.reason, strings.Join(e.detail, "\n")})
	if err != nil {
		panic(err) // strings and a number
	}
	return append(body, '\n')
}

func (e *statusError) Error() string { return e.reason }

func notFound(format string, a ...any) *statusError {
	return &statusError{code: http.StatusNotFound, reason: fmt.Sprintf(format, a...)}
}

func (e *statusError) hint(format string, a ...any) *statusError {
	e.detail = append(e.detail, fmt.Sprintf(format, a...))
	return e
}

func httpTime(t time.Time) string { return t.UTC().Format(http.TimeFormat) }

const (
	cacheAsk     = "public, no-cache" // may be kept, must be asked for
	cacheForever = kept.Forever
)

// youngest is the least age for If-Modified-Since: another change may follow within the same
// second.
const youngest = 2 * time.Second

// notModified decides a conditional GET (RFC 9110, 13.2.2). ETags decide. Dates are compared in
// whole seconds, and never for a document younger than youngest.
func notModified(r *http.Request, etag string, modified, now time.Time) bool {
	if inm := r.Header["If-None-Match"]; len(inm) > 0 {
		return accept.Matches(inm, etag)
	}
	ims := r.Header.Get("If-Modified-Since")
	if ims == "" || modified.IsZero() || now.Sub(modified) < youngest {
		return false
	}
	since, err := http.ParseTime(ims)
	return err == nil && !modified.Truncate(time.Second).After(since)
}

var gzipHead = []byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff}

// answer sends a document: conditional, packed for clients accepting it. It keeps headers already
// set.
func (p *Publisher) answer(w http.ResponseWriter, r *http.Request, d *document) {
	h := w.Header()
	packed := accept.Gzip(r.Header["Accept-Encoding"]) && d.body.Length > 0
	h.Add("Vary", "Accept-Encoding")
	if d.linked != nil {
		h.Set("Link", d.linked.header())
	} else if d.link != "" {
		h.Set("Link", d.link)
	}
	if !d.memento.IsZero() {
		h.Set("Memento-Datetime", httpTime(d.memento))
	}
	tag := d.etag
	if packed {
		tag += accept.GzipTag
	}
	h.Set("Etag", `"`+tag+`"`)
	if !d.modified.IsZero() {
		h.Set("Last-Modified", httpTime(d.modified))
	}
	if d.immutable {
		h.Set("Cache-Control", cacheForever)
	} else {
		h.Set("Cache-Control", cacheAsk)
	}
	if notModified(r, d.etag, d.modified, p.now()) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	h.Set("Content-Type", d.contentType)
	if d.contentType == offer.HTMLType {
		h.Set("Content-Security-Policy", p.pagePolicy)
	}
	if packed {
		body, err := d.body.Deflate()
		if err != nil {
			p.fail(w, r, err)
			return
		}
		n := len(gzipHead) + len(body.Deflated) + 8
		h.Set("Content-Encoding", "gzip")
		h.Set("Content-Length", strconv.Itoa(n))
		if r.Method == http.MethodHead {
			return
		}
		var tail [8]byte
		binary.LittleEndian.PutUint32(tail[:], d.body.CRC32)
		binary.LittleEndian.PutUint32(tail[4:], uint32(d.body.Length))
		w.Write(gzipHead)
		w.Write(body.Deflated)
		w.Write(tail[:])
		return
	}
	h.Set("Content-Length", strconv.FormatInt(d.body.Length, 10))
	if r.Method == http.MethodHead {
		return
	}
	if err := packing.Send(w, d.body); err != nil {
		p.log.Error("sending a document", "path", r.URL.EscapedPath(), "error", err)
		panic(http.ErrAbortHandler) // the client must not take it for whole
	}
}

// fail answers with an error: a page for a browser, a problem document (RFC 9457) for others.
func (p *Publisher) fail(w http.ResponseWriter, r *http.Request, err error) {
	var se *statusError
	switch {
	case errors.As(err, &se):
	case errors.Is(err, errNoDocument):
		se = notFound("There is no document at this address.").hint("What this source offers is listed at %s.", p.wellKnown())
	case r.Context().Err() != nil:
		se = &statusError{code: http.StatusServiceUnavailable, reason: "The request ended before the answer was ready."}
	default:
		p.log.Error("answering", "path", r.URL.EscapedPath(), "error", err)
		se = &statusError{code: http.StatusInternalServerError, reason: "The answer could not be made."}
		se.hint("What went wrong is in the log of the server; try again later.")
	}
	h := w.Header()
	for _, name := range []string{"Etag", "Last-Modified", "Content-Length", "Content-Encoding", "Cache-Control", "Memento-Datetime"} {
		h.Del(name)
	}
	h.Set("Cache-Control", cmp.Or(se.cache, "no-cache"))
	vary(h, "Accept")
	if se.location != "" {
		h.Set("Location", se.location)
	}
	if se.link != "" {
		h.Set("Link", se.link)
	}
	body := se.page
	if q, named := accept.Weight(r.Header["Accept"], "text/html"); body == nil && named && q > 0 {
		body = p.errorPage(w, r, se)
	}
	if body != nil {
		h.Set("Content-Type", offer.HTMLType)
		h.Set("Content-Security-Policy", p.pagePolicy)
	} else {
		h.Set("Content-Type", problemType)
		body = se.problem()
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(se.code)
	if r.Method != http.MethodHead {
		w.Write(body)
	}
}

// vary names a header of the request that an answer depends on, once.
func vary(h http.Header, name string) {
	if !slices.Contains(h["Vary"], name) {
		h.Add("Vary", name)
	}
}

// Refuse answers a reader without leave for a set, in the form of all errors. No cache keeps it.
func (p *Publisher) Refuse(w http.ResponseWriter, r *http.Request, status int, reason, hint string) {
	e := &statusError{code: status, reason: reason, cache: "no-store"}
	if hint != "" {
		e.hint("%s", hint)
	}
	w.Header().Set("X-Content-Type-Options", "nosniff")
	p.fail(w, r, e)
}

// errorPage is an error for people. Below a set it has the way to the set, and its search.
func (p *Publisher) errorPage(w http.ResponseWriter, r *http.Request, e *statusError) []byte {
	title := fmt.Sprintf("%d %s", e.code, http.StatusText(e.code))
	problem := &pages.Problem{Frame: pages.Frame{Title: title, Site: p.site()}, Reason: e.reason, Detail: e.detail}
	name, _, _ := strings.Cut(strings.TrimPrefix(p.below(r), "/"), "/")
	if s, snap := p.present(r.Context(), name); s != nil {
		problem.Frame = s.people(w, r, snap).Frame(title)
		snap.release()
	}
	page, err := problem.Write()
	if err != nil {
		p.log.Error("writing an error page", "error", err)
		return []byte("<!DOCTYPE html><html lang=en><title>Error</title><p>" + html.EscapeString(e.reason))
	}
	return page
}
