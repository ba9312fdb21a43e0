package destination

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/internal/inproc"
	"github.com/rsbridge/rsbridge/internal/kv/memkv"
)

// TestForeignHistories follows sources in every form that the specifications allow while
// they change, and lose changes: the mirror is what the source is, and the audit says so.
func TestForeignHistories(t *testing.T) {
	for seed := range histories(60, 300) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			playForeign(t, uint64(seed), false)
		})
	}
}

// TestForeignSetBacks follows such sources while they are restored from backups besides.
func TestForeignSetBacks(t *testing.T) {
	for seed := range histories(60, 300) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			playForeign(t, uint64(seed), true)
		})
	}
}

func playForeign(t *testing.T, seed uint64, setBack bool) {
	r := rand.New(rand.NewPCG(seed, 31))
	s := newForeignSource(r)
	if setBack && !s.list && !s.dump { // what is gone would be told by nothing
		return
	}
	var backup *foreignState
	mir := makeTestMirror(t)
	mir.srv = &httptest.Server{URL: "http://mirror.example"}
	b := benchOf(t, &testSource{srv: &httptest.Server{URL: foreignHost}}, mir, memkv.New())
	b.fetch, mir.transport = inproc.Transport{Handler: s}, inproc.Transport{Handler: mir}
	b.cfg.MaxDeleteRatio = 1
	b.cfg.Source = s.source()
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
		if setBack && r.IntN(2) == 0 {
			backup = s.clone()
		}
		s.pass()
		b.clock = s.now
		rep, err := b.open().Sync(context.Background(), SyncOptions{})
		if err != nil {
			t.Fatalf("step %d: %v (%s)\n%s", step, err, rep.Why, s)
		}
		lost := (s.stale || s.early) && (setBack || s.window > 0 || s.newestOnly) && strings.HasPrefix(rep.Held, "gap:") // nothing that is offered tells of it
		if got, want := mir.lines(graphA), s.want(); !lost && (!rep.InSync || !slices.Equal(got, want)) {
			t.Errorf("step %d: %+v\n%s", step, rep, s)
			b.same(got, want)
			t.FailNow()
		}
		depth := "store"
		if step%3 == 2 && !s.alone && !s.stale && (s.list || s.dump) { // else nothing tells where a resource is besides
			depth = "origin"
		}
		if audit, err := b.open().Audit(context.Background(), AuditOptions{Depth: depth}); err != nil || !lost && !audit.Equal {
			t.Fatalf("step %d: audit %+v %v\n%s", step, audit, err, s)
		}
		s.pass()
		for range r.IntN(6) {
			s.edit()
		}
	}
}
