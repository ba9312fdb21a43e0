package sparqlsrc

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/internal/sparql"
	"github.com/rsbridge/rsbridge/rdfres"
)

// However many entities or graphs are named, and however large they are, no more of
// them is held than the memory that is given; what comes is the same, each once, with
// the owners of shared blank nodes that nobody has named.
func TestNamedInLittleMemory(t *testing.T) {
	for _, byGraph := range []bool{false, true} {
		t.Run(fmt.Sprint(byGraph), func(t *testing.T) {
			client := embedded(t)
			for i := range 40 {
				var b strings.Builder
				for k := range 60 {
					fmt.Fprintf(&b, "<http://e.example/%d> <http://e.example/p> \"%d\" .\n", i, k)
				}
				fmt.Fprintf(&b, "<http://e.example/%d> <http://e.example/q> _:b .\n<http://e.example/other%d> <http://e.example/q> _:b .\n_:b <http://e.example/r> \"%d\" .\n", i, i%20, i)
				if err := client.PutGraph(t.Context(), fmt.Sprintf("http://g.example/%d", i), rdfres.NTriples, sparql.Body([]byte(b.String()))); err != nil {
					t.Fatal(err)
				}
			}
			var log bytes.Buffer
			cfg := Config{Name: "data", Graphs: []string{"*"}, TempDir: t.TempDir(), MemoryBytes: 64 << 10, Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))}
			s, named, name := namedOf(t, client, cfg, byGraph)
			var names []string
			for i := range 40 {
				names = append(names, fmt.Sprintf(name, i))
			}
			names = append(names, "http://e.example/other3", "http://e.example/gone")
			for _, e := range names {
				if err := named.Add(e); err != nil {
					t.Fatal(err)
				}
			}
			all, err := s.Describe(t.Context(), names)
			if err != nil {
				t.Fatal(err)
			}
			want := map[string]string{}
			for _, d := range all {
				want[d.Entity] = fmt.Sprint(d.Triples)
			}
			if n := map[bool]int{false: 61, true: 42}[byGraph]; len(want) != n {
				t.Fatalf("%d are described, want %d", len(want), n)
			}
			for d, err := range named.Descriptions(t.Context()) {
				if err != nil {
					t.Fatal(err)
				}
				if text, ok := want[d.Entity]; !ok || text != fmt.Sprint(d.Triples) {
					t.Errorf("%s (again %v): %v, want %s", d.Entity, !ok, d.Triples, text)
				}
				delete(want, d.Entity)
			}
			if len(want) > 0 {
				t.Errorf("not described: %v", want)
			}
			if !strings.Contains(log.String(), "too much is described at once") {
				t.Error("all of it was held at once")
			}
		})
	}
}

// One that is named and has more triples than may be held fails by its name, and the
// others are described.
func TestNamedTooLarge(t *testing.T) {
	for _, byGraph := range []bool{false, true} {
		t.Run(fmt.Sprint(byGraph), func(t *testing.T) {
			client := embedded(t)
			for i, n := range []int{3, 50, 4} {
				var b strings.Builder
				for k := range n {
					fmt.Fprintf(&b, "<http://e.example/%d> <http://e.example/p> \"%d\" .\n", i, k)
				}
				if err := client.PutGraph(t.Context(), fmt.Sprintf("http://g.example/%d", i), rdfres.NTriples, sparql.Body([]byte(b.String()))); err != nil {
					t.Fatal(err)
				}
			}
			cfg := Config{Name: "data", Graphs: []string{"*"}, TempDir: t.TempDir(), MaxDescriptionTriples: 20}
			_, named, name := namedOf(t, client, cfg, byGraph)
			for i := range 3 {
				if err := named.Add(fmt.Sprintf(name, i)); err != nil {
					t.Fatal(err)
				}
			}
			got := map[string]int{}
			for d, err := range named.Descriptions(t.Context()) {
				if err != nil {
					t.Fatal(err)
				}
				got[d.Entity] = len(d.Triples)
			}
			if len(got) != 2 || got[fmt.Sprintf(name, 0)] != 3 || got[fmt.Sprintf(name, 2)] != 4 {
				t.Errorf("described: %v", got)
			}
			if why := named.Failed()[fmt.Sprintf(name, 1)]; len(named.Failed()) != 1 || why == nil || !strings.Contains(why.Error(), "20 triples (max_description_triples)") {
				t.Errorf("failed: %v", named.Failed())
			}
		})
	}
}

// namedOf is a source of entities, or of graphs, with a list of names for it, and what
// they look like.
func namedOf(t *testing.T, client *sparql.Client, cfg Config, byGraph bool) (s *Source, named *Named, name string) {
	t.Helper()
	name = "http://e.example/%d"
	if byGraph {
		cfg.Describe, name = "graph", "http://g.example/%d"
	}
	s, err := New(client, cfg)
	if err == nil {
		named, err = s.Named()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { named.Close() })
	return s, named, name
}

// TestOutsideTooLarge: an entity that is too large is no fault where it is not of the set.
func TestOutsideTooLarge(t *testing.T) {
	client := embedded(t)
	var data strings.Builder
	for i := range 10 {
		fmt.Fprintf(&data, "<http://e.example/in> <http://e.example/p> %d . <http://e.example/out> <http://e.example/p> %d .\n", i, i)
	}
	data.WriteString("<http://e.example/in> a <http://e.example/C> . <http://e.example/out> a <http://e.example/D> .\n")
	if err := client.PutGraph(t.Context(), "http://g.example/", rdfres.Turtle, sparql.Body([]byte(data.String()))); err != nil {
		t.Fatal(err)
	}
	cfg := Config{Graphs: []string{"http://g.example/"}, TempDir: t.TempDir(), MaxDescriptionTriples: 5}
	for _, sel := range []Select{{Classes: []string{"http://e.example/C"}}, {Prefixes: []string{"http://e.example/in"}}} {
		cfg.Select = sel
		s, err := New(client, cfg)
		if err != nil {
			t.Fatal(err)
		}
		if ds, err := s.Describe(t.Context(), []string{"http://e.example/out"}); err != nil || len(ds) != 1 || len(ds[0].Triples) != 0 {
			t.Errorf("%+v: %v %v", sel, ds, err)
		}
		if _, err := s.Describe(t.Context(), []string{"http://e.example/in"}); err == nil || !strings.Contains(err.Error(), "max_description_triples") {
			t.Errorf("%+v: %v", sel, err)
		}
	}
}
