package ledger

import (
	"log/slog"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/internal/kv/memkv"
)

// stateAt has a stage, in every way that leads to it.
func statesAt(s Stage) []State {
	held := &Deletions{ID: "1", Reason: "30 of 100 resources would go", Since: time.Now()}
	switch s {
	case Comparing:
		return []State{
			{Stage: Following, CompareMirror: "lost its checkpoint"},
			{Stage: Following, CompareSource: "the map was changed"},
			{Stage: Following, CompareMirror: "lost its checkpoint", CompareSource: "the map was changed", HeldDeletions: held, HeldGap: "gap: lists are not there"},
		}
	case Held:
		return []State{{Stage: Following, HeldGap: "gap: lists are not there"}, {Stage: Following, HeldDeletions: held}}
	case Following:
		return []State{{Stage: Following}}
	}
	return []State{{Stage: s}, {Stage: s, CompareMirror: "lost its checkpoint", HeldDeletions: held}}
}

// Every step between two stages is made or refused as the table says, and a refused one
// changes nothing.
func TestSteps(t *testing.T) {
	allowed := map[Stage]string{
		None:      "none baseline",
		Baseline:  "baseline following comparing held",
		Following: "baseline following comparing held",
		Comparing: "baseline following comparing held",
		Held:      "baseline following comparing held",
	}
	for _, from := range Stages {
		got := ""
		for _, to := range Stages {
			for _, a := range statesAt(from) {
				for _, b := range statesAt(to) {
					if a.At() != from || b.At() != to {
						t.Fatalf("%+v is at %s, %+v at %s", a, a.At(), b, b.At())
					}
					l := New(memkv.New(), slog.New(slog.DiscardHandler), 1, 1)
					l.state = a
					first := l.store.Batch()
					l.Put(first, &Meta{State: a})
					if err := first.Commit(t.Context(), true); err != nil {
						t.Fatal(err)
					}
					batch := l.store.Batch()
					l.PutBody(batch, HashOf("x"), []byte("body"))
					err := l.Commit(t.Context(), batch, &Meta{State: b})
					if (err == nil) != Allowed(from, to) {
						t.Errorf("from %s to %s: %v", from, to, err)
					}
					m, found, lerr := l.Load(t.Context())
					if want := map[bool]Stage{true: to, false: from}[err == nil]; lerr != nil || !found || m.At() != want {
						t.Errorf("from %s to %s: it is at %s, %v", from, to, m.At(), lerr)
					}
					if _, berr := l.store.Get(t.Context(), Key(KindBody, 1, HashOf("x"))); (berr == nil) != (err == nil) {
						t.Errorf("from %s to %s: %v, and the body %v", from, to, err, berr)
					}
				}
			}
			if Allowed(from, to) {
				got += " " + to.String()
			}
		}
		if got[1:] != allowed[from] {
			t.Errorf("from %s:%s, want %s", from, got, allowed[from])
		}
	}
}

// The reason of a stage is told; the earlier need comes first.
func TestWhy(t *testing.T) {
	for _, s := range Stages {
		for _, st := range statesAt(s) {
			if why := st.Why(); (why != "") != (s == Comparing || s == Held) {
				t.Errorf("%s: %q", s, why)
			}
		}
	}
}
