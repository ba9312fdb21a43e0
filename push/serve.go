package push

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/rsbridge/rsbridge/internal/accept"
	"github.com/rsbridge/rsbridge/push/positions"
	"github.com/rsbridge/rsbridge/resourcesync"
)

const contentType = "application/xml"

// Handler serves the topics and the hub, takes the positions of mirrors, and passes every other request on.
func (p *Push) Handler(next http.Handler) http.Handler {
	at := ""
	if u, err := url.Parse(p.o.Address); err == nil {
		at = u.EscapedPath()
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path := r.URL.EscapedPath()
		if (path == "/hub" || path == at) && p.opensHub() {
			p.hub.ServeHTTP(w, r)
			return
		}
		if s, name := p.place(path); s != nil && s.Positions && name == positionSegment {
			p.positions.Serve(positions.Place{Set: s.Name, Address: s.Address() + notify + positionSegment, From: s.mirrors()}, w, r)
			return
		}
		t := p.find(path)
		if t == nil {
			next.ServeHTTP(w, r)
			return
		}
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Access-Control-Allow-Origin", "*")
		h.Set("Access-Control-Expose-Headers", "*")
		h.Set("Cache-Control", "no-cache")
		var err error
		if t.filter, err = parseFilter(r.URL.Query()); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		switch r.Method {
		case http.MethodGet, http.MethodHead:
			if !t.opens(w, r) {
				t.serve(w, r)
			}
		case http.MethodOptions:
			h.Set("Access-Control-Allow-Methods", "GET, HEAD, OPTIONS")
			h.Set("Access-Control-Allow-Headers", "Accept, If-None-Match, Last-Event-ID")
			w.WriteHeader(http.StatusNoContent)
		default:
			h.Set("Allow", "GET, HEAD, OPTIONS")
			http.Error(w, "This address can only be read; the hub takes subscriptions.", http.StatusMethodNotAllowed)
		}
	})
}

// opensHub tells whether a set has topics at the built-in hub.
func (p *Push) opensHub() bool {
	for _, s := range p.sets {
		if s.WebSub && len(s.Hubs) == 0 {
			return true
		}
	}
	return false
}

// links is the Link header of a topic and of everything sent for it.
func (t *topic) links() string {
	var parts []string
	add := func(rel, address string) { parts = append(parts, "<"+address+`>; rel="`+rel+`"`) }
	add(resourcesync.RelSelf, t.address())
	for _, hub := range t.s.advertised(t.s.p.o.Address) {
		add(resourcesync.RelHub, hub)
	}
	add(resourcesync.RelResourceSync, t.s.capabilityList())
	return strings.Join(parts, ", ")
}

// serve answers with the latest notification; before the first one the body is empty.
func (t *topic) serve(w http.ResponseWriter, r *http.Request) {
	n, err := t.latest(r.Context())
	if err != nil {
		t.s.p.log.Error("a topic cannot be answered", "topic", t.address(), "error", err)
		http.Error(w, "The notification could not be made.", http.StatusInternalServerError)
		return
	}
	h := w.Header()
	sum := sha256.Sum256(n.body)
	tag := hex.EncodeToString(sum[:16])
	h.Set("Link", t.links())
	h.Set("Vary", "Accept")
	h.Set("Etag", `"`+tag+`"`)
	if accept.Matches(r.Header["If-None-Match"], tag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	h.Set("Content-Type", contentType)
	h.Set("Content-Length", strconv.Itoa(len(n.body)))
	if r.Method == http.MethodGet {
		w.Write(n.body)
	}
}
