package fetch

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
)

func TestAllowedHosts(t *testing.T) {
	f, err := NewClient("http://source.example/x", Options{Allow: []string{"cdn.example", "files.example:8080", "https://url.example/path", "[::1]:99"}})
	if err != nil {
		t.Fatal(err)
	}
	for address, want := range map[string]bool{
		"http://source.example/a": true, "https://source.example/": true, "http://SOURCE.example:80/": true, "http://source.example:81/": false,
		"https://cdn.example/": true, "http://cdn.example:9/": true, "http://x.cdn.example/": false, "http://cdn.example.evil/": false,
		"http://files.example:8080/": true, "http://files.example/": false, "http://url.example/": true, "http://[::1]:99/": true, "http://[::1]/": false,
		"http://169.254.169.254/": false, "http://127.0.0.1/": false, "file:///etc/passwd": false, "gopher://source.example/": false,
		"http://source.example@evil.example/": false, "http://evil.example/?http://source.example/": false, "//source.example/": false, "": false,
	} {
		u, err := url.Parse(address)
		if got := err == nil && f.Allowed(u) == nil; got != want {
			t.Errorf("%s: %v", address, got)
		}
	}
	for _, bad := range []string{"", "a/b", "http://"} {
		if _, err := NewClient("http://s.example/", Options{Allow: []string{bad}}); err == nil {
			t.Errorf("allow %q was taken", bad)
		}
	}
	for _, bad := range []string{"", "ftp://x/", "http://", "source.example"} {
		if _, err := NewClient(bad, Options{}); err == nil {
			t.Errorf("source %q was taken", bad)
		}
	}
}

func TestPasswordStaysAtHome(t *testing.T) {
	var told []string
	tell := func(r *http.Request) {
		user, _, _ := r.BasicAuth()
		told = append(told, r.URL.Path+" "+user)
	}
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { tell(r) }))
	defer other.Close()
	own := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tell(r)
		switch r.URL.Path {
		case "/away": // another port of the same host
			http.Redirect(w, r, other.URL+"/there", http.StatusFound)
		case "/here":
			http.Redirect(w, r, "/own", http.StatusFound)
		}
	}))
	defer own.Close()
	f, err := NewClient(strings.Replace(own.URL, "://", "://reader:hush@", 1), Options{Allow: []string{other.URL}})
	if err != nil {
		t.Fatal(err)
	}
	for _, address := range []string{own.URL + "/away", own.URL + "/here", other.URL + "/list"} {
		resp, err := f.open(t.Context(), Request{URL: address, MaxBytes: 100})
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	want := []string{"/away reader", "/there ", "/here reader", "/own reader", "/list "}
	if !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
}
