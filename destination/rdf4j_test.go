package destination

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/destination/keep"
	"github.com/rsbridge/rsbridge/destination/sink/sparqlsink"
	"github.com/rsbridge/rsbridge/internal/sparql"
	"github.com/rsbridge/rsbridge/internal/teststores"
)

// An RDF4J holds "a"@EN-us and "a"@en-us apart and takes them for the same when it
// looks one up, so that it does not find the one by its own name once it has met the
// other. What is to go goes all the same.
func TestRDF4JLanguageCase(t *testing.T) {
	store := teststores.RDF4J(t)
	client := clientOf(t, sparql.Endpoint{Name: "rdf4j", Query: store.Query, Update: store.Update, GraphStore: store.GraphStore})
	elsewhere := store.Graph + "/elsewhere"
	t.Cleanup(func() { store.Clear(t, elsewhere) })
	label := "label of " + store.Graph
	met := 0
	meet := func(lang string) { // after others, which take its place in the store's caches
		var text strings.Builder
		for range 1500 {
			met++
			fmt.Fprintf(&text, "<http://ex.org/other%[1]d> <http://ex.org/v> \"%[1]d of %[2]s\" .\n", met, store.Graph)
		}
		store.Run(t, "INSERT DATA { GRAPH <"+elsewhere+"> {\n"+text.String()+"} }")
		met++
		store.Run(t, fmt.Sprintf("INSERT DATA { GRAPH <%s> { <http://ex.org/other%d> <http://ex.org/v> \"%s\"@%s } }", elsewhere, met, label, lang))
	}
	b := newBench(t)
	cfg := b.cfg
	cfg.GraphIRI = store.Graph
	d, err := Open(context.Background(), b.store, sparqlsink.Of(client), cfg, keep.Options{})
	if err != nil {
		t.Fatal(err)
	}
	meet("en-us")
	meet("de")
	for _, values := range []string{`"` + label + `"@EN-us`, `"another"@EN-us`} {
		b.src.put("e.nt", "<http://ex.org/e> <http://ex.org/v> "+values+" .\n<http://ex.org/e> <http://ex.org/v> \"stays\"@EN-us .\n")
		if rep, err := d.Sync(t.Context(), SyncOptions{}); err != nil || !rep.InSync {
			t.Fatalf("%+v %v", rep, err)
		}
		if got := string(store.Get(t, "")); strings.Count(got, "\n") != 2 || !strings.Contains(got, values) {
			t.Fatalf("%s: %s", values, got)
		}
		if a, err := d.Audit(t.Context(), AuditOptions{}); err != nil || !a.Equal {
			t.Fatalf("%+v %v", a, err)
		}
		meet("en-us")
	}
}

// An entity whose graph has a name that would break the store is held back, and all
// others come.
func TestRDF4JLongGraph(t *testing.T) {
	store := teststores.RDF4J(t)
	client := clientOf(t, sparql.Endpoint{Name: "rdf4j", Query: store.Query, Update: store.Update, GraphStore: store.GraphStore})
	t.Cleanup(func() { store.GetBelow(t, store.Graph) })
	b := newBench(t)
	fill(b.src, 20)
	b.src.put("long.nt", "<http://ex.org/"+strings.Repeat("x", 66_000)+"> <http://ex.org/v> \"x\" .\n")
	cfg := b.cfg
	cfg.Graph, cfg.GraphIRI = "per-entity", store.Graph+"/{entity}"
	d, err := Open(t.Context(), b.store, sparqlsink.Of(client), cfg, keep.Options{})
	if err != nil {
		t.Fatal(err)
	}
	rep, err := d.Sync(t.Context(), SyncOptions{})
	if err != nil || rep.Created != 20 || rep.Failed != 1 || !strings.Contains(rep.Problems[0].Reason, "breaks at a graph's name above 43690 bytes") {
		t.Fatalf("%+v %v", rep, err)
	}
}
