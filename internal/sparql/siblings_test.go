package sparql

import (
	"maps"
	"testing"
)

func TestSiblings(t *testing.T) {
	for _, c := range []struct {
		product, query string
		want           map[string]string
	}{
		{"Fuseki", "http://h.example:3030/my%20set/query", map[string]string{"update": "http://h.example:3030/my%20set/update", "graph_store": "http://h.example:3030/my%20set/data"}},
		{"Fuseki", "http://h.example:3030/set", map[string]string{"update": "http://h.example:3030/set/update", "graph_store": "http://h.example:3030/set/data"}},
		{"RDF4J", "http://h.example/rdf4j-server/repositories/one", map[string]string{"update": "http://h.example/rdf4j-server/repositories/one/statements", "graph_store": "http://h.example/rdf4j-server/repositories/one/rdf-graphs/service"}},
		{"Virtuoso", "http://h.example/sparql", map[string]string{"graph_store": "http://h.example/sparql-graph-crud"}},
		{"Virtuoso", "http://h.example/sparql-auth", map[string]string{"update": "http://h.example/sparql-auth", "graph_store": "http://h.example/sparql-graph-crud-auth"}},
		{"Oxigraph", "http://h.example/query", map[string]string{"update": "http://h.example/update", "graph_store": "http://h.example/store"}},
		{"rsbridge", "http://h.example/stores/a/query", map[string]string{"update": "http://h.example/stores/a/update", "graph_store": "http://h.example/stores/a/data"}},
		{"Oxigraph", "http://h.example/elsewhere", nil}, // behind a proxy: nothing follows from it
		{"", "http://h.example/query", nil},
		{"nginx", "http://h.example/query", nil},
	} {
		if got := siblings(c.product, c.query); !maps.Equal(got, c.want) {
			t.Errorf("%s at %s: %v, want %v", c.product, c.query, got, c.want)
		}
	}
}
