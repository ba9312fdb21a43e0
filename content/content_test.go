package content

import (
	"crypto/sha256"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rsbridge/rsbridge/changetrack"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/internal/kv/memkv"
	"github.com/rsbridge/rsbridge/internal/teststores"
	"github.com/rsbridge/rsbridge/rdfres"
)

const property = "http://schema.org/contentUrl"

// world is a log, a follower of its files, a clock, and a server.
type world struct {
	t     *testing.T
	now   time.Time
	store kv.Store
	log   *changetrack.Log
	cfg   Config
	f     *Follower
	srv   *httptest.Server
	mu    sync.Mutex
	serve map[string]http.HandlerFunc
	asked []string
}

func newWorld(t *testing.T, cfg Config) *world {
	w := &world{t: t, now: time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC), store: memkv.New(), serve: map[string]http.HandlerFunc{}, cfg: cfg}
	track, err := changetrack.Open(t.Context(), kv.Prefix(w.store, []byte("log/")), changetrack.Options{Dir: t.TempDir(), Now: w.clock})
	w.must(err)
	t.Cleanup(func() { w.must(track.Close()) })
	w.log, err = track.Log(t.Context(), "data")
	w.must(err)
	w.srv = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.mu.Lock()
		w.asked = append(w.asked, r.Method+" "+r.URL.Path)
		h := w.serve[r.URL.Path]
		w.mu.Unlock()
		if h == nil {
			http.NotFound(rw, r)
			return
		}
		h(rw, r)
	}))
	t.Cleanup(w.srv.Close)
	if w.cfg.Allow == nil {
		w.cfg.Allow = []string{w.srv.URL}
	}
	if w.cfg.Rate == 0 {
		w.cfg.Rate = 1e6
	}
	w.cfg.Properties = []string{property}
	w.open()
	return w
}

func (w *world) open() {
	var err error
	w.f, err = New(kv.Prefix(w.store, []byte("content/")), w.log, w.cfg, Options{Now: w.clock, resolver: teststores.Names(w.t, netip.MustParseAddr("127.0.0.1"))})
	w.must(err)
	w.t.Cleanup(w.f.Close)
}

func (w *world) clock() time.Time { return w.now }

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) file(path string, h http.HandlerFunc) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.serve[path] = h
}

// gone is the first file of what is gone after a place.
func (w *world) gone(after *rdfres.Digest) (changetrack.FileState, bool) {
	view := w.log.View(w.t.Context())
	defer view.Close()
	for st, err := range w.f.Gone(w.t.Context(), view, after) {
		w.must(err)
		return st, true
	}
	return changetrack.FileState{}, false
}

func text(body, etag string) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Type", "text/plain; charset=utf-8")
		if etag != "" {
			rw.Header().Set("Etag", etag)
			if r.Header.Get("If-None-Match") == etag {
				rw.WriteHeader(http.StatusNotModified)
				return
			}
		}
		rw.Header().Set("Content-Length", fmt.Sprint(len(body)))
		io.WriteString(rw, body)
	}
}

// scan gives each entity, named by a number, its files.
func (w *world) scan(files ...[]string) {
	w.t.Helper()
	var ds []rdfres.Description
	for i, urls := range files {
		e := fmt.Sprintf("http://e.example/%d", i)
		ts := []rdfres.Triple{{S: rdfres.NewIRI(e), P: rdfres.NewIRI("http://e.example/name"), O: rdfres.NewLiteral(e, "", "")}}
		for _, u := range urls {
			ts = append(ts, rdfres.Triple{S: rdfres.NewIRI(e), P: rdfres.NewIRI(property), O: rdfres.NewIRI(u)})
		}
		ds = append(ds, rdfres.Description{Entity: e, Triples: rdfres.SortUnique(ts)})
	}
	slices.SortFunc(ds, func(a, b rdfres.Description) int {
		x, y := rdfres.EntityKey(a.Entity), rdfres.EntityKey(b.Entity)
		return strings.Compare(string(x[:]), string(y[:]))
	})
	_, err := w.log.Scan(w.t.Context(), func(yield func(rdfres.Description, error) bool) {
		for _, d := range ds {
			if !yield(d, nil) {
				return
			}
		}
	}, changetrack.ScanOptions{MaxDeleteRatio: -1})
	w.must(err)
	_, err = w.f.Link(w.t.Context())
	w.must(err)
}

func (w *world) run(accept bool) Report {
	w.t.Helper()
	w.mu.Lock()
	w.asked = nil
	w.mu.Unlock()
	w.now = w.now.Add(25 * time.Hour)
	id := ""
	if before, err := w.f.Status(w.t.Context()); err != nil {
		w.t.Fatal(err)
	} else if accept && before != nil && before.Held != nil {
		id = before.Held.ID
	}
	rep, err := w.f.Run(w.t.Context(), id)
	w.must(err)
	w.must(w.log.Check(w.t.Context()))
	return rep
}

func (w *world) current(path string) *changetrack.FileVersion {
	w.t.Helper()
	v := w.log.View(w.t.Context())
	defer v.Close()
	st, err := v.File(w.t.Context(), w.srv.URL+path)
	w.must(err)
	return st.Current
}

// TestAcceptedFiles: accepted files go, also more than a run looks at; what is gone since then
// waits, and what is there again stays.
func TestAcceptedFiles(t *testing.T) {
	w := newWorld(t, Config{MaxDeleteRatio: 0.1})
	var urls []string
	for i := range 90 {
		p := fmt.Sprintf("/%d", i)
		w.file(p, text("file", ""))
		urls = append(urls, w.srv.URL+p)
	}
	w.scan(urls)
	w.run(false)
	lose := func(from, to int) {
		for i := from; i < to; i++ {
			w.file(fmt.Sprintf("/%d", i), nil)
		}
	}
	lose(0, 25)
	w.run(false)
	shown := w.run(false).Held
	if shown == nil || shown.Deletions != 25 || shown.Of != 90 || shown.ID == "" {
		t.Fatalf("%+v", shown)
	}
	if again := w.run(false).Held; again == nil || again.ID != shown.ID {
		t.Fatalf("the same files: %+v, then %+v", shown, again)
	}
	lose(25, 38)
	w.run(false)
	grown := w.run(false).Held
	if grown == nil || grown.Deletions != 38 || grown.ID == shown.ID {
		t.Fatalf("with others: %+v, then %+v", shown, grown)
	}
	if rep, err := w.f.Run(t.Context(), shown.ID); err != nil || rep.Deleted != 0 || rep.Held == nil || rep.Held.ID != grown.ID {
		t.Fatalf("a stale id: %+v %v", rep, err)
	}
	lose(38, 50)
	w.run(false) // missed once: not shown yet
	w.file("/3", text("file", ""))
	rep := w.run(true)
	if rep.Deleted != 37 || rep.Held == nil || rep.Held.Deletions != 12 || rep.Held.Of != 53 || w.current("/3") == nil || w.current("/45") == nil {
		t.Fatalf("%+v %+v", rep, rep.Held)
	}
	w.cfg.PerRun = 5
	w.open()
	if rep = w.run(true); rep.Deleted != 12 || rep.Held != nil || rep.Looked != 5 {
		t.Fatalf("more than one run looks at: %+v", rep)
	}
	w.cfg.PerRun = 1000
	w.open()
	w.scan(urls[3:4])
	w.run(false)
	lose(3, 4)
	w.run(false)
	if rep = w.run(false); rep.Held == nil || rep.Held.Reason != "the only file is not there any more" || rep.Deleted != 0 {
		t.Fatalf("%+v", rep)
	}
	if rep = w.run(true); rep.Held != nil || rep.Deleted != 1 {
		t.Fatalf("%+v", rep)
	}
}

// TestLimits: one run looks at no more than it may, and who waits longest is next.
func TestLimits(t *testing.T) {
	w := newWorld(t, Config{PerRun: 3, Concurrency: 1})
	var urls []string
	for i := range 7 {
		p := fmt.Sprintf("/%d", i)
		w.file(p, text("file", `"x"`))
		urls = append(urls, w.srv.URL+p)
	}
	w.scan(urls)
	seen := map[string]int{}
	for i, waiting := range []int64{4, 4, 4} { // after the first run all but three have waited for ever
		rep := w.run(false)
		if rep.Looked != 3 || rep.Waiting != waiting || len(w.asked) != 3 {
			t.Fatalf("run %d: %+v, asked %v", i, rep, w.asked)
		}
		for _, a := range w.asked {
			seen[a]++
		}
	}
	if len(seen) != 7 {
		t.Fatalf("three runs of three did not reach all seven: %v", seen)
	}
	// A server that is down is left alone.
	w.cfg.PerRun = 100
	w.open()
	for i := range 7 {
		w.file(fmt.Sprintf("/%d", i), func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(503) })
	}
	if rep := w.run(false); rep.Looked != 1 || rep.Failing != 1 || rep.Waiting != 6 || rep.Resources != 7 {
		t.Fatalf("%+v", rep)
	}
}

// TestClockSetBack: files that were looked at by a clock far ahead do not wait for it.
func TestClockSetBack(t *testing.T) {
	w := newWorld(t, Config{})
	w.file("/a", text("file", `"x"`))
	w.scan([]string{w.srv.URL + "/a"})
	right := w.now
	w.now = right.AddDate(10, 0, 0)
	w.run(false)
	w.file("/a", text("another file", `"y"`))
	w.now = right
	if rep := w.run(false); rep.Updated != 1 {
		t.Fatalf("%+v", rep)
	}
}

// TestRate: requests are spaced.
func TestRate(t *testing.T) {
	f := newWorld(t, Config{Rate: 2}).f
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		p := f.prober(began)
		for range 3 {
			if err := p.pace.Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(began); took != time.Second {
			t.Fatalf("three requests at two a second took %v", took)
		}
	})
}

// TestGuard: what a store says opens no door.
func TestGuard(t *testing.T) {
	var reached atomic.Int64
	inner := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	defer inner.Close()
	w := newWorld(t, Config{})
	w.file("/away", func(rw http.ResponseWriter, r *http.Request) {
		http.Redirect(rw, r, inner.URL+"/secret", http.StatusFound)
	})
	w.file("/loop", func(rw http.ResponseWriter, r *http.Request) { http.Redirect(rw, r, "/loop", http.StatusFound) })
	w.file("/there", func(rw http.ResponseWriter, r *http.Request) { http.Redirect(rw, r, "/real", http.StatusFound) })
	w.file("/scheme", func(rw http.ResponseWriter, r *http.Request) {
		http.Redirect(rw, r, "file:///etc/passwd", http.StatusFound)
	})
	w.file("/real", text("real", ""))
	w.scan([]string{w.srv.URL + "/away", w.srv.URL + "/loop", w.srv.URL + "/there", w.srv.URL + "/scheme"},
		[]string{inner.URL + "/secret", "http://169.254.169.254/latest/meta-data/", "http://user:password@" + strings.TrimPrefix(w.srv.URL, "http://") + "/real", "file:///etc/passwd", "urn:x:y", "http://localhost:1/x"})
	rep := w.run(false)
	if reached.Load() != 0 {
		t.Fatal("a host that is not allowed was asked")
	}
	if rep.Led != 7 || rep.Resources != 1 || rep.Elsewhere != 3 || rep.Failing != 3 || w.current("/there") == nil {
		t.Fatalf("%+v", rep)
	}
	for _, tr := range rep.Troubles {
		if strings.HasSuffix(tr.URL, "/away") && !strings.Contains(tr.Error, "content.allow") {
			t.Errorf("%+v", tr)
		}
	}
	// A name that is allowed and leads to the machine itself is refused, unless that is allowed too.
	_, port, err := net.SplitHostPort(inner.Listener.Addr().String())
	w.must(err)
	for _, private := range []bool{false, true} {
		r := newWorld(t, Config{Allow: []string{"rebound.example"}, Private: private})
		r.scan([]string{"http://rebound.example:" + port + "/secret"})
		rep := r.run(false)
		if got := reached.Load() > 0; got != private || (rep.Failing == 0) != private {
			t.Errorf("private %t: reached %t, %+v", private, got, rep)
		}
	}
}

// TestManners: servers that know no HEAD, no validators, that lie about the length,
// that answer half.
func TestManners(t *testing.T) {
	w := newWorld(t, Config{Hash: true, MaxBytes: 1000})
	noHead := func(h http.HandlerFunc) http.HandlerFunc {
		return func(rw http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodHead {
				rw.WriteHeader(http.StatusMethodNotAllowed)
				return
			}
			h(rw, r)
		}
	}
	w.file("/nohead", noHead(text("one", "")))
	w.file("/head404", func(rw http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodHead {
			rw.WriteHeader(404)
			return
		}
		io.WriteString(rw, "there")
	})
	w.file("/liar", func(rw http.ResponseWriter, r *http.Request) { // of its head
		if r.Method == http.MethodHead {
			rw.Header().Set("Content-Length", "999")
			return
		}
		io.WriteString(rw, "short")
	})
	w.file("/cut", func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Length", "100")
		io.WriteString(rw, "half")
	})
	w.file("/long", func(rw http.ResponseWriter, r *http.Request) { io.WriteString(rw, strings.Repeat("x", 5000)) })
	w.file("/odd", func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Type", `te<xt/"pl>ain`)
		rw.Header().Set("Last-Modified", "Fri, 01 Jan 2100 00:00:00 GMT")
		rw.Header().Set("Content-Encoding", "br")
		io.WriteString(rw, "coded")
	})
	var urls []string
	for p := range w.serve {
		urls = append(urls, w.srv.URL+p)
	}
	w.scan(urls)
	rep := w.run(false)
	if rep.Resources != 5 || rep.Failing != 1 {
		t.Fatalf("%+v", rep)
	}
	if v := w.current("/liar"); v.Length != 5 || v.SHA256.IsZero() {
		t.Errorf("what came counts, not what the head said: %+v", v)
	}
	if v := w.current("/long"); !v.SHA256.IsZero() {
		t.Errorf("a hash of what is too long: %+v", v)
	}
	if v := w.current("/odd"); v.Type != unknownType || !v.Modified.IsZero() || v.Encoding != "br" {
		t.Errorf("%+v", v)
	}
	if v := w.current("/head404"); v == nil {
		t.Error("a file whose head only is not there")
	}
	// Nothing has changed, though most have no validators: hashes tell so.
	if rep := w.run(false); rep.Created+rep.Updated+rep.Deleted != 0 {
		t.Fatalf("%+v\n%v", rep, w.asked)
	}
	w.file("/nohead", noHead(text("two", "")))
	if rep := w.run(false); rep.Updated != 1 {
		t.Fatalf("%+v", rep)
	}
}

// TestNoBound: the largest number there is means that no file is too long.
func TestNoBound(t *testing.T) {
	w := newWorld(t, Config{Hash: true, MaxBytes: math.MaxInt64})
	w.file("/a", text("some text", ""))
	w.scan([]string{w.srv.URL + "/a"})
	w.run(false)
	if v := w.current("/a"); v == nil || v.Length != 9 || v.SHA256 != sha256.Sum256([]byte("some text")) {
		t.Errorf("%+v", v)
	}
}

// TestStuck: a file that does not come is not waited for, and keeps no other from
// being followed.
func TestStuck(t *testing.T) {
	t.Parallel()                                                   // it does nothing but wait
	w := newWorld(t, Config{Hash: true, Timeout: 5 * time.Second}) // for an honest file on a busy machine
	w.file("/stuck", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	w.file("/honest", text("honest", `"1"`))
	w.scan([]string{w.srv.URL + "/stuck", w.srv.URL + "/honest"})
	if rep := w.run(false); rep.Resources != 1 || rep.Failing != 1 {
		t.Fatalf("%+v", rep)
	}
}

// TestGone: a file that is not there at one look is missing, at the second deleted;
// very many at once wait for a person; what comes back is created.
func TestGone(t *testing.T) {
	w := newWorld(t, Config{MaxDeleteRatio: 0.2})
	var urls []string
	for i := range 30 {
		p := fmt.Sprintf("/%d", i)
		w.file(p, text(p, fmt.Sprintf(`"%d"`, i)))
		urls = append(urls, w.srv.URL+p)
	}
	w.scan(urls)
	w.run(false)
	w.file("/0", nil)
	w.file("/1", func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(410) })
	if rep := w.run(false); rep.Deleted != 1 || rep.Missing != 2 || rep.Resources != 29 {
		t.Fatalf("%+v", rep)
	}
	if rep := w.run(false); rep.Deleted != 1 || rep.Resources != 28 {
		t.Fatalf("%+v", rep)
	}
	for i := range 30 {
		w.file(fmt.Sprintf("/%d", i), nil)
	}
	w.run(false)
	for range 2 {
		rep := w.run(false)
		if rep.Held == nil || rep.Held.Deletions != 28 || rep.Resources != 28 || rep.Deleted != 0 {
			t.Fatalf("%+v", rep)
		}
		if st, err := w.f.Status(t.Context()); err != nil || st.Held == nil {
			t.Fatalf("%+v %v", st, err)
		}
		var after *rdfres.Digest
		for i := range 29 { // one at a time, to the end
			st, ok := w.gone(after)
			if ok != (i < 28) {
				t.Fatalf("file %d of what is held: %v", i, ok)
			}
			key := changetrack.FileKey(st.URL)
			after = &key
		}
	}
	if rep := w.run(true); rep.Held != nil || rep.Deleted != 28 || rep.Resources != 0 {
		t.Fatalf("%+v", rep)
	}
	w.file("/5", text("back", `"5b"`))
	if rep := w.run(false); rep.Created != 1 || rep.Resources != 1 || rep.Held != nil {
		t.Fatalf("%+v", rep)
	}
	// No description leads to them any more.
	w.scan([]string{urls[5]}, nil)
	if rep := w.run(false); rep.Led != 1 || rep.Resources != 1 {
		t.Fatalf("%+v", rep)
	}
	w.scan(nil, nil)
	if rep := w.run(false); rep.Led != 0 || rep.Resources != 0 {
		t.Fatalf("%+v", rep)
	}
	n := 0
	for _, err := range w.store.Scan(t.Context(), []byte("content/k"), []byte("content/l")) {
		w.must(err)
		n++
	}
	if n != 0 {
		t.Errorf("%d looks are kept of files that nobody leads to", n)
	}
}

// TestAddresses: what is taken for an address.
func TestAddresses(t *testing.T) {
	for in, want := range map[string]string{
		"http://h.example/a.pdf":                        "http://h.example/a.pdf",
		"https://h.example/a.pdf#page=3":                "https://h.example/a.pdf",
		"http://h.example/Übung.pdf":                    "http://h.example/%C3%9Cbung.pdf",
		"http://h.example/a b":                          "",
		"http://h.example/%zz":                          "",
		"http:///a":                                     "",
		"ftp://h.example/a":                             "",
		"mailto:a@h.example":                            "",
		"//h.example/a":                                 "",
		"http://u:p@h.example/":                         "",
		"http://h.example/\"><script>":                  "",
		"http://h.example/" + string(rune(0x80)):        "http://h.example/%C2%80",
		"http://h.example/" + strings.Repeat("a", 3000): "",
		"": "",
	} {
		if got, ok := address(in); got != want || ok != (want != "") {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func FuzzAddress(f *testing.F) {
	f.Add("http://h.example/a.pdf#x")
	f.Fuzz(func(t *testing.T, s string) {
		a, ok := address(s)
		if !ok {
			return
		}
		if b, ok := address(a); !ok || a != b {
			t.Fatalf("%q gives %q, which gives %q", s, a, b)
		}
	})
}

func FuzzLook(f *testing.F) {
	f.Add([]byte(`{"version":1}`))
	f.Fuzz(func(_ *testing.T, b []byte) { _, _ = readLook(b) })
}

// TestFetch: a file is fetched for a dump as the one that is listed, or not at all.
func TestFetch(t *testing.T) {
	for _, hash := range []bool{false, true} {
		w := newWorld(t, Config{Hash: hash})
		var urls []string
		for _, p := range []string{"/same", "/changed", "/gone", "/long", "/down"} {
			w.file(p, text("body of "+p, `"1"`))
			urls = append(urls, w.srv.URL+p)
		}
		w.scan(urls)
		w.run(false)
		w.file("/changed", text("BODY of /changed", `"2"`))
		w.file("/gone", nil)
		w.file("/down", func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(503) })
		x := w.f.Fetcher()
		for _, tt := range []struct{ path, wrong string }{
			{"/same", ""}, {"/changed", "not what was listed"}, {"/gone", "404"}, {"/long", "more than"}, {"/down", "503"}, {"/same", "failed several times"},
		} {
			most := int64(100)
			if tt.path == "/long" {
				most = 5
			}
			var got strings.Builder
			err := x.Fetch(t.Context(), w.srv.URL+tt.path, w.current(tt.path), most, &got)
			if tt.wrong == "" && (err != nil || got.String() != "body of "+tt.path) || tt.wrong != "" && (err == nil || !strings.Contains(err.Error(), tt.wrong)) {
				t.Errorf("hash %t: %s: %q %v, want %q", hash, tt.path, got.String(), err, tt.wrong)
			}
		}
		if err := w.f.Fetcher().Fetch(t.Context(), "http://elsewhere.example/x", w.current("/same"), 100, io.Discard); err == nil || !strings.Contains(err.Error(), "not") {
			t.Errorf("from a host that is not allowed: %v", err)
		}
	}
}
