package staticsite

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rsbridge/rsbridge/internal/inproc"
)

// TestStartAndAlphabet: the pages of names follow from one to the next, and go with their letters. The start page
// names the sets of the folder. Links are relative. An own start page of the folder stays.
func TestStartAndAlphabet(t *testing.T) { synctest.Test(t, startAndAlphabet) }

func startAndAlphabet(t *testing.T) {
	const mark = ourMark + "\n"
	answers := map[string]string{
		"/data/capabilitylist.xml":  urlset("urlset", `capability="capabilitylist"`, `/data/resourcelist.xml capability="resourcelist"`),
		"/data/resourcelist.xml":    urlset("urlset", `capability="resourcelist" at="2026-01-01T00:00:00Z"`),
		"/about":                    "all",
		"/about.ttl":                "all",
		"/.well-known/resourcesync": urlset("urlset", `capability="description"`, `/data/capabilitylist.xml capability="capabilitylist"`, `/other/capabilitylist.xml capability="capabilitylist"`),
		"/data/about.html":          `<html><a href="` + base + `/">home</a> <a href="` + base + `/data/r/x:y.html">x</a> <a href="http://else.example/data/">else</a>`,
		"/?set=data":                `<html>` + mark + `<a href="` + base + `/data/about.html">`,
		"/data/browse.html":         `<html>letters`,
		"/data/browse/a.html":       `<html>a <a href="` + base + `/data/r/p/q.html">`,
		"/data/browse/a.2.html?m=1": `<html>more a`,
	}
	next := map[string]string{"/data/browse.html": "/data/browse/a.html", "/data/browse/a.html": "/data/browse/a.2.html?m=1"}
	waits := 2 // for the index
	source := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		at := r.URL.RequestURI()
		body, ok := answers[at]
		if !ok {
			http.NotFound(w, r)
			return
		}
		if strings.HasPrefix(body, "<html>") {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
		}
		if at == "/data/browse.html" && waits > 0 {
			waits--
			w.Header().Set("Refresh", "2")
		} else if next[at] != "" {
			w.Header().Set("Link", "<"+base+next[at]+`>; rel="next"`)
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
		return rep
	}
	has := func(want map[string]string) {
		t.Helper()
		for name, text := range want {
			raw, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
			if text == "" && err == nil || text != "" && (err != nil || string(raw) != text) {
				t.Errorf("%s: %q, %v, want %q", name, raw, err, text)
			}
		}
	}
	about := `<html><a href="../index.html">home</a> <a href="../data/r/x:y.html">x</a> <a href="http://else.example/data/">else</a>`
	if rep := write(); rep.Documents != 3 || rep.Resources != 8 || rep.Written != 11 || rep.Unchanged != 0 {
		t.Errorf("first: %+v", rep)
	}
	has(map[string]string{"index.html": `<html>` + mark + `<a href="./data/about.html">`, "data/about.html": about, "data/index.html": about,
		"data/browse.html": "<html>letters", "data/browse/a.html": `<html>a <a href="../../data/r/p/q.html">`, "data/browse/a.2.html": "<html>more a"})
	if rep := write(); rep.Written != 0 || rep.Unchanged != 11 || rep.Removed != 0 {
		t.Errorf("again: %+v", rep)
	}
	delete(answers, "/data/browse/a.2.html?m=1")
	delete(next, "/data/browse/a.html")
	own := filepath.Join(dir, "index.html")
	if err := os.WriteFile(own, []byte("welcome"), 0o600); err != nil {
		t.Fatal(err)
	}
	if rep := write(); rep.Written != 0 || rep.Removed != 1 {
		t.Errorf("less, and an own start page: %+v", rep)
	}
	has(map[string]string{"index.html": "welcome", "data/browse/a.2.html": ""})
	next["/data/browse/a.html"] = "/data/browse.html"
	if _, err := Write(t.Context(), Options{Set: "data", BaseURL: base, Transport: inproc.Transport{Handler: source}, Dir: dir}); err == nil || !strings.Contains(err.Error(), "its own next page") {
		t.Errorf("a circle: %v", err)
	}
}

// TestEndlessIndex: an index of names that is never there ends the export. A source that answers at once is asked
// once a second.
func TestEndlessIndex(t *testing.T) { synctest.Test(t, endlessIndex) }

func endlessIndex(t *testing.T) {
	asked, began := 0, time.Now()
	source := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		w.Header().Set("Refresh", "2")
	})
	at, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	s := &site{o: Options{Set: "data", Dir: t.TempDir()}, base: at, client: &http.Client{Transport: inproc.Transport{Handler: source}}, read: map[string]bool{}, waits: 3}
	if err := s.alphabet(t.Context()); err == nil || !strings.Contains(err.Error(), "/data/browse.html has no names yet") || asked != 4 || time.Since(began) != 2*time.Second {
		t.Errorf("%v after %d requests in %v", err, asked, time.Since(began))
	}
}
