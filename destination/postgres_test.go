package destination

import (
	"fmt"
	"testing"

	"github.com/rsbridge/rsbridge/internal/teststores"
)

// TestInPostgres: a few tests with their records in PostgreSQL; make campaign runs all of them there.
func TestInPostgres(t *testing.T) {
	teststores.RunInPostgres(t, TestSharedTriples, TestTwoDestinationsOneGraph)
}

// TestRoundTrips: with the records in PostgreSQL 100 resources cost one question of a kind. A deletion has two of
// its own.
func TestRoundTrips(t *testing.T) {
	store, trips := teststores.CountedRecords(t)
	b := benchOf(t, newTestSource(t), newTestMirror(t), store)
	b.caps.UpdateTriples = 10_000
	const resources = 500
	put := func(value string) {
		for i := range resources {
			b.src.put(fmt.Sprintf("e%d.nt", i), nt(fmt.Sprintf("e%d", i), value, fmt.Sprint(i)))
		}
	}
	for _, step := range []struct {
		what string
		do   func()
	}{
		{"baseline", func() { put("a") }},
		{"nothing new", func() {}},
		{"changes", func() { put("b") }},
		{"deletions", func() {
			for i := range resources / 10 {
				b.src.remove(fmt.Sprintf("e%d.nt", i))
			}
		}},
	} {
		step.do()
		before := trips.Load()
		b.sync()
		n := trips.Load() - before
		t.Logf("%s: %d round trips", step.what, n)
		if most := int64(60 + resources/5); n > most {
			t.Errorf("%s: %d round trips for %d resources, more than %d", step.what, n, resources, most)
		}
	}
	b.equal()
}
