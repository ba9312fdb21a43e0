package embedstore

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/rsbridge/rsbridge/internal/inproc"
)

// Transport is a way to Handler without a port: requests to any host with a path ending in /query,
// /update or /data are answered in this process. Bodies stream both ways. An answer failing in the
// middle gives its reader an error, never a clean end.
func (s *Store) Transport() http.RoundTripper {
	h := s.Handler()
	return inproc.Transport{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		in := *r
		in.URL = new(url.URL)
		*in.URL = *r.URL
		in.URL.Path, in.URL.RawPath = r.URL.Path[max(0, strings.LastIndexByte(r.URL.Path, '/')):], ""
		h.ServeHTTP(w, &in)
	})}
}
