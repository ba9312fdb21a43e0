package destination

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/destination/keep"
	"github.com/rsbridge/rsbridge/destination/sink"
	"github.com/rsbridge/rsbridge/destination/sink/sparqlsink"
	"github.com/rsbridge/rsbridge/internal/sparql"
	"github.com/rsbridge/rsbridge/internal/teststores"
)

// freshness is the mirror's word of itself, by the last part of each predicate, as lexical values.
func (b *bench) freshness() map[string]string {
	b.t.Helper()
	out := map[string]string{}
	b.mir.mu.Lock()
	defer b.mir.mu.Unlock()
	for t := range b.mir.graphs[sink.StateGraph] {
		if t.S.IRI() != sink.FreshnessOf(b.d.mirror.Mark) {
			continue
		}
		name := t.P.IRI()[strings.LastIndexAny(t.P.IRI(), "#/")+1:]
		if out[name] != "" {
			b.t.Errorf("two values of %s", name)
		}
		out[name] = strings.Trim(strings.SplitN(string(t.O), "^^", 2)[0], `"<>`)
	}
	return out
}

// TestFreshness: a reader of the mirror learns the time up to which it has all changes, and its lag. It
// is written at most once in its time, is no data, and goes with its setting.
func TestFreshness(t *testing.T) {
	b := newQuietBench(t)
	s := b.src
	s.ours, b.clock = true, s.now
	b.cfg.Freshness = time.Minute
	fill(s, 10)
	d := b.open()
	sync := func(fails bool) {
		t.Helper()
		if _, err := d.Sync(t.Context(), SyncOptions{}); (err != nil) != fails {
			t.Fatal(err)
		}
	}
	tell := func() {
		t.Helper()
		if err := Freshen(t.Context(), d); err != nil {
			t.Fatal(err)
		}
	}
	at := func() string { return b.clock.UTC().Format(time.RFC3339Nano) }
	want := func(when string, want map[string]string) {
		t.Helper()
		got := b.freshness()
		for name, value := range want {
			if got[name] != value {
				t.Errorf("%s: %s is %q, want %q", when, name, got[name], value)
			}
		}
	}
	tell()
	if got := b.freshness(); len(got) > 0 {
		t.Fatalf("before the first sync: %v", got)
	}
	sync(false)
	tell()
	first := at()
	want("in sync", map[string]string{"valid": first, "inSync": "true", "behindSeconds": "0.0", "behindChanges": "0", "generatedAtTime": first,
		"source": b.cfg.Source, "primaryTopic": graphA, "freshnessOf": d.mirror.Mark})

	updates := b.mir.updates
	for n := range 20 { // a busy minute
		b.clock = b.clock.Add(2 * time.Second)
		s.now = b.clock
		s.put("e1.nt", nt("e1", "busy", strings.Repeat("x", n)))
		sync(false)
		tell()
	}
	if got := b.mir.updates - updates; got != 20 {
		t.Errorf("20 batches and the freshness took %d updates", got)
	}
	want("within its time", map[string]string{"valid": first})
	b.clock = b.clock.Add(time.Minute)
	tell()
	last := b.clock.Add(-time.Minute).UTC().Format(time.RFC3339Nano)
	want("after it", map[string]string{"valid": last, "generatedAtTime": at()})
	updates = b.mir.updates
	b.clock = b.clock.Add(time.Hour)
	tell()
	if b.mir.updates != updates {
		t.Error("what has not changed is written again")
	}

	s.hook = func(w http.ResponseWriter, _ *http.Request) bool {
		http.Error(w, "down", http.StatusServiceUnavailable)
		return true
	}
	sync(true)
	tell()
	want("source away", map[string]string{"valid": last, "inSync": "false", "behindSeconds": "3660.0", "behindChanges": ""})
	s.hook = nil
	sync(false)
	b.clock = b.clock.Add(time.Minute)
	tell()
	b.d = d
	b.equal()

	b.cfg.Freshness = 0
	d = b.open()
	tell()
	if got := b.freshness(); len(got) > 0 {
		t.Errorf("without the setting: %v", got)
	}
}

// TestFreshnessInStores: each freshness replaces the one before it, whatever a store makes of its
// literals, and forget removes the last one.
func TestFreshnessInStores(t *testing.T) {
	for name, of := range map[string]func(testing.TB) teststores.Server{"Oxigraph": teststores.Oxigraph, "Fuseki": teststores.Fuseki, "RDF4J": teststores.RDF4J, "Virtuoso": teststores.Virtuoso} {
		t.Run(name, func(t *testing.T) {
			store := of(t)
			b := newQuietBench(t)
			b.cfg.Freshness, b.cfg.GraphIRI = time.Second, store.Graph
			client := clientOf(t, sparql.Endpoint{Name: name, Query: store.Query, Update: store.Update, GraphStore: store.GraphStore, Username: store.Username, Password: store.Password})
			b.sink = sparqlsink.Of(client)
			fill(b.src, 3)
			b.sync()
			d := b.d
			lines := func() int64 {
				t.Helper()
				n, err := d.mirror.Lines(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				return n
			}
			alone := lines()
			for _, seconds := range []float64{0, 0.5, 15.005, 3660, 100_000_000.001, 1} {
				changes, now := uint64(seconds), b.clock.Add(time.Duration(seconds*1000)*time.Millisecond)
				told := d.stand.FreshnessTriples(&keep.Freshness{Before: now, Seconds: &seconds, Changes: &changes}, now)
				if err := d.mirror.Freshen(t.Context(), told); err != nil {
					t.Fatal(err)
				}
				if n := lines(); len(told) != 8 || n != alone+8 {
					t.Errorf("%g s: %d lines after %d triples, %d before", seconds, n, len(told), alone)
				}
			}
			if _, err := d.Forget(t.Context(), ForgetOptions{}); err != nil {
				t.Fatal(err)
			}
			if n := lines(); n > 0 {
				t.Errorf("%d lines after forget", n)
			}
		})
	}
}
