package destination

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/destination/sink"
	"github.com/rsbridge/rsbridge/internal/inproc"
	"github.com/rsbridge/rsbridge/internal/teststores"
)

// sharers are destinations of one state in one graph, each with a source of its own.
func sharers(t *testing.T, n int) (all []*bench) {
	for i := range n {
		b := newQuietBench(t)
		b.src.srv.URL = fmt.Sprintf("http://source%d.example", i)
		b.cfg.Name, b.cfg.Source = fmt.Sprintf("d%d", i), b.src.url("/.well-known/resourcesync")
		if i > 0 {
			b.mir, b.store = all[0].mir, all[0].store
		}
		b.fetch = inproc.Transport{Handler: b.src}
		for k := range 3 {
			b.src.put(fmt.Sprintf("e%d.nt", k), nt(fmt.Sprintf("of%d-%d", i, k), "a"))
		}
		all = append(all, b)
	}
	return all
}

// The state of several destinations in one graph is lost: the first of them needs leave to
// go on beside what others have there, and then each finds what it had there itself.
func TestLostStateOfSharedGraph(t *testing.T) {
	for round := range 4 { // the marks are random
		all := sharers(t, 3)
		for _, b := range all {
			b.sync()
		}
		before := all[0].mir.lines(graphA)
		store := teststores.Records(t)
		var want []string
		for i, b := range all {
			b.store = store
			b.src.remove("e0.nt") // which no record tells any more
			b.src.put("e1.nt", nt(fmt.Sprintf("of%d-1", i), "b"))
			want = append(want, b.src.want()...)
		}
		if rep, err := all[0].open().Sync(t.Context(), SyncOptions{}); err == nil || !strings.Contains(err.Error(), "adopt: true") {
			t.Fatalf("round %d: %v %+v", round, err, rep)
		}
		all[0].same(all[0].mir.lines(graphA), before)
		all[0].cfg.Adopt = true
		for _, b := range all {
			if rep, err := b.open().Sync(t.Context(), SyncOptions{}); err != nil || !rep.InSync {
				t.Fatalf("round %d: %s: %v %+v", round, b.cfg.Name, err, rep)
			}
		}
		all[0].same(all[0].mir.lines(graphA), want)
		for _, b := range all {
			if a, err := b.open().Audit(t.Context(), AuditOptions{}); err != nil || !a.Equal {
				t.Fatalf("%+v %v", a, err)
			}
		}
		if n := strings.Count(strings.Join(all[0].mir.lines(sink.StateGraph), ""), sink.PropPrefix+"generation"); n != 3 {
			t.Fatalf("%d checkpoints", n)
		}
	}
}

// A state of before the first run has the mark of a mirror that is there: it is ours.
func TestStateOfBeforeTheFirstRun(t *testing.T) {
	for _, layout := range []string{"single", "per-entity"} {
		t.Run(layout, func(t *testing.T) {
			b := newQuietBench(t)
			if layout == "per-entity" {
				b.perEntity()
			}
			fill(b.src, 4)
			b.open()
			state := b.backup()
			b.sync()
			b.src.remove("e2.nt")
			b.restore(state)
			b.sync()
			b.equalAll()
		})
	}
}

// What somebody has put into the graph is told though another destination lacks something
// of the same subject, which may be one that nobody audits.
func TestStrangerBesideWhatAnotherLacks(t *testing.T) {
	all := sharers(t, 2)
	a, b := all[0], all[1]
	a.src.put("s.nt", nt("s", "1"))
	b.src.put("s.nt", "<http://ex.org/s> <http://ex.org/w> \"2\" .\n")
	a.sync()
	b.sync()
	a.mir.exec("DELETE DATA { GRAPH <" + graphA + "> {\n<http://ex.org/s> <http://ex.org/w> \"2\" .\n} }")
	a.mir.exec("INSERT DATA { GRAPH <" + graphA + "> {\n<http://ex.org/s> <http://ex.org/v> \"stranger\" .\n} }")
	if rep, err := a.open().Audit(t.Context(), AuditOptions{}); err != nil || rep.Equal || rep.Different != 1 {
		t.Fatalf("%+v %v", rep, err)
	}
	if rep, err := a.open().Audit(t.Context(), AuditOptions{Repair: true}); err != nil || !rep.Equal {
		t.Fatalf("%+v %v", rep, err)
	}
	if rep, err := b.open().Audit(t.Context(), AuditOptions{}); err != nil || rep.Missing+rep.Different != 1 {
		t.Fatalf("%+v %v", rep, err)
	}
	if rep, err := b.open().Audit(t.Context(), AuditOptions{Repair: true}); err != nil || !rep.Equal {
		t.Fatalf("%+v %v", rep, err)
	}
	a.same(a.mir.lines(graphA), slices.Sorted(slices.Values(append(a.src.want(), b.src.want()...))))
}
