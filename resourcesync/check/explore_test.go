package check

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rsbridge/rsbridge/resourcesync"
)

// web is a small web of pages for Explore.
type web map[string]string

func (w web) fetch(_ context.Context, address string) (*Fetched, error) {
	text, ok := w[address]
	if !ok {
		return &Fetched{Status: 404, ContentLength: -1, Body: http.NoBody}, nil
	}
	got := &Fetched{Status: 200, ContentLength: -1}
	if target, ok := strings.CutPrefix(text, "-> "); ok {
		got.URL, text = target, w[target]
	}
	if link, rest, ok := strings.Cut(text, "\n\n"); ok && strings.HasPrefix(link, "Link: ") {
		got.Links, text = []string{strings.TrimPrefix(link, "Link: ")}, rest
	}
	got.Body = io.NopCloser(strings.NewReader(text))
	return got, nil
}

const (
	exploreRoot = `<?xml version="1.0" encoding="UTF-8"?>
<%s xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:rs="http://www.openarchives.org/rs/terms/">`
	source = "http://s.example"
)

func doc(element, meta, entries string) string {
	return fmt.Sprintf(exploreRoot, element) + `<rs:ln rel="up" href="http://s.example/up.xml"/><rs:md ` + meta + "/>" + entries + "</" + element + ">"
}

func entry(loc, rest string) string { return "<url><loc>" + loc + "</loc>" + rest + "</url>" }

func exploreWeb() web {
	return web{
		source + "/":                         `<html><head><link rel="resourcesync" href="a/cl.xml"><link rel="ResourceSync" href="/b/cl.xml"></head><body><link rel="resourcesync" href="no.xml"></body></html>`,
		source + "/page":                     "Link: </a/cl.xml>; rel=\"resourcesync\", </b/cl.xml>; rel=resourcesync\n\n<html></html>",
		source + "/.well-known/resourcesync": doc("urlset", `capability="description"`, entry(source+"/a/cl.xml", `<rs:md capability="capabilitylist"/>`)+entry(source+"/b/cl.xml", `<rs:md capability="capabilitylist"/>`)),
		source + "/a/cl.xml": doc("urlset", `capability="capabilitylist"`,
			entry(source+"/a/rl.xml", `<rs:md capability="resourcelist"/>`)+
				entry(source+"/a/dump.xml", `<rs:md capability="resourcedump"/>`)+
				entry(source+"/a/changes.xml", `<rs:md capability="changelist"/>`)+
				entry(source+"/a/gone.xml", `<rs:md capability="changedump"/>`)+
				entry("ws://s.example/topic", `<rs:md capability="change-notification"/>`)),
		source + "/a/rl.xml":   doc("sitemapindex", `capability="resourcelist" at="2020-01-01T00:00:00Z"`, "<sitemap><loc>"+source+"/a/rl-1.xml</loc></sitemap><sitemap><loc>"+source+"/a/rl-2.xml</loc></sitemap>"),
		source + "/a/rl-1.xml": doc("urlset", `capability="resourcelist" at="2020-01-01T00:00:00Z"`, entry(source+"/1", `<lastmod>2019-01-01T00:00:00Z</lastmod><rs:md hash="md5:1584abdf8ebdc9802ac0c6a7402c03b6" length="10" type="text/turtle"/><rs:ln rel="describes" href="http://e.example/1"/>`)+entry(source+"/2", `<lastmod>2019-06-01T00:00:00Z</lastmod>`)),
		source + "/a/rl-2.xml": doc("urlset", `capability="changelist" from="2020-01-01T00:00:00Z"`, ""),
		source + "/a/dump.xml": doc("urlset", `capability="resourcedump" at="2020-01-01T00:00:00Z"`, entry(source+"/a/1.zip", `<rs:md length="99" type="application/zip"/>`)),
		source + "/a/changes.xml": doc("urlset", `capability="changelist" from="2020-01-01T00:00:00Z"`,
			entry(source+"/1", `<rs:md change="updated" datetime="2020-01-02T00:00:00Z"/>`)+entry(source+"/2", `<rs:md change="deleted" datetime="2020-01-03T00:00:00Z"/>`)),
		source + "/b/cl.xml":          "-> " + source + "/b/real.xml",
		source + "/b/real.xml":        doc("urlset", `capability="capabilitylist"`, entry(source+"/.well-known/resourcesync", `<rs:md capability="description"/>`)+entry("broken.xml", `<rs:md capability="changelist"/>`)),
		source + "/b/broken.xml":      doc("urlset", `capability="changelist" from="2020-01-01T00:00:00Z"`, entry(source+"/1", ""))[:300] + "<",
		"http://r.example/":           "<html></html>",
		"http://r.example/robots.txt": "User-agent: *\nsitemap: /map.xml\n",
		"http://r.example/map.xml":    `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>http://r.example/x</loc><lastmod>2020-01-01</lastmod></url></urlset>`,
		"http://n.example/":           "<html></html>",
		"http://n.example/pack":       "PK\x03\x04....",
	}
}

// outline is a tree as lines: what counts of it.
func outline(n *Node) string {
	var b strings.Builder
	var put func(n *Node, in string)
	put = func(n *Node, in string) {
		fmt.Fprintf(&b, "%s%s %s", in, strings.TrimPrefix(n.Location, source), n.Kind)
		if n.Index {
			b.WriteString(" index")
		}
		fmt.Fprintf(&b, " %d", n.Entries)
		if n.Open {
			b.WriteString(" open")
		}
		for _, f := range n.Faults {
			fmt.Fprintf(&b, " FAULT(%s)", f)
		}
		if n.Note != "" {
			fmt.Fprintf(&b, " (%s)", n.Note)
		}
		if n.Skipped > 0 {
			fmt.Fprintf(&b, " skipped %d", n.Skipped)
		}
		b.WriteByte('\n')
		for _, c := range n.Children {
			put(c, in+"  ")
		}
	}
	put(n, "")
	return b.String()
}

func TestExplore(t *testing.T) {
	const setA = `/a/cl.xml capabilitylist 5
  /a/rl.xml resourcelist index 2
    /a/rl-1.xml resourcelist 2
    /a/rl-2.xml changelist 0 open FAULT(it is announced as resourcelist and is changelist)
  /a/dump.xml resourcedump 1
    /a/1.zip package 0
  /a/changes.xml changelist 2 open
  /a/gone.xml  0 FAULT(it cannot be fetched: status 404)
  ws://s.example/topic topic 0
`
	const setB = `/b/cl.xml capabilitylist 2
  /.well-known/resourcesync%s
  /b/broken.xml changelist 1 open FAULT(resourcesync: http://s.example/b/broken.xml, line 2: `
	for _, c := range []struct {
		name, address, want string
		depth               int
	}{
		{"capability list", source + "/a/cl.xml", setA, 9},
		{"capability list, all", source + "/a/cl.xml", setA, -1},
		{"one step", source + "/a/cl.xml", "/a/cl.xml capabilitylist 5\n  /a/rl.xml resourcelist index 2 skipped 2\n    /a/rl-1.xml  0 (it was not read)\n    /a/rl-2.xml  0 (it was not read)\n  /a/dump.xml resourcedump 1\n    /a/1.zip package 0\n  /a/changes.xml changelist 2 open\n  /a/gone.xml  0 FAULT(it cannot be fetched: status 404)\n  ws://s.example/topic topic 0\n", 1},
		{"list", source + "/a/changes.xml", "/a/changes.xml changelist 2 open\n", 9},
		{"robots", "http://r.example/", "http://r.example/ page 1\n  http://r.example/map.xml sitemap 1\n", 9},
	} {
		n, err := Explore(t.Context(), c.address, ExploreOptions{Fetch: exploreWeb().fetch, Depth: c.depth})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		} else if d := cmp.Diff(c.want, outline(n)); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, d)
		}
	}
	indent := func(s string) string {
		return "    " + strings.ReplaceAll(strings.TrimSuffix(s, "\n"), "\n", "\n    ") + "\n"
	}
	for _, address := range []string{source + "/", source + "/page"} {
		n, err := Explore(t.Context(), address, ExploreOptions{Fetch: exploreWeb().fetch, Depth: 9})
		if err != nil {
			t.Fatal(err)
		}
		want := strings.TrimPrefix(address, source) + " page 1\n  /.well-known/resourcesync description 2\n" + indent(setA) + strings.TrimSuffix(indent(fmt.Sprintf(setB, "  0 (it is told above)")), "\n")
		if got := outline(n); !strings.HasPrefix(got, want) {
			t.Errorf("%s:\n%s", address, cmp.Diff(want, got))
		}
	}
	n, err := Explore(t.Context(), source+"/a/rl-1.xml", ExploreOptions{Fetch: exploreWeb().fetch})
	if err != nil {
		t.Fatal(err)
	}
	r := n.Resources
	if r.Bytes != 10 || r.Sized != 1 || r.Hashed["md5"] != 1 || r.Types["text/turtle"] != 1 || r.Links["describes"] != 1 || resourcesync.FormatTime(*r.Oldest) != "2019-01-01T00:00:00Z" || resourcesync.FormatTime(*r.Newest) != "2019-06-01T00:00:00Z" || n.Up != source+"/up.xml" || n.Bytes == 0 {
		t.Errorf("resources = %+v of %+v", r, n)
	}
	for _, address := range []string{"http://n.example/", "http://n.example/none", "http://n.example/pack"} {
		if n, err := Explore(t.Context(), address, ExploreOptions{Fetch: exploreWeb().fetch}); err == nil || len(n.Faults) == 0 {
			t.Errorf("%s: %v, %+v", address, err, n)
		}
	}
}

// TestExploreBounds: what is told does not grow with what is there.
func TestExploreBounds(t *testing.T) {
	w := web{}
	var entries strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&entries, "<sitemap><loc>%s/part-%d.xml</loc></sitemap>", source, i)
	}
	w[source+"/rl.xml"] = doc("sitemapindex", `capability="resourcelist" at="2020-01-01T00:00:00Z"`, entries.String())
	for i := range 3000 {
		w[fmt.Sprintf("%s/part-%d.xml", source, i)] = doc("urlset", `capability="resourcelist" at="2020-01-01T00:00:00Z"`, "")
	}
	read := 0
	n, err := Explore(t.Context(), source+"/rl.xml", ExploreOptions{Fetch: w.fetch, Depth: -1, MaxDocuments: 100, Progress: func(string) { read++ }})
	if err != nil {
		t.Fatal(err)
	}
	if n.Entries != 3000 || read > 100 || len(n.Children) > 130 || int64(len(n.Children))+n.Skipped < 3000 {
		t.Errorf("%d entries, %d read, %d children, %d skipped", n.Entries, read, len(n.Children), n.Skipped)
	}
	if _, err := Explore(t.Context(), source+"/rl.xml", ExploreOptions{Fetch: w.fetch, MaxBytes: 500}); err == nil {
		// the document is cut: told as its fault, since it is one
		n, _ := Explore(t.Context(), source+"/rl.xml", ExploreOptions{Fetch: w.fetch, MaxBytes: 500})
		if len(n.Faults) == 0 {
			t.Error("a document beyond the bound has no fault")
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Explore(ctx, source+"/rl.xml", ExploreOptions{Fetch: w.fetch}); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end of its context: %v", err)
	}
}

// TestExploreDialects: every form that the reader knows can be explored, and
// those that it refuses are named.
func TestExploreDialects(t *testing.T) {
	files, err := filepath.Glob(filepath.FromSlash("../testdata/dialects/*.xml"))
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		n, err := Explore(t.Context(), source+"/x.xml", ExploreOptions{Fetch: web{source + "/x.xml": string(raw)}.fetch, Depth: 2})
		refused := strings.HasPrefix(filepath.Base(file), "refused")
		if !refused && err != nil {
			t.Errorf("%s: %v", file, err)
		}
		if refused && (len(n.Faults) == 0 || !strings.Contains(n.Faults[0], "this is a")) {
			t.Errorf("%s: faults %q do not name the form", file, n.Faults)
		}
		if !refused && (n.Kind == "" || n.Dialect == "") {
			t.Errorf("%s: %+v", file, n)
		}
	}
}

func FuzzExplore(f *testing.F) {
	for _, text := range exploreWeb() {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		_, _ = Explore(t.Context(), source+"/", ExploreOptions{Fetch: web{source + "/": text, source + "/robots.txt": text}.fetch, Depth: 3, MaxBytes: 1 << 20})
	})
}

// TestExploreFaultyEntries: entries without a loc are told, the first of them by line, and the walk
// goes on behind them.
func TestExploreFaultyEntries(t *testing.T) {
	bad := "<url><lastmod>2026-01-01</lastmod></url>\n"
	w := web{
		source + "/cl.xml":   doc("urlset", `capability="capabilitylist"`, bad+entry(source+"/rl.xml", `<rs:md capability="resourcelist"/>`)),
		source + "/rl.xml":   doc("sitemapindex", `capability="resourcelist"`, "<sitemap><loc>"+source+"/part.xml</loc></sitemap>"),
		source + "/part.xml": doc("urlset", `capability="resourcelist"`, entry(source+"/a", "")+strings.Repeat(bad, 5000)+entry(source+"/b", "")),
	}
	n, err := Explore(t.Context(), source+"/cl.xml", ExploreOptions{Fetch: w.fetch, Depth: -1})
	if err != nil || len(n.Faults) != 1 || n.Faults[0] != "line 2: the entry has no loc" || len(n.Children) != 1 {
		t.Fatalf("%+v %v", n, err)
	}
	part := n.Children[0].Children[0]
	if part.Index || part.Entries != 5002 || len(part.Faults) != maxFaulty+1 || part.Faults[maxFaulty] != "and 4990 more entries with faults" {
		t.Errorf("%+v", part)
	}
}

// An entry that no destination can use is a fault of its document.
func TestExploreMisplaced(t *testing.T) {
	list := entry(source+"/more.xml", `<rs:md capability="resourcelist"/>`)
	for want, document := range map[string]string{
		"line 2: the entry http://s.example/more.xml does not tell its capability":                                         doc("urlset", `capability="capabilitylist"`, entry(source+"/more.xml", "")),
		`line 2: the entry http://s.example/more.xml leads to a document of capability "resourcelist", and to no resource`: doc("urlset", `capability="resourcelist"`, entry(source+"/1.nt", "")+list),
		"": doc("urlset", `capability="capabilitylist"`, list),
	} {
		n, err := Explore(t.Context(), source+"/", ExploreOptions{Fetch: web{source + "/": document}.fetch})
		if got := strings.Join(n.Faults, "\n"); err != nil || got != want {
			t.Errorf("%q %v, want %q", got, err, want)
		}
	}
}

// Resources out of reach are counted by host, or by scheme.
func TestExploreElsewhere(t *testing.T) {
	w := web{source + "/rl.xml": doc("urlset", `capability="resourcelist" at="2020-01-01T00:00:00Z"`,
		entry(source+"/1", "")+entry("ftp://s.example/2", "")+entry("http://far.example/3", "")+entry("http://far.example/4", "")+entry("urn:x:5", ""))}
	allowed := func(u *url.URL) error {
		if u.Host != "s.example" {
			return errors.New("not allowed")
		}
		return nil
	}
	for _, c := range []struct {
		allowed func(*url.URL) error
		want    map[string]int64
	}{{allowed, map[string]int64{"ftp:": 1, "urn:": 1, "far.example": 2}}, {nil, map[string]int64{"ftp:": 1, "urn:": 1}}} {
		n, err := Explore(t.Context(), source+"/rl.xml", ExploreOptions{Fetch: w.fetch, Allowed: c.allowed})
		if err != nil || cmp.Diff(n.Resources.Elsewhere, c.want) != "" {
			t.Errorf("%+v %v", n.Resources, err)
		}
	}
}
