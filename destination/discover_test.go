package destination

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/destination/item"
	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/internal/teststores"
	"github.com/rsbridge/rsbridge/internal/webguard"
	"github.com/rsbridge/rsbridge/rdfres"
)

func TestDiscovery(t *testing.T) {
	caps := "/set/capabilitylist.xml"
	for _, c := range []struct {
		name, at string
		set      func(s *testSource)
		lists    bool // only the list itself is found
	}{
		{name: "well-known", at: "/.well-known/resourcesync"},
		{name: "capability list", at: caps},
		{name: "resource list", at: "/set/resourcelist.xml"},
		{name: "change list", at: "/set/changelist.xml"},
		{name: "resource dump", at: "/set/resourcedump.xml"},
		{name: "site with a well-known address", at: "/"},
		{name: "page of the site", at: "/page.html", set: func(s *testSource) {
			answerAt(s, "/page.html", func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "<html><body>hello</body></html>") })
		}},
		{name: "link in a page", at: "/page.html", set: func(s *testSource) {
			answerAt(s, "/.well-known/resourcesync", http.NotFound)
			answerAt(s, "/page.html", func(w http.ResponseWriter, r *http.Request) {
				io.WriteString(w, `<!doctype html><HTML><head><title>x</title><link rel="stylesheet" href="x.css"><LINK REL="resourcesync" HREF="set/capabilitylist.xml"></head><body><link rel=resourcesync href="/trap.xml"></body>`)
			})
		}},
		{name: "page without html", at: "/page.html", set: func(s *testSource) {
			answerAt(s, "/page.html", func(w http.ResponseWriter, r *http.Request) {
				io.WriteString(w, `<!-- hello --><title>x</title><link rel="resourcesync" href="/set/capabilitylist.xml"><p>hello`)
			})
		}},
		{name: "page of XHTML", at: "/page.html", set: func(s *testSource) {
			answerAt(s, "/page.html", func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/xhtml+xml")
				io.WriteString(w, `<?xml version="1.0" encoding="utf-8"?><!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 Strict//EN" "http://www.w3.org/TR/xhtml1/DTD/xhtml1-strict.dtd">
<html xmlns="http://www.w3.org/1999/xhtml"><head><title>x</title><link rel="resourcesync" href="/set/capabilitylist.xml"/></head><body/></html>`)
			})
		}},
		{name: "Link header", at: "/page.html", set: func(s *testSource) {
			answerAt(s, "/.well-known/resourcesync", http.NotFound)
			answerAt(s, "/page.html", func(w http.ResponseWriter, r *http.Request) {
				w.Header().Add("Link", `</a>; rel="next", <set/capabilitylist.xml>; title="a, b; c"; rel="x resourcesync"`)
				io.WriteString(w, "hello")
			})
		}},
		{name: "robots.txt", at: "/", set: func(s *testSource) {
			answerAt(s, "/.well-known/resourcesync", http.NotFound)
			answerAt(s, "/robots.txt", func(w http.ResponseWriter, r *http.Request) {
				fmt.Fprintf(w, "User-agent: *\nsitemap: /nothing.xml\nSitemap: %s\n", s.url("/set/resourcelist.xml"))
			})
		}},
		{name: "list without a way up", at: "/set/resourcelist.xml", lists: true, set: func(s *testSource) { answerAt(s, caps, http.NotFound) }},
		{name: "part of an index", at: "/set/resourcelist-0.xml", set: func(s *testSource) { s.parts = 2 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			fill(b.src, 3)
			b.src.dump = true
			if c.set != nil {
				c.set(b.src)
			}
			b.cfg.Source = b.src.url(c.at)
			o, err := b.open().discover(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			if c.lists {
				if o.CapabilityList != "" || o.ResourceList == "" || o.ChangeList != "" {
					t.Fatalf("%+v", o)
				}
			} else if o.CapabilityList != b.src.url(caps) || o.ResourceList != b.src.url("/set/resourcelist.xml") || o.ChangeList == "" || o.ResourceDump == "" {
				t.Fatalf("%+v", o)
			}
			if o.Authority != b.src.srv.URL {
				t.Fatal(o.Authority)
			}
		})
	}
}

// While the way into a site fails, something else of it is not taken for the source.
func TestSiteInTrouble(t *testing.T) {
	down := func(status int) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(status)
			io.WriteString(w, "<html>back soon</html>")
		}
	}
	page := func(link string) func(s *testSource) {
		return func(s *testSource) {
			answerAt(s, "/", func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "<html><head>"+link+"</head></html>") })
		}
	}
	wellKnown, caps := "/.well-known/resourcesync", "/set/capabilitylist.xml"
	for _, c := range []struct {
		name, at string
		set      func(s *testSource)
		path     string // what fails
		status   int
		again    bool // it was found before
	}{
		{"a well-known address at first", "/", page(""), wellKnown, 503, false},
		{"a well-known address", "/", page(""), wellKnown, 503, true},
		{"a page in its place", "/", page(""), wellKnown, 200, true},
		{"nothing in its place", "/", page(""), wellKnown, 404, true},
		{"what a page links to", "/", page(`<link rel="resourcesync" href="/set/capabilitylist.xml">`), caps, 502, false},
		{"a page in place of a Capability List", caps, nil, caps, 200, true},
		{"the way up from a part", "/set/resourcelist-0.xml", func(s *testSource) { s.parts = 2 }, caps, 503, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			fill(b.src, 12)
			if c.set != nil {
				c.set(b.src)
			}
			b.src.put("about.nt", nt("about", "this site"))
			xmlAt(b.src, "/sitemap.xml", urlset+"<url><loc>"+b.src.url("/set/r/about.nt")+"</loc></url></urlset>")
			b.cfg.Source, b.cfg.MaxDeleteRatio = b.src.url(c.at), 1
			if c.again {
				b.sync()
				b.sync() // one run alone proves nothing of where the source is
			}
			before, well := b.mir.lines(graphA), b.src.hook
			if c.at == caps {
				xmlAt(b.src, wellKnown, urlset+`<rs:md capability="description"/><url><loc>`+b.src.url("/other.xml")+`</loc></url></urlset>`)
				xmlAt(b.src, "/other.xml", urlset+`<rs:md capability="capabilitylist"/><url><loc>`+b.src.url("/sitemap.xml")+`</loc><rs:md capability="resourcelist"/></url></urlset>`)
			}
			answerAt(b.src, c.path, down(c.status))
			rep, err := b.open().Sync(context.Background(), SyncOptions{})
			if err == nil {
				t.Errorf("no error: %+v", rep)
			}
			b.same(b.mir.lines(graphA), before)
			b.src.hook = well
			b.sync()
			b.equal()
		})
	}
}

func TestSeveralSets(t *testing.T) {
	b := newBench(t)
	fill(b.src, 2)
	xmlAt(b.src, "/.well-known/resourcesync", urlset+`<rs:md capability="description"/>`+
		`<url><loc>`+b.src.url("/other/capabilitylist.xml")+`</loc><rs:md capability="capabilitylist"/></url>`+
		`<url><loc>`+b.src.url("/set/capabilitylist.xml")+`</loc><rs:md capability="capabilitylist"/><rs:ln rel="describedby" href="http://x/about/people"/></url></urlset>`)
	_, err := b.open().discover(context.Background())
	if err == nil || !strings.Contains(err.Error(), "offers 2 sets") || !strings.Contains(err.Error(), "other") || !strings.Contains(err.Error(), "set") {
		t.Fatal(err)
	}
	for _, name := range []string{"set", b.src.url("/set/capabilitylist.xml"), "http://x/about/people", "people"} {
		b.cfg.Set = name
		o, err := b.open().discover(context.Background())
		if err != nil || o.CapabilityList != b.src.url("/set/capabilitylist.xml") {
			t.Fatal(name, o, err)
		}
	}
	// robots.txt has a list of each set, and the Sitemap of its pages first.
	answerAt(b.src, "/.well-known/resourcesync", http.NotFound)
	xmlAt(b.src, "/sitemap.xml", urlset+"<url><loc>"+b.src.url("/page.html")+"</loc></url></urlset>")
	xmlAt(b.src, "/other/capabilitylist.xml", urlset+`<rs:md capability="capabilitylist"/><url><loc>`+b.src.url("/other/resourcelist.xml")+`</loc><rs:md capability="resourcelist"/></url></urlset>`)
	lists := "Sitemap: /sitemap.xml\nSitemap: /other/capabilitylist.xml\nSitemap: /set/resourcelist.xml\n"
	answerAt(b.src, "/robots.txt", func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, lists) })
	b.cfg.Source, b.cfg.Set = b.src.url("/"), "set"
	o, err := b.open().discover(context.Background())
	if err != nil || o.CapabilityList != b.src.url("/set/capabilitylist.xml") {
		t.Fatal(o, err)
	}
	b.cfg.Set = ""
	if _, err := b.open().discover(context.Background()); err == nil || !strings.Contains(err.Error(), "offers 2 sets") {
		t.Fatal(err)
	}
	lists = "Sitemap: /sitemap.xml\nSitemap: /set/resourcelist.xml\n"
	if o, err := b.open().discover(context.Background()); err != nil || o.CapabilityList != b.src.url("/set/capabilitylist.xml") {
		t.Fatal(o, err)
	}
	b.cfg.Source, b.src.hook = b.src.url("/.well-known/resourcesync"), nil
	b.cfg.Set = "books"
	if _, err := b.open().discover(context.Background()); err == nil || !strings.Contains(err.Error(), `no set "books"`) {
		t.Fatal(err)
	}
}

// Documents of every dialect, as their own time wrote them.
func TestDialects(t *testing.T) {
	for _, c := range []struct{ name, list, changes string }{
		{"1.1", `<rs:md capability="resourcelist" at="2026-01-01T00:00:00Z"/>`, `<rs:md capability="changelist" from="2026-01-01T00:00:00Z"/>ENTRY<url><loc>NEW</loc><rs:md change="created" datetime="2026-01-02T00:00:00Z"/></url>`},
		{"1.0", `<rs:md capability="resourcelist" at="2026-01-01T00:00:00Z"/>`, `<rs:md capability="changelist" from="2026-01-01T00:00:00Z"/><url><loc>NEW</loc><lastmod>2026-01-02T00:00:00Z</lastmod><rs:md change="created"/></url>`},
		{"0.9", `<rs:ln rel="resourcesync" href="CAPS"/><rs:md capability="resourcelist" from="2026-01-01T00:00:00Z"/>`, `<rs:ln rel="resourcesync" href="CAPS"/><rs:md capability="changelist" from="2026-01-01T00:00:00Z" until="2026-01-03T00:00:00Z"/><url><loc>NEW</loc><lastmod>2026-01-02T00:00:00Z</lastmod><rs:md change="created"/></url>`},
		{"0.5", `<rs:ln rel="resourcesync" href="CAPS"/><rs:md capability="resourcelist" modified="2026-01-01T00:00:00Z"/>`, `<rs:ln rel="resourcesync" href="CAPS"/><rs:md capability="changelist" modified="2026-01-03T00:00:00Z"/><url><loc>NEW</loc><lastmod>2026-01-02T00:00:00Z</lastmod><rs:md change="created"/></url>`},
		{"newest first", `<rs:ln rel="resourcesync" href="CAPS"/><rs:md capability="resourcelist" modified="2026-01-01T00:00:00Z"/>`, `<rs:ln rel="resourcesync" href="CAPS"/><rs:md capability="changelist" modified="2026-01-03T00:00:00Z"/><url><loc>NEW</loc><lastmod>2026-01-02T00:00:02Z</lastmod><rs:md change="created"/></url><url><loc>NEW</loc><lastmod>2026-01-02T00:00:01Z</lastmod><rs:md change="deleted"/></url>`},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			s := b.src
			fill(s, 2)
			s.put("new.nt", nt("new", "x"))
			fix := strings.NewReplacer("CAPS", s.url(s.caps), "NEW", s.url("/set/r/new.nt"), "ENTRY", "")
			xmlAt(s, listXML, fix.Replace(urlset+c.list+`<url><loc>`+s.url("/set/r/e0.nt")+`</loc></url><url><loc>`+s.url("/set/r/e1.nt")+`</loc></url></urlset>`))
			xmlAt(s, "/set/changelist.xml", fix.Replace(urlset+c.changes+"</urlset>"))
			rep := b.sync()
			if !rep.InSync || rep.Created != 3 {
				t.Fatalf("%+v", rep)
			}
			b.equal()
		})
	}
}

// An index of before 0.9 has the newest list first, and tells no interval.
func TestIndexNewestFirst(t *testing.T) {
	b := newBench(t)
	s := b.src
	fill(s, 12)
	fix := strings.NewReplacer("CAPS", s.url(s.caps), "E0", s.url("/set/r/e0.nt"), "AT", s.url("/set/"))
	head := `<rs:ln rel="resourcesync" href="CAPS"/><rs:md capability="changelist" modified="2026-02-03T00:00:00Z"/>`
	index := strings.Replace(urlset, "urlset", "sitemapindex", 1)
	change := func(kind, at string) string {
		return `<url><loc>E0</loc><lastmod>2026-02-` + at + `</lastmod><rs:md change="` + kind + `"/></url></urlset>`
	}
	xmlAt(s, "/set/1.xml", fix.Replace(urlset+head+change("updated", "01T00:00:00Z")))
	xmlAt(s, "/set/changelist.xml", fix.Replace(index+head+`<sitemap><loc>AT1.xml</loc><lastmod>2026-02-01T00:00:00Z</lastmod></sitemap></sitemapindex>`))
	b.sync()
	xmlAt(s, "/set/2.xml", fix.Replace(urlset+head+change("deleted", "02T00:00:00Z")))
	xmlAt(s, "/set/3.xml", fix.Replace(urlset+head+change("created", "03T00:00:00Z")))
	xmlAt(s, "/set/changelist.xml", fix.Replace(index+head+`<sitemap><loc>AT3.xml</loc><lastmod>2026-02-03T00:00:00Z</lastmod></sitemap><sitemap><loc>AT2.xml</loc><lastmod>2026-02-02T00:00:00Z</lastmod></sitemap>`+
		`<sitemap><loc>AT1.xml</loc><lastmod>2026-02-01T00:00:00Z</lastmod></sitemap></sitemapindex>`))
	if rep := b.sync(); !rep.InSync {
		t.Fatalf("%+v", rep)
	}
	b.same(b.mir.lines(graphA), s.want())
}

func TestBrokenDownloadIsTakenUpAgain(t *testing.T) {
	b := newBench(t)
	s := b.src
	s.dump, s.list, s.changes = true, false, false
	fill(s, 200)
	var ranges []string
	breaks := 3
	var whole []byte
	answerAt(s, "/set/dump.zip", func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if whole == nil {
			whole = s.zip()
		}
		from := 0
		w.Header().Set("ETag", `"v1"`)
		if h := r.Header.Get("Range"); h != "" && r.Header.Get("If-Range") == `"v1"` {
			fmt.Sscanf(h, "bytes=%d-", &from)
			ranges = append(ranges, h)
			w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, len(whole)-1, len(whole)))
		}
		rest := whole[from:]
		w.Header().Set("Content-Length", fmt.Sprint(len(rest)))
		if from > 0 {
			w.WriteHeader(http.StatusPartialContent)
		}
		if breaks > 0 {
			breaks--
			rest = rest[:len(rest)/3]
		}
		w.Write(rest)
	})
	d := b.open()
	d.lim.Attempts = 5
	rep, err := d.Sync(context.Background(), SyncOptions{})
	if err != nil || !rep.InSync || rep.Created != 200 {
		t.Fatalf("%+v %v", rep, err)
	}
	if len(ranges) != 3 {
		t.Fatalf("asked for %v", ranges)
	}
	b.equal()
}

// A rest of other bytes, from a proxy that does not know If-Range, is not put behind
// those that came before.
func TestRestOfAnotherFile(t *testing.T) {
	b := newBench(t)
	s := b.src
	s.changes = false
	fill(s, 200)
	list := func() []byte {
		rec := httptest.NewRecorder()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.serveList(rec, httptest.NewRequest(http.MethodGet, listXML, nil), -1)
		return rec.Body.Bytes()
	}
	whole, tag := list(), `"v1"`
	var mu sync.Mutex
	answerAt(s, listXML, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		from := 0
		if h := r.Header.Get("Range"); h != "" {
			fmt.Sscanf(h, "bytes=%d-", &from)
			w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, len(whole)-1, len(whole)))
		}
		w.Header().Set("ETag", tag)
		rest := whole[from:]
		w.Header().Set("Content-Length", fmt.Sprint(len(rest)))
		if from > 0 {
			w.WriteHeader(http.StatusPartialContent)
		}
		if tag != `"v1"` {
			w.Write(rest)
			return
		}
		w.Write(rest[:len(rest)/2])
		s.mu.Lock()
		at := s.now
		s.mu.Unlock()
		s.put("e0.nt", nt("e0", "b", "0")) // as long as before, and in the first half
		s.mu.Lock()
		s.now, s.log[len(s.log)-1].at = at, s.log[0].at
		s.mu.Unlock()
		whole, tag = list(), `"v2"`
	})
	d := b.open()
	d.lim.Attempts = 5
	if rep, err := d.Sync(context.Background(), SyncOptions{}); err != nil || !rep.InSync || rep.Created != 200 {
		t.Fatalf("%+v %v", rep, err)
	}
	b.equal()
}

// A connection that breaks before an answer came is no answer: it is asked again.
func TestConnectionsThatBreak(t *testing.T) {
	b := newBench(t)
	fill(b.src, 5)
	var seen sync.Map
	b.src.hook = func(_ http.ResponseWriter, r *http.Request) bool {
		if _, again := seen.LoadOrStore(r.URL.Path, true); !again {
			panic(http.ErrAbortHandler)
		}
		return false
	}
	if rep := b.sync(); !rep.InSync || rep.Created != 5 {
		t.Fatalf("%+v", rep)
	}
	b.equal()
}

func TestPausesAreHonoured(t *testing.T) {
	b := newBench(t)
	fill(b.src, 1)
	n := 0
	b.src.hook = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/set/r/e0.nt" {
			return false
		}
		if n++; n < 3 {
			w.Header().Set("Retry-After", "7")
			http.Error(w, "busy", http.StatusTooManyRequests)
			return true
		}
		return false
	}
	d := b.open()
	d.lim.Attempts = 5
	var slept []time.Duration
	d.reads.Client.Sleep = func(_ context.Context, p time.Duration) error { slept = append(slept, p); return nil }
	rep, err := d.Sync(context.Background(), SyncOptions{})
	if err != nil || !rep.InSync || len(slept) != 2 || slept[0] < 7*time.Second {
		t.Fatalf("%+v %v %v", rep, err, slept)
	}
}

// A list that did not change is asked for with its validators, and not read again.
func TestUnchangedListIsNotProcessed(t *testing.T) {
	b := newBench(t)
	b.src.changes = false
	fill(b.src, 5)
	b.sync()
	conditional := 0
	b.src.hook = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == listXML && r.Header.Get("If-None-Match") != "" {
			conditional++
		}
		return false
	}
	rep := b.sync()
	if conditional != 1 || rep.Mode != "none" || rep.Bytes > 2000 {
		t.Fatalf("%d conditional requests, %+v", conditional, rep)
	}
}

// An index that tells no time, as that of a plain Sitemap, stays as it is when its
// parts change.
func TestUnchangedIndexIsRead(t *testing.T) {
	b := newBench(t)
	s := b.src
	fill(s, 3)
	b.cfg.Source = s.url("/sitemap.xml")
	const sitemap = `<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">`
	answerAt(s, "/sitemap.xml", func(w http.ResponseWriter, r *http.Request) {
		s.serveXML(w, r, []byte(strings.Replace(sitemap, "urlset", "sitemapindex", 1)+`<sitemap><loc>`+s.url("/part.xml")+`</loc></sitemap></sitemapindex>`))
	})
	index := s.hook
	s.hook = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/part.xml" {
			return index(w, r)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		io.WriteString(w, sitemap)
		for name := range s.bodies {
			_, at := s.lastOf(name, len(s.log))
			fmt.Fprintf(w, `<url><loc>%s</loc><lastmod>%s</lastmod></url>`, s.url(s.folder+name), at.Format(time.RFC3339Nano))
		}
		io.WriteString(w, "</urlset>")
		return true
	}
	b.sync()
	s.put("e1.nt", nt("e1", "changed"))
	s.put("new.nt", nt("new", "x"))
	if rep := b.sync(); !rep.InSync || rep.Updated != 1 || rep.Created != 1 {
		t.Fatalf("%+v", rep)
	}
	b.equal()
}

// A plain Sitemap of addresses alone stays as it is when what they lead to changes.
func TestUnchangedAddresses(t *testing.T) {
	b := newBench(t)
	s := b.src
	fill(s, 3)
	b.cfg.Source = s.url("/sitemap.xml")
	answerAt(s, "/sitemap.xml", func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		text := `<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">`
		for _, name := range slices.Sorted(maps.Keys(s.bodies)) {
			text += "<url><loc>" + s.url(s.folder+name) + "</loc></url>"
		}
		s.serveXML(w, r, []byte(text+"</urlset>"))
	})
	b.sync()
	s.put("e1.nt", nt("e1", "changed"))
	if rep := b.sync(); !rep.InSync || rep.Updated != 1 {
		t.Fatalf("%+v", rep)
	}
	b.equal()
	if rep := b.sync(); !rep.InSync || rep.Updated != 0 || rep.Unchanged != 3 {
		t.Fatalf("%+v", rep)
	}
}

// A list of the same snapshot is told by its first bytes where the server has no
// validators; its length tells of a source that changes it and not its time.
func TestUnchangedRootTime(t *testing.T) {
	for _, coding := range []string{"", "gzip", "chunked"} {
		if teststores.Unraced(t, 2) {
			continue
		}
		t.Run(coding, func(t *testing.T) {
			b := newBench(t)
			s := b.src
			s.changes = false
			fill(s, 600)
			at := "2026-01-01T00:00:00Z"
			var date time.Time // zero: now
			sent := 0
			answerAt(s, listXML, func(w http.ResponseWriter, r *http.Request) {
				var list strings.Builder
				fmt.Fprintf(&list, `%s<rs:md capability="resourcelist" at="%s"/>`, urlset, at)
				for _, k := range slices.Sorted(maps.Keys(s.bodies)) {
					sum := sha256.Sum256(s.bodies[k])
					fmt.Fprintf(&list, `<url><loc>%s</loc><rs:md hash="sha-256:%x"/></url>`, s.url("/set/r/"+k), sum)
				}
				body := []byte(list.String() + "</urlset>")
				if coding == "gzip" {
					w.Header().Set("Content-Encoding", "gzip")
					body = gz(body)
				}
				if !date.IsZero() {
					w.Header().Set("Date", date.Format(http.TimeFormat))
				}
				if coding != "chunked" {
					w.Header().Set("Content-Length", fmt.Sprint(len(body)))
				}
				sent = len(body)
				w.Write(body)
			})
			b.sync()
			again := func(what string, read bool, updated int64) {
				t.Helper()
				rep := b.sync()
				if !rep.InSync || rep.Updated != updated || (rep.Mode == "none") == read || (rep.Bytes > int64(sent)) != read {
					t.Fatalf("%s: %+v, the list has %d bytes", what, rep, sent)
				}
				b.equal()
			}
			again("the same", false, 0)
			at = "2026-01-01T00:00:01Z"
			s.put("e7.nt", nt("e7", "changed"))
			again("another time", true, 1)
			again("the same once more", false, 0)
			if coding != "chunked" {
				s.remove("e8.nt")
				again("the same time, another length", true, 0)
			}
			if rep, err := b.open().Sync(context.Background(), SyncOptions{Full: true}); err != nil || rep.Bytes < int64(sent) {
				t.Fatalf("all of it is not read again: %+v %v", rep, err)
			}
			at = time.Now().UTC().Add(time.Hour).Format(time.RFC3339) // not over yet
			again("a time to come", true, 0)
			s.put("e9.nt", nt("e9", "changed"))
			again("the same time to come", true, 1)
			b.clock = time.Date(2026, 2, 1, 9, 0, 0, 0, time.UTC) // else the list is older than the last poll
			b.sync()
			at, date = "2026-02-01T10:00Z", time.Date(2026, 2, 1, 10, 7, 0, 0, time.UTC)
			again("a minute", true, 0)
			s.put("e9.nt", nt("e9", "another")) // by a list that was begun in that minute too
			again("the same minute", true, 1)
			date = date.Add(8 * time.Hour)
			b.sync()
			again("a minute that has long gone by", false, 0)
		})
	}
}

// Resources that are no RDF are counted and do no harm; formats are found by
// type, suffix and content.
func TestFormats(t *testing.T) {
	b := newBench(t)
	s := b.src
	s.put("a.ttl", `@prefix ex: <http://ex.org/> . ex:a ex:p "turtle" .`)
	s.put("b.jsonld", `[{"@id":"http://ex.org/b","http://ex.org/p":[{"@value":"json"}]}]`)
	s.put("c.rdf", `<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:ex="http://ex.org/"><rdf:Description rdf:about="http://ex.org/c"><ex:p>xml</ex:p></rdf:Description></rdf:RDF>`)
	s.put("d.nt", nt("d", "nt"))
	s.put("logo.png", "\x89PNG\r\n")
	s.put("readme.pdf", "%PDF-1.4")
	s.types["logo.png"], s.types["readme.pdf"] = "image/png", "application/pdf"
	rep := b.sync()
	if !rep.InSync || rep.NotRDF != 2 || rep.Created != 6 {
		t.Fatalf("%+v", rep)
	}
	b.equal()
	s.put("logo.png", "other")
	if rep = b.sync(); !rep.InSync {
		t.Fatalf("%+v", rep)
	}
	s.put("d.nt", "")
	s.types["d.nt"] = "text/html"
	if rep = b.sync(); !rep.InSync {
		t.Fatalf("%+v", rep)
	}
}

func TestStoreThatRewrites(t *testing.T) {
	b := newBench(t)
	// A rewriting that no rule knows: seen, repaired once, then recorded.
	b.mir.rewrite = func(tr rdfres.Triple) rdfres.Triple {
		if lex, lang, dt := tr.O.Literal(); tr.O.Kind() == rdfres.KindLiteral && strings.HasPrefix(lex, "odd") {
			tr.O = rdfres.NewLiteral(strings.ToUpper(lex), lang, dt)
		}
		return tr
	}
	fill(b.src, 3)
	b.src.put("odd.nt", nt("odd", "odd one", "even"))
	b.sync()
	a, err := b.open().Audit(context.Background(), AuditOptions{})
	if err != nil || a.Equal || a.Different != 1 {
		t.Fatalf("%+v %v", a, err)
	}
	a, err = b.open().Audit(context.Background(), AuditOptions{Repair: true})
	if err != nil || !a.Equal || a.Rewritten != 1 {
		t.Fatalf("%+v %v", a, err)
	}
	updates := b.mir.updates
	if want := `the store keeps literals of it in its own form, as "ODD ONE" for "odd one" (<http://ex.org/v>)`; len(a.Named) != 1 || a.Named[0].Detail != want {
		t.Errorf("%+v, want %s", a.Named, want)
	}
	a, err = b.open().Audit(context.Background(), AuditOptions{Repair: true})
	if err != nil || !a.Equal || a.Rewritten != 1 || b.mir.updates != updates {
		t.Fatalf("repaired again: %+v %v", a, err)
	}
	// What the store has made of it is missed when somebody takes it away.
	for _, text := range []string{"", " ;\nINSERT DATA { GRAPH <" + graphA + "> { \n<http://ex.org/odd> <http://ex.org/v> \"altered\" .\n} }"} {
		b.mir.exec("DELETE DATA { GRAPH <" + graphA + "> {\n<http://ex.org/odd> <http://ex.org/v> \"ODD ONE\" .\n} }" + text)
		if a, err = b.open().Audit(context.Background(), AuditOptions{}); err != nil || a.Different != 1 {
			t.Fatalf("after %s: %+v %v", text, a, err)
		}
		if a, err = b.open().Audit(context.Background(), AuditOptions{Repair: true}); err != nil || !a.Equal || a.Rewritten != 1 {
			t.Fatalf("after %s: %+v %v", text, a, err)
		}
	}
	b.src.remove("odd.nt")
	b.sync()
	want := b.src.want()
	if got := b.mir.lines(graphA); !slices.Equal(got, want) {
		t.Fatalf("the rewritten triple stayed: %v", got)
	}
	// It may be what a resource has as well.
	b.src.put("odd.nt", nt("odd", "odd one", "ODD ONE", "even"))
	b.sync()
	if a, err = b.open().Audit(context.Background(), AuditOptions{}); err != nil || !a.Equal || a.Rewritten != 1 {
		t.Fatalf("both forms: %+v %v", a, err)
	}
}

func FuzzRecords(f *testing.F) {
	f.Add((&ledger.Record{Loc: "http://a/", Entity: "http://b/", Length: -1}).Encode())
	f.Add((&item.Item{Loc: "http://a/", Version: &item.Place{URL: "http://v/"}, Others: []item.Place{{URL: "x"}}}).Encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		if r, err := ledger.DecodeRecord(b); err == nil {
			if r2, err := ledger.DecodeRecord(r.Encode()); err != nil || r2.Loc != r.Loc || r2.Graph != r.Graph || !r2.LastMod.Equal(r.LastMod) {
				t.Fatal(r, r2, err)
			}
		}
		if it, err := item.Decode(b); err == nil {
			if it2, err := item.Decode(it.Encode()); err != nil || it2.Loc != it.Loc || len(it2.Others) != len(it.Others) {
				t.Fatal(it, it2, err)
			}
		}
	})
}

// TestRobotsOfInnerHost: behind a proxy robots.txt may name an inner address. It is not
// asked for, and the error tells it.
func TestRobotsOfInnerHost(t *testing.T) {
	b := newBench(t)
	for _, address := range []string{"/", "/.well-known/resourcesync", "/resourcelist.xml", "/sitemap.xml"} {
		answerAt(b.src, address, http.NotFound)
	}
	answerAt(b.src, "/robots.txt", func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "Sitemap: http://inner.example:4000/sitemap_index.xml\n")
	})
	b.cfg.Source = b.src.url("/")
	_, err := b.open().Sync(t.Context(), SyncOptions{})
	if !errors.Is(err, webguard.ErrNotAllowed) || !strings.Contains(err.Error(), "inner.example:4000") {
		t.Error(err)
	}
}
