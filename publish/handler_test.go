package publish

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/publish/naming"
	"github.com/rsbridge/rsbridge/publish/offer"
	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/rdfres/codec"
	"github.com/rsbridge/rsbridge/resourcesync"
	"github.com/rsbridge/rsbridge/resourcesync/check"
)

const (
	berlin = "http://example.org/Berlin"
	evil   = `http://example.org/"><script>alert(1)</script>`
)

// small is a published set with a history: berlin changed twice, gone deleted.
func small(t *testing.T) *world {
	w := newWorld(t, SetConfig{Format: rdfres.JSONLD, Prefix: "http://example.org/", Title: "Places <of> note", Licence: "http://creativecommons.org/licenses/by/4.0/"})
	w.scan(map[string]int{berlin: 1, "http://example.org/gone": 1, evil: 3, "http://example.org/e/1": 4}, false, rdfres.JSONLD)
	w.clock.add(time.Hour)
	w.scan(map[string]int{berlin: 2, "http://example.org/gone": -1}, true, rdfres.JSONLD)
	w.clock.add(time.Hour)
	w.scan(map[string]int{berlin: 8}, true, rdfres.JSONLD)
	w.publish()
	w.clock.add(time.Hour)
	return w
}

func TestRepresentations(t *testing.T) {
	w := small(t)
	want := triplesOf(berlin, 8)
	for _, tt := range []struct{ suffix, accept, contentType string }{
		{".jsonld", "", "application/ld+json"},
		{".nt", "", "application/n-triples"},
		{".ttl", "application/json", "text/turtle; charset=utf-8"},
		{".rdf", "", "application/rdf+xml"},
		{"", "", "application/ld+json"},
		{"", "*/*", "application/ld+json"},
		{"", "text/turtle;q=0.5, application/n-triples", "application/n-triples"},
		{"", "text/turtle, */*;q=0.1", "text/turtle; charset=utf-8"},
		{"", "application/*;q=0.2, application/rdf+xml", "application/rdf+xml"},
		{"", "application/json", "application/ld+json"},
		{"", "application/ld+json;q=0, application/*", "application/n-triples"},
	} {
		res := w.get(w.url("r/Berlin"+tt.suffix), "Accept", tt.accept)
		if res.Code != 200 || res.Header().Get("Content-Type") != tt.contentType {
			t.Errorf("%q, Accept %q: %d %s, want %s\n%s", tt.suffix, tt.accept, res.Code, res.Header().Get("Content-Type"), tt.contentType, res.Body)
			continue
		}
		f, _ := rdfres.FormatByMediaType(tt.contentType)
		got, err := codec.Decode(f, res.Body.Bytes(), rdfres.ReadOptions{})
		if err != nil || rdfres.GraphDigest(rdfres.SortUnique(got)) != rdfres.GraphDigest(want) {
			t.Errorf("%q, Accept %q: another graph (%v)\n%s", tt.suffix, tt.accept, err, res.Body)
		}
		if generic := tt.suffix == ""; generic != strings.Contains(strings.Join(res.Header()["Vary"], ","), "Accept,") && generic != (res.Header().Get("Content-Location") != "") {
			t.Errorf("%q, Accept %q: Vary %q, Content-Location %q", tt.suffix, tt.accept, res.Header()["Vary"], res.Header().Get("Content-Location"))
		}
	}
	for _, browser := range []string{"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"} {
		res := w.get(w.url("r/Berlin"), "Accept", browser)
		if res.Header().Get("Content-Type") != offer.HTMLType || !strings.Contains(res.Body.String(), "label of http://example.org/Berlin") {
			t.Errorf("for a browser: %s\n%s", res.Header().Get("Content-Type"), res.Body)
		}
	}
	res := w.get(w.url("r/Berlin"), "Accept", "image/png")
	if res.Code != 406 || !strings.Contains(res.Body.String(), "/data/r/Berlin.ttl  text/turtle") {
		t.Errorf("406: %d %s", res.Code, res.Body)
	}
}

func TestConditionalRequests(t *testing.T) {
	w := small(t)
	address := w.url("r/Berlin.jsonld")
	res := w.get(address)
	tag, modified := res.Header().Get("Etag"), res.Header().Get("Last-Modified")
	packed := w.get(address, "Accept-Encoding", "br, gzip;q=0.5")
	packedTag := packed.Header().Get("Etag")
	if packed.Header().Get("Content-Encoding") != "gzip" || packedTag == tag || strings.HasPrefix(tag, "W/") {
		t.Errorf("ETags %s and, packed, %s", tag, packedTag)
	}
	for _, tt := range []struct {
		name   string
		header []string
		code   int
	}{
		{"its ETag", []string{"If-None-Match", tag}, 304},
		{"weak", []string{"If-None-Match", `"x", W/` + tag}, 304},
		{"the packed one", []string{"If-None-Match", packedTag}, 304},
		{"any", []string{"If-None-Match", "*"}, 304},
		{"another", []string{"If-None-Match", `"x"`}, 200},
		{"another wins over the date", []string{"If-None-Match", `"x"`, "If-Modified-Since", modified}, 200},
		{"its date", []string{"If-Modified-Since", modified}, 304},
		{"an earlier date", []string{"If-Modified-Since", "Fri, 01 May 2026 13:59:59 GMT"}, 200},
		{"no date", []string{"If-Modified-Since", "yesterday"}, 200},
		{"no gzip", []string{"Accept-Encoding", "gzip;q=0"}, 200},
	} {
		if res := w.get(address, tt.header...); res.Code != tt.code || res.Header().Get("Content-Encoding") != "" {
			t.Errorf("%s: %d %v, want %d", tt.name, res.Code, res.Header(), tt.code)
		}
	}
	// what is younger than two seconds is never unchanged by its date
	w.scan(map[string]int{berlin: 9}, true, rdfres.JSONLD)
	w.publish()
	young := w.get(address)
	if res := w.get(address, "If-Modified-Since", young.Header().Get("Last-Modified")); res.Code != 200 {
		t.Errorf("young: %d", res.Code)
	}
	w.clock.add(3 * time.Second)
	if res := w.get(address, "If-Modified-Since", young.Header().Get("Last-Modified")); res.Code != 304 {
		t.Errorf("not so young: %d", res.Code)
	}
	r := httptest.NewRequest("HEAD", "/data/r/Berlin.jsonld", nil)
	rec := httptest.NewRecorder()
	w.pub.Handler().ServeHTTP(rec, r)
	if rec.Code != 200 || rec.Body.Len() != 0 || rec.Header().Get("Content-Length") != young.Header().Get("Content-Length") {
		t.Errorf("HEAD: %d %v %d bytes", rec.Code, rec.Header(), rec.Body.Len())
	}
}

func TestAnswersThatAreErrors(t *testing.T) {
	w := small(t)
	for _, tt := range []struct {
		path string
		code int
		text string
	}{
		{"/data/r/Nobody.jsonld", 404, "no description of that name"},
		{"/data/r/gone.jsonld", 410, "/data/r/gone.jsonld?version="},
		{"/data/r/gone", 410, "/data/timemap/gone"},
		{"/data/r/a%20b.jsonld", 404, "not the name"},
		{"/data/r/../r/Berlin.jsonld", 404, ""},
		{"/data/r/..%2F..%2Fetc%2Fpasswd", 404, ""},
		{"/data/resourcedump/../../x", 410, ""},
		{"/data/resourcedump/..%2F..%2Fx", 410, ""},
		{"/data/r/Berlin.xml", 404, ""},
		{"/data/r/Berlin.jsonld?version=0", 404, "not kept"},
		{"/data/r/Berlin.jsonld?version=x", 400, "want the number"},
		{"/data/r/", 404, ""},
		{"/data/r/%zz", 404, ""},
		{"/data/changelist-1.xml", 404, ""},
		{"/data/changelist-000002.xml", 404, ""},
		{"/data/resourcelist-.xml", 404, ""},
		{"/data/resourcelist-0101010101010101.xml", 404, ""},
		{"/data/resourcedump.xml", 404, "no Resource Dump"},
		{"/data/changedump.xml", 404, ""},
		{"/data/patch/999999.json", 404, "no patch"},
		{"/data/patch/01.json", 404, ""},
		{"/data/nothing", 404, "/.well-known/resourcesync"},
		{"/nothing/", 404, "no set"},
		{"/robots.txt", 404, ""},
		{"//data/capabilitylist.xml", 404, ""},
	} {
		r := httptest.NewRequest("GET", "/", nil)
		u, err := url.Parse("http://source.example" + tt.path)
		if err != nil { // what no client can send as it is
			continue
		}
		r.URL = u
		rec := httptest.NewRecorder()
		w.pub.Handler().ServeHTTP(rec, r)
		if rec.Code != tt.code || !strings.Contains(rec.Body.String(), tt.text) {
			t.Errorf("%s: %d %s, want %d with %q", tt.path, rec.Code, rec.Body, tt.code, tt.text)
		}
	}
	rec := httptest.NewRecorder()
	w.pub.Handler().ServeHTTP(rec, httptest.NewRequest("POST", "/data/r/Berlin", nil))
	if rec.Code != 405 || rec.Header().Get("Allow") == "" {
		t.Errorf("POST: %d", rec.Code)
	}
	if res := w.get(w.url("r/gone")); res.Code != 410 || strings.Count(strings.Join(res.Header()["Vary"], ", ")+", ", "Accept, ") != 1 {
		t.Errorf("a negotiated error: %d %v", res.Code, res.Header())
	}
	page := w.get(w.url("r/%3Cscript%3E"), "Accept", "text/html").Body.String()
	if strings.Contains(page, "<script>") || !strings.Contains(page, "<main ") {
		t.Errorf("error page: %s", page)
	}
}

// TestNameWithoutPrefix: the advice on names tells no prefix where there is none.
func TestNameWithoutPrefix(t *testing.T) {
	w := newWorld(t, SetConfig{Format: rdfres.NTriples})
	w.scan(map[string]int{"http://example.org/a": 1}, false, rdfres.NTriples)
	w.publish()
	if p := w.problem(w.get(w.url("r/%FF"))); p.Hint != "A name is the entity's IRI, with ~XX for what does not stand for itself." {
		t.Errorf("%+v", p)
	}
}

// TestRefuse: a reader without leave gets a page of the set or a problem document, and no cache keeps it.
func TestRefuse(t *testing.T) {
	w := small(t)
	for accept, want := range map[string]string{browserAccept: "<p>Only some.</p>\n<p class=\"dim\">Ask.</p>", "*/*": `"detail":"Only some.","hint":"Ask."`} {
		r := httptest.NewRequest("GET", w.url("r/Berlin"), nil)
		r.Header.Set("Accept", accept)
		rec := httptest.NewRecorder()
		w.pub.Refuse(rec, r, 401, "Only some.", "Ask.")
		if h := rec.Header(); rec.Code != 401 || h.Get("Cache-Control") != "no-store" || !strings.Contains(rec.Body.String(), want) {
			t.Errorf("%s: %d %v %s", accept, rec.Code, h, rec.Body)
		}
	}
}

// TestFormerSet: the page of a set that was removed says so for people, with a link to what
// there is.
func TestFormerSet(t *testing.T) {
	w := small(t)
	b := w.store.Batch()
	w.must(Forget(t.Context(), kv.Prefix(w.store, []byte("pub/")), b, "gone", w.clock.now()))
	w.must(b.Commit(t.Context(), true))
	w.reopen()
	res := w.get(testBase+"/gone/r/a?b=%22", "Accept", "text/html")
	for _, want := range []string{"<p>The set gone was removed on 2026-", " UTC.</p>", `listed at <a href="` + testBase + `/.well-known/resourcesync">` + testBase + `/.well-known/resourcesync</a>.</p>`} {
		if page := res.Body.String(); res.Code != http.StatusGone || !strings.Contains(page, want) {
			t.Errorf("%d, without %s: %s", res.Code, want, page)
		}
	}
	if p := w.problem(w.get(testBase + "/gone/capabilitylist.xml")); p.Status != 410 || !strings.HasPrefix(p.Detail, "The set gone was removed on ") || strings.Contains(p.Detail, "<") {
		t.Errorf("for programs: %+v", p)
	}
}

func TestVersions(t *testing.T) {
	w := small(t)
	_, changes := w.all(w.url("changelist.xml"))
	var mementos []string
	for _, e := range changes {
		if strings.HasSuffix(e.Loc, "/Berlin.jsonld") {
			mementos = append(mementos, e.Link(resourcesync.RelMemento).Href)
		}
	}
	if len(mementos) != 2 {
		t.Fatalf("mementos %v", mementos)
	}
	old := w.get(mementos[0])
	want, _ := codec.Encode(rdfres.JSONLD, berlin, triplesOf(berlin, 2))
	if old.Body.String() != string(want) || old.Header().Get("Memento-Datetime") != "Fri, 01 May 2026 13:00:00 GMT" || old.Header().Get("Cache-Control") != cacheForever {
		t.Errorf("memento: %v\n%s", old.Header(), old.Body)
	}
	if link := old.Header().Get("Link"); !strings.Contains(link, `rel="original"`) || !strings.Contains(link, `rel="timegate"`) || !strings.Contains(link, `</data/capabilitylist.xml>`) && !strings.Contains(link, `/data/capabilitylist.xml>; rel="resourcesync"`) {
		t.Errorf("links of a memento: %s", link)
	}
	if res := w.get(strings.Replace(mementos[0], ".jsonld", ".ttl", 1)); res.Code != 200 || res.Header().Get("Content-Type") != "text/turtle; charset=utf-8" {
		t.Errorf("memento as Turtle: %d", res.Code)
	}
	// the version of a deleted description answers what was there
	gone := w.problem(w.get(w.url("r/gone.jsonld"))).Hint
	i := strings.Index(gone, testBase)
	if res := w.get(strings.Fields(gone[i:])[0]); res.Code != 200 {
		t.Errorf("version of a deleted description: %d", res.Code)
	}
}

func TestPages(t *testing.T) {
	w := small(t)
	w.must(w.pub.Dump(t.Context(), "data"))
	for address, texts := range map[string][]string{
		testBase + "/":         {"Places &lt;of&gt; note", "rsbridge mirror " + testBase + "/.well-known/resourcesync --set data", "3 descriptions"},
		w.url("about.html"):    {"Places &lt;of&gt; note", "/data/changelist.xml", "updated", "creativecommons"},
		w.url("r/Berlin.html"): {"label of http://example.org/Berlin", "/data/r/e/1.html", "label of http://example.org/e/1", "History", "?version="},
		w.url("r/" + naming.Encode(evil, "http://example.org/") + ".html"): {"&lt;script&gt;"},
	} {
		res := w.get(address)
		body := res.Body.String()
		if res.Code != 200 || res.Header().Get("Content-Type") != offer.HTMLType || res.Header().Get("Content-Security-Policy") == "" {
			t.Errorf("%s: %d %v", address, res.Code, res.Header())
		}
		if strings.Contains(body, "<script") || strings.Contains(body, "ZgotmplZ") {
			t.Errorf("%s holds what it must not", address)
		}
		for _, text := range texts {
			if !strings.Contains(body, text) {
				t.Errorf("%s lacks %q:\n%s", address, text, body)
			}
		}
	}
	_, changes := w.all(w.url("changelist.xml"))
	for _, e := range changes {
		if strings.HasSuffix(e.Loc, "/Berlin.jsonld") {
			page := w.get(strings.Replace(e.Link(resourcesync.RelMemento).Href, ".jsonld", ".html", 1)).Body.String()
			if !strings.Contains(page, "<ins>") || !strings.Contains(page, "<del>") || !strings.Contains(page, "The present one") {
				t.Errorf("the page of a version shows no differences: %s", page)
			}
		}
	}
	for _, suffix := range []string{".ttl", ".jsonld", ".nt", ".rdf"} {
		for _, address := range []string{w.url("about" + suffix), testBase + "/about" + suffix} {
			res := w.get(address)
			f, _ := rdfres.FormatBySuffix(suffix)
			ts, err := codec.Decode(f, res.Body.Bytes(), rdfres.ReadOptions{})
			found := false
			for _, tr := range ts {
				found = found || tr.P.IRI() == nsVoID+"entities" && strings.Contains(string(tr.O), `"3"`)
			}
			if err != nil || !found {
				t.Errorf("%s: %v\n%s", address, err, res.Body)
			}
		}
	}
	if res := w.get(testBase + "/data/"); res.Code != 303 || res.Header().Get("Location") != w.url("about") {
		t.Errorf("/data/: %d %v", res.Code, res.Header())
	}
}

func TestRobotsOnlyWhenConfigured(t *testing.T) {
	w := small(t)
	w.o.Robots = true
	w.reopen()
	if body := w.get(testBase + "/robots.txt").Body.String(); !strings.Contains(body, "Sitemap: "+w.url("resourcelist.xml")) {
		t.Errorf("robots.txt: %s", body)
	}
}

func TestBasePath(t *testing.T) {
	w := small(t)
	w.o.BaseURL = "https://h.example/under/here/"
	w.must(w.pub.Close())
	var err error
	w.pub, err = Open(t.Context(), kv.Prefix(w.store, []byte("other/")), []SetConfig{w.cfg}, w.o)
	w.must(err)
	for _, path := range []string{"/under/here/.well-known/resourcesync", "/.well-known/resourcesync", "/under/here/data/resourcelist.xml", "/data/resourcelist.xml"} {
		rec := httptest.NewRecorder()
		w.pub.Handler().ServeHTTP(rec, httptest.NewRequest("GET", path, nil))
		if rec.Code != 200 || !strings.Contains(rec.Body.String(), "https://h.example/under/here/data/") {
			t.Errorf("%s: %d %s", path, rec.Code, rec.Body)
		}
	}
	if loc, err := w.pub.Location(t.Context(), "data", berlin); err != nil || loc != "https://h.example/under/here/data/r/Berlin.jsonld" {
		t.Errorf("Location = %s, %v", loc, err)
	}
}

// TestAnotherBaseURL: a new base URL waits until the log says that the set moves;
// then new lists start, and numbers go on.
func TestAnotherBaseURL(t *testing.T) {
	w := small(t)
	g := w.mustGeneration()
	_, entries := w.all(w.url("changelist.xml"))
	if len(entries) == 0 {
		t.Fatal("no changes")
	}
	w.must(w.pub.Dump(t.Context(), "data"))
	before, sizesBefore := w.get("/data/resourcelist.xml").Body.String(), w.pub.lookup("data").sizes
	w.o.BaseURL = "http://other.example/there"
	w.reopen()
	if again := w.mustGeneration(); again != g {
		t.Errorf("generation %+v after %+v", again, g)
	}
	for _, path := range []string{"/data/resourcelist.xml", "/there/data/resourcelist.xml"} {
		if got := w.get(path).Body.String(); got != before {
			t.Errorf("%s before it is accepted: %s", path, got)
		}
	}
	if rec := w.get("/there/.well-known/resourcesync"); !strings.Contains(rec.Body.String(), testBase+"/data/capabilitylist.xml") {
		t.Errorf("the Source Description: %s", rec.Body)
	}
	from, to, err := w.pub.Addresses("data")
	w.must(err)
	if from.Base != testBase || to.Base != "http://other.example/there" {
		t.Errorf("addresses %+v %+v", from, to)
	}
	c, err := w.log.Rebase(t.Context(), Move{From: from, To: to}.Note())
	w.must(err)
	if again := w.publish(); again.Number != g.Number+1 || again.Sequence != g.Sequence+1 || !again.At.Equal(c.Time) {
		t.Errorf("generation %+v after %+v", again, g)
	}
	rec := w.get("/data/changelist.xml")
	if strings.Contains(rec.Body.String(), "<url>") || strings.Contains(rec.Body.String(), "source.example") || w.get("/data/changelist-000002.xml").Code != 200 ||
		!strings.Contains(rec.Body.String(), `from="`+resourcesync.FormatTime(c.Time)+`"`) {
		t.Errorf("the new list: %s", rec.Body)
	}
	if w.get("/data/changelist-000001.xml").Code != 410 {
		t.Error("the old list is still offered")
	}
	if w.get("/data/resourcedump.xml").Code != 404 {
		t.Error("the old dump is still offered")
	}
	if body := w.get("/there/data/resourcelist.xml").Body.String(); strings.Count(body, "<url>") != 3 || strings.Contains(body, "source.example") {
		t.Errorf("the new Resource List: %s", body)
	}
	// What bounds its documents is what it was.
	if rel, _ := linksOf(w.get("/there/data/timemap/Berlin").Body.String()); rel["original"] == "" {
		t.Errorf("the TimeMap at the new address: %v", rel)
	}
	if s := w.pub.lookup("data"); s.sizes != sizesBefore {
		t.Errorf("documents of at most %+v, before it was %+v", s.sizes, sizesBefore)
	}
	g = w.mustGeneration()
	w.reopen()
	if again := w.mustGeneration(); again != g {
		t.Errorf("generation %+v after another start", again)
	}
}

// TestFormerPrefix: names that were made with a former prefix are redirected, with
// their format and version; what never was is not.
func TestFormerPrefix(t *testing.T) {
	w := small(t)
	old := testBase + "/data/r/Berlin"
	if w.get(old+".nt").Code != 200 {
		t.Fatal("Berlin is not there")
	}
	w.cfg.Prefix = "http://example.org/B"
	w.reopen()
	if loc, err := w.pub.Location(t.Context(), "data", berlin); err != nil || loc != old+".jsonld" {
		t.Fatalf("Location = %s, %v before it is accepted", loc, err)
	}
	if rec := w.get(old + ".jsonld"); rec.Code != 200 {
		t.Fatalf("%d %s before it is accepted", rec.Code, rec.Body)
	}
	from, to, err := w.pub.Addresses("data")
	w.must(err)
	_, err = w.log.Rebase(t.Context(), Move{From: from, To: to}.Note())
	w.must(err)
	w.publish()
	for path, want := range map[string]string{
		"r/Berlin": "r/erlin", "r/Berlin.jsonld": "r/erlin.jsonld", "r/Berlin.html?version=1": "r/erlin.html?version=1",
		"timemap/Berlin": "timemap/erlin", "timegate/Berlin": "timegate/erlin", "r/Nothing": "", "r/erlinx": "",
	} {
		rec := w.get(testBase + "/data/" + path)
		if got := rec.Header().Get("Location"); want != "" && (rec.Code != 301 || got != testBase+"/data/"+want) || want == "" && rec.Code != 404 {
			t.Errorf("%s: %d %s, want %s", path, rec.Code, got, want)
		}
	}
	if loc, err := w.pub.Location(t.Context(), "data", berlin); err != nil || loc != testBase+"/data/r/erlin.jsonld" {
		t.Errorf("Location = %s, %v", loc, err)
	}
}

// TestReadersWhilePublishing: whatever is read at any moment is whole and true.
func TestReadersWhilePublishing(t *testing.T) {
	w := newWorld(t, SetConfig{Format: rdfres.JSONLD, PartEntries: 20, RotateEntries: 30})
	values := map[string]int{}
	for i := range 50 {
		values["http://example.org/e/"+string(rune('a'+i%26))+strings.Repeat("x", i/26)] = i
	}
	w.scan(values, false, rdfres.JSONLD)
	w.publish()
	done := make(chan struct{})
	var wg sync.WaitGroup
	h := w.pub.Handler()
	for range 3 {
		wg.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				for _, path := range []string{"/data/resourcelist.xml", "/data/changelist.xml", "/data/capabilitylist.xml", "/data/changelist-000001.xml", "/data/about.html", "/data/resourcedump.xml"} {
					rec := httptest.NewRecorder()
					h.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, path, nil))
					if rec.Code != 200 && path != "/data/resourcedump.xml" {
						t.Errorf("%s: %d %s", path, rec.Code, rec.Body)
						return
					}
					if strings.HasSuffix(path, ".xml") && rec.Code == 200 {
						if _, fs, err := check.Validate(bytes.NewReader(rec.Body.Bytes()), check.ValidateOptions{Location: testBase + path}); err != nil || len(fs) > 0 && fs[0].Severity == "E" {
							t.Errorf("%s: %v %v", path, fs, err)
							return
						}
					}
				}
			}
		})
	}
	for i := range 20 {
		for e := range values {
			values[e] = i
		}
		w.scan(values, true, rdfres.JSONLD)
		w.clock.add(time.Second)
		w.publish()
		if i%5 == 0 {
			w.must(w.pub.Dump(t.Context(), "data"))
		}
		w.must(w.pub.Retain(t.Context(), "data"))
	}
	close(done)
	wg.Wait()
}

func TestRetain(t *testing.T) {
	w := newWorld(t, SetConfig{Format: rdfres.JSONLD, RotateEntries: 3, Capabilities: []string{"resourcelist", "changelist", "resourcedump", "changedump"}})
	w.scan(map[string]int{"http://example.org/e/0": 0, "http://example.org/e/1": 0}, false, rdfres.JSONLD)
	w.publish()
	w.must(w.pub.Dump(t.Context(), "data"))
	var half time.Time
	for i := range 12 {
		w.clock.add(time.Hour)
		if i == 6 {
			half = w.clock.now()
		}
		w.scan(map[string]int{"http://example.org/e/1": i + 1}, true, rdfres.JSONLD)
		w.publish()
	}
	_, before := w.read(w.url("changelist.xml"))
	first := string(w.body(w.url("changelist-000003.xml")))
	address := testPatch(t, w)
	if _, err := w.log.Retain(t.Context(), half, half); err != nil {
		t.Fatal(err)
	}
	w.must(w.pub.Retain(t.Context(), "data"))
	h, after := w.read(w.url("changelist.xml"))
	if len(after) >= len(before) || !h.Meta.From.Equal(after[0].Meta.From) || after[0].Meta.From.After(half) {
		t.Errorf("after retention %d of %d lists, from %v; kept since %v", len(after), len(before), h.Meta.From, half)
	}
	if res := w.get(w.url("changelist-000001.xml")); res.Code != 410 || !strings.Contains(res.Body.String(), "changelist.xml") {
		t.Errorf("a dropped list: %d %s", res.Code, res.Body)
	}
	if again := string(w.body(w.url("changelist-000003.xml"))); again != first {
		t.Error("a closed list has changed")
	}
	if w.get(address).Code != 404 {
		t.Error("a patch of a dropped list is still there")
	}
	if _, ok := w.pub.ResourceDump("data"); ok {
		t.Error("a dump from which nobody can go on is offered")
	}
	w.reopen()
	if _, again := w.read(w.url("changelist.xml")); len(again) != len(after) {
		t.Errorf("%d lists after a restart, %d before", len(again), len(after))
	}
	w.o.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
	w.reopen()
	w.must(w.pub.Dump(t.Context(), "data"))
	w.checkDump()
	w.read(w.url("changedump.xml"))
}

func testPatch(t *testing.T, w *world) string {
	_, entries := w.all(w.url("changelist.xml"))
	for _, e := range entries {
		if p := e.Link(resourcesync.RelPatch); p != nil {
			var ops []map[string]any
			if err := json.Unmarshal(w.body(p.Href), &ops); err != nil || len(ops) == 0 {
				t.Fatalf("patch %s: %v", p.Href, err)
			}
			return p.Href
		}
	}
	t.Fatal("no patches")
	return ""
}

// TestManySets: more sets than one Source Description may list are in the parts
// of an index.
func TestManySets(t *testing.T) {
	w := small(t)
	sets := []SetConfig{w.cfg}
	for i := range 6 {
		l, err := w.track.Log(t.Context(), fmt.Sprintf("set%d", i))
		w.must(err)
		sets = append(sets, SetConfig{Name: fmt.Sprintf("set%d", i), Log: l})
	}
	w.must(w.pub.Close())
	var err error
	w.pub, err = Open(t.Context(), kv.Prefix(w.store, []byte("pub/")), sets, w.o)
	w.must(err)
	address := testBase + "/.well-known/resourcesync"
	if h, entries := w.read(address); h.Index || len(entries) != 7 {
		t.Fatalf("%d sets, index %v", len(entries), h.Index)
	}
	if w.get(testBase+"/sourcedescription-00001.xml").Code != 404 {
		t.Error("a part without an index")
	}
	w.pub.sourceSets = 3
	h, parts := w.read(address)
	if !h.Index || len(parts) != 3 {
		t.Fatalf("%d parts, index %v", len(parts), h.Index)
	}
	seen := map[string]bool{}
	for _, p := range parts {
		ph, entries := w.read(p.Loc)
		if ph.IndexURL() != address {
			t.Errorf("%s leads to the index %q", p.Loc, ph.IndexURL())
		}
		for _, e := range entries {
			seen[e.Loc] = true
			w.read(e.Loc)
		}
	}
	if len(seen) != 7 || w.get(testBase+"/sourcedescription-00004.xml").Code != 404 || w.get(testBase+"/sourcedescription-1.xml").Code != 404 {
		t.Errorf("%d sets in the parts", len(seen))
	}
}
