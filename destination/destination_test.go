package destination

import (
	"github.com/rsbridge/rsbridge/destination/sink"
	"github.com/rsbridge/rsbridge/destination/sink/sparqlsink"

	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/destination/keep"
	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/internal/inproc"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/internal/kv/pebblekv"
	"github.com/rsbridge/rsbridge/internal/sparql"
	"github.com/rsbridge/rsbridge/internal/teststores"
	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/rdfres/codec"
)

const graphA = "http://mirror.example/g"

// bench is a source, a mirror and the records of a destination between them.
type bench struct {
	t     testing.TB
	src   *testSource
	mir   *testMirror
	store kv.Store
	cfg   keep.Config
	clock time.Time
	d     *Destination
	caps  sparql.Capabilities
	iris  sparqlsink.Rewrites
	fetch http.RoundTripper // nil: over connections
	few   int               // limits.few; 0: as it is
	sink  sink.Sink         // nil: the mirror is mir

	window int              // limits.window; 0: as it is
	now    func() time.Time // of a mirror in a sink of its own; nil: the machine's
	stays  bool             // a daemon: it is opened once
}

func newBench(t testing.TB) *bench {
	teststores.Third(t)
	return benchOf(t, newTestSource(t), newTestMirror(t), newStore(t))
}

// newStore is one on disk; with -short, as the race detector runs, it is in memory: the
// goroutines of Pebble are no matter of a destination, and cost more there than its own.
func newStore(t testing.TB) kv.Store {
	if testing.Short() || teststores.InPostgres() {
		return teststores.Records(t)
	}
	store, err := pebblekv.Open(t.Context(), t.TempDir(), pebblekv.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	return store
}

// newQuietBench has everything in this process: nothing waits outside of the test, so
// that its time can be virtual.
func newQuietBench(t testing.TB) *bench {
	src, mir := makeTestSource(t), makeTestMirror(t)
	src.srv, mir.srv = &httptest.Server{URL: "http://source.example"}, &httptest.Server{URL: "http://mirror.example"}
	b := benchOf(t, src, mir, teststores.Records(t))
	b.fetch, mir.transport = inproc.Transport{Handler: src}, inproc.Transport{Handler: mir}
	return b
}

func benchOf(t testing.TB, src *testSource, mir *testMirror, store kv.Store) *bench {
	b := &bench{t: t, src: src, mir: mir, store: store, clock: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)}
	b.cfg = keep.Config{Name: "copy", Source: b.src.url("/.well-known/resourcesync"), GraphIRI: graphA, TempDir: t.TempDir(), Concurrency: 4, MemoryBytes: 1 << 20}
	b.caps = sparql.Capabilities{Product: "test", Transactional: true, Writable: true, UpdateTriples: 50}
	return b
}

// remember stores what the probe of a mirror would have found.
func (b *bench) remember(e sparql.Endpoint) {
	b.t.Helper()
	target := e.Update
	if target == "" {
		target = e.GraphStore
	}
	raw, err := json.Marshal(probed{Findings: *sparqlsink.Findings(b.caps, b.iris)})
	if err != nil {
		b.t.Fatal(err)
	}
	batch := b.store.Batch()
	defer batch.Close()
	batch.Set(ledger.NameKey(ledger.KindProbe, sparql.WithoutToken(target)), raw)
	if err := batch.Commit(b.t.Context(), true); err != nil {
		b.t.Fatal(err)
	}
}

// storeMirror is the mirror of a destination in a store.
func storeMirror(d *Destination) *sparqlsink.Mirror {
	if g, ok := d.mirror.Learner.(*sparqlsink.Graph); ok {
		return g.Learner.(*sparqlsink.Mirror)
	}
	return d.mirror.Learner.(*sparqlsink.Opened).Learner.(*sparqlsink.Mirror)
}

// open opens the destination anew, as after a restart.
func (b *bench) open() *Destination {
	b.t.Helper()
	if b.stays && b.d != nil {
		return b.d
	}
	o := keep.Options{Transport: b.fetch, Now: func() time.Time { return b.clock }}
	to := b.sink
	if to == nil {
		client := b.mir.client()
		b.remember(client.Endpoint())
		to = sparqlsink.Of(client)
	}
	if os.Getenv("RSBRIDGE_TEST_LOG") != "" {
		o.Logger = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	d, err := Open(context.Background(), b.store, to, b.cfg, o)
	if err != nil {
		b.t.Fatal(err)
	}
	d.reads.Client.Sleep = func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
	d.lim.Attempts, d.lim.Dead = 2, 1000
	d.lim.KeptItems = 4 // lists of the tests are shorter and longer
	if b.few > 0 {
		d.lim.apply.Few = b.few
	}
	if b.window > 0 {
		d.lim.window = b.window
	}
	b.d = d
	return d
}

func (b *bench) sync() SyncReport {
	b.t.Helper()
	rep, err := b.open().Sync(context.Background(), SyncOptions{})
	if err != nil {
		b.t.Fatalf("sync: %v (%s)", err, rep.Why)
	}
	b.clock = b.clock.Add(time.Minute)
	return rep
}

// equal fails unless the mirror holds what the source has, and the audit says so.
func (b *bench) equal() {
	b.t.Helper()
	b.same(b.mir.lines(graphA), b.src.want())
	rep, err := b.open().Audit(context.Background(), AuditOptions{})
	if err == nil && untold(rep) {
		rep, err = b.open().Audit(context.Background(), AuditOptions{Depth: "origin"})
	}
	if err != nil {
		b.t.Fatal("audit:", err)
	}
	if !rep.Equal {
		b.t.Fatalf("audit is not equal: %+v", rep)
	}
}

// untold tells of an audit without findings that only the resources themselves can tell more.
func untold(rep keep.AuditReport) bool {
	return rep.Findings() == 0 && strings.Contains(rep.SourceError, "depth origin asks for each of them")
}

func (b *bench) same(got, want []string) {
	b.t.Helper()
	if slices.Equal(got, want) {
		return
	}
	for _, l := range want {
		if !slices.Contains(got, l) {
			b.t.Errorf("missing in the mirror: %s", l)
		}
	}
	for _, l := range got {
		if !slices.Contains(want, l) {
			b.t.Errorf("extra in the mirror: %s", l)
		}
	}
	b.t.FailNow()
}

func nt(entity string, values ...string) string {
	var s strings.Builder
	entity = strings.TrimSuffix(entity, ".nt")
	for _, v := range values {
		fmt.Fprintf(&s, "<http://ex.org/%s> <http://ex.org/v> \"%s\" .\n", entity, v)
	}
	return s.String()
}

func fill(s *testSource, n int) {
	for i := range n {
		s.put(fmt.Sprintf("e%d.nt", i), nt(fmt.Sprintf("e%d", i), "a", fmt.Sprint(i)))
	}
}

func TestBaselineAndChanges(t *testing.T) {
	for _, kind := range []string{"list", "index", "dump", "ours", "ours-dump", "ours-parts", "parts", "plain", "list-only", "list-only-plain", "dump-only", "changes-only"} {
		t.Run(kind, func(t *testing.T) {
			b := newBench(t)
			s := b.src
			switch kind {
			case "index":
				s.parts = 3
			case "dump":
				s.dump = true
			case "ours":
				s.ours = true
			case "ours-dump":
				s.ours, s.dump = true, true
			case "ours-parts":
				s.ours, s.changeParts, s.parts = true, 4, 2
			case "parts":
				s.changeParts = 4
			case "plain":
				s.noHash = true
			case "list-only":
				s.changes = false
			case "list-only-plain":
				s.changes, s.noHash, s.noLastmod = false, true, true
			case "dump-only":
				s.changes, s.list, s.dump = false, false, true
			case "changes-only":
				s.list = false
			}
			fill(s, 12)
			s.put("b.ttl", `<http://ex.org/b> <http://ex.org/p> [ <http://ex.org/q> "x", [ <http://ex.org/r> 1 ] ] .`)
			if s.ours {
				s.remove("b.ttl")
			}
			rep := b.sync()
			if rep.Mode != "baseline" || !rep.InSync || rep.Created < 12 {
				t.Fatalf("baseline: %+v", rep)
			}
			b.equal()
			rep = b.sync()
			if rep.Mode != "none" || !rep.InSync || rep.Created+rep.Updated+rep.Deleted != 0 {
				t.Fatalf("nothing new: %+v", rep)
			}
			s.put("e3.nt", nt("e3", "changed"))
			s.put("new.nt", nt("new", "n"))
			s.remove("e4.nt")
			s.put("e5.nt", nt("e5", "1"))
			s.put("e5.nt", nt("e5", "2"))
			s.remove("new.nt")
			s.put("new.nt", nt("new", "again"))
			rep = b.sync()
			if rep.Mode == "none" || !rep.InSync || rep.Created != 1 || rep.Updated != 2 || rep.Deleted != 1 {
				t.Fatalf("changes: %+v", rep)
			}
			b.equal()
			st, err := b.d.Status(context.Background())
			if err != nil || !st.InSync || st.Resources != int64(len(s.bodies)) || st.BehindSeconds == nil || *st.BehindSeconds != 0 {
				t.Fatalf("status: %+v %v", st, err)
			}
			if s.ours && (st.Sequence == nil || *st.Sequence != uint64(len(s.log))) {
				t.Fatalf("sequence %v of %d", st.Sequence, len(s.log))
			}
		})
	}
}

func TestSharedTriples(t *testing.T) {
	b := newBench(t)
	shared := "<http://ex.org/shared> <http://ex.org/name> \"both\" .\n"
	b.src.put("x.nt", nt("x", "1")+shared)
	b.src.put("y.nt", nt("y", "1")+shared)
	fill(b.src, 5)
	b.sync()
	b.src.remove("x.nt")
	b.sync()
	b.equal()
	if !slices.Contains(b.mir.lines(graphA), shared) {
		t.Fatal("the shared triple went with its first owner")
	}
	b.src.put("y.nt", nt("y", "2"))
	b.sync()
	b.equal()
	if slices.Contains(b.mir.lines(graphA), shared) {
		t.Fatal("the shared triple stayed after its last owner")
	}
}

// Two destinations of one state write into one graph; a triple that both have
// stays until both have lost it.
func TestTwoDestinationsOneGraph(t *testing.T) {
	b := newBench(t)
	other := newBench(t)
	c := &bench{t: t, src: other.src, mir: b.mir, store: b.store, cfg: other.cfg, clock: b.clock, caps: b.caps}
	c.cfg.Name = "second"
	shared := "<http://ex.org/shared> <http://ex.org/name> \"both\" .\n"
	b.src.put("x.nt", shared)
	fill(b.src, 3)
	other.src.put("y.nt", shared+nt("y", "1"))
	b.sync()
	c.sync()
	union := func() []string {
		u := slices.Concat(b.src.want(), other.src.want())
		slices.Sort(u)
		return slices.Compact(u)
	}
	b.same(b.mir.lines(graphA), union())
	b.src.put("x.nt", nt("x", "1"))
	b.sync()
	b.same(b.mir.lines(graphA), union())
	for _, d := range []*Destination{b.open(), c.open()} {
		rep, err := d.Audit(context.Background(), AuditOptions{})
		if err != nil || !rep.Equal {
			t.Fatal(rep, err)
		}
	}
	other.src.put("y.nt", nt("y", "2"))
	c.sync()
	b.same(b.mir.lines(graphA), union())
}

// What stands in a mirror of a batch that was cut off is told by the audit of another
// destination with its cause, until that destination ends it.
func TestAuditBesideACutOffBatch(t *testing.T) {
	b := newBench(t)
	other := newBench(t)
	c := &bench{t: t, src: other.src, mir: b.mir, store: b.store, cfg: other.cfg, clock: b.clock, caps: b.caps}
	c.cfg.Name = "second"
	fill(b.src, 3)
	other.src.put("y.nt", nt("y", "1"))
	b.sync()
	c.sync()
	other.src.put("z.nt", nt("z", "2"))
	d := c.open()
	d.mem.Crash = cutAt("written")
	if _, err := d.Sync(t.Context(), SyncOptions{}); err == nil {
		t.Fatal("not cut off")
	}
	rep, err := b.open().Audit(t.Context(), AuditOptions{})
	if err != nil || rep.Equal || len(rep.Named) != 1 || !strings.Contains(rep.Named[0].Detail, `destination "second" writes into the same graph`) {
		t.Errorf("%+v %v", rep, err)
	}
	c.sync()
	if rep, err := b.open().Audit(t.Context(), AuditOptions{}); err != nil || !rep.Equal {
		t.Errorf("%+v %v", rep, err)
	}
}

// What the store has made of a literal of one destination is neither told nor
// removed by the audit of another, in one graph as in graphs beside each other.
func TestTwoDestinationsRewritten(t *testing.T) {
	for _, layout := range []string{"single", "per-entity"} {
		t.Run(layout, func(t *testing.T) {
			b := newBench(t)
			b.mir.rewrite = func(tr rdfres.Triple) rdfres.Triple {
				if lex, lang, dt := tr.O.Literal(); tr.O.Kind() == rdfres.KindLiteral && strings.HasPrefix(lex, "odd") {
					tr.O = rdfres.NewLiteral(strings.ToUpper(lex), lang, dt)
				}
				return tr
			}
			other := newBench(t)
			c := &bench{t: t, src: other.src, mir: b.mir, store: b.store, cfg: other.cfg, clock: b.clock, caps: b.caps}
			c.cfg.Name = "second"
			if layout == "per-entity" {
				for _, x := range []*bench{b, c} {
					x.src.ours = true
					x.cfg.Graph, x.cfg.GraphIRI, x.cfg.Adopt = layout, "http://mirror.example/"+x.cfg.Name+"/{entity}", true
				}
			}
			fill(b.src, 3)
			c.src.put("odd.nt", nt("odd", "odd one", "even"))
			for _, x := range []*bench{b, c} {
				x.sync()
			}
			for _, repair := range []bool{false, true} {
				if a, err := b.open().Audit(t.Context(), AuditOptions{Repair: repair}); err != nil || !a.Equal || a.Repaired != 0 {
					t.Fatalf("the other's: %+v %v", a, err)
				}
			}
			if a, err := c.open().Audit(t.Context(), AuditOptions{}); err != nil || a.Different != 1 {
				t.Fatalf("%+v %v", a, err)
			}
			if a, err := c.open().Audit(t.Context(), AuditOptions{Repair: true}); err != nil || !a.Equal || a.Rewritten != 1 {
				t.Fatalf("%+v %v", a, err)
			}
			if a, err := b.open().Audit(t.Context(), AuditOptions{}); err != nil || !a.Equal || a.Rewritten != 0 {
				t.Fatalf("the other's, known: %+v %v", a, err)
			}
		})
	}
}

func TestPerEntityGraphs(t *testing.T) {
	b := newBench(t)
	b.src.ours = true
	b.cfg.Graph, b.cfg.GraphIRI = "per-entity", "http://mirror.example/{entity}"
	fill(b.src, 6)
	if rep := b.sync(); !rep.InSync {
		t.Fatalf("%+v", rep)
	}
	want := func() {
		t.Helper()
		for i := range 6 {
			name := fmt.Sprintf("e%d", i)
			got := b.mir.lines("http://mirror.example/http://ex.org/" + name)
			ts, _ := codec.Decode(rdfres.NTriples, b.src.bodies[name+".nt"], rdfres.ReadOptions{})
			var lines []string
			for _, tr := range rdfres.SortUnique(ts) {
				lines = append(lines, string(tr.AppendLine(nil)))
			}
			b.same(got, lines)
		}
		rep, err := b.open().Audit(context.Background(), AuditOptions{})
		if err != nil || !rep.Equal {
			t.Fatalf("%+v %v", rep, err)
		}
	}
	want()
	b.src.put("e1.nt", nt("e1", "new"))
	b.src.remove("e2.nt")
	b.sync()
	want()
	if _, ok := b.mir.graphs["http://mirror.example/http://ex.org/e2"]; ok {
		t.Fatal("the graph of a deleted entity is still there")
	}
	b.mir.exec(`INSERT DATA { GRAPH <http://mirror.example/http://ex.org/zzz> {
<http://a> <http://b> <http://c> .
} }`)
	rep, err := b.open().Audit(context.Background(), AuditOptions{})
	if err != nil || rep.Extra != 1 {
		t.Fatalf("%+v %v", rep, err)
	}
	rep, err = b.open().Audit(context.Background(), AuditOptions{Repair: true})
	if err != nil || !rep.Equal || rep.Repaired != 1 {
		t.Fatalf("%+v %v", rep, err)
	}
	want()
}

// The graph of an entity stays while one of its locations has it, whatever becomes of
// another one that had it before.
func TestGraphOfAnotherLocationStays(t *testing.T) {
	b := newBench(t)
	s := b.src
	s.ours = true
	b.cfg.Graph, b.cfg.GraphIRI = "per-entity", "{entity}"
	fill(s, 4)
	b.sync()
	s.remove("e1.nt")
	s.put("e1.ttl", nt("e1", "turtle")) // has the graph
	s.put("e1.jsonld", `[{"@id":"http://ex.org/e1","http://ex.org/v":[{"@value":"json"}]}]`)
	if rep := b.sync(); rep.Failed != 1 {
		t.Fatalf("%+v", rep)
	}
	if rep, err := b.open().Sync(context.Background(), SyncOptions{Full: true}); err != nil || rep.Failed != 1 {
		t.Fatalf("%+v %v", rep, err)
	}
	if !slices.Contains(b.mir.lines("http://ex.org/e1"), nt("e1", "turtle")) {
		t.Fatal("the graph was taken from the location that has it")
	}
	s.remove("e1.jsonld")
	if rep := b.sync(); !rep.InSync {
		t.Fatalf("%+v", rep)
	}
	b.equalGraphs()
}

func TestAuditSeesAndRepairs(t *testing.T) {
	b := newBench(t)
	fill(b.src, 20)
	b.src.put("b.ttl", `<http://ex.org/b> <http://ex.org/p> [ <http://ex.org/q> "x" ] .`)
	b.sync()
	b.equal()
	b.mir.exec(`DELETE WHERE { GRAPH <` + graphA + `> { <http://ex.org/e1> ?p ?o } } ;
DELETE DATA { GRAPH <` + graphA + `> {
<http://ex.org/e2> <http://ex.org/v> "a" .
} } ;
INSERT DATA { GRAPH <` + graphA + `> {
<http://ex.org/e3> <http://ex.org/v> "foreign" .
<http://ex.org/stranger> <http://ex.org/v> "foreign" .
} }`)
	rep, err := b.open().Audit(context.Background(), AuditOptions{})
	if err != nil || rep.Equal || rep.Missing != 1 || rep.Different != 2 || rep.Extra != 1 {
		t.Fatalf("%+v %v", rep, err)
	}
	inv, err := b.d.Audit(context.Background(), AuditOptions{Depth: "inventory"})
	if err != nil || inv.Verdict != "not proven" || !strings.Contains(inv.MirrorError, "audit --repair restores it") {
		t.Fatalf("the inventory does not see the mirror, and says nothing against what was found there: %+v %v", inv, err)
	}
	n := 0
	for _, err := range b.d.Differences(context.Background(), "") {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	rep, err = b.open().Audit(context.Background(), AuditOptions{Repair: true})
	if err != nil || !rep.Equal || rep.Repaired != 4 {
		t.Fatalf("%+v %v", rep, err)
	}
	b.equal()
	// The source has moved on: seen without reading the mirror, repaired by fetching it.
	b.src.put("e7.nt", nt("e7", "later"))
	b.src.remove("e8.nt")
	b.src.put("e99.nt", nt("e99", "later"))
	rep, err = b.open().Audit(context.Background(), AuditOptions{Depth: "inventory"})
	if err != nil || rep.Equal || rep.Missing != 1 || rep.Different != 1 || rep.Extra != 1 {
		t.Fatalf("%+v %v", rep, err)
	}
	rep, err = b.open().Audit(context.Background(), AuditOptions{Repair: true})
	if err != nil || !rep.Equal {
		t.Fatalf("%+v %v", rep, err)
	}
	b.equal()
	rep, err = b.open().Audit(context.Background(), AuditOptions{Depth: "origin"})
	if err != nil || !rep.Equal {
		t.Fatalf("%+v %v", rep, err)
	}
	if rep := b.sync(); !rep.InSync {
		t.Fatalf("%+v", rep)
	}
}

func TestForeignGraphIsRefused(t *testing.T) {
	b := newBench(t)
	fill(b.src, 3)
	b.mir.exec(`INSERT DATA { GRAPH <` + graphA + `> {
<http://ex.org/theirs> <http://ex.org/v> "keep" .
} }`)
	_, err := b.open().Sync(context.Background(), SyncOptions{})
	if err == nil || !strings.Contains(err.Error(), "adopt: true") || len(b.mir.lines(graphA)) != 1 {
		t.Fatal("a graph that is not ours was taken:", err)
	}
	b.cfg.Adopt = true
	b.sync()
	rep, err := b.open().Audit(context.Background(), AuditOptions{})
	if err != nil || rep.Extra != 1 || rep.Missing+rep.Different != 0 {
		t.Fatalf("%+v %v", rep, err)
	}
	rep, err = b.open().Audit(context.Background(), AuditOptions{Repair: true})
	if err != nil || !rep.Equal {
		t.Fatalf("%+v %v", rep, err)
	}
	b.equal()
	// Another state finds our mark.
	c := newBench(t)
	c.mir, c.src, c.cfg.Source, c.cfg.Name = b.mir, b.src, b.cfg.Source, "other"
	if _, err := c.open().Sync(context.Background(), SyncOptions{}); err == nil || !strings.Contains(err.Error(), `mirror of "copy"`) {
		t.Fatal(err)
	}
	// The same destination whose state was lost goes on, and compares everything.
	c.cfg.Name = "copy"
	b.mir.exec(`INSERT DATA { GRAPH <` + graphA + `> {
<http://ex.org/old> <http://ex.org/v> "left by the lost state" .
} }`)
	c.sync()
	c.equal()
}

func TestRestoredBackup(t *testing.T) {
	b := newBench(t)
	fill(b.src, 8)
	b.sync()
	backup := map[string]map[rdfres.Triple]bool{}
	for g, ts := range b.mir.graphs {
		backup[g] = map[rdfres.Triple]bool{}
		for tr := range ts {
			backup[g][tr] = true
		}
	}
	b.src.put("e1.nt", nt("e1", "later"))
	b.src.remove("e2.nt")
	b.sync()
	b.mir.mu.Lock()
	b.mir.graphs = backup
	b.mir.mu.Unlock()
	rep := b.sync()
	if !strings.Contains(rep.Why, "restored from a backup") || !rep.InSync {
		t.Fatalf("%+v", rep)
	}
	b.equal()
}

func TestPendingNeverBlocks(t *testing.T) {
	for _, ours := range []bool{false, true} {
		b := newBench(t)
		b.src.ours = ours
		fill(b.src, 6)
		b.sync()
		b.src.put("e1.nt", nt("e1", "lied about"))
		b.src.put("e2.nt", nt("e2", "good"))
		b.src.lie["e1.nt"] = true
		rep := b.sync()
		if rep.Pending != 1 || rep.InSync || rep.Updated != 1 || len(rep.Problems) != 1 || rep.BehindSeconds == nil || *rep.BehindSeconds <= 0 {
			t.Fatalf("%+v", rep)
		}
		if !slices.Contains(b.mir.lines(graphA), strings.TrimSpace(nt("e2", "good"))+"\n") {
			t.Fatal("the good one was stopped by the bad one")
		}
		if slices.Contains(b.mir.lines(graphA), nt("e1", "lied about")) {
			t.Fatal("an unverified body reached the mirror")
		}
		rep = b.sync()
		rep = b.sync()
		if rep.Failed != 1 || rep.Pending != 0 {
			t.Fatalf("still claimed and still wrong: %+v", rep)
		}
		delete(b.src.lie, "e1.nt")
		b.clock = b.clock.Add(2 * time.Hour)
		rep = b.sync()
		if !rep.InSync || rep.Updated != 1 {
			t.Fatalf("%+v", rep)
		}
		b.equal()
		// A later change explains it at once.
		b.src.lie["e3.nt"] = true
		b.src.put("e3.nt", nt("e3", "x"))
		b.sync()
		delete(b.src.lie, "e3.nt")
		b.src.remove("e3.nt")
		if rep = b.sync(); !rep.InSync {
			t.Fatalf("%+v", rep)
		}
		b.equal()
	}
}

func TestGap(t *testing.T) {
	for _, ours := range []bool{false, true} {
		b := newBench(t)
		b.src.ours = ours
		fill(b.src, 30)
		b.sync()
		for i := range 6 {
			b.src.put(fmt.Sprintf("e%d.nt", i), nt(fmt.Sprintf("e%d", i), "after"))
		}
		b.src.remove("e9.nt")
		b.src.put("e20.nt", nt("e20", "last"))
		b.src.drop = len(b.src.log) - 1
		clear(b.src.requests)
		rep := b.sync()
		if !strings.Contains(rep.Why, "gap") || !rep.InSync || rep.Updated != 7 || rep.Deleted != 1 {
			t.Fatalf("%+v", rep)
		}
		fetched := 0
		for p, n := range b.src.requests {
			if strings.HasPrefix(p, "/set/r/") {
				fetched += n
			}
		}
		if fetched != 7 {
			t.Fatalf("%d resources were fetched to close the gap, 7 differ", fetched)
		}
		b.equal()

		b.cfg.OnGap = "stop"
		b.src.put("e1.nt", nt("e1", "x"))
		b.src.put("e2.nt", nt("e2", "x"))
		b.src.drop = len(b.src.log) - 1
		rep = b.sync()
		if rep.InSync || !strings.Contains(rep.Held, "on_gap") || rep.Updated != 0 {
			t.Fatalf("%+v", rep)
		}
		if rep, err := b.open().Sync(context.Background(), SyncOptions{Full: true}); err != nil || !rep.InSync {
			t.Fatalf("%+v %v", rep, err)
		}
		b.equal()
	}
}

// Of a source without an inventory a gap stays whatever is asked for, and that is said.
func TestGapWithoutInventory(t *testing.T) {
	b := newBench(t)
	s := b.src
	s.ours, s.list, s.dump = true, false, false
	b.cfg.OnGap = "stop"
	fill(s, 6)
	b.sync()
	s.put("e1.nt", nt("e1", "lost"))
	s.put("e2.nt", nt("e2", "after"))
	s.drop = len(s.log) - 1
	rep := b.sync()
	for _, want := range []string{"on_gap is stop: run sync with --full to go on behind it", "does not close the gap", "until the source offers a Resource List"} {
		if !strings.Contains(rep.Held, want) {
			t.Errorf("%q is not in %q", want, rep.Held)
		}
	}
	rep, err := b.open().Sync(context.Background(), SyncOptions{Full: true})
	for range 2 { // what was said to be done is not said again; that something is lost is
		if err != nil || rep.InSync || !strings.HasSuffix(rep.Held, "the source has no inventory to close it with") || strings.Contains(rep.Held, "--full") {
			t.Fatalf("%+v %v", rep, err)
		}
		s.put("e3.nt", nt("e3", "later"))
		rep, err = b.open().Sync(context.Background(), SyncOptions{})
	}
	if lines := b.mir.lines(graphA); len(lines) == len(s.want()) && slices.Equal(lines, s.want()) {
		t.Error("what was lost came, and the gap is told")
	}
	s.list = true
	if rep, err := b.open().Sync(context.Background(), SyncOptions{Full: true}); err != nil || !rep.InSync || rep.Held != "" {
		t.Fatalf("%+v %v", rep, err)
	}
	b.equal()
}

// A list that is older than what is mirrored, with changes that do not reach back to it,
// does not set the mirror back: the gap is told until there is a newer one.
func TestGapWithAnOldList(t *testing.T) {
	for _, ours := range []bool{false, true} {
		b := newBench(t)
		s := b.src
		s.ours = ours
		fill(s, 6)
		s.frozen, s.listAt, s.listSeq = maps.Clone(s.bodies), s.now, len(s.log)
		b.sync()
		s.put("new.nt", nt("new", "x"))
		s.put("e1.nt", nt("e1", "second"))
		b.sync()
		b.same(b.mir.lines(graphA), s.want())
		s.put("e2.nt", nt("e2", "lost"))
		s.put("e3.nt", nt("e3", "second"))
		s.drop = len(s.log) - 1
		for range 2 {
			if rep := b.sync(); rep.InSync || !strings.Contains(rep.Held, "gap: ") || rep.Deleted+rep.Failed+rep.Pending > 0 {
				t.Fatalf("%+v", rep)
			}
			if got := strings.Join(b.mir.lines(graphA), ""); !strings.Contains(got, "/new>") || strings.Count(got, "second") != 2 || strings.Contains(got, "lost") {
				t.Fatal(got)
			}
		}
		before := b.mir.lines(graphA)
		if rep, err := b.open().Audit(context.Background(), AuditOptions{Repair: true}); err != nil || rep.Equal || rep.Findings() > 0 || rep.SourceError != rep.Held {
			t.Fatalf("%+v %v", rep, err)
		}
		b.same(b.mir.lines(graphA), before)
		s.frozen, s.listAt = nil, time.Time{}
		if rep := b.sync(); !rep.InSync || rep.Updated != 1 {
			t.Fatalf("%+v", rep)
		}
		b.equal()
	}
}

func TestHeldDeletions(t *testing.T) {
	b := newBench(t)
	b.src.changes = false
	fill(b.src, 40)
	b.sync()
	for i := range 30 {
		b.src.remove(fmt.Sprintf("e%d.nt", i))
	}
	b.src.put("e35.nt", nt("e35", "new"))
	rep := b.sync()
	if rep.Held == "" || rep.Deleted != 0 || rep.Updated != 1 || rep.InSync {
		t.Fatalf("%+v", rep)
	}
	rep = b.sync()
	if rep.Held == "" {
		t.Fatalf("the held deletions were forgotten: %+v", rep)
	}
	b.cfg.MaxDeleteRatio = 1
	rep = b.sync()
	if rep.Deleted != 30 || !rep.InSync || rep.Held != "" {
		t.Fatalf("%+v", rep)
	}
	b.equal()
	for name := range b.src.bodies {
		b.src.remove(name)
	}
	rep = b.sync()
	if rep.Deleted != 0 || !strings.Contains(rep.Held, "empty") {
		t.Fatalf("an empty list deleted something: %+v", rep)
	}
}

func TestDryRunChangesNothing(t *testing.T) {
	b := newBench(t)
	fill(b.src, 5)
	rep, err := b.open().Sync(context.Background(), SyncOptions{DryRun: true})
	if err != nil || rep.Created != 5 || rep.Bytes == 0 || len(b.mir.graphs) != 0 {
		t.Fatalf("%+v %v %v", rep, err, b.mir.graphs)
	}
	b.sync()
	b.src.put("e1.nt", nt("e1", "x"))
	b.src.remove("e2.nt")
	rep, err = b.open().Sync(context.Background(), SyncOptions{DryRun: true})
	if err != nil || rep.Updated != 1 || rep.Deleted != 1 {
		t.Fatalf("%+v %v", rep, err)
	}
	if rep := b.sync(); rep.Updated != 1 || rep.Deleted != 1 {
		t.Fatalf("%+v", rep)
	}
}

func TestKeepDeleted(t *testing.T) {
	b := newBench(t)
	b.cfg.Keep = "deleted"
	fill(b.src, 4)
	b.sync()
	before := b.mir.lines(graphA)
	b.src.remove("e1.nt")
	rep := b.sync()
	if rep.Deleted != 1 || !slices.Equal(before, b.mir.lines(graphA)) {
		t.Fatalf("%+v", rep)
	}
	a, err := b.open().Audit(context.Background(), AuditOptions{})
	if err != nil || !a.Equal || a.Resources != 3 {
		t.Fatalf("%+v %v", a, err)
	}
	b.src.put("e1.nt", nt("e1", "back"))
	b.sync()
	b.equal()
}

// TestMirrorRefusesData: a mirror that takes checkpoints and no data is at fault,
// not the resources, and is not asked for each of them.
func TestMirrorRefusesData(t *testing.T) {
	b := newBench(t)
	fill(b.src, 40)
	var asked atomic.Int64
	b.mir.refuse = func(text string) int {
		if strings.Contains(text, "<http://ex.org/") {
			asked.Add(1)
			return 400
		}
		return 0
	}
	if _, err := b.open().Sync(context.Background(), SyncOptions{}); err == nil || !strings.Contains(err.Error(), "took none of the first 5 resources") {
		t.Fatal(err)
	}
	if n := asked.Load(); n > 80 {
		t.Errorf("%d requests for a mirror that takes nothing", n)
	}
	b.mir.refuse = nil
	// By hand: the first ones are marked and would wait for their pause.
	if rep, err := b.open().Sync(context.Background(), SyncOptions{Retry: true}); err != nil || !rep.InSync || rep.Pending+rep.Failed > 0 {
		t.Fatalf("%+v %v", rep, err)
	}
	rep, err := b.open().Audit(context.Background(), AuditOptions{})
	if err != nil || !rep.Equal {
		t.Fatalf("%+v %v", rep, err)
	}
}

func TestMirrorRefusesOne(t *testing.T) {
	b := newBench(t)
	fill(b.src, 10)
	b.sync()
	b.mir.refuse = func(text string) int {
		if strings.Contains(text, "poison") {
			return 400
		}
		return 0
	}
	for i := range 8 {
		b.src.put(fmt.Sprintf("e%d.nt", i), nt(fmt.Sprintf("e%d", i), "x"))
	}
	b.src.put("e5.nt", nt("e5", "fine", "poison"))
	rep := b.sync()
	if rep.Failed != 1 || rep.Updated != 7 || rep.InSync {
		t.Fatalf("%+v", rep)
	}
	lines := b.mir.lines(graphA)
	if !slices.Contains(lines, nt("e5", "5")) || slices.Contains(lines, nt("e5", "fine")) {
		t.Fatal("the refused resource is not as it was before")
	}
	b.mir.refuse = nil
	b.clock = b.clock.Add(2 * time.Hour)
	if rep = b.sync(); !rep.InSync {
		t.Fatalf("%+v", rep)
	}
	b.equal()
	// A mirror that refuses everything is an error, and nothing is marked bad.
	b.mir.refuse = func(string) int { return 500 }
	b.src.put("e5.nt", nt("e5", "y"))
	rep, err := b.open().Sync(context.Background(), SyncOptions{})
	if err == nil || rep.Failed+rep.Pending != 0 {
		t.Fatalf("%+v %v", rep, err)
	}
	b.mir.refuse = nil
	b.sync()
	b.equal()
}

// A deletion that the mirror has refused is tried again as what it is, in the next run
// and after a restart.
func TestMirrorRefusesDeletion(t *testing.T) {
	for _, killed := range []bool{false, true} {
		b := newBench(t)
		fill(b.src, 10)
		b.sync()
		b.src.remove("e5.nt")
		if killed {
			d := b.open()
			d.mem.Crash = cutAt("intent")
			if _, err := d.Sync(context.Background(), SyncOptions{}); !errors.Is(err, errInjected) {
				t.Fatal(err)
			}
		}
		b.mir.refuse = func(text string) int {
			if strings.Contains(text, "DELETE DATA") && strings.Contains(text, "/e5>") {
				return 400
			}
			return 0
		}
		if rep := b.sync(); rep.InSync || !killed && rep.Failed != 1 {
			t.Fatalf("%+v", rep)
		}
		b.mir.refuse = nil
		b.clock = b.clock.Add(2 * time.Hour)
		if rep := b.sync(); !rep.InSync {
			t.Fatalf("killed %v: %+v", killed, rep)
		}
		b.equal()
	}
}

// What was written of a resource that is then refused is taken back, or the run ends.
func TestMirrorRefusesToTakeBack(t *testing.T) {
	b := newBench(t)
	s := b.src
	b.caps.UpdateTriples, b.caps.Transactional = 3, false // a request for each few triples
	fill(s, 3)
	b.sync()
	s.put("e1.nt", nt("e1", "u", "v", "w", "x", "y", "z"))
	refused := false
	b.mir.refuse = func(text string) int {
		switch {
		case strings.Contains(text, "INSERT DATA") && strings.Contains(text, `"z"`):
			refused = true
			return 400
		case refused && strings.Contains(text, "DELETE DATA"):
			return 400
		}
		return 0
	}
	rep, err := b.open().Sync(context.Background(), SyncOptions{})
	if err == nil {
		t.Errorf("what was written of a refused resource stays: %+v", rep)
	}
	b.mir.refuse = nil
	s.put("e1.nt", nt("e1", "last"))
	for range 2 {
		b.clock = b.clock.Add(2 * time.Hour)
		rep = b.sync()
	}
	if !rep.InSync {
		t.Fatalf("%+v", rep)
	}
	b.equal()
}

// A graph that was dropped, the answer lost, and the repetition refused, is there again
// while its deletion is pending.
func TestMirrorRefusesDropOfGraph(t *testing.T) {
	b := newBench(t)
	s := b.src
	s.ours = true
	b.cfg.Graph, b.cfg.GraphIRI = "per-entity", "{entity}"
	fill(s, 4)
	b.sync()
	before := b.mir.graphLines()
	s.remove("e1.nt")
	lost := false
	b.mir.refuse = func(text string) int {
		switch {
		case !strings.Contains(text, "DROP SILENT GRAPH"):
			return 0
		case lost:
			return 400
		}
		lost = true
		if err := b.mir.update(text); err != nil {
			t.Error(err)
		}
		return 504
	}
	if rep := b.sync(); rep.Failed != 1 {
		t.Fatalf("%+v", rep)
	}
	b.same(b.mir.graphLines(), before)
	b.mir.refuse = nil
	s.put("e1.ttl", nt("e1", "a", "1", "more"))
	b.clock = b.clock.Add(2 * time.Hour)
	for range 2 {
		b.sync()
		b.clock = b.clock.Add(2 * time.Hour)
	}
	b.equalGraphs()
}

// A pause that a clock far ahead has made is over when the clock is right again.
func TestPauseOfAnotherClock(t *testing.T) {
	b := newBench(t)
	fill(b.src, 3)
	b.sync()
	b.src.put("e1.nt", nt("e1", "x"))
	b.src.lie["e1.nt"] = true
	right := b.clock
	b.clock = right.AddDate(10, 0, 0)
	if rep := b.sync(); rep.Pending != 1 {
		t.Fatalf("%+v", rep)
	}
	b.clock = right
	b.src.lie["e1.nt"] = false
	if rep := b.sync(); !rep.InSync {
		t.Fatalf("%+v", rep)
	}
	b.equal()
}

func TestGraphStoreOnly(t *testing.T) {
	for _, per := range []bool{false, true} {
		b := newBench(t)
		b.mir.noUpdate = true
		b.src.ours = true
		graph := func(string) string { return graphA }
		if per {
			b.cfg.Graph, b.cfg.GraphIRI = "per-entity", "{entity}"
			graph = func(e string) string { return e }
		}
		fill(b.src, 6)
		if rep := b.sync(); !rep.InSync {
			t.Fatalf("%+v", rep)
		}
		b.src.put("e1.nt", nt("e1", "x"))
		b.src.remove("e2.nt")
		b.sync()
		if !per {
			b.equal()
		}
		if slices.Contains(b.mir.lines(graph("http://ex.org/e2")), nt("e2", "2")) || !slices.Contains(b.mir.lines(graph("http://ex.org/e1")), nt("e1", "x")) {
			t.Fatal("change was not written")
		}
		rep, err := b.open().Audit(context.Background(), AuditOptions{})
		if err != nil || !rep.Equal {
			t.Fatalf("%+v %v", rep, err)
		}
	}
}

// A resource that gets another address is two entries of one number; neither a
// window nor an index may lose the second.
func TestEntriesOfOneNumber(t *testing.T) {
	for _, parts := range []int{0, 3} {
		b := newBench(t)
		s := b.src
		s.ours = true
		s.changeParts = parts
		fill(s, 4)
		b.sync()
		for i := range 4 {
			s.put(fmt.Sprintf("e%d.nt", i), nt(fmt.Sprintf("e%d", i), "later"))
		}
		s.pair = true
		d := b.open()
		d.lim.window = 1
		if rep, err := d.Sync(context.Background(), SyncOptions{}); err != nil || !rep.InSync || rep.Updated != 4 {
			t.Fatalf("%+v %v", rep, err)
		}
		b.equal()
	}
}

// A change tells of a resource that is not there, and neither list nor dump has it: it is
// gone, told or not, and nothing waits for it.
func TestGoneAndNotListed(t *testing.T) {
	for name, set := range map[string]func(s *testSource){
		"list":  func(*testSource) {},
		"dump":  func(s *testSource) { s.list, s.dump = false, true },
		"D-Lib": func(s *testSource) { s.dialect = "D-Lib" },
	} {
		for _, lost := range []bool{false, true} { // changes, so that all is compared
			b := newBench(t)
			s := b.src
			set(s)
			fill(s, 5)
			s.tick()
			s.freezeDump()
			b.sync()
			s.put("e1.nt", nt("e1", "second"))
			s.put("new.nt", nt("new", "x"))
			s.put("e2.nt", nt("e2", "second"))
			s.mu.Lock()
			delete(s.bodies, "new.nt")
			delete(s.bodies, "e1.nt")
			s.mu.Unlock()
			s.frozen, s.listSeq, s.listAt = maps.Clone(s.bodies), 5, s.log[4].at // the list is of before the changes
			s.frozen["e1.nt"] = []byte(nt("e1", "a", "1"))
			for range 4 {
				if rep := b.sync(); rep.InSync || rep.Failed+rep.Pending != 2 {
					t.Fatalf("%s: %+v", name, rep)
				}
				b.clock = b.clock.Add(2 * time.Hour)
			}
			s.frozen, s.listAt, s.dumped = nil, time.Time{}, nil
			if s.put("e3.nt", nt("e3", "second")); lost {
				s.put("e3.nt", nt("e3", "third"))
				s.drop = len(s.log) - 1
			}
			s.tick()
			if rep := b.sync(); !rep.InSync || rep.Updated != 1 || rep.Deleted != 1 {
				t.Fatalf("%s, lost %v: %+v", name, lost, rep)
			}
			b.equal()
			b.confirmed()
			clear(s.requests)
			b.clock = b.clock.Add(2 * time.Hour)
			if rep := b.sync(); !rep.InSync || s.requests["/set/dump.zip"]+s.requests["/set/resourcelist.xml"] > 0 {
				t.Fatalf("%s, lost %v: %+v %v", name, lost, rep, s.requests)
			}
		}
	}
}

func TestSourceGone(t *testing.T) {
	b := newBench(t)
	fill(b.src, 3)
	b.sync()
	b.src.srv.Close()
	rep, err := b.open().Sync(context.Background(), SyncOptions{})
	if err == nil || rep.InSync {
		t.Fatal("a source that is gone was in sync")
	}
	b.clock = b.clock.Add(time.Hour)
	st, err := b.d.Status(context.Background())
	if err != nil || st.InSync || st.BehindSeconds == nil || *st.BehindSeconds < 3600 || st.LastError == "" {
		t.Fatalf("%+v %v", st, err)
	}
	if len(b.mir.lines(graphA)) == 0 {
		t.Fatal("the mirror was emptied")
	}
}
