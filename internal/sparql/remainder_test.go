package sparql_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rsbridge/rsbridge/internal/inproc"
	"github.com/rsbridge/rsbridge/internal/sparql"
	"github.com/rsbridge/rsbridge/internal/teststores"
)

// Real stores count what is outside of a part, and name the largest graphs.
func TestOutsideInRealStores(t *testing.T) {
	for product, server := range map[string]func(testing.TB) teststores.Server{
		"Oxigraph": teststores.Oxigraph, "Fuseki": teststores.Fuseki, "RDF4J": teststores.RDF4J, "Virtuoso": teststores.Virtuoso,
	} {
		t.Run(product, func(t *testing.T) {
			t.Parallel()
			s := server(t)
			client, err := sparql.New(sparql.Endpoint{Query: s.Query, Username: s.Username, Password: s.Password, Retries: -1})
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			name := func(i int) string { return fmt.Sprintf("%s/it's \"%d\"/é", s.Graph, i) }
			var update strings.Builder
			iri := func(i int) string { return strings.NewReplacer(" ", "%20", `"`, "%22").Replace(name(i)) }
			for i := range 12 {
				fmt.Fprintf(&update, "GRAPH <%s> { ", iri(i))
				for n := range i + 1 {
					fmt.Fprintf(&update, "<http://e.example/%d> <http://e.example/p> \"%d\" . ", n%2, n)
				}
				update.WriteString("} ")
			}
			t.Cleanup(func() {
				s.Run(t, "DELETE { GRAPH ?g { ?s ?p ?o } } WHERE { GRAPH ?g { ?s ?p ?o } FILTER(STRSTARTS(STR(?g), \""+s.Graph+"\")) }")
			})
			s.Run(t, "INSERT DATA { "+update.String()+"}")
			for _, tc := range []struct {
				part    sparql.Part
				triples int64
				graphs  int64
				largest string
			}{
				{sparql.Part{}, 78, 12, iri(11)},
				{sparql.Part{Default: true}, 78, 12, iri(11)},
				{sparql.Part{Graphs: []string{iri(11), iri(3), "http://e.example/nothing"}}, 78 - 12 - 4, 10, iri(10)},
				{sparql.Part{Named: true}, 0, 0, ""},
			} {
				r, err := client.CountOutside(t.Context(), tc.part, product, s.Graph)
				if err != nil || r.Triples != tc.triples || r.Graphs != tc.graphs || len(r.Largest) != int(min(tc.graphs, sparql.RemainderShown)) {
					t.Errorf("outside of %+v: %+v, %v", tc.part, r, err)
				} else if tc.graphs > 0 && r.Largest[0].Graph != tc.largest {
					t.Errorf("outside of %+v the largest is %+v", tc.part, r.Largest[0])
				}
			}
			r := client.Remainder(t.Context(), sparql.Part{}, product, time.Minute)
			system := strings.Join(r.System, " ")
			if r.Unknown != "" || r.Triples < 78 || strings.Contains(system, "virtrdf#") != (product == "Virtuoso") {
				t.Errorf("outside of nothing: %+v", r)
			}
		})
	}
}

// A store that cannot count is not waited for, and what can be said without is said.
func TestRemainderNotCounted(t *testing.T) {
	for name, tc := range map[string]struct {
		count  func(w http.ResponseWriter, r *http.Request)
		listed bool
		want   string
	}{
		"hangs": {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, true,
			"triples in http://g.example/a, http://g.example/b, perhaps in more graphs, not counted: the store needs more than 10s for it"},
		"refuses": {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no counting here", 400) }, true,
			"triples in http://g.example/a, http://g.example/b, perhaps in more graphs, not counted: "},
		"lists nothing": {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, false,
			"perhaps triples in other graphs, not counted: the store needs more than 10s for it"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if err := r.ParseForm(); err != nil {
						t.Error(err)
					}
					query := r.Form.Get("query")
					if query == "" {
						raw, _ := io.ReadAll(r.Body)
						query = string(raw)
					}
					answer := `{"head":{"vars":["g"]},"results":{"bindings":[{"g":{"type":"uri","value":"http://g.example/b"}},{"g":{"type":"uri","value":"http://g.example/a"}}]}}`
					switch {
					case strings.Contains(query, "COUNT("):
						tc.count(w, r)
						return
					case strings.Contains(query, "?g ?s ?p ?o WHERE"): // a look for a union
						answer = `{"head":{"vars":["g","s","p","o"]},"results":{"bindings":[]}}`
					case !tc.listed:
						<-r.Context().Done()
						return
					}
					w.Header().Set("Content-Type", "application/sparql-results+json")
					_, _ = io.WriteString(w, answer)
				})
				client, err := sparql.New(sparql.Endpoint{Query: "http://store.example/", Transport: inproc.Transport{Handler: store}, Retries: -1})
				if err != nil {
					t.Fatal(err)
				}
				defer client.Close()
				began := time.Now()
				r := client.Remainder(context.Background(), sparql.Part{Default: true}, "", 10*time.Second)
				if !strings.HasPrefix(r.String(), tc.want) || r.Nothing() || time.Since(began) > 20*time.Second {
					t.Errorf("after %v: %s", time.Since(began), r)
				}
			})
		})
	}
}
