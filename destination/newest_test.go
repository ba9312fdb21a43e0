package destination

import (
	"context"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/destination/feed"
	"github.com/rsbridge/rsbridge/destination/item"
	"github.com/rsbridge/rsbridge/internal/teststores"
)

// A source restored from a backup whose log grows past our cursor with other
// changes: the numbers fit, and the changes between are not missed.
func TestRestoredSource(t *testing.T) {
	for _, kind := range []string{"ours", "ours-parts", "ours-closed", "ours-ends-closed", "ours-shorter", "ours-same", "foreign", "foreign-parts", "since-baseline"} {
		if teststores.Unraced(t, 5) {
			continue
		}
		t.Run(kind, func(t *testing.T) {
			b := newBench(t)
			s := b.src
			s.ours = !strings.HasPrefix(kind, "foreign")
			switch kind {
			case "ours-parts", "foreign-parts":
				s.changeParts = 4
			case "ours-closed":
				s.changeParts = 2
			}
			fill(s, 5)
			if kind == "since-baseline" {
				s.changesFrom, s.drop = s.now, 5 // the creations are in no Change List
			}
			b.sync()
			back := 7
			if kind == "since-baseline" {
				back = 0
			} else {
				for i := range 6 {
					s.put(fmt.Sprintf("e%d.nt", i), nt(fmt.Sprintf("e%d", i), "before", fmt.Sprint(i)))
				}
				if kind == "ours-ends-closed" {
					s.changeParts = 11 // the cursor's change is the last of a closed list later
				}
				b.sync()
				b.equal()
			}
			if kind == "since-baseline" {
				s.restore(0)
				s.drop = 0
				fill(s, 4) // other data in other numbers
				s.put("other.nt", nt("other", "x"))
				s.drop, s.changesFrom = 5, s.now
			} else {
				s.restore(back)
			}
			grow := map[string]int{"ours-shorter": 2, "ours-same": 4}[kind]
			if grow == 0 {
				grow = 9
			}
			for i := range grow {
				s.put(fmt.Sprintf("n%d.nt", i), nt(fmt.Sprintf("n%d", i), "after"))
			}
			rep := b.sync()
			if !rep.InSync {
				t.Fatalf("%+v", rep)
			}
			b.equal()
			if rep.Mode != "baseline" || !strings.Contains(rep.Why, "gap: ") {
				t.Errorf("mode %s, why %s", rep.Mode, rep.Why)
			}
			t.Log(rep.Why)
			s.put("n0.nt", nt("n0", "later"))
			if rep = b.sync(); rep.Mode != "incremental" || !rep.InSync || rep.Updated != 1 {
				t.Fatalf("after it: %+v", rep)
			}
			b.equal()
		})
	}
}

// A source without numbers is set back when nothing but its list or dump was taken yet, or
// so far that all of what it has left in packages is older than what is mirrored, or has
// changes without times.
func TestRestoredForeignSource(t *testing.T) {
	dumps := func(s *testSource) { s.list, s.changes, s.dump, s.changeDump, s.packed = false, false, true, true, 3 }
	for name, set := range map[string]func(s *testSource){
		"after a baseline":              func(*testSource) {},
		"many lists, after a baseline":  func(s *testSource) { s.changeParts = 4 },
		"Change Dump":                   func(s *testSource) { s.changes, s.changeDump, s.packed = false, true, 3 },
		"Change Dump, after a baseline": func(s *testSource) { s.changes, s.changeDump, s.packed = false, true, 3 },
		"dumps, after a baseline":       dumps,
		"no times":                      func(s *testSource) { s.noTimes, s.changeParts = true, 4 },
	} {
		b := newBench(t)
		s := b.src
		set(s)
		fill(s, 6)
		s.tick() // the list is of a later time than the last change
		b.sync()
		if !strings.HasSuffix(name, "after a baseline") {
			for i := range 6 {
				s.put(fmt.Sprintf("m%d.nt", i), nt(fmt.Sprintf("m%d", i), "before"))
			}
			b.sync()
			b.equal()
		}
		s.restore(len(s.log) - 3)
		s.tick()
		rep := b.sync()
		if !rep.InSync || rep.Mode != "baseline" || !strings.Contains(rep.Why, "gap: ") || rep.Deleted != 3 {
			t.Errorf("%s: %+v", name, rep)
		}
		b.equal()
	}
}

// A list or dump is taken between two packages of the Change Dump, and the source is then set
// back to before it: the package that comes does not tell of what was taken.
func TestSetBackBetweenPackages(t *testing.T) {
	for _, list := range []bool{true, false} {
		for _, packed := range []int{4, 8} { // of the first there is one before the baseline
			b := newBench(t)
			s := b.src
			s.list, s.dump, s.changes, s.changeDump, s.packed = list, !list, false, true, packed
			fill(s, 6)
			b.sync()
			if rep := b.sync(); !rep.InSync {
				t.Fatalf("%+v", rep)
			}
			s.restore(5)
			for i := range 3 {
				s.put(fmt.Sprintf("n%d.nt", i), nt("n", fmt.Sprint(i)))
			}
			rep := b.sync()
			if !rep.InSync || !strings.Contains(rep.Why, "gap: ") || rep.Deleted != 1 {
				t.Errorf("list %v, packed %d: %+v", list, packed, rep)
			}
			b.equal()
			for i := range 8 {
				s.put(fmt.Sprintf("m%d.nt", i), nt("m", fmt.Sprint(i)))
			}
			if rep := b.sync(); !rep.InSync || rep.Mode != "incremental" || rep.Created != 8 {
				t.Errorf("list %v, packed %d, after it: %+v", list, packed, rep)
			}
			b.equal()
		}
	}
}

// Where nothing but its changes tells what a source has, and no more from the first one on, what was lost
// of them stays told: no comparison finds out what it was, and no audit calls the mirror equal.
func TestGapOfChangesAlone(t *testing.T) {
	for _, onGap := range []string{"baseline", "stop"} {
		for _, told := range []bool{true, false} {
			b := newBench(t)
			b.cfg.OnGap = onGap
			b.src.list = false
			fill(b.src, 6)
			b.sync()
			b.src.restore(3)
			b.src.drop = 1
			b.src.put("n.nt", nt("n", "after"))
			for _, full := range []bool{!told, true, false} {
				rep, err := b.open().Sync(t.Context(), SyncOptions{Full: full})
				if err != nil || rep.InSync || !strings.HasPrefix(rep.Held, "gap: ") {
					t.Fatalf("%s, told %v, full %v: %+v %v", onGap, told, full, rep, err)
				}
				for _, repair := range []bool{false, true} {
					audit, err := b.open().Audit(t.Context(), AuditOptions{Repair: repair})
					if err != nil || audit.Equal || !strings.HasPrefix(audit.SourceError, "gap: ") {
						t.Errorf("%s, told %v, full %v: %+v %v", onGap, told, full, audit, err)
					}
				}
			}
			b.src.list = true
			if rep, err := b.open().Sync(t.Context(), SyncOptions{Full: true}); err != nil || !rep.InSync {
				t.Fatalf("%+v %v", rep, err)
			}
			b.equal()
		}
	}
}

// Changes from the first one on are the whole history: a source that was set back is believed when it tells
// the same twice, and what it has no more goes.
func TestSetBackOfAWholeHistory(t *testing.T) {
	b := newBench(t)
	s := b.src
	s.list = false
	fill(s, 6)
	b.sync()
	s.restore(3)
	s.put("n.nt", nt("n", "after"))
	if rep := b.sync(); rep.InSync || !strings.HasPrefix(rep.Held, "gap: ") || rep.Deleted > 0 {
		t.Fatalf("%+v", rep)
	}
	if rep := b.sync(); !rep.InSync || rep.Deleted != 3 {
		t.Fatalf("%+v", rep)
	}
	b.equal()
}

// A repair takes from the list what is not followed yet, and then the source is set back to
// where the changes are followed from: what it had meanwhile does not stay.
func TestSetBackBehindARepair(t *testing.T) {
	for _, kind := range []string{"", "cut off", "dumps"} {
		b := newBench(t)
		s := b.src
		if kind == "dumps" {
			s.list, s.changes, s.dump, s.changeDump, s.packed = false, false, true, true, 3
		}
		fill(s, 6)
		b.sync()
		s.put("e0.nt", nt("e0", "last"))
		b.sync()
		n := len(s.log)
		for i := range 4 {
			s.put(fmt.Sprintf("m%d.nt", i), nt(fmt.Sprintf("m%d", i), "lost"))
		}
		d := b.open()
		if kind == "cut off" {
			d.mem.Crash = cutAfter(3)
		}
		rep, err := d.Audit(t.Context(), AuditOptions{Repair: true})
		if cut := kind == "cut off"; cut != (err != nil) || !cut && !rep.Equal {
			t.Fatalf("%s: %+v %v", kind, rep, err)
		}
		s.restore(n)
		for range 2 {
			if rep := b.sync(); !rep.InSync {
				t.Fatalf("%s: %+v", kind, rep)
			}
			b.equal()
		}
	}
}

// A comparison with a list that promises too little to tell what changed does not pass over
// the changes that do.
func TestComparedWithAVagueList(t *testing.T) {
	promise := regexp.MustCompile(` hash="[^"]*"|<lastmod>[^<]*</lastmod>`)
	for _, full := range []bool{false, true} {
		b := newBench(t)
		s := b.src
		s.damage = func(doc string) string { return promise.ReplaceAllString(doc, "") } // but for lengths
		s.put("e.nt", nt("e", "X"))
		b.sync()
		s.put("e.nt", nt("e", "Y")) // of the same length
		s.put("new.nt", nt("new", "n"))
		s.tick()
		if full {
			if rep, err := b.open().Sync(t.Context(), SyncOptions{Full: true}); err != nil || !rep.InSync {
				t.Fatalf("%+v %v", rep, err)
			}
			b.equal()
		} else if rep, err := b.open().Audit(t.Context(), AuditOptions{Repair: true}); err != nil || !rep.Equal {
			t.Fatalf("%+v %v", rep, err)
		}
		if rep := b.sync(); !rep.InSync {
			t.Fatalf("%+v", rep)
		}
		b.equal()
	}
}

// A history that only goes on is never taken for another one, wherever lists
// end.
func TestSameHistoryIsNoGap(t *testing.T) {
	for _, ours := range []bool{true, false} {
		for _, parts := range []int{0, 1, 2, 5} {
			if teststores.Unraced(t, 3) {
				continue
			}
			b := newBench(t)
			s := b.src
			s.ours, s.changeParts = ours, parts
			fill(s, 3)
			b.sync()
			for i := range 14 {
				for j := range i % 3 {
					s.put(fmt.Sprintf("e%d.nt", (i+j)%5), nt("e", fmt.Sprint(i, j)))
				}
				if rep := b.sync(); rep.Mode == "baseline" || !rep.InSync {
					t.Fatalf("ours %v, parts %d, step %d: %+v", ours, parts, i, rep)
				}
			}
			b.equal()
		}
	}
}

// Lists that do not tell where they end are followed by others: that is no gap, and a lost
// or another history is one.
func TestListsWithoutEnd(t *testing.T) {
	for _, dialect := range []string{"no until", "0.5", "D-Lib"} {
		for _, parts := range []int{1, 2, 5} {
			for _, end := range []string{"", "set back", "set back to the end of a list", "lost"} {
				if teststores.Unraced(t, 11) {
					continue
				}
				b := newBench(t)
				s := b.src
				s.dialect, s.changeParts = dialect, parts
				fill(s, 3)
				b.sync()
				for i := range 14 {
					for j := range i % 4 {
						s.put(fmt.Sprintf("e%d.nt", (i+j)%5), nt("e", fmt.Sprint(i, j)))
					}
					if i == 8 {
						s.remove("e1.nt")
					}
					if i == 10 { // nothing that is not applied
						s.drop = (len(s.log) - 4) / parts * parts
					}
					if rep := b.sync(); rep.Mode == "baseline" || !rep.InSync {
						t.Fatalf("%s, parts %d, step %d: %+v", dialect, parts, i, rep)
					}
				}
				b.equal()
				switch end {
				case "":
					continue
				case "set back":
					s.restore(len(s.log) - 2)
					s.put("after.nt", nt("after", "x"))
				case "set back to the end of a list":
					s.restore((len(s.log) - 2) / parts * parts)
					s.tick() // the list is of a later time than the last change
				case "lost":
					for i := range 9 {
						s.put(fmt.Sprintf("lost%d.nt", i), nt("lost", fmt.Sprint(i)))
					}
					s.drop = (len(s.log) - 2) / parts * parts
					s.put("after.nt", nt("after", "x"))
				}
				if rep := b.sync(); !rep.InSync || rep.Mode != "baseline" || !strings.Contains(rep.Why, "gap: ") {
					t.Errorf("%s, parts %d, %s: %+v", dialect, parts, end, rep)
				}
				b.equal()
			}
		}
	}
}

// A source that is set back to where its last Change List begins leaves that one empty.
func TestSetBackToTheBeginningOfAList(t *testing.T) {
	for _, dialect := range []string{"", "no until"} {
		b := newBench(t)
		s := b.src
		s.dialect, s.changeParts = dialect, 4
		fill(s, 4)
		b.sync()
		for _, step := range []string{"x", "y"} {
			s.put("e1.nt", nt("e1", step))
			if rep := b.sync(); rep.Mode != "incremental" || rep.Updated != 1 {
				t.Fatalf("%q: %+v", dialect, rep)
			}
		}
		s.restore(4)
		if rep := b.sync(); rep.Mode != "baseline" || !strings.Contains(rep.Why, "gap: ") {
			t.Errorf("%q: %+v", dialect, rep)
		}
		b.equal()
	}
}

// With a retained window that begins right behind our change nothing is missed,
// and nothing is compared; one that begins later is a gap.
func TestWindowBehindNewest(t *testing.T) {
	b := newBench(t)
	s := b.src
	s.ours = true
	fill(s, 6)
	b.sync()
	s.put("e1.nt", nt("e1", "x"))
	b.sync()
	s.put("e2.nt", nt("e2", "x"))
	s.drop = 7
	if rep := b.sync(); rep.Mode != "incremental" || rep.Updated != 1 {
		t.Fatalf("%+v", rep)
	}
	b.equal()
	s.put("e3.nt", nt("e3", "x"))
	s.put("e4.nt", nt("e4", "x"))
	s.drop = 9
	if rep := b.sync(); rep.Mode != "baseline" || rep.Updated != 2 {
		t.Fatalf("%+v", rep)
	}
	b.equal()
}

// Lists that begin anew at a later time with the same number say that addresses
// may have changed.
func TestListsBeginAnew(t *testing.T) {
	b := newBench(t)
	s := b.src
	s.ours = true
	fill(s, 4)
	s.changesFrom, s.drop = s.now, 4
	b.sync()
	if rep := b.sync(); rep.Mode != "none" {
		t.Fatalf("%+v", rep)
	}
	s.anew = s.tick()
	if rep := b.sync(); rep.Mode != "baseline" || !strings.Contains(rep.Why, "begin anew") || !rep.InSync {
		t.Fatalf("%+v", rep)
	}
	if rep := b.sync(); rep.Mode != "none" || !rep.InSync {
		t.Fatalf("%+v", rep)
	}
	s.put("e1.nt", nt("e1", "x"))
	if rep := b.sync(); rep.Mode != "incremental" || rep.Updated != 1 || !rep.InSync {
		t.Fatalf("%+v", rep)
	}
	b.equal()
}

// An index that has not changed costs one conditional request, and one more for the open list.
func TestUnchangedIndexIsCheap(t *testing.T) {
	for _, ours := range []bool{true, false} {
		b := newBench(t)
		s := b.src
		s.ours, s.changeParts = ours, 4
		fill(s, 10)
		b.sync()
		b.sync()
		b.confirmed()
		clear(s.requests)
		s.notModified = 0
		if rep := b.sync(); rep.Mode != "none" || !rep.InSync {
			t.Fatalf("%+v", rep)
		}
		lists, want := 0, 2
		for path, n := range s.requests {
			if strings.HasPrefix(path, "/set/changelist") {
				lists += n
			}
		}
		if lists != want || s.notModified != want {
			t.Errorf("ours %v: %d requests for Change Lists, %d not modified, want %d: %v", ours, lists, s.notModified, want, s.requests)
		}
		if !ours { // an index that stays as it is while its open list grows
			s.frozenIndex = true
			s.put("e1.nt", nt("e1", "x"))
			if rep := b.sync(); rep.Updated != 1 || !rep.InSync {
				t.Fatalf("%+v", rep)
			}
		}
	}
}

// Where lists overlap, the last change of a run may be of before the cursor. It is not waited
// for by the run after one that was cut off, which need not be told of it.
func TestCutOffBehindTheCursor(t *testing.T) {
	for _, waits := range []bool{false, true} {
		b := newBench(t)
		fill(b.src, 3)
		b.sync()
		d := b.open()
		at := (&run{d: d}).stands()
		w := (&run{d: d}).window(&feed.Offer{}, at)
		last := -time.Minute
		if waits {
			last = 2 * time.Minute
		}
		for i, since := range []time.Duration{time.Minute, last} {
			it := &item.Item{Loc: b.src.url(fmt.Sprintf("/set/r/e%d.nt", i)), Change: "deleted", Time: at.Newest().Time.Add(since)}
			if err := w.add(context.Background(), feed.Change{Item: it, Served: it.Time}); err != nil {
				t.Fatal(err)
			}
		}
		d.mem.Crash = cutAfter(0)
		if err := w.apply(context.Background(), nil); err == nil {
			t.Fatal("it was not cut off")
		}
		// Deletions that only wait are recorded together with the cursor: then it stands there.
		c := (&run{d: d}).stands()
		if there := c.Newest() != nil && c.Newest().Time.Equal(w.at.Newest().Time); (c.Ahead() != nil || there) != waits && !(c.Ahead() == nil && there) {
			t.Errorf("waits %v: %v", waits, c.Ahead())
		}
	}
}

// Where all changes are of one day, no list covers the time at which we stand: what lacks the
// change there is of another history, and no part of it moves the cursor until that is known.
func TestSetBackWithinADay(t *testing.T) {
	for name, set := range map[string]func(s *testSource){
		"Change List":                 func(*testSource) {},
		"Change Lists":                func(s *testSource) { s.changeParts = 4 },
		"Change List, Change Dump":    func(s *testSource) { s.changeDump = true },
		"Change Lists, Change Dump":   func(s *testSource) { s.changeParts, s.changeDump = 4, true },
		"Change Dump":                 func(s *testSource) { s.changes, s.changeDump = false, true },
		"dumps":                       func(s *testSource) { s.list, s.changes, s.dump, s.changeDump = false, false, true, true },
		"packages":                    func(s *testSource) { s.changes, s.changeDump, s.packed = false, true, 2 },
		"changes, and a list of then": func(s *testSource) { s.changeParts, s.changeDump, s.listAt = 3, true, s.now.Add(24*time.Hour) },
	} {
		for _, few := range []bool{false, true} {
			if teststores.Unraced(t, 5) {
				continue
			}
			t.Run(fmt.Sprint(name, few), func(t *testing.T) {
				b := newBench(t)
				s := b.src
				set(s)
				day := func() {
					for i := range s.log {
						s.log[i].at = s.changesFrom
					}
				}
				if few {
					b.few = 1
				}
				fill(s, 6)
				day()
				b.sync()
				for i := range 6 {
					s.put(fmt.Sprintf("m%d.nt", i), nt(fmt.Sprintf("m%d", i), "before"))
				}
				day()
				b.sync()
				b.equal()
				s.restore(6)
				s.put("n.nt", nt("n", "after"))
				s.put("e1.nt", nt("e1", "after"))
				day()
				d := b.open()
				d.mem.Crash = cutAfter(3) // in the midst of it
				d.Sync(t.Context(), SyncOptions{})
				if rep := b.sync(); !rep.InSync {
					t.Errorf("%+v", rep)
				}
				b.equal()
			})
		}
	}
}

// A source that tells nothing but its changes is set back behind a first run that was cut off:
// what that run has mirrored is not forgotten.
func TestSetBackBehindAStart(t *testing.T) {
	for cut := range 12 {
		b := newBench(t)
		s := b.src
		s.list = false
		fill(s, 6)
		d := b.open()
		d.mem.Crash = cutAfter(cut)
		d.Sync(t.Context(), SyncOptions{})
		if len(b.mir.lines(graphA)) == 0 {
			continue
		}
		s.restore(3)
		s.put("n.nt", nt("n", "after"))
		if rep, err := b.open().Sync(t.Context(), SyncOptions{Full: true}); err != nil || rep.InSync || !strings.HasPrefix(rep.Held, "gap: ") {
			t.Errorf("cut off after %d: %+v %v", cut, rep, err)
		}
	}
}

// The archive of a source that was set back has nothing of the last resource of the dump that
// was taken, so that it closes no gap.
func TestArchiveOfAnotherHistory(t *testing.T) {
	b := newBench(t)
	s := b.src
	s.list, s.dump, s.archive = false, true, true
	fill(s, 6)
	s.drop = 6
	b.sync()
	b.sync()
	s.restore(3)
	for i := range 3 {
		s.put(fmt.Sprintf("n%d.nt", i), nt("n", fmt.Sprint(i)))
	}
	if rep := b.sync(); !rep.InSync || !strings.Contains(rep.Why, "gap: ") {
		t.Errorf("%+v", rep)
	}
	b.equal()
}

// Another history may have the very change at which we stand: what is not told any more beside
// it, or is told otherwise, shows that it is another one.
func TestSetBackToTheSameChange(t *testing.T) {
	for name, c := range map[string]struct {
		set    func(f *foreignForm)
		before []string // written, or removed with "-", up to the change at which we stand
		after  []string
		gap    bool // for good: nothing tells what is gone
	}{
		"one of that day is gone":  {func(f *foreignForm) { f.unit = 24 * time.Hour }, []string{"n1", "n2"}, []string{"n3", "n2"}, false},
		"one of before is gone":    {func(f *foreignForm) {}, []string{"n1", "day", "-n0"}, []string{"day", "-n0"}, false},
		"another length":           {func(f *foreignForm) { f.unit, f.length = 24*time.Hour, true }, []string{"n1"}, []string{"n1"}, false},
		"another package":          {func(f *foreignForm) { f.changes, f.changeDump, f.hashes = false, true, 4 }, []string{"n1", "day", "-n0"}, []string{"day", "-n0", "n2"}, false},
		"no times and no list":     {func(f *foreignForm) { f.list, f.hashes, f.timed = false, 4, 3 }, []string{"n1"}, []string{"n2"}, true},
		"two packages, no lastmod": {func(f *foreignForm) { f.changes, f.changeDump, f.hashes, f.lastmod = false, true, 4, false }, []string{"n1", "n2", "day", "-n0"}, []string{"day", "-n0"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := plainForeign()
			c.set(f)
			s := newForeignSource(rand.New(rand.NewPCG(3, 1)), f)
			s.now = s.now.Truncate(24 * time.Hour)
			b := foreignBench(t, s)
			sync := func() SyncReport {
				s.publish()
				b.clock = s.now.Add(time.Hour)
				return b.sync()
			}
			for _, n := range []string{"n0", "n4"} {
				s.now = s.now.Add(time.Minute)
				s.write(n)
			}
			sync()
			backup, at := s.clone(), s.now
			play := func(names []string) {
				s.now = at.Add(time.Minute)
				for _, n := range names {
					if n == "day" {
						s.now = at.Add(25 * time.Hour)
					} else if gone, ok := strings.CutPrefix(n, "-"); ok {
						s.remove(gone)
					} else {
						s.write(n)
					}
				}
			}
			play(c.before)
			sync()
			b.same(b.mir.lines(graphA), s.want())
			s.foreignState = *backup
			play(c.after)
			rep := sync()
			if c.gap {
				if rep.InSync || !strings.HasPrefix(rep.Held, "gap: ") {
					t.Errorf("%+v", rep)
				}
				return
			}
			if !rep.InSync {
				t.Errorf("%+v", rep)
			}
			b.same(b.mir.lines(graphA), s.want())
		})
	}
}
