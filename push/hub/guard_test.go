package hub

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rsbridge/rsbridge/internal/kv/memkv"
	"github.com/rsbridge/rsbridge/internal/webguard"
)

// TestInside: with real sockets, a callback inside is called only if the configuration allows it,
// and a redirect there never.
func TestInside(t *testing.T) {
	var calls atomic.Int64
	inside := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		w.Write([]byte(r.URL.Query().Get("hub.challenge")))
	}))
	defer inside.Close()
	redirect := httptest.NewServer(http.RedirectHandler(inside.URL, http.StatusTemporaryRedirect))
	defer redirect.Close()
	at := func(raw string) string { return strings.Replace(raw, "127.0.0.1", "localhost", 1) } // a name
	for _, test := range []struct {
		what, callback string
		allow          []string
		called         bool
	}{
		{"an address", inside.URL, nil, false},
		{"a name", at(inside.URL), nil, false},
		{"an allowed address", inside.URL, []string{strings.TrimPrefix(inside.URL, "http://")}, true},
		{"an allowed name", at(inside.URL), []string{"localhost"}, true},
		{"a redirect from an allowed host", redirect.URL, []string{strings.TrimPrefix(redirect.URL, "http://")}, false},
	} {
		var rules webguard.Rules
		for _, text := range test.allow {
			r, err := webguard.ParseRule(text)
			if err != nil {
				t.Fatal(err)
			}
			rules = append(rules, r)
		}
		h, err := New(Options{Store: memkv.New(), Allow: rules})
		if err != nil {
			t.Fatal(err)
		}
		calls.Store(0)
		err = h.ask(context.Background(), test.callback, url.Values{"hub.challenge": {"c"}}, "c")
		if called := calls.Load() > 0; called != test.called || called != (err == nil) {
			t.Errorf("%s: called %v, %v", test.what, called, err)
		}
		if len(test.allow) == 0 && !errors.Is(err, webguard.ErrPrivate) {
			t.Errorf("%s: %v", test.what, err)
		}
		h.Close()
	}
}
