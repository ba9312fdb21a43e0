package bridge_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/rsbridge/rsbridge/bridge"
	"github.com/rsbridge/rsbridge/internal/inproc"
	"github.com/rsbridge/rsbridge/internal/teststores"
)

// side is a store in a test: how it is configured, and how the test writes and
// reads it past the bridge.
type side struct {
	store bridge.Store
	graph string
	put   func(t *testing.T, b *bridge.Bridge, contentType string, body []byte)
	get   func(t *testing.T, b *bridge.Bridge) []byte
	run   func(t *testing.T, b *bridge.Bridge, update string)

	perEntity *teststores.Server // its mirror has a graph for each entity
}

// perEntity is a store whose mirror has a graph for each entity, below the name
// of the test's own graph.
func perEntity(s teststores.Server) side {
	out := remote(s)
	out.perEntity = &s
	out.get = func(t *testing.T, _ *bridge.Bridge) []byte { return s.GetBelow(t, s.Graph+"/") }
	return out
}

func remote(s teststores.Server) side {
	c := bridge.NewStore()
	c.Query, c.Update, c.GraphStore = s.Query, s.Update, s.GraphStore
	c.Username, c.Password = s.Username, bridge.Secret(s.Password)
	return side{c, s.Graph,
		func(t *testing.T, _ *bridge.Bridge, ct string, body []byte) { s.Put(t, "", ct, bytes.NewReader(body)) },
		func(t *testing.T, _ *bridge.Bridge) []byte { return s.Get(t, "") },
		func(t *testing.T, _ *bridge.Bridge, u string) { s.Run(t, u) },
		nil,
	}
}

func embedded(t *testing.T, name string) side {
	c := bridge.NewStore()
	c.Embedded = filepath.Join(t.TempDir(), name)
	const graph = "http://test.example/g"
	client := func(b *bridge.Bridge) *http.Client {
		return &http.Client{Transport: inproc.Transport{Handler: b.StoreHandler(name)}}
	}
	const at = "http://embedded.invalid/data?graph=" + graph
	return side{c, graph,
		func(t *testing.T, b *bridge.Bridge, ct string, body []byte) {
			request(t, client(b), http.MethodPut, at, ct, body)
		},
		func(t *testing.T, b *bridge.Bridge) []byte { return request(t, client(b), http.MethodGet, at, "", nil) },
		func(t *testing.T, b *bridge.Bridge, u string) {
			request(t, client(b), http.MethodPost, "http://embedded.invalid/update", "application/sparql-update", []byte(u))
		},
		nil,
	}
}

func request(t *testing.T, c *http.Client, method, addr, contentType string, body []byte) []byte {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, addr, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "application/n-triples")
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	res, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode >= 300 {
		t.Fatalf("%s %s: %s %v %.300s", method, addr, res.Status, err, raw)
	}
	return raw
}

func config(t *testing.T, source, mirror side) *bridge.Config {
	cfg := bridge.NewConfig()
	cfg.State = filepath.Join(t.TempDir(), "state")
	cfg.Public = bridge.Public{BaseURL: "http://bridge.example"} // never listened on: the bridge reaches itself
	cfg.Admin.Listen = ""
	cfg.Stores["source"], cfg.Stores["mirror"] = source.store, mirror.store
	set := bridge.NewSet()
	set.Store, set.Graphs, set.Schedule = "source", []string{source.graph}, ""
	cfg.Sets["data"] = set
	d := bridge.NewDestination()
	d.Source, d.Set, d.Store, d.GraphIRI, d.Schedule, d.Audit.Schedule = "http://bridge.example/.well-known/resourcesync", "data", "mirror", mirror.graph, "", ""
	d.Provenance = true
	if mirror.perEntity != nil {
		d.Graph, d.GraphIRI = "per-entity", mirror.graph+"/{entity}"
	}
	cfg.Destinations["copy"] = d
	return cfg
}

func open(t *testing.T, cfg *bridge.Config) *bridge.Bridge {
	t.Helper()
	b, err := bridge.Open(t.Context(), cfg, bridge.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// do runs an action to its end and gives its report.
func do[R any](t *testing.T, b *bridge.Bridge, action, name string, args any) (report R) {
	t.Helper()
	if err := b.Do(context.WithoutCancel(t.Context()), action, name, args, &report); err != nil {
		t.Fatal(err)
	}
	return report
}

// follow scans, syncs and audits, and lets an independent tool compare.
func follow(t *testing.T, b *bridge.Bridge, source, mirror side) {
	t.Helper()
	scan := do[bridge.ScanReport](t, b, "scan", "data", nil)
	if scan.Held != nil {
		scan = do[bridge.ScanReport](t, b, "accept", "data", nil)
	}
	if scan.Held != nil || scan.Failed > 0 || scan.Covered != scan.Triples {
		t.Fatalf("scan: %+v", scan)
	}
	if s := do[bridge.SyncReport](t, b, "sync", "copy", nil); !s.InSync || s.Pending+s.Failed > 0 {
		t.Fatalf("sync: %+v", s)
	}
	teststores.Equal(t, source.get(t, b), mirror.get(t, b))
	if a := do[bridge.AuditReport](t, b, "audit", "copy", nil); !a.Equal {
		t.Fatalf("audit says different while both are equal: %+v", a)
	}
}

func unzipped(t *testing.T, path string) []byte {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// history is the releases of schema.org, there and back.
var history = []string{"12.0", "13.0", "14.0", "15.0", "12.0"}

// TestHistory carries the schema.org releases, there and back, and 223p with its
// nested blank nodes, through pairs of real stores, in both layouts of a mirror.
// After each step an independent tool finds source and mirror equal. With
// RSBRIDGE_HISTORY=all (make campaign) each pair goes every way.
func TestHistory(t *testing.T) {
	if testing.Short() {
		t.Skip("real stores in processes that the race detector does not see; it meets the same ways in the random histories of destination; it runs without -short")
	}
	all := os.Getenv("RSBRIDGE_HISTORY") == "all"
	oxigraph := func(t *testing.T) teststores.Server { return teststores.Oxigraph(t) }
	fuseki := func(t *testing.T) teststores.Server { return teststores.Fuseki(t) }
	rdf4j := func(t *testing.T) teststores.Server { return teststores.RDF4J(t) }
	virtuoso := func(t *testing.T) teststores.Server { return teststores.Virtuoso(t) }
	single := func(s func(*testing.T) teststores.Server) func(*testing.T) side {
		return func(t *testing.T) side { return remote(s(t)) }
	}
	each := func(s func(*testing.T) teststores.Server) func(*testing.T) side {
		return func(t *testing.T) side { return perEntity(s(t)) }
	}
	here := func(name string) func(*testing.T) side { return func(t *testing.T) side { return embedded(t, name) } }
	const quick, onlyAll = 3, 0
	pairs := []struct {
		name           string
		source, mirror func(t *testing.T) side
		releases       int  // in make test
		nested         bool // 223p in make test
	}{
		{"embedded to embedded", here("source"), here("mirror"), len(history), true},
		{"Oxigraph to Fuseki", single(oxigraph), single(fuseki), len(history), true},
		{"Oxigraph to Fuseki, per-entity", single(oxigraph), each(fuseki), onlyAll, false},
		{"Fuseki to Oxigraph, per-entity", single(fuseki), each(oxigraph), onlyAll, false},
		{"Fuseki to embedded", single(fuseki), here("mirror"), len(history), true},
		{"RDF4J to Virtuoso", single(rdf4j), single(virtuoso), quick, true},
		{"RDF4J to Virtuoso, per-entity", single(rdf4j), each(virtuoso), onlyAll, true},
		{"Virtuoso to RDF4J", single(virtuoso), single(rdf4j), onlyAll, true},
		{"Virtuoso to RDF4J, per-entity", single(virtuoso), each(rdf4j), quick, false},
	}
	for _, p := range pairs {
		releases := history[:p.releases]
		if p.releases == quick {
			releases = []string{history[0], history[1], history[0]}
		}
		if all {
			releases = history
		}
		if len(releases) > 0 {
			t.Run(p.name, func(t *testing.T) {
				t.Parallel() // the stores take their time
				source, mirror := p.source(t), p.mirror(t)
				b := open(t, config(t, source, mirror))
				for _, v := range releases {
					source.put(t, b, "application/n-triples", unzipped(t, teststores.Shared(t, "data/schemaorg/"+v+".nt.gz")))
					follow(t, b, source, mirror)
				}
			})
		}
		if !p.nested && !all {
			continue
		}
		t.Run(p.name+", 223p", func(t *testing.T) {
			t.Parallel()
			source, mirror := p.source(t), p.mirror(t)
			b := open(t, config(t, source, mirror))
			source.put(t, b, "text/turtle", unzipped(t, teststores.Shared(t, "data/223p.ttl.gz")))
			follow(t, b, source, mirror)
			// damage is seen, and repaired
			const shapes = "?s a <http://www.w3.org/ns/shacl#NodeShape>"
			if mirror.perEntity != nil {
				mirror.run(t, b, "DELETE { GRAPH ?g { "+shapes+" } } WHERE { GRAPH ?g { "+shapes+" } FILTER(STRSTARTS(STR(?g), \""+mirror.graph+"/\")) }")
			} else {
				mirror.run(t, b, "DELETE WHERE { GRAPH <"+mirror.graph+"> { "+shapes+" } }")
			}
			if a := do[bridge.AuditReport](t, b, "audit", "copy", nil); a.Equal || a.Missing+a.Different == 0 {
				t.Fatalf("audit did not see the damage: %+v", a)
			}
			if a := do[bridge.AuditReport](t, b, "repair", "copy", nil); !a.Equal || a.Repaired == 0 {
				t.Fatalf("repair: %+v", a)
			}
			teststores.Equal(t, source.get(t, b), mirror.get(t, b))
		})
	}
}
