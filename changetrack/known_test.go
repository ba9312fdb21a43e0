package changetrack

import (
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/rdfres"
)

func TestKnown(t *testing.T) {
	l, clk := newTestLog(t)
	s := many(40, 1)
	mustScan(t, l, s, plain)
	gone := map[string]bool{}
	for e := range s {
		if len(gone) < 5 {
			gone[e] = true
			delete(s, e)
		}
	}
	o := plain
	o.MaxDeleteRatio = -1
	clk.t = clk.t.Add(time.Hour)
	mustScan(t, l, s, o)
	known := func(lo, hi rdfres.Digest) (current, deleted int) {
		v := l.View(t.Context())
		defer v.Close()
		var last rdfres.Digest
		for st, err := range v.Known(t.Context(), lo, hi) {
			if err != nil {
				t.Fatal(err)
			}
			k := rdfres.EntityKey(st.Entity)
			if string(k[:]) <= string(last[:]) {
				t.Fatalf("%s is out of order", st.Entity)
			}
			last = k
			one, err := v.Entity(t.Context(), st.Entity)
			if err != nil || (one.Current == nil) != (st.Current == nil) || gone[st.Entity] != (st.Current == nil) {
				t.Fatalf("%s: %+v, Entity gives %+v, %v", st.Entity, st, one, err)
			}
			if st.Current != nil {
				current++
			} else if st.Deleted != nil && st.Deleted.Kind == Deleted {
				deleted++
			}
		}
		return current, deleted
	}
	half := rdfres.Digest{0x80}
	if c, d := known(rdfres.Digest{}, rdfres.Digest{}); c != 35 || d != 5 {
		t.Errorf("%d current, %d deleted", c, d)
	}
	c1, d1 := known(rdfres.Digest{}, half)
	c2, d2 := known(half, rdfres.Digest{})
	if c1+c2 != 35 || d1+d2 != 5 || c1 == 0 || c2 == 0 {
		t.Errorf("halves: %d and %d current, %d and %d deleted", c1, c2, d1, d2)
	}
	clk.t = clk.t.Add(time.Hour)
	if _, err := l.Retain(t.Context(), clk.now(), clk.now()); err != nil {
		t.Fatal(err)
	}
	if c, d := known(rdfres.Digest{}, rdfres.Digest{}); c != 35 || d != 0 {
		t.Errorf("after retention: %d current, %d deleted", c, d)
	}
}
