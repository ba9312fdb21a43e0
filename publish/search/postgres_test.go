package search

import (
	"fmt"
	"testing"

	"github.com/rsbridge/rsbridge/internal/teststores"
)

// TestRoundTrips: with the records in PostgreSQL 100 entities cost one question of a kind.
func TestRoundTrips(t *testing.T) {
	store, trips := teststores.CountedRecords(t)
	w := newWorldIn(t, store)
	const entities = 500
	for _, label := range []string{"first", "second"} {
		labels := map[string]string{}
		for i := range entities {
			labels[fmt.Sprintf("http://example.org/e%d", i)] = fmt.Sprint(label, i)
		}
		w.scan(false, labels)
		before := trips.Load()
		w.must(w.index.update(t.Context()))
		n := trips.Load() - before
		t.Logf("%s labels: %d round trips", label, n)
		if n > 60 {
			t.Errorf("%s labels: %d round trips for %d entities", label, n, entities)
		}
	}
}
