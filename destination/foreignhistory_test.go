package destination

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/internal/inproc"
	"github.com/rsbridge/rsbridge/internal/kv/memkv"
	"github.com/rsbridge/rsbridge/internal/teststores"
)

// TestForeignHistories follows sources in every form that the specifications allow while
// they change, and lose changes: the mirror is what the source is, and the audit says so.
func TestForeignHistories(t *testing.T) {
	for seed := range teststores.Histories(30, 120) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			playForeign(t, uint64(seed), "")
		})
	}
}

// TestForeignSetBacks follows such sources while they are restored from backups besides.
func TestForeignSetBacks(t *testing.T) {
	for seed := range teststores.Histories(30, 120) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			playForeign(t, uint64(seed), "set back")
		})
	}
}

// TestForeignMirrors follows such sources into mirrors of other kinds.
func TestForeignMirrors(t *testing.T) {
	for _, kind := range []string{"folder", "dump", "per entity", "keep versions", "keep deleted"} {
		for seed := range teststores.Histories(6, 24) {
			t.Run(fmt.Sprint(kind, " ", seed), func(t *testing.T) {
				t.Parallel()
				playForeign(t, uint64(seed), kind)
			})
		}
	}
}

func playForeign(t *testing.T, seed uint64, kind string) {
	r := rand.New(rand.NewPCG(seed, 31))
	s := newForeignSource(r)
	mir := makeTestMirror(t)
	mir.srv = &httptest.Server{URL: "http://mirror.example"}
	b := benchOf(t, &testSource{srv: &httptest.Server{URL: foreignHost}}, mir, memkv.New())
	b.fetch, mir.transport = inproc.Transport{Handler: s}, inproc.Transport{Handler: mir}
	b.cfg.MaxDeleteRatio = 1
	b.cfg.Source = s.source()
	has, want := func() []string { return mir.lines(graphA) }, s.want
	var backup *foreignState
	switch kind {
	case "set back":
		if s.unit > time.Minute { // of another history of one day nothing may tell
			return
		}
	case "folder":
		s.alternates, s.generic = false, false // of those it has the pages
		dir := t.TempDir()
		b.cfg.GraphIRI, b.sink = "", sinkOf(t, FolderSink, dir)
		has, want = func() []string { return slices.Sorted(maps.Values(filesIn(t, dir))) }, s.bodies
	case "dump":
		file := filepath.Join(t.TempDir(), "all.nt")
		b.sink = sinkOf(t, DumpSink, file)
		has = func() []string { return readDump(t, file) }
	case "per entity":
		s.same, s.shared, s.describes = false, false, true // else they are several, or none
		b.perEntity()
		has = b.all
	case "keep versions":
		b.cfg.Keep = "versions"
	case "keep deleted":
		s.same, s.shared = false, false // what is of a resource is known by its entity
		b.cfg.Keep = "deleted"
		seen := map[string]bool{}
		has = func() []string { // of what the source has
			lines, current := mir.lines(graphA), s.want()
			for i := range 12 {
				name := fmt.Sprintf("n%d", i)
				of := func(l string) bool { return strings.HasPrefix(l, "<http://ex.org/"+name+"> ") }
				there := slices.ContainsFunc(lines, of)
				if seen[name] && !there {
					t.Errorf("%s is not kept", name)
				}
				if seen[name] = there; s.res[name] == nil {
					lines = slices.DeleteFunc(lines, of)
				}
			}
			return slices.DeleteFunc(lines, func(l string) bool { return strings.HasPrefix(l, "_:") && !slices.Contains(current, l) })
		}
	}
	for range 3 + r.IntN(8) {
		s.edit()
	}
	for step := range 6 {
		if backup != nil && r.IntN(3) == 0 {
			s.foreignState = *backup.clone()
			s.now = s.now.Add(time.Second)
			backup = nil
		}
		s.publish()
		if kind == "set back" && r.IntN(2) == 0 {
			backup = s.clone()
		}
		s.pass()
		b.clock = s.now
		if step > 0 && kind == "set back" && r.IntN(4) == 0 {
			d := b.open()
			d.crash = cutAfter(r.IntN(8))
			if _, err := d.Audit(context.Background(), AuditOptions{Repair: true}); err != nil && !errors.Is(err, errInjected) {
				t.Fatalf("step %d: repair: %v\n%s", step, err, s)
			}
			if backup != nil && r.IntN(2) == 0 {
				continue // and it is set back meanwhile
			}
		}
		rep, err := b.open().Sync(context.Background(), SyncOptions{Full: kind == "set back" && r.IntN(4) == 0})
		if err != nil {
			t.Fatalf("step %d: %v (%s)\n%s", step, err, rep.Why, s)
		}
		alone := !s.list && !s.dump // what is gone is told by nothing
		lost := (s.stale || s.early || alone) && (kind == "set back" || s.window > 0 || s.newestOnly) && strings.HasPrefix(rep.Held, "gap:")
		if got, want := has(), want(); !lost && (!rep.InSync || !slices.Equal(got, want)) {
			t.Errorf("step %d: %+v\n%s", step, rep, s)
			b.same(got, want)
			t.FailNow()
		}
		depth := "store"
		if step%3 == 2 && !s.alone && !s.stale && !alone { // else nothing tells where a resource is besides
			depth = "origin"
		}
		if audit, err := b.open().Audit(context.Background(), AuditOptions{Depth: depth}); err != nil || !lost && !audit.Equal || lost && alone && audit.Equal {
			t.Fatalf("step %d: audit %+v %v\n%s", step, audit, err, s)
		}
		s.pass()
		for range r.IntN(6) {
			s.edit()
		}
	}
}

func sinkOf(t *testing.T, open func(string) (*Sink, error), path string) *Sink {
	sink, err := open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sink.Close() })
	return sink
}
