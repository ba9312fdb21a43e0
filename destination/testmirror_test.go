package destination

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rsbridge/rsbridge/destination/sink"
	"github.com/rsbridge/rsbridge/internal/embedstore"
	"github.com/rsbridge/rsbridge/internal/sparql"
	"github.com/rsbridge/rsbridge/internal/teststores"
	"github.com/rsbridge/rsbridge/rdfres"
)

// testMirror is a small real server: the shapes of query and update that a
// destination sends, and the Graph Store Protocol, over triples in memory. An
// update is atomic.
type testMirror struct {
	t      testing.TB
	srv    *httptest.Server
	mu     sync.Mutex
	graphs map[string]map[rdfres.Triple]bool

	updates, posts int
	refuse         func(text string) (status int)      // an update that is answered with an error
	rewrite        func(t rdfres.Triple) rdfres.Triple // what the store makes of a triple
	rewriteUpdate  func(iri string) string             // what it makes of an IRI in an update
	noUpdate       bool                                // the Graph Store Protocol only
	noGSP          bool
	under          string            // the path before those of its addresses
	transport      http.RoundTripper // nil: over connections
	hook           func(w http.ResponseWriter, r *http.Request) bool
}

// makeTestMirror makes one that nobody serves.
func makeTestMirror(t testing.TB) *testMirror {
	return &testMirror{t: t, graphs: map[string]map[rdfres.Triple]bool{}}
}

func newTestMirror(t testing.TB) *testMirror {
	m := makeTestMirror(t)
	m.srv = httptest.NewServer(m)
	t.Cleanup(m.srv.Close)
	return m
}

func (m *testMirror) client() *sparql.Client {
	base := m.srv.URL + m.under
	e := sparql.Endpoint{Name: "mirror", Query: base + "/query", Update: base + "/update", GraphStore: base + "/data", Transport: m.transport, Retries: 1}
	if m.noUpdate {
		e.Update = ""
	}
	if m.noGSP {
		e.GraphStore = ""
	}
	c, err := sparql.New(e)
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() { c.Close() })
	return c
}

func (m *testMirror) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r.URL.Path = strings.TrimPrefix(r.URL.Path, m.under)
	if m.hook != nil && m.hook(w, r) {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	switch r.URL.Path {
	case "/query":
		body, _ := io.ReadAll(r.Body)
		m.query(w, string(body))
	case "/update":
		body, _ := io.ReadAll(r.Body)
		m.updates++
		if m.refuse != nil {
			if s := m.refuse(string(body)); s != 0 {
				http.Error(w, "refused", s)
				return
			}
		}
		if m.rewriteUpdate != nil {
			body = iriShape.ReplaceAllFunc(body, func(b []byte) []byte { return []byte("<" + m.rewriteUpdate(string(b[1:len(b)-1])) + ">") })
		}
		if err := m.update(string(body)); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	case "/data":
		m.data(w, r)
	default:
		http.NotFound(w, r)
	}
}

var (
	iriShape    = regexp.MustCompile(`<[^<>]*>`)
	graphShape  = regexp.MustCompile(`GRAPH <([^>]*)> \{ \?s \?p \?o \}`)
	markShape   = regexp.MustCompile(`^SELECT \?p \?o WHERE \{ GRAPH <([^>]*)> \{ <([^>]*)> \?p \?o \} \}`)
	probeShape  = regexp.MustCompile(`^SELECT \?g \?s \?o WHERE \{ GRAPH \?g \{ \?s (\S+) \?o`)
	beginsShape = regexp.MustCompile(`&& STRSTARTS\(STR\(\?g\), "([^"]*)"\)`)
	keysShape   = regexp.MustCompile(`VALUES \?(\w) \{ ([^}]*) \}`)
	valuesShape = regexp.MustCompile(`^SELECT (.*) WHERE \{ VALUES \?([gs]) \{ ([^}]*) \} GRAPH`)
	toldShape   = regexp.MustCompile(`^SELECT \?s \?p \?o WHERE \{ GRAPH <([^>]*)> \{ \?s <([^>]*)> <([^>]*)> \. \?s \?p \?o \} \}`)
	othersShape = regexp.MustCompile(`^SELECT \?m \?p \?o WHERE \{ GRAPH <([^>]*)> \{ \?m <([^>]*)> ("[^"]*") \. \?m \?p \?o \} \}`)
)

func (m *testMirror) query(w http.ResponseWriter, q string) {
	tsv := func(vars string, rows [][]rdfres.Term) {
		w.Header().Set("Content-Type", "text/tab-separated-values")
		fmt.Fprintln(w, vars)
		for _, r := range rows {
			for i, t := range r {
				if i > 0 {
					io.WriteString(w, "\t")
				}
				io.WriteString(w, string(t))
			}
			io.WriteString(w, "\n")
		}
	}
	graph := ""
	if g := graphShape.FindStringSubmatch(q); g != nil {
		graph = g[1]
	}
	var rows [][]rdfres.Term
	switch {
	case strings.HasPrefix(q, "ASK"):
		some := len(m.graphs[graph]) > 0
		if head, line, ok := strings.Cut(q, "{\n"); ok { // one triple
			if _, g, ok := strings.Cut(head, "GRAPH <"); ok {
				graph, _, _ = strings.Cut(g, ">")
			}
			tr, _, err := statementLine(line)
			some = err == nil && m.graphs[graph][tr]
		}
		if strings.Contains(q, "GRAPH ?g") {
			below := ""
			if b := beginsShape.FindStringSubmatch(q); b != nil {
				below = b[1]
			}
			for g, ts := range m.graphs {
				some = some || !strings.HasPrefix(g, "urn:rsbridge:") && g != "" && strings.HasPrefix(g, below) && !strings.Contains(q, "?g != <"+g+">") && len(ts) > 0
			}
		}
		w.Header().Set("Content-Type", "application/sparql-results+json")
		fmt.Fprintf(w, `{"head":{},"boolean":%v}`, some)
	case strings.HasPrefix(q, "SELECT (COUNT"):
		w.Header().Set("Content-Type", "application/sparql-results+json")
		n := len(m.graphs[graph])
		if v := keysShape.FindStringSubmatch(q); v != nil {
			n = len(m.ofKeys(graph, v[1], v[2]))
		}
		fmt.Fprintf(w, `{"head":{"vars":["n"]},"results":{"bindings":[{"n":{"type":"literal","value":"%d","datatype":"http://www.w3.org/2001/XMLSchema#integer"}}]}}`, n)
	case markShape.MatchString(q):
		g := markShape.FindStringSubmatch(q)
		for t := range m.graphs[g[1]] {
			if t.S == rdfres.NewIRI(g[2]) {
				rows = append(rows, []rdfres.Term{t.P, t.O})
			}
		}
		tsv("?p\t?o", rows)
	case toldShape.MatchString(q):
		g := toldShape.FindStringSubmatch(q)
		for t := range m.graphs[g[1]] {
			if m.graphs[g[1]][rdfres.Triple{S: t.S, P: rdfres.NewIRI(g[2]), O: rdfres.NewIRI(g[3])}] {
				rows = append(rows, []rdfres.Term{t.S, t.P, t.O})
			}
		}
		tsv("?s\t?p\t?o", rows)
	case othersShape.MatchString(q):
		g := othersShape.FindStringSubmatch(q)
		for t := range m.graphs[g[1]] {
			if m.graphs[g[1]][rdfres.Triple{S: t.S, P: rdfres.NewIRI(g[2]), O: rdfres.Term(g[3])}] {
				rows = append(rows, []rdfres.Term{t.S, t.P, t.O})
			}
		}
		tsv("?m\t?p\t?o", rows)
	case strings.HasPrefix(q, "SELECT ?g ?m WHERE"):
		for t := range m.graphs[sink.StateGraph] {
			if t.P == rdfres.NewIRI(graphOwner) {
				rows = append(rows, []rdfres.Term{t.S, t.O})
			}
		}
		tsv("?g\t?m", rows)
	case strings.HasPrefix(q, "SELECT ?g ?s ?p ?o") && !valuesShape.MatchString(q):
		for g, ts := range m.graphs {
			for t := range ts {
				if g != "" {
					rows = append(rows, []rdfres.Term{rdfres.NewIRI(g), t.S, t.P, t.O})
				}
			}
		}
		tsv("?g\t?s\t?p\t?o", rows)
	case probeShape.MatchString(q):
		p := probeShape.FindStringSubmatch(q)[1]
		for g, ts := range m.graphs {
			for t := range ts {
				if string(t.P) == p {
					rows = append(rows, []rdfres.Term{rdfres.NewIRI(g), t.S, t.O})
				}
			}
		}
		tsv("?g\t?s\t?o", rows)
	case valuesShape.MatchString(q):
		v := valuesShape.FindStringSubmatch(q)
		rows = m.ofKeys(graph, v[2], v[3])
		tsv(strings.ReplaceAll(v[1], " ", "\t"), rows)
	case strings.HasPrefix(q, "CONSTRUCT"):
		w.Header().Set("Content-Type", "application/n-triples")
		m.dump(w, graph)
	default:
		http.Error(w, "unknown query: "+q, http.StatusBadRequest)
	}
}

// ofKeys are the triples that have one of the subjects in a graph, or with their graph
// those of graphs.
func (m *testMirror) ofKeys(graph, variable, values string) (rows [][]rdfres.Term) {
	keys := strings.Fields(values)
	for g, ts := range m.graphs {
		for t := range ts {
			key, row := string(t.S), []rdfres.Term{t.S, t.P, t.O}
			if variable == "g" {
				key, row = "<"+g+">", append([]rdfres.Term{rdfres.NewIRI(g)}, row...)
			}
			if (variable == "g" || g == graph) && slices.Contains(keys, key) {
				rows = append(rows, row)
			}
		}
	}
	return rows
}

func (m *testMirror) dump(w io.Writer, graph string) {
	for t := range m.graphs[graph] {
		w.Write(t.AppendLine(nil))
	}
}

// update runs operations of the forms that a destination sends, all or none.
func (m *testMirror) update(text string) error {
	var do []func()
	fail := func(what string) error { return fmt.Errorf("%s near %q", what, text[:min(len(text), 80)]) }
	for text = strings.TrimSpace(text); text != ""; text = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(text), ";")) {
		switch {
		case strings.HasPrefix(text, "DROP SILENT GRAPH <"):
			g, rest, _ := strings.Cut(strings.TrimPrefix(text, "DROP SILENT GRAPH <"), ">")
			do = append(do, func() { delete(m.graphs, g) })
			text = rest
		case strings.HasPrefix(text, "DELETE WHERE { GRAPH <"):
			g, rest, _ := strings.Cut(strings.TrimPrefix(text, "DELETE WHERE { GRAPH <"), "> { <")
			s, rest, ok := strings.Cut(rest, "> ?p ?o } }")
			if !ok {
				return fail("DELETE WHERE")
			}
			do = append(do, func() {
				for t := range m.graphs[g] {
					if t.S == rdfres.NewIRI(s) {
						delete(m.graphs[g], t)
					}
				}
			})
			text = rest
		case strings.HasPrefix(text, "DELETE DATA {"), strings.HasPrefix(text, "INSERT DATA {"):
			insert := strings.HasPrefix(text, "INSERT")
			text = strings.TrimSpace(text[len("INSERT DATA {"):])
			graph := ""
			for !strings.HasPrefix(text, "}") {
				if g, ok := strings.CutPrefix(text, "GRAPH <"); ok {
					g, rest, ok := strings.Cut(g, "> {")
					if !ok {
						return fail("GRAPH")
					}
					graph, text = g, strings.TrimSpace(rest)
					for !strings.HasPrefix(text, "}") {
						t, rest, err := statementLine(text)
						if err != nil {
							return err
						}
						do = append(do, m.effect(graph, t, insert))
						text = rest
					}
					text = strings.TrimSpace(text[1:])
					continue
				}
				t, rest, err := statementLine(text)
				if err != nil {
					return err
				}
				do = append(do, m.effect("", t, insert))
				text = rest
			}
			text = text[1:]
		default:
			return fail("unknown operation")
		}
	}
	for _, f := range do {
		f()
	}
	return nil
}

func statementLine(text string) (rdfres.Triple, string, error) {
	line, rest, _ := strings.Cut(text, "\n")
	q, ok, err := rdfres.ParseLine([]byte(line))
	if err != nil || !ok {
		return rdfres.Triple{}, "", fmt.Errorf("triple %q: %v", line, err)
	}
	if q.S.Kind() == rdfres.KindBlank || q.O.Kind() == rdfres.KindBlank {
		return rdfres.Triple{}, "", fmt.Errorf("blank node in %q", line)
	}
	return q.Triple, strings.TrimSpace(rest), nil
}

func (m *testMirror) effect(graph string, t rdfres.Triple, insert bool) func() {
	if m.rewrite != nil {
		t = m.rewrite(t)
	}
	return func() {
		if !insert {
			delete(m.graphs[graph], t)
			if len(m.graphs[graph]) == 0 {
				delete(m.graphs, graph)
			}
			return
		}
		if m.graphs[graph] == nil {
			m.graphs[graph] = map[rdfres.Triple]bool{}
		}
		m.graphs[graph][t] = true
	}
}

func (m *testMirror) data(w http.ResponseWriter, r *http.Request) {
	graph := r.URL.Query().Get("graph")
	switch r.Method {
	case http.MethodGet:
		if len(m.graphs[graph]) == 0 {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/n-triples")
		m.dump(w, graph)
	case http.MethodDelete:
		delete(m.graphs, graph)
		w.WriteHeader(http.StatusNoContent)
	case http.MethodPut, http.MethodPost:
		m.posts++
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // cut: nothing is written
		}
		var ts []rdfres.Triple
		for line := range bytes.Lines(body) {
			q, ok, err := rdfres.ParseLine(bytes.TrimRight(line, "\n"))
			if err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			if ok {
				ts = append(ts, q.Triple)
			}
		}
		if r.Method == http.MethodPut {
			delete(m.graphs, graph)
		}
		for _, t := range ts {
			m.effect(graph, t, true)()
		}
		w.WriteHeader(http.StatusNoContent)
	}
}

// lines are the triples of a graph, skolem IRIs turned back, sorted.
func (m *testMirror) lines(graph string) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []string
	for t := range m.graphs[graph] {
		out = append(out, string(rdfres.Triple{S: rdfres.Unskolemize(t.S), P: t.P, O: rdfres.Unskolemize(t.O)}.AppendLine(nil)))
	}
	slices.Sort(out)
	return out
}

func (m *testMirror) exec(text string) {
	m.t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.update(text); err != nil {
		m.t.Fatal(err)
	}
}

// backup copies all graphs.
func (m *testMirror) backup() map[string]map[rdfres.Triple]bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return copyOfGraphs(m.graphs)
}

// restore makes the graphs what they were.
func (m *testMirror) restore(graphs map[string]map[rdfres.Triple]bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.graphs = copyOfGraphs(graphs)
}

func copyOfGraphs(graphs map[string]map[rdfres.Triple]bool) map[string]map[rdfres.Triple]bool {
	out := map[string]map[rdfres.Triple]bool{}
	for g, ts := range graphs {
		out[g] = maps.Clone(ts)
	}
	return out
}

// realMirrors are stores that no test here imitates: an endpoint, and a graph that is empty.
var realMirrors = map[string]func(t *testing.T) (sparql.Endpoint, string){
	"embedded": embeddedMirror,
	"fuseki": func(t *testing.T) (sparql.Endpoint, string) {
		s := teststores.Fuseki(t)
		return sparql.Endpoint{Name: "fuseki", Query: s.Query, Update: s.Update, GraphStore: s.GraphStore}, s.Graph
	},
	"oxigraph": func(t *testing.T) (sparql.Endpoint, string) {
		s := teststores.Oxigraph(t)
		return sparql.Endpoint{Name: "oxigraph", Query: s.Query, Update: s.Update, GraphStore: s.GraphStore}, s.Graph
	},
}

func embeddedMirror(t *testing.T) (sparql.Endpoint, string) {
	store, err := embedstore.Open(t.TempDir(), embedstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	return sparql.Endpoint{Name: "embedded", Query: "http://embedded/query", Update: "http://embedded/update", GraphStore: "http://embedded/data", Transport: store.Transport()}, "http://mirror.example/g"
}

// clientOf is a client that is closed with the test.
func clientOf(t testing.TB, e sparql.Endpoint) *sparql.Client {
	t.Helper()
	c, err := sparql.New(e)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// graphOwner is the property by which a graph of a mirror names its destination.
const graphOwner = sink.PropPrefix + "mirror"
