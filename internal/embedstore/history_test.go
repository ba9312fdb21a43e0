package embedstore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/rdfres"
)

// model is a quad set, the simplest store there is. Terms are N-Triples.
type model map[[4]string]bool

func (m model) lines() []string {
	var out []string
	for q := range m {
		g := ""
		if q[3] != "" {
			g = " " + q[3]
		}
		out = append(out, q[0]+" "+q[1]+" "+q[2]+g+" .")
	}
	slices.Sort(out)
	return out
}

func (g gen) ground(n int) [][4]string {
	var qs [][4]string
	for range n {
		qs = append(qs, [4]string{
			fmt.Sprintf("<http://x/s%d>", g.IntN(20)), fmt.Sprintf("<http://x/p%d>", g.IntN(4)),
			g.pick(`"x"`, `"01"^^<http://www.w3.org/2001/XMLSchema#integer>`, `"1"^^<http://www.w3.org/2001/XMLSchema#integer>`, `"a\tb"@en`, fmt.Sprintf("<http://x/s%d>", g.IntN(20))),
			g.pick("", "<http://x/g1>", "<http://x/g2>", "<http://x/g3>"),
		})
	}
	return qs
}

func quadsText(qs [][4]string, open, shut string) string {
	var b strings.Builder
	for i, q := range qs {
		if i%2 > 0 {
			q[2] = strings.Replace(q[2], `"@en`, `"@EN`, 1) // the same
		}
		if q[3] != "" && open != "" {
			fmt.Fprintf(&b, "GRAPH %s { %s %s %s } ", q[3], q[0], q[1], q[2])
		} else {
			fmt.Fprintf(&b, "%s %s %s %s .\n", q[0], q[1], q[2], map[bool]string{true: q[3]}[open == ""])
		}
	}
	return b.String()
}

// TestHistory runs random writes against the model, closing the store now and
// then, and with the ways for large writes forced on small ones.
func TestHistory(t *testing.T) {
	for seed := range uint64(3) {
		g := gen{rand.New(rand.NewPCG(seed, 1))}
		dir := t.TempDir()
		s := openTest(t, dir)
		m := model{}
		ctx := context.Background()
		for step := range 60 {
			what := ""
			s.forced.bulk, s.forced.spill, s.forced.chunk = g.IntN(2) == 0, g.IntN(4) == 0, g.IntN(2)*(1+g.IntN(4))
			qs := g.ground(1 + g.IntN(12))
			graph := g.pick("", "http://x/g1", "http://x/g2", "http://x/g3")
			term := ""
			if graph != "" {
				term = "<" + graph + ">"
			}
			var err error
			switch kind := g.IntN(12); kind {
			case 0, 1:
				what = "insert data"
				err = s.Update(ctx, "INSERT DATA { "+quadsText(qs, "{", "}")+" }")
				for _, q := range qs {
					m[q] = true
				}
			case 2:
				what = "delete data"
				err = s.Update(ctx, "DELETE DATA { "+quadsText(qs, "{", "}")+" }")
				for _, q := range qs {
					delete(m, q)
				}
			case 3, 4:
				what = "load"
				var n, want int64
				for _, q := range qs {
					if !m[q] {
						want++
					}
					m[q] = true
				}
				n, err = s.Load(ctx, "", rdfres.NQuads, strings.NewReader(quadsText(qs, "", "")), LoadOptions{})
				if err == nil && n != want {
					err = fmt.Errorf("added %d, want %d", n, want)
				}
			case 5, 6:
				what = "put " + graph
				for q := range m {
					if q[3] == term {
						delete(m, q)
					}
				}
				var b strings.Builder
				for _, q := range qs {
					m[[4]string{q[0], q[1], q[2], term}] = true
					fmt.Fprintf(&b, "%s %s %s .\n", q[0], q[1], q[2])
				}
				_, err = s.Load(ctx, graph, rdfres.NTriples, strings.NewReader(b.String()), LoadOptions{Replace: true})
			case 7:
				what = "modify"
				p := qs[0][1]
				err = s.Update(ctx, fmt.Sprintf("DELETE { GRAPH ?g { ?s %s ?o } } INSERT { ?s <http://x/moved> ?o } WHERE { GRAPH ?g { ?s %s ?o } }", p, p))
				for q := range m {
					if q[1] == p && q[3] != "" {
						delete(m, q)
						m[[4]string{q[0], "<http://x/moved>", q[2], ""}] = true
					}
				}
			case 8:
				what = "several"
				err = s.Update(ctx, "CLEAR GRAPH <http://x/g1> ; INSERT { GRAPH <http://x/g1> { ?s ?p ?o } } WHERE { GRAPH <http://x/g2> { ?s ?p ?o } } ; MOVE SILENT <http://x/g2> TO <http://x/g3> ; DELETE WHERE { <http://x/s1> ?p ?o }")
				n := model{}
				two := 0
				for q := range m {
					if q[3] == "<http://x/g2>" {
						two++
					}
				}
				for q := range m {
					switch {
					case q[3] == "<http://x/g1>", q[3] == "<http://x/g3>" && two > 0:
					case q[3] == "<http://x/g2>":
						n[[4]string{q[0], q[1], q[2], "<http://x/g1>"}] = true
						n[[4]string{q[0], q[1], q[2], "<http://x/g3>"}] = true
					case q[3] == "" && q[0] == "<http://x/s1>":
					default:
						n[q] = true
					}
				}
				m = n
			case 9:
				what = "failing request"
				if err := s.Update(ctx, "INSERT DATA { <http://x/f> <http://x/f> 1 } ; CLEAR ALL ; LOAD <http://x/nowhere>"); !errors.Is(err, ErrUnsupported) {
					t.Fatalf("LOAD: %v", err)
				}
				if _, err := s.Load(ctx, "", rdfres.NQuads, strings.NewReader(quadsText(qs, "", "")+"this is no line\n"), LoadOptions{Replace: true}); err == nil {
					t.Fatal("a broken document was loaded")
				}
			case 10:
				what = "reopen"
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				s = openTest(t, dir)
			case 11:
				what = "put everything"
				m = model{}
				for _, q := range qs {
					m[q] = true
				}
				_, err = s.Load(ctx, "", rdfres.NQuads, strings.NewReader(quadsText(qs, "", "")), LoadOptions{Replace: true})
			}
			if err != nil {
				t.Fatalf("seed %d step %d %s: %v", seed, step, what, err)
			}
			if got, want := content(t, s), m.lines(); !slices.Equal(got, want) {
				t.Fatalf("seed %d step %d %s:\n got %q\nwant %q", seed, step, what, got, want)
			}
			checkStore(t, s)
		}
		s.Close()
	}
}

// checkStore compares the indexes and the counts with each other, and sees that
// every id has its term and every term its id.
func checkStore(t testing.TB, s *Store) {
	t.Helper()
	snap, err := s.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer snap.Close()
	var all [4]map[quad]bool
	counts := map[id]int64{}
	for i := range all {
		all[i] = map[quad]bool{}
		if err := scan(snap.v, nil, access{i, 0}, &quad{}, false, func(q *quad) bool {
			all[i][*q] = true
			if i == 0 {
				counts[q[posG]]++
			}
			return true
		}); err != nil {
			t.Fatal(err)
		}
	}
	r := newTermReader(snap.v, nil)
	defer r.close()
	for q := range all[0] {
		for i := 1; i < 4; i++ {
			if !all[i][q] || len(all[i]) != len(all[0]) {
				t.Fatalf("index %d differs from index 0 at %v", i, q)
			}
		}
		for _, n := range q {
			term, err := r.term(n)
			if err != nil {
				t.Fatal(err)
			}
			if back, err := lookup(snap.v, term); n != 0 && (err != nil || back != n) {
				t.Fatalf("term %s of id %d has id %d", term, n, back)
			}
		}
	}
	n := 0
	if err := graphCounts(snap.v, func(g id, c int64) bool {
		n++
		if counts[g] != c {
			t.Errorf("graph %d has %d quads and is counted %d", g, counts[g], c)
		}
		return true
	}); err != nil {
		t.Fatal(err)
	}
	if n != len(counts) {
		t.Errorf("%d graphs are counted, %d are there", n, len(counts))
	}
}

// TestBlankNodesAcrossSegments loads a chain of blank nodes in pieces: a label
// is one node throughout its document, and another one in the next.
func TestBlankNodesAcrossSegments(t *testing.T) {
	s := openTest(t, t.TempDir())
	s.forced.bulk, s.forced.chunk = true, 3
	var b strings.Builder
	const n = 40
	for i := range n {
		fmt.Fprintf(&b, "_:n%d <http://x/next> _:n%d .\n_:n%d <http://x/id> \"%d\" .\n", i, (i+7)%n, i, i)
	}
	for k := range 2 {
		if got := loadText(t, s, "", b.String()); got != 2*n {
			t.Fatalf("added %d, want %d", got, 2*n)
		}
		got := ask(t, s, "SELECT ?a ?b { ?x <http://x/next> ?y . ?x <http://x/id> ?a . ?y <http://x/id> ?b }")
		if len(got) != n*(k+1) {
			t.Fatalf("%d links after load %d, want %d", len(got), k, n*(k+1))
		}
		for i := range n {
			if want := fmt.Sprintf(`"%d"|"%d"`, i, (i+7)%n); !slices.Contains(got, want) {
				t.Errorf("no link %s", want)
			}
		}
	}
	if got := ask(t, s, "SELECT DISTINCT ?x { ?x ?p ?o }"); len(got) != 2*n {
		t.Errorf("%d nodes, want %d", len(got), 2*n)
	}
	checkStore(t, s)
}
