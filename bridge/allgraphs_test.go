package bridge_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/bridge"
	"github.com/rsbridge/rsbridge/internal/inproc"
	"github.com/rsbridge/rsbridge/internal/teststores"
)

// TestAllGraphsOfVirtuoso: all named graphs of a Virtuoso, one of them longer than its
// answers, are mirrored as they are; of its own graphs those that are not selected stay away.
func TestAllGraphsOfVirtuoso(t *testing.T) {
	if testing.Short() {
		t.Skip("a real store in a process that the race detector does not see; it runs without -short")
	}
	srv := teststores.Virtuoso(t)
	source, mirror := remote(srv), embedded(t, "mirror")
	cfg := config(t, source, mirror)
	set := cfg.Sets["data"]
	set.Graphs, set.Describe, set.Select.Prefixes = []string{"*"}, "graph", []string{srv.Graph + "/"}
	cfg.Sets["data"] = set
	d := cfg.Destinations["copy"]
	d.Graph, d.GraphIRI, d.Provenance = "per-entity", "", false
	cfg.Destinations["copy"] = d
	b := open(t, cfg)
	store := &http.Client{Transport: inproc.Transport{Handler: b.StoreHandler("mirror")}}
	const both = "<http://e.example/both> <http://e.example/p> \"in each graph\"@en .\n"
	name := func(i int) string { return fmt.Sprintf("%s/%d", srv.Graph, i) }
	put := func(i, entities int) {
		text := both + "_:orphan <http://e.example/p> \"nobody's\" .\n"
		for n := range entities {
			text += fmt.Sprintf("<http://e.example/%d> <http://e.example/p%d> \"%d\" .\n<http://e.example/%d> <http://e.example/has> _:b%d .\n_:b%d <http://e.example/is> <http://e.example/%d> .\n", n, n%5, n+i, n, n, n, n)
		}
		srv.Put(t, name(i), "application/n-triples", strings.NewReader(text))
	}
	check := func(scan bridge.ScanReport, created, updated, deleted int64, graphs ...int) {
		t.Helper()
		if scan.Held != nil || scan.Failed > 0 || scan.Created != created || scan.Updated != updated || scan.Deleted != deleted {
			t.Fatalf("scan: %+v", scan)
		}
		if s := do[bridge.SyncReport](t, b, "sync", "copy", nil); !s.InSync {
			t.Fatalf("sync: %+v", s)
		}
		if a := do[bridge.AuditReport](t, b, "audit", "copy", nil); !a.Equal || a.Resources != int64(len(graphs)) {
			t.Fatalf("audit: %+v", a)
		}
		for _, i := range graphs {
			at := "http://embedded.invalid/data?graph=" + url.QueryEscape(name(i))
			teststores.Equal(t, srv.Get(t, name(i)), request(t, store, http.MethodGet, at, "", nil))
		}
	}
	for i, entities := range []int{4_000, 1, 50} {
		t.Cleanup(func() { srv.Clear(t, name(i)) })
		put(i, entities)
	}
	check(do[bridge.ScanReport](t, b, "scan", "data", nil), 3, 0, 0, 0, 1, 2)
	srv.Clear(t, name(1))
	put(2, 51)
	check(do[bridge.ScanReport](t, b, "scan", "data", nil), 0, 1, 1, 0, 2)
}
