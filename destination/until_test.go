package destination

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/internal/teststores"
)

// states runs a history and remembers what the source was after each change.
func states(b *bench) (at []time.Time, want [][]string) {
	s := b.src
	note := func() {
		at = append(at, s.now)
		want = append(want, s.want())
	}
	fill(s, 4)
	note()
	s.put("e1.nt", nt("e1", "second"))
	note()
	s.remove("e2.nt")
	note()
	s.put("new.nt", nt("new", "x"))
	s.put("e1.nt", nt("e1", "third"))
	note()
	s.put("e2.nt", nt("e2", "again"))
	s.put("e3.nt", nt("e3", "last"))
	note()
	return at, want
}

func TestUntil(t *testing.T) {
	cases := map[string]func(s *testSource){
		"mementos":         func(s *testSource) { s.ours = true },
		"parts":            func(s *testSource) { s.ours, s.changeParts, s.parts = true, 3, 2 },
		"archive":          func(s *testSource) { s.ours, s.archive, s.drop = true, true, 6 },
		"timegate":         func(s *testSource) { s.timegate = true },
		"timegate-and-own": func(s *testSource) { s.ours, s.timegate, s.archive, s.drop = true, true, true, 7 },
	}
	for name, set := range cases {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			at, want := states(b)
			set(b.src)
			b.sync()
			for _, i := range []int{0, 2, 1, 3, 4, 0} {
				if name == "timegate" && i != 4 && i != 0 {
					continue // versions within the lists have no memento there
				}
				rep, err := b.open().Sync(context.Background(), SyncOptions{Until: at[i]})
				if name == "timegate" && i == 0 {
					// the lists begin before; what they tell was then is not kept
					if rep.Failed+rep.Pending == 0 || rep.InSync {
						t.Fatalf("%+v", rep)
					}
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				if !rep.InSync || rep.Until == nil {
					t.Fatalf("state %d: %+v", i, rep)
				}
				b.same(b.mir.lines(graphA), want[i])
				a, err := b.open().Audit(context.Background(), AuditOptions{})
				if err != nil || !a.Equal {
					t.Fatalf("audit of state %d: %+v, %v", i, a, err)
				}
				if st, _ := b.d.Status(context.Background()); st.InSync || st.Until == nil || !st.Until.Equal(at[i]) {
					t.Error("status says in sync with the present")
				}
			}
			if rep := b.sync(); !rep.InSync || !strings.Contains(rep.Why, "goes on to the present") {
				t.Fatalf("%+v", rep)
			}
			b.equal()
		})
	}
}

// What changed later and is in no list before comes from the TimeGate, and is
// told where there is none.
func TestUntilBeforeTheLists(t *testing.T) {
	for _, gate := range []bool{true, false} {
		b := newBench(t)
		s := b.src
		at, want := states(b)
		s.timegate, s.archive = gate, false
		s.drop = 5 // the second version of e1 was the last change before
		s.changesFrom = s.log[4].at
		rep, err := b.open().Sync(context.Background(), SyncOptions{Until: s.log[4].at.Truncate(time.Second).Add(time.Second)})
		if err != nil {
			t.Fatal(err)
		}
		if !gate {
			// e1, e2 and e3 changed later
			if rep.Failed != 3 || rep.InSync || !strings.Contains(rep.Problems[0].Reason, "timegate") {
				t.Errorf("%+v", rep)
			}
			continue
		}
		if !rep.InSync {
			t.Fatalf("%+v", rep)
		}
		b.same(b.mir.lines(graphA), want[1])
		if _, err := b.open().Sync(context.Background(), SyncOptions{Until: at[0]}); err == nil || !strings.Contains(err.Error(), "leave out the time from") {
			t.Errorf("before the lists: %v", err)
		}
		b.same(b.mir.lines(graphA), want[1]) // nothing was changed
		b.sync()
		b.equal()
	}
}

// A TimeGate knows whole seconds: what it gives may have come later in the second.
func TestUntilWithinASecond(t *testing.T) {
	b := newBench(t)
	s := b.src
	fill(s, 12)
	s.put("e1.nt", nt("e1", "second"))
	want := s.want()
	second := s.now.Truncate(time.Second).Add(2 * time.Second)
	s.now = second.Add(-time.Second) // the next change is half a second after it
	s.put("e1.nt", nt("e1", "third"))
	s.put("e2.nt", nt("e2", "other"))
	s.timegate, s.wholeSeconds, s.drop, s.changesFrom = true, true, 13, second.Add(-300*time.Millisecond)
	rep, err := b.open().Sync(context.Background(), SyncOptions{Until: second.Add(200 * time.Millisecond)})
	if err != nil || !rep.InSync {
		t.Fatalf("%+v %v", rep, err)
	}
	b.same(b.mir.lines(graphA), want)
}

func TestUntilCannot(t *testing.T) {
	b := newBench(t)
	at, _ := states(b)
	for want, set := range map[string]func() time.Time{
		"no Change Lists": func() time.Time { b.src.changes = false; return at[0] },
		"in the future":   func() time.Time { b.src.changes = true; return b.clock.Add(time.Hour) },
	} {
		until := set()
		if _, err := b.open().Sync(context.Background(), SyncOptions{Until: until}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	if len(b.mir.lines(graphA)) > 0 {
		t.Error("the mirror was written")
	}
}

// Changes that have left the lists are taken from the archive, one request each.
func TestGapIsClosedFromTheArchive(t *testing.T) {
	for _, ours := range []bool{true, false} {
		b := newBench(t)
		s := b.src
		s.ours, s.archive = ours, true
		fill(s, 50)
		b.sync()
		b.confirmed()
		for i := range 4 {
			s.put("e"+string(rune('1'+i))+".nt", nt("e"+string(rune('1'+i)), "changed"))
		}
		s.remove("e40.nt")
		s.put("new.nt", nt("new", "x"))
		s.drop = 54 // four changes of this time have left the lists
		clear(s.requests)
		rep := b.sync()
		if !rep.InSync || rep.Mode != "incremental" || !strings.Contains(rep.Why, "closed from the archive") || rep.Updated != 4 || rep.Deleted != 1 || rep.Created != 1 {
			t.Fatalf("%+v", rep)
		}
		if n := s.requests["/set/resourcelist.xml"]; n != 0 {
			t.Errorf("the Resource List was read %d times", n)
		}
		fetched := 0
		for path, n := range s.requests {
			if strings.HasPrefix(path, "/set/r/") {
				fetched += n
			}
		}
		if fetched != 5 {
			t.Errorf("%d resources were fetched, 5 differ: %v", fetched, s.requests)
		}
		b.equal()
	}
}

// Without an archive, or with one that does not reach, the list is compared and
// only what differs is fetched.
func TestGapIsClosedByComparing(t *testing.T) {
	for _, archive := range []bool{true, false} {
		b := newBench(t)
		s := b.src
		s.ours = true
		fill(s, 50)
		b.sync()
		s.put("e1.nt", nt("e1", "changed"))
		s.put("e2.nt", nt("e2", "changed"))
		s.remove("e40.nt")
		s.put("new.nt", nt("new", "x"))
		s.drop = 53
		s.archive = archive
		if archive { // it has lost what is needed
			answerAt(s, "/set/archived.xml", http.NotFound)
		}
		clear(s.requests)
		rep := b.sync()
		if !rep.InSync || !strings.Contains(rep.Why, "gap: ") || !strings.Contains(rep.Why, "compared with the Resource List") || strings.Contains(rep.Why, "archives could not be used") != archive {
			t.Fatalf("%+v", rep)
		}
		fetched := 0
		for path, n := range s.requests {
			if strings.HasPrefix(path, "/set/r/") {
				fetched += n
			}
		}
		if fetched != 3 {
			t.Errorf("%d resources were fetched, 3 differ: %v", fetched, s.requests)
		}
		b.equal()
	}
}

// Another map and another part are what a mirror of a point in time is made with, and those
// that it was made with are known after it.
func TestUntilWithAnotherMap(t *testing.T) {
	for _, first := range []bool{true, false} { // it is the first run
		b := newBench(t)
		s := b.src
		s.ours = true
		fill(s, 4)
		at, want := s.now, s.want()
		s.put("e1.nt", nt("e1", "second"))
		until := func() {
			t.Helper()
			if rep, err := b.open().Sync(t.Context(), SyncOptions{Until: at}); err != nil || !rep.InSync {
				t.Fatalf("%+v %v", rep, err)
			}
		}
		if !first {
			b.sync()
		}
		b.cfg.Map = "CONSTRUCT { ?entity <http://cat.example/v> ?v } WHERE { ?entity <http://ex.org/v> ?v }"
		b.cfg.Select.Prefixes = []string{"http://ex.org/e1"}
		until()
		b.same(b.mir.lines(graphA), []string{`<http://ex.org/e1> <http://cat.example/v> "1" .` + "\n", `<http://ex.org/e1> <http://cat.example/v> "a" .` + "\n"})
		b.cfg.Map, b.cfg.Select.Prefixes = "", nil
		until()
		b.same(b.mir.lines(graphA), want)
		if rep := b.sync(); !rep.InSync {
			t.Fatalf("%+v", rep)
		}
		b.equal()
	}
}

// What was then and is not to be had is told, and never taken from what is now.
func TestUntilOfForeignSources(t *testing.T) {
	for name, c := range map[string]struct {
		set  func(f *foreignForm)
		fits bool // all of then can be had
	}{
		"nothing promised":   {func(*foreignForm) {}, false},
		"versions":           {func(f *foreignForm) { f.memento = true }, true},
		"lengths":            {func(f *foreignForm) { f.length = true }, false},
		"hashes":             {func(f *foreignForm) { f.hashes = 4 }, false},
		"versions of now":    {func(f *foreignForm) { f.rewritten, f.memento = 2, true }, false},
		"hashes of now":      {func(f *foreignForm) { f.hashes, f.rewritten, f.memento = 4, 2, true }, false},
		"changes alone":      {func(f *foreignForm) { f.list, f.memento = false, true }, true},
		"a dump, no list":    {func(f *foreignForm) { f.list, f.dump, f.window, f.memento = false, true, 4, true }, false},
		"dump, last changes": {func(f *foreignForm) { f.list, f.dump, f.rewritten, f.memento = false, true, 1, true }, false},
		"list of before":     {func(f *foreignForm) { f.stale, f.memento = true, true }, false},
		"dump of before":     {func(f *foreignForm) { f.list, f.dump, f.lastmod, f.stale = false, true, false, true }, false},
		"newest first": {func(f *foreignForm) {
			f.dialect, f.changeParts, f.indexTells, f.newestFirst, f.memento = "0.6", 1, 1, true, true
		}, true},
	} {
		if teststores.Unraced(t, 3) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			f := plainForeign()
			c.set(f)
			s := newForeignSource(rand.New(rand.NewPCG(2, 1)), f)
			b := foreignBench(t, s)
			later := func(d time.Duration) {
				s.now = s.now.Add(d)
				b.clock = s.now
			}
			for _, n := range []string{"n0", "n1", "n2", "n3"} {
				later(time.Minute)
				s.write(n)
			}
			later(time.Minute)
			s.write("n4")
			s.remove("n4") // in the same second
			later(time.Minute)
			s.write("n1")
			until := s.now
			early := s.now.Add(-time.Second)
			later(time.Minute)
			s.remove("n2")
			s.write("n1")
			s.write("n5")
			later(time.Minute)
			if s.stale { // it was begun before and took until now
				s.listed = &foreignSnapshot{at: early, res: s.res}
				s.dumped = s.listed
			}
			s.publish()
			rep, err := b.open().Sync(t.Context(), SyncOptions{Until: until})
			if err != nil || rep.InSync != c.fits || !c.fits && rep.Failed+rep.Pending == 0 {
				t.Errorf("%+v %v", rep, err)
			}
			then := s.until(until)
			got := b.mir.lines(graphA)
			for _, l := range got {
				if !slices.Contains(then, l) {
					t.Errorf("not of then: %s", l)
				}
			}
			if rep.InSync {
				b.same(got, then)
			}
			for range 2 {
				later(time.Minute)
				if rep := b.sync(); !rep.InSync {
					t.Errorf("%+v", rep)
				}
				b.same(b.mir.lines(graphA), s.want())
				if c.fits && s.modern() { // of before everything
					if rep, err := b.open().Sync(t.Context(), SyncOptions{Until: s.begun}); err != nil || !rep.InSync || len(b.mir.lines(graphA)) > 0 {
						t.Errorf("%+v %v", rep, err)
					}
				}
			}
		})
	}
}

// What could not be had of a time before is not waited for in the present.
func TestUntilOfWhatIsGone(t *testing.T) {
	f := plainForeign()
	f.list, f.dump = false, true
	s := newForeignSource(rand.New(rand.NewPCG(2, 1)), f)
	b := foreignBench(t, s)
	s.write("n0")
	until := s.now
	s.now = s.now.Add(time.Minute)
	for n := range 6 { // so that the dump is taken
		s.write(fmt.Sprintf("n%d", n))
	}
	s.remove("n0")
	s.now = s.now.Add(time.Minute)
	s.publish()
	b.clock = s.now
	if rep, err := b.open().Sync(t.Context(), SyncOptions{Until: until}); err != nil || rep.Failed != 1 {
		t.Errorf("%+v %v", rep, err)
	}
	if rep := b.sync(); !rep.InSync {
		t.Errorf("%+v", rep)
	}
	b.same(b.mir.lines(graphA), s.want())
}
