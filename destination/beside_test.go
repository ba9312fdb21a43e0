package destination

import (
	"context"
	"fmt"
	"testing"
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
		o := &op{loc: hashString(loc), it: &item{Loc: loc, Promise: promise{Length: -1}}}
		if text != "" {
			out := &outcome{it: o.it, rec: &record{Loc: loc, Entity: fmt.Sprintf("http://ex.org/e%d", i), Triples: 1}, wire: []byte(text)}
			d.prepare(out)
			o.rec, o.wire, o.sts, o.packed = out.rec, out.wire, out.sts, out.packed
		}
		return o
	}
	mine := "<http://ex.org/e%d> <http://ex.org/q> \"new\" .\n"
	running := func(ops ...*op) *inFlight {
		t.Helper()
		f := &inFlight{planned: make(chan struct{}), locs: map[hash16]bool{}, turn: 7}
		for _, o := range ops {
			f.locs[o.loc] = true
		}
		var c counts
		w, err := d.work(ops, &c)
		if err != nil {
			t.Fatal(err)
		}
		f.markPlanned(d.subjectsOf(ops, w.changes))
		return f
	}
	fresh := func(i int) *op { return become(i, fmt.Sprintf(mine, i)) } // of which nothing is recorded
	moving := fresh(9)
	moving.replaces = []hash16{hashString("gone")}
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
		if w := d.workBeside(c.ops, c.f); (w != nil) != c.want || w != nil && (w.turn != 7 || len(w.plan.inserts) != len(c.ops)) {
			t.Errorf("%s: %+v", c.name, w)
		}
	}

	// Of two that share the last owner of a triple the plan made earlier would keep it.
	stale := d.workBeside([]*op{become(1, "")}, running(fresh(7)))
	if stale == nil || len(stale.plan.deletes) != 1 {
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
