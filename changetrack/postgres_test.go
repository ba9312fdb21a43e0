package changetrack

import (
	"iter"
	"testing"

	"github.com/rsbridge/rsbridge/internal/teststores"
	"github.com/rsbridge/rsbridge/rdfres"
)

// TestInPostgres: a few tests with their records in PostgreSQL; make campaign runs all of them there.
func TestInPostgres(t *testing.T) {
	teststores.RunInPostgres(t, TestScanOfTheSame, TestSetsAreApart, TestRepresentations)
}

// TestRoundTrips: with the records in PostgreSQL 100 resources cost one question of a kind.
func TestRoundTrips(t *testing.T) {
	store, trips := teststores.CountedRecords(t)
	tr, l := mustOpen(t, store, testOptions(t.TempDir(), newClock()))
	defer tr.Close()
	const resources = 1000
	some := plain
	some.Partial = true
	named := func(s source) iter.Seq2[rdfres.Description, error] {
		var names []string
		for d := range s.all() {
			names = append(names, d.Entity)
		}
		return s.some(names)
	}
	scan := func(found iter.Seq2[rdfres.Description, error], o ScanOptions) func() error {
		return func() error {
			_, err := l.Scan(t.Context(), found, o)
			return err
		}
	}
	for _, step := range []struct {
		what string
		do   func() error
	}{
		{"first scan", scan(many(resources, 1).all(), plain)},
		{"changes", func() error {
			v := l.View(t.Context())
			defer v.Close()
			n := 0
			for _, err := range v.Changes(t.Context(), 0) {
				if err != nil {
					return err
				}
				n++
			}
			if n != resources {
				t.Errorf("%d changes", n)
			}
			return nil
		}},
		{"same scan", scan(many(resources, 1).all(), plain)},
		{"scan of updates", scan(many(resources, 2).all(), plain)},
		{"partial scan", scan(named(many(resources, 3)), some)},
	} {
		before := trips.Load()
		if err := step.do(); err != nil {
			t.Fatal(step.what, err)
		}
		n := trips.Load() - before
		t.Logf("%s: %d round trips", step.what, n)
		if most := int64(20 + resources/100); n > most {
			t.Errorf("%s: %d round trips for %d resources, more than %d", step.what, n, resources, most)
		}
	}
}
