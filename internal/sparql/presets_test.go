package sparql

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// TestPresets: every preset gives addresses, and says what it misses.
func TestPresets(t *testing.T) {
	for _, p := range Presets {
		repository := ""
		if p.Repository != "" {
			repository = "my data"
		}
		query, update, store, err := Addresses(p.Name, p.URL+"/", repository, false)
		if err != nil {
			t.Errorf("%s: %v", p.Name, err)
		}
		for _, a := range []string{query, update, store} {
			if u, err := url.Parse(a); a != "" && (err != nil || u.Host == "" || strings.Contains(a, "URL") || strings.Contains(a, "REPOSITORY")) {
				t.Errorf("%s: %s %v", p.Name, a, err)
			}
		}
		if _, _, _, err := Addresses(p.Name, p.URL, "", false); (err != nil) != (p.Repository != "" && p.Default == "") {
			t.Errorf("%s without a repository: %v", p.Name, err)
		}
		if p.Limits == "" || !strings.Contains(PresetTable(), "| `"+p.Name+"` | "+p.Product) {
			t.Errorf("%s is not told", p.Name)
		}
	}
	if q, u, g, err := Addresses("virtuoso", "http://v.example", "", true); q != "http://v.example/sparql" || u != "" || g != "http://v.example/sparql-graph-crud" || err != nil {
		t.Errorf("virtuoso without a user: %s %s %s %v", q, u, g, err)
	}
	if _, _, _, err := Addresses("oxigraph", "http://o.example", "x", false); err == nil {
		t.Error("oxigraph has no repositories")
	}
	if _, _, _, err := Addresses("nothing", "http://o.example", "", false); err == nil || !strings.Contains(err.Error(), "oxigraph, fuseki") {
		t.Errorf("no preset: %v", err)
	}
}

// Who a store is by what it says.
func TestProduct(t *testing.T) {
	for server, want := range map[string]string{
		"GraphDB/10.6.0 RDF4J/4.3.9":  "GraphDB 10.6.0",
		"Virtuoso/07.20.3217 (Linux)": "Virtuoso 07.20.3217",
		"Jetty(9.4.56)":               "Jetty(9.4.56) 9.4.56",
	} {
		if name, version := product(http.Header{"Server": {server}}); name+" "+version != want {
			t.Errorf("%s is %s %s, want %s", server, name, version, want)
		}
	}
}
