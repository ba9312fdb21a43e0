package embedstore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/rdfres"
)

// openTest opens a store that is closed with the test.
func openTest(t testing.TB, dir string) *Store {
	t.Helper()
	s, err := Open(dir, Options{CacheBytes: 8 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// content is every quad of the store, sorted, as N-Quads lines.
func content(t testing.TB, s *Store) []string {
	t.Helper()
	var b strings.Builder
	if err := s.Dump(context.Background(), &b, rdfres.NQuads, DumpOptions{All: true}); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	if b.Len() == 0 {
		lines = nil
	}
	slices.Sort(lines)
	return lines
}

func loadText(t testing.TB, s *Store, graph, text string) int64 {
	t.Helper()
	n, err := s.Load(context.Background(), graph, rdfres.NQuads, strings.NewReader(text), LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// ask runs a SELECT and gives its rows, sorted, cells separated by a bar.
func ask(t testing.TB, s *Store, query string) []string {
	t.Helper()
	r, err := s.Query(context.Background(), query, QueryOptions{})
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	defer r.Close()
	var out []string
	switch r.Kind {
	case Boolean:
		return []string{fmt.Sprint(r.Bool)}
	case Graph:
		for tr, err := range r.Triples() {
			if err != nil {
				t.Fatalf("%s: %v", query, err)
			}
			out = append(out, fmt.Sprintf("%s %s %s", tr.S, tr.P, tr.O))
		}
	default:
		for row, err := range r.Rows() {
			if err != nil {
				t.Fatalf("%s: %v", query, err)
			}
			cells := make([]string, len(row))
			for i, c := range row {
				cells[i] = string(c)
			}
			out = append(out, strings.Join(cells, "|"))
		}
	}
	slices.Sort(out)
	return out
}

const sample = `<http://x/a> <http://x/p> <http://x/b> .
<http://x/a> <http://x/p> "01"^^<http://www.w3.org/2001/XMLSchema#integer> .
<http://x/a> <http://x/q> "hallo"@DE-at .
<http://x/b> <http://x/p> _:n <http://x/g> .
_:n <http://x/q> "x\ty\n" <http://x/g> .
<http://x/a> <http://x/p> <http://x/b> <http://x/g> .
`

func TestLoadAndReopen(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, dir)
	if n := loadText(t, s, "", sample); n != 6 {
		t.Errorf("added %d, want 6", n)
	}
	if n := loadText(t, s, "", "<http://x/a> <http://x/p> <http://x/b> .\n"); n != 0 {
		t.Errorf("added %d again, want 0", n)
	}
	before := content(t, s)
	if len(before) != 6 {
		t.Fatalf("content has %d lines: %q", len(before), before)
	}
	if _, err := Open(dir, Options{}); !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), "process") {
		t.Errorf("second Open: %v, want ErrLocked naming the process", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Stats(); !errors.Is(err, ErrClosed) {
		t.Errorf("Stats after Close: %v", err)
	}
	s = openTest(t, dir)
	if after := content(t, s); !slices.Equal(before, after) {
		t.Errorf("after reopening:\n%q\nwant\n%q", after, before)
	}
	st, err := s.Stats()
	if err != nil || st.Triples != 6 || st.Graphs != 1 {
		t.Errorf("Stats() = %+v, %v", st, err)
	}
}

// TestForeignFolder: a store is not made among the files of others, some of which it
// would remove.
func TestForeignFolder(t *testing.T) {
	for name, fine := range map[string]bool{"tmp/mine": false, "000001.sst": false, "notes.txt": false, ".git/config": true, "lost+found/x": true, "LOCK": true, "MANIFEST-000001": true} {
		dir := t.TempDir()
		file := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte("mine"), 0o600)); err != nil {
			t.Fatal(err)
		}
		for range 2 { // a store that is there is opened again
			s, err := Open(dir, Options{})
			if (err == nil) != fine || err != nil && !strings.Contains(err.Error(), "and no store: give one that is new or empty") {
				t.Errorf("beside %s: %v", name, err)
			}
			if err == nil {
				err = s.Close()
			} else {
				_, err = os.Stat(file)
			}
			if err != nil {
				t.Error(err)
			}
		}
	}
}

func TestSelects(t *testing.T) {
	s := openTest(t, t.TempDir())
	loadText(t, s, "", sample)
	for _, c := range []struct {
		query string
		want  []string
	}{
		{`SELECT ?o { <http://x/a> <http://x/p> ?o }`, []string{`"01"^^<http://www.w3.org/2001/XMLSchema#integer>`, "<http://x/b>"}},
		{`SELECT (COUNT(*) AS ?n) { ?s ?p ?o }`, []string{`"3"^^<http://www.w3.org/2001/XMLSchema#integer>`}},
		{`SELECT ?g (COUNT(*) AS ?n) { GRAPH ?g { ?s ?p ?o } } GROUP BY ?g`, []string{`<http://x/g>|"3"^^<http://www.w3.org/2001/XMLSchema#integer>`}},
		{`SELECT (COUNT(*) AS ?n) { GRAPH <http://x/g> { ?s ?p ?o } }`, []string{`"3"^^<http://www.w3.org/2001/XMLSchema#integer>`}},
		{`SELECT (COUNT(?s) AS ?n) { GRAPH <http://x/g> { ?s ?p ?o } }`, []string{`"3"^^<http://www.w3.org/2001/XMLSchema#integer>`}},
		{`SELECT (COUNT(*) AS ?n) { GRAPH <http://x/g> { ?s ?p ?s } }`, []string{`"0"^^<http://www.w3.org/2001/XMLSchema#integer>`}},
		{`SELECT (COUNT(*) AS ?n) { GRAPH <http://x/a> { ?s ?p ?o } }`, []string{`"0"^^<http://www.w3.org/2001/XMLSchema#integer>`}},
		{`SELECT (COUNT(*) AS ?n) { GRAPH <http://x/zz> { ?s ?p ?o } }`, []string{`"0"^^<http://www.w3.org/2001/XMLSchema#integer>`}},
		{`SELECT (COUNT(*) AS ?n) FROM <http://x/g> { GRAPH <http://x/g> { ?s ?p ?o } }`, []string{`"0"^^<http://www.w3.org/2001/XMLSchema#integer>`}},
		{`SELECT ?g { GRAPH ?g { ?s ?p ?o } } LIMIT 2`, []string{"<http://x/g>", "<http://x/g>"}},
		{`SELECT DISTINCT ?s FROM <http://x/g> { ?s ?p ?o FILTER(isIRI(?s)) }`, []string{"<http://x/a>", "<http://x/b>"}},
		{`SELECT ?o FROM <http://x/g> { <http://x/b> <http://x/p>/<http://x/q> ?o }`, []string{`"x\ty\n"`}},
		{`ASK { GRAPH <http://x/g> { <http://x/a> ?p ?o } }`, []string{"true"}},
		{`ASK { GRAPH <http://x/g> { <http://x/zz> ?p ?o } }`, []string{"false"}},
		{`SELECT ?o { ?s ?p ?o FILTER(lang(?o) = "de-AT") }`, []string{`"hallo"@de-AT`}},
		{`SELECT ?o { ?s ?p ?o FILTER(?o = 1) }`, []string{`"01"^^<http://www.w3.org/2001/XMLSchema#integer>`}},
		{`SELECT ?s ?x { VALUES ?s { <http://x/a> <http://x/zz> } OPTIONAL { ?s <http://x/q> ?x } }`, []string{`<http://x/a>|"hallo"@de-AT`, "<http://x/zz>|"}},
		{`SELECT ?s { GRAPH ?g { ?s ?p ?o } } ORDER BY DESC(?s) LIMIT 1`, []string{"<http://x/b>"}},
	} {
		if got := ask(t, s, c.query); !slices.Equal(got, c.want) {
			t.Errorf("%s\n got %q\nwant %q", c.query, got, c.want)
		}
	}
}

func TestUpdates(t *testing.T) {
	s := openTest(t, t.TempDir())
	for _, u := range []string{
		`INSERT DATA { <http://x/a> <http://x/p> 1, 2 . GRAPH <http://x/g> { <http://x/a> a _:b . _:b <http://x/q> "x" } }`,
		`PREFIX x: <http://x/> DELETE { ?s x:p ?o } INSERT { ?s x:r ?n } WHERE { ?s x:p ?o BIND(?o + 10 AS ?n) } ; INSERT { GRAPH x:h { ?s ?p ?o } } WHERE { ?s ?p ?o }`,
		`COPY <http://x/h> TO <http://x/i> ; DELETE WHERE { GRAPH <http://x/g> { ?s <http://x/q> ?o } } ; CLEAR GRAPH <http://x/h>`,
	} {
		if err := s.Update(context.Background(), u); err != nil {
			t.Fatalf("%s: %v", u, err)
		}
	}
	want := []string{
		`<http://x/a> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> _:e9 <http://x/g> .`,
		`<http://x/a> <http://x/r> "11"^^<http://www.w3.org/2001/XMLSchema#integer> .`,
		`<http://x/a> <http://x/r> "11"^^<http://www.w3.org/2001/XMLSchema#integer> <http://x/i> .`,
		`<http://x/a> <http://x/r> "12"^^<http://www.w3.org/2001/XMLSchema#integer> .`,
		`<http://x/a> <http://x/r> "12"^^<http://www.w3.org/2001/XMLSchema#integer> <http://x/i> .`,
	}
	got := content(t, s)
	if len(got) != len(want) || !slices.Equal(got[1:], want[1:]) {
		t.Errorf("got %q\nwant %q", got, want)
	}
	if err := s.Update(context.Background(), `INSERT DATA { <http://x/z> <http://x/z> 1 } ; CREATE GRAPH <http://x/i>`); err == nil {
		t.Error("CREATE of a graph that is there: no error")
	}
	if after := content(t, s); !slices.Equal(got, after) {
		t.Errorf("a failed request left %q", after)
	}
	st, _ := s.Stats()
	if st.Triples != 5 || st.Graphs != 2 {
		t.Errorf("Stats() = %+v", st)
	}
}

// A lock that cannot be made is not one that another process has.
func TestOpenWithoutLock(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, lockFile), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, Options{}); err == nil || errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), lockFile) {
		t.Errorf("Open: %v, want what is wrong with the lock", err)
	}
}
