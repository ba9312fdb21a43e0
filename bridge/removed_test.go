package bridge

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/internal/jobs"
	"github.com/rsbridge/rsbridge/internal/teststores"
	"github.com/rsbridge/rsbridge/resourcesync/check"
)

// TestMovedArchives: a set that has archived a year is renamed. Each address of before leads
// to what is there now or tells that it is gone, what is published is valid, and all who
// follow the old address go on: our destinations, the reference client, who asks for a time
// that only the archives know.
func TestMovedArchives(t *testing.T) {
	w := newYear(t)
	for week := range 52 {
		w.now = w.now.Add(7 * 24 * time.Hour)
		w.edit(week)
		for _, job := range []string{"scan", "dump", "archive", "retain"} {
			w.run(job, "data")
		}
		if week == 12 {
			w.sync("early", SyncArgs{})
		}
		w.sync("copy", SyncArgs{})
	}
	half := w.start.Add(26*7*24*time.Hour + time.Hour)
	w.sync("then", SyncArgs{Until: half})
	before := w.triples("then")
	old := w.addresses("/data/capabilitylist.xml")
	w.valid("/.well-known/resourcesync")

	set := w.cfg.Sets["data"]
	w.cfg.Sets["books"] = set
	delete(w.cfg.Sets, "data")
	w.reopen()
	if err := w.b.Do(t.Context(), "move-set", "data", MoveArgs{To: "books"}, &MovedSet{}); err != nil {
		t.Fatal(err)
	}
	<-w.b.Reopen()
	w.reopen()
	w.now = w.now.Add(time.Hour)
	w.run("scan", "books")

	w.lead(old)
	for _, from := range []string{"/.well-known/resourcesync", "/data/capabilitylist.xml", "/books/capabilitylist.xml"} {
		w.valid(from)
	}
	w.addresses("/data/capabilitylist.xml")
	for _, name := range []string{"copy", "early", "fresh"} {
		w.sync(name, SyncArgs{})
		w.equal(name)
	}
	w.sync("then", SyncArgs{Until: half})
	if after := w.triples("then"); after != before {
		t.Errorf("at %v the set held\n%s\nand after it was renamed\n%s", half, before, after)
	}
	w.edit(100)
	w.now = w.now.Add(time.Hour)
	for _, job := range []string{"scan", "dump", "archive", "retain"} {
		w.run(job, "books")
	}
	w.valid("/.well-known/resourcesync")
	for _, name := range []string{"copy", "early", "fresh", "then"} {
		w.sync(name, SyncArgs{})
		w.equal(name)
	}
	w.reference()
}

// year is a set with archives, and mirrors of it by its first address.
type year struct {
	t          *testing.T
	cfg        *Config
	b          *Bridge
	site       *httptest.Server
	public     atomic.Pointer[http.Handler]
	start, now time.Time
	values     map[int]string
}

func newYear(t *testing.T) *year {
	w := &year{t: t, start: time.Date(2025, 3, 1, 8, 0, 0, 0, time.UTC), values: map[int]string{}}
	w.now = w.start
	w.site = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { (*w.public.Load()).ServeHTTP(rw, r) }))
	t.Cleanup(w.site.Close)
	dir := t.TempDir()
	w.cfg = small(dir)
	w.cfg.Public.BaseURL = w.site.URL
	set := w.cfg.Sets["data"]
	set.Prefix, set.Schedule = "http://e.example/", ""
	set.Publish = []string{"resourcelist", "changelist", "resourcedump", "changedump"}
	set.ResourceDump.Schedule, set.Archives.Schedule, set.Retention.Versions = "@daily", "@weekly", Duration(2*365*24*time.Hour)
	w.cfg.Sets["data"] = set
	clear(w.cfg.Destinations)
	for _, name := range []string{"copy", "early", "fresh", "then"} {
		s := NewStore()
		s.Embedded = filepath.Join(dir, name)
		w.cfg.Stores[name] = s
		d := NewDestination()
		d.Source, d.Store, d.Schedule, d.Audit.Schedule, d.MaxDeleteRatio = w.site.URL+"/data/capabilitylist.xml", name, "", "", 1
		w.cfg.Destinations[name] = d
	}
	w.reopen()
	t.Cleanup(func() { w.b.Close() })
	return w
}

func (w *year) reopen() {
	w.t.Helper()
	if w.b != nil {
		if err := w.b.Close(); err != nil {
			w.t.Fatal(err)
		}
	}
	b, err := Open(w.t.Context(), w.cfg, Options{Now: func() time.Time { return w.now }})
	if err != nil {
		w.t.Fatal(err)
	}
	h := b.PublicHandler()
	w.public.Store(&h)
	w.b = b
}

// edit creates, changes and removes some entities.
func (w *year) edit(n int) {
	w.t.Helper()
	for i := range 3 {
		w.values[n+i] = fmt.Sprintf("%d of %d", i, n)
	}
	delete(w.values, n-5)
	fill(w.t, w.b, "source", w.text())
}

func (w *year) text() string {
	var lines []string
	for i, v := range w.values {
		lines = append(lines, fmt.Sprintf("<http://e.example/%d> <http://e.example/p> %q .\n", i, v))
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}

func (w *year) run(job, set string) {
	w.t.Helper()
	run, _, err := w.b.runner.Start(job+":"+set, "command", nil)
	if err == nil {
		run, err = w.b.runner.Wait(w.t.Context(), run.ID)
	}
	if err != nil || run.State != jobs.Done {
		w.t.Fatalf("%s: %s %s %v", job, run.State, run.Error, err)
	}
}

func (w *year) sync(name string, args SyncArgs) {
	w.t.Helper()
	var rep SyncReport
	if err := w.b.Do(w.t.Context(), "sync", name, args, &rep); err != nil || !rep.InSync && args.Until.IsZero() || rep.Failed+rep.Pending > 0 {
		w.t.Fatalf("sync %s: %+v %v", name, rep, err)
	}
}

func (w *year) triples(store string) string {
	w.t.Helper()
	req := httptest.NewRequest(http.MethodGet, "/data?default", nil)
	req.Header.Set("Accept", "application/n-triples")
	rec := httptest.NewRecorder()
	w.b.StoreHandler(store).ServeHTTP(rec, req)
	return strings.Join(slices.Sorted(strings.Lines(rec.Body.String())), "")
}

func (w *year) equal(store string) {
	w.t.Helper()
	if got, want := w.triples(store), w.text(); got != want {
		w.t.Fatalf("%s holds\n%s\nand the set\n%s", store, got, want)
	}
}

// valid lets our validator follow every link.
func (w *year) valid(from string) {
	w.t.Helper()
	checker := check.NewChecker(check.CheckerOptions{Fetch: w.fetch, Now: w.now.Add(time.Hour), Sample: 20, TempDir: w.t.TempDir()})
	reports, err := checker.Check(w.t.Context(), w.site.URL+from)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, r := range reports {
		for _, f := range r.Findings {
			if f.Severity != check.SeverityInfo {
				w.t.Errorf("from %s: %s: %s", from, r.Location, f)
			}
		}
	}
}

// addresses explores, and names all that is found.
func (w *year) addresses(from string) (all []string) {
	w.t.Helper()
	root, err := check.Explore(w.t.Context(), w.site.URL+from, check.ExploreOptions{Fetch: w.fetch, Depth: -1})
	if err != nil {
		w.t.Fatal(err)
	}
	var walk func(n *check.Node)
	walk = func(n *check.Node) {
		all = append(all, n.Location)
		if len(n.Faults)+len(n.Warnings) > 0 || n.Skipped > 0 {
			w.t.Errorf("from %s: %s: %v %v, %d not read", from, n.Location, n.Faults, n.Warnings, n.Skipped)
		}
		for _, c := range n.Children {
			walk(c)
		}
	}
	walk(root)
	if len(all) < 100 {
		w.t.Errorf("from %s there are %d documents only", from, len(all))
	}
	return all
}

func (w *year) fetch(ctx context.Context, url string) (*check.Fetched, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	res, err := w.site.Client().Do(req)
	if err != nil {
		return nil, err
	}
	return &check.Fetched{URL: res.Request.URL.String(), Status: res.StatusCode, ContentType: res.Header.Get("Content-Type"), ContentEncoding: res.Header.Get("Content-Encoding"), ContentLength: res.ContentLength,
		LastModified: res.Header.Get("Last-Modified"), Links: res.Header.Values("Link"), Body: res.Body}, nil
}

// lead: each address of before is redirected to an address of the new name, which is there or
// gone. The archives are there.
func (w *year) lead(old []string) {
	w.t.Helper()
	client := *w.site.Client()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	codes := map[string]int{}
	for _, at := range old {
		if !strings.HasPrefix(at, w.site.URL+"/data/") {
			continue
		}
		res, err := client.Get(at)
		if err != nil {
			w.t.Fatal(err)
		}
		res.Body.Close()
		if want := strings.Replace(at, "/data/", "/books/", 1); res.StatusCode != http.StatusMovedPermanently || res.Header.Get("Location") != want {
			w.t.Errorf("%s: %d, to %q, want %q", at, res.StatusCode, res.Header.Get("Location"), want)
			continue
		}
		if res, err = client.Get(res.Header.Get("Location")); err != nil {
			w.t.Fatal(err)
		}
		res.Body.Close()
		codes[res.Status]++
		if strings.HasSuffix(at, "/changedump.xml") {
			continue // there is one when the first Change List is closed
		}
		if archived := strings.Contains(at, "/archives/"); res.StatusCode != http.StatusOK && (archived || res.StatusCode != http.StatusGone) {
			w.t.Errorf("%s, by its new name: %s", at, res.Status)
		}
	}
	w.t.Logf("of %d addresses, by their new name: %v", len(old), codes)
}

// reference lets the reference client follow the old address.
func (w *year) reference() {
	w.t.Helper()
	w.t.Run("reference client", func(t *testing.T) {
		client, inSync := w.resync(t, "books")
		client("--baseline")
		inSync()
		w.now = w.now.Add(time.Hour)
		w.edit(200)
		w.run("scan", "books")
		client("--incremental", "--changelist-uri", w.site.URL+"/data/changelist.xml")
		inSync()
	})
}

// resync is the reference client with a copy of the set at its first address, and what tells
// that the copy is whole. The set is called name now.
func (w *year) resync(t *testing.T, name string) (client func(mode string, more ...string), inSync func()) {
	sync, dir := filepath.Join(filepath.Dir(teststores.Python(t)), "resync-sync"), t.TempDir()
	work := t.TempDir() // where the client keeps how far it is
	run := func(mode string, more ...string) string {
		t.Helper()
		args := append([]string{mode, "--sitemap", w.site.URL + "/data/resourcelist.xml", "--delete", "-v"}, more...)
		cmd := exec.CommandContext(t.Context(), sync, append(args, w.site.URL+"/"+name+"/="+dir)...)
		cmd.Dir = work
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("resync-sync %s: %v\n%s", mode, err, out)
		}
		return string(out)
	}
	client = func(mode string, more ...string) { t.Helper(); run(mode, more...) }
	inSync = func() {
		t.Helper()
		if out := run("--audit"); !strings.Contains(out, "IN SYNC") || strings.Contains(out, "NOT IN SYNC") {
			t.Fatalf("resync-sync --audit: %s", out)
		}
		files, err := os.ReadDir(filepath.Join(dir, "r"))
		if err != nil || len(files) != len(w.values) {
			t.Errorf("%d files of %d resources (%v)", len(files), len(w.values), err)
		}
	}
	return client, inSync
}

// TestReferenceClientOvernight: the reference client goes on with -i over the days. Where lists
// are closed by age, changelist.xml becomes an index, which it cannot read, and the open list
// has an address of its own; where they are not, changelist.xml stays one list.
func TestReferenceClientOvernight(t *testing.T) {
	for _, tc := range []struct {
		name, list string
		publish    []string
		index      bool
	}{
		{"closed by age", "/data/changelist-open.xml", []string{"resourcelist", "changelist", "resourcedump", "changedump"}, true},
		{"one list", "/data/changelist.xml", []string{"resourcelist", "changelist"}, false},
	} {
		if teststores.Unraced(t, 3) {
			continue
		}
		t.Run(tc.name, func(t *testing.T) {
			w := newYear(t)
			set := w.cfg.Sets["data"]
			set.Publish, set.Archives.Schedule = tc.publish, ""
			w.cfg.Sets["data"] = set
			w.reopen()
			w.edit(0)
			w.run("scan", "data")
			client, inSync := w.resync(t, "data")
			client("--baseline")
			inSync()
			for i := range 9 { // 54 hours
				w.now = w.now.Add(6 * time.Hour)
				w.edit(i + 1)
				w.run("scan", "data")
				if i%2 == 0 {
					client("--incremental", "--changelist-uri", w.site.URL+tc.list)
					inSync()
				}
			}
			res, err := w.site.Client().Get(w.site.URL + "/data/changelist.xml")
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			doc, err := io.ReadAll(res.Body)
			if err != nil || strings.Contains(string(doc), "<sitemapindex") != tc.index {
				t.Errorf("changelist.xml: %v %.400s", err, doc)
			}
		})
	}
}
