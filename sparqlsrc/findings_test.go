package sparqlsrc

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/internal/sparql"
	"github.com/rsbridge/rsbridge/internal/sparql/sparqltest"
	"github.com/rsbridge/rsbridge/rdfres"
)

// kept are findings in memory.
type kept struct {
	caps   sparql.Capabilities
	ok     bool
	saves  int
	loaded int
}

func (k *kept) Load(ctx context.Context) (sparql.Capabilities, bool) { k.loaded++; return k.caps, k.ok }

func (k *kept) Save(ctx context.Context, c sparql.Capabilities) error {
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

// TestFindingsAgain: what was found of a store that was small or busy, or long ago, is
// found again by the process that found it.
func TestFindingsAgain(t *testing.T) {
	ts := divided(300)
	for name, tc := range map[string]struct {
		busy   func(n int) bool // the n-th request of the first probe is answered with 503
		known  int64            // triples of the last scan
		forget bool             // what is kept is too old
		again  bool
	}{
		"nothing happened":       {},
		"busy":                   {busy: func(n int) bool { return n > 1 && n%3 == 0 }, again: true},
		"it was small":           {known: 20_000, again: true},
		"it was small and still": {known: 5_000},
		"long ago":               {forget: true, again: true},
	} {
		t.Run(name, func(t *testing.T) {
			st := sparqltest.New(ts...)
			known, k := int64(0), &kept{}
			s := source(t, st, Config{Findings: k, Known: func(context.Context) (int64, error) { return known, nil }})
			if tc.known == 0 { // as much as a sample takes
				st.Add("", nameTriples(4200)...)
			}
			requests := 0
			st.Fault = func(string, string) *sparqltest.Fault {
				if requests++; tc.busy != nil && tc.busy(requests) {
					return &sparqltest.Fault{Status: http.StatusServiceUnavailable}
				}
				return nil
			}
			if _, err := s.Capabilities(t.Context()); err != nil {
				t.Fatal(err)
			}
			st.Fault = nil
			known, k.ok = tc.known, !tc.forget
			scanAll(t, s)
			if again := k.saves == 2; again != tc.again {
				t.Errorf("probed %d times; unanswered at first: %q", k.saves, k.caps.Unanswered)
			}
			if len(k.caps.Unanswered) > 0 {
				t.Errorf("still unanswered: %q", k.caps.Unanswered)
			}
		})
	}
}
