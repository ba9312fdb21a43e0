package destination

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/internal/teststores"
)

// missingSource is one whose index of Change Lists names all there were, and tells as much of them
// as bare says. Those that are gone answer with a status.
func missingSource(t *testing.T, bare int) (*bench, map[string]int) {
	b := newQuietBench(t)
	s := b.src
	s.changeParts, s.bare, s.allNamed = 3, bare, true
	gone := map[string]int{}
	s.hook = func(w http.ResponseWriter, r *http.Request) bool {
		status := gone[r.URL.Path]
		if status == 0 {
			return false
		}
		http.Error(w, "none", status)
		return true
	}
	s.changesFrom = s.now
	return b, gone
}

func listed(n int) string { return fmt.Sprintf("/set/changelist-%d.xml", n) }

// syncNow syncs at the source's time.
func (b *bench) syncNow() SyncReport {
	b.t.Helper()
	b.src.now = b.src.now.Add(time.Minute)
	b.src.date, b.clock = b.src.now, b.src.now
	rep := b.sync()
	b.src.now = b.src.now.Add(time.Minute)
	return rep
}

func (b *bench) freezeList() {
	b.src.frozen, b.src.listAt, b.src.listSeq = maps.Clone(b.src.bodies), b.src.now, len(b.src.log)
}

// What retention has removed and the index still names lies before the cursor, and is no gap.
func TestRemovedChangeListStaysNamed(t *testing.T) {
	for _, bare := range []int{0, 1, 2} {
		for _, list0 := range []bool{true, false} {
			if teststores.Unraced(t, 5) {
				continue
			}
			t.Run(fmt.Sprint(bare, list0), func(t *testing.T) {
				b, gone := missingSource(t, bare)
				s := b.src
				s.list = list0
				fill(s, 7)
				b.syncNow()
				b.confirmed()
				for n := range 3 {
					gone[listed(n)] = http.StatusNotFound + 6*(n%2)
					for i := range 3 {
						s.put(fmt.Sprintf("e%d.nt", i), nt(fmt.Sprintf("e%d", i), "b", fmt.Sprint(n)))
					}
					lists := s.requests["/set/resourcelist.xml"]
					if rep := b.syncNow(); !rep.InSync || strings.Contains(rep.Why, "gap") || rep.Updated != 3 {
						t.Fatalf("%+v", rep)
					}
					if n := s.requests["/set/resourcelist.xml"]; n != lists {
						t.Errorf("the list was read %d times", n-lists)
					}
				}
				b.same(b.mir.lines(graphA), s.want())
			})
		}
	}
}

// Changes in a list that is gone may be lost: that is told, and closed by what the source lists. Where
// nothing tells any time, the mirror goes on with that.
func TestLostChangeListStaysNamed(t *testing.T) {
	for _, bare := range []int{0, 1, 2} {
		for _, untimed := range []bool{false, true} {
			t.Run(fmt.Sprint(bare, untimed), func(t *testing.T) {
				b, gone := missingSource(t, bare)
				s := b.src
				s.noTimes = untimed
				proven := !untimed || bare < 2
				fill(s, 4)
				s.remove("e1.nt")
				b.syncNow()
				s.put("e1.nt", nt("e1", "again")) // the last of list 1
				fill(s, 3)                        // list 2
				s.put("e2.nt", nt("e2", "later"))
				gone[listed(1)], gone[listed(2)] = 404, 404
				rep := b.syncNow()
				if rep.InSync != proven || strings.Count(rep.Why, "gap") != 1 || !strings.Contains(rep.Why, "compared with the Resource List") || (rep.Held == "") != proven {
					t.Fatalf("%+v", rep)
				}
				b.same(b.mir.lines(graphA), s.want())
				b.confirmed()
				for n := range 4 {
					s.put("e3.nt", nt("e3", "later", fmt.Sprint(n)))
					lists := s.requests["/set/resourcelist.xml"]
					if rep := b.syncNow(); rep.InSync != proven || rep.Updated != 1 || proven && strings.Contains(rep.Why, "gap") {
						t.Fatalf("%+v", rep)
					}
					if n := s.requests["/set/resourcelist.xml"]; proven && n != lists {
						t.Errorf("the list was read %d times", n-lists)
					}
					b.same(b.mir.lines(graphA), s.want())
				}
				if audit, err := b.open().Audit(context.Background(), AuditOptions{}); err != nil || audit.Equal != proven || audit.Findings() > 0 {
					t.Errorf("%+v %v", audit, err)
				}
			})
		}
	}
}

// A list that is not there for a moment is read when it is back, and the gap is not told any more.
// Its failure is none of its being gone.
func TestChangeListIsBack(t *testing.T) {
	for _, bare := range []int{0, 1, 2} {
		for _, kind := range []string{"middle", "last", "stop", "alone", "untimed", "fails"} {
			if teststores.Unraced(t, 5) {
				continue
			}
			t.Run(fmt.Sprint(bare, kind), func(t *testing.T) {
				b, gone := missingSource(t, bare)
				s := b.src
				s.noTimes = kind == "untimed"
				fill(s, 4)
				s.list = kind != "alone"
				if kind == "stop" {
					b.cfg.OnGap = "stop"
				}
				b.freezeList()
				b.syncNow()
				s.put("e1.nt", nt("e1", "missed"))
				s.remove("e2.nt")
				if kind != "last" {
					s.put("e3.nt", nt("e3", "after"))
				}
				gone[listed(1)] = 404
				if kind == "fails" {
					gone[listed(1)] = 503
					if rep, err := b.open().Sync(context.Background(), SyncOptions{}); err == nil || rep.InSync || !strings.Contains(err.Error(), "503") {
						t.Fatalf("%+v %v", rep, err)
					}
				} else {
					for n := range 2 {
						rep := b.syncNow()
						if rep.InSync || !strings.HasPrefix(rep.Held, "gap: ") || !strings.Contains(rep.Held, "not there") {
							t.Fatalf("%+v", rep)
						}
						if n > 0 && s.requests["/set/resourcelist.xml"] > 3 {
							t.Errorf("the list was read %d times", s.requests["/set/resourcelist.xml"])
						}
						if audit, err := b.open().Audit(context.Background(), AuditOptions{}); err != nil || audit.Equal {
							t.Errorf("%+v %v", audit, err)
						}
						s.requests["/set/resourcelist.xml"]--
					}
				}
				clear(gone)
				if rep := b.syncNow(); !rep.InSync || rep.Held != "" {
					t.Fatalf("%+v", rep)
				}
				b.same(b.mir.lines(graphA), s.want())
				s.put("e0.nt", nt("e0", "last"))
				if rep := b.syncNow(); !rep.InSync || rep.Updated != 1 {
					t.Fatalf("%+v", rep)
				}
				b.same(b.mir.lines(graphA), s.want())
				if m := b.d.mem.SnapshotMeta(); m.At.Lacks() != "" {
					t.Errorf("%+v", m.At.Lacks())
				}
			})
		}
	}
}

// A package of a Change Dump that is not there is a gap that the Resource List closes, and is read
// when it is back.
func TestMissingPackage(t *testing.T) {
	for _, back := range []bool{true, false} {
		t.Run(fmt.Sprint(back), func(t *testing.T) {
			b, gone := missingSource(t, 0)
			s := b.src
			s.changes, s.changeDump, s.packed, s.changeParts = false, true, 3, 0
			fill(s, 4)
			b.freezeList()
			b.syncNow()
			s.put("e1.nt", nt("e1", "missed"))
			s.remove("e2.nt")
			fill(s, 3)
			gone["/set/changes1.zip"] = 404
			for range 2 {
				if rep := b.syncNow(); rep.InSync || !strings.Contains(rep.Held, "changes1.zip of the Change Dump is named and not there") {
					t.Fatalf("%+v", rep)
				}
			}
			if back {
				clear(gone)
			} else {
				b.freezeList()
			}
			if rep := b.syncNow(); !rep.InSync || rep.Held != "" {
				t.Fatalf("%+v", rep)
			}
			b.same(b.mir.lines(graphA), s.want())
			fill(s, 3)
			if rep := b.syncNow(); !rep.InSync {
				t.Fatalf("%+v", rep)
			}
			b.same(b.mir.lines(graphA), s.want())
		})
	}
}

// A list that is named no more stays missing until the source lists what it has, as of later.
func TestMissingChangeListIsNamedNoMore(t *testing.T) {
	for _, kind := range []string{"baseline", "stop", "no time", "again"} {
		t.Run(kind, func(t *testing.T) {
			b, gone := missingSource(t, 2)
			s := b.src
			if kind == "stop" {
				b.cfg.OnGap = kind
			}
			if kind == "no time" {
				s.damage = func(doc string) string { return atTime.ReplaceAllString(doc, "") }
			}
			fill(s, 4)
			b.freezeList()
			s.put("e1.nt", nt("e1", "missed"))
			s.remove("e2.nt") // the end of list 1
			fill(s, 3)
			gone[listed(1)] = 404
			if rep := b.syncNow(); rep.InSync || !strings.Contains(rep.Held, "not there") {
				t.Fatalf("%+v", rep)
			}
			full := func() SyncReport {
				b.t.Helper()
				rep, err := b.open().Sync(context.Background(), SyncOptions{Full: true})
				if err != nil {
					t.Fatal(err)
				}
				return rep
			}
			s.allNamed, s.drop = false, 6
			s.put("e0.nt", nt("e0", "more"))
			for range 2 {
				if rep := b.syncNow(); rep.InSync || !strings.Contains(rep.Held, "not there") {
					t.Fatalf("%+v", rep)
				}
				if rep := full(); rep.InSync || !strings.Contains(rep.Held, "not there") {
					t.Fatalf("%+v", rep)
				}
				if audit, err := b.open().Audit(context.Background(), AuditOptions{Repair: true}); err != nil || audit.Equal {
					t.Fatalf("%+v %v", audit, err)
				}
			}
			if kind == "again" { // what followed it is applied
				clear(gone)
				s.allNamed = true
				if rep := b.syncNow(); rep.InSync {
					t.Fatalf("%+v", rep)
				}
			}
			b.freezeList()
			if rep := full(); !rep.InSync || rep.Held != "" {
				t.Fatalf("%+v", rep)
			}
			b.same(b.mir.lines(graphA), s.want())
		})
	}
}

// What is missed beside a list that is named no more is told until it is back: then the former list is told
// again, unless a list with its changes came meanwhile.
func TestMissingBesideNamedNoMore(t *testing.T) {
	for _, newer := range []bool{false, true} {
		for _, also := range []string{"/set/changelist.xml", listed(2)} {
			t.Run(fmt.Sprint(newer, also), func(t *testing.T) {
				b, gone := missingSource(t, 2)
				s := b.src
				fill(s, 4)
				b.freezeList()
				s.put("e1.nt", nt("e1", "missed"))
				s.remove("e2.nt") // the end of list 1
				fill(s, 2)
				gone[listed(1)] = 404
				b.syncNow()
				s.allNamed, s.drop = false, 6
				before := b.syncNow()
				if before.InSync || !strings.Contains(before.Held, " is named no more") {
					t.Fatalf("%+v", before)
				}
				s.put("e0.nt", nt("e0", "more"))
				gone[also] = 404
				for n := range 3 {
					if n == 1 && newer {
						b.freezeList()
					}
					if rep := b.syncNow(); rep.InSync || !strings.Contains(rep.Held, also+" is named and not there") {
						t.Fatalf("%+v", rep)
					}
				}
				delete(gone, also)
				rep := b.syncNow()
				if want := before.Held; !newer && (rep.InSync || rep.Held != want) || newer && (!rep.InSync || rep.Held != "") {
					t.Fatalf("%+v", rep)
				}
				if newer {
					b.same(b.mir.lines(graphA), s.want())
				}
			})
		}
	}
}

var atTime = regexp.MustCompile(` at="[^"]*"`)

// Without an inventory a list is only back when it is named, since nothing else reads it.
func TestMissingChangeListIsThereButNotNamed(t *testing.T) {
	b, gone := missingSource(t, 2)
	s := b.src
	s.list = false
	fill(s, 4)
	b.syncNow()
	s.put("e1.nt", nt("e1", "missed"))
	s.remove("e2.nt") // the end of list 1
	fill(s, 3)
	s.remove("e0.nt")
	gone[listed(1)] = 404
	named, drop := []bool{true, false, false, true}, []int{0, 6, 6, 0}
	for i := range named {
		if i == 2 {
			clear(gone)
		}
		s.allNamed, s.drop = named[i], drop[i]
		rep := b.syncNow()
		if last := i == 3; rep.InSync != last || (rep.Held == "") != last {
			t.Fatalf("%d: %+v", i, rep)
		}
	}
	b.same(b.mir.lines(graphA), s.want())
}

// A list that is not there leaves an older list or dump without the changes after it: an audit says
// so, and neither a repair nor a full comparison takes the mirror back to it.
func TestOlderListBeforeMissing(t *testing.T) {
	for _, bare := range []int{0, 1, 2} {
		for _, kind := range []string{"list", "dump", "untimed"} {
			if teststores.Unraced(t, 4) {
				continue
			}
			t.Run(fmt.Sprint(bare, kind), func(t *testing.T) {
				b, gone := missingSource(t, bare)
				s := b.src
				b.cfg.MaxDeleteRatio = 1
				s.noTimes = kind == "untimed"
				fill(s, 3)
				b.freezeList()
				if kind == "dump" {
					s.list, s.dump = false, true
					s.freezeDump()
				}
				b.syncNow()
				fill(s, 6) // up to the end of list 2
				if rep := b.syncNow(); !rep.InSync {
					t.Fatalf("%+v", rep)
				}
				before := b.mir.lines(graphA)
				gone[listed(1)] = 404 // of before the cursor
				s.put("e0.nt", nt("e0", "new"))
				s.remove("e1.nt")
				s.put("e9.nt", nt("e9", "created"))
				s.date, b.clock = s.now, s.now
				for _, repair := range []bool{false, true} {
					audit, err := b.open().Audit(context.Background(), AuditOptions{Repair: repair})
					if err != nil || audit.Equal || audit.Findings() > 0 || audit.Repaired > 0 {
						t.Errorf("%+v %v", audit, err)
					}
				}
				b.same(b.mir.lines(graphA), before)
				for range 2 {
					if rep, err := b.open().Sync(context.Background(), SyncOptions{Full: true}); err == nil || rep.InSync || !strings.Contains(err.Error(), "not there") {
						t.Errorf("%+v %v", rep, err)
					}
				}
				b.same(b.mir.lines(graphA), before)
				clear(gone)
				if rep := b.syncNow(); !rep.InSync {
					t.Errorf("%+v", rep)
				}
				b.same(b.mir.lines(graphA), s.want())
			})
		}
	}
}

// An index that tells nothing of its lists and has the newest first is read from the oldest on.
func TestNewestChangeListFirst(t *testing.T) {
	for _, bare := range []int{1, 2} {
		for _, list0 := range []bool{true, false} {
			t.Run(fmt.Sprint(bare, list0), func(t *testing.T) {
				b, _ := missingSource(t, bare)
				s := b.src
				s.reversed, s.list = true, list0
				fill(s, 4)
				b.syncNow()
				for n := range 4 {
					for i := range 1 + 2*n {
						name := fmt.Sprintf("e%d", i%4)
						s.put(name+".nt", nt(name, "b", fmt.Sprint(n, i)))
					}
					s.remove("e3.nt")
					if rep := b.syncNow(); !rep.InSync {
						t.Fatalf("%+v", rep)
					}
					b.same(b.mir.lines(graphA), s.want())
				}
			})
		}
	}
}

// Lists come and go: no run fails, none says that the mirror is in sync while it is not, and
// when all is there again, or the source lists what it has, it is.
func TestChangeListsComeAndGo(t *testing.T) {
	for seed := range uint64(teststores.Histories(3, 20)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { t.Parallel(); playIndex(t, seed, false) })
	}
}

// A source that is set back, as by restoring a backup, and then grows may come to offer an index
// of the very bytes of before, the same number, an empty list that did not change, or changes
// that tell no time and are like those of before. A mirror that is wrong is never in sync.
func TestSetBackLists(t *testing.T) {
	for seed := range uint64(teststores.Histories(3, 20)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { t.Parallel(); playIndex(t, seed, true) })
	}
}

// playIndex follows a source with an index of Change Lists, of which some are not there at
// times, or which is set back.
func playIndex(t *testing.T, seed uint64, setBack bool) {
	r := rand.New(rand.NewPCG(seed, 17))
	b, gone := missingSource(t, r.IntN(3))
	s := b.src
	b.cfg.MaxDeleteRatio, s.reversed, s.allNamed = 1, r.IntN(4) == 0, r.IntN(4) > 0
	s.noTimes, s.noHash, s.ours = r.IntN(3) == 0, r.IntN(2) == 0, r.IntN(5) == 0
	if s.noTimes {
		s.ours = false
		s.reversed = s.reversed && s.bare < 2 // else nothing tells
	}
	s.list = r.IntN(4) > 0
	if setBack {
		s.parts = r.IntN(4)
		s.dump = r.IntN(4) == 0
	}
	removed := 0
	proven := s.bare < 2 || !s.noTimes && !s.reversed
	fill(s, 3)
	freeze := func() {
		if b.freezeList(); s.dump {
			s.dumped = nil
			s.freezeDump()
		}
	}
	freeze()
	lost := false // by what nothing offers any more
	for step := range 12 {
		if setBack && step > 0 && step < 11 && r.IntN(4) == 0 {
			if n := max(s.listSeq, len(s.log)-1-r.IntN(5)); n < len(s.log) {
				s.restore(n)
				lost = !s.list && !s.dump
			}
		}
		for range r.IntN(6) {
			if name := fmt.Sprintf("e%d.nt", r.IntN(5)); r.IntN(3) == 0 {
				s.remove(name)
			} else {
				s.put(name, nt(name, fmt.Sprint(seed, len(s.log))))
			}
		}
		clear(gone)
		lists := len(s.log)/3 + 1
		if !setBack && step > 0 && step < 11 {
			for n := range lists {
				if r.IntN(6) == 0 {
					gone[listed(n)] = 404
				}
			}
			if removed < lists-1 && r.IntN(3) == 0 {
				removed++
			}
		}
		for n := range removed {
			gone[listed(n)] = 410
		}
		if r.IntN(3) == 0 || step == 11 {
			s.now = s.now.Add(5 * time.Minute)
			freeze()
		}
		rep := b.syncNow()
		wrong := fmt.Sprint(b.mir.lines(graphA)) != fmt.Sprint(s.want())
		if rep.InSync && wrong {
			t.Errorf("step %d: gone %v: %+v", step, gone, rep)
			b.same(b.mir.lines(graphA), s.want())
			t.FailNow()
		}
		if wrong && rep.Held == "" && rep.Pending+rep.Failed == 0 {
			t.Fatalf("step %d: %+v", step, rep)
		}
		audit, err := b.open().Audit(context.Background(), AuditOptions{})
		if err != nil || wrong && audit.Equal || rep.InSync && audit.Findings() > 0 || rep.InSync && s.list && !audit.Equal && !strings.Contains(audit.SourceError, "not there") {
			t.Fatalf("step %d: gone %v: %+v %v\n%+v", step, gone, audit, err, rep)
		}
		if step == 11 && len(s.bodies) > 0 && !lost && (s.list || removed == 0) && (wrong || !rep.InSync && (removed == 0 || proven)) {
			t.Fatalf("at the end: gone %v: %+v\n%+v", gone, rep, b.d.mem.SnapshotMeta().At)
		}
	}
}

// gapOf mirrors five changes, and then meets a list that is away for a moment: list 1 has a
// sixth, list 2 a seventh, and the Resource List neither.
func (b *bench) gapOf(gone map[string]int, absent int) {
	b.t.Helper()
	s := b.src
	s.allNamed = false
	fill(s, 5)
	b.syncNow()
	b.freezeList()
	s.now = s.now.Add(time.Minute)
	s.put("e2.nt", nt("e2", "six"))
	s.put("e1.nt", nt("e1", "seven"))
	gone[listed(absent)] = http.StatusNotFound
	if rep := b.syncNow(); rep.InSync || rep.Held == "" {
		b.t.Fatalf("%+v", rep)
	}
	clear(gone)
}

// A list that is there while the gap of a later one is open is not read. When retention takes
// it meanwhile, its changes are lost, and that is told until a list of later is taken.
func TestListTakenWhileGapIsOpen(t *testing.T) {
	for _, bare := range []int{0, 1, 2} {
		t.Run(fmt.Sprint(bare), func(t *testing.T) {
			b, gone := missingSource(t, bare)
			s := b.src
			b.gapOf(gone, 2)
			s.drop = 6
			s.put("e8.nt", nt("e8", "eight"))
			for range 2 {
				if rep := b.syncNow(); rep.InSync || rep.Held == "" {
					t.Fatalf("%+v", rep)
				}
				audit, err := b.open().Audit(context.Background(), AuditOptions{})
				if err != nil || audit.Equal {
					t.Fatalf("%+v, %v", audit, err)
				}
			}
			b.freezeList()
			s.now = s.now.Add(time.Minute)
			s.put("e1.nt", nt("e1", "nine"))
			if rep := b.syncNow(); !rep.InSync {
				t.Fatalf("%+v", rep)
			}
			b.same(b.mir.lines(graphA), s.want())
		})
	}
}

// A Change Dump that has what was in a list that is gone closes the gap, also where lists of
// before the mirror are gone as well, and where the source has no list.
func TestMissingListIsInTheDump(t *testing.T) {
	for _, old := range []bool{false, true} {
		for _, list := range []bool{true, false} {
			t.Run(fmt.Sprint(old, list), func(t *testing.T) {
				b, gone := missingSource(t, 0)
				s := b.src
				s.list, s.changeDump, s.packed = true, true, 3
				fill(s, 4)
				b.freezeList()
				s.list = list
				b.syncNow()
				s.put("e1.nt", nt("e1", "missed"))
				s.remove("e2.nt")
				fill(s, 3) // list 2; both packages have it all
				gone[listed(1)] = http.StatusGone
				if old {
					gone[listed(0)] = http.StatusGone
				}
				if rep := b.syncNow(); !rep.InSync || !strings.Contains(rep.Why, "closed from the Change Dump") {
					t.Fatalf("%+v", rep)
				}
				b.same(b.mir.lines(graphA), s.want())
				if rep := b.syncNow(); !rep.InSync || rep.Mode != "none" {
					t.Errorf("%+v", rep)
				}
			})
		}
	}
}

// Where the dump still has what the index names no more, nothing is lost.
func TestListTakenIsInTheDump(t *testing.T) {
	for _, absent := range []int{1, 2} { // list 1 itself, or the one behind it, so that it is not read
		t.Run(fmt.Sprint(absent), func(t *testing.T) {
			b, gone := missingSource(t, 0)
			s := b.src
			b.gapOf(gone, absent)
			for i := range 3 {
				s.put("e8.nt", nt("e8", fmt.Sprint(i)))
			}
			s.changeDump, s.packed = true, 3
			s.hook = func(_ http.ResponseWriter, r *http.Request) bool {
				if s.drop = 6; strings.HasPrefix(r.URL.Path, "/set/changedump") || strings.HasPrefix(r.URL.Path, "/set/changes") {
					s.drop = 0
				}
				return false
			}
			if rep := b.syncNow(); !rep.InSync || !strings.Contains(rep.Why, "closed from the Change Dump") {
				t.Fatalf("%+v", rep)
			}
			b.same(b.mir.lines(graphA), s.want())
			if rep := b.syncNow(); !rep.InSync {
				t.Fatalf("%+v", rep)
			}
		})
	}
}

// What lies before the mirror is read no more, and no gap when retention takes it.
func TestAppliedListTakenWhileGapIsOpen(t *testing.T) {
	for _, bare := range []int{0, 1, 2} {
		t.Run(fmt.Sprint(bare), func(t *testing.T) {
			b, gone := missingSource(t, bare)
			s := b.src
			s.allNamed = false
			fill(s, 7)
			b.freezeList()
			s.now = s.now.Add(time.Minute)
			b.syncNow()
			s.put("e2.nt", nt("e2", "x"))
			b.freezeList()
			s.now = s.now.Add(time.Minute)
			s.put("e1.nt", nt("e1", "y")) // the end of list 2
			s.put("e1.nt", nt("e1", "z"))
			gone[listed(2)] = http.StatusNotFound
			if rep := b.syncNow(); rep.InSync {
				t.Fatalf("%+v", rep)
			}
			clear(gone)
			s.drop = 3 // list 0
			s.put("e3.nt", nt("e3", "eight"))
			if rep := b.syncNow(); !rep.InSync {
				t.Fatalf("%+v", rep)
			}
			b.same(b.mir.lines(graphA), s.want())
		})
	}
}

// A list without a time need not be of later than one that was not read, though it is another
// than before; the one after that ends the gap, also where only a part of it is another.
func TestListWithoutTimeWhileGapIsOpen(t *testing.T) {
	withoutAt := regexp.MustCompile(` at="[^"]*"`)
	for _, parts := range []int{0, 2} {
		for _, bare := range []int{0, 1, 2} {
			t.Run(fmt.Sprint(parts, bare), func(t *testing.T) {
				b, gone := missingSource(t, bare)
				s := b.src
				s.parts, s.allNamed, b.cfg.OnGap = parts, false, "stop"
				s.damage = func(doc string) string { return withoutAt.ReplaceAllString(doc, "") }
				fill(s, 4)
				b.freezeList()
				b.syncNow()
				s.put("e1.nt", nt("e1", "five"))
				b.freezeList()
				s.now = s.now.Add(time.Minute)
				s.put("e2.nt", nt("e2", "six")) // the end of list 1
				s.put("e1.nt", nt("e1", "seven"))
				gone[listed(2)] = http.StatusNotFound
				b.syncNow()
				clear(gone)
				s.drop = 6
				s.put("e8.nt", nt("e8", "eight"))
				full := func() SyncReport {
					t.Helper()
					s.now = s.now.Add(time.Minute)
					s.date, b.clock = s.now, s.now
					rep, err := b.open().Sync(context.Background(), SyncOptions{Full: true})
					if err != nil {
						t.Fatal(err)
					}
					return rep
				}
				if rep := full(); rep.InSync || rep.Held == "" {
					t.Fatalf("%+v", rep)
				}
				s.put("e3.nt", nt("e3", "nine"))
				b.freezeList()
				if rep := full(); !rep.InSync {
					t.Fatalf("%+v", rep)
				}
				b.same(b.mir.lines(graphA), s.want())
			})
		}
	}
}

// A list that was empty when it was read has no change at which the mirror stands: that
// retention has taken the one before it is no sign of a rewritten list.
func TestEmptyListThenRetention(t *testing.T) {
	b, _ := missingSource(t, 0)
	s := b.src
	s.allNamed = false
	fill(s, 6)
	b.freezeList()
	b.syncNow()
	s.put("e1.nt", nt("e1", "seven"))
	fill(s, 2)
	if rep := b.syncNow(); !rep.InSync { // stands in list 3, which is empty
		t.Fatalf("%+v", rep)
	}
	s.drop = 9
	s.put("e1.nt", nt("e1", "ten"))
	if rep := b.syncNow(); !rep.InSync || strings.Contains(rep.Why, "gap") {
		t.Fatalf("%+v", rep)
	}
	b.same(b.mir.lines(graphA), s.want())
}

// While a gap is open that the list of before cannot close, no audit proves the mirror by it.
func TestAuditWithinAGap(t *testing.T) {
	for _, ours := range []bool{false, true} {
		b, _ := missingSource(t, 0)
		s := b.src
		s.allNamed, s.ours = false, ours
		fill(s, 5)
		b.freezeList()
		b.syncNow()
		s.put("e2.nt", nt("e2", "lost"))
		s.put("e1.nt", nt("e1", "later"))
		s.drop = 6
		for range 2 {
			rep := b.syncNow()
			for _, o := range []AuditOptions{{}, {Repair: true}} {
				audit, err := b.open().Audit(context.Background(), o)
				if err != nil || rep.Held == "" || audit.Equal || audit.SourceError != rep.Held || audit.Findings() > 0 {
					t.Fatalf("%+v %v\n%+v", audit, err, rep)
				}
			}
		}
		b.freezeList()
		if rep := b.syncNow(); !rep.InSync {
			t.Fatalf("%+v", rep)
		}
		b.equal()
	}
}

// Retention may take the list with the newest change while the last one has none. Nothing is
// lost, and a poll stays cheap.
func TestRetentionTakesTheNewestChange(t *testing.T) {
	for _, named := range []bool{true, false} {
		for _, bare := range []int{0, 1} {
			t.Run(fmt.Sprint(named, bare), func(t *testing.T) {
				b, gone := missingSource(t, bare)
				s := b.src
				s.allNamed = named
				fill(s, 3)
				b.freezeList()
				b.syncNow()
				fill(s, 3) // list 1 is full, list 2 is empty
				b.syncNow()
				gone[listed(0)], gone[listed(1)] = 410, 410
				if !named {
					s.drop = 6
				}
				for range 3 {
					clear(s.requests)
					if rep := b.syncNow(); !rep.InSync || rep.Held != "" {
						t.Errorf("%+v", rep)
					}
				}
				if n := s.requests[listed(2)]; n != 1 || s.requests["/set/changelist.xml"] != 1 {
					t.Errorf("an unchanged poll: %v", s.requests)
				}
			})
		}
	}
}

// An index that was wrong once, and named lists that are not there, leaves no gap: the right one has lists of all
// the time since. Lists with a hole between them prove nothing.
func TestMissingListsOfAWrongIndex(t *testing.T) {
	for _, hole := range []bool{false, true} {
		b, gone := missingSource(t, 0)
		s := b.src
		fill(s, 7)
		if rep := b.syncNow(); !rep.InSync {
			t.Fatalf("%+v", rep)
		}
		b.freezeList()
		wrong := true
		s.damageChanges = func(doc string) string {
			if i := strings.LastIndex(doc, "</sitemapindex>"); wrong && i >= 0 {
				from := s.now.UTC().Format(time.RFC3339)
				doc = doc[:i] + fmt.Sprintf(`<sitemap><loc>%s/set/none.xml</loc><rs:md capability="changelist" from="%s"/></sitemap>`, s.srv.URL, from) + doc[i:]
			}
			if hole && !wrong {
				doc = untilAttribute.ReplaceAllString(doc, "")
			}
			return doc
		}
		gone["/set/none.xml"] = 404
		fill(s, 3)
		for range 2 {
			if rep := b.syncNow(); rep.InSync || !strings.Contains(rep.Held, "none.xml is named and not there") {
				t.Fatalf("%+v", rep)
			}
		}
		wrong = false
		if rep := b.syncNow(); rep.InSync == hole {
			t.Fatalf("hole %t: %+v", hole, rep)
		}
	}
}
