package bridge

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/rdfres/codec"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// TestChain: A is mirrored by B, which publishes its mirror, and so on: D is equal
// to A, and what is published of it leads to A and not to those between. An audit of
// the depth origin asks A too.
func TestChain(t *testing.T) {
	cfg := small(t.TempDir())
	dir := t.TempDir()
	hops := []struct{ set, store, dest, into string }{{"data", "source", "copy", "mirror"}, {"b", "mirror", "toc", "c"}, {"c", "c", "tod", "d"}, {"d", "d", "", ""}}
	for i, h := range hops {
		set := NewSet()
		set.Store, set.Schedule = h.store, ""
		cfg.Sets[h.set] = set
		if h.dest == "" {
			continue
		}
		if i > 0 {
			s := NewStore()
			s.Embedded = filepath.Join(dir, h.into)
			cfg.Stores[h.into] = s
		}
		d := NewDestination()
		d.Source, d.Set, d.Store, d.Schedule, d.Audit.Schedule = cfg.Public.BaseURL, h.set, h.into, "", ""
		cfg.Destinations[h.dest] = d
	}
	b := mustOpen(t, cfg)
	defer func() { b.Close() }()
	pass := func() {
		t.Helper()
		for _, h := range hops {
			do[ScanReport](t, b, "scan", h.set)
			if h.dest != "" {
				if s := do[SyncReport](t, b, "sync", h.dest); !s.InSync {
					t.Fatalf("%s: %+v", h.dest, s)
				}
			}
		}
	}
	held := func(store string) []string {
		req := httptest.NewRequest(http.MethodGet, "/data?default", nil)
		req.Header.Set("Accept", "application/n-triples")
		out := httptest.NewRecorder()
		b.StoreHandler(store).ServeHTTP(out, req)
		ts, err := codec.Decode(rdfres.NTriples, out.Body.Bytes(), rdfres.ReadOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range ts {
			ts[i].S, ts[i].O = rdfres.Unskolemize(ts[i].S), rdfres.Unskolemize(ts[i].O)
		}
		ts, _, err = rdfres.NameBlanks(rdfres.SortUnique(ts), rdfres.NameOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var lines []string
		for _, tr := range rdfres.SortUnique(ts) {
			lines = append(lines, string(tr.AppendLine(nil)))
		}
		return lines
	}
	equal := func() {
		t.Helper()
		if a, d := held("source"), held("d"); !slices.Equal(a, d) || len(a) == 0 {
			t.Fatalf("the end of the chain has %q, its beginning %q", d, a)
		}
	}
	fill(t, b, "source", "<http://e.example/a> <http://e.example/p> \"1\" .\n<http://e.example/b> <http://e.example/q> _:x .\n_:x <http://e.example/r> _:y .\n_:y <http://e.example/r> \"2\"@en .\n_:z <http://e.example/r> \"what no IRI leads to\" .\n")
	pass()
	equal()
	for _, h := range hops {
		rec := httptest.NewRecorder()
		b.PublicHandler().ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/"+h.set+"/resourcelist.xml", nil))
		r, err := resourcesync.NewReader(rec.Body, resourcesync.ReaderOptions{Strict: true})
		if err != nil {
			t.Fatal(err)
		}
		for {
			e, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			want, got := strings.Replace(e.Loc, "/"+h.set+"/", "/data/", 1), ""
			if l := e.Link(resourcesync.RelVia); l != nil {
				got = l.Href
			}
			if h.set == "data" {
				want = ""
			}
			if got != want {
				t.Errorf("%s comes via %q, want %q", e.Loc, got, want)
			}
		}
	}
	var a AuditReport
	if err := b.Do(t.Context(), "audit", "tod", AuditArgs{Depth: "origin"}, &a); err != nil || !a.Equal || a.Origins != 3 {
		t.Fatalf("%+v %v", a, err)
	}
	// A goes on, those between stay behind: only the first source can tell.
	fill(t, b, "source", "<http://e.example/a> <http://e.example/p> \"3\" .\n<http://e.example/b> <http://e.example/q> _:x .\n_:x <http://e.example/r> _:y .\n_:y <http://e.example/r> \"2\"@en .\n_:z <http://e.example/r> \"what no IRI leads to\" .\n")
	do[ScanReport](t, b, "scan", "data")
	if err := b.Do(t.Context(), "audit", "tod", AuditArgs{}, &a); err != nil || !a.Equal {
		t.Fatalf("%+v %v", a, err)
	}
	if err := b.Do(t.Context(), "audit", "tod", AuditArgs{Depth: "origin"}, &a); err != nil || a.Equal || a.Different != 1 || !strings.Contains(a.Named[0].Detail, "/data/r/") {
		t.Fatalf("%+v %v", a, err)
	}
	pass()
	equal()
	if err := b.Do(t.Context(), "audit", "tod", AuditArgs{Depth: "origin"}, &a); err != nil || !a.Equal {
		t.Fatalf("%+v %v", a, err)
	}
}
