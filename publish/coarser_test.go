package publish

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/changetrack"
	"github.com/rsbridge/rsbridge/internal/kv/memkv"
	"github.com/rsbridge/rsbridge/rdfres"
)

// TestCoarserLists: with too many Change Lists older ones become one, at an
// address of its own, to which theirs lead; every change is listed once.
func TestCoarserLists(t *testing.T) {
	w := newWorld(t, SetConfig{Format: rdfres.JSONLD, RotateEntries: 2, Capabilities: []string{"resourcelist", "changelist", "changedump"}})
	w.tune = func(s *set) { s.sizes.mostLists, s.sizes.dumpDocEntries = 8, 4 }
	w.reopen()
	w.scan(map[string]int{"http://example.org/e/0": 0}, false, rdfres.JSONLD)
	w.publish()
	most, merged := 0, 0
	closed := map[string]bool{}
	for i := range 60 {
		w.clock.add(time.Second)
		w.scan(map[string]int{fmt.Sprintf("http://example.org/e/%d", i%7): i + 1}, true, rdfres.JSONLD)
		w.publish()
		if i%9 == 5 {
			w.must(w.pub.Dump(t.Context(), "data"))
		}
		if i == 30 {
			w.reopen()
		}
		_, lists := w.read(w.url("changelist.xml"))
		most = max(most, len(lists))
		for _, l := range lists {
			if strings.Count(l.Loc, "-") > 1 {
				merged++
			}
			if !l.Meta.Until.IsZero() {
				closed[l.Loc] = true
			}
		}
		_, entries := w.all(w.url("changelist.xml"))
		if len(entries) != i+1 {
			t.Fatalf("%d changes are listed, want %d", len(entries), i+1)
		}
	}
	if merged == 0 || most > 20 {
		t.Errorf("%d lists at most, %d merged ones were seen", most, merged)
	}
	for address := range closed { // what was ever listed can be read, there or where it leads
		res := w.get(address)
		if res.Code == 301 {
			res = w.get(res.Header().Get("Location"))
		}
		if res.Code != 200 {
			t.Errorf("%s: %d %s", address, res.Code, res.Body)
		}
	}
	w.must(w.pub.Dump(t.Context(), "data"))
	h, parts := w.read(w.url("changedump.xml"))
	_, packages := w.all(w.url("changedump.xml"))
	if !h.Index || len(parts) < 3 || len(packages) < 9 {
		t.Errorf("the Change Dump has %d parts, %d packages, index %v", len(parts), len(packages), h.Index)
	}
	last := h.Meta.From
	for _, p := range packages {
		w.unpack(p)
		if !p.Meta.From.Equal(last) {
			t.Errorf("%s goes on at %v, want %v", p.Loc, p.Meta.From, last)
		}
		last = p.Meta.Until
	}
	for _, path := range []string{"changelist-000001-000002.xml", "changelist-1.xml", "changelist-000099.xml", "changedump-99999.xml", "changedump-1.xml"} {
		if code := w.get(w.url(path)).Code; code != 404 && code != 301 {
			t.Errorf("%s: %d", path, code)
		}
	}
}

// TestCoarserListsOfFiles: lists of nothing but files have no package to wait for, so they
// are merged too, and packages go on without a gap after them.
func TestCoarserListsOfFiles(t *testing.T) {
	w := newWorld(t, SetConfig{Format: rdfres.NTriples, RotateEntries: 1, Content: "1", Capabilities: []string{"resourcelist", "changelist", "changedump"}})
	w.tune = func(s *set) { s.sizes.mostLists = 6 }
	w.o.Dir = t.TempDir()
	w.reopen()
	w.scan(map[string]int{"http://example.org/e/0": 0}, false, rdfres.NTriples)
	w.must(w.log.LinkFiles(t.Context(), changetrack.LinkOptions{Properties: "1", Files: func(string, rdfres.Format, []byte) ([]string, error) {
		return []string{"http://files.example/0.pdf"}, nil
	}}))
	w.publish()
	change := func(i int) {
		w.clock.add(time.Second)
		w.scan(map[string]int{"http://example.org/e/0": i}, true, rdfres.NTriples)
		w.publish()
		w.must(w.pub.DumpChanges(t.Context(), "data"))
	}
	change(1)
	change(2)
	for i := range 30 {
		w.clock.add(time.Second)
		w.files(int64(10+i), 1)
		w.publish()
		w.must(w.pub.DumpChanges(t.Context(), "data"))
	}
	_, lists := w.read(w.url("changelist.xml"))
	if len(lists) > 12 {
		t.Errorf("%d lists, and they should be merged beyond 6", len(lists))
	}
	change(100)
	change(101)
	h, packages := w.all(w.url("changedump.xml"))
	last := h.Meta.From
	for _, p := range packages {
		if !p.Meta.From.Equal(last) {
			t.Errorf("%s goes on at %v, want %v", p.Loc, p.Meta.From, last)
		}
		last = p.Meta.Until
	}
	if _, all := w.all(w.url("changelist.xml")); len(all) != 34 || len(packages) < 3 {
		t.Errorf("%d changes are listed, want 34; %d packages", len(all), len(packages))
	}
}

// TestMonthOfLists: 500 changes a second for 30 days, as numbers, stay within one index; twice as
// many are warned of.
func TestMonthOfLists(t *testing.T) {
	const changes, entries = 500 * 86400 * 30, 10000
	var log bytes.Buffer
	s := &set{p: &Publisher{log: slog.New(slog.NewTextHandler(&log, nil))}, cfg: SetConfig{Name: "data"}, locks: &locks{}, sizes: sizes{mostLists: mostLists, partSize: partSize(entries)}}
	w := &generationWriter{set: s, batch: memkv.New().Batch(), dirty: map[uint64]bool{}}
	defer w.batch.Close()
	grow := func(lists int) {
		for range lists {
			n := uint64(1)
			if len(w.lists) > 0 {
				n = w.lists[len(w.lists)-1].lastNumber() + 1
			}
			w.lists = append(w.lists, listRecord{Number: n, Entries: entries, Bytes: entries * 1200, Until: time.Unix(int64(n), 0)})
			if n%4000 == 0 {
				w.mergeLists()
				w.warnFull()
				if err := w.batch.Commit(t.Context(), false); err != nil {
					t.Fatal(err)
				}
			}
		}
		w.mergeLists()
	}
	grow(changes / entries)
	all := 0
	for _, l := range w.lists {
		all += l.Entries
	}
	if most := changes/mergedEntries + finestLists; all != changes || len(w.lists) > most {
		t.Errorf("%d changes in %d lists, want %d in at most %d", all, len(w.lists), changes, most)
	}
	if strings.Contains(log.String(), "too large") {
		t.Errorf("warned too early: %s", log.String())
	}
	if grow(changes / entries / 3); strings.Count(log.String(), "too large") != 1 {
		t.Errorf("with %d lists there is no warning, or several: %s", len(w.lists), log.String())
	}
}
