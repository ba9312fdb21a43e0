package sparqlsrc

import (
	"bytes"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rsbridge/rsbridge/internal/embedstore"
	"github.com/rsbridge/rsbridge/internal/inproc"
	"github.com/rsbridge/rsbridge/internal/sparql"
	"github.com/rsbridge/rsbridge/internal/teststores"
	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/sparqlsrc/dumpfile"
)

func embedded(t testing.TB) *sparql.Client {
	t.Helper()
	store, err := embedstore.Open(t.TempDir(), embedstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	client, err := sparql.New(sparql.Endpoint{
		Name: "embedded", Query: "http://embedded/query", Update: "http://embedded/update", GraphStore: "http://embedded/data",
		Transport: store.Transport(), RetryPause: time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close(); store.Close() })
	return client
}

// asGraphs are the descriptions of graphs, by rdfres in memory.
func asGraphs(t testing.TB, graphs map[string][]rdfres.Triple) map[string][]rdfres.Triple {
	t.Helper()
	out := map[string][]rdfres.Triple{}
	for g, ts := range graphs {
		named, err := nameOwn(&Config{MaxDescriptionTriples: 1e6}, g, ts)
		if err != nil {
			t.Fatal(err)
		}
		out[g] = named
	}
	return out
}

func nquads(graphs map[string][]rdfres.Triple) []byte {
	var b bytes.Buffer
	for g, ts := range graphs {
		for _, x := range ts {
			fmt.Fprintf(&b, "%s %s %s <%s> .\n", x.S, x.P, x.O, g)
		}
	}
	return b.Bytes()
}

// TestGraphsAreEntities: each named graph is described whole, by every way of
// reading, from a store and from a dump.
func TestGraphsAreEntities(t *testing.T) {
	client, ctx := embedded(t), t.Context()
	graphs := map[string][]rdfres.Triple{}
	rng := rand.New(rand.NewPCG(3, 4))
	for i := range 12 {
		g := fmt.Sprintf("http://g.example/%d", i)
		graphs[g] = randomGraph(rng, 5+rng.IntN(60))
		if err := client.PutGraph(ctx, g, rdfres.NTriples, ntriples(graphs[g])); err != nil {
			t.Fatal(err)
		}
	}
	other := []rdfres.Triple{{S: "<http://example.org/never>", P: "<http://example.org/p>", O: `"own"`}}
	for _, g := range []string{"", "urn:rsbridge:state", "urn:rsbridge:probe:x"} {
		if err := client.PutGraph(ctx, g, rdfres.NTriples, ntriples(other)); err != nil {
			t.Fatal(err)
		}
	}
	want := asGraphs(t, graphs)
	ofClass := maps.Clone(want)
	maps.DeleteFunc(ofClass, func(_ string, ts []rdfres.Triple) bool {
		return !slices.ContainsFunc(ts, func(x rdfres.Triple) bool {
			return x.S.Kind() == rdfres.KindIRI && x.P == rdfType && x.O == "<http://example.org/C1>"
		})
	})
	some := map[string][]rdfres.Triple{"http://g.example/3": want["http://g.example/3"], "http://g.example/11": want["http://g.example/11"]}
	for name, tc := range map[string]struct {
		cfg  Config
		want map[string][]rdfres.Triple
		way  string
	}{
		"whole":   {Config{}, want, "n-quads"},
		"all":     {Config{Graphs: []string{"*"}, Strategy: "whole"}, want, ""},
		"batches": {Config{Strategy: "batches", BatchSize: 5}, want, "batches"},
		"some":    {Config{Graphs: []string{"http://g.example/3", "http://g.example/11", "http://g.example/none"}}, some, ""},
		"prefix":  {Config{Select: Select{Prefixes: []string{"http://g.example/3"}}}, map[string][]rdfres.Triple{"http://g.example/3": some["http://g.example/3"]}, ""},
		"query":   {Config{Select: Select{Query: "SELECT ?entity WHERE { VALUES ?entity { <http://g.example/3> <http://g.example/11> <http://g.example/none> } }"}}, some, ""},
		"class":   {Config{Select: Select{Classes: []string{"http://example.org/C1"}}}, ofClass, ""},
	} {
		tc.cfg.Describe, tc.cfg.TempDir = "graph", t.TempDir()
		s, err := New(client, tc.cfg)
		if err != nil {
			t.Fatal(err)
		}
		if tc.way == "n-quads" {
			s.SetCapabilities(sparql.Capabilities{Readings: []sparql.Reading{sparql.ReadSelectTSV}}) // as if SELECT were slow
		}
		got, st := scanAll(t, s)
		diff(t, name, got, tc.want)
		all := len(tc.cfg.Graphs) == 0 || tc.cfg.Graphs[0] == "*"
		if tc.way != "" && (st.Covered != st.Triples || !strings.HasPrefix(st.Way, tc.way)) || tc.cfg.Select.isZero() && st.LeftOut != 0 {
			t.Errorf("%s: %+v", name, st)
		}
		rest, err := s.Remainder(ctx)
		if err != nil || all && fmt.Sprint(rest) != "1 triple in 1 graph: the default graph (1)" || !all && rest.Graphs != 11 {
			t.Errorf("%s: outside of it are %v, %v", name, rest, err)
		}
		ds, err := s.Describe(ctx, []string{"http://g.example/3", "http://g.example/4", "http://g.example/none", "urn:rsbridge:state"})
		if err != nil {
			t.Fatal(err)
		}
		if len(ds) != 4 {
			t.Errorf("%s: %d descriptions", name, len(ds))
		}
		for _, d := range ds {
			if !slices.Equal(d.Triples, tc.want[d.Entity]) {
				t.Errorf("%s: describe %s:\n got %v\nwant %v", name, d.Entity, d.Triples, tc.want[d.Entity])
			}
		}
	}
	dir := t.TempDir()
	quads := append(nquads(graphs), "<http://d.example/> <http://p.example/> \"default\" .\n<http://d.example/> <http://p.example/> \"blank\" _:g .\n<http://d.example/> <http://p.example/> \"own\" <urn:rsbridge:state> .\n"...)
	put(t, dir+"/a.nq.gz", pack(t, "gzip", quads), 5)
	got, err := dumps(t, Config{Describe: "graph"}, DumpOptions{Series: dumpfile.Series{Patterns: []string{dir + "/*"}}}).Scan(ctx, dumpfile.File{}, false)
	if err != nil {
		t.Fatal(err)
	}
	diff(t, "dump", readScan(t, got.Scan), want)
	if st := got.Stats(); st.LeftOut != 0 || st.Own != 1 || st.Covered != st.Triples {
		t.Errorf("dump: %+v", st)
	}
	if rest := fmt.Sprint(got.Remainder()); rest != "2 triples in 2 graphs: the default graph (1), _:g (1)" {
		t.Errorf("outside of the dump's graphs: %s", rest)
	}
}

// TestGraphTooLarge: a graph beyond the bound fails by its name, the others do not.
func TestGraphTooLarge(t *testing.T) {
	teststores.Sequential(t) // scans as those of TestGraphsAreEntities, of 50,000 triples
	client := embedded(t)
	for g, n := range map[string]int{"http://g.example/small": 5, "http://g.example/large": 50} {
		if err := client.PutGraph(t.Context(), g, rdfres.NTriples, ntriples(nameTriples(n))); err != nil {
			t.Fatal(err)
		}
	}
	s, err := New(client, Config{Describe: "graph", MaxDescriptionTriples: 20, TempDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	sc, err := s.Scan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got, _ := read(t, sc)
	if len(got) != 1 || !sc.IsFailed("http://g.example/large") || !strings.Contains(fmt.Sprint(sc.Failed()), "20 triples (max_description_triples)") {
		t.Errorf("%d entities; failed: %v", len(got), sc.Failed())
	}
	// Nor do they where it is read alone, and is too deep.
	one := nameTriples(graphRows)
	last := rdfres.Term("<http://example.org/one>")
	for i := range 20 {
		next := rdfres.Term(fmt.Sprintf("_:b%d", i))
		one, last = append(one, rdfres.Triple{S: last, P: "<http://example.org/p>", O: next}), next
	}
	if err := client.PutGraph(t.Context(), "http://g.example/large", rdfres.NTriples, ntriples(one)); err != nil {
		t.Fatal(err)
	}
	if s, err = New(client, Config{Describe: "graph", Strategy: "batches", MaxDepth: 5, TempDir: t.TempDir()}); err != nil {
		t.Fatal(err)
	}
	if sc, err = s.Scan(t.Context()); err != nil {
		t.Fatal(err)
	}
	got, _ = read(t, sc)
	if len(got) != 1 || !sc.IsFailed("http://g.example/large") {
		t.Errorf("graph by graph: %d entities; failed: %v", len(got), sc.Failed())
	}
}

// TestGraphsOfStores: the real stores give each graph as it is, also where one is
// longer than what a store gives in one answer.
func TestGraphsOfStores(t *testing.T) {
	if testing.Short() {
		t.Skip("scans of real stores, of which the race detector sees nothing else than in TestGraphsAreEntities; they run without -short")
	}
	for name, get := range map[string]func(testing.TB) teststores.Server{
		"oxigraph": teststores.Oxigraph, "fuseki": teststores.Fuseki, "rdf4j": teststores.RDF4J, "virtuoso": teststores.Virtuoso,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := get(t)
			graphs := map[string][]rdfres.Triple{}
			rng := rand.New(rand.NewPCG(5, 6))
			var list []string
			for i := range 6 {
				g := fmt.Sprintf("%s/%d", srv.Graph, i)
				graphs[g] = randomGraph(rng, 40)
				if i == 5 {
					graphs[g] = append(nameTriples(5_500), rdfres.Triple{S: "<http://example.org/e1>", P: "<http://example.org/has>", O: "_:b"}, rdfres.Triple{S: "_:b", P: "<http://example.org/is>", O: `"a part"`})
				}
				var b bytes.Buffer
				for _, x := range graphs[g] {
					fmt.Fprintf(&b, "%s %s %s .\n", x.S, x.P, x.O)
				}
				srv.Put(t, g, "application/n-triples", &b)
				t.Cleanup(func() { srv.Clear(t, g) })
				list = append(list, g)
			}
			client, err := sparql.New(sparql.Endpoint{Name: name, Query: srv.Query, Update: srv.Update, GraphStore: srv.GraphStore, Username: srv.Username, Password: srv.Password})
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			for _, strategy := range []string{"", "batches"} {
				s, err := New(client, Config{Name: name, Describe: "graph", Graphs: append(list, srv.Graph+"/none"), Strategy: strategy, TempDir: t.TempDir()})
				if err != nil {
					t.Fatal(err)
				}
				got, st := scanAll(t, s)
				diff(t, name+" "+st.Way, got, asGraphs(t, graphs))
				t.Logf("%q: %+v", strategy, st)
				ds, err := s.Describe(t.Context(), []string{list[0], list[5], srv.Graph + "/none"})
				if err != nil {
					t.Fatal(err)
				}
				for _, d := range ds {
					if !slices.Equal(d.Triples, got[d.Entity]) {
						t.Errorf("describe %s differs", d.Entity)
					}
				}
			}
			if speed := speedOf(t, client); speed > 0 {
				t.Logf("n-quads: %.0f statements/s", speed)
			} else if name == "oxigraph" || name == "fuseki" {
				t.Error("no N-Quads")
			}
		})
	}
}

// A store so slow that it does not give enough statements in time is as fast as it
// was; one that stops before the first gives none.
func TestSlowQuads(t *testing.T) {
	for _, n := range []int{500, 0} {
		synctest.Test(t, func(t *testing.T) {
			store := inproc.Transport{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/n-quads")
				for range n {
					fmt.Fprintln(w, "<http://e.example/s> <http://e.example/p> \"1\" <http://e.example/g> .")
				}
				<-r.Context().Done()
			})}
			client, err := sparql.New(sparql.Endpoint{Query: "http://store.example/query", GraphStore: "http://store.example/data", Transport: store})
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			if speed := speedOf(t, client); speed != float64(n)/quadTime.Seconds() {
				t.Errorf("%d statements in %s: %.0f a second", n, quadTime, speed)
			}
		})
	}
}

func speedOf(t testing.TB, c *sparql.Client) float64 {
	s, err := New(c, Config{Describe: "graph"})
	if err != nil {
		t.Fatal(err)
	}
	return s.quadSpeed(t.Context())
}

// TestOwnGraphsInUnion: where the default graph shows all graphs, the queries of the user's
// are asked over all but those of rsbridge; where nothing can leave them out, that is told.
func TestOwnGraphsInUnion(t *testing.T) {
	store, err := embedstore.Open(t.TempDir(), embedstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	straight := clientOf(t, sparql.Endpoint{Update: "http://s/update", Transport: store.Transport()})
	const p0 = "<http://example.org/p0>"
	own := []rdfres.Triple{{S: "<urn:rsbridge:mirror:1>", P: p0, O: "<http://example.org/e1>"}, {S: "<http://example.org/e1>", P: p0, O: `"own"`}}
	data := []rdfres.Triple{{S: "<http://example.org/e1>", P: p0, O: `"1"`}}
	lone := []rdfres.Triple{{S: "<http://example.org/e2>", P: p0, O: `"2"`}}
	for _, c := range []struct {
		world world
		want  string
		told  bool
	}{
		{world{stateGraph: own, "http://g.example/1": data}, `map[http://example.org/e1:["1"]]`, false},
		{world{stateGraph: own}, `map[]`, false},
		{world{"http://g.example/1": data}, `map[http://example.org/e1:["1"]]`, false},
		{world{stateGraph: own, "http://g.example/1": data, "": lone}, `map[http://example.org/e1:["1" "own"] http://example.org/e2:["2"]]`, true},
	} {
		if err := c.world.load(t.Context(), straight, true); err != nil {
			t.Fatal(err)
		}
		for _, graphs := range [][]string{nil, {"*"}} {
			var log bytes.Buffer
			s, err := New(clientOf(t, sparql.Endpoint{Transport: inproc.Transport{Handler: &strange{habits: habits{Server: "Virtuoso/07.20"}, store: store.Handler(), times: map[string]int{}}}}), Config{
				Graphs: graphs, Select: Select{Query: byP0}, Describe: "CONSTRUCT { ?entity ?p ?o . ?entity <http://example.org/of> ?s } WHERE { { ?entity ?p ?o } UNION { ?s ?q ?entity } }",
				TempDir: t.TempDir(), Logger: slog.New(slog.NewTextHandler(&log, nil)),
			})
			if err != nil {
				t.Fatal(err)
			}
			all, err := allOf(t, s)
			if err != nil {
				t.Fatal(err)
			}
			got := map[string][]rdfres.Term{}
			for e, ts := range all {
				for _, x := range ts {
					got[e] = append(got[e], x.O)
				}
				slices.Sort(got[e])
			}
			if told := strings.Contains(log.String(), "asked over rsbridge's own graphs too"); fmt.Sprint(got) != c.want || told != c.told {
				t.Errorf("%v, graphs %q: %v (told %v), want %s\n%s", slices.Sorted(maps.Keys(c.world)), graphs, got, told, c.want, log.String())
			}
		}
	}
}
