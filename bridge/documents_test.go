package bridge_test

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/bridge"
	"github.com/rsbridge/rsbridge/internal/simulate"
	"github.com/rsbridge/rsbridge/internal/teststores"
	"github.com/rsbridge/rsbridge/resourcesync"
	"github.com/rsbridge/rsbridge/resourcesync/check"
)

// published is a source in this process: its answers are had without a network,
// and every document that it ever answered with is kept in a folder.
type published struct {
	t     *testing.T
	b     *bridge.Bridge
	store side
	dir   string

	mu    sync.Mutex // guards what follows
	now   time.Time
	kinds map[string]int // capability, "-index" after it for an index: documents
}

// publish opens a source over an embedded store, with the sets that sets enters.
func publish(t *testing.T, sets func(cfg *bridge.Config, graph string)) *published {
	t.Helper()
	p := &published{t: t, dir: t.TempDir(), now: time.Date(2026, 3, 1, 9, 30, 0, 0, time.UTC), kinds: map[string]int{}}
	p.store = embedded(t, "source")
	cfg := bridge.NewConfig()
	cfg.State = filepath.Join(t.TempDir(), "state")
	cfg.Public, cfg.Admin.Listen = bridge.Public{BaseURL: "http://bridge.example"}, ""
	cfg.Stores["source"] = p.store.store
	sets(cfg, p.store.graph)
	var err error
	if p.b, err = bridge.Open(t.Context(), cfg, bridge.Options{Now: p.clock}); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *published) close() {
	if err := p.b.Close(); err != nil {
		p.t.Error(err)
	}
}

// check lets our validator follow every link of the source: there is no error and no
// warning. fetch is p.fetch, or calls it.
func (p *published) check(step any, fetch func(context.Context, string) (*check.Fetched, error)) {
	p.t.Helper()
	checker := check.NewChecker(check.CheckerOptions{Fetch: fetch, Now: p.clock().Add(10000 * time.Hour), Sample: 20, TempDir: p.t.TempDir()})
	reports, err := checker.Check(p.t.Context(), "http://bridge.example/.well-known/resourcesync")
	if err != nil {
		p.t.Fatal(err)
	}
	for _, r := range reports {
		for _, f := range r.Findings {
			if f.Severity != check.SeverityInfo {
				p.t.Errorf("%v: %s: %s", step, r.Location, f)
			}
		}
	}
}

// read lets others read every document that there was, of which some were of kinds.
func (p *published) read(kinds string) {
	p.t.Helper()
	if p.t.Failed() {
		return
	}
	for _, kind := range strings.Fields(kinds) {
		if p.kinds[kind] == 0 {
			p.t.Errorf("no document was a %s: %v", kind, p.kinds)
		}
	}
	p.t.Logf("documents: %v", p.kinds)
	n := 0
	for _, x := range p.kinds {
		n += x
	}
	if read := teststores.Documents(p.t, p.dir); read != n {
		p.t.Errorf("%d documents were read of %d", read, n)
	}
}

func (p *published) clock() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.now
}

func (p *published) wait(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now = p.now.Add(d)
}

// keep puts a document into the folder, under its digest.
func (p *published) keep(data []byte) {
	sum := sha256.Sum256(data)
	file := filepath.Join(p.dir, hex.EncodeToString(sum[:12])+".xml")
	if _, err := os.Stat(file); err == nil {
		return
	}
	head, _, err := check.Validate(bytes.NewReader(data), check.ValidateOptions{})
	if err != nil {
		p.t.Errorf("a document cannot be read: %v", err)
		return
	}
	kind := string(head.Meta.Capability)
	if head.Index {
		kind += "-index"
	}
	p.mu.Lock()
	p.kinds[kind]++
	p.mu.Unlock()
	if err := os.WriteFile(file, data, 0o600); err != nil {
		p.t.Error(err)
	}
}

func (p *published) fetch(ctx context.Context, url string) (*check.Fetched, error) {
	rec := httptest.NewRecorder()
	p.b.PublicHandler().ServeHTTP(rec, httptest.NewRequestWithContext(ctx, http.MethodGet, url, nil))
	h, data := rec.Header(), rec.Body.Bytes()
	if rec.Code == http.StatusOK {
		switch h.Get("Content-Type") {
		case "application/xml":
			if notification := strings.Contains(url, "/notify/"); len(data) > 0 || !notification { // a topic without a notification yet is empty (Change Notification 4.1)
				p.keep(data)
			}
		case "application/zip":
			z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
			if err != nil {
				return nil, err
			}
			f, err := z.Open(resourcesync.ManifestName)
			if err != nil {
				return nil, err
			}
			manifest, err := io.ReadAll(f)
			if err != nil {
				return nil, err
			}
			p.keep(manifest)
		}
	}
	return &check.Fetched{URL: h.Get("Location"), Status: rec.Code, ContentType: h.Get("Content-Type"), ContentLength: int64(len(data)),
		LastModified: h.Get("Last-Modified"), Links: h.Values("Link"), Body: io.NopCloser(bytes.NewReader(data))}, nil
}

// job runs a job to its end.
func (p *published) job(name string) {
	p.t.Helper()
	run, _, err := p.b.Runner().Start(name, "test", nil)
	if err == nil {
		run, err = p.b.Runner().Wait(p.t.Context(), run.ID)
	}
	if err != nil || run.Error != "" {
		p.t.Fatalf("%s: %v %s", name, err, run.Error)
	}
}

// TestDocuments: a source that offers all there is, through the history of
// schema.org with deletions and returns, with archives, dumps and retention. Our
// validator, which follows every link, finds no error and no warning at any step;
// the XML Schemas take every document that there was, and the reference library
// reads each. RSBRIDGE_DOCUMENTS makes it that many made entities instead, of which
// an eighth changes, some go, come again, or come first (make campaign).
func TestDocuments(t *testing.T) {
	if s := os.Getenv("RSBRIDGE_DOCUMENTS"); s != "" {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		documents(t, 5000, 5, made(n))
		return
	}
	if testing.Short() {
		documents(t, 100, 2, made(250))
		return
	}
	releases := []string{"12.0", "14.0", "15.0", "12.0", "15.0"}
	documents(t, 600, len(releases), func(step int) []byte {
		return unzipped(t, teststores.Shared(t, "data/schemaorg/"+releases[step]+".nt.gz"))
	})
}

// made is a state of n entities at each step.
func made(n int64) func(step int) []byte {
	w := simulate.World{Seed: 7}
	return func(step int) []byte {
		var b []byte
		for i := range n + n/10 {
			v := int64(0)
			if i%8 == int64(step) {
				v = int64(step)
			}
			if there := i < n && i%30 != int64(step) || i >= n && step > 1; there {
				for _, triple := range w.Entity(i, v, n) {
					b = triple.AppendLine(b)
				}
			}
		}
		return b
	}
}

func documents(t *testing.T, lot, steps int, state func(step int) []byte) {
	p := publish(t, func(cfg *bridge.Config, graph string) {
		all := bridge.NewSet()
		all.Store, all.Graphs, all.Schedule, all.Prefix, all.MaxDeleteRatio = "source", []string{graph}, "", "https://schema.org/", 1
		all.Publish = []string{"resourcelist", "changelist", "resourcedump", "changedump"}
		all.ResourceList.PartEntries, all.ChangeList.Entries, all.ChangeDump.Patches = lot, lot, true
		all.Archives.Schedule = "@daily"
		all.Retention = bridge.Retention{Changes: bridge.Duration(50 * time.Hour), Versions: bridge.Duration(50 * time.Hour), Archives: bridge.Duration(1000 * time.Hour)}
		all.Collection, all.Collections = "https://schema.org/", []string{"http://schema.org/isPartOf", "https://schema.org/isPartOf"}
		all.Links = []string{"related https://search.example/?q={entity_escaped} text/html"}
		all.Hashes = []string{"md5"}
		cfg.Sets["data"] = all
		other := bridge.NewSet()
		other.Store, other.Graphs, other.Schedule, other.MaxDeleteRatio, other.Format = "source", []string{graph}, "", 1, "ntriples"
		other.Publish = []string{"resourcelist", "changelist", "changedump"}
		other.Collection = "https://repository.example/oai?verb=ListRecords&metadataPrefix=oai_dc&set=vocabulary" // an OAI-PMH set
		other.ResourceList.Schedule, other.ChangeDump.Schedule = "@daily", "@hourly"
		cfg.Sets["other"] = other
	})
	defer p.close()
	for i := range steps {
		p.wait(25 * time.Hour)
		p.store.put(t, p.b, "application/n-triples", state(i))
		for _, job := range []string{"scan:data", "dump:data", "archive:data", "scan:other", "list:other", "changedump:other"} {
			p.job(job)
		}
		p.check(i, p.fetch)
	}
	want := "description capabilitylist resourcelist-index resourcelist resourcedump resourcedump-manifest changelist"
	if steps > 3 {
		want += " changelist-index changedump changedump-manifest resourcelist-archive resourcedump-archive changelist-archive changedump-archive"
	}
	p.read(want)
}
