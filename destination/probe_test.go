package destination

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/destination/apply"
	"github.com/rsbridge/rsbridge/destination/keep"
	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/destination/sink/sparqlsink"
	"github.com/rsbridge/rsbridge/internal/sparql"
	"github.com/rsbridge/rsbridge/internal/teststores"
	"github.com/rsbridge/rsbridge/rdfres"
)

// A store that keeps literals otherwise than when it was probed: what belongs to
// whom is worked out again, so that deletions remove what is there and an audit
// is equal. An interruption is made good.
func TestNormalFormChanges(t *testing.T) {
	for _, layout := range []string{"single", "per-entity"} {
		b := newBench(t)
		s := b.src
		s.ours = true
		if layout == "per-entity" {
			b.perEntity()
		}
		lower := func(tr rdfres.Triple) rdfres.Triple {
			return rdfres.NormalForm{Rules: []string{"language-case"}}.Triple(tr)
		}
		for i := range 30 {
			s.put(fmt.Sprintf("e%d.nt", i), fmt.Sprintf("<http://ex.org/e%d> <http://ex.org/n> \"a\"@EN .\n<http://ex.org/e%d> <http://ex.org/n> \"a\"@en .\n", i, i))
		}
		b.sync()
		// The same data in a store that keeps tags in lower case.
		b.mir.rewrite = lower
		b.mir.mu.Lock()
		for g, ts := range b.mir.graphs {
			now := map[rdfres.Triple]bool{}
			for tr := range ts {
				now[lower(tr)] = true
			}
			b.mir.graphs[g] = now
		}
		b.mir.mu.Unlock()
		b.caps.NormalForm.Rules = []string{"language-case"}
		d := b.open()
		batch := b.store.Batch()
		batch.Set(ledger.Key(ledger.KindForm, d.mem.Space), keep.FormOf(nil, true)) // as after a crash in the middle
		if err := batch.Commit(t.Context(), true); err != nil {
			t.Fatal(err)
		}
		batch.Close()
		if rep, err := d.Sync(context.Background(), SyncOptions{}); err != nil || !rep.InSync || !strings.Contains(rep.Why, "keeps literals otherwise") {
			t.Fatalf("%+v %v", rep, err)
		}
		if a, err := b.open().Audit(context.Background(), AuditOptions{}); err != nil || !a.Equal || a.Rewritten != 0 {
			t.Fatalf("%+v %v", a, err)
		}
		s.put("e3.nt", "<http://ex.org/e3> <http://ex.org/n> \"a\"@en .\n")
		s.remove("e4.nt")
		if rep := b.sync(); !rep.InSync {
			t.Fatalf("%+v", rep)
		}
		if got := b.all(); len(got) != 29 {
			t.Fatalf("%d triples: %v", len(got), got)
		}
		if a, err := b.open().Audit(context.Background(), AuditOptions{}); err != nil || !a.Equal || a.Rewritten != 0 {
			t.Fatalf("%+v %v", a, err)
		}
	}
}

// A run beside which another destination probed the store anew ends with an
// error and writes nothing in the old form.
func TestRunEndsWhenProbedAnew(t *testing.T) {
	b := newBench(t)
	fill(b.src, 3)
	d := b.open()
	if err := d.prober.ready(context.Background(), true); err != nil {
		t.Fatal(err)
	}
	d.opt.Progress = func(string, int64, int64) {}
	batch := b.store.Batch()
	defer batch.Close()
	batch.Set(ledger.Key(ledger.KindForm, d.mem.Space), keep.FormOf([]string{"float"}, false))
	b.src.hook = nil
	if err := batch.Commit(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	writes := d.applier.Batch(t.Context(), &apply.Counts{}, false)
	if err := writes.Add(t.Context(), &apply.Op{Loc: ledger.HashOf("x")}); err != nil {
		t.Fatal(err)
	}
	if err := writes.Settle(t.Context()); err == nil || !strings.Contains(err.Error(), "probed anew") {
		t.Fatal(err)
	}
}

// A real store that was probed as another version is probed again: when its name
// has changed, and when an audit finds what the probe did not see; and at once where
// it did not answer all of the probe.
func TestProbedAgain(t *testing.T) {
	for _, how := range []string{"name", "audit", "unanswered"} {
		t.Run(how, func(t *testing.T) {
			store := teststores.Oxigraph(t)
			client, err := sparql.New(sparql.Endpoint{Name: "oxigraph", Query: store.Query, Update: store.Update, GraphStore: store.GraphStore})
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			b := newBench(t)
			b.src.ours = true
			b.src.put("a.nt", "<http://ex.org/a> <http://ex.org/n> \"01\"^^<http://www.w3.org/2001/XMLSchema#integer> .\n")
			fill(b.src, 3)
			cfg := b.cfg
			cfg.GraphIRI = store.Graph
			now := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
			old := probed{Findings: *sparqlsink.Findings(sparql.Capabilities{Writable: true, Transactional: true, UpdateTriples: 500}, sparqlsink.Rewrites{}), At: now}
			switch how {
			case "name":
				old.Server = "Another/1.0"
			case "unanswered":
				old.Unanswered = []string{"normal form"}
			}
			raw, err := json.Marshal(old)
			if err != nil {
				t.Fatal(err)
			}
			batch := b.store.Batch()
			defer batch.Close()
			batch.Set(ledger.NameKey(ledger.KindProbe, store.Update), raw)
			if err := batch.Commit(t.Context(), true); err != nil {
				t.Fatal(err)
			}
			run := func() *Destination {
				d, err := Open(context.Background(), b.store, sparqlsink.Of(client), cfg, keep.Options{Now: func() time.Time { return now }})
				if err != nil {
					t.Fatal(err)
				}
				if rep, err := d.Sync(context.Background(), SyncOptions{}); err != nil || !rep.InSync {
					t.Fatalf("%+v %v", rep, err)
				}
				return d
			}
			d := run()
			if early := len(d.mirror.Layout.NormalForm.Rules) != 0; early != (how == "unanswered") {
				t.Fatalf("probed with the first run: %t", early)
			}
			now = now.Add(25 * time.Hour)
			if how == "name" {
				if d = run(); len(d.mirror.Layout.NormalForm.Rules) == 0 {
					t.Error("not probed again")
				}
			}
			a, err := d.Audit(context.Background(), AuditOptions{})
			if err != nil || !a.Equal || a.Rewritten != 1 {
				t.Fatalf("%+v %v", a, err)
			}
			if len(d.mirror.Layout.NormalForm.Rules) == 0 {
				t.Error("not probed again")
			}
			b.src.put("a.nt", "<http://ex.org/a> <http://ex.org/n> \"1\"^^<http://www.w3.org/2001/XMLSchema#integer> .\n")
			run()
			b.src.remove("a.nt")
			d = run()
			if a, err := d.Audit(context.Background(), AuditOptions{}); err != nil || !a.Equal || a.Rewritten != 0 {
				t.Fatalf("%+v %v", a, err)
			}
		})
	}
}

// Records of an earlier layout are refused, as those of a later one.
func TestOtherLayout(t *testing.T) {
	for version, want := range map[byte]string{ledger.LayoutVersion - 1: "an earlier rsbridge", ledger.LayoutVersion + 1: "a newer rsbridge"} {
		b := newBench(t)
		fill(b.src, 1)
		b.sync()
		batch := b.store.Batch()
		defer batch.Close()
		batch.Set([]byte{ledger.KindVersion}, []byte{version})
		if err := batch.Commit(t.Context(), true); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(t.Context(), b.store, sparqlsink.Of(b.mir.client()), b.cfg, keep.Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("layout %d: %v", version, err)
		}
	}
}

// A batch that a later version intended is left to it.
func TestIntentOfNewerVersion(t *testing.T) {
	b := newBench(t)
	fill(b.src, 2)
	b.sync()
	d := b.open()
	batch := b.store.Batch()
	defer batch.Close()
	batch.Set(ledger.Key(ledger.KindIntent, d.mem.Dest), []byte{6, 1, 2, 3})
	if err := batch.Commit(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Sync(context.Background(), SyncOptions{}); err == nil || !strings.Contains(err.Error(), "written by a newer rsbridge (version 6, this one knows 2)") {
		t.Fatal(err)
	}
	if raw, err := b.store.Get(t.Context(), ledger.Key(ledger.KindIntent, d.mem.Dest)); err != nil || len(raw) != 4 {
		t.Fatalf("%x %v", raw, err)
	}
}
