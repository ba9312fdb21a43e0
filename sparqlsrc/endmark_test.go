package sparqlsrc

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/internal/sparql/sparqltest"
	"github.com/rsbridge/rsbridge/rdfres"
)

// TestEndMark: an answer of RDF4J that ends with the row asked for behind all others
// is whole without a count; every other one is counted, and so is one with doubles,
// which may stand for what is missing, and one of fewer rows than the last time.
func TestEndMark(t *testing.T) {
	var ts []rdfres.Triple
	for i := range 30 {
		ts = append(ts, rdfres.Triple{S: rdfres.NewIRI(fmt.Sprintf("http://example.org/e%d", i/3)), P: "<http://example.org/p>", O: rdfres.NewLiteral(fmt.Sprint(i), "", "")})
	}
	ts = rdfres.SortUnique(ts)
	const mark = -1
	rows := func(from, to int) (out []int) {
		for i := from; i < to; i++ {
			out = append(out, i)
		}
		return out
	}
	for _, c := range []struct {
		name   string
		sent   []int // of ts, and where the mark is
		known  int64 // by the last scan
		counts int
		whole  bool
	}{
		{"whole", append(rows(0, 30), mark), 0, 0, true},
		{"the branches the other way round", append([]int{mark}, rows(0, 30)...), 0, 1, true},
		{"the branches mixed", slices.Concat(rows(0, 7), []int{mark}, rows(7, 30)), 0, 1, true},
		{"no mark", rows(0, 30), 0, 1, true},
		{"two marks", append(rows(0, 30), mark, mark), 0, 1, true},
		{"cut with the mark", rows(0, 29), 0, 2, false},
		{"cut behind the mark", slices.Concat([]int{mark}, rows(0, 29)), 0, 2, false},
		{"one twice", slices.Concat(rows(0, 8), rows(7, 30), []int{mark}), 0, 1, true},
		{"one twice instead of the next", slices.Concat(rows(0, 8), []int{7}, rows(9, 30), []int{mark}), 0, 1, false},
		{"two of three that came twice instead of others", slices.Concat(rows(0, 8), []int{7, 7, 7}, rows(10, 30), []int{mark}), 0, 1, false},
		{"as many as last time", append(rows(0, 30), mark), 30, 0, true},
		{"more than last time", append(rows(0, 30), mark), 29, 0, true},
		{"fewer than last time", append(rows(0, 30), mark), 31, 1, true},
		{"a branch that ended early", append(rows(0, 29), mark), 30, 2, false},
	} {
		st := sparqltest.New(ts...)
		st.Table = true
		counts := 0
		asked := regexp.MustCompile("VALUES [?]s { (<[^>]*>) } } }$")
		st.Rewrite = func(op, query string, content []byte) []byte {
			if strings.HasPrefix(query, "SELECT (COUNT(*)") {
				counts++
			}
			m := asked.FindStringSubmatch(query)
			if m == nil {
				return content
			}
			table := sparqltest.NewTable("s", "p", "o")
			for _, i := range c.sent {
				if i == mark {
					table.Row(rdfres.Term(m[1]), "", "")
				} else {
					table.Row(ts[i].S, ts[i].P, ts[i].O)
				}
			}
			return table.End()
		}
		s := known(source(t, st, Config{Strategy: "select-binary", Known: func(context.Context) (int64, error) { return c.known, nil }}), st)
		sc, err := s.Scan(t.Context())
		n := 0
		if err == nil {
			for d, each := range sc.Descriptions() {
				n, err = n+len(d.Triples), errors.Join(err, each)
			}
			sc.Close()
		}
		if c.whole && (err != nil || n != len(ts)) || !c.whole && !errors.Is(err, ErrShort) {
			t.Errorf("%s: %d triples of %d, %v", c.name, n, len(ts), err)
		}
		if c.whole && counts != c.counts || counts < c.counts {
			t.Errorf("%s: counted %d times, want %d", c.name, counts, c.counts)
		}
	}
}

// TestEndMarkOfMovingGraphs: what a store takes while it is read is not missed where
// triples come twice because they stand in two graphs.
func TestEndMarkOfMovingGraphs(t *testing.T) {
	triple := func(i int) rdfres.Triple {
		return rdfres.Triple{S: rdfres.NewIRI(fmt.Sprintf("http://example.org/e%d", i)), P: "<http://example.org/p>", O: `"x"`}
	}
	st := sparqltest.New()
	st.Table = true
	var ts []rdfres.Triple
	for i := range 30 {
		ts = append(ts, triple(i))
	}
	st.Add("http://g.example/1", ts...)
	st.Add("http://g.example/2", ts...)
	st.After = func(op, query string) {
		if strings.Contains(query, "urn:rsbridge:end:") {
			st.Add("http://g.example/1", triple(30), triple(31))
		}
	}
	s := known(source(t, st, Config{Graphs: []string{"*"}, Strategy: "select-binary"}), st)
	got, _ := scanAll(t, s)
	diff(t, "moving", got, expected(t, ts, false))
}
