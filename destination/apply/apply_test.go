package apply

import (
	"log/slog"
	"reflect"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/destination/fetch"
	"github.com/rsbridge/rsbridge/destination/item"
	"github.com/rsbridge/rsbridge/destination/keep"
	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/destination/sink"
	"github.com/rsbridge/rsbridge/internal/teststores"
	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// bulky is a store that takes any triples, at a pace.
type bulky struct{ sink.Loader }

func (bulky) BulkTriples() int               { return 50_000 }
func (bulky) Postable([]sink.Statement) bool { return true }

type paced struct {
	sink.Packer
	pace int
}

func (p paced) Pace() int { return p.pace }

// Beside what takes triples away a new resource is worked out like any other, so that
// nothing of it is taken.
func TestSmallOpsBesideOthers(t *testing.T) {
	mirror := sink.NewFull(&sink.Place{}, nil)
	mirror.Loader = bulky{mirror.Loader}
	pl := &planner{lim: &Limits{Few: 1}}
	o := &Op{Record: &ledger.Record{Loc: "http://ex.org/a", Entity: "http://ex.org/a", Triples: 1}, wire: []byte("<http://ex.org/a> <http://ex.org/p> \"v\" .\n"), fresh: true}
	ts, err := ledger.ParseWire(o.wire)
	if err != nil {
		t.Fatal(err)
	}
	if o.sts, err = mirror.Layout.Statements(o.Record.Entity, ts); err != nil {
		t.Fatal(err)
	}
	o.packed = ledger.Pack(o.wire)
	wire := string(o.wire)
	o.compact(mirror)
	if n, err := pl.smallOps([]*Op{o, {fault: &ledger.Fault{}}, {Settle: true}}); n != 1 || err != nil || o.wire != nil {
		t.Fatalf("%d %v: %+v", n, err, o)
	}
	if n, err := pl.smallOps([]*Op{o, {}}); n != 0 || err != nil || string(o.wire) != wire || o.small != nil {
		t.Fatalf("%d %v: %+v", n, err, o)
	}
}

// An item is kept apart from its record unless it can be made again of it as it was,
// whatever it has.
func TestItemRest(t *testing.T) {
	digest := rdfres.Digest{1}
	fields := map[string]func(*item.Item){
		"Loc":      func(it *item.Item) { it.Loc = "http://ex.org/a" },
		"Entity":   func(it *item.Item) { it.Entity = "http://ex.org/e" },
		"Change":   func(it *item.Item) { it.Change = "updated" },
		"LastMod":  func(it *item.Item) { it.LastMod = time.Unix(1, 0) },
		"Time":     func(it *item.Item) { it.Time = time.Unix(1, 0) },
		"Sequence": func(it *item.Item) { it.Sequence = 1 },
		"Version":  func(it *item.Item) { it.Version = &item.Place{} },
		"Others":   func(it *item.Item) { it.Others = []item.Place{{URL: "http://ex.org/b"}} },
		"Path":     func(it *item.Item) { it.Path = "/a.nt" },
		"Package":  func(it *item.Item) { it.Package = "http://ex.org/a.zip" },
		"Via":      func(it *item.Item) { it.Via = "http://ex.org/v" },
		"Patches":  func(it *item.Item) { it.Patches = make([]item.Patch, 1) },
		"TimeGate": func(it *item.Item) { it.TimeGate = "http://ex.org/t" },
		"AsOf":     func(it *item.Item) { it.AsOf = time.Unix(1, 0) },
		"Bad":      func(it *item.Item) { it.Bad = "bad" },
		"Blind":    func(it *item.Item) { it.Blind = true },
		"Opened":   func(it *item.Item) { it.Ask.Opened = &resourcesync.Package{} },
		"Found":    func(it *item.Item) { it.Found = make([]item.Place, 1) },
		"Tried":    func(it *item.Item) { it.Ask.Tried = true },
		"ETag":     func(it *item.Item) { it.Ask.ETag = "x" },
		"File":     func(it *item.Item) { it.File = true },
		"Hashes":   func(it *item.Item) { it.Promise.Hashes.SHA256 = "00" },
		"Other":    func(it *item.Item) { it.Promise.Hashes.Other = []string{"x:00"} },
		"Length":   func(it *item.Item) { it.Promise.Length = 12 },
		"Type":     func(it *item.Item) { it.Promise.Type = "text/turtle" },
		"Encoding": func(it *item.Item) { it.Promise.Encoding = "gzip" },
		"Graph":    func(it *item.Item) { it.Promise.Graph = digest },
	}
	for of := range reflect.TypeFor[item.Item]().Fields() {
		if fields[of.Name] == nil && of.Name != "Promise" && of.Name != "Ask" {
			t.Errorf("%s is not tried", of.Name)
		}
	}
	small := map[string]bool{"Loc": true, "Entity": true, "LastMod": true, "Path": true, "Package": true, "Via": true, "Hashes": true, "Length": true, "Type": true, "Encoding": true, "Graph": true}
	for name, set := range fields {
		it := &item.Item{Promise: fetch.Promise{Length: -1}}
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

// standing is that of a destination without records yet.
func standing(t *testing.T) *keep.Standing {
	t.Helper()
	store := teststores.Records(t)
	log := slog.New(slog.DiscardHandler)
	mem := &keep.Memory{Store: store, Ledger: ledger.New(store, log, 1, 1), Dest: 1, Space: 1, Log: log}
	return &keep.Standing{Memory: mem, Fates: &keep.Fates{Memory: mem}, Config: &keep.Config{}, Options: &keep.Options{Now: time.Now}, Mirror: sink.NewFull(&sink.Place{}, nil)}
}

// What was read ahead of a resource counts as long as its record is the same.
func TestFormer(t *testing.T) {
	stand := standing(t)
	pl := New(stand, nil, &Limits{}).planner
	rec := &ledger.Record{Loc: "http://ex.org/a", Entity: "http://ex.org/a", Triples: 1, Graph: rdfres.Digest{1}}
	loc := ledger.HashOf(rec.Loc)
	put := func() {
		b := stand.Store.Batch()
		defer b.Close()
		stand.Ledger.PutRecord(b, loc, rec)
		stand.Ledger.PutBody(b, loc, ledger.Pack([]byte("<http://ex.org/a> <http://ex.org/p> \"v\" .\n")))
		if err := b.Commit(t.Context(), false); err != nil {
			t.Fatal(err)
		}
	}
	put()
	was := pl.former(t.Context(), loc, rec, nil)
	if was == nil || len(was.sts) != int(rec.Triples) {
		t.Fatalf("read ahead: %+v", was)
	}
	was.sts = was.sts[:0] // shows whether it is used
	for _, later := range []bool{false, true} {
		if later {
			another := *rec
			another.Graph = rdfres.Digest{2}
			rec = &another
			put()
		}
		ch, err := pl.workOut(t.Context(), &Op{Loc: loc, was: was}, nil)
		if err != nil || (len(ch.oldSts) > 0) != later {
			t.Fatalf("later %t: %d statements, %v", later, len(ch.oldSts), err)
		}
	}
}

// The first batches of a store that is slow are no larger than it takes in time.
func TestBatchesOfASlowStore(t *testing.T) {
	for pace, most := range map[int]int{0: 50_000, 1000: 50_000, 90_000: 90_000, 200_000: 200_000} {
		stand := standing(t)
		stand.Mirror.Loader, stand.Mirror.Packer = bulky{stand.Mirror.Loader}, paced{stand.Mirror.Packer, pace}
		if n := New(stand, nil, &Limits{}).Batch(t.Context(), &Counts{}, true).most; n != most {
			t.Errorf("pace %d: %d", pace, n)
		}
	}
}
