package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"sync"
	"time"

	"github.com/rsbridge/rsbridge/bridge"
	"github.com/rsbridge/rsbridge/internal/teststores"
	"github.com/rsbridge/rsbridge/rdfres"
)

const benchBase = "http://bench.example"

// source is a newly opened bridge with the data in its set: nothing of its documents is in memory,
// and it has no dump. The first call scans.
func (e *env) source(ctx context.Context) (*bridge.Bridge, error) {
	state := filepath.Join(e.dir, "source")
	if _, err := os.Stat(state); err == nil {
		return e.open(ctx, state, "resourcelist", "changelist")
	}
	b, err := e.open(ctx, state, "resourcelist", "changelist")
	if err != nil {
		return nil, err
	}
	fill := func() error {
		f, err := os.Open(e.triples)
		if err != nil {
			return err
		}
		defer f.Close()
		if _, err := b.LoadStore(ctx, "local", "", rdfres.NTriples, f, false); err != nil {
			return err
		}
		var rep bridge.ScanReport
		if err := b.Do(ctx, "scan", "data", nil, &rep); err != nil {
			return err
		}
		return e.unpack(b)
	}
	if err := errors.Join(fill(), b.Close()); err != nil {
		return nil, err
	}
	return e.open(ctx, state, "resourcelist", "changelist")
}

// dumping is the same on a copy of its state, and may dump.
func (e *env) dumping(ctx context.Context) (*bridge.Bridge, func() error, error) {
	b, err := e.source(ctx)
	if err == nil {
		err = b.Close()
	}
	if err != nil {
		return nil, nil, err
	}
	dir, err := os.MkdirTemp(e.dir, "dumping-")
	if err == nil {
		err = os.CopyFS(filepath.Join(dir, "state"), os.DirFS(filepath.Join(e.dir, "source")))
	}
	if err == nil {
		b, err = e.open(ctx, filepath.Join(dir, "state"), "resourcelist", "changelist", "resourcedump")
	}
	return b, func() error { return os.RemoveAll(dir) }, err
}

func (e *env) open(ctx context.Context, state string, publish ...string) (*bridge.Bridge, error) {
	cfg := bridge.NewConfig()
	cfg.State = state
	cfg.Public, cfg.Admin.Listen = bridge.Public{BaseURL: benchBase}, ""
	store, set := bridge.NewStore(), bridge.NewSet()
	store.Embedded = filepath.Join(e.dir, "source-store")
	set.Store, set.Schedule, set.Publish = "local", "", publish
	cfg.Stores["local"], cfg.Sets["data"] = store, set
	return bridge.Open(ctx, cfg, bridge.Options{Command: "bench"})
}

// files is the folder with the representations of the source as files.
func (e *env) files() string { return filepath.Join(e.dir, "files") }

// unpack writes the representations as files.
func (e *env) unpack(b *bridge.Bridge) error {
	if err := os.MkdirAll(e.files(), 0o755); err != nil {
		return err
	}
	for _, part := range locations(get(b, "/data/resourcelist.xml")) {
		for _, path := range locations(get(b, part)) {
			if err := os.WriteFile(filepath.Join(e.files(), filepath.Base(path)), get(b, path), 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

func get(b *bridge.Bridge, path string) []byte {
	rec := httptest.NewRecorder()
	b.PublicHandler().ServeHTTP(rec, httptest.NewRequest(http.MethodGet, benchBase+path, nil))
	return rec.Body.Bytes()
}

var location = regexp.MustCompile(`<loc>([^<]*)</loc>`)

// locations are the paths of the loc elements of a document.
func locations(doc []byte) (out []string) {
	for _, m := range location.FindAllSubmatch(doc, -1) {
		if u, err := url.Parse(string(m[1])); err == nil {
			out = append(out, u.Path)
		}
	}
	return out
}

// resourceList makes the whole Resource List, as a mirror asks for it: packed, all
// its parts, a reader for each processor.
func resourceList(ctx context.Context, e *env) (took, base time.Duration, err error) {
	b, err := e.source(ctx)
	if err != nil {
		return 0, 0, err
	}
	h := b.PublicHandler()
	began := time.Now()
	parts := locations(get(b, "/data/resourcelist.xml"))
	next := make(chan string, len(parts))
	for _, part := range parts {
		next <- part
	}
	close(next)
	var wg sync.WaitGroup
	for range runtime.NumCPU() {
		wg.Go(func() {
			for part := range next {
				r := httptest.NewRequest(http.MethodGet, benchBase+part, nil)
				r.Header.Set("Accept-Encoding", "gzip")
				h.ServeHTTP(&discard{h: http.Header{}}, r)
			}
		})
	}
	wg.Wait()
	took = time.Since(began)
	entries := listed(b)
	if err := b.Close(); err != nil {
		return 0, 0, err
	}
	if entries < e.n {
		return 0, 0, fmt.Errorf("the Resource List has %d entries of %d", entries, e.n)
	}
	base, err = e.resyncBuild(ctx, "--write-resourcelist", "--hash=sha-256", "--max-sitemap-entries=10000000", "--outfile=list.xml")
	return took, base, err
}

// listed reads the Resource List, all its parts, and counts the entries.
func listed(b *bridge.Bridge) (entries int64) {
	list := get(b, "/data/resourcelist.xml")
	if !bytes.Contains(list, []byte("<sitemapindex")) {
		return int64(bytes.Count(list, []byte("<url>")))
	}
	for _, part := range locations(list) {
		entries += int64(bytes.Count(get(b, part), []byte("<url>")))
	}
	return entries
}

// discard is a response written to nothing.
type discard struct{ h http.Header }

func (d *discard) Header() http.Header         { return d.h }
func (d *discard) WriteHeader(int)             {}
func (d *discard) Write(b []byte) (int, error) { return len(b), nil }

// resourceDump makes the whole Resource Dump.
func resourceDump(ctx context.Context, e *env) (took, base time.Duration, err error) {
	b, remove, err := e.dumping(ctx)
	if err != nil {
		return 0, 0, err
	}
	began := time.Now()
	err = finish(ctx, b, "dump:data")
	took = time.Since(began)
	size := len(get(b, "/data/resourcedump.xml"))
	if err := errors.Join(err, b.Close(), remove()); err != nil {
		return 0, 0, err
	}
	if size == 0 {
		return 0, 0, errors.New("there is no Resource Dump")
	}
	base, err = e.resyncBuild(ctx, "--write-resourcedump", "--hash=sha-256", "--max-sitemap-entries=10000000", "--outfile=dump")
	return took, base, err
}

// finish runs a job to its end.
func finish(ctx context.Context, b *bridge.Bridge, job string) error {
	run, _, err := b.Runner().Start(job, "bench", nil)
	if err == nil {
		run, err = b.Runner().Wait(ctx, run.ID)
	}
	if err == nil && run.Error != "" {
		err = errors.New(run.Error)
	}
	return err
}

// resyncBuild runs the reference library's tool over the same representations.
func (e *env) resyncBuild(ctx context.Context, args ...string) (time.Duration, error) {
	dir, err := os.MkdirTemp(e.dir, "resync-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	tool := filepath.Join(filepath.Dir(os.Getenv(teststores.EnvPython)), "resync-build")
	cmd := exec.CommandContext(ctx, tool, append(args, benchBase+"/r/="+e.files())...)
	cmd.Dir = dir
	began := time.Now()
	if out, err := cmd.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("resync-build: %w: %.300s", err, out)
	}
	return time.Since(began), nil
}
