package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/internal/sparql"
)

// TestGraphsOfVirtuoso: its graphs are proposed by name, since its default graph shows its own ones too. Those are
// never proposed.
func TestGraphsOfVirtuoso(t *testing.T) {
	const own = "http://www.openlinksw.com/schemas/virtrdf#"
	for n, want := range map[int]string{
		0:   `graphs: ["http://example.org/graph"]   # the graph to be published`,
		2:   `graphs: ["http://g.example/00", "http://g.example/01"]`,
		12:  "\n      - \"http://g.example/10\"\n      - \"http://g.example/11\"",
		300: allInDefault,
	} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			query := r.URL.Query().Get("query") + string(body)
			if form, err := url.ParseQuery(string(body)); err == nil && form.Get("query") != "" {
				query = form.Get("query")
			}
			w.Header().Set("Content-Type", "application/sparql-results+json")
			type term map[string]string
			rows := []map[string]term{}
			graph := func(name string) { rows = append(rows, map[string]term{"g": {"type": "uri", "value": name}}) }
			vars := []string{"g"}
			switch {
			case strings.HasPrefix(query, "ASK"):
				fmt.Fprint(w, `{"head":{},"boolean":true}`)
				return
			case strings.Contains(query, "COUNT(DISTINCT ?g)"):
				vars = []string{"n", "graphs"}
				count := term{"type": "literal", "value": fmt.Sprint(n)}
				rows = append(rows, map[string]term{"n": count, "graphs": count})
			case strings.Contains(query, "GROUP BY ?g"):
				vars = []string{"g", "n"}
				for i := range min(n, sparql.RemainderShown) {
					graph(fmt.Sprintf("http://g.example/%02d", i))
					rows[i]["n"] = term{"type": "literal", "value": "1"}
				}
			case strings.Contains(query, "isIRI(?g)"):
				graph(own)
				for i := range n {
					graph(fmt.Sprintf("http://g.example/%02d", i))
				}
			case strings.Contains(query, "IN ("):
				graph(own)
			}
			_ = json.NewEncoder(w).Encode(map[string]any{"head": map[string]any{"vars": vars}, "results": map[string]any{"bindings": rows}})
		}))
		c, err := sparql.New(sparql.Endpoint{Query: srv.URL, Retries: -1})
		if err != nil {
			t.Fatal(err)
		}
		line, part, err := graphsToPublish(t.Context(), c, sparql.Capabilities{Product: "Virtuoso", UnionDefault: true})
		if _, yaml, _ := strings.Cut(line, "\n"); err != nil || !strings.Contains(yaml, want) || n < 300 && (strings.Contains(yaml, own) || part.Default) {
			t.Errorf("%d graphs: %s, %+v, %v", n, line, part, err)
		}
		_ = c.Close() // idle connections only
		srv.Close()
	}
}
