package destination

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/internal/kv"
)

// TestStatusWhileLeaving: whenever a mirror says that it is in sync, it has everything up to its
// position; deletions wait for the end of a run.
func TestStatusWhileLeaving(t *testing.T) {
	b := newBench(t)
	b.src.ours = true
	fill(b.src, 20)
	b.sync()
	b.src.remove("e3.nt")
	b.src.put("e5.nt", nt("e5", "a", "new"))
	looks := 0
	b.mir.hook = func(w http.ResponseWriter, r *http.Request) bool {
		st, err := b.d.Status(t.Context())
		if err != nil {
			t.Error(err)
		}
		has := strings.Join(b.mir.lines(graphA), "\n")
		if st.InSync && st.Sequence != nil && *st.Sequence > 20 && strings.Contains(has, "e3>") {
			t.Errorf("in sync at %d with\n%s", *st.Sequence, has)
		}
		if st.BehindChanges != nil && *st.BehindChanges == 0 && *st.Sequence > 20 && strings.Contains(has, "e3>") {
			t.Errorf("behind by nothing at %d with\n%s", *st.Sequence, has)
		}
		looks++
		return false
	}
	rep := b.sync()
	b.mir.hook = nil
	if st, err := b.d.Status(t.Context()); err != nil || !st.InSync || !rep.InSync || rep.Deleted != 1 || looks == 0 {
		t.Errorf("%+v %+v %v, %d looks", st, rep, err, looks)
	}
}

// seen looks whenever a batch begins.
type seen struct {
	kv.Store
	look func()
}

func (s seen) Batch() kv.Batch {
	s.look()
	return s.Store.Batch()
}

// TestNoFaultBeforeHeld: between any two records of a run that holds deletions, and of the one that lets them go,
// the mirror is behind or waits for a person. It is never out of sync without a reason, and never too far behind.
func TestNoFaultBeforeHeld(t *testing.T) {
	for name, hold := range map[string]func(*bench) error{
		"sync": func(b *bench) error {
			rep, err := b.d.Sync(t.Context(), SyncOptions{})
			if err == nil && rep.InSync {
				err = fmt.Errorf("in sync: %+v", rep)
			}
			return err
		},
		"repair": func(b *bench) error {
			rep, err := b.d.Audit(t.Context(), AuditOptions{Repair: true})
			if err == nil && (rep.Equal || rep.Held == "") {
				err = fmt.Errorf("nothing is held: %+v", rep)
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.src.ours, b.window, b.stays = true, 7, true
			looks, what := -1, ""
			b.store = seen{b.store, func() {
				if looks < 0 {
					return
				}
				looks++
				st, err := b.d.Status(t.Context())
				switch {
				case err != nil:
					t.Error(err)
				case !st.InSync && !st.Behind && st.Held == "":
					t.Errorf("%s: out of sync for no reason: %+v", what, st)
				case st.BehindChanges != nil && *st.BehindChanges > 30:
					t.Errorf("%s: behind by %d changes of 30: %+v", what, *st.BehindChanges, st)
				}
			}}
			fill(b.src, 100)
			b.sync()
			for i := range 30 {
				b.src.remove(fmt.Sprintf("e%d.nt", i))
			}
			looks, what = 0, "held"
			if err := hold(b); err != nil || looks == 0 {
				t.Fatalf("%v, %d looks", err, looks)
			}
			b.clock = b.clock.Add(time.Hour)
			st, err := b.d.Status(t.Context())
			if err != nil || st.InSync || !st.Decision || st.BehindSeconds == nil || *st.BehindSeconds < 3600 {
				t.Fatalf("%+v %v", st, err)
			}
			what = "accepted"
			rep := b.accept()
			if looks = -1; !rep.InSync || rep.Deleted != 30 {
				t.Errorf("%+v", rep)
			}
		})
	}
}
