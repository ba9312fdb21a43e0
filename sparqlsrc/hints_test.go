package sparqlsrc

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/internal/sparql"
	"github.com/rsbridge/rsbridge/internal/sparql/sparqltest"
	"github.com/rsbridge/rsbridge/internal/teststores"
	"github.com/rsbridge/rsbridge/rdfres"
)

const hinted = `<http://e.example/old> <http://purl.org/dc/terms/modified> "2026-01-01T00:00:00Z"^^<http://www.w3.org/2001/XMLSchema#dateTime> .
<http://e.example/new> <http://purl.org/dc/terms/modified> "2026-03-05T12:00:00Z"^^<http://www.w3.org/2001/XMLSchema#dateTime> .
<http://e.example/west> <http://purl.org/dc/terms/modified> "2026-03-04T23:00:00-14:00"^^<http://www.w3.org/2001/XMLSchema#dateTime> .
<http://e.example/day> <http://purl.org/dc/terms/modified> "2026-03-05"^^<http://www.w3.org/2001/XMLSchema#date> .
<http://e.example/text> <http://purl.org/dc/terms/modified> "2026-03-05T12:00:00Z" .
<http://e.example/textwest> <http://purl.org/dc/terms/modified> "2026-03-05T01:00:00-08:00" .
<http://e.example/zoned> <http://purl.org/dc/terms/modified> "2026-03-05-05:00"^^<http://www.w3.org/2001/XMLSchema#date> .
<http://e.example/blank> <http://purl.org/dc/terms/modified> "2026-03-05 12:00:00" .
<http://e.example/year> <http://purl.org/dc/terms/modified> "2025" .
<http://e.example/issued> <http://purl.org/dc/terms/issued> "2026-03-06T12:00:00Z"^^<http://www.w3.org/2001/XMLSchema#dateTime> .
<http://e.example/none> <http://e.example/p> "x" .
<http://e.example/a/../dots> <http://e.example/p> "x" .
<http://e.example/a/../dots> <http://e.example/part> _:d .
_:d <http://e.example/p> "of another blank node" .
<http://e.example/old> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://e.example/C> .
<http://e.example/new> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://e.example/C> .
<http://e.example/new> <http://e.example/part> _:b .
_:b <http://e.example/p> "of a blank node" .
`

// checkHints asks a store that holds hinted, in a graph of the test.
func checkHints(t *testing.T, client *sparql.Client, graph string) {
	t.Helper()
	s, err := New(client, Config{Name: "hints", Graphs: []string{graph}, TempDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	since := time.Date(2026, 3, 5, 6, 0, 0, 0, time.UTC)
	var got []string
	add := func(e string) error {
		got = append(got, strings.TrimPrefix(e, "http://e.example/"))
		return nil
	}
	want := func(what, names string, err error) {
		t.Helper()
		slices.Sort(got)
		if text := strings.Join(slices.Compact(got), " "); text != names || err != nil {
			t.Errorf("%s: %q, want %q (%v)", what, text, names, err)
		}
		got = nil
	}
	err = s.ModifiedSince(ctx, []string{"http://purl.org/dc/terms/modified"}, since, add)
	want("modified", "blank day new text textwest west zoned", err)
	err = s.ModifiedSince(ctx, []string{"http://purl.org/dc/terms/modified", "http://purl.org/dc/terms/issued"}, since.Add(20*time.Hour), add)
	want("two properties", "issued", err)
	err = s.NamedSince(ctx, "SELECT ?x ?entity WHERE { GRAPH <"+graph+"> { ?entity <http://purl.org/dc/terms/issued> ?x FILTER(?x >= ?since) } }", since, add)
	want("query", "issued", err)
	parts, err := s.Partitions(ctx, ByClass)
	if p := parts["http://e.example/C"]; err != nil || len(parts) != 1 || p.Entities != 2 {
		t.Errorf("classes: %v %v", parts, err)
	}
	err = s.OfPartition(ctx, ByClass, "http://e.example/C", add)
	want("of a class", "new old", err)
	graphs, err := s.Partitions(ctx, ByGraph)
	if p := graphs[graph]; err != nil || len(graphs) != 1 || p.Entities != 14 {
		t.Errorf("graphs: %v %v", graphs, err)
	}
	err = s.OfPartition(ctx, ByGraph, graph, add)
	want("of a graph", "a/../dots blank day issued new none old text textwest west year zoned", err)
	named, err := s.Named()
	if err != nil {
		t.Fatal(err)
	}
	defer named.Close()
	for _, e := range []string{"new", "old", "new", "gone", "a/../dots"} {
		if err := named.Add("http://e.example/" + e); err != nil {
			t.Fatal(err)
		}
	}
	triples := map[string]int{}
	for d, err := range named.Descriptions(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		if _, twice := triples[d.Entity]; twice {
			t.Errorf("%s came twice", d.Entity)
		}
		triples[d.Entity] = len(d.Triples)
	}
	if fmt.Sprint(triples) != "map[http://e.example/a/../dots:3 http://e.example/gone:0 http://e.example/new:4 http://e.example/old:2]" {
		t.Errorf("described: %v", triples)
	}
}

func TestHintsEmbedded(t *testing.T) {
	client := embedded(t)
	if err := client.PutGraph(t.Context(), "http://g.example/", rdfres.NTriples, sparql.Body([]byte(hinted))); err != nil {
		t.Fatal(err)
	}
	checkHints(t, client, "http://g.example/")
}

func TestHintsOfStores(t *testing.T) {
	for name, get := range map[string]func(testing.TB) teststores.Server{
		"oxigraph": teststores.Oxigraph, "fuseki": teststores.Fuseki, "rdf4j": teststores.RDF4J, "virtuoso": teststores.Virtuoso,
	} {
		t.Run(name, func(t *testing.T) {
			srv := get(t)
			srv.Put(t, "", "application/n-triples", strings.NewReader(hinted))
			client, err := sparql.New(sparql.Endpoint{Name: name, Query: srv.Query, Update: srv.Update, GraphStore: srv.GraphStore, Username: srv.Username, Password: srv.Password})
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			checkHints(t, client, srv.Graph)
		})
	}
}

// TestRoundCounts: a number of rows that looks like a limit is counted, and is
// wrong only if there are more.
func TestRoundCounts(t *testing.T) {
	client := embedded(t)
	var data strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&data, "<http://e.example/%d> a <http://e.example/C%d> .\n", i, i)
	}
	if err := client.PutGraph(t.Context(), "http://g.example/", rdfres.Turtle, sparql.Body([]byte(data.String()))); err != nil {
		t.Fatal(err)
	}
	s, err := New(client, Config{Name: "hints", Graphs: []string{"http://g.example/"}, TempDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if parts, err := s.Partitions(t.Context(), ByClass); err != nil || len(parts) != 2000 {
		t.Errorf("%d classes: %v", len(parts), err)
	}
	st := sparqltest.New(nameTriples(15_100)...)
	for _, st.RowLimit = range []int{15_000, 12_345} { // more than the probe looks at
		err = source(t, st, Config{}).NamedSince(t.Context(), "SELECT ?entity { ?entity <http://example.org/name> ?n }", time.Time{}, func(string) error { return nil })
		if !errors.Is(err, ErrShort) {
			t.Errorf("%d rows of more: %v", st.RowLimit, err)
		}
	}
}

// That a store cuts its answers is known of it although the probe has not seen the limit
// of this form of query, or any.
func TestLimitNotProbed(t *testing.T) {
	st := sparqltest.New(nameTriples(1500)...)
	selects, others := []sparql.Reading{sparql.ReadSelectTSV}, []sparql.Reading{sparql.ReadGraphStore}
	for name, c := range map[string]struct {
		caps  sparql.Capabilities
		limit int
		scan  string // by this strategy before, which fails
	}{
		"another form has a smaller one":    {sparql.Capabilities{Readings: selects, Sample: 10_001, RowLimit: 7}, 137, ""},
		"no SELECT was answered":            {sparql.Capabilities{Readings: others, Sample: 10_001}, 137, ""},
		"a scan has met it":                 {sparql.Capabilities{Readings: selects, Sample: 10_001}, 137, "select-tsv"},
		"a scan has met it, a round number": {sparql.Capabilities{Readings: selects, Sample: 10_001}, 500, "select-tsv"},
	} {
		st.RowLimit = c.limit
		s := source(t, st, Config{Strategy: c.scan})
		s.SetCapabilities(c.caps)
		if c.scan != "" {
			if _, err := s.Scan(t.Context()); !errors.Is(err, ErrShort) {
				t.Fatalf("%s: the scan: %v", name, err)
			}
		}
		named := 0
		err := s.NamedSince(t.Context(), "SELECT ?entity { ?entity <http://example.org/name> ?n }", time.Time{}, func(string) error { named++; return nil })
		if !errors.Is(err, ErrShort) {
			t.Errorf("%s: %d rows of many more: %v", name, named, err)
		}
	}
}

// An answer that is longer than any before it is counted: a limit of the store may be
// longer than the sample of the probe, and no round number.
func TestLongBatches(t *testing.T) {
	const n, each, limit = 8000, 4, 12_345
	var ts []rdfres.Triple
	var entities []string
	for i := range n {
		e := fmt.Sprintf("http://e.example/%d", i)
		entities = append(entities, e)
		for j := range each {
			ts = append(ts, rdfres.Triple{S: rdfres.NewIRI(e), P: "<http://e.example/p>", O: rdfres.NewLiteral(fmt.Sprint(j), "", "")})
		}
	}
	st := sparqltest.New(ts...)
	st.RowLimit = limit
	s := source(t, st, Config{})
	ds, err := s.Describe(t.Context(), entities)
	if err != nil || len(ds) != n {
		t.Fatal(len(ds), err)
	}
	for _, d := range ds {
		if len(d.Triples) != each {
			t.Fatalf("%s has %d triples of %d", d.Entity, len(d.Triples), each)
		}
	}
}

// TestWithSince: only the variable is replaced.
func TestWithSince(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	got, err := withSince("SELECT ?s { ?s <http://e.example/?since> ?t, \"?since\" FILTER(?t > $since && ?sinceThen) } # ?since", at)
	want := "SELECT ?s { ?s <http://e.example/?since> ?t, \"?since\" FILTER(?t > \"2026-01-02T03:04:05Z\"^^<http://www.w3.org/2001/XMLSchema#dateTime> && ?sinceThen) } # ?since"
	if err != nil || got != want {
		t.Errorf("%s %v", got, err)
	}
	if _, err := withSince("CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }", at); err == nil {
		t.Error("a CONSTRUCT passes")
	}
}
