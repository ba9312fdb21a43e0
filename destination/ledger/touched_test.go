package ledger

import (
	"testing"

	"github.com/rsbridge/rsbridge/internal/teststores"
)

// A touched resource is told once, as it was before the first operation since a span.
func TestTouchedSinceASpan(t *testing.T) {
	store := teststores.Records(t)
	l := &Ledger{store: store, dest: 1}
	touch := func(s Span, loc, was string) {
		b := store.Batch()
		defer b.Close()
		if err := l.Touch(t.Context(), b, s, []Hash{HashOf(loc)}, func(*Record, *Fault) *Touched { return &Touched{State: was} }); err != nil {
			t.Fatal(err)
		}
		if err := b.Commit(t.Context(), true); err != nil {
			t.Fatal(err)
		}
	}
	since := func(s Span) string {
		got := map[Hash]string{}
		for loc, touched := range l.Touched(t.Context(), store, s) {
			if _, again := got[loc]; again || touched.Err != nil {
				t.Fatalf("%v again: %v", loc, touched.Err)
			}
			got[loc] = touched.State
		}
		return got[HashOf("a")] + "," + got[HashOf("b")] + "," + got[HashOf("c")]
	}
	touch(1, "a", "a1")
	touch(1, "a", "a1 again")
	touch(2, "a", "a2")
	touch(2, "b", "b2")
	touch(300, "b", "b300")
	touch(300, "c", "c300")
	for s, want := range map[Span]string{1: "a1,b2,c300", 2: "a2,b2,c300", 3: ",b300,c300", 301: ",,"} {
		if got := since(s); got != want {
			t.Errorf("since %d: %q, not %q", s, got, want)
		}
	}
	b := store.Batch()
	defer b.Close()
	l.Untouch(b, 300)
	if err := b.Commit(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	if got := since(1); got != since(300) {
		t.Errorf("%q after the spans before it were dropped", got)
	}
}
