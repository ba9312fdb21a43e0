package httpapi_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/bridge"
	"github.com/rsbridge/rsbridge/httpapi"
	"github.com/rsbridge/rsbridge/rdfres"
)

// FuzzRequest asks for anything below /api/v1/sets/data and destinations/copy:
// no answer is a fault of the server, and each refusal is a problem document.
func FuzzRequest(f *testing.F) {
	for _, path := range []string{"/changes?since=1&limit=2", "/resources?after=" + strings.Repeat("0", 64), "/description?entity=http%3A%2F%2Fexample.org%2Fa&as=turtle&at=2026-01-31T12:00:00Z", "/%2e%2e/x", "/pause"} {
		f.Add(path, "", false)
	}
	f.Add("/sync", `{"dry_run": true}`, true)
	f.Add("/audit", `{"depth": "inventory", "repair": false}`, true)
	dir := f.TempDir()
	cfg := bridge.NewConfig()
	cfg.State, cfg.Admin.Listen = filepath.Join(dir, "state"), ""
	cfg.Public = bridge.Public{BaseURL: "http://bridge.example"}
	for _, name := range []string{"local", "mirror"} {
		s := bridge.NewStore()
		s.Embedded = filepath.Join(dir, name)
		cfg.Stores[name] = s
	}
	set, dest := bridge.NewSet(), bridge.NewDestination()
	set.Store, set.Schedule = "local", ""
	cfg.Sets["data"] = set
	dest.Source, dest.Set, dest.Store, dest.Schedule, dest.Audit.Schedule = "http://bridge.example", "data", "mirror", "", ""
	cfg.Destinations["copy"] = dest
	b, err := bridge.Open(f.Context(), cfg, bridge.Options{})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() {
		if err := b.Close(); err != nil {
			f.Error(err)
		}
	})
	if _, err := b.LoadStore(f.Context(), "local", "", rdfres.NTriples, strings.NewReader("<http://example.org/a> <http://example.org/p> <http://example.org/b> .\n"), true); err != nil {
		f.Fatal(err)
	}
	if err := b.Do(f.Context(), "scan", "data", nil, new(bridge.ScanReport)); err != nil {
		f.Fatal(err)
	}
	h := httpapi.New(b, httpapi.Options{})
	f.Fuzz(func(t *testing.T, path, body string, post bool) {
		method, at := http.MethodGet, "/api/v1/sets/data"
		if post {
			method, at = http.MethodPost, "/api/v1/destinations/copy"
		}
		u, err := url.Parse("http://localhost" + at + path)
		if err != nil || u.Host != "localhost" {
			return // no address
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, (&http.Request{Method: method, URL: u, Host: u.Host, Header: http.Header{}, Body: http.NoBody, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}).WithContext(t.Context()))
		if body != "" {
			w = httptest.NewRecorder()
			r := httptest.NewRequest(method, "http://localhost/", strings.NewReader(body))
			r.URL = u
			h.ServeHTTP(w, r)
		}
		var p httpapi.Problem
		switch {
		case w.Code >= 500:
			t.Fatalf("%s %s: %d %s", method, u, w.Code, w.Body)
		case w.Code >= 400 && (json.Unmarshal(w.Body.Bytes(), &p) != nil || p.Status != w.Code || p.Detail == ""):
			t.Fatalf("%s %s: %d without a problem: %s", method, u, w.Code, w.Body)
		}
	})
}
