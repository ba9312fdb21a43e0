package destination

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestEndOfAudits: after a repair that leaves nothing to do, the status is that after a sync without changes,
// whatever was before. After one that cannot, it tells what is still to be done.
func TestEndOfAudits(t *testing.T) {
	put := func(b *bench) { fill(b.src, 60) }
	remove := func(b *bench) {
		for i := range 20 {
			b.src.remove(fmt.Sprintf("e%d.nt", i))
		}
	}
	down := func(b *bench) {
		b.mir.hook = func(w http.ResponseWriter, _ *http.Request) bool {
			w.WriteHeader(http.StatusBadRequest)
			return true
		}
		b.src.put("e1.nt", nt("e1", "b"))
		if rep, err := b.open().Sync(t.Context(), SyncOptions{}); err == nil || rep.InSync {
			t.Fatalf("a mirror that is down: %+v", rep)
		}
		b.mir.hook = nil
	}
	for name, tc := range map[string]struct {
		before, then func(*bench)
		held         bool
	}{
		"changes":         {then: func(b *bench) { b.src.put("e1.nt", nt("e1", "b")) }},
		"hold ends":       {before: remove, then: put},
		"hold begins":     {then: remove, held: true},
		"hold stays":      {before: remove, held: true},
		"hold is lifted":  {before: remove, then: func(b *bench) { b.cfg.MaxDeleteRatio = 1 }},
		"after a failure": {then: down},
	} {
		t.Run(name, func(t *testing.T) {
			b := newQuietBench(t)
			b.src.ours = true
			fill(b.src, 60)
			b.sync()
			if tc.before != nil {
				tc.before(b)
				b.sync()
			}
			if tc.then != nil {
				tc.then(b)
			}
			b.clock = b.clock.Add(time.Hour)
			rep, err := b.open().Audit(t.Context(), AuditOptions{Repair: true})
			if err != nil || rep.Equal == tc.held || (rep.Held != "") != tc.held {
				t.Fatalf("%+v %v", rep, err)
			}
			b.clock = b.clock.Add(time.Hour)
			st, err := b.open().Status(t.Context())
			if err != nil || st.InSync == tc.held || st.Decision != tc.held || st.Behind || st.LastError != "" || st.Pending > 0 || st.BehindSeconds == nil || st.BehindChanges == nil {
				t.Fatalf("%+v %v", st, err)
			}
			want := uint64(0)
			if tc.held {
				want = 20
			}
			if *st.BehindChanges != want || (*st.BehindSeconds == 0) == tc.held {
				t.Errorf("behind by %v s, %d changes", *st.BehindSeconds, *st.BehindChanges)
			}
		})
	}
}

// TestAcceptAfterCutRun: deletions that a cut off run has met were not shown, and no id of before accepts them.
func TestAcceptAfterCutRun(t *testing.T) {
	b := newQuietBench(t)
	b.src.ours, b.window = true, 3
	fill(b.src, 60)
	b.sync()
	for i := range 20 {
		b.src.remove(fmt.Sprintf("e%d.nt", i))
	}
	b.sync()
	shown, err := b.open().Held(t.Context(), "", 1)
	if err != nil || shown == nil || shown.Deletions != 20 {
		t.Fatalf("%+v %v", shown, err)
	}
	for i := 20; i < 33; i++ {
		b.src.remove(fmt.Sprintf("e%d.nt", i))
	}
	b.src.put("e50.nt", nt("e50", "changed"))
	ctx, cut := context.WithCancel(t.Context())
	b.mir.refuse = func(update string) int {
		if !strings.Contains(update, "changed") {
			return 0
		}
		cut()
		return http.StatusServiceUnavailable
	}
	if rep, err := b.open().Sync(ctx, SyncOptions{}); err == nil {
		t.Fatalf("%+v", rep)
	}
	b.mir.refuse = nil
	if rep, err := b.open().Sync(t.Context(), SyncOptions{Accept: shown.ID}); !errors.Is(err, ErrNotHeld) || rep.Deleted > 0 {
		t.Fatalf("%+v %v", rep, err)
	}
	if rep := b.sync(); !strings.HasPrefix(rep.Held, "33 of 60 ") {
		t.Fatalf("%+v", rep)
	}
	if rep := b.accept(); rep.Deleted != 33 || !rep.InSync {
		t.Fatalf("%+v", rep)
	}
}

// TestAcceptAgain: an accepted hold can be accepted again, as long as its resources have not gone.
func TestAcceptAgain(t *testing.T) {
	b := newQuietBench(t)
	b.src.ours = true
	fill(b.src, 60)
	b.sync()
	for i := range 20 {
		b.src.remove(fmt.Sprintf("e%d.nt", i))
	}
	b.sync()
	h, err := b.open().Held(t.Context(), "", 1)
	if err != nil || h == nil {
		t.Fatalf("%+v %v", h, err)
	}
	b.src.hook = func(w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(http.StatusNotFound)
		return true
	}
	if rep, err := b.open().Sync(t.Context(), SyncOptions{Accept: h.ID}); err == nil || errors.Is(err, ErrNotHeld) || rep.Deleted > 0 {
		t.Fatalf("a source that is down: %+v %v", rep, err)
	}
	b.src.hook = nil
	if rep, err := b.open().Sync(t.Context(), SyncOptions{Accept: h.ID}); err != nil || rep.Deleted != 20 || !rep.InSync {
		t.Fatalf("accepted again: %+v %v", rep, err)
	}
}

// TestRepairOfAnotherMap: a mirror that an audit repairs is not in sync while its descriptions are those of another map.
func TestRepairOfAnotherMap(t *testing.T) {
	b := newQuietBench(t)
	b.src.ours = true
	fill(b.src, 3)
	b.sync()
	b.cfg.Map = "CONSTRUCT { ?entity <urn:mapped> ?o } WHERE { ?entity ?p ?o }"
	b.src.put("e1.nt", nt("e1", "b"))
	if _, err := b.open().Audit(t.Context(), AuditOptions{Repair: true}); err != nil {
		t.Fatal(err)
	}
	if st, err := b.open().Status(t.Context()); err != nil || st.InSync {
		t.Errorf("%+v %v", st, err)
	}
	if rep := b.sync(); !rep.InSync || !strings.Contains(b.mir.lines(graphA)[0], "mapped") {
		t.Errorf("%+v %v", rep, b.mir.lines(graphA))
	}
}
