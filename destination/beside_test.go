package destination

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rsbridge/rsbridge/destination/fetch"
	"github.com/rsbridge/rsbridge/destination/ledger"
)

// A batch is worked out while another one is written only where neither meets what the
// other changes, and holds only if nobody else has written since.
func TestWorkedBeside(t *testing.T) {
	b := newBench(t)
	s := b.src
	for i := range 4 {
		s.put(fmt.Sprintf("e%d.nt", i), fmt.Sprintf("<http://ex.org/e%d> <http://ex.org/p> \"%d\" .\n<http://ex.org/shared> <http://ex.org/p> \"%d\" .\n", i, i, i/2))
	}
	d := b.open()
	if _, err := d.Sync(context.Background(), SyncOptions{}); err != nil {
		t.Fatal(err)
	}
	become := func(i int, text string) *op { // of one of them; "" removes it
		loc := s.url(fmt.Sprintf("/set/r/e%d.nt", i))
		o := &op{loc: ledger.HashOf(loc), it: &item{Loc: loc, Promise: fetch.Promise{Length: -1}}}
		if text != "" {
			out := &outcome{it: o.it, rec: &ledger.Record{Loc: loc, Entity: fmt.Sprintf("http://ex.org/e%d", i), Triples: 1}, wire: []byte(text)}
			d.prepare(out)
			o.rec, o.wire, o.sts, o.packed = out.rec, out.wire, out.sts, out.packed
		}
		return o
	}
	mine := "<http://ex.org/e%d> <http://ex.org/q> \"new\" .\n"
	running := func(ops ...*op) *inFlight {
		t.Helper()
		f := &inFlight{planned: make(chan struct{}), locs: map[ledger.Hash]bool{}, turn: 7}
		for _, o := range ops {
			f.locs[o.loc] = true
		}
		var c counts
		w, err := d.work(ops, &c, nil)
		if err != nil {
			t.Fatal(err)
		}
		f.markPlanned(d.subjectsOf(ops, w.changes))
		return f
	}
	fresh := func(i int) *op { return become(i, fmt.Sprintf(mine, i)) } // of which nothing is recorded
	moving := fresh(9)
	moving.replaces = []ledger.Hash{ledger.HashOf("gone")}
	for _, c := range []struct {
		name string
		f    *inFlight
		ops  []*op
		want bool
	}{
		{"nothing in common", running(fresh(7)), []*op{fresh(8), become(0, fmt.Sprintf(mine, 0))}, true},
		{"a location", running(fresh(7)), []*op{fresh(8), fresh(7)}, false},
		{"a subject that both had", running(become(0, fmt.Sprintf(mine, 0))), []*op{become(1, fmt.Sprintf(mine, 1))}, false},
		{"a subject of what is removed", running(become(0, "")), []*op{become(2, "")}, false},
		{"a subject that both get", running(become(7, "<http://ex.org/new> <http://ex.org/p> \"a\" .\n")), []*op{become(8, "<http://ex.org/new> <http://ex.org/p> \"b\" .\n")}, false},
		{"a location that is replaced", running(fresh(7)), []*op{moving}, false},
		{"one that the other replaces", running(moving), []*op{fresh(8)}, false},
	} {
		if w := d.workBeside(c.ops, c.f); (w != nil) != c.want || w != nil && (w.turn != 7 || len(w.plan.Add) != len(c.ops)) {
			t.Errorf("%s: %+v", c.name, w)
		}
	}

	// What is collected meanwhile is worked out again as it grows, by what was looked up.
	f := running(fresh(7))
	for _, ops := range [][]*op{{become(1, "")}, {become(1, ""), become(2, "")}, {become(2, ""), become(1, ""), become(0, "")}} {
		grown, alone := d.workBeside(ops, f), d.workBeside(ops, running(fresh(7)))
		if grown == nil || len(grown.plan.Remove) != len(alone.plan.Remove) {
			t.Errorf("%d removed: %+v, looked up anew %+v", len(ops), grown, alone)
		}
	}
	if len(f.owners) == 0 {
		t.Error("nothing is kept of what was looked up")
	}

	// Of two that share the last owner of a triple the plan made earlier would keep it.
	stale := d.workBeside([]*op{become(1, "")}, running(fresh(7)))
	if stale == nil || len(stale.plan.Remove) != 1 {
		t.Fatalf("%+v", stale)
	}
	var c counts
	apply := func(ready *worked, ops ...*op) {
		t.Helper()
		if err := d.apply(context.Background(), &inFlight{}, ops, ready, &c, false, nil); err != nil {
			t.Fatal(err)
		}
	}
	stale.turn = d.spaceL.turn
	apply(nil, become(0, "")) // as another destination would
	apply(stale, stale.changes[0].op)
	s.remove("e0.nt")
	s.remove("e1.nt")
	b.equal()
}

// What was worked out while the mirror was busy goes when it is ready, and what came
// later is the next batch.
func TestPlannedBeside(t *testing.T) {
	b := newBench(t)
	b.caps.UpdateTriples = 100 * earlyTriples
	const ops, each = 12, earlyTriples / 4 // four are enough for a batch
	text := func(i, round int) string {
		var values []string
		for n := range each / 2 { // all of them go, and as many come
			values = append(values, fmt.Sprintf("%d of round %d", n, round))
		}
		return nt(fmt.Sprintf("e%d", i), values...)
	}
	put := func(round int) {
		for i := range ops {
			b.src.put(fmt.Sprintf("e%d.nt", i), text(i, round))
		}
	}
	put(0)
	b.sync()
	put(1)
	d := b.open()
	if err := d.ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	release := make(chan struct{})
	var mu sync.Mutex
	var sizes []int // triples that came in an update
	b.mir.refuse = func(update string) int {
		<-release
		mu.Lock()
		defer mu.Unlock()
		sizes = append(sizes, strings.Count(update, "of round 1"))
		return 0
	}
	var c counts
	to := d.batcher(&c, false)
	add := func(i int) {
		t.Helper()
		loc := b.src.url(fmt.Sprintf("/set/r/e%d.nt", i))
		rec, err := d.led.Record(ledger.HashOf(loc))
		if err != nil || rec == nil {
			t.Fatal(rec, err)
		}
		it := &item{Loc: loc, Entity: rec.Entity, Promise: fetch.Promise{Length: -1}}
		o, err := d.represent(t.Context(), it, place{URL: loc, Promise: it.Promise}, []byte(text(i, 1)), fetch.Kind{})
		if err != nil {
			t.Fatal(err)
		}
		o.was = d.former(ledger.HashOf(loc), rec, nil)
		d.prepare(o)
		if err := to.outcome(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 5 {
		add(i)
	}
	if to.running == nil || len(to.ops) != 1 {
		t.Fatalf("%d ops wait, and the first four should have gone", len(to.ops))
	}
	<-to.running.planned
	for i := range 6 {
		add(5 + i)
	}
	if to.planned != 4 || to.beside == nil || len(to.ops) != 7 {
		t.Fatalf("%d of %d worked out: %v", to.planned, len(to.ops), to.beside)
	}
	close(release)
	<-to.running.done
	add(11)
	if len(to.ops) != 4 || len(to.seen) != 4 || to.triples != 4*each || len(to.running.locs) != 4 {
		t.Errorf("%d ops of %d locations and %d triples wait, %d are written", len(to.ops), len(to.seen), to.triples, len(to.running.locs))
	}
	if err := to.settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	if want := []int{4 * each / 2, 4 * each / 2, 4 * each / 2}; !slices.Equal(sizes, want) || c.updated != ops {
		t.Errorf("updates of %v triples, want %v; %+v", sizes, want, c)
	}
	b.mir.refuse = nil
	b.equal()
}
