package fetch

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestIsGone: only 404 and 410 tell it, and a server that knows no HEAD does not.
func TestIsGone(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(map[string]int{"HEAD /noHead": 404, "GET /noHead": 200, "HEAD /gone": 410, "GET /gone": 410, "HEAD /none": 404, "GET /none": 404,
			"HEAD /moved": 404, "GET /moved": 302, "HEAD /there": 200, "HEAD /secret": 401, "HEAD /method": 405, "HEAD /broken": 503}[r.Method+" "+r.URL.Path])
	}))
	defer srv.Close()
	f, err := NewClient(srv.URL, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{"/gone": true, "/none": true, "/noHead": false, "/moved": false, "/there": false, "/secret": false, "/method": false, "/broken": false} {
		if got := f.IsGone(t.Context(), srv.URL+path); got != want {
			t.Errorf("%s: %t", path, got)
		}
	}
	srv.Close()
	if f.IsGone(t.Context(), srv.URL+"/gone") {
		t.Error("a source that does not answer has nothing gone")
	}
}
