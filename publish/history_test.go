package publish

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/internal/kv/kvtest"
	"github.com/rsbridge/rsbridge/internal/teststores"
	"github.com/rsbridge/rsbridge/publish/naming"
	"github.com/rsbridge/rsbridge/publish/patch"
	"github.com/rsbridge/rsbridge/rdfres"
)

// TestHistory applies random changes, publishes and reopens at random moments,
// crashes while publishing, and lets naive readers follow the documents: at each
// step they hold what the log holds.
// RSBRIDGE_HISTORIES is the number of histories, for campaigns.
func TestHistory(t *testing.T) {
	for seed := range teststores.Histories(1, 3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { history(t, uint64(seed), 50) })
	}
}

func history(t *testing.T, seed uint64, steps int) {
	r := rand.New(rand.NewPCG(seed, 7))
	w := newWorld(t, SetConfig{Format: rdfres.JSONLD, Prefix: "http://example.org/", RotateEntries: 1 + r.IntN(40),
		Rotate: time.Duration(1+r.IntN(20)) * time.Second, PartEntries: 3 + r.IntN(30), PackageBytes: int64(1000 + r.IntN(20000)), DumpPatches: seed%2 == 0, Archives: seed%2 == 1, ArchivesKeep: time.Duration(seed%4) * 20 * time.Second,
		Capabilities: []string{"resourcelist", "changelist", "resourcedump", "changedump"}})
	if seed > 0 {
		w.tune = func(s *set) { s.sizes.mostLists, s.sizes.dumpDocEntries = 4+int(seed%5), 3 }
		w.reopen()
	}
	values := map[string]int{}
	for i := range r.IntN(60) {
		values[fmt.Sprintf("http://example.org/e/%d", i)] = i
	}
	if g := w.publish(); g.Number != 0 {
		t.Fatalf("published before the first scan: %+v", g)
	}
	w.read(w.url("capabilitylist.xml"))
	w.scan(values, false, w.cfg.Format)
	w.publish()
	readers := []*mirror{{w: w, from: "later"}, {w: w, from: "not earlier"}}
	inventories := map[uint64]string{}
	parts := map[string]string{} // part and ETag: bytes
	for range steps {
		switch k := r.IntN(20); {
		case k < 9:
			w.randomChanges(r, 1+r.IntN(12), 80)
			continue // not published yet
		case k < 12:
			w.publish()
		case k < 13:
			w.reopen()
		case k < 15:
			w.crash(r)
		case k < 16:
			w.publish()
			w.must(w.pub.Dump(t.Context(), "data"))
			w.checkDump()
			w.checkChangeDump()
			w.must(w.pub.Archive(t.Context(), "data"))
			for _, kind := range archiveKinds {
				w.archives(kind)
			}
		case k < 17:
			readers = w.retain(r, readers)
		case k < 18:
			if r.IntN(3) == 0 {
				readers = w.rebase(r, readers)
			}
		default:
			g := w.publish()
			if again := w.publish(); again != g {
				t.Fatalf("publishing nothing moved the generation from %+v to %+v", g, again)
			}
		}
		if seq, _ := w.log.Head(); seq != w.mustGeneration().Sequence {
			w.publish()
		}
		w.checkLists(parts)
		w.checkInventory(inventories)
		for _, m := range readers {
			if !m.start {
				m.baseline()
				m.compare("baseline " + m.from)
			}
			if r.IntN(2) == 0 {
				m.follow()
				m.compare("following changes " + m.from)
			}
		}
		if r.IntN(10) == 0 {
			readers = append(readers, &mirror{w: w, from: []string{"later", "not earlier"}[r.IntN(2)]})
		}
	}
	t.Logf("patches: %v", w.applied)
	if seed < 3 && (w.applied[patch.JSON.MediaType] == 0 || w.applied[patch.RDF.MediaType] == 0) {
		t.Errorf("patches of both kinds are wanted: %v", w.applied)
	}
}

// retain drops what is older than some time that all readers have passed, or
// that some have not: those begin again.
func (w *world) retain(r *rand.Rand, readers []*mirror) []*mirror {
	w.t.Helper()
	before := w.clock.now().Add(-time.Duration(r.IntN(60)) * time.Second)
	_, err := w.log.Retain(w.t.Context(), before, before)
	w.must(err)
	w.must(w.pub.Retain(w.t.Context(), "data"))
	var left []*mirror
	h, _ := w.read(w.url("changelist.xml"))
	for _, m := range readers {
		if m.start && m.t.Before(h.Meta.From) {
			m = &mirror{w: w, from: m.from} // it would find the gap
		}
		left = append(left, m)
	}
	for address := range w.bytes { // what retention has dropped may be gone
		if res := w.get(address); res.Code == 404 || res.Code == 410 {
			delete(w.bytes, address)
		}
	}
	return left
}

// rebase moves the set to another prefix, with a crash at some moment now and
// then. Until the log says so nothing moves; a reader finds the gap.
func (w *world) rebase(r *rand.Rand, readers []*mirror) []*mirror {
	w.t.Helper()
	w.publish()
	before, _, err := w.pub.Addresses("data")
	w.must(err)
	w.cfg.Prefix = []string{"", "http://example.org/", "http://example.org/e/", "http://other.example/"}[r.IntN(4)]
	w.reopen()
	w.publish()
	inForce, configured, err := w.pub.Addresses("data")
	w.must(err)
	if inForce != before || configured.Prefix != w.cfg.Prefix {
		w.t.Fatalf("in force %+v, configured %+v; before %+v", inForce, configured, before)
	}
	_, err = w.log.Rebase(w.t.Context(), Move{From: inForce, To: configured}.Note())
	w.must(err)
	if r.IntN(2) == 0 {
		w.crash(r)
	}
	w.publish()
	if inForce, _, err = w.pub.Addresses("data"); err != nil || inForce != configured {
		w.t.Fatalf("in force %+v, want %+v (%v)", inForce, configured, err)
	}
	view := w.log.View(w.t.Context())
	defer view.Close()
	w.model = map[string][]byte{}
	for st, err := range view.Current(w.t.Context(), rdfres.Digest{}, rdfres.Digest{}) {
		w.must(err)
		loc, err := w.pub.Location(w.t.Context(), "data", st.Entity)
		w.must(err)
		w.model[loc], err = versionBytes(w.t.Context(), view, st.Entity, st.Current.Sequence)
		w.must(err)
	}
	for address, bytes := range w.bytes { // what was kept for ever is gone, or elsewhere
		switch res := w.get(address); res.Code {
		case 200:
		case 301:
			if again := w.get(res.Header().Get("Location")); again.Code != 200 || again.Body.String() != bytes {
				w.t.Fatalf("%s leads to %s: %d", address, res.Header().Get("Location"), again.Code)
			}
			delete(w.bytes, address)
		case 404, 410:
			delete(w.bytes, address)
		default:
			w.t.Fatalf("%s: %d %s", address, res.Code, res.Body)
		}
	}
	h, _ := w.read(w.url("changelist.xml"))
	var left []*mirror
	for _, m := range readers {
		if m.start && !m.t.Before(h.Meta.From) {
			w.t.Fatalf("the lists begin at %v, a reader stands at %v and would not find the gap", h.Meta.From, m.t)
		}
		left = append(left, &mirror{w: w, from: m.from})
	}
	return left
}

func (w *world) mustGeneration() Generation {
	w.t.Helper()
	g, ok := w.pub.Generation(w.cfg.Name)
	if !ok {
		w.t.Fatal("no generation")
	}
	return g
}

// crash lets a publication fail at a random commit, then opens again.
func (w *world) crash(r *rand.Rand) {
	w.t.Helper()
	w.randomChanges(r, 3, 80)
	w.must(w.pub.Close())
	bad := &kvtest.Full{Store: w.store, Left: r.IntN(4)}
	pub, err := Open(w.t.Context(), kv.Prefix(bad, []byte("pub/")), []SetConfig{w.cfg}, w.o)
	if err == nil {
		pub.Close()
	} else if !errors.Is(err, kvtest.ErrFull) {
		w.t.Fatal(err)
	}
	w.pub = nil
	w.reopen()
}

// checkLists reads every document and compares the Resource List with the model.
// A part with the same ETag has the same bytes.
func (w *world) checkLists(parts map[string]string) {
	w.t.Helper()
	_, sets := w.read(testBase + "/.well-known/resourcesync")
	for _, e := range sets {
		_, capabilities := w.read(e.Loc)
		for _, c := range capabilities {
			w.read(c.Loc)
		}
	}
	address := w.url("resourcelist.xml")
	h, entries := w.all(address)
	got := map[string][]byte{}
	for _, e := range entries {
		if got[e.Loc] != nil {
			w.t.Fatalf("%s is listed twice", e.Loc)
		}
		data := w.body(e.Loc)
		if f := rdfres.ComputeFixity(data, false, false); f.SHA256.String() != e.Meta.Hash.SHA256 || f.Length != e.Meta.Length {
			w.t.Fatalf("%s does not answer with what is promised", e.Loc)
		}
		got[e.Loc] = data
	}
	w.compare("Resource List", got)
	if !h.Index {
		return
	}
	_, list := w.read(address)
	for _, p := range list {
		res := w.get(p.Loc)
		key := p.Loc + " " + res.Header().Get("Etag")
		if old, ok := parts[key]; ok && old != res.Body.String() {
			w.t.Fatalf("part %s changed its bytes and kept its ETag", p.Loc)
		}
		parts[key] = res.Body.String()
	}
}

// checkDump unpacks every package and compares with the model, which was just
// published.
func (w *world) checkDump() {
	w.t.Helper()
	_, packages := w.all(w.url("resourcedump.xml"))
	got := map[string][]byte{}
	for _, p := range packages {
		maps.Copy(got, w.unpack(p))
	}
	w.compare("Resource Dump", got)
}

// TestUntouchedPartsKeepTheirBytes: a change touches one part and the index.
func TestUntouchedPartsKeepTheirBytes(t *testing.T) {
	w := newWorld(t, SetConfig{Format: rdfres.NTriples, PartEntries: 50})
	values := map[string]int{}
	for i := range 1000 {
		values[fmt.Sprintf("http://example.org/e/%d", i)] = i
	}
	w.scan(values, false, w.cfg.Format)
	w.publish()
	tags := func() map[string]string {
		m := map[string]string{}
		_, parts := w.read(w.url("resourcelist.xml"))
		for _, p := range parts {
			res := w.get(p.Loc)
			m[p.Loc] = res.Header().Get("Etag") + res.Body.String()
		}
		return m
	}
	before := tags()
	if len(before) < 20 || len(before) > 60 {
		t.Fatalf("%d parts for 1,000 entries of 50", len(before))
	}
	w.clock.add(time.Minute)
	w.scan(map[string]int{"http://example.org/e/17": 4711}, true, w.cfg.Format)
	w.publish()
	changed := 0
	for loc, s := range tags() {
		if before[loc] != s {
			changed++
			if !strings.Contains(s, naming.Encode("http://example.org/e/17", "")+".nt") {
				t.Errorf("%s has changed", loc)
			}
		}
	}
	if changed != 1 {
		t.Errorf("%d parts have changed, want 1", changed)
	}
	w.reopen()
	for loc, s := range tags() {
		if before[loc] != s {
			changed--
		}
	}
	if changed != 0 {
		t.Errorf("after a restart %d more parts have changed", -changed)
	}
	// everything goes: parts join again
	for e := range values {
		values[e] = -1
	}
	values["http://example.org/e/3"] = 3
	w.scan(values, true, w.cfg.Format)
	w.publish()
	h, entries := w.read(w.url("resourcelist.xml"))
	if h.Index || len(entries) != 1 {
		t.Errorf("after deletions the Resource List has index %v, %d entries", h.Index, len(entries))
	}
	for loc := range before { // addresses of an older index still answer
		if res := w.get(loc); res.Code != 200 && res.Code != 404 {
			t.Errorf("%s: %d", loc, res.Code)
		}
	}
}
