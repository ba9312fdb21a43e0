package sparql_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/internal/sparql"
	"github.com/rsbridge/rsbridge/internal/sparql/sparqltest"
	"github.com/rsbridge/rsbridge/internal/teststores"
	"github.com/rsbridge/rsbridge/rdfres"
)

// partsData has many subjects, one with many triples, and a blank node with many.
func partsData(many int) (ts []rdfres.Triple) {
	p, q := rdfres.NewIRI("http://e/p"), rdfres.NewIRI("http://e/q")
	for i := range many {
		s := rdfres.NewIRI(fmt.Sprintf("http://e/s%d", i))
		ts = append(ts, rdfres.Triple{S: s, P: p, O: rdfres.NewLiteral(fmt.Sprintf("värde %d", i), "", "")}, rdfres.Triple{S: s, P: q, O: rdfres.NewLiteral("x", "en", "")})
		ts = append(ts, rdfres.Triple{S: rdfres.NewIRI("http://e/big"), P: p, O: rdfres.NewIRI(fmt.Sprintf("http://e/s%d", i))})
		ts = append(ts, rdfres.Triple{S: rdfres.NewBlank("b"), P: q, O: rdfres.NewLiteral(fmt.Sprint(i), "", "")})
	}
	return rdfres.SortUnique(ts)
}

// readInParts reads a graph by its subjects, blank nodes as one label.
func readInParts(t *testing.T, p sparql.Parts) []rdfres.Triple {
	t.Helper()
	var got []rdfres.Triple
	add := func(row sparql.Row) error {
		x := rdfres.Triple{S: row[0], P: row[1], O: row[2]}
		if x.S.Kind() == rdfres.KindBlank {
			x.S = rdfres.NewBlank("b")
		}
		got = append(got, x)
		return nil
	}
	err := p.Keys(t.Context(), func(keys []string) error { return p.Of(t.Context(), keys, add) })
	if err == nil {
		err = p.Blanks(t.Context(), add)
	}
	if err != nil {
		t.Fatal(err)
	}
	n := len(got)
	if got = rdfres.SortUnique(got); len(got) != n {
		t.Fatalf("%d rows came twice", n-len(got))
	}
	return got
}

func TestParts(t *testing.T) {
	data := partsData(300)
	for _, limit := range []int{0, 40, 100, 1000} {
		st := sparqltest.New()
		st.RowLimit, st.TooMany, st.Relabel, st.Shuffle = limit, 60, true, true
		st.Add("http://e/g", data...)
		srv := httptest.NewServer(st)
		var log bytes.Buffer
		c, err := sparql.New(sparql.Endpoint{Query: srv.URL + "/query", Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		got := readInParts(t, sparql.Parts{Client: c, Pattern: "GRAPH <http://e/g> { ?s ?p ?o } ", Key: "?s", Others: []string{"?p", "?o"}, Limit: int64(limit)})
		if !slices.Equal(got, data) {
			t.Fatalf("limit %d: %d triples of %d", limit, len(got), len(data))
		}
		// What makes a store work for long is told, with what to set.
		told := strings.Count(log.String(), "more triples of one entity than the store gives in one answer")
		if few := limit > 0 && limit < 300; told != map[bool]int{true: 1}[few] || few && !strings.Contains(log.String(), fmt.Sprintf("entity=http://e/big limit=%d", limit)) {
			t.Errorf("limit %d: the log says %s", limit, &log)
		}
		c.Close()
		srv.Close()
	}
}

// What a busy store leaves out of an answer without a word is asked for again.
func TestPartsLeftOut(t *testing.T) {
	data := partsData(300)
	var subjects []string
	for _, x := range data {
		if x.S.Kind() == rdfres.KindIRI {
			subjects = append(subjects, x.S.IRI())
		}
	}
	slices.Sort(subjects)
	subjects = slices.Compact(subjects)
	for _, column := range []string{"?s\t?p", "?s\n"} {
		st := sparqltest.New()
		st.Add("http://e/g", data...)
		answers, left := 0, 0
		st.Rewrite = func(_, _ string, content []byte) []byte {
			if lines := slices.Collect(bytes.Lines(content)); bytes.HasPrefix(content, []byte(column)) && len(lines) > 2 {
				if answers++; answers%3 == 1 {
					left++
					return bytes.Join(lines[:len(lines)-1], nil)
				}
			}
			return content
		}
		srv := httptest.NewServer(st)
		c, err := sparql.New(sparql.Endpoint{Query: srv.URL + "/query"})
		if err != nil {
			t.Fatal(err)
		}
		p := sparql.Parts{Client: c, Pattern: "GRAPH <http://e/g> { ?s ?p ?o } ", Key: "?s", Others: []string{"?p", "?o"}, Limit: 100, Confirm: true}
		if column == "?s\n" {
			var got []string
			if err := p.Keys(t.Context(), func(keys []string) error { got = append(got, keys...); return nil }); err != nil {
				t.Fatal(err)
			}
			slices.Sort(got)
			if got = slices.Compact(got); !slices.Equal(got, subjects) {
				t.Fatalf("%d keys of %d", len(got), len(subjects))
			}
		} else if got := readInParts(t, p); !slices.Equal(got, data) {
			t.Fatalf("%d triples of %d", len(got), len(data))
		}
		if left == 0 {
			t.Fatal("no answer lacked a row")
		}
		c.Close()
		srv.Close()
	}
}

// Where nobody else writes, a key with many rows comes in pages: each row is looked at
// about once. Where the order is another one in each answer, a page is cut, or there are
// blank nodes, it comes by hashes, no row twice.
func TestPartsPages(t *testing.T) {
	blank := rdfres.Triple{S: rdfres.NewIRI("http://e/big"), P: rdfres.NewIRI("http://e/p"), O: rdfres.NewBlank("o")}
	for name, c := range map[string]struct {
		set    func(*sparqltest.Store)
		more   []rdfres.Triple
		hashes bool
	}{
		"in order": {},
		"shuffled": {set: func(s *sparqltest.Store) { s.Shuffle = true }, hashes: true},
		"blank":    {more: []rdfres.Triple{blank}, hashes: true},
		"told":     {set: func(s *sparqltest.Store) { s.RowLimit, s.TellLimit = 40, true }},
		"cut":      {set: func(s *sparqltest.Store) { s.RowLimit = 90 }, hashes: true},
	} {
		t.Run(name, func(t *testing.T) {
			data := append(slices.DeleteFunc(partsData(300), func(x rdfres.Triple) bool { return x.S.Kind() == rdfres.KindBlank }), c.more...)
			st := sparqltest.New()
			st.RowLimit = 100
			if c.set != nil {
				c.set(st)
			}
			st.Add("http://e/g", data...)
			hashes := 0
			st.After = func(_, body string) {
				if strings.Contains(body, "MD5(") {
					hashes++
				}
			}
			srv := httptest.NewServer(st)
			defer srv.Close()
			client, err := sparql.New(sparql.Endpoint{Query: srv.URL + "/query"})
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			var got []rdfres.Triple
			p := sparql.Parts{Client: client, Pattern: "GRAPH <http://e/g> { ?s ?p ?o } ", Key: "?s", Others: []string{"?p", "?o"}, Limit: 100, Confirm: true, Pages: true}
			err = p.Of(t.Context(), []string{"http://e/s1", "http://e/big", "http://e/s2"}, func(row sparql.Row) error {
				got = append(got, rdfres.Triple{S: row[0], P: row[1], O: row[2]})
				return nil
			})
			if want := 2 + 300 + 2 + len(c.more); err != nil || len(got) != want || len(rdfres.SortUnique(got)) != want {
				t.Fatalf("%d rows, %d of them different, want %d: %v", len(got), len(rdfres.SortUnique(got)), want, err)
			}
			if (hashes > 0) != c.hashes {
				t.Errorf("%d queries by hashes", hashes)
			}
		})
	}
}

// One key with many rows does not make those that follow come one by one.
func TestPartsAfterMany(t *testing.T) {
	st := sparqltest.New()
	st.RowLimit = 100
	st.Add("http://e/g", partsData(300)...)
	asked := 0
	st.After = func(string, string) { asked++ }
	srv := httptest.NewServer(st)
	defer srv.Close()
	client, err := sparql.New(sparql.Endpoint{Query: srv.URL + "/query"})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	keys := []string{"http://e/big"}
	for i := range 300 {
		keys = append(keys, fmt.Sprintf("http://e/s%d", i))
	}
	p := sparql.Parts{Client: client, Pattern: "GRAPH <http://e/g> { ?s ?p ?o } ", Key: "?s", Others: []string{"?p", "?o"}, Limit: 100, Batch: 40, Pages: true}
	rows := 0
	if err := p.Of(t.Context(), keys, func(sparql.Row) error { rows++; return nil }); err != nil || rows != 900 {
		t.Fatalf("%d rows: %v", rows, err)
	}
	if asked > 40 {
		t.Errorf("%d questions for 300 subjects of two triples", asked)
	}
}

// Virtuoso cuts at 10,000 rows.
func TestPartsOfVirtuoso(t *testing.T) {
	s := teststores.Virtuoso(t)
	data := slices.DeleteFunc(partsData(10_050), func(x rdfres.Triple) bool { return x.P != "<http://e/p>" })
	c, err := sparql.New(sparql.Endpoint{Query: s.Query, Update: s.Update, GraphStore: s.GraphStore, Username: s.Username, Password: s.Password})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var text []byte
	for _, x := range data {
		text = x.AppendLine(text)
	}
	if err := c.PutGraph(t.Context(), s.Graph, rdfres.NTriples, sparql.Body(text)); err != nil {
		t.Fatal(err)
	}
	got := readInParts(t, sparql.Parts{Client: c, Pattern: "GRAPH <" + s.Graph + "> { ?s ?p ?o } ", Key: "?s", Others: []string{"?p", "?o"}, Limit: 10_000, Confirm: true})
	if !slices.Equal(got, data) {
		lacking := slices.DeleteFunc(slices.Clone(data), func(x rdfres.Triple) bool { return slices.Contains(got, x) })
		t.Fatalf("%d triples of %d; lacking %d, among them %v", len(got), len(data), len(lacking), lacking[:min(3, len(lacking))])
	}
}
