package destination

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/destination/keep"
)

func (b *bench) inventoryAudit(repair bool) keep.AuditReport {
	b.t.Helper()
	clear(b.src.requests)
	rep, err := b.open().Audit(context.Background(), AuditOptions{Depth: "inventory", Repair: repair})
	if err != nil {
		b.t.Fatal(err)
	}
	return rep
}

// An equal mirror is proven by one small document; what differs is found by going
// down, and agrees with what the lists say.
func TestAuditByInventory(t *testing.T) {
	b := newBench(t)
	s := b.src
	s.ours, s.inventory = true, true
	for _, n := range []int{0, 1, 64, 65, 400} {
		for i := len(s.bodies); i < n; i++ {
			s.put(fmt.Sprintf("e%d.nt", i), nt(fmt.Sprintf("e%d", i), "a"))
		}
		b.sync()
		rep := b.inventoryAudit(false)
		if !rep.Equal || rep.Resources != int64(n) || rep.Inventory == "" || b.src.requests["/set/resourcelist.xml"] != 0 {
			t.Fatalf("%d: %+v", n, rep)
		}
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	steps := 20
	if testing.Short() {
		steps = 4 // of which two are repaired
	}
	for step := range steps {
		var want []string
		touched := map[string]bool{}
		for range 1 + rnd.IntN(1+step) {
			k := fmt.Sprintf("e%d.nt", rnd.IntN(450))
			if touched[k] {
				continue
			}
			touched[k] = true
			name := "http://ex.org/" + strings.TrimSuffix(k, ".nt")
			_, there := s.bodies[k]
			switch {
			case there && rnd.IntN(3) == 0:
				s.remove(k)
				want = append(want, "extra "+name)
			case there:
				s.put(k, nt(k, fmt.Sprint(step)))
				want = append(want, "different "+name)
			default:
				s.put(k, nt(k, fmt.Sprint(step)))
				want = append(want, "missing "+name)
			}
		}
		rep := b.inventoryAudit(false)
		var got []string
		for _, d := range rep.Named {
			got = append(got, d.Kind+" "+d.Entity)
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) || rep.Equal || b.src.requests["/set/resourcelist.xml"] != 0 {
			t.Fatalf("step %d: %v, want %v (%+v)", step, got, want, rep)
		}
		if step%3 == 0 {
			if rep := b.inventoryAudit(true); !rep.Equal || rep.Repaired != int64(len(want)) {
				t.Fatalf("%+v", rep)
			}
		}
		// The default depth asks for the list only where something differs.
		clear(s.requests)
		if rep, err := b.open().Audit(context.Background(), AuditOptions{}); err != nil || rep.Equal != (s.requests["/set/resourcelist.xml"] == 0) || rep.Equal != (rep.Inventory != "") {
			t.Fatalf("%+v %v %v", rep, err, s.requests)
		}
		b.sync()
		clear(s.requests)
		b.equal()
		if s.requests["/set/resourcelist.xml"] != 0 {
			t.Fatalf("an audit of an equal mirror reads the list: %v", s.requests)
		}
		if rep := b.inventoryAudit(false); !rep.Equal || rep.Inventory == "" || rep.Bytes == 0 || rep.Bytes > 20_000 {
			t.Fatalf("%+v", rep)
		}
	}
}

// Where a source has no list, its inventory is what names what differs, at every depth. Nothing is proven
// when it differs and cannot be read.
func TestAuditByInventoryWithoutList(t *testing.T) {
	b := newBench(t)
	s := b.src
	s.ours, s.inventory, s.list = true, true, false
	s.put("old.nt", nt("old", "a"))
	s.drop = 1 // its Change List does not reach back to it
	s.put("e.nt", nt("e", "a"))
	b.sync()
	for _, depth := range []string{"inventory", "store", "origin"} {
		rep, err := b.open().Audit(context.Background(), AuditOptions{Depth: depth})
		if err != nil || rep.Equal || rep.Missing != 1 || rep.Different+rep.Extra != 0 || rep.Named[0].Entity != "http://ex.org/old" {
			t.Errorf("%s: %+v %v", depth, rep, err)
		}
	}
	for _, status := range []int{http.StatusNotFound, http.StatusInternalServerError} {
		answerAt(s, "/set/inventory/node.json", func(w http.ResponseWriter, r *http.Request) { http.Error(w, "no", status) })
		b.notProven("cannot be read")
	}
}

// An inventory that cannot be used is passed over, and the list is compared.
func TestAuditByBadInventory(t *testing.T) {
	for name, set := range map[string]func(b *bench, s *testSource){
		"gone": func(b *bench, s *testSource) { answerAt(s, "/set/inventory.json", http.NotFound) },
		"failing": func(b *bench, s *testSource) {
			answerAt(s, "/set/inventory.json", func(w http.ResponseWriter, r *http.Request) { http.Error(w, "no", http.StatusInternalServerError) })
		},
		"cut": func(b *bench, s *testSource) {
			answerAt(s, "/set/inventory.json", func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Length", "1000")
				io.WriteString(w, `{"digest":"`)
			})
		},
		"forbidden": func(b *bench, s *testSource) {
			answerAt(s, "/set/inventory.json", func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, "http://10.0.0.1/", http.StatusFound)
			})
		},
		"nonsense":  func(b *bench, s *testSource) { xmlAt(s, "/set/inventory.json", "<x/>") },
		"no digest": func(b *bench, s *testSource) { xmlAt(s, "/set/inventory.json", `{"digest":"md5:1"}`) },
		"elsewhere": func(b *bench, s *testSource) {
			xmlAt(s, "/set/inventory.json", `{"digest":"sha-256:`+strings.Repeat("0", 64)+`","root":"http://10.0.0.1/"}`)
		},
		"itself": func(b *bench, s *testSource) {
			xmlAt(s, "/set/inventory.json", `{"digest":"sha-256:`+strings.Repeat("0", 64)+`","root":"`+s.url("/set/inventory.json")+`","children":[{"path":"0","digest":"sha-256:`+strings.Repeat("1", 64)+`","address":"`+s.url("/set/inventory.json")+`"}]}`)
		},
		"lies": func(b *bench, s *testSource) {
			xmlAt(s, "/set/inventory.json", `{"digest":"sha-256:`+strings.Repeat("0", 64)+`","root":"`+s.url("/set/inventory/node.json")+`"}`)
		},
		"no promise": func(b *bench, s *testSource) {
			s.ours = false
			xmlAt(s, "/set/inventory.json", `{"digest":"sha-256:`+strings.Repeat("0", 64)+`"}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.src.ours, b.src.inventory = true, true
			fill(b.src, 5)
			set(b, b.src)
			b.sync()
			if rep := b.inventoryAudit(false); !rep.Equal || rep.Inventory != "" || b.src.requests["/set/resourcelist.xml"] != 1 {
				t.Fatalf("%+v %v", rep, b.src.requests)
			}
			b.src.put("e1.nt", nt("e1", "changed"))
			if rep := b.sync(); !rep.InSync || rep.Updated != 1 {
				t.Errorf("%+v", rep)
			}
			b.same(b.mir.lines(graphA), b.src.want())
		})
	}
}

// A node without the digest of its promise is not believed, and the list is compared.
func TestForgedInventory(t *testing.T) {
	for at, of := range map[string]string{"/set/inventory/node.json": "children", "/set/inventory/node0.json": "leaf"} {
		b := newBench(t)
		s := b.src
		s.ours, s.inventory = true, true
		fill(s, 100)
		b.sync()
		for k := range s.bodies {
			s.put(k, nt(k, "changed"))
		}
		forged := false
		s.hook = func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path != at {
				return false
			}
			hook := s.hook
			s.hook = nil
			rec := httptest.NewRecorder()
			q := r.Clone(r.Context())
			q.Header = http.Header{}
			s.ServeHTTP(rec, q)
			s.hook = hook
			var doc map[string]any
			if err := json.Unmarshal(rec.Body.Bytes(), &doc); err != nil {
				t.Error(err)
			}
			some := doc[of].([]any)
			doc[of], forged = some[1:], true
			json.NewEncoder(w).Encode(doc)
			return true
		}
		if rep := b.inventoryAudit(false); !forged || rep.Equal || rep.Different != 100 || rep.Extra+rep.Missing != 0 || rep.Inventory != "" || b.src.requests["/set/resourcelist.xml"] != 1 {
			t.Errorf("%s: forged %t: %+v", at, forged, rep)
		}
	}
}

// What an audit misses of what a sync could not have is named with the reason.
func TestAuditTellsWhatFailed(t *testing.T) {
	for _, depth := range []string{"inventory", "store"} {
		for _, inventory := range []bool{true, false} {
			b := newBench(t)
			s := b.src
			s.ours, s.inventory = true, inventory
			for i := range 4 {
				s.put(fmt.Sprintf("e%d.nt", i), nt(fmt.Sprintf("e%d", i), "a"))
			}
			s.lie["e1.nt"] = true
			b.sync()
			s.lie["e2.nt"] = true
			s.put("e2.nt", nt("e2", "b"))
			b.sync()
			rep, err := b.open().Audit(context.Background(), AuditOptions{Depth: depth})
			if err != nil || rep.Missing != 1 || rep.Different != 1 || len(rep.Named) != 2 {
				t.Fatalf("%s, inventory %v: %+v %v", depth, inventory, rep, err)
			}
			for _, d := range rep.Named {
				if !strings.Contains(d.Detail, "does not keep its promise") {
					t.Errorf("%s, inventory %v: %+v", depth, inventory, d)
				}
			}
		}
	}
}

// An inventory of before the changes that are published beside it does not hide them.
func TestInventoryBehindTheChanges(t *testing.T) {
	b := newBench(t)
	s := b.src
	s.ours, s.inventory = true, true
	fill(s, 6)
	b.sync()
	var before []byte
	s.hook = func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.Contains(r.URL.Path, "inventory") {
			return false
		}
		if before == nil {
			s.hook = nil
			rec := httptest.NewRecorder()
			q := r.Clone(r.Context())
			q.Header = http.Header{}
			s.ServeHTTP(rec, q)
			before = rec.Body.Bytes()
		}
		w.Write(before)
		return true
	}
	hook := s.hook
	for n, equal := range []bool{true, false} {
		if n > 0 {
			s.put("e1.nt", nt("e1", "later"))
		}
		rep := b.inventoryAudit(false)
		if rep.Equal != equal || rep.Inventory == "" || rep.Different != int64(n) || b.src.requests["/set/resourcelist.xml"] != 0 {
			t.Fatalf("%+v", rep)
		}
		s.hook = hook
	}
	b.sync()
	s.hook = nil
	b.equal()
}
