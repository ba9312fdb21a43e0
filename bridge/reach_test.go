package bridge

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// A site is a source by its well-known address too, other addresses are not.
func TestReachSource(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/.well-known/resourcesync" {
			http.NotFound(w, r)
		}
	}))
	defer srv.Close()
	for path, ok := range map[string]bool{"": true, "/": true, "/nothing.xml": false, "/?q": true, "/.well-known/resourcesync": true} {
		if err := ReachSource(t.Context(), srv.URL+path); (err == nil) != ok {
			t.Errorf("%q: %v", path, err)
		}
	}
}
