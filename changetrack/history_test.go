package changetrack

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/internal/kv/pebblekv"
	"github.com/rsbridge/rsbridge/internal/teststores"
	"github.com/rsbridge/rsbridge/rdfres"
)

// TestRandomHistory: thousands of steps, each compared with the model.
func TestRandomHistory(t *testing.T) {
	steps := 1000
	if testing.Short() {
		steps = 300
	}
	t.Run("memory", func(t *testing.T) {
		s := teststores.Records(t)
		randomHistory(t, 1, steps, func() kv.Store { return kv.Prefix(s, []byte("ct/")) })
	})
	t.Run("pebble", func(t *testing.T) {
		dir := t.TempDir()
		var s kv.Store
		randomHistory(t, 2, steps/10, func() kv.Store {
			if s != nil {
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
			}
			var err error
			if s, err = pebblekv.Open(t.Context(), dir, pebblekv.Options{}); err != nil {
				t.Fatal(err)
			}
			return s
		})
		s.Close()
	})
}

func randomHistory(t *testing.T, seed uint64, steps int, reopen func() kv.Store) {
	r := rand.New(rand.NewPCG(seed, 7))
	clk := newClock()
	opts := testOptions(t.TempDir(), clk)
	opts.stageBytes, opts.batchBytes = 600, 400 // so that small scans take the long way too
	m := newModel()
	src := source{}
	tr, l := mustOpen(t, reopen(), opts)
	o := ScanOptions{Finder: "scan", Format: rdfres.JSONLD, MaxDeleteRatio: 0.2, Fingerprint: "one"}
	type moment struct {
		v *View
		m *model
	}
	var old []moment
	now := 0
	defer func() {
		if t.Failed() {
			t.Logf("seed %d, step %d", seed, now)
		}
	}()
	seen := map[string]int{}
	for step := range steps {
		now = step
		clk.t = clk.t.Add(time.Duration(r.IntN(2000)-200) * time.Millisecond) // back now and then
		mutate(r, src)
		so := o
		failed := map[string]bool{}
		var names []string
		seq := src.all()
		so.Confirm = src.confirm
		switch r.IntN(12) {
		case 0: // a hint
			names = []string{}
			for e := range src {
				if r.IntN(4) == 0 {
					names = append(names, e)
				}
			}
			for e := range m.current {
				if r.IntN(6) == 0 && !slices.Contains(names, e) {
					names = append(names, e)
				}
			}
			slices.Sort(names)
			so.Partial, so.Finder = true, "hint"
			seq = src.some(names)
		case 1: // descriptions that were not had
			partial := src.clone()
			for e := range m.current {
				if r.IntN(8) == 0 {
					failed[e] = true
					delete(partial, e)
				}
			}
			seq = partial.all()
			so.Failed = func(e string) bool { return failed[e] }
		case 2: // missing at first, confirmed to be there
			partial := src.clone()
			for e := range partial {
				if m.current[e] != nil && r.IntN(8) == 0 {
					delete(partial, e)
				}
			}
			// What was only found by asking again comes after the rest: the model
			// does not know that order, so let it be unchanged.
			for e := range src {
				if _, ok := partial[e]; !ok && (m.current[e].Graph != rdfres.GraphDigest(description(e, src[e]).Triples) || m.current[e].Wanted != so.Format) {
					partial[e] = src[e]
				}
			}
			seq = partial.all()
		case 3: // cut short
			boom := errors.New("connection reset")
			n := r.IntN(len(src) + 1)
			if n < len(src) {
				if _, err := l.Scan(t.Context(), failing(seq, n, boom), so); !errors.Is(err, boom) {
					t.Fatalf("Scan of a broken sequence = %v", err)
				}
				continue
			}
		case 4:
			if r.IntN(4) == 0 {
				o.Fingerprint = fmt.Sprint(r.IntN(3))
				o.Format = []rdfres.Format{rdfres.JSONLD, rdfres.NTriples, rdfres.Turtle}[r.IntN(3)]
				so.Fingerprint, so.Format = o.Fingerprint, o.Format
			}
		}
		if m.held != nil && r.IntN(3) == 0 {
			so.Accept = m.heldID
		}
		if r.IntN(60) == 0 {
			so.Accept = "nothing"
		}
		wasHeld := m.heldID
		want, wantErr := m.scan(src, names, so, failed, clk.now())
		got, err := l.Scan(t.Context(), seq, so)
		if !errors.Is(err, wantErr) || (err == nil) != (wantErr == nil) {
			t.Fatalf("Scan = %v, want %v", err, wantErr)
		}
		if err == nil {
			compareResults(t, got, want)
			seen["created"] += int(got.Created)
			seen["updated"] += int(got.Updated)
			seen["deleted"] += int(got.Deleted)
			seen["fallback"] += int(got.Fallback)
			seen["failed"] += int(got.Failed)
			if got.Held != nil {
				seen["held"]++
				if got.Held.Configuration {
					seen["configuration held"]++
				}
			} else if so.Accept != "" {
				seen["accepted"]++
			}
			if got.Held != nil {
				m.heldID = got.Held.ID
			}
		} else if m.held != nil {
			m.heldID = wasHeld
		}
		if r.IntN(10) == 0 {
			back := func() time.Time { return clk.t.Add(-time.Duration(r.IntN(60)) * time.Second) }
			c, v := back(), back()
			if _, err := l.Retain(t.Context(), c, v); err != nil {
				t.Fatal(err)
			}
			m.retain(c, v)
			seen["retained"]++
		}
		if r.IntN(20) == 0 {
			note := fmt.Sprintf("addresses %d", step)
			m.rebase(note, clk.now())
			if _, err := l.Rebase(t.Context(), note); err != nil {
				t.Fatal(err)
			}
			seen["rebased"]++
		}
		if r.IntN(8) == 0 {
			v := l.View(t.Context())
			m.compare(t, v)
			v.Close()
			mustCheck(t, l)
		}
		if r.IntN(40) == 0 {
			old = append(old, moment{l.View(t.Context()), m.clone()})
		}
		if len(old) > 3 || len(old) > 0 && r.IntN(30) == 0 {
			old[0].m.compare(t, old[0].v)
			old[0].v.Close()
			old = old[1:]
		}
		if r.IntN(30) == 0 {
			for _, x := range old {
				x.v.Close()
			}
			old = nil
			if err := tr.Close(); err != nil {
				t.Fatal(err)
			}
			tr, l = mustOpen(t, reopen(), opts)
		}
	}
	t.Logf("%d steps: %v, tail %d, forgotten versions %d", steps, seen, m.tail, len(m.gone))
	v := l.View(t.Context())
	m.compare(t, v)
	v.Close()
	for _, x := range old {
		x.v.Close()
	}
	mustCheck(t, l)
	tr.Close()
}

func (m *model) clone() *model {
	c := *m
	c.changes = slices.Clone(m.changes)
	c.blobs, c.current = maps.Clone(m.blobs), maps.Clone(m.current)
	c.count, c.first, c.gone = maps.Clone(m.count), maps.Clone(m.first), maps.Clone(m.gone)
	return &c
}

func compareResults(t *testing.T, got, want ScanResult) {
	t.Helper()
	if (got.Held == nil) != (want.Held == nil) {
		t.Fatalf("Scan: held %+v, want %+v", got.Held, want.Held)
	}
	if got.Held != nil && (got.Held.Deletions != want.Held.Deletions || got.Held.Configuration != want.Held.Configuration) {
		t.Fatalf("Scan: held %+v, want %+v", got.Held, want.Held)
	}
	got.Held, want.Held, got.Failures = nil, nil, nil
	if a, b := fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want); a != b {
		t.Fatalf("Scan =\n%s, want\n%s", a, b)
	}
}
