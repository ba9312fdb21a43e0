package bridge

import (
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/internal/sparql"
	"github.com/rsbridge/rsbridge/rdfres"
)

// What the store of a set holds in graphs of no set is told by scans, status and check,
// anew when the sets are others.
func TestUnpublished(t *testing.T) {
	cfg := small(t.TempDir())
	b := mustOpen(t, cfg)
	const triple = "<http://e.example/a> <http://e.example/p> \"%\" .\n"
	for graph, n := range map[string]int{"": 1, "http://g.example/a": 2, "http://g.example/b": 3} {
		text := ""
		for i := range n {
			text += strings.ReplaceAll(triple, "%", strings.Repeat("x", i))
		}
		if _, err := b.LoadStore(t.Context(), "source", graph, rdfres.NTriples, strings.NewReader(text), true); err != nil {
			t.Fatal(err)
		}
	}
	scan := func(want string) {
		t.Helper()
		if got := do[ScanReport](t, b, "scan", "data").Unpublished; got == nil || got.String() != want {
			t.Errorf("scan: %v, want %s", got, want)
		}
		status(t, b, want)
	}
	const both, one = "5 triples in 2 graphs: http://g.example/b (3), http://g.example/a (2)", "3 triples in 1 graph: http://g.example/b (3)"
	scan(both)
	check := func(want string) {
		t.Helper()
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		rest := FindUnpublished(t.Context(), cfg, slog.New(slog.DiscardHandler))
		if rest["source"].String() != want {
			t.Errorf("check: %v, want %s", rest, want)
		}
	}
	s := cfg.Sets["data"]
	check(both)
	s.Graphs = []string{"http://g.example/a"}
	cfg.Sets["more"] = s
	b = mustOpen(t, cfg)
	status(t, b, "") // what was counted is of other sets
	scan(one)
	check(one)
	s.Graphs = []string{"*"}
	cfg.Sets["all"] = s
	b = mustOpen(t, cfg)
	scan("nothing")
	check("nothing")
}

func status(t *testing.T, b *Bridge, want string) {
	t.Helper()
	st, err := b.SetStatus(t.Context(), "data")
	got := ""
	if st.Unpublished != nil {
		got = st.Unpublished.String()
	}
	if err != nil || got != want {
		t.Errorf("status: %q, %v, want %q", got, err, want)
	}
}

// A store that takes long to count is not asked at each scan.
func TestCountPause(t *testing.T) {
	cfg := small(t.TempDir())
	b := mustOpen(t, cfg)
	defer b.Close()
	now := time.Now()
	b.now = func() time.Time { return now }
	s := b.sets["data"]
	for _, tc := range []struct {
		took, ago time.Duration
		part      sparql.Part
		counts    bool
	}{
		{5 * time.Second, 499 * time.Second, s.cfg.Part(), false},
		{5 * time.Second, 501 * time.Second, s.cfg.Part(), true},
		{5 * time.Second, -time.Second, s.cfg.Part(), true}, // the clock was wrong
		{5 * time.Second, time.Second, sparql.Part{Named: true}, true},
		{time.Second, time.Second, s.cfg.Part(), true},
	} {
		old := &Unpublished{Counted: now.Add(-tc.ago), Seconds: tc.took.Seconds(), Published: tc.part}
		if got := s.countUnpublished(t.Context(), old, nil); got == nil || (got != old) != tc.counts {
			t.Errorf("%+v: %+v", tc, got)
		}
	}
}

// Of a store that does not answer check tells nothing of that kind.
func TestFindUnpublished(t *testing.T) {
	srv := httptest.NewServer(nil)
	cfg := NewConfig()
	store := NewStore()
	store.Query = srv.URL + "/query"
	cfg.Stores["store"] = store
	set := NewSet()
	set.Store = "store"
	cfg.Sets["set"] = set
	srv.Close()
	if got := FindUnpublished(t.Context(), cfg, slog.New(slog.DiscardHandler)); len(got) > 0 {
		t.Errorf("%v", got)
	}
}
