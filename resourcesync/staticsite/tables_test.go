package staticsite

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/rsbridge/rsbridge/internal/inproc"
)

// TestTables: the pages of documents for people are written with them, and leave when a document has fewer.
func TestTables(t *testing.T) {
	answers := map[string]string{
		"/data/capabilitylist.xml":    urlset("urlset", `capability="capabilitylist"`, `/data/resourcelist.xml capability="resourcelist"`),
		"/data/resourcelist.xml":      urlset("urlset", `capability="resourcelist" at="2026-01-01T00:00:00Z"`, "/data/r/a.nt"),
		"/data/capabilitylist.html":   "capabilities",
		"/data/resourcelist.html":     "first",
		"/data/resourcelist.2.html":   "second",
		"/data/resourcelist.3.html":   "third",
		"/data/r/a.nt":                "a",
		"/about":                      "all",
		"/.well-known/resourcesync":   urlset("urlset", `capability="description"`, `/data/capabilitylist.xml capability="capabilitylist"`),
		"/data/resourcelist.5.html":   "no page leads here",
		"/data/unrelated.html":        "nor here",
		"/data/changelist.html":       "nor here",
		"/data/resourcelist-0.2.html": "nor here",
	}
	dir := t.TempDir()
	for _, last := range []int{3, 2} {
		source := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, ok := answers[r.URL.Path]
			if !ok || r.Header.Get("Prefer") != "static" {
				http.NotFound(w, r)
				return
			}
			fmt.Fprint(w, body)
		})
		rep, err := Write(t.Context(), Options{Set: "data", BaseURL: base, Transport: inproc.Transport{Handler: source}, Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		found, err := filepath.Glob(filepath.Join(dir, "data", "*.html"))
		if err != nil || len(found) != 1+last || rep.Resources != int64(1+last+2) || last == 2 && rep.Removed != 1 {
			t.Errorf("to page %d: %v, %+v, %v", last, found, rep, err)
		}
		if raw, err := os.ReadFile(filepath.Join(dir, "data", "resourcelist.2.html")); err != nil || string(raw) != "second" {
			t.Errorf("%q, %v", raw, err)
		}
		delete(answers, "/data/resourcelist.3.html")
	}
}
