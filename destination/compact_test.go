package destination

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/destination/feed"
	"github.com/rsbridge/rsbridge/destination/fetch"
	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/rdfres"
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

// Beside what takes triples away a new resource is worked out like any other, so that
// nothing of it is taken.
func TestSmallOpsBesideOthers(t *testing.T) {
	b := newBench(t)
	b.few = 1
	d := b.open()
	o := &op{rec: &ledger.Record{Loc: "http://ex.org/a", Entity: "http://ex.org/a", Triples: 1}, wire: []byte("<http://ex.org/a> <http://ex.org/p> \"v\" .\n"), fresh: true}
	ts, err := ledger.ParseWire(o.wire)
	if err != nil {
		t.Fatal(err)
	}
	if o.sts, err = d.mirror.Layout.Statements(o.rec.Entity, ts); err != nil {
		t.Fatal(err)
	}
	o.packed = ledger.Pack(o.wire)
	wire := string(o.wire)
	o.compact(d.mirror)
	if n, err := d.applier.planner.smallOps([]*op{o, {fault: &ledger.Fault{}}, {settle: true}}); n != 1 || err != nil || o.wire != nil {
		t.Fatalf("%d %v: %+v", n, err, o)
	}
	if n, err := d.applier.planner.smallOps([]*op{o, {}}); n != 0 || err != nil || string(o.wire) != wire || o.small != nil {
		t.Fatalf("%d %v: %+v", n, err, o)
	}
}

// An item is kept apart from its record unless it can be made again of it as it was,
// whatever it has.
func TestItemRest(t *testing.T) {
	digest := rdfres.Digest{1}
	fields := map[string]func(*feed.Item){
		"Loc":      func(it *feed.Item) { it.Loc = "http://ex.org/a" },
		"Entity":   func(it *feed.Item) { it.Entity = "http://ex.org/e" },
		"Change":   func(it *feed.Item) { it.Change = "updated" },
		"LastMod":  func(it *feed.Item) { it.LastMod = time.Unix(1, 0) },
		"Time":     func(it *feed.Item) { it.Time = time.Unix(1, 0) },
		"Sequence": func(it *feed.Item) { it.Sequence = 1 },
		"Version":  func(it *feed.Item) { it.Version = &feed.Place{} },
		"Others":   func(it *feed.Item) { it.Others = []feed.Place{{URL: "http://ex.org/b"}} },
		"Path":     func(it *feed.Item) { it.Path = "/a.nt" },
		"Package":  func(it *feed.Item) { it.Package = "http://ex.org/a.zip" },
		"Via":      func(it *feed.Item) { it.Via = "http://ex.org/v" },
		"Patches":  func(it *feed.Item) { it.Patches = make([]feed.PatchOffer, 1) },
		"TimeGate": func(it *feed.Item) { it.TimeGate = "http://ex.org/t" },
		"AsOf":     func(it *feed.Item) { it.AsOf = time.Unix(1, 0) },
		"Bad":      func(it *feed.Item) { it.Bad = "bad" },
		"Blind":    func(it *feed.Item) { it.Blind = true },
		"Opened":   func(it *feed.Item) { it.Opened = &feed.Download{} },
		"Found":    func(it *feed.Item) { it.Found = make([]feed.Place, 1) },
		"Tried":    func(it *feed.Item) { it.Tried = true },
		"ETag":     func(it *feed.Item) { it.ETag = "x" },
		"File":     func(it *feed.Item) { it.File = true },
		"Hashes":   func(it *feed.Item) { it.Promise.Hashes.SHA256 = "00" },
		"Other":    func(it *feed.Item) { it.Promise.Hashes.Other = []string{"x:00"} },
		"Length":   func(it *feed.Item) { it.Promise.Length = 12 },
		"Type":     func(it *feed.Item) { it.Promise.Type = "text/turtle" },
		"Encoding": func(it *feed.Item) { it.Promise.Encoding = "gzip" },
		"Graph":    func(it *feed.Item) { it.Promise.Graph = digest },
	}
	for of := range reflect.TypeFor[feed.Item]().Fields() {
		if fields[of.Name] == nil && of.Name != "Promise" {
			t.Errorf("%s is not tried", of.Name)
		}
	}
	small := map[string]bool{"Loc": true, "Entity": true, "LastMod": true, "Path": true, "Package": true, "Via": true, "Hashes": true, "Length": true, "Type": true, "Encoding": true, "Graph": true}
	for name, set := range fields {
		it := &feed.Item{Promise: fetch.Promise{Length: -1}}
		set(it)
		rec := it.Record()
		rec.Graph = digest
		rest, ok := restOf(it, rec)
		if ok != small[name] || ok && !reflect.DeepEqual(rest.item(rec), it) {
			t.Errorf("%s: %v, %+v", name, ok, rest.item(rec))
		}
		for what, change := range map[string]func(*ledger.Record){
			"entity": func(r *ledger.Record) { r.Entity += "x" }, "hashes": func(r *ledger.Record) { r.Hashes.MD5 = "00" }, "length": func(r *ledger.Record) { r.Length++ }, "lastmod": func(r *ledger.Record) { r.LastMod = time.Unix(2, 0) },
		} {
			r := *rec
			if change(&r); ok {
				if _, ok := restOf(it, &r); ok {
					t.Errorf("%s: the record has another %s", name, what)
				}
			}
		}
	}
}
