package bridge

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/content"
	"github.com/rsbridge/rsbridge/internal/teststores"
	"github.com/rsbridge/rsbridge/resourcesync"
	"github.com/rsbridge/rsbridge/resourcesync/check"
	"github.com/rsbridge/rsbridge/resourcesync/staticsite"
)

// repository is a real server of files that change, vanish and misbehave.
type repository struct {
	*httptest.Server
	mu    sync.Mutex
	files map[string]*repositoryFile
	asked map[string]int // METHOD PATH
}

type repositoryFile struct {
	body, mediaType, etag, modified string
	status                          int    // instead of the file
	redirect                        string // likewise
}

func newRepository(t *testing.T) *repository {
	r := &repository{files: map[string]*repositoryFile{}, asked: map[string]int{}}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

func (r *repository) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked[req.Method+" "+req.URL.Path]++
	f := r.files[req.URL.Path]
	switch {
	case f == nil:
		http.NotFound(w, req)
		return
	case f.redirect != "":
		http.Redirect(w, req, f.redirect, http.StatusFound)
		return
	case f.status != 0:
		w.WriteHeader(f.status)
		return
	}
	h := w.Header()
	h.Set("Content-Type", f.mediaType)
	if f.modified != "" {
		h.Set("Last-Modified", f.modified)
	}
	if f.etag != "" {
		h.Set("Etag", f.etag)
		if req.Header.Get("If-None-Match") == f.etag {
			w.WriteHeader(http.StatusNotModified)
			r.asked["304 "+req.URL.Path]++
			return
		}
	}
	h.Set("Content-Length", fmt.Sprint(len(f.body)))
	if req.Method != http.MethodHead {
		_, _ = w.Write([]byte(f.body))
	}
}

func (r *repository) put(path string, f repositoryFile) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.files[path] = &f
}

func (r *repository) drop(path string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.files, path)
}

func (r *repository) count(what string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.asked[what]
}

const contentURL = "http://schema.org/contentUrl"

// TestContent: files that descriptions lead to are resources of the set, followed
// as they change, and the documents that tell of them are valid and followed by a
// destination to its end.
func TestContent(t *testing.T) {
	for _, hash := range []bool{true, false} {
		if teststores.Unraced(t, 3) {
			continue
		}
		t.Run(fmt.Sprint("hash=", hash), func(t *testing.T) {
			t.Parallel()
			testContent(t, hash)
		})
	}
}

func testContent(t *testing.T, hash bool) {
	repo := newRepository(t)
	forbidden := newRepository(t)
	forbidden.put("/secret", repositoryFile{body: "secret", mediaType: "text/plain"})
	old := "Mon, 02 Mar 2026 10:00:00 GMT"
	repo.put("/a.pdf", repositoryFile{body: "%PDF a", mediaType: "application/pdf", etag: `"a1"`, modified: old})
	repo.put("/b.png", repositoryFile{body: "PNG b", mediaType: "image/png; x=y", etag: `W/"b1"`})
	repo.put("/d.docx", repositoryFile{body: "docx", mediaType: "application/vnd.openxmlformats-officedocument.wordprocessingml.document", etag: `"d1"`})
	repo.put("/data.ttl", repositoryFile{body: "<http://evil.example/x> <http://evil.example/p> \"not of the set\" .", mediaType: "text/turtle", etag: `"t1"`})
	repo.put("/away", repositoryFile{redirect: forbidden.URL + "/secret"})
	repo.put("/broken", repositoryFile{status: 500})

	dir := t.TempDir()
	cfg := small(dir)
	cfg.Public.BaseURL = "http://source.invalid"
	set := cfg.Sets["data"]
	set.Publish = []string{"resourcelist", "changelist", "resourcedump", "changedump"}
	set.ChangeList.Entries, set.Archives.Schedule = 4, "@yearly"
	set.Content.Properties = []string{contentURL, "http://example.org/file"}
	set.Content.Allow = []string{strings.TrimPrefix(repo.URL, "http://")}
	set.Content.Every, set.Content.Rate, set.Content.Hash = 1, 100000, hash
	cfg.Sets["data"] = set
	keeps := NewStore()
	keeps.Files = filepath.Join(dir, "files")
	cfg.Stores["files"] = keeps
	d := cfg.Destinations["copy"]
	d.Store, d.Allow = "files", []string{repo.URL}
	cfg.Destinations["kept"] = d
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	b := mustOpen(t, cfg)
	defer func() { b.Close() }()

	graph := map[string]string{}
	leads := func(entity, url string) {
		graph[entity+url] = fmt.Sprintf("<http://e.example/%s> <http://schema.org/name> \"%s\" .\n<http://e.example/%s> <%s> <%s> .\n", entity, entity, entity, contentURL, url)
	}
	load := func() {
		t.Helper()
		all := ""
		for _, s := range graph {
			all += s
		}
		fill(t, b, "source", all+"<http://e.example/none> <http://schema.org/name> \"without\" .\n")
	}
	leads("a", repo.URL+"/a.pdf")
	leads("b", repo.URL+"/b.png")
	leads("b2", repo.URL+"/b.png#page=2")
	leads("c", "http://127.0.0.1:1/c.pdf") // a host that is not allowed
	leads("d", repo.URL+"/d.docx")
	leads("away", repo.URL+"/away")
	leads("broken", repo.URL+"/broken")
	leads("missing", repo.URL+"/missing")
	graph["blank"] = "<http://e.example/t> <http://schema.org/encoding> _:m .\n_:m <http://example.org/file> \"" + repo.URL + "/data.ttl\" .\n"
	load()

	check := func(files content.Report) {
		t.Helper()
		rep := do[ScanReport](t, b, "scan", "data")
		if rep.Files == nil {
			t.Fatal("the report says nothing of files")
		}
		got := *rep.Files
		got.Troubles, got.Looked, got.Time = nil, 0, files.Time
		if g, w := fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", files); g != w {
			t.Fatalf("files: %s\nwant   %s\n%+v", g, w, rep.Files.Troubles)
		}
		st, err := b.SetStatus(t.Context(), "data")
		if err != nil || st.Files == nil || st.Files.Resources != files.Resources {
			t.Fatalf("status: %+v %v", st.Files, err)
		}
		if err := b.Log("data").Check(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	synced := func(depths ...string) {
		t.Helper()
		if depths == nil {
			depths = []string{"inventory", "store", "origin"}
		}
		for _, name := range []string{"copy", "kept"} {
			rep := do[SyncReport](t, b, "sync", name)
			if !rep.InSync || rep.Failed+rep.Pending > 0 {
				t.Fatalf("%s: %+v", name, rep)
			}
			for _, depth := range depths {
				audit := AuditReport{}
				if err := b.Do(t.Context(), "audit", name, AuditArgs{Depth: depth}, &audit); err != nil || !audit.Equal {
					t.Fatalf("%s, depth %s: %+v %v", name, depth, audit, err)
				}
			}
		}
	}
	check(content.Report{Led: 8, Resources: 4, Elsewhere: 1, Missing: 1, Failing: 2, Created: 4})
	if forbidden.count("HEAD /secret")+forbidden.count("GET /secret") > 0 {
		t.Fatal("a redirect to a host that is not allowed was followed")
	}
	validate(t, b)
	e := entryOf(t, b, repo.URL+"/b.png")
	if len(e.Links) != 2 || e.Links[0].Rel != "describedby" || !strings.HasPrefix(e.Links[0].Href, "http://source.invalid/data/r/") || e.Meta.Type != "image/png" || e.Meta.Length != 5 || (e.Meta.Hash.SHA256 != "") != hash {
		t.Fatalf("entry of the image: %+v", e)
	}
	if e := entryOf(t, b, repo.URL+"/a.pdf"); resourcesync.FormatTime(e.LastMod) != "2026-03-02T10:00:00Z" || e.Meta.Type != "application/pdf" {
		t.Fatalf("entry of the PDF: %+v", e)
	}
	if e := entryOf(t, b, repo.URL+"/d.docx"); e.Meta.Type != "" || e.Meta.Ext[resourcesync.ExtType] == "" {
		t.Fatalf("entry of the document: %+v", e)
	}
	loc, err := b.Location(t.Context(), "data", "http://e.example/c")
	if err != nil {
		t.Fatal(err)
	}
	if e := entryOf(t, b, loc); len(describes(e)) != 2 || describes(e)[1] != "http://127.0.0.1:1/c.pdf" || e.Meta.Ext[resourcesync.ExtEntity] != "http://e.example/c" {
		t.Fatalf("entry of a description: %+v", e)
	}
	synced()
	kept := func(path string) string {
		t.Helper()
		matches, _ := filepath.Glob(filepath.Join(keeps.Files, "127.0.0.1_*", path))
		if len(matches) != 1 {
			return ""
		}
		raw, err := os.ReadFile(matches[0])
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	if kept("a.pdf") != "%PDF a" {
		t.Fatalf("the folder has %q", kept("a.pdf"))
	}

	// Nothing changes: conditional requests, and no change in the log.
	before, _ := b.Log("data").Head()
	check(content.Report{Led: 8, Resources: 4, Elsewhere: 1, Missing: 1, Failing: 2})
	if after, _ := b.Log("data").Head(); after != before {
		t.Fatalf("the log went from %d to %d", before, after)
	}
	if n := repo.count("304 /a.pdf"); n != 1 {
		t.Fatalf("%d conditional requests were answered, want 1", n)
	}

	// One changes, one vanishes, one that failed comes, one is led to no more.
	repo.put("/a.pdf", repositoryFile{body: "%PDF a, again", mediaType: "application/pdf", etag: `"a2"`, modified: "Tue, 03 Mar 2026 10:00:00 GMT"})
	repo.drop("/b.png")
	repo.put("/broken", repositoryFile{body: "whole", mediaType: "text/plain"})
	delete(graph, "d"+repo.URL+"/d.docx")
	load()
	check(content.Report{Led: 7, Resources: 4, Elsewhere: 1, Missing: 2, Failing: 1, Created: 1, Updated: 1})
	synced("inventory", "store")                                                                  // at its own place the image is not there any more
	check(content.Report{Led: 7, Resources: 3, Elsewhere: 1, Missing: 2, Failing: 1, Deleted: 1}) // the second look
	synced()
	validate(t, b)
	if kept("a.pdf") != "%PDF a, again" || kept("b.png") != "" || kept("d.docx") != "" || kept("broken") != "whole" {
		t.Fatal("the folder of the mirror is not what the source has")
	}
	// Gone for sure, and back.
	repo.put("/a.pdf", repositoryFile{status: 410})
	check(content.Report{Led: 7, Resources: 2, Elsewhere: 1, Missing: 3, Failing: 1, Deleted: 1})
	repo.put("/a.pdf", repositoryFile{body: "%PDF b", mediaType: "application/pdf", etag: `"a3"`})
	check(content.Report{Led: 7, Resources: 3, Elsewhere: 1, Missing: 2, Failing: 1, Created: 1})
	// Another description leads to it: its entry says so, nothing else is told.
	leads("e", repo.URL+"/a.pdf")
	load()
	check(content.Report{Led: 7, Resources: 3, Elsewhere: 1, Missing: 2, Failing: 1})
	if e := entryOf(t, b, repo.URL+"/a.pdf"); len(e.Links) != 2 {
		t.Fatalf("two descriptions lead to it: %+v", e)
	}
	synced()
	validate(t, b)

	// What a person sees.
	data, _, err := b.Describe(t.Context(), "data", repo.URL+"/a.pdf", time.Time{}, "")
	var line FileLine
	if err == nil {
		err = json.Unmarshal(data, &line)
	}
	if err != nil || !line.Listed || line.Type != "application/pdf" || len(line.DescribedBy) != 2 {
		t.Fatalf("%s %v", data, err)
	}
	changes, err := b.Changes(t.Context(), "data", fmt.Sprint(before), 100)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, c := range changes.Changes {
		if c.Kind == "file" {
			n++
			if c.Entity != "" || c.Location == "" || c.Change == "created" && c.After == nil {
				t.Errorf("%+v", c)
			}
		}
	}
	if n != 6 {
		t.Errorf("%d changes of files, want 6", n)
	}

	// A new mirror takes the dump, and the files from the list.
	if err := b.pub.Dump(t.Context(), "data"); err != nil {
		t.Fatal(err)
	}
	if err := b.pub.Archive(t.Context(), "data"); err != nil {
		t.Fatal(err)
	}
	validate(t, b)
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	fresh := NewStore()
	fresh.Embedded = filepath.Join(dir, "fresh")
	cfg.Stores["fresh"] = fresh
	d = cfg.Destinations["copy"]
	d.Store = "fresh"
	cfg.Destinations["new"] = d
	b = mustOpen(t, cfg)
	rep := do[SyncReport](t, b, "sync", "new")
	if !rep.InSync || !strings.Contains(rep.Why, "Resource Dump") || !strings.Contains(rep.Why, "leaves out 3 files") || rep.NotRDF != 3 {
		t.Fatalf("%+v", rep)
	}
	if audit := do[AuditReport](t, b, "audit", "new"); !audit.Equal {
		t.Fatalf("%+v", audit)
	}

	t.Run("others", func(t *testing.T) { othersRead(t, b) })
	// As files of their own, the set still lists what stays elsewhere.
	out := filepath.Join(dir, "site")
	if _, err := staticsite.Write(t.Context(), staticsite.Options{Set: "data", BaseURL: cfg.Public.BaseURL, Transport: b.transport(), Dir: out}); err != nil {
		t.Fatal(err)
	}
	if raw, err := os.ReadFile(filepath.Join(out, "data", "resourcelist.xml")); err != nil || !strings.Contains(string(raw), repo.URL+"/a.pdf") {
		t.Fatalf("%v\n%s", err, raw)
	}

	// At other addresses of the descriptions the files are where they were.
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	set.Prefix = "http://e.example/"
	cfg.Sets["data"] = set
	b = mustOpen(t, cfg)
	do[RebaseReport](t, b, "rebase", "data")
	if e := entryOf(t, b, repo.URL+"/a.pdf"); len(e.Links) != 2 || !strings.HasPrefix(e.Links[0].Href, "http://source.invalid/data/r/") || strings.Contains(e.Links[0].Href, "e.example") {
		t.Fatalf("%+v", e)
	}
	synced()
	validate(t, b)
	// What retention leaves of the log is enough.
	if _, err := b.Log("data").Retain(t.Context(), time.Now(), time.Now()); err != nil {
		t.Fatal(err)
	}
	if err := b.Log("data").Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	check(content.Report{Led: 7, Resources: 3, Elsewhere: 1, Missing: 2, Failing: 1})
	synced()

	// Without the setting they go.
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	set.Content.Properties, set.Content.Allow, set.Content.Hash = nil, nil, false
	cfg.Sets["data"] = set
	b = mustOpen(t, cfg)
	if rep := do[ScanReport](t, b, "scan", "data"); rep.Files != nil {
		t.Fatalf("%+v", rep.Files)
	}
	if err := b.Log("data").Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	synced()
	if kept("a.pdf") != "" {
		t.Fatal("the mirror keeps a file that the source does not list")
	}
	validate(t, b)
}

func describes(e resourcesync.Entry) (out []string) {
	for _, l := range e.Links {
		if l.Rel == resourcesync.RelDescribes {
			out = append(out, l.Href)
		}
	}
	return out
}

// entryOf finds an entry in the Resource List.
func entryOf(t *testing.T, b *Bridge, loc string) resourcesync.Entry {
	t.Helper()
	return entryIn(t, b, "data", loc)
}

func entryIn(t *testing.T, b *Bridge, set, loc string) resourcesync.Entry {
	t.Helper()
	rec := httptest.NewRecorder()
	b.PublicHandler().ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/"+set+"/resourcelist.xml", nil))
	r, err := resourcesync.NewReader(rec.Body, resourcesync.ReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for {
		e, err := r.Next()
		if err != nil {
			t.Fatalf("%s is not in the list: %v", loc, err)
		}
		if e.Loc == loc {
			return *e
		}
	}
}

// validate holds every document of the source to the rules.
func validate(t *testing.T, b *Bridge) {
	t.Helper()
	c := check.NewChecker(check.CheckerOptions{Sample: 100, Now: time.Now(), TempDir: t.TempDir(), Fetch: func(ctx context.Context, url string) (*check.Fetched, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return nil, err
		}
		res, err := b.transport().RoundTrip(req)
		if err != nil {
			return nil, err
		}
		return &check.Fetched{Status: res.StatusCode, ContentType: res.Header.Get("Content-Type"), ContentLength: res.ContentLength, LastModified: res.Header.Get("Last-Modified"), Links: res.Header.Values("Link"), Body: res.Body}, nil
	}})
	reports, err := c.Check(t.Context(), b.cfg.Public.BaseURL+"/.well-known/resourcesync")
	if err != nil {
		t.Fatal(err)
	}
	if len(reports) < 5 {
		t.Errorf("only %d documents were looked at", len(reports))
	}
	for _, r := range reports {
		for _, f := range r.Findings {
			if f.Severity != check.SeverityInfo {
				t.Errorf("%s: %+v", r.Location, f)
			}
		}
	}
}

// othersRead lets others read the documents with files.
func othersRead(t *testing.T, b *Bridge) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"resourcelist", "changelist", "changelist-000001", "resourcedump"} {
		rec := httptest.NewRecorder()
		b.PublicHandler().ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/data/"+name+".xml", nil))
		if rec.Code != http.StatusOK {
			t.Fatalf("%s: %d", name, rec.Code)
		}
		if err := os.WriteFile(filepath.Join(dir, name+".xml"), rec.Body.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if n := teststores.Documents(t, dir); n != 4 {
		t.Errorf("%d documents were read of 4", n)
	}
	out, err := exec.CommandContext(t.Context(), teststores.Python(t), "-c", `
import sys
from resync.resource_list import ResourceList
from resync.change_list import ChangeList
r = ResourceList(); r.parse(uri=sys.argv[1])
c = ChangeList(); c.parse(uri=sys.argv[2])
files = [x for x in r if x.describedby and not x.link_href('describes')]
print(len(files), all(x.mime_type or x.uri.endswith(".docx") for x in files), len([x for x in c if x.change]) > 0)
`, filepath.Join(dir, "resourcelist.xml"), filepath.Join(dir, "changelist-000001.xml")).CombinedOutput()
	if err != nil || strings.TrimSpace(string(out)) != "3 True True" {
		t.Errorf("resync reads the lists as: %s (%v)", out, err)
	}
}

// TestContentInDump: a Resource Dump holds the files as far as it may and they can
// be had, says how many it leaves out, and is valid; a mirror takes them from it.
func TestContentInDump(t *testing.T) {
	for _, hash := range []bool{false, true} {
		t.Run(fmt.Sprint("hash=", hash), func(t *testing.T) {
			repo := newRepository(t)
			repo.put("/a.pdf", repositoryFile{body: "%PDF a", mediaType: "application/pdf", etag: `"a1"`, modified: "Mon, 02 Mar 2026 10:00:00 GMT"})
			repo.put("/b", repositoryFile{body: "PNG b", mediaType: "image/png", etag: `W/"b1"`})
			repo.put("/long.txt", repositoryFile{body: strings.Repeat("long ", 200), mediaType: "text/plain", etag: `"l1"`})
			repo.put("/other.txt", repositoryFile{body: "as listed", mediaType: "text/plain", etag: `"o1"`})
			dir := t.TempDir()
			cfg := small(dir)
			set := cfg.Sets["data"]
			set.Content.Properties, set.Content.Allow = []string{contentURL}, []string{strings.TrimPrefix(repo.URL, "http://")}
			set.Content.Every, set.Content.Rate, set.Content.Hash, set.Content.DumpBytes = Duration(time.Hour), 100000, hash, 500
			cfg.Sets["data"] = set
			for _, name := range []string{"first", "second"} {
				s := NewStore()
				s.Files = filepath.Join(dir, name)
				cfg.Stores[name] = s
				d := NewDestination()
				d.Source, d.Store, d.Allow = cfg.Public.BaseURL, name, []string{repo.URL}
				cfg.Destinations[name] = d
			}
			b := mustOpen(t, cfg)
			defer func() { b.Close() }()
			graph := ""
			for _, path := range []string{"a.pdf", "b", "long.txt", "other.txt"} {
				graph += fmt.Sprintf("<http://e.example/%s> <%s> <%s/%s> .\n", path, contentURL, repo.URL, path)
			}
			fill(t, b, "source", graph)
			do[ScanReport](t, b, "scan", "data")
			dumped := func() string {
				t.Helper()
				if err := b.pub.Dump(t.Context(), "data"); err != nil {
					t.Fatal(err)
				}
				rec := httptest.NewRecorder()
				b.PublicHandler().ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/data/resourcedump.xml", nil))
				r, err := resourcesync.NewReader(rec.Body, resourcesync.ReaderOptions{})
				if err != nil {
					t.Fatal(err)
				}
				return r.Head().Meta.Ext[resourcesync.ExtFiles]
			}
			synced := func(name, why string, fetched int) {
				t.Helper()
				validate(t, b)
				gets := func() int {
					return repo.count("GET /a.pdf") + repo.count("GET /b") + repo.count("GET /long.txt") + repo.count("GET /other.txt")
				}
				before := gets()
				rep := do[SyncReport](t, b, "sync", name)
				if n := gets() - before; !rep.InSync || !strings.Contains(rep.Why, why) || strings.Contains(rep.Why, "leaves out") != strings.Contains(why, "leaves out") || n != fetched {
					t.Errorf("%s fetched %d files, want %d; %+v", name, n, fetched, rep)
				}
				if audit := do[AuditReport](t, b, "audit", name); !audit.Equal || audit.Resources != 8 {
					t.Errorf("%s: %+v", name, audit)
				}
				for path, body := range map[string]string{"a.pdf": "%PDF a", "b": "PNG b", "long.txt": strings.Repeat("long ", 200), "other.txt": "as listed"} {
					found, _ := filepath.Glob(filepath.Join(dir, name, "127.0.0.1_*", path))
					if len(found) != 1 {
						t.Errorf("%s has no file %s", name, path)
					} else if raw, err := os.ReadFile(found[0]); err != nil || string(raw) != body {
						t.Errorf("%s has %q as %s (%v)", name, raw, path, err)
					}
				}
			}
			// One is too long, and one is another one than was listed. That comes back.
			repo.put("/other.txt", repositoryFile{body: "not as listed", mediaType: "text/plain", etag: `"o2"`})
			if left := dumped(); left != "2" {
				t.Errorf("the dump leaves out %q files, want 2", left)
			}
			repo.put("/other.txt", repositoryFile{body: "as listed", mediaType: "text/plain", etag: `"o1"`})
			synced("first", "leaves out 2 files", 2)

			if err := b.Close(); err != nil {
				t.Fatal(err)
			}
			set.Content.DumpBytes = 1 << 20
			cfg.Sets["data"] = set
			b = mustOpen(t, cfg)
			fill(t, b, "source", graph+"<http://e.example/b> <http://schema.org/name> \"b\" .\n")
			do[ScanReport](t, b, "scan", "data")
			if left := dumped(); left != "" {
				t.Errorf("the dump leaves out %q files", left)
			}
			synced("second", "Resource Dump", 0)
		})
	}
}
