package publish

import (
	"fmt"
	"testing"

	"github.com/rsbridge/rsbridge/internal/teststores"
	"github.com/rsbridge/rsbridge/rdfres"
)

// TestInPostgres: a few tests with their records in PostgreSQL; make campaign runs all of them there.
func TestInPostgres(t *testing.T) {
	teststores.RunInPostgres(t, TestSnapshots, TestMementoAfterRetention)
}

// TestRoundTrips: with the records in PostgreSQL 100 resources cost one question of a kind.
func TestRoundTrips(t *testing.T) {
	store, trips := teststores.CountedRecords(t)
	w := newWorldIn(t, store, SetConfig{Format: rdfres.NTriples})
	const resources = 500
	put := func(value int) {
		values := map[string]int{}
		for i := range resources {
			values[fmt.Sprintf("http://example.org/e/%d", i)] = value + i
		}
		w.scan(values, false, w.cfg.Format)
	}
	for _, step := range []struct {
		what string
		do   func()
	}{
		{"first publication", func() { put(1); trips.Store(0); w.publish() }},
		{"publication of updates", func() { put(1000); trips.Store(0); w.publish() }},
		{"dump", func() { trips.Store(0); w.must(w.pub.Dump(w.t.Context(), "data")) }},
	} {
		step.do()
		n := trips.Load()
		t.Logf("%s: %d round trips", step.what, n)
		if most := int64(40 + resources/5); n > most {
			t.Errorf("%s: %d round trips for %d resources, more than %d", step.what, n, resources, most)
		}
	}
}
