package destination

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
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
			for i := range 60 {
				text := fmt.Sprintf("<http://ex.org/e%d> <http://ex.org/v> \"%d\", \"%[2]dx\" . <http://ex.org/shared%d> <http://ex.org/v> \"both\" .", i, i, i/2)
				if i%3 == 0 {
					text += fmt.Sprintf(" <http://ex.org/e%d> <http://ex.org/has> [ <http://ex.org/in> \"%d\" ] .", i, i)
				}
				s.put(fmt.Sprintf("e%02d.ttl", i), text)
			}
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
			d.crash = func(string) error {
				if left--; left == 0 {
					return errInjected
				}
				return nil
			}
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
			s.remove("e10.ttl") // its shared triple stays
			s.remove("e20.ttl")
			s.remove("e21.ttl") // theirs goes
			s.put("e30.ttl", `<http://ex.org/e30> <http://ex.org/has> [ <http://ex.org/in> "other" ] .`)
			if rep := b.sync(); !rep.InSync || rep.Deleted != 3 || rep.Updated != 1 {
				t.Fatalf("%+v", rep)
			}
			b.equal()
			if rep, err := b.open().Audit(context.Background(), AuditOptions{}); err != nil || !rep.Equal {
				t.Fatalf("%+v %v", rep, err)
			}
		})
	}
}

// Beside what takes triples away a new resource is worked out like any other, so that
// nothing of it is taken.
func TestSmallOpsBesideOthers(t *testing.T) {
	b := newBench(t)
	b.few = 1
	d := b.open()
	o := &op{rec: &record{Loc: "http://ex.org/a", Entity: "http://ex.org/a", Triples: 1}, wire: []byte("<http://ex.org/a> <http://ex.org/p> \"v\" .\n"), fresh: true}
	ts, err := parseWire(o.wire)
	if err != nil {
		t.Fatal(err)
	}
	if o.sts, err = d.mirror.lay.statements(o.rec.Entity, ts); err != nil {
		t.Fatal(err)
	}
	o.packed = pack(o.wire)
	wire := string(o.wire)
	o.compact(d.mirror)
	if n, err := d.smallOps([]*op{o, {fault: &fault{}}, {settle: true}}); n != 1 || err != nil || o.wire != nil {
		t.Fatalf("%d %v: %+v", n, err, o)
	}
	if n, err := d.smallOps([]*op{o, {}}); n != 0 || err != nil || string(o.wire) != wire || o.small != nil {
		t.Fatalf("%d %v: %+v", n, err, o)
	}
}
