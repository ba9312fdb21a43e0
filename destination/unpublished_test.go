package destination

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/internal/teststores"
)

// depths are those of an audit.
var depths = []string{"inventory", "store", "origin"}

// A source publishes its changes later than it makes them: with its next dump, or by the schedule of
// its list. Until then the mirror is not in sync, and an audit of every depth says NOT PROVEN with the
// time up to which it is proven; then EQUAL.
func TestChangesAreNotPublished(t *testing.T) {
	dumps := func(s *testSource) { s.list, s.changes, s.dump, s.changeDump, s.packed = false, false, true, true, 5 }
	for name, set := range map[string]func(*testSource){
		"dumps":                  dumps,
		"dumps without lengths":  func(s *testSource) { dumps(s); s.noLength = true },
		"dumps with copies":      func(s *testSource) { dumps(s); s.contents = true },
		"Resource Dump alone":    func(s *testSource) { s.list, s.changes, s.dump = false, false, true },
		"Change Dump alone":      func(s *testSource) { s.list, s.changes, s.changeDump, s.packed = false, false, true, 5 },
		"list by a schedule":     func(s *testSource) { s.changes = false },
		"index by a schedule":    func(s *testSource) { s.changes, s.parts = false, 2 },
		"list and Resource Dump": func(s *testSource) { s.changes, s.dump = false, true },
	} {
		if teststores.Unraced(t, 3) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			s := b.src
			set(s)
			s.ours, s.inventory = true, true
			fill(s, 10)
			hold := func() {
				s.frozen, s.listSeq, s.listAt = maps.Clone(s.bodies), len(s.log), s.now
				if s.dumped = nil; s.dump {
					s.freezeDump()
				}
			}
			hold()
			b.sync()
			equal := func() {
				t.Helper()
				rep := b.sync()
				st, err := b.d.Status(context.Background())
				if err != nil || !rep.InSync || !st.InSync || *st.BehindSeconds != 0 || st.Unpublished != 0 {
					t.Fatalf("%+v %+v %v", rep, st, err)
				}
				b.same(b.mir.lines(graphA), s.want())
				b.verdict("equal", time.Time{})
			}
			equal()
			was, at := b.mir.lines(graphA), *b.cursorTime()
			s.put("e1.nt", nt("e1", "second"))
			s.put("new.nt", nt("new", "x"))
			s.remove("e2.nt")
			b.verdict("not proven", at) // before a sync has seen it
			if st, err := b.open().Status(context.Background()); err != nil || st.InSync || st.Unpublished != 13 {
				t.Errorf("after an audit has seen it: %+v %v", st, err)
			}
			for range 2 {
				rep := b.sync()
				st, err := b.d.Status(context.Background())
				if err != nil || rep.InSync || st.InSync || *st.BehindSeconds == 0 || *rep.BehindSeconds == 0 || st.Unpublished != 13 {
					t.Fatalf("%+v %+v %v", rep, st, err)
				}
				b.same(b.mir.lines(graphA), was)
				b.verdict("not proven", at)
			}
			if rep, err := b.open().Audit(context.Background(), AuditOptions{Repair: true, Depth: "origin"}); err != nil || rep.Repaired > 0 {
				t.Fatalf("%+v %v", rep, err)
			}
			b.same(b.mir.lines(graphA), was)
			s.put("e3.nt", nt("e3", "second"))
			s.put("e4.nt", nt("e4", "second"))
			hold()
			for _, depth := range depths { // published, and not applied
				if rep, err := b.open().Audit(context.Background(), AuditOptions{Depth: depth}); err != nil || rep.Verdict != "different" || rep.ProvenUntil != nil {
					t.Fatalf("%s: %+v %v", depth, rep, err)
				}
			}
			equal()
		})
	}
}

// verdict fails unless an audit of every depth says so, until a time.
func (b *bench) verdict(want string, until time.Time) {
	b.t.Helper()
	for _, depth := range depths {
		rep, err := b.open().Audit(context.Background(), AuditOptions{Depth: depth})
		if err != nil || rep.Verdict != want || rep.Equal != (want == "equal") || !until.IsZero() && (rep.ProvenUntil == nil || !rep.ProvenUntil.Equal(until)) {
			b.t.Fatalf("%s: %+v %v, want %s until %s", depth, rep, err, want, until)
		}
		if !slices.Contains([]string{"equal", "different", "not proven"}, rep.Verdict) {
			b.t.Fatal(rep.Verdict)
		}
	}
}

func (b *bench) cursorTime() *time.Time {
	m := b.open().mem.SnapshotMeta()
	t := m.At.Cursor().Time()
	return &t
}

// A Change Dump ends before the source's newest change, and the Resource List or Dump beside it has
// that: the mirror takes it, and is in sync.
func TestListIsAheadOfChangeDump(t *testing.T) {
	for _, list := range []bool{true, false} {
		b := newBench(t)
		s := b.src
		s.ours, s.inventory, s.list, s.dump, s.changes, s.changeDump, s.packed = true, true, list, !list, false, true, 5
		fill(s, 10)
		b.sync()
		for i := range 4 {
			s.put("e1.nt", nt("e1", fmt.Sprint("later ", i)))
			s.remove(fmt.Sprintf("e%d.nt", i+2))
			if rep := b.sync(); !rep.InSync || *rep.BehindSeconds != 0 {
				t.Fatalf("%+v", rep)
			}
			b.same(b.mir.lines(graphA), s.want())
			b.verdict("equal", time.Time{})
		}
	}
}

// A change was read, and its resource cannot be had: no audit says that the mirror is equal,
// though the list is older, and nothing that is told tells one state from another.
func TestAuditCountsPendingChanges(t *testing.T) {
	for _, listed := range []bool{true, false} {
		b := newBench(t)
		s := b.src
		s.noHash, s.noLastmod = true, true
		fill(s, 5)
		s.frozen, s.listAt, s.listSeq = maps.Clone(s.bodies), s.now, len(s.log)
		b.sync()
		b.verdict("equal", time.Time{})
		s.list = listed
		s.put("e1.nt", nt("e1", "second"))
		s.put("e9.nt", nt("e9", "second"))
		s.hook = func(w http.ResponseWriter, r *http.Request) bool {
			away := strings.HasSuffix(r.URL.Path, "/e1.nt") || strings.HasSuffix(r.URL.Path, "/e9.nt")
			if away {
				http.Error(w, "out of order", http.StatusServiceUnavailable)
			}
			return away
		}
		if rep := b.sync(); rep.Pending != 2 || rep.InSync {
			t.Fatalf("%+v", rep)
		}
		for _, depth := range depths {
			rep, err := b.open().Audit(context.Background(), AuditOptions{Depth: depth})
			if err != nil || rep.Verdict != "different" || rep.Missing != 1 || rep.Different != 1 {
				t.Fatalf("listed %v, %s: %+v %v", listed, depth, rep, err)
			}
		}
		s.hook = nil
		b.clock = b.clock.Add(time.Hour)
		b.sync()
		b.verdict("equal", time.Time{})
	}
}
