package fetch

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// Only 404 and 410 to a GET tell the end of a resource: servers answer HEAD otherwise.
func TestIsGone(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(map[string]int{"GET /gone": 410, "GET /none": 404, "GET /moved": 302, "GET /there": 200, "GET /secret": 401, "GET /broken": 503}[r.Method+" "+r.URL.Path])
	}))
	defer srv.Close()
	f, err := NewClient(srv.URL, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for path, answers := range map[string]string{"/gone": "410", "/none": "404", "/moved": "302", "/there": "200", "/secret": "401", "/broken": "503"} {
		want := answers == "410" || answers == "404"
		if got, answer := f.IsGone(t.Context(), srv.URL+path); got != want || answer != "answers "+answers {
			t.Errorf("%s: %t, %s", path, got, answer)
		}
	}
	srv.Close()
	if gone, answer := f.IsGone(t.Context(), srv.URL+"/gone"); gone || answer != "does not answer" {
		t.Errorf("a source that does not answer has nothing gone: %t, %s", gone, answer)
	}
}
