package httpapi_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/httpapi"
	"github.com/rsbridge/rsbridge/internal/jobs"
)

// TestProblems: what is wrong with a request is told as RFC 9457, with what would
// be right.
func TestProblems(t *testing.T) {
	w := newWorld(t, httpapi.Options{})
	for _, c := range []struct {
		method, path, body string
		status             int
		says               string
	}{
		{"GET", "/api/v1/nothing", "", 404, "/openapi.json"},
		{"GET", "/api/v1/sets/none", "", 404, "there are: data, slow"},
		{"GET", "/api/v1/sets/a%2Fb", "", 404, "there is no set a/b"},
		{"GET", "/api/v1/sets/%64ata?x=1", "", 400, "parameter x is not known"},
		{"GET", "/api/v1/sets/none/changes", "", 404, "none"},
		{"GET", "/api/v1/sets/none/resources", "", 404, "none"},
		{"GET", "/api/v1/sets/none/description?entity=x", "", 404, "none"},
		{"POST", "/api/v1/sets/none/scan", "", 404, "none"},
		{"POST", "/api/v1/sets/none/accept", "", 404, "none"},
		{"GET", "/api/v1/destinations/none", "", 404, "there are: copy"},
		{"GET", "/api/v1/destinations/none/differences", "", 404, "none"},
		{"POST", "/api/v1/destinations/none/sync", "", 404, "none"},
		{"POST", "/api/v1/destinations/none/audit", "", 404, "none"},
		{"POST", "/api/v1/destinations/none/repair", "", 404, "none"},
		{"POST", "/api/v1/destinations/none/pause", "", 404, "none"},
		{"POST", "/api/v1/destinations/none/resume", "", 404, "none"},
		{"GET", "/api/v1/runs/12345", "", 404, "12345"},
		{"GET", "/api/v1/runs/12345?wait=true", "", 404, "12345"},
		{"POST", "/api/v1/runs/12345/cancel", "", 404, "12345"},
		{"GET", "/api/v1/runs/first", "", 400, "no number"},
		{"POST", "/api/v1/runs/-1/cancel", "", 400, "no number"},
		{"GET", "/api/v1/sets/data/changes?since=often", "", 400, "neither a sequence nor a time"},
		{"GET", "/api/v1/sets/data/changes?limit=0", "", 400, "between 1 and 10000"},
		{"GET", "/api/v1/sets/data/changes?limit=10001", "", 400, "between 1 and 10000"},
		{"GET", "/api/v1/sets/data/changes?limit=", "", 400, "limit"},
		{"GET", "/api/v1/sets/data/changes?limit=1&limit=2", "", 400, "more than once"},
		{"GET", "/api/v1/sets/data/changes?limit=%zz", "", 400, "query string"},
		{"GET", "/api/v1/sets/data/changes?Limit=1", "", 400, "allowed here: since, limit"},
		{"GET", "/api/v1/status?x", "", 400, "there are none here"},
		{"GET", "/api/v1/sets/data/resources?after=12", "", 400, "no key"},
		{"GET", "/api/v1/sets/data/resources?entity=http://example.org/none", "", 404, "none"},
		{"GET", "/api/v1/runs?limit=many", "", 400, "between 1 and 1000"},
		{"GET", "/api/v1/runs/1?wait=perhaps", "", 400, "neither true nor false"},
		{"GET", "/api/v1/runs/1?wait=", "", 400, "neither true nor false"},
		{"POST", "/api/v1/sets/data/scan?queue=1", "", 400, "neither true nor false"},
		{"POST", "/api/v1/sets/data/scan", `{"accept": "1"}`, 400, "accept"},
		{"POST", "/api/v1/sets/data/scan", `{"entities": []}`, 400, "none is named"},
		{"POST", "/api/v1/sets/data/scan", `{"entities": ["http://e.example/1"], "hints": true}`, 400, "hints and entities are two scans: ask for one of them"},
		{"POST", "/api/v1/sets/data/scan", `{"hints": true}`, 409, "has no hints: set some"},
		// What is no good body is told by the schema: see openAPI.
		{"POST", "/api/v1/sets/data/scan", `{"entities": [], "hints": false}`, 400, "none is named"},
		{"POST", "/api/v1/sets/data/scan", `{"entities": ["a/b"]}`, 400, "absolute IRIs"},
		{"POST", "/api/v1/sets/data/scan", `{"entities": ["http://e.example/a"], "hints": true}`, 400, "ask for one of them"},
		{"POST", "/api/v1/sets/data/touch", ``, 400, "none is named"},
		{"POST", "/api/v1/sets/data/touch", `{"entities": ["a/b"]}`, 400, "absolute IRIs"},
		{"POST", "/api/v1/sets/data/touch", `{"hints": true}`, 400, "hints"},
		{"POST", "/api/v1/sets/none/touch", `{"entities": ["http://e.example/a"]}`, 404, "no set none"},
		// What the state of the set refuses is a conflict.
		{"GET", "/api/v1/sets/data/changes?since=646713", "", 409, "the log is not there yet"},
		{"POST", "/api/v1/destinations/copy/sync", `{"ful": true}`, 400, "ful"},
		{"POST", "/api/v1/destinations/copy/sync", `{"full": 1}`, 400, "full"},
		{"POST", "/api/v1/destinations/copy/sync", `{"full": null}`, 400, "null"},
		{"POST", "/api/v1/sets/data/scan", `{"entities": ["http://e.example/1", "http://e.example/2"], "Entities": ["http://e.example/3"]}`, 400, "stands in it twice"},
		{"POST", "/api/v1/destinations/copy/sync", `{"full": true} x`, 400, "follows"},
		{"POST", "/api/v1/destinations/copy/sync", `[]`, 400, "no object"},
		{"POST", "/api/v1/destinations/copy/audit", `{"depth": "sea"}`, 400, "inventory, store, origin"},
		{"POST", "/api/v1/destinations/copy/sync", strings.Repeat(" ", 1<<20) + "{}", 413, "1048576"},
		{"PATCH", "/api/v1/sets/data", "", 405, "PATCH is not for"},
		{"PUT", "/api/v1/sets/data", "{}", 409, "no configuration file"},
		{"DELETE", "/api/v1/sets/data", "", 409, "no configuration file"},
		{"GET", "/api/v1/sets/data/scan", "", 405, "GET is not for"},
		{"POST", "/healthz", "", 405, ""},
		{"PUT", "/api/v1/stores/fuseki", "{}", 404, "stores are declared in the configuration file alone"},
		{"GET", "/api/v1/stores", "", 404, "send the daemon SIGHUP"},
		{"GET", "/stores/none/query", "", 404, ""},
		{"GET", "/stores/far/query", "", 404, ""},
	} {
		a := w.do(c.method, c.path, c.body)
		w.problem(a, c.status, c.says)
		if c.status == 405 && a.Header.Get("Allow") == "" {
			t.Errorf("%s %s: no Allow", c.method, c.path)
		}
	}
	var runs httpapi.Runs
	if w.get("/api/v1/runs", &runs); len(runs.Runs) != 0 {
		t.Fatalf("wrong requests began work: %+v", runs)
	}
}

// TestNothingThere: a browser gets a page about an address without any, a program a problem. The sign of the tab
// is there for everybody.
func TestNothingThere(t *testing.T) {
	const browser = "text/html,application/xhtml+xml,*/*;q=0.8"
	for _, token := range []string{"", "secret-of-sixteen"} {
		w := newWorld(t, httpapi.Options{Token: token})
		if a := w.do("GET", "/favicon.ico", "", "Accept", "image/*"); a.StatusCode != 200 || a.Header.Get("Content-Type") != "image/svg+xml" {
			t.Errorf("the icon: %s %s", a.Status, a.Header.Get("Content-Type"))
		}
		for _, path := range []string{"/nope", "/nope/below", "/setsx"} {
			if token != "" {
				if a := w.do("GET", path, "", "Accept", browser); !strings.HasSuffix(a.Request.URL.Path, "/login") {
					t.Errorf("%s leads a stranger to %s", path, a.Request.URL)
				}
			}
			a := w.do("GET", path, "", "Accept", browser, "Authorization", "Bearer "+token)
			if a.StatusCode != 404 || a.Header.Get("Content-Type") != "text/html; charset=utf-8" || !strings.Contains(string(a.body), "There is no such page.") {
				t.Errorf("%s in a browser: %s %s", path, a.Status, a.body)
			}
			w.problem(w.do("GET", path, ""), 404, "/openapi.json")
		}
	}
}

// TestToken: with a token nobody gets in without it; a page of another origin
// cannot use one that a browser remembers.
func TestToken(t *testing.T) {
	t.Parallel() // a wrong token is answered late
	w := newWorld(t, httpapi.Options{Token: "secret"})
	for _, path := range []string{"/api/v1/status", "/metrics", "/openapi.json", "/stores/local/query?query=ASK%7B%7D", "/api/v1/events"} {
		a := w.do("GET", path, "")
		w.problem(a, 401, "token")
		if !strings.HasPrefix(a.Header.Get("WWW-Authenticate"), "Bearer") {
			t.Errorf("%s: WWW-Authenticate %s", path, a.Header.Get("WWW-Authenticate"))
		}
		w.problem(w.do("GET", path, "", "Authorization", "Bearer wrong"), 401)
		w.problem(w.do("GET", path, "", "Authorization", "Bearer "), 401)
		w.problem(w.do("GET", path, "", "Authorization", "secret"), 401)
		if path != "/api/v1/events" {
			w.is(w.do("GET", path, "", "Authorization", "Bearer secret", "Host", "bridge.example", "Origin", "http://elsewhere.example"), 200)
			w.is(w.do("GET", path, "", "Authorization", "bearer   secret"), 200)
			w.is(w.do("GET", path, "", "Authorization", "Basic OnNlY3JldA=="), 200)      // :secret
			w.is(w.do("GET", path, "", "Authorization", "Basic bWU6c2VjcmV0"), 200)      // me:secret
			w.problem(w.do("GET", path, "", "Authorization", "Basic bWU6c2VjcmVj"), 401) // me:secrec
		}
	}
	w.problem(w.do("POST", "/api/v1/sets/data/scan", "", "Authorization", "Basic bWU6c2VjcmV0", "Origin", "http://elsewhere.example"), 403, "another origin")
	w.is(w.do("POST", "/api/v1/sets/data/scan", "", "Authorization", "Basic bWU6c2VjcmV0", "Origin", w.srv.URL), 202)
	for _, path := range []string{"/healthz", "/readyz"} {
		w.is(w.do("GET", path, ""), 200)
	}
	c := httpapi.NewClient(strings.TrimPrefix(w.srv.URL, "http://"), "secret")
	if _, err := c.Status(t.Context()); err != nil {
		t.Error(err)
	}
	run, err := c.Do(t.Context(), "scan", "data", nil, nil)
	if err != nil || run.State != jobs.Done {
		t.Errorf("%+v %v", run, err)
	}
	if _, err := httpapi.NewClient(w.srv.URL, "wrong").Status(t.Context()); err == nil || !strings.Contains(err.Error(), "token") {
		t.Errorf("wrong token: %v", err)
	}
}

// TestLoopback: without a token only loopback names get in, and no page of
// another origin.
func TestLoopback(t *testing.T) {
	w := newWorld(t, httpapi.Options{})
	for _, host := range []string{"localhost", "LOCALHOST:8081", "127.0.0.1", "127.0.0.1:99", "[::1]", "[::1]:8081"} {
		w.is(w.do("GET", "/api/v1/status", "", "Host", host), 200)
	}
	for _, host := range []string{"rebound.example", "rebound.example:8081", "192.0.2.1", "[2001:db8::1]:80", "localhost.example", "127.0.0.1.example"} {
		w.problem(w.do("GET", "/api/v1/status", "", "Host", host), 403, "admin.token_file")
		w.problem(w.do("GET", "/stores/local/query?query=ASK%7B%7D", "", "Host", host), 403)
		w.problem(w.do("GET", "/", "", "Host", host), 403)
	}
	for _, origin := range []string{"http://elsewhere.example", "null", "http://127.0.0.1:1", "%zz"} {
		w.problem(w.do("POST", "/api/v1/sets/data/scan", "", "Origin", origin), 403, "another origin")
		w.problem(w.do("POST", "/stores/local/update", "CLEAR ALL", "Origin", origin, "Content-Type", "application/sparql-update"), 403)
	}
	w.is(w.do("POST", "/api/v1/sets/data/scan", "", "Origin", w.srv.URL), 202)
}

// TestEvents: the end of a run is delivered, whole.
func TestEvents(t *testing.T) {
	stopping, stop := context.WithCancel(t.Context())
	defer stop()
	w := newWorld(t, httpapi.Options{Stopping: stopping})
	w.load(3)
	res, err := http.Get(w.srv.URL + "/api/v1/events")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if ct := res.Header.Get("Content-Type"); res.StatusCode != 200 || ct != "text/event-stream" {
		t.Fatalf("%s %s", res.Status, ct)
	}
	run := w.start("/api/v1/sets/data/scan", "")
	lines := bufio.NewScanner(res.Body)
	var states []string
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		var seen jobs.Run
		if err := json.Unmarshal([]byte(data), &seen); err != nil || seen.ID != run.ID {
			t.Fatalf("%s: %v", data, err)
		}
		if states = append(states, seen.State); seen.Over() {
			if string(seen.Result) != string(run.Result) || len(seen.Result) == 0 {
				t.Errorf("the event says %s, the run %s", seen.Result, run.Result)
			}
			break
		}
	}
	if states[0] != jobs.Queued || !slices.Contains(states, jobs.Running) || states[len(states)-1] != jobs.Done {
		t.Errorf("states: %v", states)
	}
	stop() // the server stops: the stream ends by itself, and waiting lasts to the end of the run
	if _, err := io.ReadAll(res.Body); err != nil {
		t.Errorf("the stream does not end cleanly: %v", err)
	}
	slow := w.do("POST", "/api/v1/sets/slow/scan", "")
	w.is(slow, 202)
	w.is(w.do("POST", slow.Header.Get("Location")+"/cancel", ""), 202)
	if a := w.do("GET", slow.Header.Get("Location")+"?wait=true", ""); a.StatusCode != 200 || !strings.Contains(string(a.body), `"state":"cancelled"`) {
		t.Errorf("waiting for a run while the server stops: %d %s", a.StatusCode, a.body)
	}
	if a := w.do("GET", "/readyz", ""); a.StatusCode != 503 {
		t.Errorf("ready while it stops: %s", a.body)
	}
}

// TestBeside: health, readiness, metrics, description, dashboard; HEAD wherever
// GET is.
func TestBeside(t *testing.T) {
	ready := false
	w := newWorld(t, httpapi.Options{Ready: func() bool { return ready }})
	w.load(4)
	w.start("/api/v1/sets/data/scan", "")
	w.is(w.do("GET", "/healthz", ""), 200)
	w.is(w.do("GET", "/readyz", ""), 503)
	if a := w.do("GET", "/readyz", "", "Accept", "application/json"); a.StatusCode != 503 || string(a.body) != "{\"status\":\"starting\",\"unwell\":[]}\n" {
		t.Errorf("while it starts: %d %s", a.StatusCode, a.body)
	}
	ready = true
	if a := w.do("GET", "/readyz", ""); a.StatusCode != 200 || string(a.body) != "ready\nnever: set slow: it was never scanned\nnever: destination copy: it was never synced\n" {
		t.Errorf("ready: %d %s", a.StatusCode, a.body)
	}
	if a := w.do("GET", "/readyz", "", "Accept", "application/json"); a.StatusCode != 200 || !strings.Contains(string(a.body), `{"status":"ready","unwell":[{"kind":"set","name":"slow","state":"never","why":"it was never scanned"},`) {
		t.Errorf("ready: %d %s", a.StatusCode, a.body)
	}
	w.is(w.do("POST", "/api/v1/destinations/copy/pause", ""), 200)
	if a := w.do("GET", "/readyz", ""); a.StatusCode != 200 || !strings.Contains(string(a.body), "\npaused: destination copy: its schedule is paused: ") {
		t.Errorf("paused: %d %s", a.StatusCode, a.body)
	}
	w.is(w.do("POST", "/api/v1/destinations/copy/resume", ""), 200)
	for _, line := range []string{`rsbridge_set_resources{set="data"} 4`, `rsbridge_set_resources{set="slow"} 0`, `rsbridge_set_state{set="data",state="ok"} 1`, `rsbridge_set_state{set="slow",state="ok"} 0`, `rsbridge_set_state{set="slow",state="never"} 1`, `rsbridge_destination_state{destination="copy",state="never"} 1`, `rsbridge_destination_in_sync{destination="copy"} 0`, `rsbridge_disk_bytes{of="temporary"} 0`, `rsbridge_disk_bytes{of="store local"} `, "go_goroutines "} {
		if a := w.do("GET", "/metrics", ""); a.StatusCode != 200 || !strings.Contains(string(a.body), line) {
			t.Errorf("/metrics has no %s", line)
		}
	}
	var doc struct {
		OpenAPI string
		Paths   map[string]map[string]any
	}
	w.get("/openapi.json", &doc)
	if doc.OpenAPI != "3.1.0" || len(doc.Paths) < 20 {
		t.Fatalf("openapi %s with %d paths", doc.OpenAPI, len(doc.Paths))
	}
	page := w.get("/", nil)
	if !strings.Contains(string(page.body), "rsbridge</title>") || page.Header.Get("Content-Security-Policy") == "" {
		t.Errorf("the dashboard: %v", page.Header)
	}
	paths := []string{"/", "/healthz", "/readyz", "/metrics", "/openapi.json"}
	fill := strings.NewReplacer("/sets/{name}/diff", "/sets/data/diff?entity=http://example.org/e1", "{id}", "1", "/sets/{name}", "/sets/data", "/destinations/{name}", "/destinations/copy", "/description", "/description?entity=http://example.org/e1")
	for path, methods := range doc.Paths {
		if methods["get"] != nil {
			paths = append(paths, fill.Replace(path))
		}
	}
	for _, path := range paths {
		want := 200
		if strings.HasPrefix(path, "/api/v1/destinations/copy/description") || strings.HasSuffix(path, "/held") {
			want = 404 // the mirror has nothing yet, and nothing is held
		}
		if a := w.do("HEAD", path, ""); a.StatusCode != want || len(a.body) > 0 {
			t.Errorf("HEAD %s: %s", path, a.Status)
		}
	}
}

// TestStoreGone: the folder of an embedded store goes away under the bridge, and
// whoever asks is told.
func TestStoreGone(t *testing.T) {
	t.Parallel() // it waits for requests that are made again
	w := newWorld(t, httpapi.Options{})
	w.load(4)
	dir := w.cfg.Stores["local"].Embedded
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if a := w.do("GET", "/readyz", ""); a.StatusCode != 503 || !strings.Contains(string(a.body), "failing: store local: ") || !strings.Contains(string(a.body), dir) {
		t.Errorf("/readyz: %d %s", a.StatusCode, a.body)
	}
	if a := w.do("GET", "/stores/local/query?query=ASK%20%7B%7D", ""); a.StatusCode != 503 || !strings.Contains(string(a.body), "removed or replaced") {
		t.Errorf("a query: %d %s", a.StatusCode, a.body)
	}
	run := w.start("/api/v1/sets/data/scan", "")
	if run.State != jobs.Failed || !strings.Contains(run.Error, "removed or replaced") {
		t.Errorf("the scan: %+v", run)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("the folder was made again")
	}
}

// TestStores: the embedded stores are below /stores/NAME, whole and streaming.
func TestStores(t *testing.T) {
	w := newWorld(t, httpapi.Options{})
	const nt = "application/n-triples"
	w.is(w.do("PUT", "/stores/local/data?graph=http://example.org/g%2F1", "<http://example.org/a> <http://example.org/p> \"1\" .\n", "Content-Type", nt), 201)
	if a := w.do("GET", "/stores/local/data?graph=http://example.org/g%2F1", "", "Accept", nt); a.StatusCode != 200 || !strings.Contains(string(a.body), `"1"`) {
		t.Fatalf("%s %s", a.Status, a.body)
	}
	w.is(w.do("POST", "/stores/local/update", `INSERT DATA { <http://example.org/b> <http://example.org/p> "2" }`, "Content-Type", "application/sparql-update"), 204)
	if a := w.do("GET", "/stores/local/query?query="+"SELECT%20*%20%7B%3Fs%20%3Fp%20%3Fo%7D", "", "Accept", "text/csv"); a.StatusCode != 200 || !strings.Contains(string(a.body), "http://example.org/b") {
		t.Fatalf("%s %s", a.Status, a.body)
	}
	w.is(w.do("POST", "/stores/local/query", "SELECT nonsense", "Content-Type", "application/sparql-query"), 400)

	// an answer of millions of rows begins at once, and ends with its reader
	w.load(2000)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "POST", w.srv.URL+"/stores/local/query", strings.NewReader("SELECT * { ?a ?p ?b . ?c ?q ?d . ?e ?r ?f }"))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/sparql-query")
	req.Header.Set("Accept", "text/tab-separated-values")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	for range 1000 {
		if !lines.Scan() {
			t.Fatalf("the answer ends early: %v", lines.Err())
		}
	}
	cancel()
	for lines.Scan() {
	}
	if lines.Err() == nil {
		t.Error("an answer that was cut off looks whole")
	}
}

// TestStateFault: a bridge whose state cannot be written is not ready.
func TestStateFault(t *testing.T) {
	w := newWorld(t, httpapi.Options{})
	w.is(w.do("GET", "/readyz", ""), 200)
	if err := w.b.Close(); err != nil {
		t.Fatal(err)
	}
	w.b = nil
	defer w.srv.Close()
	if a := w.do("GET", "/readyz", ""); a.StatusCode != 503 || !strings.Contains(string(a.body), "failing: state: ") {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
}
