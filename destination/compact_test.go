package destination

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/rsbridge/rsbridge/destination/ledger"
)

// A first baseline by Graph Store POST: with blank nodes, triples that two resources
// share, and one that the mirror refuses; cut off anywhere it is finished by the next
// run, and what it recorded is right: the next changes take no more away than is theirs.
func TestFirstBaselineByPost(t *testing.T) {
	for _, c := range []struct {
		name   string
		after  int // steps until the run ends
		refuse bool
	}{{name: "whole", after: -1}, {name: "intent", after: 1}, {name: "written", after: 2}, {name: "recorded", after: 4}, {name: "second batch", after: 5}, {name: "refused", after: -1, refuse: true}} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			s := b.src
			b.few = 20
			b.cfg.Concurrency, b.cfg.MemoryBytes = 1, 12<<10 // some ten resources a batch
			putShared(s)
			posts, refused := 0, 0
			b.mir.hook = func(w http.ResponseWriter, r *http.Request) bool {
				if r.Method != http.MethodPost || r.URL.Path != "/data" && r.URL.Path != "/update" {
					return false
				}
				body, err := io.ReadAll(r.Body)
				if err != nil || r.URL.Path == "/data" && int64(len(body)) != r.ContentLength {
					t.Errorf("%d bytes of %d: %v", len(body), r.ContentLength, err)
				}
				r.Body = io.NopCloser(strings.NewReader(string(body)))
				if r.URL.Path == "/data" {
					posts++
				}
				if c.refuse && strings.Contains(string(body), "<http://ex.org/e31>") && !strings.Contains(string(body), "DELETE DATA") {
					refused++
					http.Error(w, "no", http.StatusBadRequest)
					return true
				}
				return false
			}
			d := b.open()
			left := c.after
			d.mem.Crash = oneByOne(func(string) error {
				if left--; left == 0 {
					return errInjected
				}
				return nil
			})
			rep, err := d.Sync(context.Background(), SyncOptions{})
			switch {
			case c.after > 0 && !errors.Is(err, errInjected), c.after < 0 && err != nil:
				t.Fatal(err)
			case c.refuse && (rep.Failed != 1 || rep.Created != 59 || refused == 0):
				t.Fatalf("%+v, refused %d times", rep, refused)
			}
			c.refuse = false
			b.clock = b.clock.AddDate(0, 0, 1)
			if rep = b.sync(); !rep.InSync {
				t.Fatalf("%+v", rep)
			}
			if posts < 4 {
				t.Errorf("%d uploads", posts)
			}
			b.equal()
			changeShared(b)
		})
	}
}

// oneByOne is for a function that two batches call.
func oneByOne(f func(string) error) func(string) error {
	var mu sync.Mutex
	return func(point string) error {
		mu.Lock()
		defer mu.Unlock()
		return f(point)
	}
}

// putShared makes resources some of which share a triple.
func putShared(s *testSource) {
	for i := range 60 {
		text := fmt.Sprintf("<http://ex.org/e%d> <http://ex.org/v> \"%d\", \"%[2]dx\" . <http://ex.org/shared%d> <http://ex.org/v> \"both\" .", i, i, i/2)
		if i%3 == 0 {
			text += fmt.Sprintf(" <http://ex.org/e%d> <http://ex.org/has> [ <http://ex.org/in> \"%d\" ] .", i, i)
		}
		s.put(fmt.Sprintf("e%02d.ttl", i), text)
	}
}

// changeShared proves that what was recorded of them is right.
func changeShared(b *bench) {
	b.t.Helper()
	b.equal()
	s := b.src
	s.remove("e10.ttl") // its shared triple stays
	s.remove("e20.ttl")
	s.remove("e21.ttl") // theirs goes
	s.put("e30.ttl", `<http://ex.org/e30> <http://ex.org/has> [ <http://ex.org/in> "other" ] .`)
	if rep := b.sync(); !rep.InSync || rep.Deleted != 3 || rep.Updated != 1 {
		b.t.Fatalf("%+v", rep)
	}
	b.equal()
	if rep, err := b.open().Audit(context.Background(), AuditOptions{}); err != nil || !rep.Equal {
		b.t.Fatalf("%+v %v", rep, err)
	}
}

// While a batch of a first baseline is being recorded the next one is sent. Cut off
// then both are finished by the next run, whichever of them was recorded.
func TestTwoBatchesUnderWay(t *testing.T) {
	for _, c := range []struct {
		name    string
		at      string // of the second batch, which goes on when it is there
		first   bool   // the first one ends there
		intents int    // that are left
	}{
		{"neither recorded", "written", true, 2},
		{"nor sent", "intent", true, 2},
		{"first recorded", "written", false, 1},
		{"none", "", false, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			b.few = 20
			b.cfg.Concurrency, b.cfg.MemoryBytes = 1, 12<<10
			putShared(b.src)
			d := b.open()
			var mu sync.Mutex
			batch, second := 0, make(chan struct{})
			d.mem.Crash = func(point string) error {
				mu.Lock()
				if point == "intent" {
					batch++
				}
				n := batch
				if point == "sent" && n == 1 { // it is recorded when the second one is so far
					mu.Unlock()
					<-second
					if c.first {
						return errInjected
					}
					return nil
				}
				defer mu.Unlock()
				if n == 2 && (point == c.at || c.at == "" && point == "written") {
					close(second)
					if c.at != "" {
						return errInjected
					}
				}
				return nil
			}
			if _, err := d.Sync(context.Background(), SyncOptions{}); (c.at != "") != errors.Is(err, errInjected) {
				t.Fatal(err)
			}
			left := 0
			for slot := range byte(ledger.Slots) {
				if _, err := d.mem.Ledger.Intent(t.Context(), slot); err == nil {
					left++
				}
			}
			if left != c.intents {
				t.Errorf("%d intents are left, not %d", left, c.intents)
			}
			b.clock = b.clock.AddDate(0, 0, 1)
			if rep := b.sync(); !rep.InSync {
				t.Fatalf("%+v", rep)
			}
			changeShared(b)
		})
	}
}
