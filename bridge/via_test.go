package bridge

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/destination"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// TestVia: a set over a graph that is a mirror says of what it is one.
func TestVia(t *testing.T) {
	c := Config{Destinations: map[string]Destination{
		"a": {Store: "s", Source: "https://who:secret@a.example/list.xml"},
		"b": {Store: "s", Source: "https://b.example", GraphIRI: "http://g.example/b"},
		"c": {Store: "s", Source: "https://c.example", Graph: "per-entity"},
		"d": {Store: "s", Source: "https://b.example", GraphIRI: "http://g.example/d"},
		"e": {Store: "other", Source: "https://e.example"},
	}}
	for graphs, want := range map[string]string{
		"":                                      "https://a.example/list.xml",
		"*":                                     "https://a.example/list.xml https://b.example https://c.example",
		"http://g.example/b http://g.example/d": "https://b.example",
		"http://g.example/x":                    "",
	} {
		if got := c.Via(Set{Store: "s", Graphs: strings.Fields(graphs)}); !slices.Equal(got, strings.Fields(want)) {
			t.Errorf("graphs %q: %q, want %q", graphs, got, want)
		}
	}

	cfg := small(t.TempDir())
	again := NewSet()
	again.Store = "mirror"
	cfg.Sets["again"] = again
	for name, d := range cfg.Destinations {
		if d.Store != "mirror" {
			t.Fatalf("the destination %s of the test has the store %s", name, d.Store)
		}
	}
	b := mustOpen(t, cfg)
	defer func() { b.Close() }()
	for path, want := range map[string]bool{"/again/capabilitylist.xml": true, "/data/capabilitylist.xml": false, "/again/about.nt": true, "/data/about.nt": false} {
		rec := httptest.NewRecorder()
		b.PublicHandler().ServeHTTP(rec, httptest.NewRequest(http.MethodGet, path, nil))
		body := rec.Body.String()
		if got := strings.Contains(body, `<rs:ln rel="via" href="http://source.invalid`) || strings.Contains(body, "<http://purl.org/dc/terms/source> <http://source.invalid"); rec.Code != 200 || got != want {
			t.Errorf("%s: %d, tells of its source: %v, want %v\n%s", path, rec.Code, got, want, body)
		}
	}

	// Each entry of what is published on leads to what it was mirrored from.
	fill(t, b, "source", "<http://e.example/a> <http://e.example/p> \"1\" .\n<http://e.example/b> <http://e.example/p> \"2\" .\n")
	do[ScanReport](t, b, "scan", "data")
	do[destination.SyncReport](t, b, "sync", "copy")
	do[ScanReport](t, b, "scan", "again")
	for _, name := range []string{"data", "again"} {
		rec := httptest.NewRecorder()
		b.PublicHandler().ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/"+name+"/resourcelist.xml", nil))
		r, err := resourcesync.NewReader(rec.Body, resourcesync.ReaderOptions{Strict: true})
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for {
			e, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			want := ""
			if name == "again" {
				want = strings.Replace(e.Loc, "/again/", "/data/", 1)
			}
			got := ""
			if l := e.Link(resourcesync.RelVia); l != nil {
				got = l.Href
			}
			if n++; got != want {
				t.Errorf("%s comes via %q, want %q", e.Loc, got, want)
			}
		}
		if n != 2 {
			t.Errorf("%s has %d entries", name, n)
		}
	}
}
