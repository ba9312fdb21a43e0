package hub

import (
	"context"
	"fmt"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Limits of a request.
const (
	mostForm     = 16 << 10
	longestURL   = 2048
	secretLength = 200 // shorter than this
)

// intent is a request for a subscription, or for its end, until it is verified.
type intent struct {
	mode, topic, callback, secret string

	lease  time.Duration
	key    key
	host   string // of the callback
	client string // requesting address, "" for loopback
	to     Topic
	cancel context.CancelFunc
}

// refusal is an answer in place of 202.
type refusal struct {
	status int
	reason string
}

func refuse(status int, format string, a ...any) *refusal {
	return &refusal{status, fmt.Sprintf(format, a...)}
}

// ServeHTTP takes requests to subscribe and to unsubscribe, and answers before it verifies them.
func (h *Hub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", "POST")
		http.Error(w, "This is a WebSub hub: it takes POST requests with hub.mode, hub.topic and hub.callback.", http.StatusMethodNotAllowed)
		return
	}
	if !h.started.Load() {
		w.Header().Set("Retry-After", "1")
		http.Error(w, "The hub is not ready.", http.StatusServiceUnavailable)
		return
	}
	i, no := h.parse(w, r)
	if no == nil && i != nil {
		no = h.begin(i)
	}
	switch {
	case no != nil:
		if no.status == http.StatusServiceUnavailable {
			w.Header().Set("Retry-After", "10")
		}
		h.log.Info("a request to the hub is refused", "client", r.RemoteAddr, "status", no.status, "reason", no.reason)
		http.Error(w, no.reason, no.status)
	case i == nil: // news that are no news
		w.WriteHeader(http.StatusNoContent)
	default:
		w.WriteHeader(http.StatusAccepted)
	}
}

// parse reads a request; without an intent it was one to publish a topic, whose content is always
// known here.
func (h *Hub) parse(w http.ResponseWriter, r *http.Request) (*intent, *refusal) {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case err != nil || kind == "application/xml" || kind == "text/xml":
		return nil, refuse(http.StatusForbidden, "Nobody publishes here but this source.")
	case kind != "application/x-www-form-urlencoded":
		return nil, refuse(http.StatusUnsupportedMediaType, "Content-Type %.100q: want application/x-www-form-urlencoded.", kind)
	}
	r.Body = http.MaxBytesReader(w, r.Body, mostForm)
	if err := r.ParseForm(); err != nil {
		return nil, refuse(http.StatusBadRequest, "The form cannot be read: %v.", err)
	}
	f := r.PostForm
	for _, name := range []string{"hub.mode", "hub.topic", "hub.callback", "hub.secret", "hub.lease_seconds"} {
		if len(f[name]) > 1 {
			return nil, refuse(http.StatusBadRequest, "%s stands there %d times.", name, len(f[name]))
		}
	}
	i := &intent{mode: f.Get("hub.mode"), topic: f.Get("hub.topic"), callback: f.Get("hub.callback"), secret: f.Get("hub.secret"), lease: defaultLease}
	if i.mode == "publish" {
		if i.topic == "" {
			i.topic = f.Get("hub.url")
		}
		if _, err := h.o.Find(i.topic); err != nil {
			return nil, refuse(http.StatusForbidden, "Nobody publishes here but this source.")
		}
		return nil, nil
	}
	if i.mode != "subscribe" && i.mode != "unsubscribe" {
		return nil, refuse(http.StatusBadRequest, "hub.mode %.100q: want subscribe or unsubscribe.", i.mode)
	}
	if len(i.topic) > longestURL || len(i.callback) > longestURL {
		return nil, refuse(http.StatusBadRequest, "An address is longer than %d characters.", longestURL)
	}
	if len(i.secret) >= secretLength {
		return nil, refuse(http.StatusBadRequest, "hub.secret has %d bytes, want less than %d.", len(i.secret), secretLength)
	}
	if text := f.Get("hub.lease_seconds"); text != "" && i.mode == "subscribe" {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n <= 0 {
			return nil, refuse(http.StatusBadRequest, "hub.lease_seconds %.100q: want a positive number.", text)
		}
		i.lease = min(max(time.Duration(min(n, 1<<31))*time.Second, leastLease), longestLease)
	}
	u, err := url.Parse(i.callback)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil || strings.Contains(i.callback, "#") {
		return nil, refuse(http.StatusBadRequest, "hub.callback: want an http or https address without user and fragment.")
	}
	if err := permitted(h.o.Allow, u); err != nil {
		return nil, refuse(http.StatusForbidden, "hub.callback: %v.", err)
	}
	i.key, i.host, i.client = keyOf(i.topic, i.callback), strings.ToLower(u.Host), Client(r.RemoteAddr)
	if h.keeps(i.key) {
		i.to, _, err = h.kept(i.topic)
	} else {
		i.to, err = h.o.Find(i.topic)
	}
	if err != nil {
		return nil, refuse(http.StatusNotFound, "hub.topic: %v.", err)
	}
	return i, nil
}

// keeps tells whether there is a subscription.
func (h *Hub) keeps(k key) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.subs[k] != nil
}

// Client is the address that requests count for; "" for loopback, where a proxy stands for many.
func Client(remote string) string {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		host = remote
	}
	a, err := netip.ParseAddr(host)
	if err != nil || a.IsLoopback() {
		return ""
	}
	if a = a.Unmap(); a.Is6() {
		if p, err := a.WithZone("").Prefix(64); err == nil {
			return p.String()
		}
	}
	return a.String()
}

// begin starts the verification. A later request for the same subscription replaces one that waits.
func (h *Hub) begin(i *intent) *refusal {
	h.mu.Lock()
	defer h.mu.Unlock()
	if i.mode == "subscribe" {
		if no := h.full(i.key, i.host, i.client); no != "" {
			return refuse(http.StatusServiceUnavailable, "%s", no)
		}
	} else if h.subs[i.key] == nil && h.intents[i.key] == nil {
		return nil // nothing to end; whoever asks learns nothing
	}
	if old := h.intents[i.key]; old != nil {
		old.cancel()
		h.forget(old)
	}
	if no := h.busy(i.host); no != "" {
		return refuse(http.StatusServiceUnavailable, "%s", no)
	}
	if h.ctx.Err() != nil {
		return refuse(http.StatusServiceUnavailable, "The hub is being closed.")
	}
	ctx, cancel := context.WithCancel(h.ctx)
	i.cancel = cancel
	h.intents[i.key] = i
	h.waiting[i.host]++
	h.running.Go(func() {
		defer cancel()
		h.verify(ctx, i)
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.intents[i.key] == i {
			h.forget(i)
		}
	})
	return nil
}

// busy tells why no request for a callback host can wait for its verification, "" if one can; the caller
// holds h.mu.
func (h *Hub) busy(host string) string {
	if n := h.waiting[host]; n >= h.o.Limits.Waiting {
		return fmt.Sprintf("%d requests for callbacks at %s wait for their verification: that host answers too slowly.", n, host)
	}
	if len(h.intents) < mostWaiting {
		return ""
	}
	slowest := host
	for other, n := range h.waiting {
		if n > h.waiting[slowest] || n == h.waiting[slowest] && other < slowest {
			slowest = other
		}
	}
	return fmt.Sprintf("%d requests wait for their verification, %d of them for callbacks at %s.", len(h.intents), h.waiting[slowest], slowest)
}

// forget removes an intent; the caller holds h.mu.
func (h *Hub) forget(i *intent) {
	delete(h.intents, i.key)
	if h.waiting[i.host]--; h.waiting[i.host] <= 0 {
		delete(h.waiting, i.host)
	}
}

// full tells why there is no room for a new subscription, "" if there is; the caller holds h.mu.
func (h *Hub) full(k key, host, client string) string {
	switch l := h.o.Limits; {
	case h.subs[k] != nil:
		return ""
	case len(h.subs) >= l.All:
		return "The hub has as many subscriptions as it takes."
	case h.hosts[host] >= l.Host:
		return fmt.Sprintf("The host %s has %d subscriptions, as many as it may.", host, l.Host)
	case client != "" && h.clients[client] >= l.Client:
		return fmt.Sprintf("The address %s has asked for %d subscriptions, as many as it may.", client, l.Client)
	}
	return ""
}
