package bridge

import (
	"net/http"
	"net/url"
	"strings"
)

// Publishes tells whether there is anything to serve in public: documents of sets, also of
// removed ones, or the queries of a store.
func (b *Bridge) Publishes() bool { return b.pub != nil || b.cfg.Publishes() }

// PublicHandler serves the published documents, and the public embedded stores below
// /stores/NAME/query, read only. It routes on the escaped path.
func (b *Bridge) PublicHandler() http.Handler {
	var documents http.Handler = http.NotFoundHandler()
	if b.pub != nil {
		documents = protect(b, b.forms.push.Handler(b.forms.faces.Handler(b.pub.Handler())))
	}
	served := map[string]http.Handler{}
	for name := range b.cfg.Stores {
		if endpoint := b.publicEndpoint(name); endpoint != "" {
			path := strings.TrimPrefix(endpoint, b.cfg.Public.BaseURL)
			h := b.stores[name].embedded.QueryHandler(endpoint)
			served[path] = h
			if u, err := url.Parse(b.cfg.Public.BaseURL); err == nil { // a proxy may send the path of the base URL too
				served[u.EscapedPath()+path] = h
			}
		}
	}
	all := b.answering.Counted(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if h := served[r.URL.EscapedPath()]; h != nil {
			h.ServeHTTP(w, r)
			return
		}
		for name, m := range b.dests {
			if m.cfg.Live.Calls(r.URL.EscapedPath(), name) {
				m.live.ServeHTTP(w, r)
				return
			}
		}
		documents.ServeHTTP(w, r)
	}))
	if LeaderOf(b) != "" {
		return onlyReading(all, b)
	}
	return all
}

// publicEndpoint is the public address of a store, "" for none. A state that is only read opens no store.
func (b *Bridge) publicEndpoint(store string) string {
	if s := b.stores[store]; !b.cfg.Stores[store].Serve || s != nil && s.fault != nil {
		return ""
	}
	return b.cfg.Public.BaseURL + "/stores/" + store + "/query"
}
