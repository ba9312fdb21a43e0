// Package gateway stands before a store: it forwards updates unchanged, and tells the touched
// entities to the sets made from the store.
//
//	POST /update             SPARQL 1.1 Protocol, 2.2
//	PUT, POST, DELETE /data  Graph Store HTTP Protocol, 5
//	others                   reads: GET of /data goes to the store, the rest to the next handler
//
// # Order
//
//  1. The touched entities are read from the update. An update with a WHERE is asked what it would
//     touch; until its end no other update passes. All others pass side by side.
//  2. The entities are kept, durably. So a killed process forgets no update: after its restart it
//     looks at them.
//  3. The update is sent, and goes on without its sender.
//  4. After the store's answer the sets look at the entities. A refused update is forgotten.
//  5. The answer goes back.
//
// The gateway may tell too much, and never too little. Of unknown effect are updates above 8 MiB, packed
// ones, those that cannot be read, and those without a clear answer of the store: after them the sets
// are read whole.
//
// # Errors
//
// The store's own answers go back as they are. The gateway itself answers 400 for a broken body, 404 for
// an address that the store does not have, 405 for a write elsewhere, 503 if the entities cannot be kept
// (nothing was sent), and 502 if the store gave no answer (it may have done the update).
package gateway

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rsbridge/rsbridge/bridge/named"
	"github.com/rsbridge/rsbridge/internal/embedstore"
	"github.com/rsbridge/rsbridge/internal/sparql"
)

// mostText is the longest text read for its entities; those of a longer one are unknown.
const mostText = 8 << 20

// Gateway is the gateway of one store.
type Gateway struct {
	Client *sparql.Client // of the store: its addresses, rights and timeout
	Sets   named.Sets     // made from the store
	// Order keeps other updates out between a question and its update. Gateways of one store share it.
	Order *sync.RWMutex
	Log   *slog.Logger
}

// Before serves /update and /data; other reads are for next, nil for none.
func (g *Gateway) Before(next http.Handler) http.Handler {
	if next == nil {
		next = http.NotFoundHandler()
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/update" || r.URL.Path == "/data":
			g.serve(w, r)
		case r.URL.Path == "/query" || r.Method == http.MethodGet || r.Method == http.MethodHead:
			next.ServeHTTP(w, r)
		default:
			http.Error(w, "updates are taken at /update and /data only", http.StatusMethodNotAllowed)
		}
	})
}

func (g *Gateway) serve(w http.ResponseWriter, r *http.Request) {
	e := g.Client.Endpoint()
	address, read := e.Update, readUpdate
	if r.URL.Path == "/data" {
		address, read = e.GraphStore, readDocument
	}
	if address == "" {
		http.Error(w, "the store "+e.Name+" has no such address in the configuration", http.StatusNotFound)
		return
	}
	if r.Method == http.MethodHead || r.Method == http.MethodOptions || r.Method == http.MethodGet && r.URL.Path == "/data" {
		g.read(w, r, address)
		return
	}
	head, err := io.ReadAll(io.LimitReader(r.Body, mostText+1))
	if err != nil {
		http.Error(w, "the body cannot be read: "+err.Error(), http.StatusBadRequest)
		return
	}
	t := embedstore.Touched{Unknown: true}
	if len(head) <= mostText && r.Header.Get("Content-Encoding") == "" && !strings.Contains(address, "?") {
		t = read(r, head)
	}
	g.write(w, r, address, head, t)
}

// readUpdate reads the touched entities from a request of the SPARQL Protocol.
func readUpdate(r *http.Request, body []byte) embedstore.Touched {
	unknown := embedstore.Touched{Unknown: true}
	kind, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || r.URL.RawQuery != "" || r.Method != http.MethodPost || params["charset"] != "" && !strings.EqualFold(params["charset"], "utf-8") {
		return unknown
	}
	switch kind {
	case "application/sparql-update":
		return embedstore.ReadTouched(string(body))
	case "application/x-www-form-urlencoded":
		if form, err := url.ParseQuery(string(body)); err == nil && len(form) == 1 && len(form["update"]) == 1 {
			return embedstore.ReadTouched(form.Get("update"))
		}
	}
	return unknown
}

// write forwards an update, and tells the sets.
func (g *Gateway) write(w http.ResponseWriter, r *http.Request, address string, head []byte, t embedstore.Touched) {
	ctx := context.WithoutCancel(r.Context()) // an update goes on when its sender has gone
	if t.Bindings != nil && !t.Unknown && len(g.Sets) > 0 {
		g.Order.Lock()
		defer g.Order.Unlock()
		g.ask(ctx, &t)
	} else {
		g.Order.RLock()
		defer g.Order.RUnlock()
	}
	held, err := g.Sets.Hold(ctx, t, g.Log)
	if err != nil {
		g.Log.Error("an update was not forwarded", "error", err)
		http.Error(w, "what the update touches cannot be kept, and nothing was sent: "+err.Error(), http.StatusServiceUnavailable)
		return
	}
	res, err := g.forward(ctx, r, address, head)
	var answer []byte
	if err == nil {
		answer, err = io.ReadAll(io.LimitReader(res.Body, 1<<20))
	}
	switch {
	case err == nil && slices.Contains(refusals, res.StatusCode):
		held.Drop(ctx)
	case err != nil || res.StatusCode >= 500 || res.StatusCode >= 300 && res.StatusCode < 400:
		g.Log.Warn("what an update did is not known: its sets are read whole", "error", err)
		held.Confirm(ctx, true)
	default:
		held.Confirm(ctx, false)
	}
	if res == nil {
		http.Error(w, "the store gave no answer, and may have done the update: "+err.Error(), http.StatusBadGateway)
		return
	}
	defer res.Body.Close()
	give(w, res, io.MultiReader(bytes.NewReader(answer), res.Body))
}

// refusals are answers before anything was done.
var refusals = []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusTooManyRequests}

// read forwards a request without effect.
func (g *Gateway) read(w http.ResponseWriter, r *http.Request, address string) {
	res, err := g.forward(r.Context(), r, address, nil)
	if err != nil {
		http.Error(w, "the store gave no answer: "+err.Error(), http.StatusBadGateway)
		return
	}
	defer res.Body.Close()
	give(w, res, res.Body)
}

// ownHeaders are between two neighbours, or for the gateway alone.
var ownHeaders = []string{"Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "Authorization", "Cookie", "Origin", "Referer", "Expect"}

// forward sends a request to the store, with head as the first bytes of its body. It ends when
// nothing moves for the store's timeout.
func (g *Gateway) forward(ctx context.Context, r *http.Request, address string, head []byte) (*http.Response, error) {
	if r.URL.RawQuery != "" {
		sep := "?"
		if strings.Contains(address, "?") {
			sep = "&"
		}
		address += sep + r.URL.RawQuery
	}
	ctx, cancel := context.WithCancel(ctx)
	timeout := g.Client.Endpoint().Timeout
	timer := time.AfterFunc(timeout, cancel)
	moves := func() { timer.Reset(timeout) }
	req, err := http.NewRequestWithContext(ctx, r.Method, address, nil)
	if err != nil {
		cancel()
		return nil, err
	}
	req.Header = r.Header.Clone()
	for _, h := range ownHeaders {
		req.Header.Del(h)
	}
	if len(head) > 0 {
		req.ContentLength = r.ContentLength
		body := func() (io.ReadCloser, error) { return io.NopCloser(moving{bytes.NewReader(head), moves}), nil }
		if len(head) <= mostText {
			req.GetBody = body
			req.Body, _ = body()
		} else {
			req.Body = io.NopCloser(moving{io.MultiReader(bytes.NewReader(head), r.Body), moves})
		}
	}
	res, err := g.Client.Forward(req)
	if err != nil {
		timer.Stop()
		cancel()
		return nil, err
	}
	body := res.Body
	res.Body = ending{moving{body, moves}, func() error {
		timer.Stop()
		defer cancel()
		return body.Close()
	}}
	return res, nil
}

// moving tells of each reading.
type moving struct {
	r     io.Reader
	moves func()
}

func (m moving) Read(p []byte) (int, error) {
	n, err := m.r.Read(p)
	m.moves()
	return n, err
}

// ending is a body with something to do at its end.
type ending struct {
	io.Reader
	close func() error
}

func (e ending) Close() error { return e.close() }

// give passes the store's answer on.
func give(w http.ResponseWriter, res *http.Response, body io.Reader) {
	h := w.Header()
	for k, v := range res.Header {
		if !slices.Contains(ownHeaders, k) {
			h[k] = v
		}
	}
	w.WriteHeader(res.StatusCode)
	if _, err := io.Copy(w, body); err != nil {
		panic(http.ErrAbortHandler) // nobody takes half for the whole
	}
}
