package destination

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/destination/sink/filesink"
	"github.com/rsbridge/rsbridge/internal/inproc"
	"github.com/rsbridge/rsbridge/internal/teststores"
)

// web is a source of fixed documents by path, which may change with each request.
type web map[string]func(n int) (status int, header http.Header, body string)

const webHost = "http://source.example"

func (w web) put(path, body string) {
	w[path] = func(int) (int, http.Header, string) { return 200, nil, body }
}

func (w web) list(path, root, capability, meta string, entries ...string) {
	w.put(path, listOf(root, capability, meta, entries...))
}

// listOf is a document; what of meta begins with < stands before its rs:md.
func listOf(root, capability, meta string, entries ...string) string {
	links, md := "", meta
	if i := strings.LastIndex(meta, ">"); i >= 0 {
		links, md = meta[:i+1], meta[i+1:]
	}
	if capability != "" {
		md = fmt.Sprintf("<rs:md capability=%q %s/>", capability, md)
	}
	return fmt.Sprintf(`<%s xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:rs="http://www.openarchives.org/rs/terms/">%s%s%s</%[1]s>`, root, links, md, strings.Join(entries, ""))
}

func urlOf(path, more string) string {
	return "<url><loc>" + webHost + path + "</loc>" + more + "</url>"
}

func nextLink(path string) string { return fmt.Sprintf(`<rs:ln rel="next" href="%s"/>`, path) }

// webBench follows such a source from an address.
func webBench(t *testing.T, w web, address string) *bench {
	b := newQuietBench(t)
	var mu sync.Mutex
	counts := map[string]int{}
	b.fetch = inproc.Transport{Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		path := r.URL.RequestURI()
		answer, ok := w[path]
		if !ok {
			http.NotFound(rw, r)
			return
		}
		mu.Lock()
		counts[path]++
		status, header, body := answer(counts[path])
		mu.Unlock()
		for k, v := range header {
			rw.Header()[k] = v
		}
		rw.WriteHeader(status)
		fmt.Fprint(rw, body)
	})}
	b.cfg.Source, b.cfg.MaxDeleteRatio = webHost+address, 1
	return b
}

func (w web) resources(n int) {
	for i := range n {
		w.put(fmt.Sprintf("/r/%d.nt", i), fmt.Sprintf("<http://ex.org/%d> <http://ex.org/p> \"1\" .\n", i))
	}
}

// resourcesOf are entries of resources from first on.
func resourcesOf(first, last int, more string) (entries []string) {
	for i := first; i < last; i++ {
		entries = append(entries, urlOf(fmt.Sprintf("/r/%d.nt", i), more))
	}
	return entries
}

const lastYear = `<lastmod>2025-01-01T00:00:00Z</lastmod>`

// A list in pages is followed through all of them, wherever a list is read; without one of them
// it is incomplete, and nothing goes from the mirror and nothing is called equal.
func TestPages(t *testing.T) {
	w := web{}
	w.resources(7)
	at := `at="2025-02-01T00:00:00Z"`
	w.list("/cap.xml", "urlset", "capabilitylist", nextLink("/cap2.xml"), urlOf("/list", `<rs:md capability="resourcelist"/>`))
	w.list("/cap2.xml", "urlset", "capabilitylist", "", urlOf("/changes", `<rs:md capability="changelist"/>`))
	w.list("/list", "urlset", "resourcelist", nextLink("/list?page=2")+at, resourcesOf(0, 2, lastYear)...)
	w.list("/list?page=2", "urlset", "resourcelist", nextLink("/list?page=3")+at, resourcesOf(2, 4, lastYear)...)
	w.list("/list?page=3", "urlset", "resourcelist", at, resourcesOf(4, 6, lastYear)...)
	change := func(n int, kind, day string) string {
		return urlOf(fmt.Sprintf("/r/%d.nt", n), fmt.Sprintf(`<rs:md change="%s" datetime="2025-02-%sT00:00:00Z"/>`, kind, day))
	}
	from := `from="2025-02-01T00:00:00Z"`
	w.list("/changes", "urlset", "changelist", nextLink("/changes?page=2")+from, change(6, "created", "02"))
	w.list("/changes?page=2", "urlset", "changelist", from, change(0, "deleted", "03"))
	b := webBench(t, w, "/cap.xml")
	equal := func(resources int) {
		t.Helper()
		for _, depth := range []string{"store", "origin"} {
			rep, err := b.open().Audit(t.Context(), AuditOptions{Depth: depth})
			if err != nil || !rep.Equal || rep.Resources != int64(resources) {
				t.Errorf("%s: %+v %v", depth, rep, err)
			}
		}
		if n := len(b.mir.lines(graphA)); n != resources {
			t.Errorf("%d triples, want %d", n, resources)
		}
	}
	if rep := b.sync(); !rep.InSync || rep.Created != 6 {
		t.Errorf("%+v", rep)
	}
	equal(6)
	// A change at the end of the last page.
	w.list("/changes?page=2", "urlset", "changelist", from, change(0, "deleted", "03"), change(1, "deleted", "04"))
	if rep := b.sync(); !rep.InSync || rep.Deleted != 1 {
		t.Errorf("%+v", rep)
	}
	equal(5)
	// Without a page nothing is concluded.
	for _, c := range []struct{ path, body string }{
		{"/list?page=3", ""}, {"/list?page=2", "<html></html>"}, {"/list?page=2", listOf("urlset", "changelist", from)}, {"/list?page=3", listOf("urlset", "resourcelist", nextLink("/list?page=2")+at)},
	} {
		was := w[c.path]
		if w.put(c.path, c.body); c.body == "" {
			delete(w, c.path)
		}
		if rep, err := b.open().Sync(t.Context(), SyncOptions{Full: true}); err == nil || rep.InSync || rep.Deleted > 0 {
			t.Errorf("%s: %+v %v", c.path, rep, err)
		}
		if rep, err := b.open().Audit(t.Context(), AuditOptions{}); err == nil && rep.Equal {
			t.Errorf("%s: %+v", c.path, rep)
		}
		if n := len(b.mir.lines(graphA)); n != 5 {
			t.Errorf("%s: %d triples", c.path, n)
		}
		w[c.path] = was
		if rep := b.sync(); !rep.InSync {
			t.Errorf("%s: %+v", c.path, rep)
		}
		equal(5)
	}
	// A page of changes that is missing.
	delete(w, "/changes?page=2")
	if rep, err := b.open().Sync(t.Context(), SyncOptions{}); err == nil {
		t.Errorf("%+v", rep)
	}
	// What names a later page is not the list.
	b = webBench(t, w, "/list?page=3")
	w.list("/list?page=3", "urlset", "resourcelist", `<rs:ln rel="prev" href="/list?page=2"/>`+at, resourcesOf(4, 6, lastYear)...)
	if rep, err := b.open().Sync(t.Context(), SyncOptions{}); err == nil || !strings.Contains(err.Error(), "later one") {
		t.Errorf("%+v %v", rep, err)
	}
}

// Pages of a list that changes while they are read may lack an entry, or have one twice.
func TestPagesThatMove(t *testing.T) {
	w := web{}
	w.resources(4)
	w["/list"] = func(n int) (int, http.Header, string) {
		if n < 2 {
			return 200, nil, listOf("urlset", "resourcelist", nextLink("/list?page=2"), resourcesOf(0, 2, lastYear)...)
		}
		return 200, nil, listOf("urlset", "resourcelist", nextLink("/list?page=2"), resourcesOf(1, 3, lastYear)...)
	}
	w.list("/list?page=2", "urlset", "resourcelist", "", resourcesOf(3, 4, lastYear)...) // 2 has moved to the first page
	b := webBench(t, w, "/list")
	if rep := b.sync(); !rep.InSync || rep.Created != 3 {
		t.Errorf("%+v", rep)
	}
	w["/list"] = func(n int) (int, http.Header, string) {
		return 200, nil, listOf("urlset", "resourcelist", nextLink("/list?page=2"), resourcesOf(1, 2+n%2, lastYear)...)
	}
	if rep, err := b.open().Sync(t.Context(), SyncOptions{Full: true}); err == nil || rep.InSync || rep.Deleted > 0 {
		t.Errorf("%+v %v", rep, err)
	}
}

// Parts of an index may lead to each other: each is read once.
func TestPagesOfAnIndex(t *testing.T) {
	w := web{}
	w.resources(6)
	w.list("/list", "sitemapindex", "resourcelist", `at="2025-02-01T00:00:00Z"`, sitemapOf("/1"), sitemapOf("/2"), sitemapOf("/3"))
	asked := 0
	for i := range 3 {
		link := ""
		if i < 2 {
			link = nextLink(fmt.Sprintf("/%d", i+2))
		}
		if i > 0 {
			link += fmt.Sprintf(`<rs:ln rel="prev" href="%s/%d"/>`, webHost, i)
		}
		body := listOf("urlset", "resourcelist", link+`at="2025-02-01T00:00:00Z"`, resourcesOf(2*i, 2*i+2, lastYear)...)
		w[fmt.Sprintf("/%d", i+1)] = func(int) (int, http.Header, string) { asked++; return 200, nil, body }
	}
	b := webBench(t, w, "/list")
	if rep := b.sync(); !rep.InSync || rep.Created != 6 || asked != 3 {
		t.Errorf("%+v, asked %d times", rep, asked)
	}
}

func sitemapOf(path string) string { return "<sitemap><loc>" + webHost + path + "</loc></sitemap>" }

// A document of the framework is no resource: an index that is written as urlset is followed where
// its entries tell that it is one, and the entry fails where only what it leads to tells.
func TestListsOfLists(t *testing.T) {
	at, from := `at="2025-02-01T00:00:00Z"`, `from="2025-01-01T00:00:00Z"`
	for _, c := range []struct {
		what     string
		root     string // of /list
		entries  []string
		followed bool
	}{
		{"at", listOf("urlset", "resourcelist", at, urlOf("/one", "<rs:md "+at+"/>"), urlOf("/two", "<rs:md "+at+"/>")), nil, true},
		{"capability", listOf("urlset", "resourcelist", at, urlOf("/one", `<rs:md capability="resourcelist"/>`), urlOf("/two", `<rs:md capability="resourcelist"/>`)), nil, true},
		{"nothing", listOf("urlset", "resourcelist", at, urlOf("/one", ""), urlOf("/two", "")), nil, false},
		{"a Sitemap of Sitemaps", listOf("urlset", "", "", urlOf("/one", ""), urlOf("/two", "")), nil, false},
		{"a resource, then a list", listOf("urlset", "resourcelist", at, urlOf("/r/0.nt", ""), urlOf("/two", "<rs:md "+at+"/>")), nil, false},
		{"a list, then a resource", listOf("urlset", "resourcelist", at, urlOf("/one", "<rs:md "+at+"/>"), urlOf("/r/3.nt", "")), nil, false},
		{"another capability", listOf("urlset", "resourcelist", at, urlOf("/r/0.nt", ""), urlOf("/changes", `<rs:md capability="changelist"/>`)), nil, false},
		{"as if it were RDF", listOf("urlset", "resourcelist", at, urlOf("/r/0.nt", ""), urlOf("/two", `<rs:md type="application/rdf+xml"/>`)), nil, false},
		{"changes of changes", "", []string{urlOf("/changes", "<rs:md "+from+"/>")}, true},
		{"changes of changes that tell nothing", "", []string{urlOf("/changes", `<rs:md change="created" datetime="2025-02-02T00:00:00Z"/>`)}, false},
		{"changes with a list", "", []string{urlOf("/two", `<rs:md change="updated" datetime="2025-02-02T00:00:00Z"/>`)}, false},
		{"changes with a capability", "", []string{urlOf("/r/3.nt", `<rs:md change="updated" datetime="2025-02-02T00:00:00Z"/>`), urlOf("/two", `<rs:md capability="resourcelist" change="updated" datetime="2025-02-02T00:00:00Z"/>`)}, false},
	} {
		for _, folder := range []bool{false, true} {
			w := web{}
			w.resources(4)
			w.list("/one", "urlset", "resourcelist", at, resourcesOf(0, 2, lastYear)...)
			w.list("/two", "urlset", "resourcelist", at, resourcesOf(2, 4, lastYear)...)
			w.list("/changes", "urlset", "changelist", from, urlOf("/r/3.nt", `<rs:md change="created" datetime="2025-02-02T00:00:00Z"/>`))
			w.list("/cap.xml", "urlset", "capabilitylist", "", urlOf("/list", `<rs:md capability="resourcelist"/>`))
			w.put("/list", c.root)
			if c.root == "" {
				w.list("/list", "urlset", "resourcelist", at, resourcesOf(0, 3, lastYear)...)
				w.list("/top", "urlset", "changelist", from, c.entries...)
				w.list("/cap.xml", "urlset", "capabilitylist", "", urlOf("/list", `<rs:md capability="resourcelist"/>`), urlOf("/top", `<rs:md capability="changelist"/>`))
			}
			b := webBench(t, w, "/cap.xml")
			if folder {
				b.cfg.GraphIRI, b.sink = "", sinkOf(t, filesink.Open, t.TempDir())
			}
			rep, err := b.open().Sync(t.Context(), SyncOptions{})
			audit, aerr := b.open().Audit(t.Context(), AuditOptions{})
			if c.followed && (err != nil || !rep.InSync || rep.Created != 4 || aerr != nil || !audit.Equal) {
				t.Errorf("%s: %+v %v, %+v %v", c.what, rep, err, audit, aerr)
			}
			if !c.followed && (rep.InSync || aerr == nil && audit.Equal) {
				t.Errorf("%s: %+v %v, %+v", c.what, rep, err, audit)
			}
		}
	}
}

// An entry that leads to a further list leaves its resources unknown: none is deleted, at no place
// of a list, and neither repair nor a pause after a failure changes that.
func TestListAmongResources(t *testing.T) {
	at := `at="2025-02-01T00:00:00Z"`
	resources := resourcesOf(0, 3, lastYear) // of 5
	for _, entry := range []string{
		urlOf("/more", `<rs:md capability="resourcelist"/>`), urlOf("/more", `<rs:md capability="resourcelist" `+at+`/>`), urlOf("/more", `<rs:md capability="changelist"/>`),
		urlOf("/more", ""), urlOf("/more", lastYear), urlOf("/more", "<rs:md "+at+"/>"), urlOf("/more", `<rs:md type="application/xml" length="9999"/>`),
	} {
		for place, put := range map[string]func(w web, entries ...string){
			"list":    func(w web, entries ...string) { w.list("/list", "urlset", "resourcelist", at, entries...) },
			"Sitemap": func(w web, entries ...string) { w.list("/list", "urlset", "", "", entries...) },
			"last page": func(w web, entries ...string) {
				w.list("/list", "urlset", "resourcelist", nextLink("/page")+at, resources...)
				w.list("/page", "urlset", "resourcelist", at, entries[len(resources):]...)
			},
			"of a part": func(w web, entries ...string) {
				w.list("/list", "sitemapindex", "resourcelist", at, sitemapOf("/part"))
				w.list("/part", "urlset", "resourcelist", at, entries...)
			},
			"whole part": func(w web, entries ...string) {
				w.list("/list", "sitemapindex", "resourcelist", at, sitemapOf("/one"), sitemapOf("/two"))
				w.list("/one", "urlset", "resourcelist", at, resources...)
				w.list("/two", "urlset", "resourcelist", at, entries[len(resources):]...)
			},
		} {
			if teststores.Unraced(t, 5) {
				continue
			}
			t.Run(place+" "+entry, func(t *testing.T) {
				w := web{}
				w.resources(5)
				put(w, append(slices.Clone(resources), resourcesOf(3, 5, lastYear)...)...)
				w.list("/more", "urlset", "resourcelist", at, resourcesOf(3, 5, lastYear)...)
				b := webBench(t, w, "/list")
				if rep := b.sync(); !rep.InSync || rep.Created != 5 {
					t.Fatalf("%+v", rep)
				}
				if strings.Contains(entry, "9999") {
					entry = strings.ReplaceAll(entry, "9999", fmt.Sprint(len(listOf("urlset", "resourcelist", at, resourcesOf(3, 5, lastYear)...))))
				}
				put(w, append(slices.Clone(resources), entry)...)
				for range 3 {
					rep, err := b.open().Sync(t.Context(), SyncOptions{Full: true})
					if err != nil || rep.Deleted > 0 || rep.InSync || !strings.Contains(rep.Why, "leads to a further list") {
						t.Fatalf("%+v %v", rep, err)
					}
				}
				audit, err := b.open().Audit(t.Context(), AuditOptions{Repair: true})
				if err != nil || audit.Equal || audit.Extra > 0 || !strings.Contains(audit.SourceError, "leads to a further list") {
					t.Errorf("%+v %v", audit, err)
				}
				if n := len(b.mir.lines(graphA)); n != 5 {
					t.Fatalf("%d triples", n)
				}
				put(w, append(slices.Clone(resources), resourcesOf(4, 5, lastYear)...)...)
				if b.sync(); len(b.mir.lines(graphA)) != 4 {
					t.Errorf("%d triples", len(b.mir.lines(graphA)))
				}
				if rep := b.sync(); !rep.InSync {
					t.Errorf("%+v", rep)
				}
			})
		}
	}
}

// A new entry that cannot be fetched may be a list: nothing goes for want of an entry until it could be
// fetched, or has failed three times over an hour.
func TestListNotFetched(t *testing.T) {
	at := `at="2025-02-01T00:00:00Z"`
	list := listOf("urlset", "resourcelist", at, resourcesOf(3, 5, lastYear)...)
	answer := func(status int, location, body string) func(int) (int, http.Header, string) {
		return func(int) (int, http.Header, string) { return status, http.Header{"Location": {location}}, body }
	}
	failures := map[string]func(int) (int, http.Header, string){
		"not there": answer(404, "", ""), "forbidden": answer(403, "", ""), "loop": answer(302, "/more", ""),
		"large": answer(200, "", strings.Replace(list, "<url>", "<!--"+strings.Repeat("x", 30_000)+"--><url>", 1)),
	}
	begin := func(t *testing.T, entry string, fails func(int) (int, http.Header, string)) (web, *bench) {
		w := web{}
		w.resources(5)
		w.list("/list", "urlset", "resourcelist", at, resourcesOf(0, 5, lastYear)...)
		b := webBench(t, w, "/list")
		b.cfg.MaxResourceBytes = 20_000
		if rep := b.sync(); !rep.InSync || rep.Created != 5 {
			t.Fatalf("%+v", rep)
		}
		w["/more"] = fails
		w.list("/list", "urlset", "resourcelist", `at="2025-02-02T00:00:00Z"`, append(resourcesOf(0, 3, lastYear), entry)...)
		return w, b
	}
	waits := func(t *testing.T, b *bench, o SyncOptions) {
		t.Helper()
		if rep, err := b.open().Sync(t.Context(), o); err != nil || rep.Deleted > 0 || rep.InSync || !strings.Contains(rep.Why, "1 new entry could not be fetched yet, and may lead to a further list, so none of the 2 resources") {
			t.Fatalf("%+v %v", rep, err)
		}
		b.clock = b.clock.Add(time.Second)
	}
	for name, fails := range failures {
		for becomes, want := range map[string]int{"a list": 5, "a resource": 4, "nothing": 3} {
			if teststores.Unraced(t, 5) {
				continue
			}
			t.Run(name+" becomes "+becomes, func(t *testing.T) {
				w, b := begin(t, urlOf("/more", ""), fails)
				waits(t, b, SyncOptions{})
				waits(t, b, SyncOptions{}) // in its pause
				for range 3 {
					waits(t, b, SyncOptions{Full: true})
				}
				audit, err := b.open().Audit(t.Context(), AuditOptions{Repair: true})
				if err != nil || audit.Equal || audit.Extra > 0 || !strings.Contains(audit.SourceError, "could not be fetched yet") {
					t.Errorf("%+v %v", audit, err)
				}
				switch becomes {
				case "a list":
					w.put("/more", list)
					if b.cfg.MaxResourceBytes = 1 << 20; name == "large" {
						w["/more"] = fails
					}
				case "a resource":
					w.put("/more", "<http://ex.org/more> <http://ex.org/p> \"1\" .\n")
				}
				b.clock = b.clock.Add(2 * time.Hour)
				rep := b.sync()
				if n := len(b.mir.lines(graphA)); n != want || strings.Contains(rep.Why, "leads to a further list") != (becomes == "a list") {
					t.Errorf("%d triples, not %d: %+v", n, want, rep)
				}
				if rep := b.sync(); rep.InSync != (becomes == "a resource") || len(b.mir.lines(graphA)) != want {
					t.Errorf("%+v", rep)
				}
			})
		}
	}
	t.Run("empty", func(t *testing.T) { // a later run that receives the same believes it
		_, b := begin(t, urlOf("/more", ""), func(int) (int, http.Header, string) { return 200, http.Header{"Content-Type": {"text/turtle"}}, "" })
		waits(t, b, SyncOptions{})
		b.sync()
		if rep := b.sync(); !rep.InSync || len(b.mir.lines(graphA)) != 3 {
			t.Errorf("%+v", rep)
		}
	})
	t.Run("RDF", func(t *testing.T) { // by its entry it is no list
		_, b := begin(t, urlOf("/more", `<rs:md type="text/turtle"/>`), failures["not there"])
		if rep := b.sync(); rep.Deleted != 2 {
			t.Errorf("%+v", rep)
		}
	})
	t.Run("recorded", func(t *testing.T) { // what was a resource before is none
		w, b := begin(t, urlOf("/r/4.nt", `<lastmod>2025-01-02T00:00:00Z</lastmod>`), nil)
		w["/r/4.nt"] = failures["not there"]
		if rep := b.sync(); rep.Deleted != 1 || len(b.mir.lines(graphA)) != 4 {
			t.Errorf("%+v", rep)
		}
	})
}

// A list in the place of a resource becomes one: what is not listed beside it goes, though the list
// of both stays as it is. An answer of an error in between tells nothing.
func TestListBecomesResource(t *testing.T) {
	for _, change := range []bool{false, true} {
		w, at := web{}, `at="2025-02-01T00:00:00Z"`
		w.resources(5)
		w.list("/list", "urlset", "resourcelist", at, resourcesOf(0, 5, lastYear)...)
		w.list("/changes", "urlset", "changelist", `from="2025-01-01T00:00:00Z"`)
		w.list("/cap.xml", "urlset", "capabilitylist", "", urlOf("/list", `<rs:md capability="resourcelist"/>`), urlOf("/changes", `<rs:md capability="changelist"/>`))
		b := webBench(t, w, "/cap.xml")
		b.sync()
		w.list("/r/5.nt", "urlset", "resourcelist", at, resourcesOf(3, 5, lastYear)...)
		w.list("/list", "urlset", "resourcelist", at, append(resourcesOf(0, 3, lastYear), urlOf("/r/5.nt", lastYear))...)
		full := func(what string) {
			t.Helper()
			if rep, err := b.open().Sync(t.Context(), SyncOptions{Full: true, Retry: true}); err != nil || rep.InSync || len(b.mir.lines(graphA)) != 5 {
				t.Fatalf("%s: %+v %v", what, rep, err)
			}
		}
		full("a list")
		w["/r/5.nt"] = func(int) (int, http.Header, string) { return 404, nil, "" }
		full("an error")
		w.resources(6)
		if change {
			w.list("/changes", "urlset", "changelist", `from="2025-01-01T00:00:00Z"`, urlOf("/r/5.nt", `<rs:md change="updated" datetime="2025-02-02T00:00:00Z"/>`))
		}
		b.clock = b.clock.AddDate(0, 0, 2)
		b.sync()
		if rep := b.sync(); !rep.InSync || len(b.mir.lines(graphA)) != 4 {
			t.Errorf("%+v, %d triples", rep, len(b.mir.lines(graphA)))
		}
	}
}

// The manifest of a dump tells as little of a further list as a Resource List does.
func TestListInDump(t *testing.T) {
	more := listOf("urlset", "resourcelist", "", resourcesOf(3, 5, "")...)
	for name, entry := range map[string]string{
		"capability": `<url><loc>BASE/more.xml</loc><rs:md capability="resourcelist" path="/more.xml"/></url>`,
		"body":       `<url><loc>BASE/more.xml</loc><rs:md path="/more.xml"/></url>`,
		"not there":  `<url><loc>BASE/none.xml</loc><rs:md path="/none.xml"/></url>`,
	} {
		why := "leads to a further list"
		if name == "not there" {
			why = "1 new entry could not be fetched yet"
		}
		t.Run(name, func(t *testing.T) {
			b := newQuietBench(t)
			b.cfg.MaxDeleteRatio = 1
			s := b.src
			pack := func(names ...string) {
				entries, files := "", map[string]string{"more.xml": more}
				for _, n := range names {
					entries += `<url><loc>` + s.url("/set/r/"+n) + `</loc><rs:md path="/` + n + `"/></url>`
					files[n] = nt(n, "x")
				}
				if len(names) == 1 {
					entries += strings.ReplaceAll(entry, "BASE", s.srv.URL)
				}
				files["manifest.xml"] = manifest(entries)
				dumpOf(s, zipOf(files), "")
			}
			pack("a.nt", "b.nt")
			if rep := b.sync(); rep.Created != 2 {
				t.Fatalf("%+v", rep)
			}
			pack("a.nt")
			rep, err := b.open().Sync(t.Context(), SyncOptions{Full: true})
			if err != nil || rep.Deleted > 0 || rep.InSync || !strings.Contains(rep.Why, why) || len(b.mir.lines(graphA)) != 2 {
				t.Errorf("%+v %v", rep, err)
			}
		})
	}
}

// No entry of a Capability List is dropped: what offers something that is not known, or two of
// one kind, is told.
func TestCapabilityListEntries(t *testing.T) {
	w := web{}
	w.resources(2)
	w.list("/list", "urlset", "resourcelist", "", resourcesOf(0, 2, "")...)
	named := urlOf("/list", `<rs:md capability="resourcelist"/>`)
	for want, entries := range map[string][]string{
		"does not tell its capability":       {named, urlOf("/other", "")},
		`capability "changelist" has no loc`: {named, `<url><rs:md capability="changelist"/></url>`},
		"names two documents":                {named, urlOf("/other", `<rs:md capability="resourcelist"/>`)},
		"":                                   {named, named, urlOf("/topic", `<rs:md capability="change-notification"/>`)},
	} {
		w.list("/cap.xml", "urlset", "capabilitylist", "", entries...)
		rep, err := webBench(t, w, "/cap.xml").open().Sync(t.Context(), SyncOptions{})
		if want == "" && (err != nil || !rep.InSync) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %+v %v", want, rep, err)
		}
	}
	// Nor one of a Source Description.
	w.list("/description", "urlset", "description", "", `<url><rs:md capability="capabilitylist"/></url>`, urlOf("/cap.xml", `<rs:md capability="capabilitylist"/>`))
	if rep, err := webBench(t, w, "/description").open().Sync(t.Context(), SyncOptions{}); err == nil || !strings.Contains(err.Error(), "/description line 1: an entry has no loc") {
		t.Errorf("%+v %v", rep, err)
	}
	// Nor one of robots.txt.
	w.put("/", "<html></html>")
	w.put("/robots.txt", "Sitemap: "+webHost+"/1.xml\nSitemap: "+webHost+"/2.xml\n")
	w.list("/1.xml", "urlset", "", "", resourcesOf(0, 1, "")...)
	w.list("/2.xml", "urlset", "", "", resourcesOf(1, 2, "")...)
	if rep, err := webBench(t, w, "/").open().Sync(t.Context(), SyncOptions{}); err == nil || !strings.Contains(err.Error(), "offers 2 sets") {
		t.Errorf("%+v %v", rep, err)
	}
}
