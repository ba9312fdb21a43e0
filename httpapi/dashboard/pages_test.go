package dashboard_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/rsbridge/rsbridge/bridge"
	"github.com/rsbridge/rsbridge/httpapi"
	"github.com/rsbridge/rsbridge/internal/jobs"
)

// world is a bridge with one set of an embedded store, and one mirror of it in another. Its admin
// listener is at srv.
type world struct {
	t   *testing.T
	cfg *bridge.Config
	b   *bridge.Bridge
	srv *httptest.Server
	pub *httptest.Server

	public http.Handler
	lost   atomic.Bool // no request has an answer
}

func newWorld(t *testing.T, change func(*bridge.Config)) *world {
	t.Helper()
	return newWorldAt(t, nil, change)
}

// newWorldAt has a clock of its own, if now is not nil.
func newWorldAt(t *testing.T, now func() time.Time, change func(*bridge.Config)) *world {
	t.Helper()
	dir := t.TempDir()
	w := &world{t: t}
	w.pub = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { w.public.ServeHTTP(rw, r) }))
	t.Cleanup(w.pub.Close)
	cfg := bridge.NewConfig()
	cfg.State = filepath.Join(dir, "state")
	cfg.Public, cfg.Admin.Listen = bridge.Public{BaseURL: w.pub.URL}, ""
	for _, name := range []string{"local", "mirror"} {
		s := bridge.NewStore()
		s.Embedded = filepath.Join(dir, name)
		cfg.Stores[name] = s
	}
	set := bridge.NewSet()
	set.Store, set.Schedule, set.Prefix = "local", "", "http://example.org/"
	cfg.Sets["books"] = set
	d := bridge.NewDestination()
	d.Source, d.Set, d.Store, d.Schedule, d.Audit.Schedule = w.pub.URL, "books", "mirror", "", ""
	cfg.Destinations["copy"] = d
	if change != nil {
		change(cfg)
	}
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	b, err := bridge.Open(t.Context(), cfg, bridge.Options{Command: "test", Logger: log, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	w.cfg, w.b, w.public = cfg, b, b.PublicHandler()
	handler := httpapi.New(b, httpapi.Options{Logger: log})
	w.srv = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if w.lost.Load() {
			panic(http.ErrAbortHandler)
		}
		handler.ServeHTTP(rw, r)
	}))
	t.Cleanup(w.srv.Close)
	return w
}

// update changes a store.
func (w *world) update(store, text string) {
	w.t.Helper()
	req := httptest.NewRequest(http.MethodPost, "/update", strings.NewReader(text))
	req.Header.Set("Content-Type", "application/sparql-update")
	rec := httptest.NewRecorder()
	w.b.StoreHandler(store).ServeHTTP(rec, req)
	if rec.Code >= 300 {
		w.t.Fatalf("%s: %d %s", text, rec.Code, rec.Body)
	}
}

const label = "http://www.w3.org/2000/01/rdf-schema#label"

// books are the triples of some entities.
func books(from, to int, title string) string {
	var b strings.Builder
	b.WriteString("INSERT DATA {")
	for i := from; i < to; i++ {
		fmt.Fprintf(&b, "<http://example.org/book%d> <%s> \"%s %d\"@en ; a <http://example.org/Book> ; <http://example.org/pages> %d .\n", i, label, title, i, 100+i)
	}
	return b.String() + "}"
}

func (w *world) do(action, name string, args any) {
	w.t.Helper()
	run, _, err := w.b.Begin(w.t.Context(), action, name, "test", args)
	if err == nil {
		_, err = w.b.Runner().Wait(w.t.Context(), run.ID)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// get reads a page.
func (w *world) get(path string, status int) string {
	w.t.Helper()
	res, err := http.Get(w.srv.URL + path)
	if err != nil {
		w.t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != status {
		w.t.Fatalf("%s: %s %v\n%s", path, res.Status, err, body)
	}
	if csp := res.Header.Get("Content-Security-Policy"); !strings.Contains(csp, "script-src 'self'") || strings.Contains(csp, "unsafe") {
		w.t.Errorf("%s: the policy is %q", path, csp)
	}
	return string(body)
}

// post sends a form as a browser without scripts does, and gives the answer without following it.
func (w *world) post(path string, form url.Values, header ...string) *http.Response {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, w.srv.URL+path, strings.NewReader(form.Encode()))
	if err != nil {
		w.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		w.t.Fatal(err)
	}
	res.Body.Close()
	return res
}

func (w *world) sees(page string, words ...string) {
	w.t.Helper()
	for _, word := range words {
		if !strings.Contains(page, word) {
			w.t.Errorf("the page does not have %q:\n%s", word, page)
		}
	}
}

var (
	inline = regexp.MustCompile(`(?i)<script>|<style|\son[a-z]+=|\sstyle=`)
	hrefs  = regexp.MustCompile(`(?:href|action|src)="([^"]*)"`)
)

// TestPages: each page that a page links to is there, in all states, below any path; none of them has
// scripts or styles in it.
func TestPages(t *testing.T) {
	w := newWorld(t, nil)
	first := w.get("/", 200)
	w.sees(first, "First steps", "Scan now", "Sync now", "Nothing has run yet", "never run")
	w.update("local", books(0, 60, "Book"))
	w.do("scan", "books", nil)
	w.do("sync", "copy", nil)
	w.update("local", `DELETE { ?s <http://example.org/pages> ?p } INSERT { ?s <http://example.org/pages> 7 } WHERE { VALUES ?s { <http://example.org/book1> <http://example.org/book2> } ?s <http://example.org/pages> ?p }`)
	w.update("local", `DELETE WHERE { <http://example.org/book3> ?p ?o }`)
	w.do("scan", "books", nil)
	w.update("mirror", `DELETE { ?s ?p ?o } INSERT { ?s ?p "wrong" } WHERE { VALUES ?s { <http://example.org/book5> } ?s ?p ?o }`)
	w.do("sync", "copy", nil)
	w.do("audit", "copy", nil)
	w.update("local", `DELETE { ?s ?p ?o } WHERE { ?s ?p ?o FILTER(STR(?s) > "http://example.org/book2") }`)
	w.do("scan", "books", nil)

	seen, todo := map[string]bool{}, []string{"/", "/check", "/search?q=book", "/sets/books?change=updated&text=book1", "/sets/books?range=7d", "/runs?state=done", "/sets/none", "/nothing/at/all"}
	for len(todo) > 0 {
		at := todo[0]
		todo = todo[1:]
		if seen[at] {
			continue
		}
		seen[at] = true
		if plain, err := url.QueryUnescape(at); err == nil {
			seen[plain] = true
		}
		status := 200
		if at == "/sets/none" || at == "/nothing/at/all" {
			continue
		}
		here, err := url.Parse("http://dashboard.example" + at)
		if err != nil {
			t.Fatal(err)
		}
		res, err := http.Get(w.srv.URL + at)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if res.StatusCode != status {
			t.Errorf("%s: %s\n%s", at, res.Status, body)
		}
		if !strings.HasPrefix(res.Header.Get("Content-Type"), "text/html") {
			continue
		}
		if bad := inline.FindString(string(body)); bad != "" {
			t.Errorf("%s has %q in it", at, bad)
		}
		for _, m := range hrefs.FindAllStringSubmatch(string(body), -1) {
			to, err := here.Parse(strings.ReplaceAll(m[1], "&amp;", "&"))
			if err != nil {
				t.Errorf("%s links to %s: %v", at, m[1], err)
				continue
			}
			if strings.HasPrefix(m[1], "/") {
				t.Errorf("%s links to %s, which leads out of the path that it is served below", at, m[1])
			}
			isAction := strings.Contains(string(body), `action="`+m[1]+`"`) && !strings.Contains(m[1], "search") && m[1] != ""
			if to.Host == here.Host && !isAction && len(seen) < 400 {
				todo = append(todo, to.RequestURI())
			}
		}
	}
	for _, want := range []string{"/sets/books", "/destinations/copy", "/runs", "/runs/1", "/sets/books/held", "/sets/books/entity?iri=http://example.org/book3", "/destinations/copy/difference?entity=http://example.org/book5"} {
		if !seen[want] {
			t.Errorf("no page leads to %s", want)
		}
	}
	home := w.get("/", 200)
	w.sees(home, "2 of 2 need you", "✖ (2)", "icon-bad.svg", "Needs attention", "held", "differs", "See the differences")
	w.sees(w.get("/destinations/copy", 200), "different", "book5", "Full sync", "the default graph")
	w.sees(w.get("/destinations/copy/difference?entity=http://example.org/book5", 200), `class="only"`, "wrong", "Book 5", "At the source", "In the mirror")
	w.sees(w.get("/sets/books", 200), "created", "deleted", "changes kept", "old versions kept", "Book 3", "Older", "rsbridge mirror "+w.pub.URL)
	w.sees(w.get("/runs/1", 200), "Log", "scanned", "created=60")
	if page := w.get("/sets/books?change=deleted", 200); strings.Contains(page, `class="change created"`) || !strings.Contains(page, "Book 3") {
		t.Error("the filter of the feed shows others than deleted entities")
	}
	w.sees(w.get("/sets/books/entity?iri=http://example.org/book3", 200), "Its last description", "Book 3", "deleted")
	w.sees(w.get("/search?q=book12", 200), "Book 12")
	w.sees(w.get("/search?q=12+boo", 200), "Book 12")
	if page := w.get("/search?q=%ff", 200); !utf8.ValidString(page) {
		t.Errorf("no text: %q", page)
	}
	w.sees(w.get("/search?q=%3Chttp://example.org/book3%3E", 200), "book3") // deleted ones too
	w.sees(w.get("/search", 200), "books, A to Z", ">B</a>", "Book 0", "Book 12")
	w.sees(w.get("/search?set=books&letter=x", 200), "no entities")
	w.get("/search?set=books&after=%25", 400)
	w.sees(w.get("/runs/1", 200), "Scan of books", "Stages", "read the store", "publish", "created", "scanned", "resources=60")
	w.sees(w.get("/sets/none", 404), "There is no set none.")
	w.sees(w.get("/check", 200), "store local", "destination copy", "✔")
}

// TestProgress: a scan, the first sync and an audit tell their stages before they are through them. The stages of the
// scan, of the dump and of the mirror end with totals.
func TestProgress(t *testing.T) {
	w := newWorld(t, nil)
	w.update("local", books(0, 1200, "Book"))
	w.do("scan", "books", nil)
	w.do("sync", "copy", nil)
	stages := func(job string) (jobs.Run, map[string]string) {
		for run, err := range w.b.Runner().Runs(t.Context(), job) {
			if err != nil {
				t.Fatal(err)
			}
			told := map[string]string{}
			for _, s := range run.Stages {
				told[s.Name] = fmt.Sprintf("%d of %d", s.Done, s.Total)
			}
			return run, told
		}
		t.Fatalf("%s has no runs", job)
		return jobs.Run{}, nil
	}
	scan, told := stages("scan:books")
	if want := "read group describe publish dump"; strings.Join(scan.Plan, " ") != want || told["describe"] != "3600 of 3600" || told["dump"] != "1000 of 1200" || len(told) != 4 {
		t.Errorf("the scan plans %v, want %s, and has %v", scan.Plan, want, told)
	}
	w.do("audit", "copy", nil)
	audit, _ := stages("audit:copy")
	sync, told := stages("sync:copy")
	if told["resources"] != "1000 of 1200" || strings.Join(sync.Plan, " ") != "packages resources changes" || strings.Join(audit.Plan, " ") != "inventory mirror subjects" {
		t.Errorf("the sync plans %v and has %v, the audit plans %v", sync.Plan, told, audit.Plan)
	}
	w.sees(w.get(fmt.Sprintf("/runs/%d", scan.ID), 200), "3600 of 3600 triples", "1000 of 1200")
}

// TestHeldProof: while a scan is held the page tells the proof of the scan before it, with its time, and counts all
// deletions by their classes.
func TestHeldProof(t *testing.T) {
	now := time.Date(2026, 5, 1, 8, 0, 0, 0, time.UTC)
	w := newWorldAt(t, func() time.Time { return now }, nil)
	w.update("local", books(0, 300, "Book"))
	w.do("scan", "books", nil)
	w.sees(w.get("/", 200), "100 % described</span>")
	now = now.Add(3 * time.Hour)
	w.update("local", `DELETE { ?s ?p ?o } WHERE { ?s ?p ?o FILTER(?s != <http://example.org/book7>) }`)
	w.do("scan", "books", nil)
	proof := regexp.MustCompile(`100 % described, before what is held</span> <span class="meta"><time [^>]*>3 h ago<`)
	if page := w.get("/", 200); !proof.MatchString(page) {
		t.Errorf("the proof is not that of the scan before: %s", page)
	}
	w.sees(w.get("/sets/books", 200), "all 900 triples, before what is held <time")
	w.sees(w.get("/sets/books/held", 200), `<strong>299</strong> <span title="http://example.org/Book">Book</span>`)
}

// TestForms: what a person may do is done by forms, from our own pages alone. Held deletions go
// only with their number.
func TestForms(t *testing.T) {
	w := newWorld(t, nil)
	w.update("local", books(0, 20, "Book"))
	own := []string{"Sec-Fetch-Site", "same-origin", "Origin", w.srv.URL}
	for _, from := range [][]string{nil, {"Origin", "http://elsewhere.example"}, {"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site", "Origin", w.srv.URL + "0"}, {"Origin", "null"}} {
		if res := w.post("/sets/books/scan", nil, from...); res.StatusCode != 403 {
			t.Errorf("a form from %v: %s", from, res.Status)
		}
	}
	if n := len(w.b.Runner().Active()); n != 0 {
		t.Fatalf("%d runs have begun", n)
	}
	follow := func(res *http.Response) string {
		t.Helper()
		to, err := res.Request.URL.Parse(res.Header.Get("Location"))
		if err != nil || res.StatusCode != http.StatusSeeOther {
			t.Fatalf("%s %s: %v", res.Status, res.Header.Get("Location"), err)
		}
		if id, ok := strings.CutPrefix(to.Path, "/runs/"); ok {
			n, _ := strconv.ParseUint(id, 10, 64)
			if _, err := w.b.Runner().Wait(context.Background(), n); err != nil {
				t.Fatal(err)
			}
		}
		return to.RequestURI()
	}
	w.sees(w.get(follow(w.post("/sets/books/scan", nil, own...)), 200), "Scan of books", "created")
	w.sees(w.get(follow(w.post("/destinations/copy/sync", nil, "Sec-Fetch-Site", "same-origin")), 200), "Sync of copy", "baseline")
	w.sees(w.get(follow(w.post("/sets/books/pause", nil, own...)), 200), "paused", "when resumed", "Resume")
	w.sees(w.get(follow(w.post("/sets/books/resume", nil, own...)), 200), "Pause")
	w.sees(w.get(follow(w.post("/destinations/copy/pause", nil, own...)), 200), "paused", "Resume")
	w.sees(w.get(follow(w.post("/destinations/copy/resume", nil, "Origin", w.srv.URL)), 200), "Pause")
	w.sees(w.get(follow(w.post("/destinations/copy/full", nil, own...)), 200), "baseline")

	w.update("local", `DELETE { ?s ?p ?o } WHERE { ?s ?p ?o FILTER(STR(?s) > "http://example.org/book12") }`)
	follow(w.post("/sets/books/scan", nil, own...))
	h, err := w.b.SetHeld(t.Context(), "books", "", 1)
	if err != nil {
		t.Fatal(err)
	}
	n := strconv.FormatInt(h.Deletions, 10)
	w.sees(w.get("/sets/books/held", 200), "Type <strong>"+n+"</strong>", ">Book<", "Book 15", h.ID)
	for _, number := range []string{"", "0", n + "0", "yes"} {
		to := follow(w.post("/sets/books/accept", url.Values{"number": {number}, "id": {h.ID}}, own...))
		w.sees(w.get(to, 200), "Nothing is accepted")
	}
	if res := w.post("/sets/books/accept", url.Values{"number": {n}, "id": {"another"}}, own...); res.StatusCode != 409 {
		t.Errorf("another held run is accepted: %s", res.Status)
	}
	before, err := w.b.SetStatus(t.Context(), "books")
	if err != nil || before.Held == nil || before.Resources != 20 {
		t.Fatalf("%+v %v", before, err)
	}
	w.sees(w.get(follow(w.post("/sets/books/accept", url.Values{"number": {" " + n + " "}, "id": {h.ID}}, own...)), 200), "done")
	after, err := w.b.SetStatus(t.Context(), "books")
	if err != nil || after.Held != nil || after.Resources != 20-h.Deletions {
		t.Errorf("%+v %v", after, err)
	}
	w.sees(w.get("/sets/books/held", 404), "Nothing is held any more.")
	for path, status := range map[string]int{"/sets/none/scan": 404, "/sets/books/none": 404, "/destinations/none/sync": 404, "/destinations/copy/none": 404, "/runs/12345/cancel": 409, "/sets/books/accept": 404} {
		if res := w.post(path, nil, own...); res.StatusCode != status {
			t.Errorf("%s: %s, want %d", path, res.Status, status)
		}
	}
}
