package embedstore

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/internal/teststores"
	"github.com/rsbridge/rsbridge/rdfres"
)

// Random loads and clears of graphs leave what a map of sets has, whatever way they
// take; a store that was emptied keeps no term, and those who read from before that
// go on.
func TestClearAgainstSets(t *testing.T) {
	teststores.Sequential(t)
	ctx := context.Background()
	rng := rand.New(rand.NewPCG(5, 11))
	dir := t.TempDir()
	s := openTest(t, dir)
	defer func() { s.Close() }()
	graphs := []string{"", "http://example.org/g1", "http://example.org/g2"}
	name := func(g string) string {
		if g == "" {
			return "DEFAULT"
		}
		return "GRAPH <" + g + ">"
	}
	model := map[string]map[string]bool{"": {}, graphs[1]: {}, graphs[2]: {}}
	lines := func(dump func(g string) (string, error)) map[string]string {
		got := map[string]string{}
		for _, g := range graphs {
			text, err := dump(g)
			if err != nil {
				t.Fatal(err)
			}
			l := strings.SplitAfter(text, "\n")
			slices.Sort(l)
			got[g] = strings.Join(l, "")
		}
		return got
	}
	held := func() map[string]string {
		return lines(func(g string) (string, error) {
			var b bytes.Buffer
			err := s.Dump(ctx, &b, rdfres.NTriples, DumpOptions{Graph: g})
			return b.String(), err
		})
	}
	wiped := 0
	for step := range 400 {
		g := graphs[rng.IntN(3)]
		empties := func(graphs ...string) {
			for _, g := range graphs {
				clear(model[g])
			}
		}
		switch rng.IntN(6) {
		case 0, 1:
			var text strings.Builder
			for range 1 + rng.IntN(40) {
				l := fmt.Sprintf("<http://example.org/s%d> <http://example.org/p> \"%d\" .\n", rng.IntN(9), rng.IntN(30))
				text.WriteString(l)
				model[g][l] = true
			}
			s.forced.bulk = rng.IntN(2) == 0
			if _, err := s.Load(ctx, g, rdfres.NTriples, strings.NewReader(text.String()), LoadOptions{}); err != nil {
				t.Fatal(err)
			}
			continue
		case 2, 3:
			before := held()
			snap, err := s.Snapshot()
			if err != nil {
				t.Fatal(err)
			}
			op := []string{"CLEAR ", "DROP SILENT "}[rng.IntN(2)] + name(g)
			empties(g)
			if rng.IntN(4) == 0 { // not alone
				l := "<http://example.org/s> <http://example.org/p> \"new\" .\n"
				op += " ; INSERT DATA { GRAPH <" + graphs[1] + "> { " + l + " } }"
				model[graphs[1]][l] = true
			}
			if err := s.Update(ctx, op); err != nil {
				t.Fatal(err)
			}
			after := lines(func(g string) (string, error) {
				var b bytes.Buffer
				err := snap.dump(ctx, &b, rdfres.NTriples, DumpOptions{Graph: g})
				return b.String(), err
			})
			snap.Close()
			for _, g := range graphs {
				if after[g] != before[g] {
					t.Fatalf("step %d: %s changed what was being read: %q, %q", step, op, before[g], after[g])
				}
			}
		case 4:
			if rng.IntN(2) == 0 {
				empties(graphs...)
				if err := s.Update(ctx, "CLEAR ALL ;"); err != nil {
					t.Fatal(err)
				}
			} else {
				empties(graphs[1:]...)
				if err := s.Update(ctx, "DROP NAMED"); err != nil {
					t.Fatal(err)
				}
			}
		default:
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			s = openTest(t, dir)
		}
		total := 0
		got := held()
		for _, g := range graphs {
			want := ""
			for _, l := range slices.Sorted(func(yield func(string) bool) {
				for l := range model[g] {
					if !yield(l) {
						return
					}
				}
			}) {
				want += l
			}
			if got[g] != want {
				t.Fatalf("step %d, graph %q: %q, want %q", step, g, got[g], want)
			}
			total += len(model[g])
		}
		if st, err := s.Stats(); err != nil || st.Triples != int64(total) {
			t.Fatalf("step %d: %+v %v, want %d triples", step, st, err, total)
		}
		checkDictionary(t, s)
		n := 0
		for _, space := range []byte{spaceTerm, spaceIRI} {
			if err := eachTermFrom(pebbleView{s.db}, space, 0, func(id, []byte) error { n++; return nil }); err != nil {
				t.Fatal(err)
			}
		}
		if n == 0 && s.next > 1 {
			wiped++
		}
	}
	if wiped < 10 {
		t.Errorf("the store was left without a term %d times", wiped)
	}
}
