package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// secret is the password, or the token, in all addresses of these tests.
const secret = "s3kretpw"

// secretAddresses hold the secret. Most of them are malformed.
var secretAddresses = []string{
	"http://us:" + secret + "@127.0.0.1:1/q",
	"http://us:" + secret + "@127.0.0.1:1/q%zz",
	"http://us:" + secret + "@[::1/q",
	"http://us:" + secret + "@127.0.0.1:x/q",
	"http://us:p@" + secret + "@127.0.0.1:x/q",
	"http://us:7" + secret + "/q@127.0.0.1:1/",
	"http://us:" + secret + "%zz@127.0.0.1:1/",
	"http://us:" + secret + " @127.0.0.1:1/",
	"http://us:p " + secret + "@127.0.0.1:1/",
	"http://us:p'" + secret + "@127.0.0.1:1/",
	"us:" + secret + "@127.0.0.1:1//q",
	"us:" + secret + "@localhost",
	"us:" + secret + "@127.0.0.1:1/q",
	"//us:" + secret + "@127.0.0.1:1",
	"http:/us:" + secret + "@127.0.0.1:1",
	"http:us:" + secret + "@127.0.0.1:1",
	"http://http:/us:" + secret + "@127.0.0.1:1",
	"HTTP://us:" + secret + "@127.0.0.1:x",
	"htp://us:" + secret + "@127.0.0.1:1/q",
	"'http://us:" + secret + "@127.0.0.1:1/q'",
	"http://127.0.0.1:1/q?api_key=" + secret,
	"http://127.0.0.1:1/q?a=b&token=" + secret + "&c=d",
	"http://127.0.0.1:x/q?access_token=" + secret,
	"htp://127.0.0.1:1/q?key=" + secret,
	"127.0.0.1:1/q?sig=" + secret,
	"http://127.0.0.1:1/%zz?password=" + secret,
}

// TestSecretsInAddresses: no command prints a secret of an address, be it well formed or
// not.
func TestSecretsInAddresses(t *testing.T) {
	t.Parallel() // it waits for requests that are made again
	dir := t.TempDir()
	empty := httptest.NewServer(http.NotFoundHandler())
	defer empty.Close()
	var commands [][]string
	in := func(args ...string) { // each has a folder of its own
		own := filepath.Join(dir, fmt.Sprint(len(commands)))
		if err := os.Mkdir(own, 0o700); err != nil {
			t.Fatal(err)
		}
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], "DIR", own)
		}
		if len(commands)%2 == 1 {
			args = append(args, "--json")
		}
		commands = append(commands, args)
	}
	config := func(form, address string) string {
		own := filepath.Join(dir, fmt.Sprint(len(commands)))
		text := strings.ReplaceAll(fmt.Sprintf("state: DIR/state\n"+form+"\n", address), "DIR", own)
		file := filepath.Join(dir, fmt.Sprint(len(commands), ".yaml"))
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	for i, a := range secretAddresses {
		for _, args := range [][]string{
			{"explore", a}, {"validate", a}, {"validate", "--follow", a}, {"doctor", a}, {"doctor", "http://127.0.0.1:1/", "--update", a}, {"doctor", "http://127.0.0.1:1/", "--graph-store", a},
			{"init", "--endpoint", a, "-o", "DIR/x.yaml"}, {"init", "--source", a, "-o", "DIR/x.yaml"},
			{"explore", "http://127.0.0.1:1/", "--allow", a}, {"validate", "http://127.0.0.1:1/", "--allow", a},
			{"mirror", a, "--into", "embedded:DIR/m", "--once", "--state", "DIR/s"}, {"mirror", "http://127.0.0.1:1/", "--query", a, "--update", a, "--once", "--state", "DIR/s"},
			{"mirror", "http://127.0.0.1:1/", "--query", "http://127.0.0.1:1/", "--graph-store", a, "--once", "--state", "DIR/s"}, {"mirror", "http://127.0.0.1:1/", "--into", a, "--once", "--state", "DIR/s"},
			{"mirror", empty.URL, "--into", "embedded:DIR/m", "--allow", a, "--once", "--state", "DIR/s"}, {"mirror", empty.URL, "--into", "embedded:DIR/m", "--set", a, "--once", "--state", "DIR/s"},
			{"init", "--dumps", a, "-o", "DIR/x.yaml"}, {"demo", "--once", "--dir", a},
			{"simulate", a, "--entities", "1"}, {"store", "load", a, "DIR/none.nt"}, {"store", "query", a, "ASK {}"}, {"store", "serve", a},
			{"sync", "-c", "DIR/none.yaml", a}, {"show", "-c", "DIR/none.yaml", "s", a}, {"export", "-c", a, "s", "DIR/x"},
		} {
			if asked := i == 0 || i == 9 || i >= 20; args[0] != "mirror" || !asked || i == 9 && args[1] == a { // what can be asked is asked again and again
				in(args...)
			}
		}
		if i > 0 { // the first one would be served
			in("expose", a, "--state", "DIR/s", "--listen", a, "--admin", "")
			in("expose", "http://127.0.0.1:1/", "--state", "DIR/s", "--base-url", a, "--listen", a)
		}
		name := fmt.Sprint("RSBRIDGE_SECRET_", i)
		os.Setenv(name, a) // others do not read it
		defer os.Unsetenv(name)
		// The configuration, with each address at each key, told by check.
		for j, form := range []string{
			"public: {base_url: %q, listen: '127.0.0.1:0'}\nstores: {o: {embedded: DIR/o}}\nsets: {s: {store: o}}",
			"stores: {o: {query: %q}}\nsets: {s: {store: o}}",
			"stores: {o: {query: 'http://127.0.0.1:1/', update: %q}}\nsets: {s: {store: o}}",
			"stores: {o: {query: 'http://127.0.0.1:1/', graph_store: %q}}\nsets: {s: {store: o}}",
			"stores: {o: {preset: fuseki, url: %q, repository: ds}}\nsets: {s: {store: o}}",
			"stores: {o: {embedded: DIR/o}}\nsets: {s: {dumps: [%q]}}",
			"stores: {o: {embedded: DIR/o}}\nsets: {s: {store: o, content: {path: 'http://e.example/p', allow: [%q]}}}",
			"stores: {o: {embedded: DIR/o}}\nsets: {s: {store: o, locations: [%q]}}",
			"stores: {o: {embedded: DIR/o}}\nsets: {s: {store: o, links: ['x %[1]s', %[1]q]}}",
			"stores: {o: {embedded: DIR/o}}\nsets: {s: {store: o, publisher: %[1]q, licence: %[1]q, collection: %[1]q, schedule: %[1]q}}",
			"stores: {o: {embedded: DIR/o}}\nsets: {s: {store: o, prefix: %q}}",
			"stores: {o: {embedded: DIR/o}}\ndestinations: {d: {store: o, source: %q}}",
			"stores: {o: {embedded: DIR/o}}\ndestinations: {d: {store: o, source: 'http://127.0.0.1:1/', set: %q}}",
			"stores: {o: {embedded: DIR/o}}\ndestinations: {d: {store: o, source: 'http://127.0.0.1:1/', allow: [%q]}}",
		} {
			if !strings.HasPrefix(form, "public") {
				form = "public: {base_url: 'http://127.0.0.1:1', listen: '127.0.0.1:0'}\n" + form
			}
			value := a
			if (i+j)%2 == 1 {
				value = fmt.Sprintf("${RSBRIDGE_SECRET_%d}", i)
			}
			in("check", "-c", config(form, value))
		}
	}
	waits := func(args []string) int { return slices.Index([]string{"mirror", "simulate"}, args[0]) }
	slices.SortStableFunc(commands, func(a, b []string) int { return waits(b) - waits(a) })
	var running sync.WaitGroup
	free := make(chan struct{}, 64) // they wait more than they work
	for _, args := range commands {
		free <- struct{}{}
		running.Go(func() {
			defer func() { <-free }()
			var said strings.Builder
			if code := new(app).execute(t.Context(), args, strings.NewReader(""), &said, &said); strings.Contains(said.String(), secret) || code == exitDone && args[0] != "check" {
				t.Errorf("%q ends with %d: %s", args, code, &said)
			}
		})
	}
	running.Wait()
	t.Logf("%d commands", len(commands))
}

// TestSecretsOfDaemon: the password of an address, or one that a source names, is in no
// log, record, page or document.
func TestSecretsOfDaemon(t *testing.T) {
	t.Parallel() // it waits for requests that are made again
	dir := t.TempDir()
	conf := filepath.Join(dir, "rsbridge.yaml")
	var once sync.Once
	asked := false
	source := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, password, _ := r.BasicAuth(); password != secret {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		once.Do(func() { asked = true })
		var to int
		switch n, _ := fmt.Sscanf(r.URL.Path, "/away/%d", &to); {
		case n == 1:
			w.Header().Set("Location", secretAddresses[to])
			w.WriteHeader(http.StatusFound)
		case r.URL.Path == "/a.ttl":
			w.Header().Set("Content-Type", "text/turtle")
			fmt.Fprint(w, "<http://e.example/a> <http://e.example/p> 1 .")
		case r.URL.Path == "/list.xml":
			fmt.Fprintf(w, `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:rs="http://www.openarchives.org/rs/terms/"><rs:md capability="resourcelist" at="2026-01-01T00:00:00Z"/><url><loc>http://%s/a.ttl</loc></url><url><loc>http://%[1]s/away/2</loc></url><url><loc>http://%[1]s/away/3</loc></url></urlset>`, r.Host)
		default:
			http.NotFound(w, r)
		}
	}))
	defer source.Close()
	with := strings.Replace(source.URL, "://", "://us:"+secret+"@", 1)
	places := ""
	for i := range secretAddresses {
		places += fmt.Sprintf(", o%d: {embedded: ./o%[1]d}", i)
	}
	pub, adm := freeAddr(t), freeAddr(t)
	text := fmt.Sprintf("state: ./state\npublic: {listen: %q}\nadmin: {listen: %q}\nstores: {o: {embedded: ./o}, bad: {query: %q}, away: {query: %q}%s}\nsets: {ok: {store: o}, dead: {store: bad}, moved: {store: away}}\ndestinations:\n  good: {store: o, source: %q, provenance: true}\n",
		pub, adm, secretAddresses[0], with+"/away/2", places, with+"/list.xml")
	jobs := []string{"sets/ok/scan", "sets/dead/scan", "sets/moved/scan", "destinations/good/sync", "destinations/good/audit"}
	for i := range secretAddresses {
		text += fmt.Sprintf("  away%d: {store: o%[1]d, source: %q}\n", i, fmt.Sprint(with, "/away/", i))
		jobs = append(jobs, fmt.Sprintf("destinations/away%d/sync", i))
	}
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	done := make(chan int, 1)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go func() {
		done <- run(ctx, []string{"run", "-c", conf, "--log-level", "debug"}, strings.NewReader(""), &said, &said)
	}()
	if err := poll(ctx, func() bool {
		if len(done) > 0 {
			stop()
		}
		res, err := http.Get("http://" + adm + "/readyz")
		if err == nil {
			res.Body.Close()
		}
		return err == nil && res.StatusCode == http.StatusOK
	}); err != nil {
		t.Fatalf("%v: %s", err, &said)
	}
	var runs []uint64
	seen := map[string]string{}
	read := func(address string, res *http.Response, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		raw, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		seen[address] = string(raw)
	}
	for _, j := range jobs {
		res, err := http.Post("http://"+adm+"/api/v1/"+j+"?queue=true", "", nil) // notifications begin runs too
		read(j, res, err)
		var begun struct {
			ID uint64 `json:"id"`
		}
		if err := json.Unmarshal([]byte(seen[j]), &begun); err != nil || begun.ID == 0 {
			t.Fatalf("%s: %s", j, seen[j])
		}
		runs = append(runs, begun.ID)
	}
	for _, id := range runs {
		if err := poll(ctx, func() bool {
			address := fmt.Sprintf("http://%s/api/v1/runs/%d", adm, id)
			res, err := http.Get(address)
			read(address, res, err)
			return strings.Contains(seen[address], `"ended"`)
		}); err != nil {
			t.Fatal(err)
		}
	}
	for _, address := range []string{adm + "/", adm + "/metrics", adm + "/readyz", adm + "/api/v1/runs?limit=1000", adm + "/api/v1/status", adm + "/api/v1/destinations/good/differences",
		adm + "/api/v1/jobs", adm + "/api/v1/destinations/good/not-rdf", pub + "/ok/resourcelist.xml", pub + "/.well-known/resourcesync"} {
		res, err := http.Get("http://" + address)
		read(address, res, err)
	}
	stop()
	if code := soon(t, "the end of the daemon", done); code != exitDone {
		t.Errorf("the daemon ends with %d", code)
	}
	seen["log"] = said.String()
	var state strings.Builder
	if code := run(t.Context(), []string{"store", "query", filepath.Join(dir, "o"), "SELECT * { GRAPH ?g { ?s ?p ?o } }"}, strings.NewReader(""), &state, &state); code != exitDone || !strings.Contains(state.String(), "urn:rsbridge:state") || !strings.Contains(state.String(), "http://e.example/a") {
		t.Errorf("the store says: %s", &state)
	}
	seen["store"] = state.String()
	if !asked || !strings.Contains(seen["log"], "away2") {
		t.Errorf("the source was never asked: %s", seen["sets/ok/scan"])
	}
	for where, what := range seen {
		for line := range strings.Lines(what) {
			if strings.Contains(line, secret) {
				t.Errorf("%s: %.600s", where, line)
			}
		}
	}
}
