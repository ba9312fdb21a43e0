package destination

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/destination/sink"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/rdfres"
)

// backup copies the whole state.
func (b *bench) backup() (pairs []kv.Pair) {
	b.t.Helper()
	for p, err := range b.store.Scan(b.t.Context(), []byte{0}, []byte{0xff}) {
		if err != nil {
			b.t.Fatal(err)
		}
		pairs = append(pairs, kv.Pair{Key: slices.Clone(p.Key), Value: slices.Clone(p.Value)})
	}
	return pairs
}

// restore makes the state what it was.
func (b *bench) restore(pairs []kv.Pair) {
	b.t.Helper()
	batch := b.store.Batch()
	defer batch.Close()
	batch.DeleteRange([]byte{0}, []byte{0xff})
	for _, p := range pairs {
		batch.Set(p.Key, p.Value)
	}
	if err := batch.Commit(b.t.Context(), true); err != nil {
		b.t.Fatal(err)
	}
}

// lose makes the state an empty one.
func (b *bench) lose() {
	b.t.Helper()
	b.store = newStore(b.t)
}

// graphLines are the triples of all graphs but those of rsbridge.
func (m *testMirror) graphLines() (out []string) {
	m.mu.Lock()
	var graphs []string
	for g := range m.graphs {
		if !strings.HasPrefix(g, sink.StateGraph) {
			graphs = append(graphs, g)
		}
	}
	m.mu.Unlock()
	for _, g := range graphs {
		out = append(out, m.lines(g)...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// owned are the graphs that a mark owns in the mirror, of any mark if it is "".
func (m *testMirror) owned(mark string) (out []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for t := range m.graphs[sink.StateGraph] {
		if t.P == rdfres.NewIRI(graphOwner) && (mark == "" || t.O == rdfres.NewIRI(mark)) {
			out = append(out, t.S.IRI())
		}
	}
	slices.Sort(out)
	return out
}

// equalGraphs is equal with a graph for each entity; what is owned has a graph.
func (b *bench) equalGraphs() {
	b.t.Helper()
	b.same(b.mir.graphLines(), b.src.want())
	rep, err := b.open().Audit(context.Background(), AuditOptions{})
	if err != nil || !rep.Equal {
		b.t.Fatalf("audit is not equal: %+v %v", rep, err)
	}
	if !b.mir.noUpdate {
		b.ownedIsRecorded()
	}
}

func (b *bench) ownedIsRecorded() {
	b.t.Helper()
	var want []string
	snap := b.store.Snapshot(b.t.Context())
	defer snap.Close()
	for r, err := range ledger.GraphRecords(b.t.Context(), snap, b.d.mem.Space) {
		if err != nil {
			b.t.Fatal(err)
		}
		if r.Dest == b.d.mem.Dest {
			want = append(want, r.Graph)
		}
	}
	slices.Sort(want)
	if got := b.mir.owned(b.d.mirror.Mark); !slices.Equal(got, want) {
		b.t.Fatalf("owned in the mirror %q, recorded %q", got, want)
	}
}

// A graph that was written after a backup of the state, and that the source has
// deleted by the time the backup is restored, goes; also when it was created and
// deleted in one Change List.
func TestRestoredStateDropsGraphs(t *testing.T) {
	for _, template := range []string{"", "http://mirror.example/{entity}"} {
		for _, atomic := range []bool{true, false} {
			b := newBench(t)
			b.cfg.Graph, b.cfg.GraphIRI = "per-entity", template
			if b.caps.Transactional = atomic; !atomic {
				b.caps.UpdateTriples = 2
			}
			fill(b.src, 20)
			b.sync()
			b.equalGraphs()
			pairs := b.backup()
			b.src.put("new.nt", nt("new", "1", "2"))
			b.sync()
			b.equalGraphs()
			b.restore(pairs)
			b.src.remove("new.nt")
			rep, err := b.open().Audit(context.Background(), AuditOptions{})
			if err != nil || rep.Equal || rep.Extra != 1 || rep.Named[0].Entity != "http://ex.org/new" {
				t.Fatalf("%+v %v", rep, err)
			}
			b.sync()
			b.equalGraphs()

			b.restore(pairs) // and by a repair
			rep, err = b.open().Audit(context.Background(), AuditOptions{Repair: true})
			if err != nil || !rep.Equal {
				t.Fatalf("%+v %v", rep, err)
			}
			b.equalGraphs()

			b.restore(pairs)
			b.src.put("other.nt", nt("other", "1"))
			b.sync()
			b.restore(pairs)
			b.src.remove("other.nt")
			rep, err = b.open().Audit(context.Background(), AuditOptions{Repair: true})
			if err != nil || !rep.Equal || rep.Repaired == 0 {
				t.Fatalf("%+v %v", rep, err)
			}
			b.equalGraphs()
		}
	}
}

// A batch that was under way when the backup was made does not hide, when it is
// done again, that the mirror is ahead.
func TestRestoredStateWithBatchUnderWay(t *testing.T) {
	for _, layout := range []string{"single", "per-entity"} {
		b := newBench(t)
		if b.cfg.Graph = layout; layout == "per-entity" {
			b.cfg.GraphIRI = ""
		}
		fill(b.src, 5)
		b.sync()
		b.src.put("x.nt", nt("x", "1"))
		d := b.open()
		d.mem.Crash = cutAt("intent")
		if _, err := d.Sync(context.Background(), SyncOptions{}); err == nil {
			t.Fatal("no crash")
		}
		pairs := b.backup()
		b.sync()
		b.src.put("new.nt", nt("new", "1"))
		b.sync()
		b.src.put("e1.nt", nt("e1", "z"))
		b.sync()
		b.restore(pairs)
		b.src.remove("new.nt")
		if rep := b.sync(); !rep.InSync {
			t.Fatalf("%+v", rep)
		}
		if layout == "single" {
			b.equal()
		} else {
			b.equalGraphs()
		}
	}
}

// The records are lost: without adopt nothing is touched, with it the mirror is
// taken over and what the source does not have any more goes.
func TestLostState(t *testing.T) {
	b := newBench(t)
	b.cfg.Graph, b.cfg.GraphIRI = "per-entity", "{entity}"
	fill(b.src, 6)
	b.src.put("gone.nt", nt("gone", "1"))
	b.sync()
	mark := b.d.mirror.Mark
	b.lose()
	b.src.remove("gone.nt")
	before := b.mir.graphLines()
	if _, err := b.open().Sync(context.Background(), SyncOptions{}); err == nil || !strings.Contains(err.Error(), "adopt: true") {
		t.Fatal(err)
	}
	b.same(b.mir.graphLines(), before)
	b.cfg.Adopt = true
	if rep, err := b.open().Sync(context.Background(), SyncOptions{DryRun: true}); err != nil || b.d.mirror.Mark == mark {
		t.Fatalf("%+v %v", rep, err)
	}
	d := b.open()
	d.mem.Crash = cutAt("written")
	if _, err := d.Sync(context.Background(), SyncOptions{}); err == nil {
		t.Fatal("no crash")
	}
	if rep := b.sync(); !rep.InSync || b.d.mirror.Mark != mark {
		t.Fatalf("%+v", rep)
	}
	b.equalGraphs()
	b.cfg.Adopt = false
	b.sync()
	b.equalGraphs()
}

// What one destination owns is not another's, of the same state or of another.
func TestOwnershipOfOthers(t *testing.T) {
	b := newBench(t)
	b.cfg.Graph, b.cfg.GraphIRI = "per-entity", ""
	fill(b.src, 4)
	b.sync()
	c := &bench{t: t, src: newTestSource(t), mir: b.mir, store: b.store, clock: b.clock, caps: b.caps, cfg: b.cfg}
	c.cfg.Name, c.cfg.Source = "second", c.src.url("/.well-known/resourcesync")
	c.src.put("c.nt", nt("c", "1"))
	c.sync()
	far := &bench{t: t, src: newTestSource(t), mir: b.mir, clock: b.clock, caps: b.caps, cfg: b.cfg}
	far.lose()
	far.cfg.Name, far.cfg.Source, far.cfg.Adopt = "far", far.src.url("/.well-known/resourcesync"), true
	far.src.put("far.nt", nt("far", "1"))
	far.src.put("e1.nt", nt("e1", "1", "a")) // owned by both
	far.sync()
	all := b.mir.graphLines()
	for _, x := range []*bench{b, c, far} {
		x.open()
		for _, full := range []bool{false, true} {
			if _, err := x.d.Sync(context.Background(), SyncOptions{Full: full}); err != nil {
				t.Fatal(err)
			}
		}
		if rep, err := x.d.Audit(context.Background(), AuditOptions{Repair: true}); err != nil || !rep.Equal {
			t.Fatalf("%s: %+v %v", x.cfg.Name, rep, err)
		}
		x.ownedIsRecorded()
	}
	b.same(b.mir.graphLines(), all)
	// Of a graph that another one owns too, only the ownership goes.
	pairs := far.backup()
	far.src.put("e2.nt", nt("e2", "a", "2"))
	far.sync()
	far.restore(pairs)
	far.src.remove("e2.nt")
	far.sync()
	far.ownedIsRecorded()
	b.same(b.mir.lines("http://ex.org/e2"), []string{nt("e2", "2"), nt("e2", "a")})
}

// A destination of one graph and one of a graph for each entity have one store, whichever
// is first. An entity that has the name of the other's graph is refused; where it was
// there before, only what it owns goes with it.
func TestLayoutsInOneStore(t *testing.T) {
	for _, first := range []string{"single", "per-entity", "adopts"} {
		t.Run(first, func(t *testing.T) {
			one := newBench(t)
			one.cfg.GraphIRI = "http://ex.org/graph"
			fill(one.src, 4)
			each := &bench{t: t, src: newTestSource(t), mir: one.mir, store: one.store, clock: one.clock, caps: one.caps, cfg: one.cfg}
			each.cfg.Name, each.cfg.Source = "each", each.src.url("/.well-known/resourcesync")
			each.cfg.Graph, each.cfg.GraphIRI = "per-entity", "{entity}"
			fill(each.src, 3)
			switch first {
			case "single":
				one.sync()
				one.mir.exec("INSERT DATA { GRAPH <http://else.example/g> {\n" + nt("else", "1") + "} }")
				if _, err := each.open().Sync(context.Background(), SyncOptions{}); err == nil || !strings.Contains(err.Error(), "did not write") {
					t.Fatal(err)
				}
				one.mir.exec("DROP SILENT GRAPH <http://else.example/g>")
				each.sync()
			case "per-entity":
				each.sync()
				one.sync()
			case "adopts":
				each.src.put("graph.nt", nt("graph", "1"))
				each.sync()
				one.cfg.Adopt = true
				one.sync()
			}
			equal := func(x *bench) {
				t.Helper()
				if rep, err := x.open().Audit(context.Background(), AuditOptions{}); err != nil || !rep.Equal {
					t.Fatalf("%+v %v", rep, err)
				}
				one.same(one.mir.lines(one.cfg.GraphIRI), one.src.want())
			}
			if first != "adopts" {
				each.src.put("graph.nt", nt("graph", "1"))
				if rep := each.sync(); rep.Failed != 1 {
					t.Fatalf("%+v", rep)
				}
				for diff, err := range each.open().Differences(context.Background(), "") {
					if err != nil || !strings.Contains(diff.Detail, `is kept for destination "copy"`) {
						t.Fatalf("%+v %v", diff, err)
					}
				}
				equal(one)
			}
			each.src.put("e1.nt", nt("e1", "changed"))
			each.src.remove("e2.nt")
			each.src.remove("graph.nt")
			if rep := each.sync(); !rep.InSync {
				t.Fatalf("%+v", rep)
			}
			equal(one)
			equal(each)
			each.ownedIsRecorded()
			if lines := one.mir.lines("http://ex.org/e1"); len(lines) != 1 || len(one.mir.lines("http://ex.org/e2")) > 0 {
				t.Fatal(lines)
			}
		})
	}
}

// A mirror without its ownership gets it again; that is no difference. A name without a
// graph is none either.
func TestOwnershipIsMade(t *testing.T) {
	b := newBench(t)
	b.cfg.Graph, b.cfg.GraphIRI = "per-entity", ""
	fill(b.src, 7)
	b.sync()
	b.ownedIsRecorded()
	strip := func(all bool) {
		for _, g := range b.mir.owned("") {
			b.mir.exec("DELETE DATA { GRAPH <" + sink.StateGraph + "> {\n<" + g + "> <" + graphOwner + "> <" + b.d.mirror.Mark + "> .\n} }")
		}
		if all {
			b.mir.exec("DROP SILENT GRAPH <" + sink.StateGraph + ">")
		}
	}
	strip(true)
	b.sync()
	b.equalGraphs()
	strip(false)
	if rep, err := b.open().Audit(context.Background(), AuditOptions{}); err != nil || !rep.Equal || len(b.mir.owned("")) > 0 {
		t.Fatalf("%+v %v", rep, err)
	}
	if rep, err := b.open().Sync(context.Background(), SyncOptions{Full: true}); err != nil || !rep.InSync {
		t.Fatalf("%+v %v", rep, err)
	}
	b.equalGraphs()
	b.mir.exec("INSERT DATA { GRAPH <" + sink.StateGraph + "> {\n<http://ex.org/nothing> <" + graphOwner + "> <" + b.d.mirror.Mark + "> .\n} }")
	if rep, err := b.open().Audit(context.Background(), AuditOptions{}); err != nil || !rep.Equal {
		t.Fatalf("%+v %v", rep, err)
	}
	if rep, err := b.open().Audit(context.Background(), AuditOptions{Repair: true}); err != nil || !rep.Equal {
		t.Fatalf("%+v %v", rep, err)
	}
	b.equalGraphs()
}
