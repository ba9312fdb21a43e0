package destination

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/destination/keep"
	"github.com/rsbridge/rsbridge/destination/obtain"
	"github.com/rsbridge/rsbridge/destination/sink"
	"github.com/rsbridge/rsbridge/destination/sink/sparqlsink"
	"github.com/rsbridge/rsbridge/internal/embedstore"
	"github.com/rsbridge/rsbridge/internal/sparql"
	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/rdfres/codec"
)

// The embedded store as the mirror, probed for real, in both layouts.
func TestEmbeddedMirror(t *testing.T) {
	for _, layout := range []string{"single", "per-entity"} {
		t.Run(layout, func(t *testing.T) {
			b := newBench(t)
			b.src.ours = true
			store, err := embedstore.Open(t.TempDir(), embedstore.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer store.Close()
			base := "http://embedded/"
			c, err := sparql.New(sparql.Endpoint{Name: "embedded", Query: base + "query", Update: base + "update", GraphStore: base + "data", Transport: store.Transport()})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			cfg := b.cfg
			if cfg.Graph = layout; layout == "per-entity" {
				cfg.GraphIRI = "{entity}"
			}
			run := func() {
				t.Helper()
				d, err := Open(context.Background(), b.store, sparqlsink.Of(c), cfg, keep.Options{})
				if err != nil {
					t.Fatal(err)
				}
				defer d.Close()
				rep, err := d.Sync(context.Background(), SyncOptions{})
				if err != nil || !rep.InSync {
					t.Fatalf("%+v %v", rep, err)
				}
				a, err := d.Audit(context.Background(), AuditOptions{})
				if err != nil || !a.Equal {
					t.Fatalf("%+v %v", a, err)
				}
				var out strings.Builder
				if err := dumpAll(store, &out); err != nil {
					t.Fatal(err)
				}
				var got []string
				for line := range strings.Lines(out.String()) {
					q, ok, err := rdfres.ParseLine([]byte(strings.TrimSuffix(line, "\n")))
					if err != nil || !ok {
						t.Fatal(line, err)
					}
					if q.G.IRI() != sink.StateGraph {
						got = append(got, string(rdfres.Triple{S: rdfres.Unskolemize(q.S), P: q.P, O: rdfres.Unskolemize(q.O)}.AppendLine(nil)))
					}
				}
				slices.Sort(got)
				b.same(got, b.src.want())
			}
			for i := range 30 {
				b.src.put(fmt.Sprintf("e%d.nt", i), named(t, fmt.Sprintf("<http://ex.org/e%d> <http://ex.org/p> _:x .\n_:x <http://ex.org/q> \"%d\" .\n<http://ex.org/e%d> <http://ex.org/n> \"0%d\"^^<http://www.w3.org/2001/XMLSchema#integer> .\n", i, i, i, i)))
			}
			run()
			b.src.put("e3.nt", nt("e3", "changed"))
			b.src.remove("e4.nt")
			b.src.put("e99.nt", nt("e99", "new"))
			run()
			b.src.remove("e99.nt")
			run()
		})
	}
}

func dumpAll(s *embedstore.Store, w io.Writer) error {
	return s.Dump(context.Background(), w, rdfres.NQuads, embedstore.DumpOptions{All: true})
}

// named is a document with wire names, as our own source writes it.
func named(t *testing.T, doc string) string {
	ts, err := codec.Decode(rdfres.NTriples, []byte(doc), rdfres.ReadOptions{})
	if err == nil {
		ts, _, err = rdfres.NameBlanks(ts, rdfres.NameOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(obtain.AppendLines(nil, ts))
}

// Literals that differ in the case of their language tags are one in the store. An audit
// at each depth says so, and removing one of them, or one of two resources with
// one, leaves the other.
func TestEmbeddedMirrorLanguageTags(t *testing.T) {
	for _, patches := range []bool{false, true} {
		b := newBench(t)
		if b.src.ours = true; patches {
			b.src.patches = map[string][]byte{}
		}
		e, graph := embeddedMirror(t)
		c := clientOf(t, e)
		cfg := b.cfg
		cfg.GraphIRI = graph
		open := func() *Destination {
			d, err := Open(t.Context(), b.store, sparqlsink.Of(c), cfg, keep.Options{})
			if err != nil {
				t.Fatal(err)
			}
			return d
		}
		const s = "<http://ex.org/e1> <http://ex.org/n> "
		holds := func(want ...string) {
			t.Helper()
			d := open()
			defer d.Close()
			rep, err := d.Sync(t.Context(), SyncOptions{})
			if err != nil || !rep.InSync {
				t.Fatalf("%+v %v", rep, err)
			}
			for _, depth := range []string{"inventory", "store", "origin"} {
				if a, err := d.Audit(t.Context(), AuditOptions{Depth: depth}); err != nil || !a.Equal {
					t.Fatalf("%s: %+v %v", depth, a, err)
				}
			}
			var got []string
			for tr, err := range c.GetGraph(t.Context(), graph) {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, string(tr.O))
			}
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Fatalf("the store holds %q, not %q", got, want)
			}
		}
		b.src.put("e1.nt", s+"\"a\"@EN .\n"+s+"\"a\"@EN-gb .\n"+s+"\"a\"@en .\n"+s+"\"a\"@en-GB .\n"+s+"\"b\"@DE .\n")
		b.src.put("e2.nt", "<http://ex.org/e2> <http://ex.org/n> \"c\"@zh-hant .\n")
		b.src.put("e3.nt", s+"\"b\"@dE .\n") // of e1 too
		holds(`"a"@en`, `"a"@en-GB`, `"b"@de`, `"c"@zh-Hant`)
		b.src.put("e1.nt", s+"\"a\"@EN-gb .\n"+s+"\"a\"@en .\n"+s+"\"b\"@De .\n") // one of each pair goes
		holds(`"a"@en`, `"a"@en-GB`, `"b"@de`, `"c"@zh-Hant`)
		b.src.put("e1.nt", s+"\"a\"@EN .\n"+s+"\"b\"@De .\n")
		holds(`"a"@en`, `"b"@de`, `"c"@zh-Hant`)
		b.src.put("e1.nt", s+"\"b\"@de-at .\n")
		holds(`"b"@de`, `"b"@de-AT`, `"c"@zh-Hant`)
		b.src.remove("e3.nt")
		b.src.remove("e2.nt")
		holds(`"b"@de-AT`)

		// A repair of what is missing, and of what is too much.
		if err := c.Update(t.Context(), "DELETE DATA { GRAPH <"+graph+"> { "+s+"\"b\"@DE-AT } } ; INSERT DATA { GRAPH <"+graph+"> { "+s+"\"z\"@EN } }"); err != nil {
			t.Fatal(err)
		}
		d := open()
		defer d.Close()
		if a, err := d.Audit(t.Context(), AuditOptions{}); err != nil || a.Equal {
			t.Fatalf("%+v %v", a, err)
		}
		if a, err := d.Audit(t.Context(), AuditOptions{Repair: true}); err != nil || !a.Equal || a.Repaired == 0 {
			t.Fatalf("%+v %v", a, err)
		}
		holds(`"b"@de-AT`)
	}
}
