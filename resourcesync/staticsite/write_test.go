package staticsite

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/internal/inproc"
)

const base = "http://source.example"

// urlset is a document with one entry for each of locs.
func urlset(root, meta string, locs ...string) string {
	entry := map[string]string{"urlset": "url", "sitemapindex": "sitemap"}[root]
	var b strings.Builder
	fmt.Fprintf(&b, `<%s xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:rs="http://www.openarchives.org/rs/terms/"><rs:md %s/>`, root, meta)
	for _, loc := range locs {
		loc, meta, _ := strings.Cut(loc, " ")
		if meta != "" {
			meta = "<rs:md " + meta + "/>"
		}
		fmt.Fprintf(&b, "<%s><loc>%s%s</loc>%s</%s>", entry, base, loc, meta, entry)
	}
	return b.String() + "</" + root + ">"
}

// TestEachFileOnce: what several lists name is one file, also in the report. A
// Source Description that is an index becomes one of the sets that are exported.
func TestEachFileOnce(t *testing.T) {
	answers := map[string]string{
		"/data/capabilitylist.xml": urlset("urlset", `capability="capabilitylist"`, `/data/resourcelist.xml capability="resourcelist"`,
			`/data/changelist.xml capability="changelist"`, `/data/resourcedump.xml capability="resourcedump"`, `/data/archives/resourcedump.xml capability="resourcedump-archive"`),
		"/data/resourcelist.xml": urlset("urlset", `capability="resourcelist" at="2026-01-01T00:00:00Z"`, "/data/r/a.nt", "/data/r/b.nt"),
		"/data/changelist.xml": urlset("urlset", `capability="changelist" from="2026-01-01T00:00:00Z"`,
			`/data/r/a.nt change="created"`, `/data/r/b.nt change="created"`, `/data/r/a.nt change="updated"`, `/data/r/c.nt change="deleted"`),
		"/data/resourcedump.xml":            urlset("urlset", `capability="resourcedump" at="2026-01-01T00:00:00Z"`, "/data/resourcedump/1.zip"),
		"/data/archives/resourcedump.xml":   urlset("urlset", `capability="resourcedump-archive"`, "/data/archives/resourcedump-1.xml"),
		"/data/archives/resourcedump-1.xml": urlset("urlset", `capability="resourcedump" at="2026-01-01T00:00:00Z"`, "/data/resourcedump/1.zip"),
		"/data/resourcedump/1.zip":          "a package",
		"/data/r/a.nt":                      "a",
		"/data/r/b.nt":                      "b",
		"/data/about":                       "about",
		"/data/about.ttl":                   "about",
		"/about":                            "all",
		"/.well-known/resourcesync":         urlset("sitemapindex", `capability="description"`, "/sourcedescription-00001.xml", "/sourcedescription-00002.xml"),
		"/sourcedescription-00001.xml":      urlset("urlset", `capability="description"`, "/another/capabilitylist.xml"),
		"/sourcedescription-00002.xml":      urlset("urlset", `capability="description"`, `/data/capabilitylist.xml capability="capabilitylist"`),
	}
	source := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, ok := answers[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		fmt.Fprint(w, body)
	})
	dir := t.TempDir()
	write := func() *Report {
		t.Helper()
		rep, err := Write(t.Context(), Options{Set: "data", BaseURL: base, Transport: inproc.Transport{Handler: source}, Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		files := int64(0)
		if err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				files++
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
		if files != 13 || rep.Documents != 7 || rep.Resources != 6 || rep.Packages != 1 || rep.Written+rep.Unchanged != files {
			t.Errorf("%d files: %+v", files, rep)
		}
		return rep
	}
	if rep := write(); rep.Unchanged != 0 {
		t.Errorf("first: %+v", rep)
	}
	if rep := write(); rep.Written != 0 || rep.Bytes != 0 {
		t.Errorf("again: %+v", rep)
	}
	answers["/data/r/b.nt"] = "b2"
	delete(answers, "/data/about.ttl")
	answers["/data/about.jsonld"] = "about"
	if rep := write(); rep.Written != 2 || rep.Bytes != 7 || rep.Removed != 1 {
		t.Errorf("changed: %+v", rep)
	}
	text, err := os.ReadFile(filepath.Join(dir, ".well-known", "resourcesync"))
	if err != nil || strings.Contains(string(text), "sitemapindex") || strings.Count(string(text), "<loc>") != 1 || !strings.Contains(string(text), base+"/data/capabilitylist.xml") {
		t.Errorf("Source Description: %v\n%s", err, text)
	}
}

// A list that is made by schedule or archived stays while its resources change or go,
// and is exported with what they are now; one that changes meanwhile is begun again.
func TestListOfBefore(t *testing.T) {
	promise := ` hash="sha-256:` + strings.Repeat("0", 64) + `" length="3"`
	answers := map[string]string{
		"/data/capabilitylist.xml":          urlset("urlset", `capability="capabilitylist"`, `/data/resourcelist.xml capability="resourcelist"`, `/data/archives/resourcelist.xml capability="resourcelist-archive"`),
		"/data/resourcelist.xml":            urlset("urlset", `capability="resourcelist" at="2026-01-02T00:00:00Z"`, "/data/r/a.nt"+promise),
		"/data/archives/resourcelist.xml":   urlset("urlset", `capability="resourcelist-archive"`, "/data/archives/resourcelist-1.xml"),
		"/data/archives/resourcelist-1.xml": urlset("urlset", `capability="resourcelist" at="2026-01-01T00:00:00Z"`, "/data/r/a.nt"+promise, "/data/r/gone.nt"+promise),
		"/data/r/a.nt":                      "now",
		"/about":                            "all",
		"/.well-known/resourcesync":         urlset("urlset", `capability="description"`, `/data/capabilitylist.xml capability="capabilitylist"`),
	}
	for _, stays := range []bool{true, false} {
		asked := 0
		source := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, ok := answers[r.URL.Path]
			if !ok {
				http.NotFound(w, r)
				return
			}
			if asked++; stays {
				w.Header().Set("ETag", `"1"`)
			} else {
				w.Header().Set("ETag", fmt.Sprintf("%q", fmt.Sprint(asked)))
			}
			fmt.Fprint(w, body)
		})
		dir := t.TempDir()
		_, err := Write(t.Context(), Options{Set: "data", BaseURL: base, Transport: inproc.Transport{Handler: source}, Dir: dir})
		if !stays {
			if !errors.Is(err, ErrMoved) {
				t.Errorf("a list that changes: %v", err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if raw, err := os.ReadFile(filepath.Join(dir, "data", "r", "a.nt")); err != nil || string(raw) != "now" {
			t.Errorf("%q, %v", raw, err)
		}
	}
}

// Files of somebody else are neither replaced nor removed by a first export. An export that was
// interrupted knows its own.
func TestFilesOfOthers(t *testing.T) {
	answers := map[string]string{
		"/data/capabilitylist.xml":  urlset("urlset", `capability="capabilitylist"`, `/data/resourcelist.xml capability="resourcelist"`),
		"/data/resourcelist.xml":    urlset("urlset", `capability="resourcelist" at="2026-01-01T00:00:00Z"`, "/data/r/a.nt", "/data/r/b.nt"),
		"/data/r/a.nt":              "a",
		"/about":                    "all",
		"/.well-known/resourcesync": urlset("urlset", `capability="description"`, `/data/capabilitylist.xml capability="capabilitylist"`),
	}
	source := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if body, ok := answers[r.URL.Path]; ok {
			fmt.Fprint(w, body)
		} else {
			http.NotFound(w, r)
		}
	})
	for _, name := range []string{"data/index.html", "about", ".well-known/resourcesync"} {
		dir := t.TempDir()
		write := func() error {
			_, err := Write(t.Context(), Options{Set: "data", BaseURL: base, Transport: inproc.Transport{Handler: source}, Dir: dir})
			return err
		}
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte("precious"), 0o600)); err != nil {
			t.Fatal(err)
		}
		if err := write(); err == nil || !strings.Contains(err.Error(), filepath.Base(name)) || !strings.Contains(err.Error(), "nothing was changed") {
			t.Errorf("%s: %v", name, err)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
			t.Errorf("%s: %v %v", name, left, err)
		}
		if raw, err := os.ReadFile(file); err != nil || string(raw) != "precious" {
			t.Errorf("%s: %q %v", name, raw, err)
		}
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		delete(answers, "/data/r/b.nt")
		if err := write(); !errors.Is(err, ErrMoved) {
			t.Fatal(err)
		}
		answers["/data/r/b.nt"] = "b"
		if err := write(); err != nil {
			t.Fatal(err)
		}
		if err := write(); err != nil {
			t.Fatal(err)
		}
	}
}
