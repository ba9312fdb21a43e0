package bridge

import (
	"net/http"
	"net/url"
)

// PublicHandler serves the published documents, and below /stores/NAME/query
// the embedded stores that the configuration serves, read only. It routes on the
// escaped path.
func (b *Bridge) PublicHandler() http.Handler {
	var documents http.Handler = http.NotFoundHandler()
	if b.pub != nil {
		documents = b.faces.Handler(b.pub.Handler())
	}
	served := map[string]http.Handler{}
	for name, c := range b.cfg.Stores {
		if c.Serve && b.stores[name].fault == nil {
			h, path := b.stores[name].embedded.QueryHandler(), "/stores/"+name+"/query"
			served[path] = h
			if u, err := url.Parse(b.cfg.Public.BaseURL); err == nil { // a proxy may send the path of the base URL too
				served[u.EscapedPath()+path] = h
			}
		}
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if h := served[r.URL.EscapedPath()]; h != nil {
			h.ServeHTTP(w, r)
			return
		}
		documents.ServeHTTP(w, r)
	})
}
