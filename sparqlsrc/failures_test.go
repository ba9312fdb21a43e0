package sparqlsrc

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/internal/sparql/sparqltest"
	"github.com/rsbridge/rsbridge/rdfres"
)

// Where very many entities cannot be described all of them are known, and the reasons
// of some.
func TestManyFailures(t *testing.T) {
	const many = maxReasons + 500
	name := func(i int) string { return fmt.Sprintf("http://example.org/bad %d", i) }
	ts := []rdfres.Triple{{S: "<http://example.org/good>", P: "<http://example.org/p>", O: `"1"`}}
	for i := range many {
		ts = append(ts, rdfres.Triple{S: rdfres.NewIRI(name(i)), P: "<http://example.org/p>", O: `"1"`})
	}
	sc, err := source(t, sparqltest.New(ts...), Config{}).Scan(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer sc.Close()
	if got, _ := read(t, sc); len(got) != 1 || sc.FailedCount() != many || len(sc.Failed()) != maxReasons {
		t.Errorf("%d entities, %d failed, %d with a reason", len(got), sc.FailedCount(), len(sc.Failed()))
	}
	for i := range many {
		if !sc.IsFailed(name(i)) {
			t.Fatalf("%s did not fail", name(i))
		}
	}
	if sc.IsFailed("http://example.org/good") || sc.IsFailed("http://example.org/bad") {
		t.Error("one failed that did not")
	}
	for e, why := range sc.Failed() {
		if !strings.Contains(why.Error(), e) {
			t.Errorf("%s: %v", e, why)
		}
	}
}
