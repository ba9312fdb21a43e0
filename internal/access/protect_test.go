package access_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rsbridge/rsbridge/internal/access"
)

// plainly refuses in a line.
func plainly(w http.ResponseWriter, _ *http.Request, status int, reason, _ string) {
	w.Header().Set("Cache-Control", "no-store")
	http.Error(w, reason, status)
}

// TestProtect: the addresses of a protected set are for its readers, below each base and however
// written; other addresses are for everybody. Shared caches keep nothing of it.
func TestProtect(t *testing.T) {
	dir := t.TempDir()
	u := access.Open(dir, "")
	secret := func(name string, role access.Role, sets ...string) string {
		t.Helper()
		s, err := u.Create(access.Token{Name: name, Role: role, Sets: sets})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	mine, others, admin := secret("mine", access.Reader, "books", "more"), secret("others", access.Reader, "more"), secret("admin", access.Admin)
	served := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/books/plain" {
			w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
		}
		if _, err := w.Write([]byte("data")); err != nil {
			t.Error(err)
		}
	})
	h := access.Protect(served, plainly, u, map[string]bool{"books": true}, func() []string { return []string{"http://a.example", "http://a.example/data"} }, access.NewGuesses("wrong tokens", slog.New(slog.DiscardHandler)))
	clients := 0
	ask := func(method, path, header string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, "http://a.example"+path, nil)
		clients++ // nobody waits for another one
		r.RemoteAddr = fmt.Sprintf("192.0.2.%d:1", clients)
		if header != "" {
			r.Header.Set("Authorization", header)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	basic := func(name, secret string) string {
		r := httptest.NewRequest("GET", "/", nil)
		r.SetBasicAuth(name, secret)
		return r.Header.Get("Authorization")
	}
	for _, path := range []string{"/books", "/books/", "/books/r/x", "/books?x", "/data/books/r/x", "/books/notify/change"} {
		for header, want := range map[string]int{"": 401, "Bearer " + mine: 200, "bearer  " + mine: 200, basic("mine", mine): 200, basic("you", mine): 401, "Bearer " + others: 403, "Bearer " + admin: 403, "Bearer x": 401, "Bearer " + access.Local(dir): 200} {
			w := ask("GET", path, header)
			if w.Code != want {
				t.Errorf("%s with %q: %d, want %d", path, header, w.Code, want)
			}
			if want == 401 && len(w.Header().Values("WWW-Authenticate")) != 2 {
				t.Errorf("%s: %v", path, w.Header())
			}
			if cache := w.Header().Get("Cache-Control"); want == 200 && (cache != "private, max-age=31536000, immutable" || w.Header().Get("Vary") != "Authorization") || want != 200 && cache != "no-store" {
				t.Errorf("%s: %v", path, w.Header())
			}
		}
	}
	if w := ask("GET", "/books/plain", "Bearer "+mine); w.Header().Get("Cache-Control") != "private" {
		t.Error(w.Header())
	}
	if w := ask("OPTIONS", "/books/r/x", ""); w.Code != 200 {
		t.Errorf("a browser may not ask before: %d", w.Code)
	}
	for _, path := range []string{"/", "/open/r/books", "/bookshop/x", "/.well-known/resourcesync", "/data/open/books"} {
		if w := ask("GET", path, ""); w.Code != 200 || w.Header().Get("Cache-Control") != "public, max-age=31536000, immutable" {
			t.Errorf("%s: %d %v", path, w.Code, w.Header())
		}
	}
	if err := u.Revoke("mine"); err != nil {
		t.Fatal(err)
	}
	if w := ask("GET", "/books/r/x", "Bearer "+mine); w.Code != 401 {
		t.Errorf("after its end: %d", w.Code)
	}
}

// TestWrongReaders: wrong tokens at a protected set are answered slower and slower, right ones and none at once.
func TestWrongReaders(t *testing.T) {
	u := access.Open(t.TempDir(), "")
	right, err := u.Create(access.Token{Name: "mine", Role: access.Reader, Sets: []string{"books"}})
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		h := access.Protect(http.NotFoundHandler(), plainly, u, map[string]bool{"books": true}, func() []string { return nil }, access.NewGuesses("wrong tokens", slog.New(slog.DiscardHandler)))
		ask := func(ctx context.Context, header string) int {
			r := httptest.NewRequestWithContext(ctx, "GET", "/books/x", nil)
			r.Header.Set("Authorization", header)
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			return w.Code
		}
		began := time.Now()
		for range 5 {
			if code := ask(t.Context(), "Bearer wrong"); code != 401 {
				t.Errorf("a wrong token: %d", code)
			}
		}
		if took := time.Since(began); took != 2*time.Second {
			t.Errorf("five guesses took %v", took)
		}
		ctx, stop := context.WithCancel(t.Context())
		for range 32 {
			go ask(ctx, "Bearer wrong")
		}
		synctest.Wait()
		began = time.Now()
		for header, want := range map[string]int{"Bearer wrong": 429, "": 401, "Bearer " + right: 404} {
			if code := ask(t.Context(), header); code != want {
				t.Errorf("%.10q beside guesses: %d, want %d", header, code, want)
			}
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("others waited for %v", took)
		}
		stop()
	})
}
