package destination

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/destination/keep"
	"github.com/rsbridge/rsbridge/destination/sink/sparqlsink"
	"github.com/rsbridge/rsbridge/rdfres"
)

// A map turns each description into another vocabulary; patches, audits of every
// depth and repair hold, and another map makes everything anew.
func TestMap(t *testing.T) {
	for _, ours := range []bool{true, false} {
		b := newBench(t)
		s := b.src
		s.ours, s.inventory, s.patches = ours, ours, map[string][]byte{}
		to := func(p string) string {
			return "CONSTRUCT { ?entity <http://cat.example/" + p + "> ?v . ?entity <http://cat.example/in> _:c . _:c a <http://cat.example/Record> } WHERE { ?entity <http://ex.org/v> ?v }"
		}
		names := func() (out []string) {
			for k := range s.bodies {
				out = append(out, k)
			}
			return out
		}
		check := func(p string) {
			t.Helper()
			var plain []string
			for _, l := range b.mir.lines(graphA) {
				if strings.Contains(l, "cat.example/"+p+">") {
					plain = append(plain, strings.Replace(l, "cat.example/"+p, "ex.org/v", 1))
				} else if p != "" && !strings.Contains(l, "_:rsb") {
					t.Errorf("in the mirror: %s", l)
				}
			}
			b.same(plain, s.want())
			if n := strings.Count(strings.Join(b.mir.lines(graphA), ""), "cat.example/Record"); n < len(names()) {
				t.Errorf("%d records", n)
			}
			for _, depth := range []string{"inventory", "store", "origin"} {
				rep, err := b.open().Audit(context.Background(), AuditOptions{Depth: depth})
				if err != nil || !rep.Equal {
					t.Fatalf("%s: %+v %v", depth, rep, err)
				}
			}
		}
		b.cfg.Map = to("p")
		fill(s, 6)
		if rep := b.sync(); !rep.InSync || rep.Created != 6 {
			t.Fatalf("%+v", rep)
		}
		check("p")
		s.put("e1.nt", nt("e1", "a", "1", "and more"))
		s.remove("e2.nt")
		if rep := b.sync(); !rep.InSync || rep.Updated != 1 || rep.Deleted != 1 {
			t.Fatalf("%+v", rep)
		}
		check("p")
		// damage in the mirror
		var some rdfres.Triple
		for t := range b.mir.graphs[graphA] {
			some = t
			break
		}
		delete(b.mir.graphs[graphA], some)
		if rep, err := b.open().Audit(context.Background(), AuditOptions{Repair: true}); err != nil || !rep.Equal || rep.Repaired != 1 {
			t.Fatalf("%+v %v", rep, err)
		}
		check("p")
		before := b.mir.lines(graphA)
		b.cfg.Map = to("q")
		if rep := b.sync(); !rep.InSync || rep.Updated != 5 || !strings.Contains(rep.Why, "the map was changed") {
			t.Fatalf("%+v", rep)
		}
		check("q")
		if rep := b.sync(); rep.Updated != 0 {
			t.Fatalf("%+v", rep)
		}
		b.cfg.Map = to("p")
		b.sync()
		if got := b.mir.lines(graphA); !slices.Equal(got, before) {
			t.Errorf("blank nodes have other names: %v, before %v", got, before)
		}
		b.cfg.Map = ""
		if rep := b.sync(); !rep.InSync {
			t.Fatalf("%+v", rep)
		}
		b.equal()
	}
}

// Another map that could not be begun with is not forgotten.
func TestMapBegunAgain(t *testing.T) {
	b := newBench(t)
	b.src.ours = true
	fill(b.src, 4)
	b.sync()
	b.cfg.Map = "CONSTRUCT { ?entity <http://cat.example/p> ?v } WHERE { ?entity <http://ex.org/v> ?v }"
	b.mir.refuse = func(string) int { return 507 }
	if rep, err := b.open().Sync(context.Background(), SyncOptions{}); err == nil {
		t.Fatalf("%+v", rep)
	}
	b.mir.refuse = nil
	if rep := b.sync(); !rep.InSync || rep.Updated != 4 {
		t.Fatalf("%+v", rep)
	}
	for _, l := range b.mir.lines(graphA) {
		if !strings.Contains(l, "cat.example/p>") {
			t.Errorf("in the mirror: %s", l)
		}
	}
	if rep := b.sync(); !rep.InSync || rep.Mode != "none" {
		t.Fatalf("%+v", rep)
	}
}

func TestMapRefused(t *testing.T) {
	b := newBench(t)
	for _, bad := range []string{"nonsense", "SELECT * WHERE { ?s ?p ?o }"} {
		b.cfg.Map = bad
		if _, err := Open(context.Background(), b.store, sparqlsink.Of(b.mir.client()), b.cfg, keep.Options{}); err == nil || !strings.Contains(err.Error(), "map: ") {
			t.Errorf("%s: %v", bad, err)
		}
	}
	// A description that the map cannot make anything right of fails alone.
	b.cfg.Map = "CONSTRUCT { ?entity <http://cat.example/p> ?v } WHERE { ?entity <http://ex.org/v> ?v }"
	fill(b.src, 3)
	b.src.put("none.nt", fmt.Sprintf("<http://ex.org/none> <http://ex.org/other> %q .\n", "x"))
	if rep := b.sync(); !rep.InSync || rep.Created != 4 {
		t.Errorf("%+v", rep)
	}
	if rep := b.sync(); !rep.InSync || rep.Updated != 0 {
		t.Errorf("%+v", rep)
	}
}

// A description of which a map makes nothing is no fault, and is told.
func TestMapMakesNothing(t *testing.T) {
	b := newBench(t)
	s := b.src
	b.cfg.Map = `CONSTRUCT { ?entity <http://cat.example/p> ?v } WHERE { ?entity <http://ex.org/v> ?v . FILTER(?v != "nothing") }`
	fill(s, 4)
	s.put("e1.nt", nt("e1", "nothing"))
	s.put("e2.nt", nt("e2", "nothing"))
	check := func(rep SyncReport, met int64, names ...string) {
		t.Helper()
		if !rep.InSync || rep.Unmapped != met {
			t.Fatalf("%+v", rep)
		}
		d := b.open()
		st, err := d.Status(context.Background())
		if err != nil || st.Unmapped != int64(len(names)) || !st.InSync || st.Pending != 0 {
			t.Fatalf("%+v %v", st, err)
		}
		var got []string
		for _, diff := range differences(t, d) {
			if diff.Kind != "unmapped" {
				t.Fatalf("%+v", diff)
			}
			got = append(got, strings.TrimPrefix(diff.Entity, "http://ex.org/"))
		}
		if slices.Sort(got); !slices.Equal(got, names) {
			t.Fatalf("%q", got)
		}
		if rep, err := b.open().Audit(context.Background(), AuditOptions{}); err != nil || !rep.Equal {
			t.Fatalf("%+v %v", rep, err)
		}
	}
	check(b.sync(), 2, "e1", "e2")
	s.put("e1.nt", nt("e1", "something"))
	s.put("e3.nt", nt("e3", "nothing"))
	check(b.sync(), 1, "e2", "e3")
	s.remove("e2.nt")
	check(b.sync(), 0, "e3")
	b.cfg.Map = ""
	check(b.sync(), 0)
}

// An expression of a map that has no value is told, with one description; what is made
// without it is kept.
func TestMapWithoutValue(t *testing.T) {
	b := newBench(t)
	b.cfg.Map = `CONSTRUCT { ?entity <http://cat.example/p> ?v } WHERE { ?entity <http://ex.org/v> ?v . FILTER(<http://www.w3.org/2001/XMLSchema#integer>(?v) != 7) }`
	b.src.put("e1.nt", nt("e1", "1"))
	b.src.put("e2.nt", nt("e2", "2", "soon"))
	rep := b.sync()
	if !rep.InSync || rep.Created != 2 || rep.MapErrors != 1 || !strings.Contains(rep.MapError, "e2.nt: ") || !strings.HasSuffix(rep.MapError, `#integer>("soon")`) {
		t.Errorf("%+v", rep)
	}
	if got := b.mir.lines(graphA); len(got) != 2 {
		t.Errorf("the mirror holds %v", got)
	}
	if rep := b.sync(); rep.MapErrors != 0 || rep.Created+rep.Updated != 0 {
		t.Errorf("nothing changed: %+v", rep)
	}
}
