package sparqlsrc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/internal/sparql"
	"github.com/rsbridge/rsbridge/internal/sparql/sparqltest"
	"github.com/rsbridge/rsbridge/internal/teststores"
	"github.com/rsbridge/rsbridge/rdfres"
)

// divided is a graph that each partition cuts in another way: entities of one
// class, of two and of none, below two prefixes and beside them, with blank nodes.
func divided(n int) []rdfres.Triple {
	var ts []rdfres.Triple
	for i := range n {
		at := [...]string{"http://a.example/", "http://b.example/", "http://other.example/"}[i%3]
		s := rdfres.NewIRI(fmt.Sprintf("%se%d", at, i))
		if i%4 != 0 {
			ts = append(ts, rdfres.Triple{S: s, P: rdfType, O: rdfres.NewIRI(fmt.Sprintf("http://a.example/C%d", i%4))})
		}
		if i%8 == 1 {
			ts = append(ts, rdfres.Triple{S: s, P: rdfType, O: "<http://a.example/C2>"})
		}
		for k := range 4 {
			ts = append(ts, rdfres.Triple{S: s, P: rdfres.NewIRI(fmt.Sprintf("http://a.example/p%d", k%2)), O: rdfres.NewLiteral(fmt.Sprint(i, k), "en", "")})
		}
		if i%50 == 0 {
			b := rdfres.NewBlank(fmt.Sprintf("b%d", i))
			ts = append(ts, rdfres.Triple{S: s, P: "<http://a.example/has>", O: b}, rdfres.Triple{S: b, P: "<http://a.example/is>", O: rdfres.NewLiteral(fmt.Sprint(i%100), "", "")})
		}
	}
	return rdfres.SortUnique(ts)
}

// Each strategy gives the same, and is the one that was asked for; those in parts
// get through a row limit, and those in one answer are refused by it.
func TestStrategies(t *testing.T) {
	ts := divided(300)
	all := expected(t, ts, false)
	for _, strategy := range Strategies {
		for _, limit := range []int{0, 100, 137} {
			t.Run(fmt.Sprintf("%s/%d", strategy, limit), func(t *testing.T) {
				st := sparqltest.New(ts...)
				st.RowLimit, st.Relabel, st.Shuffle, st.Table = limit, true, true, true
				cfg, want := Config{Strategy: strategy}, all
				if strategy == "graphs" {
					cfg.Graphs = []string{"*"}
					more := nameTriples(150)
					st.Add("http://g.example/1", more[:100]...)
					st.Add("http://g.example/2", more[50:]...) // some stand in both
					want = expected(t, append(slices.Clone(ts), more...), false)
				}
				s := source(t, st, cfg)
				if limit == 0 {
					s = known(s, st)
				}
				if limit > 0 && slices.Contains(oneAnswer, strategy) {
					if strategy == string(sparql.ReadGraphStore) {
						return // it is no query: nobody limits its rows
					}
					if sc, err := s.Scan(context.Background()); !errors.Is(err, ErrShort) {
						t.Errorf("through a limit of %d: %v, %v", limit, sc, err)
					}
					return
				}
				got, stats := scanAll(t, s)
				diff(t, strategy, got, want)
				if stats.Way != strategy && strategy != "whole" {
					t.Errorf("read by %s", stats.Way)
				}
			})
		}
	}
}

// The answer with the blank nodes, the only one of these strategies that cannot be a
// smaller one, is asked for again when it breaks off; where it always does, its triples
// come with the entities that lead to them.
func TestStrategiesBrokenOff(t *testing.T) {
	ts := divided(300)
	want := expected(t, ts, false)
	for _, strategy := range []string{"predicates", "hash", "batches"} {
		for _, times := range []int{1, 2, 1000} {
			st := sparqltest.New(ts...)
			st.Relabel, st.Shuffle = true, true
			broken := 0
			st.Fault = func(op, body string) *sparqltest.Fault {
				if strings.Contains(body, "isBlank(?s) || isBlank(?o)") && !strings.Contains(body, "COUNT") && broken < times {
					broken++
					return &sparqltest.Fault{CutAfter: 300}
				}
				return nil
			}
			got, stats := scanAll(t, known(source(t, st, Config{Strategy: strategy}), st))
			diff(t, fmt.Sprint(strategy, times), got, want)
			if broken != min(times, tries) || stats.Way != strategy {
				t.Errorf("%s: broken off %d times, read by %s", strategy, broken, stats.Way)
			}
		}
	}
}

// What stands in several graphs comes more than once by some strategies, and
// is described once.
func TestStrategiesOfSeveralGraphs(t *testing.T) {
	ts := slices.DeleteFunc(divided(300), func(x rdfres.Triple) bool { return x.S[0] == '_' || x.O[0] == '_' }) // two graphs cannot share nodes
	want := expected(t, ts, false)
	for _, graphs := range [][]string{{"http://g.example/1", "http://g.example/2"}, {"*"}} {
		for _, strategy := range Strategies[len(oneAnswer):] {
			st := sparqltest.New()
			st.Add("http://g.example/1", ts[:1000]...)
			st.Add("http://g.example/2", ts[500:]...)
			s := known(source(t, st, Config{Graphs: graphs, Strategy: strategy, Select: Select{Prefixes: []string{"http://"}}}), st)
			got, stats := scanAll(t, s)
			diff(t, fmt.Sprint(strategy, graphs), got, want)
			if stats.Way != strategy {
				t.Errorf("%s of %v: read by %s", strategy, graphs, stats.Way)
			}
		}
	}
}

// A way that is for one graph says so where there are several.
func TestStrategyOfOneGraph(t *testing.T) {
	for _, strategy := range []string{"graph-store", "construct"} {
		for _, graphs := range [][]string{{"http://g.example/1", "http://g.example/2"}, {"*"}, nil} {
			st := sparqltest.New()
			st.UnionDefault = graphs == nil
			st.Add("http://g.example/1", nameTriples(5)...)
			st.Add("http://g.example/2", nameTriples(3)...)
			sc, err := source(t, st, Config{Graphs: graphs, Strategy: strategy}).Scan(t.Context())
			if err == nil || !strings.Contains(err.Error(), "so it is for one graph") {
				t.Errorf("%s of %v: %v, %v", strategy, graphs, sc, err)
			}
		}
	}
}

// The same statements in many graphs come once for each graph, and not more often,
// also those of a class: parts cannot tell what is equal from each other.
func TestStrategiesOfManyGraphs(t *testing.T) {
	var ts []rdfres.Triple
	for e := range 20 {
		s := rdfres.NewIRI(fmt.Sprintf("http://example.org/e%d", e))
		ts = append(ts, rdfres.Triple{S: s, P: rdfType, O: "<http://example.org/C>"}, rdfres.Triple{S: s, P: "<http://example.org/p>", O: `"x"`})
	}
	for _, graphs := range [][]string{{"*"}, nil} { // nil: the default graph, which shows all of them
		for _, strategy := range []string{"hash", "graphs", "batches"} {
			if graphs == nil && strategy == "graphs" {
				continue // there is one
			}
			st := sparqltest.New()
			st.RowLimit, st.UnionDefault = 100, graphs == nil
			for g := range 12 {
				st.Add(fmt.Sprintf("http://g.example/%d", g), ts...)
			}
			s := source(t, st, Config{Graphs: graphs, Strategy: strategy})
			got, _ := scanAll(t, s)
			diff(t, fmt.Sprint(strategy, graphs), got, expected(t, ts, false))
		}
	}
}

// A part that fails is asked for again in smaller ones; those that were whole are
// not asked for again.
func TestFailedPart(t *testing.T) {
	ts := divided(300)
	st := sparqltest.New(ts...)
	st.RowLimit = 200
	s := source(t, st, Config{Strategy: "hash"})
	if _, err := s.Capabilities(t.Context()); err != nil {
		t.Fatal(err)
	}
	st.Queries()
	failing := func(q string) bool {
		return strings.HasSuffix(q, `"7")) }`) && strings.Count(q, "STRSTARTS(MD5") == 1 && !strings.Contains(q, "COUNT")
	}
	st.Fault = func(op, body string) *sparqltest.Fault {
		if failing(body) {
			return &sparqltest.Fault{Status: 500, Body: "out of memory"}
		}
		return nil
	}
	got, _ := scanAll(t, s)
	diff(t, "with a part that fails", got, expected(t, ts, false))
	times := map[string]int{}
	for _, q := range st.Queries() {
		if strings.Contains(q, "STRSTARTS(MD5") && !strings.Contains(q, "COUNT") {
			times[q]++
		}
	}
	again, narrower := 0, 0
	for q, n := range times {
		switch {
		case failing(q):
			again += n
		case n > 1:
			t.Errorf("asked %d times: %s", n, q)
		case strings.Contains(q, `, "7`):
			narrower++
		}
	}
	if again < 1 || narrower != 16 {
		t.Errorf("the failed part was asked for %d times, and %d smaller ones in its place, want 16; all: %d", again, narrower, len(times))
	}
}

// What is refused of some predicates is asked for as two halves, one of them as a SELECT
// and then in parts; what was whole is not asked for again.
func TestFailedPredicates(t *testing.T) {
	ts := divided(300)
	st := sparqltest.New(ts...)
	s := known(source(t, st, Config{Strategy: "predicates"}), st)
	const p = "VALUES ?p { <http://a.example/p1> }"
	st.Fault = func(op, q string) *sparqltest.Fault {
		if strings.HasPrefix(q, "CONSTRUCT") && strings.Contains(q, "<http://a.example/p1>") || strings.HasPrefix(q, "SELECT ?s ?p ?o") && strings.Contains(q, p) && !strings.Contains(q, "MD5") {
			return &sparqltest.Fault{Status: 500, Body: "FRVEC: array in for vectored over max vector length"}
		}
		return nil
	}
	got, stats := scanAll(t, s)
	diff(t, "with a predicate that is refused", got, expected(t, ts, false))
	times, parts := map[string]int{}, 0
	for _, q := range st.Queries() {
		switch {
		case strings.Contains(q, "COUNT") || !strings.Contains(q, "VALUES ?p"):
		case strings.Contains(q, "MD5"):
			parts++
		case !strings.Contains(q, "<http://a.example/p1>"):
			times[q]++
		}
	}
	for q, n := range times {
		if n != 1 {
			t.Errorf("asked %d times: %s", n, q)
		}
	}
	if stats.Way != "predicates" || len(times) == 0 || parts == 0 {
		t.Errorf("read by %s; %d bunches, and %d parts of one predicate", stats.Way, len(times), parts)
	}
}

// A Virtuoso is asked by predicates where one graph holds many triples, and in one
// answer where it holds few, or where the predicates do not give what it counts.
func TestManyTriplesOfVirtuoso(t *testing.T) {
	ts := divided(300)
	for _, c := range []struct {
		many  int64
		fault bool
		way   string
	}{{1000, false, "predicates"}, {1000, true, "construct"}, {5000, false, "construct"}} {
		st := sparqltest.New(ts...)
		s := source(t, st, Config{})
		s.many = c.many
		s.SetCapabilities(sparql.Capabilities{Product: "Virtuoso", Readings: []sparql.Reading{sparql.ReadConstruct, sparql.ReadSelectJSON}})
		if c.fault {
			st.Rewrite = func(op, q string, answer []byte) []byte {
				if strings.Contains(q, "GROUP BY") {
					return bytes.ReplaceAll(answer, []byte("http://a.example/p0"), []byte("http://a.example/p2"))
				}
				return answer
			}
		}
		got, stats := scanAll(t, s)
		diff(t, c.way, got, expected(t, ts, false))
		if stats.Way != c.way {
			t.Errorf("%d triples, many are %d: read by %s, want %s", len(ts), c.many, stats.Way, c.way)
		}
	}
}

// A store that leaves out rows is read again where its count tells so, in smaller
// parts; when it leaves out rows of those too, the scan ends and nothing is changed.
func TestRowsLeftOut(t *testing.T) {
	ts := divided(300)
	want := expected(t, ts, false)
	for _, strategy := range []string{"predicates", "hash"} {
		for _, times := range []int{1, 1e6} {
			t.Run(fmt.Sprint(strategy, times), func(t *testing.T) {
				st := sparqltest.New(ts...)
				s := known(source(t, st, Config{Strategy: strategy}), st)
				left, parts := 0, 0
				st.Rewrite = func(op, query string, answer []byte) []byte {
					if !strings.Contains(query, "FILTER(!isBlank(?o))") || strings.Contains(query, "COUNT") {
						return answer
					}
					parts++
					lines := bytes.SplitAfter(answer, []byte("\n"))
					if left == times || len(lines) < 4 {
						return answer
					}
					left++
					return bytes.Join(append(lines[:1:1], lines[2:]...), nil)
				}
				if times > 1 {
					if sc, err := s.Scan(t.Context()); !errors.Is(err, ErrShort) {
						t.Errorf("a row is left out of each part: %v, %v", sc, err)
					}
					return
				}
				got, stats := scanAll(t, s)
				diff(t, "with a row that came only when asked again", got, want)
				if left != 1 || stats.Way != strategy {
					t.Errorf("rows were left out %d times in %d parts; read by %s", left, parts, stats.Way)
				}
			})
		}
	}
}

// Batches grow where the store answers quickly, as far as it was seen to take them,
// and never again to a size that it refused.
func TestBatchesAdapt(t *testing.T) {
	ts := divided(1500)
	st := sparqltest.New(ts...)
	st.TooMany = 120
	s := source(t, st, Config{Strategy: "batches", BatchSize: 20})
	s.SetCapabilities(sparql.Capabilities{Readings: []sparql.Reading{sparql.ReadSelectTSV}, ValuesLimit: 5000})
	s.batch.most = 5000
	got, _ := scanAll(t, s)
	diff(t, "batches", got, expected(t, ts, false))
	refused, largest := 0, 0
	for _, q := range st.Queries() {
		if _, values, ok := strings.Cut(q, "VALUES ?s { "); ok {
			values, _, _ = strings.Cut(values, " }")
			if n := len(strings.Fields(values)); n > st.TooMany {
				refused++
			} else {
				largest = max(largest, n)
			}
		}
	}
	if refused > 2 || largest != 80 {
		t.Errorf("%d batches were refused, the largest that passed had %d entities; want at most 2, and 80", refused, largest)
	}
}

// The real stores give the same in each way, also one that cuts its answers
// (Virtuoso as it comes: 10,000 rows).
func TestStrategiesOfStores(t *testing.T) {
	if testing.Short() {
		t.Skip("forty scans of real stores: they run without -short, and TestStrategies has the same ways in short")
	}
	ts := divided(3000)
	want := expected(t, ts, false)
	for name, get := range map[string]func(testing.TB) teststores.Server{
		"oxigraph": teststores.Oxigraph, "fuseki": teststores.Fuseki, "rdf4j": teststores.RDF4J, "virtuoso": teststores.Virtuoso,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := get(t)
			put := func(graph string, ts []rdfres.Triple) {
				var b bytes.Buffer
				for _, x := range ts {
					fmt.Fprintf(&b, "%s %s %s .\n", x.S, x.P, x.O)
				}
				srv.Put(t, graph, "application/n-triples", &b)
			}
			put(srv.Graph, ts)
			put(srv.Graph+"/2", slices.DeleteFunc(slices.Clone(ts[:100]), func(t rdfres.Triple) bool { return t.S[0] == '_' || t.O[0] == '_' }))
			t.Cleanup(func() { srv.Clear(t, srv.Graph+"/2") })
			client, err := sparql.New(sparql.Endpoint{Name: name, Query: srv.Query, Update: srv.Update, GraphStore: srv.GraphStore, Username: srv.Username, Password: srv.Password})
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			var caps sparql.Capabilities
			for i, strategy := range slices.Concat(Strategies, []string{"hash"}) { // also of two graphs
				cfg := Config{Name: name, Graphs: []string{srv.Graph}, Strategy: strategy, TempDir: t.TempDir()}
				if strategy == "graphs" || i == len(Strategies) {
					cfg.Graphs = append(cfg.Graphs, srv.Graph+"/2")
				}
				s, err := New(client, cfg)
				if err != nil {
					t.Fatal(err)
				}
				if caps.Product != "" {
					s.SetCapabilities(caps) // probed once
				} else if caps, err = s.Capabilities(t.Context()); err != nil {
					t.Fatal(err)
				}
				sc, err := s.Scan(t.Context())
				if slices.Contains(oneAnswer, strategy) && err != nil {
					if can := slices.Contains(caps.Readings, sparql.Reading(strategy)); can && caps.RowLimit == 0 || strategy == "whole" && caps.RowLimit == 0 {
						t.Errorf("%s: %v", strategy, err)
					} else {
						t.Logf("%s: %v", strategy, err)
					}
					continue
				}
				if err != nil {
					t.Errorf("%s: %v", strategy, err)
					continue
				}
				got, stats := read(t, sc)
				diff(t, strategy, got, want)
				t.Logf("%s: by %s, %d requests", strategy, stats.Way, stats.Requests)
				if stats.Way != strategy && strategy != "whole" {
					t.Errorf("%s: read by %s", strategy, stats.Way)
				}
				if strategy == "select-binary" && stats.Requests != 1 {
					t.Errorf("%s: %d requests, want none for a count: the mark should come last", strategy, stats.Requests)
				}
			}
		})
	}
}

// Virtuoso plans with what it saw of a graph when it was first asked about it: one
// that was small then is scanned, and each row is looked up in the other pattern.
// Where that pattern is a DISTINCT of its own, Virtuoso leaves rows out, of their
// count too.
func TestGraphThatGrew(t *testing.T) {
	srv := teststores.Virtuoso(t)
	client, err := sparql.New(sparql.Endpoint{Query: srv.Query, Username: srv.Username, Password: srv.Password})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	s, err := New(client, Config{Graphs: []string{srv.Graph}, Strategy: "batches", TempDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	s.SetCapabilities(sparql.Capabilities{Product: "Virtuoso", Readings: []sparql.Reading{sparql.ReadSelectJSON}, RowLimit: 10_000})
	for _, n := range []int{4, 3000} {
		ts := divided(n)
		var text []byte
		for _, x := range ts {
			text = x.AppendLine(text)
		}
		srv.Put(t, "", "application/n-triples", bytes.NewReader(text))
		got, _ := scanAll(t, s)
		diff(t, fmt.Sprintf("%d entities", n), got, expected(t, ts, false))
	}
}

// What RDF4J's binary results cannot give, or not well, is read as JSON: IRIs of
// which each has a namespace of its own, triples as terms.
func TestWhatTableCannotGive(t *testing.T) {
	readings := []sparql.Reading{sparql.ReadSelectBinary, sparql.ReadSelectJSON}
	const n = 1100
	var entities []rdfres.Triple
	graphs := sparqltest.New()
	for i := range n {
		s := rdfres.NewIRI(fmt.Sprintf("http://example.org/%d#it", i))
		var own []rdfres.Triple
		for j := range 17 { // as a sample they are few enough
			own = append(own, rdfres.Triple{S: s, P: "<http://example.org/p>", O: rdfres.NewLiteral(fmt.Sprint(j), "", "")})
		}
		entities = append(entities, own...)
		graphs.Add(s.IRI(), rdfres.Triple{S: "<http://example.org/s>", P: "<http://example.org/p>", O: rdfres.NewLiteral(fmt.Sprint(i), "", "")})
	}
	for _, c := range []struct {
		name string
		st   *sparqltest.Store
		cfg  Config
	}{
		{"batches", sparqltest.New(entities...), Config{Strategy: "batches"}},
		{"graphs", graphs, Config{Describe: "graph"}},
		{"graphs one by one", graphs, Config{Describe: "graph", Strategy: "batches"}},
	} {
		c.st.Table = true
		s := source(t, c.st, c.cfg)
		s.SetCapabilities(sparql.Capabilities{Readings: readings, Speed: map[sparql.Reading]float64{sparql.ReadSelectBinary: 1e9}})
		sc, err := s.Scan(t.Context())
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if got, stats := read(t, sc); len(got) != n {
			t.Errorf("%s: %d of %d, by %s", c.name, len(got), n, stats.Way)
		}
	}
}

// A way that is asked for is taken also where the probe of a scan had no need to
// try it, as of an RDF4J; one that the store has not is refused.
func TestWayNotProbed(t *testing.T) {
	ts := divided(10)
	for _, without := range []bool{false, true} {
		st := sparqltest.New(ts...)
		st.NoTSV = without
		s := source(t, st, Config{Strategy: "select-tsv"})
		s.SetCapabilities(sparql.Capabilities{Readings: []sparql.Reading{sparql.ReadSelectBinary, sparql.ReadSelectJSON}})
		if without {
			if _, err := s.Scan(t.Context()); err == nil {
				t.Error("a store without TSV was read by it")
			}
			continue
		}
		got, stats := scanAll(t, s)
		diff(t, "select-tsv", got, expected(t, ts, false))
		if stats.Way != "select-tsv" {
			t.Errorf("read by %s", stats.Way)
		}
	}
}

// A store that cuts its answers and takes no VALUES is read by the hash of the IRIs.
func TestNoValues(t *testing.T) {
	st := sparqltest.New(divided(60)...)
	st.RowLimit = 100
	want, _ := scanAll(t, source(t, sparqltest.New(divided(60)...), Config{}))
	st.Fault = func(op, body string) *sparqltest.Fault {
		if strings.Contains(body, "VALUES") {
			return &sparqltest.Fault{Status: http.StatusBadRequest, Body: "what is VALUES?"}
		}
		return nil
	}
	got, stats := scanAll(t, source(t, st, Config{}))
	diff(t, "without VALUES", got, want)
	if stats.Way != "hash" {
		t.Errorf("read by %s", stats.Way)
	}
}

// TestMovingStore: a store that is written to between an answer and its count is asked
// again, and batches do not become smaller for ever.
func TestMovingStore(t *testing.T) {
	var ts []rdfres.Triple
	var entities []string
	for i := range 50 {
		e := fmt.Sprintf("http://example.org/e%d", i)
		entities = append(entities, e)
		for k := range 2 { // 100 rows, which may be a limit
			ts = append(ts, rdfres.Triple{S: rdfres.NewIRI(e), P: "<http://example.org/p>", O: rdfres.NewLiteral(fmt.Sprint(k), "", "")})
		}
	}
	st := sparqltest.New(ts...)
	s := known(source(t, st, Config{}), st)
	size := s.batch.get()
	moves := 3
	st.After = func(op, body string) {
		if strings.HasPrefix(body, "SELECT ?s ?p ?o") && moves > 0 {
			moves--
			o := rdfres.NewLiteral(fmt.Sprint("more ", moves), "", "")
			st.Add("", rdfres.Triple{S: rdfres.NewIRI(entities[0]), P: "<http://example.org/p>", O: o})
		}
	}
	ds, err := s.Describe(t.Context(), entities)
	if err != nil || len(ds) != len(entities) {
		t.Fatalf("%d are described: %v", len(ds), err)
	}
	if s.batch.get() != size {
		t.Errorf("batches of %d, not %d", s.batch.get(), size)
	}
}
