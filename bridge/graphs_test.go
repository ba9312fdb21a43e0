package bridge

import (
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rsbridge/rsbridge/rdfres"
)

// quadsOf are the data of an embedded store, sorted, without rsbridge's own.
func quadsOf(t *testing.T, b *Bridge, store string) []string {
	t.Helper()
	srv := httptest.NewServer(b.StoreHandler(store))
	defer srv.Close()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL+"/data", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "application/n-quads")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != 200 {
		t.Fatalf("%s %v: %s", res.Status, err, raw)
	}
	out := strings.Split(strings.TrimSpace(string(raw)), "\n")
	out = slices.DeleteFunc(out, func(l string) bool { return l == "" || strings.Contains(l, " <urn:rsbridge:state> .") })
	slices.Sort(out)
	return out
}

// TestGraphsAreMirrored: with describe graph a mirror with a graph for each entity
// has the named graphs of the source, one with a single graph all of them in one.
func TestGraphsAreMirrored(t *testing.T) {
	cfg := small(t.TempDir())
	set := cfg.Sets["data"]
	set.Describe = "graph"
	cfg.Sets["data"] = set
	d := cfg.Destinations["copy"]
	d.Graph = "per-entity"
	cfg.Destinations["copy"] = d
	merged := NewStore()
	merged.Embedded = cfg.Stores["mirror"].Embedded + "-merged"
	cfg.Stores["merged"] = merged
	d.Store, d.Graph, d.GraphIRI = "merged", "single", "http://all.example/"
	cfg.Destinations["merge"] = d
	b := mustOpen(t, cfg)
	defer b.Close()
	load := func(graphs map[string]string) {
		t.Helper()
		for g, ts := range graphs {
			if _, err := b.LoadStore(t.Context(), "source", g, rdfres.NTriples, strings.NewReader(ts), true); err != nil {
				t.Fatal(err)
			}
		}
	}
	both := "<http://e.example/both> <http://e.example/p> \"in two graphs\" .\n"
	graphs := map[string]string{
		"http://g.example/1": both + "<http://e.example/a> <http://e.example/p> \"1\" .\n<http://g.example/1> <http://e.example/title> \"One\" .\n",
		"http://g.example/2": both + "<http://e.example/a> <http://e.example/p> \"2\" .\n",
		"http://g.example/3": "<http://e.example/c> <http://e.example/q> <http://e.example/d> .\n",
	}
	load(graphs)
	check := func(created, updated, deleted int64) {
		t.Helper()
		rep := do[ScanReport](t, b, "scan", "data")
		if rep.Created != created || rep.Updated != updated || rep.Deleted != deleted || rep.Covered != rep.Triples {
			t.Errorf("scan: %+v", rep)
		}
		for _, name := range []string{"copy", "merge"} {
			do[SyncReport](t, b, "sync", name)
			if audit := do[AuditReport](t, b, "audit", name); !audit.Equal {
				t.Errorf("audit %s: %+v", name, audit)
			}
		}
		want := quadsOf(t, b, "source")
		if diff := cmp.Diff(want, quadsOf(t, b, "mirror")); diff != "" {
			t.Errorf("the mirror's graphs: %s", diff)
		}
		in := map[string]bool{}
		for _, q := range want {
			in[q[:strings.LastIndex(q, " <")]+" <http://all.example/> ."] = true
		}
		if diff := cmp.Diff(slices.Sorted(maps.Keys(in)), quadsOf(t, b, "merged")); diff != "" {
			t.Errorf("all in one graph: %s", diff)
		}
	}
	check(3, 0, 0)
	load(map[string]string{"http://g.example/2": "<http://e.example/a> <http://e.example/p> \"3\" .\n", "http://g.example/3": "", "http://g.example/4": both})
	check(1, 1, 1)
	// Blank nodes of a graph are its own.
	blank := "_:x <http://e.example/in> _:y .\n_:y <http://e.example/p> \"1\" .\n<http://e.example/a> <http://e.example/has> _:x .\n"
	load(map[string]string{"http://g.example/5": blank, "http://g.example/6": blank})
	do[ScanReport](t, b, "scan", "data")
	do[SyncReport](t, b, "sync", "copy")
	nodes := map[string]bool{}
	for _, q := range quadsOf(t, b, "mirror") {
		if s, _, _ := strings.Cut(q, " "); strings.Contains(s, "/.well-known/genid/") {
			nodes[s] = true
		}
	}
	if len(nodes) != 4 {
		t.Errorf("blank nodes of two graphs: %v", nodes)
	}
	if rep := do[ScanReport](t, b, "scan", "data"); rep.Unchanged != 5 {
		t.Errorf("again: %+v", rep)
	}
}
