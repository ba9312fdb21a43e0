package bridge

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/internal/sparql/sparqltest"
	"github.com/rsbridge/rsbridge/internal/webclient"
	"github.com/rsbridge/rsbridge/rdfres"
)

// A site is a source by its well-known address too, other addresses are not.
func TestReachSource(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/.well-known/resourcesync" {
			http.NotFound(w, r)
		}
	}))
	defer srv.Close()
	for path, ok := range map[string]bool{"": true, "/": true, "/nothing.xml": false, "/?q": true, "/.well-known/resourcesync": true} {
		if err := webclient.Reach(t.Context(), srv.URL+path, "", nil); (err == nil) != ok {
			t.Errorf("%q: %v", path, err)
		}
	}
}

// Graphs of a set that hold nothing are named.
func TestEmptyGraphs(t *testing.T) {
	st := sparqltest.New()
	st.Add("http://g.example/1", rdfres.Triple{S: "<http://e.example/s>", P: "<http://e.example/p>", O: `"o"`})
	srv := httptest.NewServer(st)
	defer srv.Close()
	cfg := NewConfig()
	store := NewStore()
	store.Query = srv.URL + "/query"
	cfg.Stores["store"] = store
	for name, graphs := range map[string][]string{"right": {"http://g.example/1"}, "one": {"http://g.example/1", "http://g.example/l"}, "all": {"*"}, "none": nil} {
		set := NewSet()
		set.Store, set.Graphs = "store", graphs
		cfg.Sets[name] = set
	}
	if got := EmptyGraphs(t.Context(), cfg, slog.New(slog.DiscardHandler)); len(got) != 1 || fmt.Sprint(got["one"]) != "[http://g.example/l]" {
		t.Errorf("%v", got)
	}
}

// A destination of a source with several sets names one of them; that of a source
// which was not scanned yet, or with one set, need not.
func TestReachChoosesASet(t *testing.T) {
	const head = `<?xml version="1.0" encoding="UTF-8"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:rs="http://www.openarchives.org/rs/terms/">`
	var srv *httptest.Server
	srv = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/xml")
		of, file := path.Split(r.URL.Path)
		switch file {
		case "resourcesync":
			sets := map[string][]string{"/two/": {"a", "b"}, "/one/": {"a"}, "/new/": {"new"}}[strings.TrimSuffix(of, ".well-known/")]
			fmt.Fprint(w, head+`<rs:md capability="description"/>`)
			for _, name := range sets {
				fmt.Fprintf(w, `<url><loc>%s/%s/capabilitylist.xml</loc><rs:md capability="capabilitylist"/></url>`, srv.URL, name)
			}
		case "capabilitylist.xml":
			fmt.Fprint(w, head+`<rs:md capability="capabilitylist"/>`)
			if of != "/new/" {
				fmt.Fprintf(w, `<url><loc>%s%sresourcelist.xml</loc><rs:md capability="resourcelist"/></url>`, srv.URL, of)
			}
		default:
			http.NotFound(w, r)
			return
		}
		fmt.Fprint(w, `</urlset>`)
	}))
	defer srv.Close()
	for _, c := range []struct{ source, set, says string }{
		{srv.URL + "/two/.well-known/resourcesync", "", "offers 2 sets; choose one with set: a ("},
		{srv.URL + "/two/.well-known/resourcesync", "a", ""},
		{srv.URL + "/two/.well-known/resourcesync", "c", `offers no set "c"`},
		{srv.URL + "/one/.well-known/resourcesync", "", ""},
		{srv.URL + "/new/.well-known/resourcesync", "", ""},
		{"http://own.example/base", "", "has 2 sets; choose one with set: x, y"},
		{"http://own.example/base/.well-known/resourcesync", "", "has 2 sets; choose one with set: x, y"},
		{"http://own.example/base/", "z", "has no set z; it has: x, y"},
		{"http://own.example/base/", "y", ""},
		{"http://own.example/base/", "http://own.example/base/y/capabilitylist.xml", ""},
		{"http://own.example/base/x/capabilitylist.xml", "", ""},
	} {
		cfg := NewConfig()
		cfg.Public.BaseURL = "http://own.example/base"
		cfg.Sets["x"], cfg.Sets["y"] = NewSet(), NewSet()
		d := NewDestination()
		d.Source, d.Set = c.source, c.set
		cfg.Destinations["copy"] = d
		err := Reach(t.Context(), cfg, slog.New(slog.DiscardHandler))["destination copy"]
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s, set %q: %v, want %q", c.source, c.set, err, c.says)
		}
	}
}
