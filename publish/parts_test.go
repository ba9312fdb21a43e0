package publish

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/internal/teststores"
	"github.com/rsbridge/rsbridge/publish/partition"
	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// TestManyParts: before an index gets too long, the parts of a Resource List grow
// instead: as the set grows, when its lists begin anew, and when a part alone is
// too large. Nothing is lost, and a part that no change touches keeps its bytes.
func TestManyParts(t *testing.T) {
	w := newWorld(t, SetConfig{Format: rdfres.NTriples, PartEntries: 3})
	w.tune = func(s *set) { s.sizes.partSize.Many = 12 }
	w.reopen()
	check := func(what string) (parts map[string]string, largest int) {
		t.Helper()
		got := map[string][]byte{}
		parts = map[string]string{}
		h, list := w.read(w.url("resourcelist.xml"))
		if !h.Index || len(list) > 13 { // the last cut makes one more
			t.Fatalf("%s: %d parts, index %v", what, len(list), h.Index)
		}
		for _, p := range list {
			_, entries := w.read(p.Loc)
			largest = max(largest, len(entries))
			parts[p.Loc] = string(w.body(p.Loc))
			for _, e := range entries {
				if got[e.Loc] != nil {
					t.Fatalf("%s: %s is listed twice", what, e.Loc)
				}
				got[e.Loc] = w.body(e.Loc)
			}
		}
		w.compare(what, got)
		return parts, largest
	}
	values := map[string]int{}
	grow := func(n int) map[string]int {
		more := map[string]int{}
		for range n {
			more[fmt.Sprintf("http://example.org/e/%d", len(values)+len(more))] = 1
		}
		maps.Copy(values, more)
		return more
	}
	w.scan(grow(20), false, rdfres.NTriples)
	w.publish()
	check("first")
	for i := range 12 {
		w.clock.add(time.Minute)
		w.scan(grow(10), true, rdfres.NTriples)
		w.publish()
		check(fmt.Sprintf("grown %d times", i+1))
	}
	before, largest := check("grown")
	if largest <= 3 {
		t.Errorf("the largest part has %d entries", largest)
	}
	w.clock.add(time.Minute)
	w.scan(map[string]int{"http://example.org/e/7": 2}, true, rdfres.NTriples)
	w.publish()
	after, _ := check("one change")
	changed := 0
	for loc, text := range after {
		if before[loc] != text {
			changed++
		}
	}
	if changed != 1 {
		t.Errorf("one change touched %d parts", changed)
	}
	// many at once, as at a first publication
	v := w.log.View(t.Context())
	defer v.Close()
	each := w.pub.lookup("data").entries.measure(t.Context(), &source{View: v})
	ps, err := partition.New(each, partition.Size{Usual: partition.Limit{Entries: 3, Bytes: partBytes}, Many: 12, Large: partition.Large}, partition.Part{})
	w.must(err)
	if len(ps) != 1 || ps[0].Count != int64(len(values)) {
		t.Errorf("begun anew there are %d parts", len(ps))
	}
	if ps, err = partition.New(each, partition.Size{Usual: partition.Limit{Entries: 3, Bytes: partBytes}, Many: 1000}, partition.Part{}); err != nil || len(ps) < 50 {
		t.Errorf("with room there are %d parts (%v)", len(ps), err)
	}
	// it shrinks again
	for e := range values {
		values[e] = -1
	}
	values["http://example.org/e/0"], values["http://example.org/e/1"] = 1, 1
	w.scan(values, true, rdfres.NTriples)
	w.publish()
	if h, entries := w.read(w.url("resourcelist.xml")); h.Index && len(entries) > 12 || !h.Index && len(entries) != 2 {
		t.Errorf("shrunk: index %v of %d", h.Index, len(entries))
	}
}

// TestEmptyParts: an index does not name a range that holds nothing, also that of an
// archive.
func TestEmptyParts(t *testing.T) {
	w := newWorld(t, SetConfig{Format: rdfres.NTriples, PartEntries: 1, Archives: true})
	w.o.Dir = t.TempDir()
	w.reopen()
	values := map[string]int{}
	for i := 0; len(values) < 3; i++ { // all in one half
		if e := fmt.Sprintf("http://example.org/e/%d", i); rdfres.EntityKey(e)[0] < 0x80 {
			values[e] = 1
		}
	}
	w.scan(values, false, rdfres.NTriples)
	w.publish()
	w.must(w.pub.Archive(t.Context(), "data"))
	_, archive := w.read(w.url("archives/resourcelist.xml"))
	for _, address := range []string{w.url("resourcelist.xml"), archive[0].Loc} {
		h, parts := w.read(address)
		if !h.Index || len(parts) != len(values) {
			t.Errorf("%s: index %v of %d parts", address, h.Index, len(parts))
		}
		for _, p := range parts {
			if _, entries := w.read(p.Loc); len(entries) != 1 {
				t.Errorf("%s has %d entries", p.Loc, len(entries))
			}
		}
	}
	if h, entries := w.read(w.url("resourcelist-1.xml")); len(entries) != 0 || h.IndexURL() == "" { // whoever knows the address
		t.Errorf("the empty part: %+v, %d entries", h, len(entries))
	}
	for e := range values {
		values[e] = -1
	}
	w.scan(values, true, rdfres.NTriples)
	w.publish()
	if h, entries := w.read(w.url("resourcelist.xml")); h.Index || len(entries) != 0 {
		t.Errorf("empty: index %v, %d entries", h.Index, len(entries))
	}
}

// TestNoSets: without sets there is no Source Description.
func TestNoSets(t *testing.T) {
	p, err := Open(t.Context(), teststores.Records(t), nil, Options{BaseURL: testBase})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	rec := httptest.NewRecorder()
	p.Handler().ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), http.MethodGet, testBase+wellKnownPath, nil))
	if rec.Code != http.StatusNotFound {
		t.Errorf("the Source Description of no sets: %d %s", rec.Code, rec.Body)
	}
}

// TestLongEntries: a part is cut also by the bytes of its entries: at the first
// publication, as entries come and grow, and when entries are made with more links than
// before. No document is longer than what is allowed of it, and a part that no change
// touches keeps its name and its bytes. The manifests of a dump are cut in the same way.
func TestLongEntries(t *testing.T) {
	const allowed = 10000
	long := func(i int) string {
		return fmt.Sprintf("http://example.org/%s/%d", strings.Repeat("long/", 60*(i%3)), i)
	}
	w := newWorld(t, SetConfig{Format: rdfres.NTriples, Archives: true})
	w.tune = func(s *set) { s.sizes.partSize.Usual.Bytes = allowed }
	w.o.Dir = t.TempDir()
	w.reopen()
	values, next := map[string]int{}, 0
	grow := func(n int) map[string]int {
		more := map[string]int{}
		for range n {
			more[long(next)], values[long(next)] = 1, 1
			next++
		}
		return more
	}
	check := func(what string) map[string]string {
		t.Helper()
		got, parts := map[string][]byte{}, map[string]string{}
		h, list := w.read(w.url("resourcelist.xml"))
		if !h.Index {
			t.Fatalf("%s: no index", what)
		}
		for _, p := range list {
			_, entries := w.read(p.Loc)
			parts[p.Loc] = string(w.body(p.Loc))
			if n := len(parts[p.Loc]); n > allowed*5/4+1000 && len(entries) > 1 || len(entries) == 0 {
				t.Errorf("%s: %s has %d entries and %d bytes", what, p.Loc, len(entries), n)
			}
			for _, e := range entries {
				got[e.Loc] = w.body(e.Loc)
			}
		}
		w.compare(what, got)
		return parts
	}
	w.scan(grow(60), false, rdfres.NTriples)
	w.publish()
	before := check("first")
	for i := range 4 {
		w.clock.add(time.Minute)
		w.scan(grow(20), true, rdfres.NTriples)
		w.publish()
		before = check(fmt.Sprintf("grown %d times", i+1))
	}
	for i := range 8 { // what changes adds to what is measured, until it is measured again
		w.clock.add(time.Minute)
		w.scan(map[string]int{long(0): i + 2, long(1): i + 2, long(2): i + 2}, true, rdfres.NTriples)
		w.publish()
		now := check(fmt.Sprintf("changed %d times", i+1))
		changed := 0
		for loc, text := range now {
			if before[loc] != text {
				changed++
			}
		}
		if changed > 3 || len(now) != len(before) {
			t.Fatalf("%d of %d parts are others, there were %d", changed, len(now), len(before))
		}
		before = now
	}
	w.reopen()
	if now := check("started again"); !maps.Equal(now, before) {
		t.Error("another start makes other parts")
	}
	w.must(w.pub.Dump(t.Context(), "data"))
	_, packages := w.read(w.url("resourcedump.xml"))
	for _, p := range packages {
		if n := len(w.body(p.Link(resourcesync.RelContents).Href)); n > 100000 { // beside what the writer holds back
			t.Errorf("a manifest of %d bytes", n)
		}
	}
	if len(packages) < 2 {
		t.Errorf("%d packages", len(packages))
	}
	w.cfg.Links.Templates = []LinkTemplate{{Rel: "related", Href: "http://elsewhere.example/" + strings.Repeat("more/", 200) + "{name}"}}
	w.pub.Close()
	w.pub = nil
	// The parts are measured with the new links before they are served; the sizes of the
	// test come after the start, so those of the set are what it is opened with.
	w.reopen()
	w.clock.add(time.Minute)
	w.scan(map[string]int{long(3): 7}, true, rdfres.NTriples)
	w.publish()
	s := w.pub.lookup("data")
	_, snap := w.pub.present(t.Context(), "data")
	defer snap.release()
	var measured, recorded int64
	w.must(s.entries.measure(t.Context(), snap.source())(rdfres.Digest{}, rdfres.Digest{}, func(_ rdfres.Digest, n int64) { measured += n }))
	for _, p := range snap.parts {
		recorded += p.Bytes
	}
	if recorded < measured || recorded > measured*11/10 {
		t.Errorf("the parts are taken to have %d bytes, they have %d", recorded, measured)
	}
}
