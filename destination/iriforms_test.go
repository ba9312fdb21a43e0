package destination

import (
	"github.com/rsbridge/rsbridge/destination/sink/sparqlsink"

	"context"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/destination/keep"
	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/internal/sparql"
	"github.com/rsbridge/rsbridge/internal/teststores"
	"github.com/rsbridge/rsbridge/rdfres"
)

// Fuseki resolves IRIs in updates: what they would become is another entity's,
// and is never touched, in both layouts.
func TestFusekiDotSegments(t *testing.T) {
	teststores.Sequential(t)
	for _, layout := range []string{"single", "per-entity"} {
		t.Run(layout, func(t *testing.T) {
			store := teststores.Fuseki(t)
			b := newBench(t)
			s := b.src
			s.ours = true
			cfg := b.cfg
			cfg.GraphIRI = store.Graph
			if layout == "per-entity" {
				cfg.Graph, cfg.GraphIRI, cfg.Adopt = layout, store.Graph+"/{entity}", true
			}
			client, err := sparql.New(sparql.Endpoint{Name: "fuseki", Query: store.Query, Update: store.Update, GraphStore: store.GraphStore})
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			// A record of a version that did not look at IRIs: only that is probed.
			raw, err := json.Marshal(sparql.Capabilities{Product: "Fuseki", Writable: true, Transactional: true, UpdateTriples: 1000})
			if err != nil {
				t.Fatal(err)
			}
			batch := b.store.Batch()
			defer batch.Close()
			batch.Set(ledger.NameKey(ledger.KindProbe, store.Update), raw)
			if err := batch.Commit(t.Context(), true); err != nil {
				t.Fatal(err)
			}
			open := func() *Destination {
				d, err := Open(context.Background(), b.store, sparqlsink.Of(client), cfg, keep.Options{})
				if err != nil {
					t.Fatal(err)
				}
				return d
			}
			held := func() []string {
				t.Helper()
				var out []string
				sel, err := client.Select(context.Background(), `SELECT ?s ?p ?o WHERE { GRAPH ?g { ?s ?p ?o } FILTER(STRSTARTS(STR(?g), "`+store.Graph+`")) }`)
				if err != nil {
					t.Fatal(err)
				}
				for row, err := range sel.Rows {
					if err != nil {
						t.Fatal(err)
					}
					out = append(out, string(rdfres.Triple{S: row[0], P: row[1], O: row[2]}.AppendLine(nil)))
				}
				slices.Sort(out)
				return slices.Compact(out)
			}
			defer func() { // per-entity graphs are removed too
				if layout == "per-entity" {
					for _, e := range []string{"a/b", "a/./b", "c", "a/../c"} {
						client.DeleteGraph(context.Background(), store.Graph+"/http://ex.org/"+e)
					}
				}
			}()
			const x = "http://ex.org/"
			body := func(e string, more ...string) string {
				return fmt.Sprintf("<%s%s> <%sp> \"same\" .\n", x, e, x) + strings.Join(more, "")
			}
			s.put("a/b.nt", body("a/b", "<"+x+"a/b> <"+x+"p> \"keep\" .\n"))
			s.put("a/./b.nt", body("a/./b", "<"+x+"a/./b> <"+x+"./q> <"+x+"a/../c> .\n", "<"+x+"a/./b> <"+x+"q> \"x \\\\u0041 \\\"y\"^^<"+x+"./t> .\n"))
			s.put("c.nt", body("c"))
			s.put("a/../c.nt", body("a/../c", "<"+x+"a/../c> <"+x+"n> \"5\"^^<http://www.w3.org/2001/XMLSchema#integer> .\n"))
			step := func() {
				t.Helper()
				rep, err := open().Sync(context.Background(), SyncOptions{})
				if err != nil || !rep.InSync {
					t.Fatalf("%+v %v", rep, err)
				}
				b.same(held(), s.want())
				a, err := open().Audit(context.Background(), AuditOptions{})
				if err != nil || !a.Equal {
					t.Fatalf("%+v %v", a, err)
				}
			}
			step()
			s.put("a/./b.nt", body("a/./b", "<"+x+"a/./b> <"+x+"./q> <"+x+"a/../d> .\n"))
			step()
			s.remove("a/./b.nt")
			s.remove("a/../c.nt")
			step()
			s.put("a/../c.nt", body("a/../c"))
			step()
			// Damage as an older version made it: the triples of one stand with the other.
			d := open()
			if err := d.prober.ready(context.Background(), true); err != nil {
				t.Fatal(err)
			}
			sts, _, err := d.stand.StatementsOf(t.Context(), ledger.HashOf(s.url("/set/r/a/../c.nt")))
			if err != nil || len(sts) != 1 {
				t.Fatal(len(sts), err)
			}
			if err := client.Update(context.Background(), `DELETE { GRAPH ?g { ?s ?p ?o } } WHERE { GRAPH ?g { ?s ?p ?o } FILTER(STR(?s) = "`+sts[0].Triple.S.IRI()+`") }`); err != nil {
				t.Fatal(err)
			}
			if a, err := open().Audit(context.Background(), AuditOptions{Repair: true}); err != nil || !a.Equal || a.Repaired == 0 {
				t.Fatalf("%+v %v", a, err)
			}
			step()
		})
	}
}

// Without a way that keeps an IRI its resource is failed by name, and nothing of
// another entity is touched, then or when it goes.
func TestIRIThatNoWayKeeps(t *testing.T) {
	b := newBench(t)
	s := b.src
	s.ours = true
	b.mir.noGSP = true
	b.mir.rewriteUpdate = func(iri string) string {
		if scheme, rest, ok := strings.Cut(iri, "://"); ok && strings.Contains(rest, "/.") {
			return scheme + "://" + path.Clean(rest)
		}
		return iri
	}
	b.iris = sparqlsink.Rewrites{Update: []string{"dot-segments"}}
	s.put("a/b.nt", nt("a/b", "same", "keep"))
	s.put("a/./b.nt", nt("a/./b", "same", "dot"))
	s.put("c.nt", nt("c", "x"))
	rep := b.sync()
	if rep.InSync || rep.Failed != 1 || len(rep.Problems) != 1 || !strings.Contains(rep.Problems[0].Reason, "http://ex.org/a/./b") || !strings.Contains(rep.Problems[0].Reason, "store mirror") {
		t.Fatalf("%+v", rep)
	}
	want := strings.SplitAfter(nt("a/b", "keep", "same")+nt("c", "x"), "\n")
	b.same(b.mir.lines(graphA), want[:len(want)-1])
	s.remove("a/./b.nt")
	if rep = b.sync(); !rep.InSync {
		t.Fatalf("%+v", rep)
	}
	b.equal()
	b.cfg.Name, b.cfg.GraphIRI = "other", "http://mirror.example/a/./g"
	if _, err := b.open().Sync(context.Background(), SyncOptions{}); err == nil || !strings.Contains(err.Error(), "dot segments") {
		t.Fatal(err)
	}
}
