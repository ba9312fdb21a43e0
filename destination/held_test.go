package destination

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"
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
					if !strings.HasPrefix(rep.Held, "30 of 100 resources are not in the Resource List any more, more than the 20 ") {
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

// What was held and is then deleted by changes does not stay held, though the
// list stays as it is.
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
		rep := b.sync()
		if step == 0 && (!strings.HasPrefix(rep.Held, "13 of 38 ") || rep.Deleted != 2) {
			t.Fatalf("%+v", rep)
		}
		if step == 1 && (rep.Held != "" || !rep.InSync || rep.Deleted != 13) {
			t.Fatalf("%+v", rep)
		}
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
