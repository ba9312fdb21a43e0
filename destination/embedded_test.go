package destination

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/destination/sink"
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
				d, err := Open(context.Background(), b.store, c, cfg, Options{})
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
	return string(appendLines(nil, ts))
}
