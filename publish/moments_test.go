package publish

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/internal/kv/kvtest"
	"github.com/rsbridge/rsbridge/internal/teststores"
	"github.com/rsbridge/rsbridge/rdfres"
)

// TestSnapshots: the store keeps nothing back between publications. Readers have the state of the
// last one all the same, from the next scan until the next publication.
func TestSnapshots(t *testing.T) {
	store := &kvtest.Full{Store: teststores.Records(t), Left: 1 << 30}
	w := newWorldIn(t, store, SetConfig{Format: rdfres.NTriples})
	a := "http://example.org/a"
	address := func() string {
		t.Helper()
		at, err := w.pub.Location(t.Context(), "data", a)
		w.must(err)
		return at
	}
	check := func(when string, value, open int) {
		t.Helper()
		if res := w.get(address()); res.Code != http.StatusOK || !strings.Contains(res.Body.String(), fmt.Sprintf("value> \"%d\" .", value)) {
			t.Errorf("%s: %d %s, want the value %d", when, res.Code, res.Body, value)
		}
		w.body(w.url("resourcelist.xml"))
		if store.Open != open {
			t.Errorf("%s: %d snapshots are open, want %d", when, store.Open, open)
		}
	}
	w.scan(map[string]int{a: 1}, false, rdfres.NTriples)
	w.publish()
	check("published", 1, 0)
	w.clock.add(time.Minute)
	w.scan(map[string]int{a: 2}, false, rdfres.NTriples)
	check("changed", 1, 1)
	w.clock.add(time.Minute)
	w.scan(map[string]int{a: 3}, false, rdfres.NTriples)
	check("changed again", 1, 1)
	w.publish()
	check("published again", 3, 0)
	w.must(w.pub.Retain(t.Context(), "data"))
	check("after retention", 3, 0)
	w.reopen()
	check("started again", 3, 0)
}
