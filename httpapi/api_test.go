package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/bridge"
	"github.com/rsbridge/rsbridge/httpapi"
	"github.com/rsbridge/rsbridge/internal/jobs"
	"github.com/rsbridge/rsbridge/rdfres"
)

// world is a bridge on embedded stores with its admin handler on a server. The
// set "slow" is of a store that does not answer before the test ends.
type world struct {
	t   *testing.T
	b   *bridge.Bridge
	cfg *bridge.Config
	srv *httptest.Server
}

func newWorld(t *testing.T, o httpapi.Options) *world {
	t.Helper()
	dir := t.TempDir()
	hang := make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-hang:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(slow.Close)
	t.Cleanup(func() { close(hang) })
	cfg := bridge.NewConfig()
	cfg.State = filepath.Join(dir, "state")
	cfg.Public = bridge.Public{BaseURL: "http://bridge.example"}
	cfg.Admin.Listen = ""
	for _, name := range []string{"local", "mirror"} {
		s := bridge.NewStore()
		s.Embedded = filepath.Join(dir, name)
		cfg.Stores[name] = s
	}
	far := bridge.NewStore()
	far.Query = slow.URL + "/query"
	cfg.Stores["far"] = far
	data, slowSet := bridge.NewSet(), bridge.NewSet()
	data.Store, data.Schedule = "local", ""
	slowSet.Store, slowSet.Schedule = "far", ""
	cfg.Sets["data"], cfg.Sets["slow"] = data, slowSet
	d := bridge.NewDestination()
	d.Source, d.Set, d.Store, d.Schedule, d.Audit.Schedule = "http://bridge.example", "data", "mirror", "", ""
	cfg.Destinations["copy"] = d
	w := &world{t: t, cfg: cfg}
	w.open(o)
	t.Cleanup(w.close)
	return w
}

func (w *world) open(o httpapi.Options) {
	w.t.Helper()
	b, err := bridge.Open(w.t.Context(), w.cfg, bridge.Options{Command: "test"})
	if err != nil {
		w.t.Fatal(err)
	}
	w.b, w.srv = b, httptest.NewServer(httpapi.New(b, o))
}

func (w *world) close() {
	if w.b == nil {
		return
	}
	for run, err := range w.b.Runner().Runs(context.Background(), "scan:slow") { // the test's context has ended
		if err != nil {
			w.t.Error(err)
		} else if !run.Over() {
			_ = w.b.Runner().Cancel(run.ID) // it may have ended meanwhile
		}
	}
	w.srv.Close()
	if err := w.b.Close(); err != nil {
		w.t.Error(err)
	}
	w.b = nil
}

// load puts n entities into the store of the set data.
func (w *world) load(n int) {
	w.t.Helper()
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "<http://example.org/e%d> <http://example.org/p> \"%d\" .\n", i, i)
	}
	if _, err := w.b.LoadStore(w.t.Context(), "local", "", rdfres.NTriples, strings.NewReader(b.String()), true); err != nil {
		w.t.Fatal(err)
	}
}

// answer is a response with its whole body.
type answer struct {
	*http.Response
	body []byte
}

func (w *world) do(method, path, body string, header ...string) answer {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), method, w.srv.URL+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			req.Host = header[i+1]
		}
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return answer{res, raw}
}

// get wants 200 and reads the answer into out.
func (w *world) get(path string, out any) answer {
	w.t.Helper()
	a := w.do("GET", path, "")
	w.is(a, 200)
	if out != nil {
		w.decode(a, out)
	}
	return a
}

func (w *world) decode(a answer, out any) {
	w.t.Helper()
	d := json.NewDecoder(bytes.NewReader(a.body))
	if err := d.Decode(out); err != nil {
		w.t.Fatalf("%s: %v: %s", a.Request.URL, err, a.body)
	}
}

func (w *world) is(a answer, status int) {
	w.t.Helper()
	if a.StatusCode != status {
		w.t.Fatalf("%s %s: %d, want %d: %s", a.Request.Method, a.Request.URL, a.StatusCode, status, a.body)
	}
}

// problem wants an RFC 9457 answer with this status whose text has each of words.
func (w *world) problem(a answer, status int, words ...string) httpapi.Problem {
	w.t.Helper()
	w.is(a, status)
	if ct := a.Header.Get("Content-Type"); ct != "application/problem+json" {
		w.t.Fatalf("%s: Content-Type %s", a.Request.URL, ct)
	}
	var p httpapi.Problem
	w.decode(a, &p)
	if p.Status != status || p.Title != http.StatusText(status) || p.Type != "about:blank" || p.Detail == "" {
		w.t.Fatalf("%s: %+v", a.Request.URL, p)
	}
	for _, word := range words {
		if !strings.Contains(p.Detail+p.Hint, word) {
			w.t.Fatalf("%s: %q does not say %q", a.Request.URL, p.Error(), word)
		}
	}
	return p
}

// start posts, wants 202 with Location and the run, and waits for its end.
func (w *world) start(path, body string) jobs.Run {
	w.t.Helper()
	a := w.do("POST", path, body)
	w.is(a, 202)
	var run jobs.Run
	w.decode(a, &run)
	if a.Header.Get("Location") != fmt.Sprintf("/api/v1/runs/%d", run.ID) || run.Cause != "api" {
		w.t.Fatalf("%s: Location %s of run %+v", path, a.Header.Get("Location"), run)
	}
	w.get(a.Header.Get("Location")+"?wait=true", &run)
	if !run.Over() {
		w.t.Fatalf("%s: waited, and the run is %s", path, run.State)
	}
	return run
}

func (w *world) done(path, body string, report any) {
	w.t.Helper()
	run := w.start(path, body)
	if run.State != jobs.Done {
		w.t.Fatalf("%s: %s: %s", path, run.State, run.Error)
	}
	if err := json.Unmarshal(run.Result, report); err != nil {
		w.t.Fatal(err)
	}
}

// TestWholeWay scans, reads the log and the resources in pages, syncs, audits,
// damages, repairs.
func TestWholeWay(t *testing.T) {
	w := newWorld(t, httpapi.Options{})
	w.load(25)
	var scan bridge.ScanReport
	if w.done("/api/v1/sets/data/scan", "", &scan); scan.Created != 25 {
		t.Fatalf("scan: %+v", scan)
	}
	if w.done("/api/v1/sets/data/scan", `{"entities": ["http://example.org/e1", "urn:a:null,b", "http://example.org/100%"]}`, &scan); scan.Hints["named"] != 3 || scan.Unchanged != 1 {
		t.Fatalf("scan of what is named: %+v", scan)
	}
	if w.done("/api/v1/sets/data/touch", `{"entities": ["http://example.org/e1"]}`, &scan); scan.Finder != "hint" || scan.Unchanged != 1 {
		t.Fatalf("touched: %+v", scan)
	}
	var sync bridge.SyncReport
	if w.done("/api/v1/destinations/copy/sync", `{"dry_run": true}`, &sync); sync.InSync {
		t.Fatalf("a dry run syncs: %+v", sync)
	}
	if w.done("/api/v1/destinations/copy/sync", "", &sync); !sync.InSync || sync.Created != 25 {
		t.Fatalf("sync: %+v", sync)
	}
	if w.done("/api/v1/destinations/copy/sync", `{"full": true}`, &sync); sync.Mode != "baseline" {
		t.Fatalf("full sync: %+v", sync)
	}
	var audit bridge.AuditReport
	if w.done("/api/v1/destinations/copy/audit", `{"depth": "store"}`, &audit); !audit.Equal {
		t.Fatalf("audit: %+v", audit)
	}
	w.is(w.do("POST", "/stores/mirror/update", "DELETE { ?s ?p ?o } WHERE { VALUES ?s { <http://example.org/e3> <http://example.org/e4> <http://example.org/e5> } ?s ?p ?o }", "Content-Type", "application/sparql-update"), 204)
	if w.done("/api/v1/destinations/copy/audit", "", &audit); audit.Equal {
		t.Fatalf("audit does not see the damage: %+v", audit)
	}
	var diff httpapi.Differences
	named := map[string]bool{}
	pages := w.follow("/api/v1/destinations/copy/differences?limit=2")
	for _, page := range pages {
		w.decode(page, &diff)
		for _, d := range diff.Differences {
			named[d.Entity] = true
		}
	}
	if len(pages) != 2 || len(named) != 3 || !named["http://example.org/e3"] || diff.More || diff.Next != "" {
		t.Fatalf("differences: %v in %d pages, %+v", named, len(pages), diff)
	}
	w.is(w.do("GET", "/api/v1/destinations/copy/differences?after=d00", ""), 400)
	var others httpapi.NotRDF
	if w.get("/api/v1/destinations/copy/not-rdf", &others); others.Resources == nil || len(others.Resources) != 0 || others.More {
		t.Fatalf("not-rdf: %+v", others)
	}
	if w.done("/api/v1/destinations/copy/repair", "", &audit); !audit.Equal || audit.Repaired != 3 {
		t.Fatalf("repair: %+v", audit)
	}

	var st bridge.Status
	w.get("/api/v1/status", &st)
	if len(st.Sets) != 2 || st.Sets[0].Resources != 25 || len(st.Destinations) != 1 || !st.Destinations[0].InSync {
		t.Fatalf("status: %+v", st)
	}
	var sets []bridge.SetStatus
	var set bridge.SetStatus
	w.get("/api/v1/sets", &sets)
	w.get("/api/v1/sets/data", &set)
	if len(sets) != 2 || set.Name != "data" || set.Sequence != 25 {
		t.Fatalf("sets: %+v %+v", sets, set)
	}
	var dests []bridge.DestinationStatus
	var dest bridge.DestinationStatus
	w.get("/api/v1/destinations", &dests)
	w.get("/api/v1/destinations/copy", &dest)
	if len(dests) != 1 || dest.Name != "copy" || dest.Resources != 25 {
		t.Fatalf("destinations: %+v %+v", dests, dest)
	}
	var js []httpapi.Job
	w.get("/api/v1/jobs", &js)
	var runs httpapi.Runs
	w.get("/api/v1/runs?job=audit:copy&limit=2", &runs)
	if len(js) < 5 || len(runs.Runs) != 2 || runs.Runs[0].ID <= runs.Runs[1].ID {
		t.Fatalf("jobs %+v, runs %+v", js, runs)
	}
	w.get("/api/v1/runs?job=nothing", &runs)
	if len(runs.Runs) != 0 {
		t.Fatalf("runs of nothing: %+v", runs)
	}
}

// TestPages follows next to the end, in the log and in the resources.
func TestPages(t *testing.T) {
	w := newWorld(t, httpapi.Options{})
	w.load(25)
	w.start("/api/v1/sets/data/scan", "")
	w.load(20) // five are gone
	if run := w.start("/api/v1/sets/data/scan", ""); run.State != jobs.Done {
		t.Fatal(run.Error)
	}
	var last uint64
	var kinds []string
	for more, since := true, ""; more; {
		var page bridge.Changes
		w.get("/api/v1/sets/data/changes?limit=7&since="+since, &page)
		for _, c := range page.Changes {
			if c.Sequence != last+1 {
				t.Fatalf("sequence %d after %d", c.Sequence, last)
			}
			last, kinds = c.Sequence, append(kinds, c.Change)
		}
		more, since = page.More, fmt.Sprint(page.Next)
	}
	if last != 30 || strings.Join(kinds[25:], " ") != "deleted deleted deleted deleted deleted" {
		t.Fatalf("%d changes: %v", last, kinds)
	}
	var page bridge.Changes
	w.get("/api/v1/sets/data/changes?since=30", &page)
	if len(page.Changes) != 0 || page.Next != 30 || page.More {
		t.Fatalf("at the end: %+v", page)
	}
	w.get("/api/v1/sets/data/changes?since=2000-01-01T00:00:00Z", &page)
	if len(page.Changes) != 30 {
		t.Fatalf("since a time: %d changes", len(page.Changes))
	}

	seen := map[string]bool{}
	after := ""
	for {
		var page httpapi.Resources
		w.get("/api/v1/sets/data/resources?limit=6&after="+after, &page)
		for _, r := range page.Resources {
			if seen[r.Entity] || r.Current == nil {
				t.Fatalf("%+v comes twice or is gone", r)
			}
			seen[r.Entity] = true
		}
		if after = page.Next; after == "" {
			break
		}
	}
	if len(seen) != 20 {
		t.Fatalf("%d resources", len(seen))
	}
	var one httpapi.Resources
	w.get("/api/v1/sets/data/resources?entity="+url.QueryEscape("http://example.org/e24"), &one)
	if len(one.Resources) != 1 || one.Resources[0].Current != nil || one.Resources[0].Changes != 2 {
		t.Fatalf("a deleted one: %+v", one)
	}

	for _, since := range []string{"31", "18446744073709551615"} {
		w.problem(w.do("GET", "/api/v1/sets/data/changes?since="+since, ""), 409, "the log is not there yet; its newest change is 30")
	}
	if _, err := w.b.Log("data").Retain(t.Context(), time.Now(), time.Time{}); err != nil { // all changes go
		t.Fatal(err)
	}
	for _, since := range []string{"29", "2000-01-01T00:00:00Z"} {
		w.is(w.do("GET", "/api/v1/sets/data/changes?since="+since, ""), 410)
	}
	for _, since := range []string{"", "0", "30"} {
		w.get("/api/v1/sets/data/changes?since="+since, nil)
	}
}

// TestDescription reads an entity in each format, as it was, and not at all.
func TestDescription(t *testing.T) {
	w := newWorld(t, httpapi.Options{})
	w.load(2)
	w.start("/api/v1/sets/data/scan", "")
	at := "/api/v1/sets/data/description?entity=" + url.QueryEscape("http://example.org/e1")
	for as, media := range map[string]string{"": "application/ld+json", "jsonld": "application/ld+json", "ntriples": "application/n-triples", "turtle": "text/turtle", "rdfxml": "application/rdf+xml"} {
		path := at
		if as != "" {
			path += "&as=" + as
		}
		if a := w.get(path, nil); !strings.HasPrefix(a.Header.Get("Content-Type"), media) || !bytes.Contains(a.body, []byte("http://example.org/")) {
			t.Errorf("%s: %s %s", path, a.Header.Get("Content-Type"), a.body)
		}
	}
	w.problem(w.do("GET", at+"&as=xml", ""), 400, "turtle")
	w.problem(w.do("GET", at+"&at=yesterday", ""), 400, "at=yesterday")
	w.problem(w.do("GET", at+"&at=2001-01-01T00:00:00Z", ""), 404)
	w.problem(w.do("GET", "/api/v1/sets/data/description", ""), 400, "entity")
	w.problem(w.do("GET", "/api/v1/sets/data/description?entity=http://example.org/none", ""), 404, "http://example.org/none")
}

// TestBusy: the same request while it runs answers 409 with the run; queue=true
// queues one; cancel ends it; an ended one cannot be cancelled.
func TestBusy(t *testing.T) {
	w := newWorld(t, httpapi.Options{})
	a := w.do("POST", "/api/v1/sets/slow/scan", "")
	w.is(a, 202)
	var run, queued, end jobs.Run
	w.decode(a, &run)
	b := w.do("POST", "/api/v1/sets/slow/scan", "")
	p := w.problem(b, 409, "queue=true")
	if p.Run == nil || p.Run.ID != run.ID || b.Header.Get("Location") != a.Header.Get("Location") {
		t.Fatalf("409 names run %+v at %s, want %d", p.Run, b.Header.Get("Location"), run.ID)
	}
	w.problem(w.do("POST", "/api/v1/sets/slow/accept", ""), 409)
	a = w.do("POST", "/api/v1/sets/slow/scan?queue=true", "")
	w.is(a, 202)
	if w.decode(a, &queued); queued.State != jobs.Queued && queued.ID != run.ID { // unless the first had not begun
		t.Fatalf("queued: %+v", queued)
	}
	var js []httpapi.Job
	running := false
	w.get("/api/v1/jobs", &js)
	for _, j := range js {
		running = running || j.Name == "scan:slow" && j.Running != nil
	}
	if !running {
		t.Fatalf("jobs does not show what runs: %+v", js)
	}
	for _, id := range slices.Compact([]uint64{queued.ID, run.ID}) {
		a := w.do("POST", fmt.Sprintf("/api/v1/runs/%d/cancel", id), "")
		w.is(a, 202)
		if w.get(fmt.Sprintf("/api/v1/runs/%d?wait=true", id), &end); end.State != jobs.Cancelled {
			t.Fatalf("cancelled: %+v", end)
		}
		if p := w.problem(w.do("POST", fmt.Sprintf("/api/v1/runs/%d/cancel", id), ""), 409, "has ended"); p.Run.ID != id {
			t.Fatalf("names run %+v", p.Run)
		}
	}
	w.problem(w.do("POST", "/api/v1/sets/data/accept", ""), 409, "nothing is held")
	w.problem(w.do("POST", "/api/v1/sets/data/accept?queue=true", ""), 409, "nothing is held")
}

// TestTwoAtOnce: of many requests at the same time one starts a run.
func TestTwoAtOnce(t *testing.T) {
	w := newWorld(t, httpapi.Options{})
	got := make(chan int, 16)
	for range cap(got) {
		go func() { got <- w.do("POST", "/api/v1/sets/slow/scan", "").StatusCode }()
	}
	count := map[int]int{}
	for range cap(got) {
		count[<-got]++
	}
	if count[202] != 1 || count[409] != cap(got)-1 {
		t.Fatal(count)
	}
}

// TestPause outlives a restart.
func TestPause(t *testing.T) {
	w := newWorld(t, httpapi.Options{})
	paused := func(want bool) {
		t.Helper()
		var d bridge.DestinationStatus
		if w.get("/api/v1/destinations/copy", &d); d.Paused != want {
			t.Fatalf("paused %t, want %t", d.Paused, want)
		}
	}
	for _, what := range []string{"destinations/copy/pause", "destinations/copy/resume", "runs/1/cancel"} {
		w.is(w.do("POST", "/api/v1/"+what, "garbage"), 400)
		w.is(w.do("POST", "/api/v1/"+what, `{"paused":true}`), 400)
		w.is(w.do("POST", "/api/v1/"+what, strings.Repeat(" ", 3<<20)), 413)
	}
	reopen := func() { w.close(); w.open(httpapi.Options{}) }
	paused(false)
	w.is(w.do("POST", "/api/v1/destinations/copy/pause", ""), 200)
	paused(true)
	reopen()
	paused(true)
	w.is(w.do("POST", "/api/v1/destinations/copy/resume", ""), 200)
	paused(false)
	reopen()
	paused(false)
}
