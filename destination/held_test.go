package destination

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/internal/teststores"
)

// Deletions beside entities that moved are held against all that the mirror has,
// not against the few that did not move.
func TestDeletionsBesideMoves(t *testing.T) {
	for _, kind := range []string{"lists", "list-only", "dump-only"} {
		for _, gone := range []int{1, 15, 30} {
			t.Run(fmt.Sprint(kind, " ", gone), func(t *testing.T) {
				b := newBench(t)
				s := b.src
				s.ours = true
				s.changes, s.list, s.dump = kind == "lists", kind != "dump-only", kind == "dump-only"
				fill(s, 100)
				b.sync()
				s.moveAll("/set/moved/", false)
				for i := range gone {
					s.remove(fmt.Sprintf("e%d.nt", i))
				}
				rep := b.sync()
				if gone == 30 {
					if !strings.HasPrefix(rep.Held, "30 of 100 resources would go, more than the 20 ") {
						t.Fatalf("%+v", rep)
					}
					return
				}
				if rep.Held != "" || !rep.InSync || rep.Moved != int64(100-gone) || rep.Deleted != int64(gone) {
					t.Fatalf("%+v", rep)
				}
				b.equal()
				if rep = b.sync(); rep.Mode != "none" || !rep.InSync {
					t.Fatalf("%+v", rep)
				}
			})
		}
	}
}

// What is held stays held when there are changes and no gap.
func TestHeldWhereGapsStop(t *testing.T) {
	b := newBench(t)
	s := b.src
	b.cfg.OnGap = "stop"
	fill(s, 40)
	b.sync()
	s.mu.Lock()
	for i := range 15 {
		delete(s.bodies, fmt.Sprintf("e%d.nt", i))
	}
	s.mu.Unlock()
	if rep, err := b.open().Sync(context.Background(), SyncOptions{Full: true}); err != nil || !strings.HasPrefix(rep.Held, "15 of 40 ") {
		t.Fatalf("%+v %v", rep, err)
	}
	for i := range 2 {
		s.put("e20.nt", nt("e20", fmt.Sprint("x", i)))
		if rep := b.sync(); !strings.HasPrefix(rep.Held, "15 of 40 ") || rep.InSync {
			t.Fatalf("%+v", rep)
		}
	}
	b.cfg.MaxDeleteRatio = 1
	if rep := b.sync(); rep.Held != "" || !rep.InSync || rep.Deleted != 15 {
		t.Fatalf("%+v", rep)
	}
	b.equal()
}

// What a list only lacked and changes then delete is held still: the one does not make the
// other right. Accepted, it goes.
func TestHeldAndThenTold(t *testing.T) {
	b := newBench(t)
	s := b.src
	fill(s, 40)
	b.sync()
	s.mu.Lock()
	for i := range 15 {
		delete(s.bodies, fmt.Sprintf("e%d.nt", i))
	}
	s.anew, s.drop = s.tick(), len(s.log)
	s.frozen, s.listAt, s.listSeq = maps.Clone(s.bodies), s.now, len(s.log)
	s.mu.Unlock()
	if rep := b.sync(); !strings.HasPrefix(rep.Held, "15 of 40 ") {
		t.Fatalf("%+v", rep)
	}
	for step, n := range []int{2, 13} { // a part, and then all
		s.mu.Lock()
		for i := range n {
			s.log = append(s.log, logged{name: fmt.Sprintf("e%d.nt", i+2*step), kind: "deleted", at: s.tick(), folder: s.folder})
		}
		s.mu.Unlock()
		if rep := b.sync(); !strings.HasPrefix(rep.Held, "15 of 40 ") || rep.Deleted != 0 || rep.InSync {
			t.Fatalf("%+v", rep)
		}
	}
	if rep := b.accept(); rep.Held != "" || !rep.InSync || rep.Deleted != 15 {
		t.Fatalf("%+v", rep)
	}
	b.equal()
	if rep := b.sync(); rep.Held != "" || !rep.InSync {
		t.Fatalf("%+v", rep)
	}
}

// What is held is told in one place, as is a gap that stays.
func TestHeldIsToldOnce(t *testing.T) {
	for _, kind := range []string{"deletions", "deletions in a dump", "gap", "gap stops"} {
		b := newBench(t)
		s := b.src
		fill(s, 40)
		switch kind {
		case "deletions in a dump":
			s.list, s.dump, s.changes = false, true, false
		case "gap":
			s.list = false
		case "gap stops":
			b.cfg.OnGap = "stop"
		}
		b.sync()
		if strings.HasPrefix(kind, "gap") {
			s.anew, s.drop = s.tick(), len(s.log)
			s.put("e1.nt", nt("e1", "later"))
		} else {
			s.mu.Lock()
			for i := range 15 {
				delete(s.bodies, fmt.Sprintf("e%d.nt", i))
			}
			s.mu.Unlock()
		}
		rep, err := b.open().Sync(context.Background(), SyncOptions{Full: !strings.HasPrefix(kind, "gap")})
		reason, _, _ := strings.Cut(rep.Held, ";")
		if err != nil || rep.Held == "" || strings.Contains(rep.Why, reason) || strings.Contains(rep.Why, "are kept") {
			t.Errorf("%s: held %q, why %q, %v", kind, rep.Held, rep.Why, err)
		}
	}
}

// accept lets what is held go.
func (b *bench) accept() SyncReport {
	b.t.Helper()
	d := b.open()
	h, err := d.Held(b.t.Context(), "", 1)
	if err != nil || h == nil {
		b.t.Fatalf("held: %+v %v", h, err)
	}
	rep, err := d.Sync(b.t.Context(), SyncOptions{Accept: h.ID})
	if err != nil {
		b.t.Fatal(err)
	}
	return rep
}

// However the source tells its deletions, in one list or in many, of changes, in a dump or
// by what a list lacks, and whatever work meets them: what is too much together waits, the
// rest goes on, and exactly what was shown goes when it is accepted.
func TestMassDeletions(t *testing.T) {
	type way struct {
		name  string
		setUp func(*bench)
		work  func(*bench) SyncReport
	}
	sync := func(b *bench) SyncReport { return b.sync() }
	full := func(b *bench) SyncReport {
		rep, err := b.open().Sync(b.t.Context(), SyncOptions{Full: true})
		if err != nil {
			b.t.Fatal(err)
		}
		return rep
	}
	repair := func(b *bench) SyncReport {
		rep, err := b.open().Audit(b.t.Context(), AuditOptions{Repair: true})
		if err != nil || rep.Equal || rep.Held == "" {
			b.t.Fatalf("%+v %v", rep, err)
		}
		return b.sync()
	}
	for _, w := range []way{
		{"one change list", func(b *bench) {}, sync},
		{"many small change lists", func(b *bench) { b.src.changeParts = 5 }, sync},
		{"windows of changes", func(b *bench) { b.window = 3 }, sync},
		{"change dump", func(b *bench) { b.src.changes, b.src.changeDump = false, true }, sync},
		{"resource list", func(b *bench) { b.src.changes = false }, sync},
		{"resource dump", func(b *bench) { b.src.changes, b.src.list, b.src.dump = false, false, true }, sync},
		{"full", func(b *bench) {}, full},
		{"repair", func(b *bench) {}, repair},
		{"versions", func(b *bench) { b.cfg.Keep = "versions" }, sync},
		{"per-entity", func(b *bench) { b.perEntity() }, sync},
	} {
		if teststores.Unraced(t, 3) {
			continue
		}
		t.Run(w.name, func(t *testing.T) {
			b := newBench(t)
			s := b.src
			s.ours = true
			w.setUp(b)
			fill(s, 60)
			b.sync()
			before := len(b.all())
			for i := range 20 {
				s.remove(fmt.Sprintf("e%d.nt", i))
			}
			s.put("e50.nt", nt("e50", "changed"))
			rep := w.work(b)
			if !strings.HasPrefix(rep.Held, "20 of 60 ") || rep.Deleted != 0 || rep.InSync || len(b.all()) != before-1 {
				t.Fatalf("%d of %d left: %+v", len(b.all()), before-1, rep)
			}
			b.clock = b.clock.Add(time.Hour)
			if st, err := b.open().Status(t.Context()); err != nil || st.InSync || st.BehindSeconds == nil || *st.BehindSeconds < 3600 {
				t.Fatalf("with held deletions: %+v %v", st, err)
			}
			h, err := b.open().Held(t.Context(), "", 7)
			if err != nil || h.Deletions != 20 || h.Of != 60 || len(h.Items) != 7 || h.Next == "" || h.Items[0].Entity == "" || h.Items[0].Location == "" {
				t.Fatalf("%+v %v", h, err)
			}
			met := map[string]bool{}
			for next := ""; ; {
				h, err := b.open().Held(t.Context(), next, 7)
				if err != nil {
					t.Fatal(err)
				}
				for _, it := range h.Items {
					met[it.Location] = true
				}
				if next = h.Next; next == "" {
					break
				}
			}
			if len(met) != 20 {
				t.Fatalf("%d are shown", len(met))
			}
			// One is there again, and thirteen others go: those were not shown.
			s.put("e3.nt", nt("e3", "again"))
			for i := 25; i < 38; i++ {
				s.remove(fmt.Sprintf("e%d.nt", i))
			}
			rep, err = b.open().Sync(t.Context(), SyncOptions{Accept: h.ID})
			if err != nil || rep.Deleted != 19 || rep.InSync || !strings.HasPrefix(rep.Held, "13 of 60 ") {
				t.Fatalf("%+v %v", rep, err)
			}
			if rep, err := b.open().Sync(t.Context(), SyncOptions{Accept: h.ID}); !errors.Is(err, ErrNotHeld) {
				t.Fatalf("%+v %v", rep, err)
			}
			if rep := b.accept(); rep.Deleted != 13 || !rep.InSync || rep.Held != "" {
				t.Fatalf("%+v", rep)
			}
			b.equalAll()
			if h, err := b.open().Held(t.Context(), "", 1); h != nil || err != nil {
				t.Fatalf("%+v %v", h, err)
			}
		})
	}
}
