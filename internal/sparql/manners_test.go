package sparql_test

import (
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/internal/sparql"
	"github.com/rsbridge/rsbridge/internal/teststores"
)

// TestExamine asks real stores; what DESCRIBE gives differs between them.
func TestExamine(t *testing.T) {
	for _, c := range []struct {
		name   string
		server func(testing.TB) teststores.Server
	}{{"Oxigraph", teststores.Oxigraph}, {"Fuseki", teststores.Fuseki}} {
		t.Run(c.name, func(t *testing.T) {
			s := c.server(t)
			s.Put(t, s.Graph, "application/n-triples", strings.NewReader(
				"<http://e.example/a> <http://e.example/p> <http://e.example/b> .\n<http://e.example/b> <http://e.example/p> _:x .\n_:x <http://e.example/p> \"x\" .\n"))
			client, err := sparql.New(sparql.Endpoint{Name: c.name, Query: s.Query, Update: s.Update, GraphStore: s.GraphStore, Retries: -1})
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			x, err := client.Examine(t.Context(), sparql.ProbeOptions{Write: true, Graphs: []string{s.Graph}})
			if err != nil {
				t.Fatal(err)
			}
			if x.Product != c.name || !x.Written || !x.Writable || !x.Transactional || x.Manners.Get != "ok" || x.Manners.Form != "ok" || x.Manners.GraphStore != "ok" || len(x.Will) == 0 || len(x.NormalForm.Rules) == 0 {
				t.Errorf("%+v", x)
			}
			t.Logf("DESCRIBE: %s, normal form: %v", x.Manners.Describe, x.NormalForm.Rules)
		})
	}
}

// TestAdvice: each finding that changes what is done is told.
func TestAdvice(t *testing.T) {
	c := sparql.Capabilities{
		Product: "Virtuoso", Readings: []sparql.Reading{sparql.ReadSelectJSON}, Sample: 10000, RowLimit: 10000, UnionDefault: true, ValuesLimit: 1000,
		Writable: true, UpdateTriples: 1000,
	}
	a := c.Advise(sparql.Manners{Describe: "symmetric", GraphStore: "no address"})
	will, could := strings.Join(a.Will, "\n"), strings.Join(a.Could, "\n")
	for _, want := range []string{"10000 rows", "select-json", "name the graphs", "at most 1000 entities", "not use DESCRIBE", "1000 triples", "checkpoint last"} {
		if !strings.Contains(will, want) {
			t.Errorf("nothing of %q in\n%s", want, will)
		}
	}
	for _, want := range []string{"ResultSetMaxRows", "--graph-store"} {
		if !strings.Contains(could, want) {
			t.Errorf("nothing of %q in\n%s", want, could)
		}
	}
}
