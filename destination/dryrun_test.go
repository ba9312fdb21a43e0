package destination

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/destination/keep"
	"github.com/rsbridge/rsbridge/destination/sink/sparqlsink"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/internal/teststores"
	"github.com/rsbridge/rsbridge/rdfres"
)

// state is everything that a sync may write.
func (b *bench) state() (records []kv.Pair, graphs map[string]map[rdfres.Triple]bool) {
	b.t.Helper()
	for p, err := range b.store.Scan(b.t.Context(), []byte{0}, nil) {
		if err != nil {
			b.t.Fatal(err)
		}
		records = append(records, kv.Pair{Key: bytes.Clone(p.Key), Value: bytes.Clone(p.Value)})
	}
	graphs = map[string]map[rdfres.Triple]bool{}
	for g, ts := range b.mir.graphs {
		graphs[g] = maps.Clone(ts)
	}
	return records, graphs
}

// dry makes a dry run, which must leave nothing.
func (b *bench) dry(o SyncOptions) SyncReport {
	b.t.Helper()
	d := b.open()
	records, graphs := b.state()
	writes := b.mir.updates + b.mir.posts
	o.DryRun = true
	rep, err := d.Sync(context.Background(), o)
	if err != nil {
		b.t.Fatalf("dry run: %v (%s)", err, rep.Why)
	}
	after, graphsAfter := b.state()
	if !slices.EqualFunc(records, after, func(p, q kv.Pair) bool { return bytes.Equal(p.Key, q.Key) && bytes.Equal(p.Value, q.Value) }) {
		b.t.Fatal("a dry run has written records")
	}
	if n := b.mir.updates + b.mir.posts - writes; n != 0 || !maps.EqualFunc(graphs, graphsAfter, maps.Equal[map[rdfres.Triple]bool, map[rdfres.Triple]bool]) {
		b.t.Fatalf("a dry run has written %d times into the mirror", n)
	}
	if rep.Plan == nil || rep.Plan.Store != "mirror" || rep.Plan.Graph != graphA {
		b.t.Fatalf("plan: %+v", rep.Plan)
	}
	return rep
}

// foretold fails unless the next sync does what a dry run says.
func (b *bench) foretold(what string, o SyncOptions) (dry, real SyncReport) {
	b.t.Helper()
	dry = b.dry(o)
	real, err := b.open().Sync(context.Background(), o)
	if err != nil {
		b.t.Fatal(err)
	}
	// A change that a list or dump holds already is met again as unchanged.
	if dry.Mode != real.Mode || dry.Created != real.Created || dry.Updated != real.Updated || dry.Deleted != real.Deleted || dry.Moved != real.Moved || dry.Held != real.Held {
		b.t.Fatalf("%s\ndry  %+v\nreal %+v", what, dry, real)
	}
	if st, err := b.d.Status(context.Background()); err != nil || dry.Plan.Resources != nil && *dry.Plan.Resources != st.Resources {
		b.t.Fatalf("%s: %d resources were foretold: %+v %v", what, *dry.Plan.Resources, st, err)
	}
	return dry, real
}

func TestDryRun(t *testing.T) {
	for _, kind := range []string{"list", "index", "dump", "dump-contents", "ours", "ours-dump", "parts", "list-only", "dump-only", "dump-contents-only", "changes-only", "dumps"} {
		if teststores.Unraced(t, 5) {
			continue
		}
		t.Run(kind, func(t *testing.T) {
			b := newBench(t)
			s := b.src
			switch kind {
			case "index":
				s.parts = 3
			case "dump":
				s.dump = true
			case "dump-contents":
				s.dump, s.contents = true, true
			case "ours":
				s.ours = true
			case "ours-dump":
				s.ours, s.dump, s.contents = true, true, true
			case "parts":
				s.changeParts = 4
			case "list-only":
				s.changes = false
			case "dump-only":
				s.changes, s.list, s.dump = false, false, true
			case "dump-contents-only":
				s.changes, s.list, s.dump, s.contents = false, false, true, true
			case "dumps":
				s.changes, s.list, s.dump, s.contents, s.changeDump = false, false, true, true, true
			case "changes-only":
				s.list = false
			}
			fill(s, 12)
			unknown := kind == "dump-only"
			if unknown {
				rep := b.dry(SyncOptions{})
				if p := rep.Plan; rep.Mode != "baseline" || p.Resources != nil || p.Bytes == 0 || len(p.Documents) != 1 || p.Documents[0].Kind != "resourcedump" {
					t.Fatalf("%+v %+v", rep, p)
				}
				b.sync()
				return
			}
			dry, _ := b.foretold("baseline", SyncOptions{})
			p := dry.Plan
			if dry.Created != 12 || *p.Resources != 12 || p.Bytes == 0 || dry.Bytes != p.Bytes || dry.InSync {
				t.Fatalf("%+v %+v", dry, p)
			}
			wants := map[string][]string{"dump": {"resourcedump 1", "resourcelist 12"}, "dump-contents": {"resourcedump 1"}, "ours-dump": {"resourcedump 1"}, "dump-contents-only": {"resourcedump 1"}, "dumps": {"resourcedump 1"}, "changes-only": {"changelist 12"}}
			want := wants[kind]
			if want == nil {
				want = []string{"resourcelist 12"}
			}
			if got := kinds(p); !slices.Equal(got[:len(want)], want) {
				t.Fatalf("documents: %v", got)
			}
			b.equal()
			if dry, _ = b.foretold("nothing new", SyncOptions{}); dry.Mode != "none" || len(dry.Plan.Documents) != 0 || dry.Plan.Bytes != 0 || !dry.InSync {
				t.Fatalf("%+v %+v", dry, dry.Plan)
			}
			s.put("e3.nt", nt("e3", "changed"))
			s.put("new.nt", nt("new", "n"))
			s.remove("e4.nt")
			s.put("e5.nt", nt("e5", "1"))
			s.put("e5.nt", nt("e5", "2"))
			dry, _ = b.foretold("changes", SyncOptions{})
			if dry.Created != 1 || dry.Updated != 2 || dry.Deleted != 1 || dry.Plan.Bytes != int64(len(nt("e3", "changed"))+len(nt("new", "n"))+len(nt("e5", "2"))) && kind != "dump-contents-only" && kind != "dumps" {
				t.Fatalf("%+v %+v", dry, dry.Plan)
			}
			if got, want := kinds(dry.Plan), []string{"changelist 5"}; s.changes && s.changeParts == 0 && !slices.Equal(got, want) {
				t.Fatalf("documents: %v", got)
			}
			b.equal()
			b.foretold("full", SyncOptions{Full: true})
			b.equal()
		})
	}
}

func kinds(p *Plan) (out []string) {
	for _, d := range p.Documents {
		out = append(out, fmt.Sprint(d.Kind, " ", d.Entries))
	}
	return out
}

// Changes after the dump come on top of it.
func TestDryRunChangesAfterDump(t *testing.T) {
	b := newBench(t)
	s := b.src
	s.dump, s.contents, s.ours = true, true, true
	fill(s, 12)
	s.freezeDump()
	s.put("new.nt", nt("new", "n"))
	s.put("e1.nt", nt("e1", "changed"))
	s.remove("e2.nt")
	dry, _ := b.foretold("baseline", SyncOptions{})
	if got := kinds(dry.Plan); !slices.Equal(got, []string{"resourcedump 1", "changelist 3"}) || dry.Created != 13 || dry.Updated != 1 || dry.Deleted != 1 {
		t.Fatalf("%v %+v", got, dry)
	}
	b.equal()
}

// A first dry run over a store that was never probed does not write to find out.
func TestDryRunUnprobed(t *testing.T) {
	b := newBench(t)
	fill(b.src, 3)
	client := b.mir.client()
	d, err := Open(context.Background(), b.store, sparqlsink.Of(client), b.cfg, keep.Options{})
	if err != nil {
		t.Fatal(err)
	}
	rep, err := d.Sync(context.Background(), SyncOptions{DryRun: true})
	if err != nil || rep.Created != 3 || b.mir.updates+b.mir.posts > 0 {
		t.Fatalf("%+v %v, %d updates, %d posts", rep, err, b.mir.updates, b.mir.posts)
	}
}

// A dry run after the state was lost tells the plan of the sync, though nothing tells yet whose the triples
// of the mirror are.
func TestDryRunOfLostState(t *testing.T) {
	b := newQuietBench(t)
	fill(b.src, 5)
	b.sync()
	b.src.put("e1.nt", nt("e1", "another"))
	b.src.remove("e2.nt")
	b.store = teststores.Records(b.t)
	dry, _ := b.foretold("lost state", SyncOptions{})
	if dry.Mode != "baseline" || dry.Created != 4 || dry.InSync || !strings.Contains(dry.Why, "everything in the mirror would be compared") {
		t.Errorf("%+v", dry)
	}
	b.equal()
}

// What a gap, a move, a restored mirror or another map would lead to is foretold.
func TestDryRunOfComparisons(t *testing.T) {
	for _, what := range []string{"gap", "moved", "held", "mirror", "map", "until"} {
		t.Run(what, func(t *testing.T) {
			b := newBench(t)
			s := b.src
			s.ours = true
			fill(s, 30)
			b.sync()
			at := s.now
			s.put("e1.nt", nt("e1", "changed"))
			s.put("new.nt", nt("new", "n"))
			mode := "baseline"
			switch what {
			case "gap":
				s.drop = len(s.log) - 1
			case "moved":
				s.drop, s.folder = len(s.log)-1, "/set/elsewhere/"
			case "held":
				for i := range 25 {
					s.remove(fmt.Sprintf("e%d.nt", i+2))
				}
				s.drop = len(s.log) - 1
			case "mirror":
				mode = "incremental"
				clear(b.mir.graphs)
			case "map":
				b.cfg.Map = "CONSTRUCT { ?entity <http://ex.org/w> ?v } WHERE { ?entity <http://ex.org/v> ?v }"
			case "until":
				s.timegate = true
				b.sync()
				b.clock = s.now
				dry, _ := b.foretold(what, SyncOptions{Until: at})
				if dry.Updated != 1 || dry.Deleted != 1 {
					t.Fatalf("%+v", dry)
				}
				b.foretold("and back", SyncOptions{})
				b.equal()
				return
			}
			if what == "mirror" { // what the comparison finds is not foretold
				rep := b.dry(SyncOptions{})
				if rep.Mode != mode || rep.Updated != 1 || rep.Created != 1 {
					t.Fatalf("%+v", rep)
				}
				return
			}
			dry, _ := b.foretold(what, SyncOptions{})
			if dry.Mode != mode {
				t.Fatalf("%+v", dry)
			}
		})
	}
}
