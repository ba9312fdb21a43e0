package publish

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/rsbridge/rsbridge/changetrack"
	"github.com/rsbridge/rsbridge/publish/days"
	"github.com/rsbridge/rsbridge/publish/offer"
	"github.com/rsbridge/rsbridge/publish/pages"
	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/resourcesync"
)

type problemDoc struct {
	Type, Title, Detail, Hint string
	Status                    int
}

// problem reads a problem document.
func (w *world) problem(res *httptest.ResponseRecorder) (p problemDoc) {
	w.t.Helper()
	if typ := res.Header().Get("Content-Type"); typ != problemType {
		w.t.Errorf("%d has the type %s", res.Code, typ)
	}
	w.must(json.Unmarshal(res.Body.Bytes(), &p))
	if p.Status != res.Code || p.Type != "about:blank" || p.Title == "" || p.Detail == "" {
		w.t.Errorf("a problem %+v with status %d", p, res.Code)
	}
	return p
}

// What browsers send for an address, and what other programs send that looks like it.
var (
	browserAccept = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8"
	navigation    = []string{"Accept", browserAccept, "Upgrade-Insecure-Requests", "1"}
	javaClient    = []string{"Accept", "text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2"}
)

// TestDeletedEntity: a person sees the last version under a banner, a program gets a problem document, and
// both get 410, also by HEAD.
func TestDeletedEntity(t *testing.T) {
	w := small(t)
	for _, tt := range []struct {
		path string
		page bool
		head []string
	}{
		{"r/gone.html", true, nil}, {"r/gone.html", true, []string{"Accept", "*/*"}}, {"r/gone", true, []string{"Accept", browserAccept}},
		{"r/gone", false, nil}, {"r/gone", false, []string{"Accept", "text/turtle"}}, {"r/gone.ttl", false, nil},
	} {
		res := w.get(w.url(tt.path), tt.head...)
		if res.Code != 410 || !strings.Contains(res.Header().Get("Link"), `rel="timemap"`) {
			t.Errorf("%s %q: %d %v", tt.path, tt.head, res.Code, res.Header())
		}
		if tt.page {
			for _, want := range []string{"<strong>Deleted.</strong>", "label of http://example.org/gone", "/data/r/gone.ttl?version=", "/data/history/gone"} {
				if !strings.Contains(res.Body.String(), want) {
					t.Errorf("%s %q lacks %s:\n%s", tt.path, tt.head, want, res.Body)
				}
			}
		} else if p := w.problem(res); !strings.Contains(p.Detail, "no longer described here since 2026-05-01T13:00:00Z") {
			t.Errorf("%s: %+v", tt.path, p)
		}
		r := httptest.NewRequest("HEAD", "/data/"+tt.path, nil)
		for i := 0; i < len(tt.head); i += 2 {
			r.Header.Set(tt.head[i], tt.head[i+1])
		}
		rec := httptest.NewRecorder()
		w.pub.Handler().ServeHTTP(rec, r)
		if rec.Code != 410 || rec.Body.Len() > 0 || rec.Header().Get("Content-Type") != res.Header().Get("Content-Type") || rec.Header().Get("Content-Length") != fmt.Sprint(res.Body.Len()) {
			t.Errorf("HEAD %s: %d %v", tt.path, rec.Code, rec.Header())
		}
	}
	// all its versions are dropped: nothing is left to be shown
	_, err := w.log.Retain(t.Context(), time.Time{}, w.clock.now())
	w.must(err)
	if res := w.get(w.url("r/gone.html"), "Accept", browserAccept); res.Code != 410 && res.Code != 404 || strings.Contains(res.Body.String(), "Below is its last version") && !strings.Contains(res.Body.String(), "label of") {
		t.Errorf("without versions: %d\n%s", res.Code, res.Body)
	}
}

// TestHistoryToItsEnd: following "Older" shows each change once, with its counts, and "Newer" leads back.
func TestHistoryToItsEnd(t *testing.T) {
	w := newWorld(t, SetConfig{Format: rdfres.JSONLD, Prefix: "http://example.org/"})
	w.scan(map[string]int{berlin: 0}, false, rdfres.JSONLD)
	for i := range 129 {
		w.clock.add(time.Minute)
		w.scan(map[string]int{berlin: i + 1}, true, rdfres.JSONLD)
	}
	w.publish()
	rows := regexp.MustCompile(`(?s)<td class="num"><span class="plus">\+(\d+)</span> <span class="minus">−(\d+)</span></td><td>.*?</td><td class="num">(\d+)</td>`)
	next := regexp.MustCompile(`<a rel="(next|prev)" href="([^"]*)"`)
	address, seen, pagesSeen := w.url("history/Berlin"), map[string]bool{}, 0
	for address != "" {
		body := w.get(address).Body.String()
		pagesSeen++
		address = ""
		for _, m := range rows.FindAllStringSubmatch(body, -1) {
			if seen[m[3]] || m[1] == "0" {
				t.Errorf("change %s: twice or +%s", m[3], m[1])
			}
			seen[m[3]] = true
		}
		for _, m := range next.FindAllStringSubmatch(body, -1) {
			if m[1] == "next" {
				address = m[2]
			} else if back := w.get(m[2]); back.Code != 200 || pagesSeen == 2 && m[2] != w.url("history/Berlin") {
				t.Errorf("page %d leads back to %s: %d", pagesSeen, m[2], back.Code)
			}
		}
	}
	if len(seen) != 130 || pagesSeen != 3 {
		t.Errorf("%d changes on %d pages, want 130 on 3", len(seen), pagesSeen)
	}
	page := w.get(w.url("compare/Berlin?from=3&to=1")).Body.String()
	for _, want := range []string{`<a href="` + w.url("r/Berlin.html?version=1") + `">`, `<del><span class="text" dir="auto">0</span></del>`, `<ins><span class="text" dir="auto">2</span></ins>`} {
		if !strings.Contains(page, want) {
			t.Errorf("the comparison lacks %s:\n%s", want, page)
		}
	}
	for path, code := range map[string]int{"compare/Berlin": 400, "compare/Berlin?from=1": 400, "compare/Berlin?from=1&to=999": 404, "history/Berlin?before=x": 400, "history/Nobody": 404, "history/Berlin?before=1": 200, "compare/Berlin?from=2&to=2": 200} {
		if res := w.get(w.url(path)); res.Code != code {
			t.Errorf("%s: %d, want %d", path, res.Code, code)
		}
	}
}

// TestViewAndDownload: each format is offered to be read and to be kept, and what is read has the same bytes.
func TestViewAndDownload(t *testing.T) {
	w := small(t)
	body := w.get(w.url("r/Berlin.html")).Body.String()
	for _, suffix := range []string{".jsonld", ".nt", ".ttl", ".rdf"} {
		address := w.url("r/Berlin" + suffix)
		if !strings.Contains(body, `href="`+address+`?as=text"`) || !strings.Contains(body, `href="`+address+`" type="`) || !strings.Contains(body, `download="Berlin`+suffix+`"`) {
			t.Errorf("%s is not offered", suffix)
		}
		plain, res := w.get(address), w.get(address+"?as=text")
		if res.Header().Get("Content-Type") != "text/plain; charset=utf-8" || res.Body.String() != plain.Body.String() || plain.Header().Get("Content-Type") == "text/plain; charset=utf-8" {
			t.Errorf("%s as text: %v\n%s", suffix, res.Header(), res.Body)
		}
	}
	if res := w.get(w.url("r/Berlin.ttl?version=2&as=text")); res.Code != 200 && res.Code != 404 {
		t.Errorf("a version as text: %d", res.Code)
	}
}

// TestDocumentsAsTables: a browser is led to the page of a document, everybody else gets the XML, byte for
// byte as before; the pages together show each entry once.
func TestDocumentsAsTables(t *testing.T) {
	w := newWorld(t, SetConfig{Format: rdfres.JSONLD, Prefix: "http://example.org/", PartEntries: 300, RotateEntries: 50, Archives: true, Capabilities: []string{"resourcelist", "changelist", "resourcedump", "changedump"}})
	w.rounds(3, 220)
	documents := []string{testBase + "/.well-known/resourcesync", w.url("capabilitylist.xml")}
	seen := map[string]bool{}
	for len(documents) > 0 {
		address := documents[0]
		documents = documents[1:]
		if seen[address] {
			continue
		}
		seen[address] = true
		plain := w.get(address)
		for _, header := range [][]string{{"Accept", "*/*"}, {"Accept", "application/xml"}, {"Accept", browserAccept}, javaClient} {
			res := w.get(address, header...)
			if res.Code != 200 || res.Body.String() != plain.Body.String() || res.Header().Get("Etag") != plain.Header().Get("Etag") {
				t.Fatalf("%s with %q: %d %v", address, header, res.Code, res.Header())
			}
		}
		res := w.get(address+"?as=xml", navigation...)
		if res.Code != 200 || res.Body.String() != plain.Body.String() {
			t.Errorf("%s?as=xml: %d", address, res.Code)
		}
		res = w.get(address, navigation...)
		page := res.Header().Get("Location")
		if res.Code != 303 || res.Header().Get("Cache-Control") != "no-store" || w.get(address, "Accept", "text/html").Code != 303 {
			t.Fatalf("%s in a browser: %d %v", address, res.Code, res.Header())
		}
		h, entries := w.read(address)
		rows := 0
		for n := 1; page != ""; n++ {
			table := w.get(page, navigation...)
			body := table.Body.String()
			if table.Code != 200 || table.Header().Get("Content-Type") != offer.HTMLType || strings.Contains(body, "ZgotmplZ") {
				t.Fatalf("%s: %d %v", page, table.Code, table.Header())
			}
			rows += strings.Count(body, "<tr>") - 1
			m := regexp.MustCompile(`<a rel="next" href="([^"]*)"`).FindStringSubmatch(body)
			if page = ""; m != nil {
				page = m[1]
			} else if beyond := w.get(pages.PageOf(strings.Replace(address, "/.well-known/resourcesync", "/sourcedescription.xml", 1), n+1)); beyond.Code != 404 {
				t.Errorf("%s has a page %d: %d", address, n+1, beyond.Code)
			}
		}
		if rows != len(entries) && len(entries) > 0 {
			t.Errorf("%s has %d entries, its pages %d", address, len(entries), rows)
		}
		for _, e := range entries {
			if h.Index || h.Meta.Capability == resourcesync.CapabilityList || h.Meta.Capability == resourcesync.Description || h.Meta.Capability.Archive() {
				documents = append(documents, e.Loc)
			}
			if l := e.Link(resourcesync.RelContents); l != nil {
				documents = append(documents, l.Href)
			}
		}
	}
	if len(seen) < 20 {
		t.Errorf("only %d documents", len(seen))
	}
	for _, path := range []string{"resourcelist.0.html", "resourcelist.1.html", "resourcelist.02.html", "resourcelist.x.html", "nothing.html", "archives/x.html", "resourcedump/x.html", "r/x.html", "patch/1.html"} {
		if res := w.get(w.url(path)); res.Code != 404 && res.Code != 410 {
			t.Errorf("%s: %d", path, res.Code)
		}
	}
}

// TestSearchPages: a reader finds an entity by a word and by its IRI, and reads the alphabet to its end.
func TestSearchPages(t *testing.T) {
	w := newWorld(t, SetConfig{Format: rdfres.JSONLD, Prefix: "http://example.org/"})
	values := map[string]int{}
	for i := range 230 {
		values[fmt.Sprintf("http://example.org/e/%d", i)] = i
	}
	w.scan(values, false, rdfres.JSONLD)
	w.publish()
	if body := w.get(w.url("search?q=219")).Body.String(); !strings.Contains(body, `href="`+w.url("r/e/219.html")+`"`) || strings.Contains(body, w.url("r/e/21.html")) || !strings.Contains(body, `value="219"`) {
		t.Errorf("a word:\n%s", body)
	}
	if res := w.get(w.url("search?q=http://example.org/e/7")); res.Code != 303 || res.Header().Get("Location") != w.url("r/e/7.html") {
		t.Errorf("an IRI: %d %v", res.Code, res.Header())
	}
	if body := w.get(w.url("search?q=%3Cscript%3E")).Body.String(); strings.Contains(body, "<script") || !strings.Contains(body, "Nothing is found") {
		t.Errorf("nothing:\n%s", body)
	}
	if body := w.get(w.url("search?q=")).Body.String(); !strings.Contains(body, `<p class="note">Search finds whole IRIs`) {
		t.Errorf("no words:\n%s", body)
	}
	if body := w.get(w.url("search?q=%ff")).Body.String(); !utf8.ValidString(body) {
		t.Errorf("no text:\n%q", body)
	}
	found := map[string]bool{}
	for address := w.url("browse?letter=l"); address != ""; {
		body := w.get(address).Body.String()
		for _, m := range regexp.MustCompile(`<li><a href="([^"]*)" dir="auto">label of`).FindAllStringSubmatch(body, -1) {
			if found[m[1]] {
				t.Errorf("%s twice", m[1])
			}
			found[m[1]] = true
		}
		address = ""
		if m := regexp.MustCompile(`<a rel="next" href="([^"]*)"`).FindStringSubmatch(body); m != nil {
			address = strings.ReplaceAll(m[1], "&amp;", "&")
		}
	}
	if len(found) != 230 {
		t.Errorf("the alphabet has %d names", len(found))
	}
	w.scan(map[string]int{"http://example.org/e/7": -1, "http://example.org/zebra": 1}, true, rdfres.JSONLD)
	w.publish()
	if body := w.get(w.url("search?q=zebra")).Body.String(); !strings.Contains(body, w.url("r/zebra.html")) {
		t.Errorf("what came:\n%s", body)
	}
	if body := w.get(w.url("browse?after=%21")); body.Code != 400 {
		t.Errorf("a broken mark: %d", body.Code)
	}
}

// TestStaticPages: a page for files leads to no program.
func TestStaticPages(t *testing.T) {
	w := small(t)
	for _, path := range []string{"r/Berlin.html", "about.html", "resourcelist.html", "changelist.html", "browse.html"} {
		res := w.get(w.url(path), "Prefer", "static")
		body := res.Body.String()
		for _, not := range []string{"?", "/history/", "/compare/", "/browse\"", "/search", "<form"} {
			for _, m := range regexp.MustCompile(`<[^>]*>`).FindAllString(body, -1) {
				if strings.Contains(m, not) && !strings.HasPrefix(m, "<style") {
					t.Errorf("%s has %s", path, m)
				}
			}
		}
		for _, m := range regexp.MustCompile(`href="(`+testBase+`[^"]*)"`).FindAllStringSubmatch(body, -1) {
			if strings.Contains(m[1], ".rdf") || strings.HasSuffix(m[1], "/gone.html") || strings.HasSuffix(m[1], "/r/Berlin") || strings.Contains(m[1], "changelist-open") {
				t.Errorf("%s leads to %s, which is no file of a site", path, m[1])
			}
		}
		if with := w.get(w.url(path)).Body.String(); with == body {
			t.Errorf("%s is the same for a program", path)
		}
	}
}

// TestAlphabetOfFiles: following the Link header from browse.html on, each name is on the page of its letter, once.
// Letters and "Next" lead to these pages. Other pages are not there, nor is any of them for a program.
func TestAlphabetOfFiles(t *testing.T) {
	w := newWorld(t, SetConfig{Format: rdfres.JSONLD, Prefix: "http://example.org/"})
	var found []rdfres.Description
	for i := range 250 {
		label := fmt.Sprintf("alpha %d", i)
		if i >= 230 {
			label = string([]rune("bcé北")[i%4]) + fmt.Sprint(i)
		}
		iri := fmt.Sprint("http://example.org/", i)
		found = append(found, rdfres.Description{Entity: iri, Triples: []rdfres.Triple{{S: rdfres.NewIRI(iri), P: rdfres.NewIRI("http://www.w3.org/2000/01/rdf-schema#label"), O: rdfres.NewLiteral(label, "", "")}}})
	}
	slices.SortFunc(found, func(a, b rdfres.Description) int {
		x, y := rdfres.EntityKey(a.Entity), rdfres.EntityKey(b.Entity)
		return bytes.Compare(x[:], y[:])
	})
	_, err := w.log.Scan(t.Context(), func(yield func(rdfres.Description, error) bool) {
		for _, d := range found {
			if !yield(d, nil) {
				return
			}
		}
	}, changetrack.ScanOptions{Format: rdfres.JSONLD, MaxDeleteRatio: -1})
	w.must(err)
	w.publish()
	seen, links, way := map[string]bool{}, map[string]bool{}, []string{}
	for next := w.url("browse.html"); next != ""; {
		res := w.get(next, "Prefer", "static")
		page, _, _ := strings.Cut(next, "?")
		way = append(way, strings.TrimPrefix(page, w.url("")))
		if res.Code != 200 {
			t.Fatalf("%s: %d", next, res.Code)
		}
		_, names, _ := strings.Cut(res.Body.String(), `<ul class="names">`)
		for _, m := range regexp.MustCompile(`<li><a href="([^"]*)" dir="auto">`).FindAllStringSubmatch(names, -1) {
			if seen[m[1]] {
				t.Errorf("%s twice", m[1])
			}
			seen[m[1]] = true
		}
		for _, m := range regexp.MustCompile(`href="([^"]*/browse/[^"]*)"`).FindAllStringSubmatch(res.Body.String(), -1) {
			links[strings.TrimPrefix(m[1], w.url(""))] = true
		}
		next = ""
		if l := resourcesync.HeaderLinks(res.Header()["Link"], "next"); len(l) > 0 {
			next = l[0]
		}
	}
	if len(seen) != 250 || fmt.Sprint(way) != "[browse.html browse/a.html browse/a.2.html browse/a.3.html browse/b.html browse/c.html browse/e.html browse/u5317.html]" {
		t.Errorf("%d names on %v", len(seen), way)
	}
	for _, page := range way[1:] {
		if !links[page] {
			t.Errorf("no page leads to %s", page)
		}
		delete(links, page)
	}
	if len(links) > 0 {
		t.Errorf("pages lead to %v", links)
	}
	for _, path := range []string{"browse/a.4.html", "browse/a.2.html", "browse/z.html", "browse/.html", "browse/a", "browse/a.1.html?after=YQ", "browse/a.html?after=YQ", "browse/a.02.html?after=YQ", "browse/a/b.html"} {
		if res := w.get(w.url(path), "Prefer", "static"); res.Code != 404 {
			t.Errorf("%s: %d", path, res.Code)
		}
	}
	if res := w.get(w.url("browse.html")); res.Code != 404 {
		t.Errorf("for a program: %d", res.Code)
	}
	if res := w.get(w.url("browse/a.2.html?after=%21"), "Prefer", "static"); res.Code != 400 {
		t.Errorf("a broken mark: %d", res.Code)
	}
	if body := w.get(testBase+"/?set=nothing", "Prefer", "static").Body.String(); !strings.Contains(body, "There are no sets here yet") {
		t.Errorf("the start page of no set:\n%s", body)
	}
	if body := w.get(testBase+"/?set=data", "Prefer", "static").Body.String(); !strings.Contains(body, w.url("about.html")) {
		t.Errorf("the start page of a set:\n%s", body)
	}
}

// TestFrame: the policy allows the style of the page, and nothing else; the page has an icon, a language, a
// title and a description.
func TestFrame(t *testing.T) {
	w := small(t)
	for _, address := range []string{testBase + "/", w.url("about.html"), w.url("r/Berlin.html"), w.url("resourcelist.html"), w.url("search"), w.url("history/Berlin"), w.url("nothing")} {
		res := w.get(address, "Accept", browserAccept)
		body := res.Body.String()
		style := regexp.MustCompile(`(?s)<style>(.*)</style>`).FindStringSubmatch(body)
		if style == nil {
			t.Fatalf("%s has no style", address)
		}
		sum := sha256.Sum256([]byte(style[1]))
		if policy := res.Header().Get("Content-Security-Policy"); !strings.Contains(policy, "style-src 'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"';") || !strings.HasPrefix(policy, "default-src 'none';") {
			t.Errorf("%s: %s", address, policy)
		}
		for _, want := range []string{`<html lang="en">`, `<meta charset="utf-8">`, `<meta name="description" content="`, `<link rel="icon" href="data:image/svg`, "<main id=\"main\">", "<h1"} {
			if !strings.Contains(body, want) {
				t.Errorf("%s lacks %s", address, want)
			}
		}
		for _, not := range []string{" style=", "<script", " onclick", "ZgotmplZ", "<no value>"} {
			if strings.Contains(body, not) {
				t.Errorf("%s has %s", address, not)
			}
		}
	}
	if body := w.get(w.url("r/nothing"), "Accept", browserAccept).Body.String(); !strings.Contains(body, `<a href="`+w.url("about.html")+`"`) || !strings.Contains(body, `action="`+w.url("search")+`"`) {
		t.Errorf("a missing page of a set does not lead on:\n%s", body)
	}
	if res := w.get(testBase + "/favicon.ico"); res.Code != 200 || res.Header().Get("Content-Type") != "image/svg+xml" {
		t.Errorf("the icon: %d %v", res.Code, res.Header())
	}
}

// TestDays: the chart of a set counts the changes of each day once, also over restarts.
func TestDays(t *testing.T) {
	w := newWorld(t, SetConfig{Format: rdfres.JSONLD})
	w.scan(map[string]int{berlin: 0}, false, rdfres.JSONLD)
	w.publish()
	for day := range 100 {
		w.clock.add(24 * time.Hour)
		w.scan(map[string]int{berlin: day + 1, fmt.Sprint("http://example.org/", day): 1}, true, rdfres.JSONLD)
		w.publish()
		w.clock.add(time.Hour / 100)
		w.scan(map[string]int{fmt.Sprint("http://example.org/", day): -1}, true, rdfres.JSONLD)
		w.publish()
		if day%30 == 0 {
			w.reopen()
		}
	}
	s := w.pub.lookup("data")
	last, err := days.Last(t.Context(), s.kv, w.clock.now(), 100)
	w.must(err)
	if len(last) != 100 || last[99].Date != w.clock.now().Format(time.DateOnly) {
		t.Errorf("days %v", last)
	}
	for i, d := range last {
		if want := int64(min(1, max(0, i-9))); d.Created != want || d.Updated != want || d.Deleted != want {
			t.Errorf("%+v, want %d", d, want)
		}
	}
}

// TestHugeEntity: a description too long for a page is not laid out, and one with very many values is cut: the
// pages stay small, and lead to the whole.
func TestHugeEntity(t *testing.T) {
	for values, want := range map[int]string{60000: "too long for a page", 9000: "and 8\u202f800 more"} {
		w := newWorld(t, SetConfig{Format: rdfres.NTriples, Prefix: "http://example.org/"})
		d := rdfres.Description{Entity: berlin}
		for i := range values {
			d.Triples = append(d.Triples, rdfres.Triple{S: rdfres.NewIRI(berlin), P: rdfres.NewIRI("http://example.org/p"), O: rdfres.NewLiteral(fmt.Sprintf("value %d of very many", i), "", "")})
		}
		d.Triples = rdfres.SortUnique(d.Triples)
		_, err := w.log.Scan(t.Context(), func(yield func(rdfres.Description, error) bool) { yield(d, nil) }, changetrack.ScanOptions{Format: rdfres.NTriples, MaxDeleteRatio: -1})
		w.must(err)
		w.publish()
		for _, path := range []string{"r/Berlin.html", "history/Berlin", "about.html", "search?q=berlin"} {
			res := w.get(w.url(path))
			if res.Code != 200 || res.Body.Len() > 100<<10 {
				t.Errorf("%d values, %s: %d, %d bytes", values, path, res.Code, res.Body.Len())
			}
			if path == "r/Berlin.html" && (!strings.Contains(res.Body.String(), want) || !strings.Contains(res.Body.String(), `download="Berlin.nt"`)) {
				t.Errorf("%d values: the page lacks %q", values, want)
			}
		}
	}
}
