package destination

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/internal/teststores"
)

// TestRandomHistories changes a source at random, lets requests fail and cuts
// runs at every point between the mirror and the records, as a crash would, and
// restores the state from backups. In the end, without faults, mirror and source are
// equal and the audit says so.
func TestRandomHistories(t *testing.T) {
	n := teststores.Histories(8, 24) // each kind once: runs that do not meet, so that the race detector sees no more in more of them
	kinds := []string{"ours", "foreign", "list-only", "dump", "parts", "per-batch", "per-entity", "per-entity-batch"}
	for seed := range n {
		kind := kinds[seed%len(kinds)]
		t.Run(fmt.Sprintf("%s-%d", kind, seed), func(t *testing.T) {
			t.Parallel()
			playHistory(t, kind, uint64(seed))
		})
	}
}

// cutAt cuts a run off at a point between the mirror and the records, as a crash would.
func cutAt(point string) func(string) error {
	return func(at string) error {
		if at == point {
			return errInjected
		}
		return nil
	}
}

// cutAfter cuts a run off for good when it has passed n points, of two batches too.
func cutAfter(n int) func(string) error {
	var passed atomic.Int64
	return func(string) error {
		if passed.Add(1) > int64(n) {
			return errInjected
		}
		return nil
	}
}

func playHistory(t *testing.T, kind string, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 1))
	b := newBench(t)
	s := b.src
	b.cfg.MaxDeleteRatio = 1
	if seed%2 == 1 {
		b.few = 1 // a first baseline goes by Graph Store POST
	}
	switch kind {
	case "ours":
		s.ours, s.changeParts = true, 5
	case "list-only":
		s.changes = false
	case "dump":
		s.dump = true
	case "parts":
		s.changeParts, s.parts = 4, 2
	case "per-entity":
		b.cfg.Graph, b.cfg.GraphIRI = "per-entity", ""
	case "per-entity-batch":
		b.cfg.Graph, b.cfg.GraphIRI = "per-entity", "http://mirror.example/{entity}"
		b.caps.UpdateTriples = 3
		b.caps.Transactional = false
	case "per-batch":
		b.caps.UpdateTriples = 3
		b.caps.Transactional = false
	}
	if r.IntN(2) == 0 {
		b.cfg.MemoryBytes = 2 << 10 // batches of two or three
	}
	var faulty atomic.Bool
	var rolls atomic.Uint64
	s.hook = func(w http.ResponseWriter, req *http.Request) bool {
		if !faulty.Load() {
			return false
		}
		x := rand.New(rand.NewPCG(seed, rolls.Add(1))).Float64()
		switch {
		case x < 0.06:
			http.Error(w, "busy", http.StatusInternalServerError)
		case x < 0.09 && strings.Contains(req.URL.Path, "/r/"):
			http.NotFound(w, req)
		case x < 0.12:
			w.Header().Set("Content-Length", "100000")
			w.Write([]byte("cut"))
		case x < 0.14:
			w.Header().Set("Retry-After", "1")
			http.Error(w, "slow down", http.StatusTooManyRequests)
		default:
			return false
		}
		return true
	}
	body := func(e int) string {
		var out strings.Builder
		for range 1 + r.IntN(3) {
			fmt.Fprintf(&out, "<http://ex.org/e%d> <http://ex.org/p%d> \"%d\" .\n", e, r.IntN(3), r.IntN(4))
		}
		for range r.IntN(3) { // triples that other resources have too
			if b.cfg.Graph == "per-entity" {
				break // it could be taken for the entity
			}
			fmt.Fprintf(&out, "<http://ex.org/shared%d> <http://ex.org/p> \"%d\" .\n", r.IntN(3), r.IntN(2))
		}
		return out.String()
	}
	step := func() {
		e := r.IntN(14)
		switch x := r.Float64(); {
		case x < 0.25:
			s.remove(fmt.Sprintf("e%d.nt", e))
		case x < 0.35 && kind != "ours":
			s.put(fmt.Sprintf("b%d.ttl", e%3), fmt.Sprintf(`<http://ex.org/b%d> <http://ex.org/p> [ <http://ex.org/q> "%d", [ <http://ex.org/r> "%d" ] ], [ <http://ex.org/q> "same" ], [ <http://ex.org/q> "same" ] .`, e%3, r.IntN(3), r.IntN(3)))
		default:
			s.put(fmt.Sprintf("e%d.nt", e), body(e))
		}
	}
	for range 10 {
		step()
	}
	var pairs []kv.Pair
	for range 12 {
		switch r.IntN(8) { // the state is restored from a backup
		case 0, 1:
			if b.open().mem.Meta.Stage != ledger.None { // else what is there is somebody else's to it
				pairs = b.backup()
			}
		case 2:
			if pairs != nil {
				b.restore(pairs)
			}
		}
		for range r.IntN(6) {
			step()
		}
		switch r.IntN(4) {
		case 0:
			for k := range s.bodies {
				s.mu.Lock()
				s.lie[k] = true
				s.mu.Unlock()
				break
			}
		case 1:
			s.mu.Lock()
			clear(s.lie)
			s.mu.Unlock()
		case 2:
			if kind != "list-only" && kind != "dump" && len(s.log) > 3 && r.IntN(3) == 0 && s.changeParts == 0 {
				s.mu.Lock()
				s.drop = len(s.log) - r.IntN(3)
				s.mu.Unlock()
			}
		}
		faulty.Store(r.IntN(2) == 0)
		d := b.open()
		if r.IntN(2) == 0 {
			point := cutAfter(r.IntN(6))
			d.mem.Crash = point
			if r.IntN(2) == 0 {
				d.mem.Crash, storeMirror(d).Fault = nil, point
			}
		}
		if r.IntN(5) == 0 {
			d.Audit(context.Background(), AuditOptions{Repair: r.IntN(2) == 0})
		} else {
			d.Sync(context.Background(), SyncOptions{Full: r.IntN(8) == 0})
		}
		faulty.Store(false)
		b.clock = b.clock.Add(time.Duration(r.IntN(100)) * time.Second)
	}
	s.mu.Lock()
	clear(s.lie)
	s.drop = 0
	s.mu.Unlock()
	var rep SyncReport
	for range 3 {
		b.clock = b.clock.Add(2 * time.Hour)
		if rep = b.sync(); rep.InSync {
			break
		}
	}
	if !rep.InSync {
		t.Fatalf("never in sync: %+v", rep)
	}
	if b.cfg.Graph == "per-entity" {
		b.equalGraphs()
		return
	}
	b.equal()
}
