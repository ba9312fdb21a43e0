package publish

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/internal/teststores"
	"github.com/rsbridge/rsbridge/publish/partition"
	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/resourcesync"
	"github.com/rsbridge/rsbridge/resourcesync/check"
)

// TestOpenListAddress: the address of the open list gives one list of the last changes at
// all times, as many as fit and never less than half of them, whatever was rotated.
func TestOpenListAddress(t *testing.T) {
	for seed := range uint64(teststores.Histories(2, 12)) {
		r := rand.New(rand.NewPCG(seed, 1))
		most := 8 + r.IntN(12)
		w := newWorld(t, SetConfig{Format: rdfres.JSONLD, RotateEntries: 1 + r.IntN(most), Rotate: time.Duration(r.IntN(2)*40) * time.Second})
		w.tune = func(s *set) { s.sizes.documentEntries = most }
		w.reopen()
		w.scan(map[string]int{"http://example.org/e/0": 0}, false, rdfres.JSONLD)
		w.publish()
		for i := range 30 {
			w.clock.add(time.Duration(1+r.IntN(20)) * time.Second)
			values := map[string]int{}
			for n := range 1 + r.IntN(4) {
				values[fmt.Sprintf("http://example.org/e/%d", n)] = i + 1
			}
			w.scan(values, true, rdfres.JSONLD)
			w.publish()
			if i%10 == 7 {
				w.reopen()
			}
			address := w.url("changelist-open.xml")
			h, got := w.read(address)
			_, all := w.all(w.url("changelist.xml"))
			if h.Index || len(got) > most || len(got) < min(len(all), most/2) {
				t.Fatalf("seed %d: %d entries of %d, at most %d, index %v", seed, len(got), len(all), most, h.Index)
			}
			before := len(all) - len(got)
			for n, e := range got {
				if want := all[before+n]; e.Loc != want.Loc || !e.Meta.DateTime.Equal(want.Meta.DateTime) {
					t.Fatalf("seed %d: entry %d is %s, want %s", seed, n, e.Loc, want.Loc)
				}
			}
			if before > 0 && !h.Meta.From.Equal(all[before-1].Meta.DateTime) || !h.Meta.Until.IsZero() {
				t.Fatalf("seed %d: from %v until %v", seed, h.Meta.From, h.Meta.Until)
			}
			if _, found, err := check.Validate(bytes.NewReader(w.get(address).Body.Bytes()), check.ValidateOptions{Location: address}); err != nil || len(found) > 0 {
				t.Fatalf("seed %d: %v %v", seed, found, err)
			}
		}
	}
}

// TestChangesFrom: the open Change List from each of its changes on is the rest of it, under its own
// beginning; that from a change of a closed list is not there.
func TestChangesFrom(t *testing.T) {
	w := newWorld(t, SetConfig{Format: rdfres.NTriples, RotateEntries: 7})
	for i := range 30 {
		w.clock.add(time.Second)
		w.scan(map[string]int{fmt.Sprintf("http://example.org/e/%d", i%5): i}, i > 0, rdfres.NTriples)
		w.publish()
		head, all := w.read(w.url("changelist.xml"))
		if h, caps := w.read(w.url("capabilitylist.xml")); h.Link(resourcesync.RelChangesFrom) != w.url("changelist-from-") {
			t.Fatalf("%v %v", h, caps)
		}
		closed := 0
		if head.Index {
			_, last := w.all(w.url("changelist.xml"))
			closed = len(last)
			head, all = w.read(all[len(all)-1].Loc)
			closed -= len(all)
		}
		first, numbers := uint64(0), map[int]uint64{}
		for n, e := range all {
			numbers[n], _ = strconv.ParseUint(e.Meta.Ext[resourcesync.ExtSequence], 10, 64)
			if n == 0 {
				first = numbers[n]
			}
		}
		for n := range all {
			address := w.url(fmt.Sprintf("changelist-from-%d.xml", numbers[n]))
			h, got := w.read(address)
			if !slices.EqualFunc(got, all[n:], func(a, b *resourcesync.Entry) bool { return a.Loc == b.Loc && reflect.DeepEqual(a.Meta, b.Meta) }) {
				t.Fatalf("from change %d: %v, want %v", numbers[n], got, all[n:])
			}
			if !reflect.DeepEqual(h.Meta, head.Meta) || !reflect.DeepEqual(h.Links, head.Links) {
				t.Fatalf("from change %d: %+v, want %+v", numbers[n], h, head)
			}
		}
		for _, n := range []string{fmt.Sprint(first - 1), "0", "x", "01", "1000", "-1", ""} {
			if res := w.get(w.url("changelist-from-" + n + ".xml")); first > 0 && res.Code != http.StatusNotFound {
				t.Errorf("from %q, with %d closed: %d %s", n, closed, res.Code, res.Body)
			}
		}
	}
}

// TestOldPartName: who has an index of before finds a part at its old name after it was
// cut, up to the bounds of a document, and then is told where the parts of now are listed.
func TestOldPartName(t *testing.T) {
	w := newWorld(t, SetConfig{Format: rdfres.NTriples, PartEntries: int(partition.Large.Entries)})
	w.tune = func(s *set) { s.sizes.partSize.Usual.Entries = 4 }
	w.reopen()
	values := map[string]int{}
	for i := range 40 {
		values[fmt.Sprintf("http://example.org/e/%d", i)] = i
	}
	w.scan(values, false, rdfres.NTriples)
	w.publish()
	_, parts := w.read(w.url("resourcelist.xml"))
	n := 0
	for _, name := range []string{"resourcelist-0.xml", "resourcelist-1.xml"} {
		_, entries := w.read(w.url(name))
		n += len(entries)
	}
	if n != 40 || len(parts) < 8 {
		t.Errorf("the old names have %d of 40 entries, there are %d parts", n, len(parts))
	}
	w.tune = func(s *set) { s.sizes.partSize.Usual.Entries, s.sizes.documentEntries = 4, 10 }
	w.reopen()
	if res := w.get(w.url("resourcelist-0.xml")); res.Code != http.StatusGone || !strings.Contains(res.Body.String(), "resourcelist.xml") {
		t.Errorf("%d %s", res.Code, res.Body)
	}
}
