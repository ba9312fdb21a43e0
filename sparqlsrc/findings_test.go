package sparqlsrc

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/internal/sparql"
	"github.com/rsbridge/rsbridge/rdfres"
)

// kept are findings in memory.
type kept struct {
	caps   sparql.Capabilities
	ok     bool
	saves  int
	loaded int
}

func (k *kept) Load() (sparql.Capabilities, bool) { k.loaded++; return k.caps, k.ok }

func (k *kept) Save(c sparql.Capabilities) error {
	k.caps, k.ok = c, true
	k.saves++
	return nil
}

// TestFindings: a store is not probed by each process, but again when it is
// another one, or was small.
func TestFindings(t *testing.T) {
	client := embedded(t)
	load := func(n int) {
		t.Helper()
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "<http://e.example/%d> <http://e.example/p> \"%d\" .\n", i, i)
		}
		if err := client.PutGraph(t.Context(), "", rdfres.NTriples, sparql.Body([]byte(b.String()))); err != nil {
			t.Fatal(err)
		}
	}
	k := &kept{}
	start := func() *Source {
		t.Helper()
		s, err := New(client, Config{Findings: k, TempDir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		scanAll(t, s)
		return s
	}
	load(100)
	start()
	start()
	if k.saves != 2 {
		t.Errorf("a small store was probed %d times by two processes", k.saves)
	}
	load(10_100)
	start()
	s := start()
	if k.saves != 3 {
		t.Errorf("probed %d times", k.saves)
	}
	scanAll(t, s)
	if k.saves != 3 {
		t.Errorf("probed %d times within one process", k.saves)
	}
	k.caps.Version = "of yesterday"
	start()
	if k.saves != 4 || k.caps.Version == "of yesterday" {
		t.Errorf("another version: probed %d times", k.saves)
	}
	s.probed.Product = "Another"
	scanAll(t, s)
	if k.saves != 4 { // what is kept is right for what the store says now
		t.Errorf("the store was exchanged: probed %d times", k.saves)
	}
	if s.probed.Product == "Another" {
		t.Error("the store was exchanged, and its findings were not")
	}
}
