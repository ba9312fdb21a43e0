package destination

import (
	"context"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/destination/keep"
	"github.com/rsbridge/rsbridge/destination/sink/sparqlsink"
	"github.com/rsbridge/rsbridge/internal/sparql"
	"github.com/rsbridge/rsbridge/rdfres"
	rs "github.com/rsbridge/rsbridge/resourcesync"
)

// Whatever somebody wrote into the mirror by hand, blank nodes too, goes by
// audit --repair, and nothing else does.
func TestRepairRemovesBlankNodes(t *testing.T) {
	stores := maps.Clone(realMirrors)
	stores["embedded-gsp"] = func(t *testing.T) (sparql.Endpoint, string) {
		e, graph := embeddedMirror(t)
		e.Update = ""
		return e, graph
	}
	for name, get := range stores {
		for _, layout := range []string{"single", "per-entity"} {
			t.Run(name+"-"+layout, func(t *testing.T) {
				e, graph := get(t)
				c := clientOf(t, e)
				b := newBench(t)
				b.caps.Product = name
				b.remember(e)
				cfg := b.cfg
				cfg.GraphIRI = graph
				if layout == "per-entity" {
					cfg.Graph, cfg.GraphIRI, cfg.Adopt = layout, graph+"/{entity}", true
				}
				open := func() *Destination {
					d, err := Open(context.Background(), b.store, sparqlsink.Of(c), cfg, keep.Options{})
					if err != nil {
						t.Fatal(err)
					}
					return d
				}
				b.src.ours = true
				b.src.put("a.nt", named(t, "<http://ex.org/a> <http://ex.org/p> _:x .\n_:x <http://ex.org/q> \"1\" .\n"))
				b.src.put("b.nt", nt("b", "x"))
				if rep, err := open().Sync(context.Background(), SyncOptions{}); err != nil || !rep.InSync {
					t.Fatalf("%+v %v", rep, err)
				}
				where := graph
				if layout == "per-entity" {
					where += "/http://ex.org/a"
					defer func() {
						for _, x := range []string{"a", "b"} {
							c.DeleteGraph(context.Background(), graph+"/http://ex.org/"+x)
						}
					}()
				}
				text := `<http://ex.org/a> <http://ex.org/p> _:h . _:h <http://ex.org/q> "1" ; <http://ex.org/q> "by hand" ; <http://ex.org/r> _:i , _:h . _:i <http://ex.org/r> <http://ex.org/b> . <http://ex.org/a> <http://ex.org/p> "hand" . `
				var err error
				if e.Update == "" {
					err = postText(c, where, text)
				} else {
					err = c.Update(context.Background(), "INSERT DATA { GRAPH <"+where+"> { "+text+" } }")
				}
				if err != nil {
					t.Fatal(err)
				}
				if a, err := open().Audit(context.Background(), AuditOptions{}); err != nil || a.Equal {
					t.Fatalf("%+v %v", a, err)
				}
				a, err := open().Audit(context.Background(), AuditOptions{Repair: true})
				if err != nil || !a.Equal || a.Repaired == 0 {
					t.Fatalf("%+v %v", a, err)
				}
				n := 0
				for tr, err := range c.GetGraph(context.Background(), where) {
					if err != nil {
						t.Fatal(err)
					}
					if n++; strings.Contains(string(tr.O), "hand") || strings.HasPrefix(string(tr.O), "_:") {
						t.Errorf("left: %s", tr.AppendLine(nil))
					}
				}
				if want := map[string]int{"single": 3, "per-entity": 2}[layout]; n != want {
					t.Errorf("%d triples, want %d", n, want)
				}
			})
		}
	}
}

func postText(c *sparql.Client, graph, turtle string) error {
	return c.PostGraph(context.Background(), graph, rdfres.Turtle, func() (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(turtle)), nil
	})
}

// A source that changes what it gives, and says nothing of it in its lists, is
// found out by fetching everything, and followed by a repair.
func TestRepairOfWhatNoListTells(t *testing.T) {
	for _, bare := range []bool{true, false} {
		b := newBench(t)
		s := b.src
		s.noHash, s.noLastmod, s.changes = bare, bare, false
		fill(s, 5)
		b.sync()
		b.sync() // what came without a promise is confirmed
		list := s.document(s.head(rs.ResourceList, rs.Meta{At: s.stateTime()}), func() (es []rs.Entry) {
			for _, k := range slices.Sorted(maps.Keys(s.bodies)) {
				es = append(es, s.entry(k, s.bodies[k], 1, rs.Meta{}))
			}
			return es
		}())
		xmlAt(s, listXML, string(list))
		s.bodies["e2.nt"] = []byte(nt("e2", "b", "2")) // as long as before
		if rep, err := b.open().Audit(context.Background(), AuditOptions{}); err != nil || rep.Equal == bare || bare && !untold(rep) {
			t.Fatalf("%+v %v", rep, err)
		}
		clear(s.requests)
		rep, err := b.open().Audit(context.Background(), AuditOptions{Depth: "origin"})
		if err != nil || rep.Different != 1 || rep.Named[0].Location != s.url("/set/r/e2.nt") || len(b.fetched()) != 5 {
			t.Fatalf("%+v %v", rep, err)
		}
		rep, err = b.open().Audit(context.Background(), AuditOptions{Depth: "origin", Repair: true})
		if err != nil {
			t.Fatal(err)
		}
		if bare {
			if !rep.Equal || rep.Repaired != 1 {
				t.Fatalf("%+v", rep)
			}
			b.equal()
			continue
		}
		// Its list promises a hash that it does not keep: the mirror stays as it was
		// promised, and the resource is pending.
		st, err := b.d.Status(context.Background())
		if rep.Equal || err != nil || st.Pending != 1 || !slices.Contains(b.mir.lines(graphA), nt("e2", "a")) {
			t.Fatalf("%+v %+v %v", rep, st, err)
		}
		s.bodies["e2.nt"] = []byte(nt("e2", "a", "2"))
		b.clock = b.clock.Add(time.Hour)
		if rep := b.sync(); !rep.InSync {
			t.Fatalf("%+v", rep)
		}
		b.equal()
	}
}

// A mirror's graph that was saved and loaded again holds what the store had shown,
// in the form shown; what the source deletes then goes all the same.
func TestDeletesAfterReload(t *testing.T) {
	ctx := context.Background()
	for name, get := range realMirrors {
		t.Run(name, func(t *testing.T) {
			e, graph := get(t)
			c := clientOf(t, e)
			b := newBench(t)
			cfg := b.cfg
			cfg.GraphIRI = graph
			d, err := Open(ctx, b.store, sparqlsink.Of(c), cfg, keep.Options{})
			if err != nil {
				t.Fatal(err)
			}
			var all strings.Builder
			for _, o := range []string{"1^decimal", "2.0^decimal", "3.10^decimal", "5.^decimal", "-7^decimal", "8.000^decimal", "01^integer", "1.50^double", "1^boolean"} {
				lexical, datatype, _ := strings.Cut(o, "^")
				all.WriteString(`<http://ex.org/a> <http://ex.org/p> "` + lexical + `"^^<http://www.w3.org/2001/XMLSchema#` + datatype + "> .\n")
			}
			b.src.put("a.nt", all.String())
			b.src.put("b.nt", nt("b", "x"))
			if rep, err := d.Sync(ctx, SyncOptions{}); err != nil || !rep.InSync {
				t.Fatalf("%+v %v", rep, err)
			}
			shown, err := c.Select(ctx, "SELECT ?s ?p ?o WHERE { GRAPH <"+graph+"> { ?s ?p ?o } }")
			if err != nil {
				t.Fatal(err)
			}
			var saved []byte
			for row, err := range shown.Rows {
				if err != nil {
					t.Fatal(err)
				}
				saved = rdfres.Triple{S: row[0], P: row[1], O: row[2]}.AppendLine(saved)
			}
			if err := c.Update(ctx, "DROP GRAPH <"+graph+"> ; INSERT DATA { GRAPH <"+graph+"> {\n"+string(saved)+"} }"); err != nil {
				t.Fatal(err)
			}
			b.src.put("a.nt", nt("a", "left"))
			if rep, err := d.Sync(ctx, SyncOptions{}); err != nil || !rep.InSync {
				t.Fatalf("%+v %v", rep, err)
			}
			if rep, err := d.Audit(ctx, AuditOptions{}); err != nil || !rep.Equal {
				t.Errorf("%+v %v", rep, err)
			}
			// What somebody else wrote is shown otherwise, too.
			if err := c.Update(ctx, "PREFIX x: <http://www.w3.org/2001/XMLSchema#> INSERT DATA { GRAPH <"+graph+"> { <http://ex.org/b> <http://ex.org/p> 77.50, 3.00, 100.0, '100'^^x:decimal, 0.000, '-1.500'^^x:decimal, '+04.2'^^x:decimal, 123456789.1230000 } }"); err != nil {
				t.Fatal(err)
			}
			if rep, err := d.Audit(ctx, AuditOptions{}); err != nil || rep.Equal {
				t.Errorf("%+v %v", rep, err)
			}
			if rep, err := d.Audit(ctx, AuditOptions{Repair: true}); err != nil || !rep.Equal {
				t.Errorf("%+v %v", rep, err)
			}
		})
	}
}
