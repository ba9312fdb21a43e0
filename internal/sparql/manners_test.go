package sparql_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/rsbridge/rsbridge/internal/inproc"
	"github.com/rsbridge/rsbridge/internal/sparql"
	"github.com/rsbridge/rsbridge/internal/sparql/sparqltest"
	"github.com/rsbridge/rsbridge/internal/teststores"
	"github.com/rsbridge/rsbridge/rdfres"
)

// TestExamine asks real stores; what DESCRIBE gives differs between them.
func TestExamine(t *testing.T) {
	for _, c := range []struct {
		name   string
		server func(testing.TB) teststores.Server

		describe string
	}{{"Oxigraph", teststores.Oxigraph, "cbd"}, {"Fuseki", teststores.Fuseki, "cbd"}, {"RDF4J", teststores.RDF4J, "symmetric"}, {"Virtuoso", teststores.Virtuoso, "symmetric"}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel() // the stores take their time
			s := c.server(t)
			var more strings.Builder // short answers are not compressed
			for i := range 500 {
				fmt.Fprintf(&more, "<http://e.example/%d> <http://e.example/q> \"%d\" .\n", i, i)
			}
			s.Put(t, s.Graph, "application/n-triples", strings.NewReader(
				more.String()+"<http://e.example/a> <http://e.example/p> <http://e.example/b> .\n<http://e.example/b> <http://e.example/p> _:x .\n_:x <http://e.example/p> \"x\" .\n"))
			client, err := sparql.New(sparql.Endpoint{Name: c.name, Query: s.Query, Update: s.Update, GraphStore: s.GraphStore, Username: s.Username, Password: s.Password, Retries: -1})
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			x, err := client.Examine(t.Context(), sparql.ProbeOptions{Write: true, Graphs: []string{s.Graph}})
			if err != nil {
				t.Fatal(err)
			}
			virtuoso := c.name == "Virtuoso"
			if x.Product != c.name || !x.Written || !x.Writable || x.Transactional == virtuoso || x.Manners.Get != "ok" || x.Manners.Form != "ok" || x.Manners.GraphStore != "ok" || len(x.Will) == 0 {
				t.Errorf("%+v", x)
			}
			if x.Manners.Gzip != (c.name == "RDF4J" || virtuoso) {
				t.Errorf("compression: %v", x.Manners.Gzip)
			}
			if x.Manners.Describe != c.describe {
				t.Errorf("DESCRIBE gives %q, want %q", x.Manners.Describe, c.describe)
			}
			if l := x.Limits; l.Sorted != 503 || (l.SortError != "") != virtuoso || l.Formats["json"] != "ok" || l.Formats["ntriples"] != "ok" || l.FormBody < 10_000 || !virtuoso && l.DirectBody < 1_000_000 {
				t.Errorf("limits: %+v", l)
			}
			if x.WriteSpeed["insert-100"] <= 0 || x.WriteSpeed["graph-store"] <= 0 {
				t.Errorf("speed of writing: %v", x.WriteSpeed)
			}
			if left, err := client.Count(t.Context(), "SELECT (COUNT(*) AS ?n) WHERE { GRAPH ?g { ?s ?p ?o } FILTER(STRSTARTS(STR(?g), \"urn:rsbridge:probe:\") && STRSTARTS(STR(?s), \"urn:rsbridge:probe:speed\")) }"); err != nil || left != 0 {
				t.Logf("%d triples of scratch graphs (of others that probe now?) %v", left, err)
			}
			t.Logf("DESCRIBE: %s, normal form: %v, manners %+v, limits %+v, writing %v, sorted in %.1f s, all in %.1f s", x.Manners.Describe, x.NormalForm.Rules, x.Manners, x.Limits, x.WriteSpeed, x.Limits.SortSeconds, x.Seconds)
		})
	}
}

// A store that asks to come back later is asked again: that it is busy is no finding. One
// that does not sort is found out.
func TestExamineBusyAndUnsorted(t *testing.T) {
	var ts []rdfres.Triple
	for i := range 300 {
		ts = append(ts, rdfres.Triple{S: rdfres.NewIRI(fmt.Sprintf("http://e.example/%d", i)), P: "<http://e.example/p>", O: "<http://e.example/o>"})
	}
	st := sparqltest.New(ts...)
	st.RowLimit = 50
	synctest.Test(t, func(t *testing.T) {
		n := 0
		st.Fault = func(op, _ string) *sparqltest.Fault {
			if n++; n%3 == 2 {
				return &sparqltest.Fault{Status: http.StatusServiceUnavailable, RetryAfter: "1"}
			}
			return nil
		}
		unsorted := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			if query, _ := url.QueryUnescape(string(body)); strings.Contains(query, "ORDER BY") {
				answer("application/sparql-results+json", `{"head":{"vars":["s","p","o"]},"results":{"bindings":[{"s":{"type":"uri","value":"b:"}},{"s":{"type":"bnode","value":"b"}},{"s":{"type":"uri","value":"a:"}}]}}`).ServeHTTP(w, r)
				return
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
			st.ServeHTTP(w, r)
		})
		client, err := sparql.New(sparql.Endpoint{Query: "http://store.example/query", Transport: inproc.Transport{Handler: unsorted}, Retries: -1})
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		x, err := client.Examine(t.Context(), sparql.ProbeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if x.Sample != 300 || x.RowLimit != 50 || x.ValuesLimit != 5000 || x.Manners.Form != "ok" || x.Manners.Direct != "ok" || x.Limits.DirectBody < 1_000_000 || x.Limits.Formats["json"] != "ok" {
			t.Errorf("%d triples, cut at %d, %d IRIs, %+v %+v", x.Sample, x.RowLimit, x.ValuesLimit, x.Manners, x.Limits)
		}
		if !strings.Contains(x.Limits.SortError, "out of order") {
			t.Errorf("sorting: %q", x.Limits.SortError)
		}
	})
}

// TestAdvice: each finding that changes what is done is told.
func TestAdvice(t *testing.T) {
	c := sparql.Capabilities{
		Product: "Virtuoso", Readings: []sparql.Reading{sparql.ReadSelectJSON}, Sample: 10000, RowLimit: 10000, UnionDefault: true, ValuesLimit: 1000,
		Writable: true, UpdateTriples: 1000,
	}
	a := c.Advise(sparql.Manners{Describe: "symmetric", GraphStore: "no address"}, sparql.Limits{FormBody: 190000, SortError: "more than MaxSortedTopRows", Formats: map[string]string{"tsv": "not the W3C form"}})
	will, could := strings.Join(a.Will, "\n"), strings.Join(a.Could, "\n")
	for _, want := range []string{"10000 rows", "select-json", "name the graphs", "at most 1000 entities", "not use DESCRIBE", "1000 triples", "checkpoint last", "sort by itself", "as JSON: TSV", "forms of at most some 190000 bytes", "in one answer"} {
		if !strings.Contains(will, want) {
			t.Errorf("nothing of %q in\n%s", want, will)
		}
	}
	for _, want := range []string{"ResultSetMaxRows", "MaxSortedTopRows", "form bodies"} {
		if !strings.Contains(could, want) {
			t.Errorf("nothing of %q in\n%s", want, could)
		}
	}
}

// TestNoGraphStore: an address that answers 404 to everything is no Graph Store, while one
// that says so of a graph that is not there is one.
func TestNoGraphStore(t *testing.T) {
	for path, want := range map[string]string{"/data": "ok", "/elsewhere": "404 for every graph, also the default one: it may be no address of a Graph Store"} {
		mux := http.NewServeMux() // says 404 of the rest
		mux.Handle("/query", sparqltest.New())
		mux.Handle("/data", sparqltest.New())
		srv := httptest.NewServer(mux)
		defer srv.Close()
		client, err := sparql.New(sparql.Endpoint{Query: srv.URL + "/query", GraphStore: srv.URL + path, Retries: -1})
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		if got := client.Manners(t.Context(), nil).GraphStore; got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}

// What was asked for may be empty and the data elsewhere: that is what is examined, and said.
func TestExamineElsewhere(t *testing.T) {
	one := rdfres.Triple{S: "<http://e.example/s>", P: "<http://e.example/p>", O: `"o"`}
	const leave, name = "leave --graph out", "name the graphs"
	for _, c := range []struct {
		in, ask string // of the data; asked for
		graphs  string // examined
		sample  int64
		told    string
	}{
		{"", "", "", 1, ""},
		{"", "*", "", 1, ""},
		{"", "http://e.example/g", "", 1, leave},
		{"http://e.example/g", "", "*", 1, name},
		{"http://e.example/g", "*", "*", 1, ""},
		{"http://e.example/g", "http://e.example/g", "http://e.example/g", 1, ""},
		{"http://e.example/g", "http://e.example/other", "*", 1, name},
		{"none", "", "", 0, ""},
		{"none", "*", "*", 0, ""},
	} {
		st := sparqltest.New()
		if c.in != "none" {
			st.Add(c.in, one)
		}
		var o sparql.ProbeOptions
		if c.ask != "" {
			o.Graphs = []string{c.ask}
		}
		x, err := connect(t, st, nil).Examine(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		told := ""
		for _, could := range x.Could {
			for _, words := range []string{leave, name} {
				if strings.HasPrefix(could, words) {
					told += words
				}
			}
		}
		if strings.Join(x.Graphs, " ") != c.graphs || x.Sample != c.sample || told != c.told {
			t.Errorf("data in %q, asked for %q: examined %q, %d triples, told %q", c.in, c.ask, x.Graphs, x.Sample, x.Could)
		}
	}
}
