// Package sparqltest is a small triple store over HTTP for tests: as much of
// SPARQL as this house asks, evaluated in the plainest way, and able to lie and
// fail like the real ones.
package sparqltest

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/rdfres/codec"
)

// Fault is what happens to one answer.
type Fault struct {
	Status     int    // answer with this status and Body
	Body       string // also for Status 0, as a whole answer of the type Type
	Type       string // another content type than the right one
	CutAfter   int    // end the connection after so many bytes of the body; 0: never
	CutClean   bool   // with CutAfter: end the answer as if it were whole
	Hang       bool   // send the head, then nothing until the request ends
	RetryAfter string
}

// Store is an http.Handler at any path that ends in /query, /update or /data.
// Set the fields before the first request; Mutate changes data while it serves.
type Store struct {
	Server       string // the Server header
	UnionDefault bool   // the default graph shows all named graphs
	RowLimit     int    // longer answers are cut and 200 OK; 0: never
	TellLimit    bool   // by X-SPARQL-MaxRows
	Longest      int    // of longer answers, in bytes, nothing comes, and 200 OK; 0: never
	TooMany      int    // more VALUES than this are answered with 400; 0: any number
	Relabel      bool   // new labels for blank nodes in each answer
	Shuffle      bool   // another order in each answer
	VirtuosoTSV  bool   // tab-separated values in which terms cannot be told apart
	NoTSV        bool
	Table        bool // the binary results of RDF4J
	NoConstruct  bool
	NoDirect     bool // a query that is the body of its request is never answered; forms are
	NotAtomic    bool // an update keeps what came before its failing operation
	// Fault is asked for each request; nil: no fault. op is the path's last part.
	Fault func(op, body string) *Fault
	// After is called after each query that was answered.
	After func(op, body string)

	// Twins makes each triple with the object "twin" two, as a store of RDF 1.0
	// that holds it as a plain literal and as an xsd:string.
	Twins bool
	// Rewrite changes the body of an answer; nil: none is changed.
	Rewrite func(op, body string, content []byte) []byte

	mu sync.Mutex // guards in
	in inside
}

// inside is a store's data, and what it was asked.
type inside struct {
	graphs  map[string]map[rdfres.Triple]bool // "" is the default graph
	index   map[string]*index
	rng     *rand.Rand
	queries []string
}

type index struct {
	all      []rdfres.Triple
	byS, byO map[rdfres.Term][]rdfres.Triple
}

// New makes a store with triples in the default graph.
func New(ts ...rdfres.Triple) *Store {
	s := &Store{in: inside{graphs: map[string]map[rdfres.Triple]bool{}, index: map[string]*index{}, rng: rand.New(rand.NewPCG(1, 2))}}
	s.Add("", ts...)
	return s
}

// Add adds triples to a graph, "" the default one.
func (s *Store) Add(graph string, ts ...rdfres.Triple) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.add(graph, ts)
}

func (s *Store) add(graph string, ts []rdfres.Triple) {
	if s.in.graphs[graph] == nil {
		s.in.graphs[graph] = map[rdfres.Triple]bool{}
	}
	for _, t := range ts {
		s.in.graphs[graph][t] = true
	}
	clear(s.in.index)
}

// Remove removes triples.
func (s *Store) Remove(graph string, ts ...rdfres.Triple) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range ts {
		delete(s.in.graphs[graph], t)
	}
	clear(s.in.index)
}

// Graph gives the triples of a graph, sorted.
func (s *Store) Graph(graph string) []rdfres.Triple {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []rdfres.Triple
	for t := range s.in.graphs[graph] {
		out = append(out, t)
	}
	return rdfres.SortUnique(out)
}

// Graphs gives the names of the graphs that hold something.
func (s *Store) Graphs() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for g, ts := range s.in.graphs {
		if len(ts) > 0 {
			out = append(out, g)
		}
	}
	slices.Sort(out)
	return out
}

// Queries gives the queries and updates that came, in order, and forgets them.
func (s *Store) Queries() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.in.queries
	s.in.queries = nil
	return out
}

// at gives the index of a graph; "\x00union" is all of them, with doubles.
func (s *Store) at(graph string) *index {
	if ix := s.in.index[graph]; ix != nil {
		return ix
	}
	ix := &index{byS: map[rdfres.Term][]rdfres.Triple{}, byO: map[rdfres.Term][]rdfres.Triple{}}
	if graph == "" && s.UnionDefault {
		for _, ts := range s.in.graphs {
			for t := range ts {
				ix.all = append(ix.all, t)
			}
		}
	} else {
		for t := range s.in.graphs[graph] {
			ix.all = append(ix.all, t)
		}
	}
	if s.Twins {
		for _, t := range ix.all {
			if t.O == `"twin"` {
				t.O += "^^<http://www.w3.org/2001/XMLSchema#string>" // not canonical, so another term here
				ix.all = append(ix.all, t)
			}
		}
	}
	slices.SortFunc(ix.all, rdfres.Triple.Compare)
	for _, t := range ix.all {
		ix.byS[t.S] = append(ix.byS[t.S], t)
		ix.byO[t.O] = append(ix.byO[t.O], t)
	}
	s.in.index[graph] = ix
	return ix
}

// ServeHTTP answers queries, updates and Graph Store requests.
func (s *Store) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	op := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
	direct := r.Header.Get("Content-Type") == "application/sparql-query; charset=utf-8"
	if form, err := url.ParseQuery(string(body)); err == nil && r.Header.Get("Content-Type") == "application/x-www-form-urlencoded" {
		body = []byte(form.Get("query"))
	} else if op == "query" && direct && s.NoDirect {
		<-r.Context().Done() // as Virtuoso does
		return
	} else if op == "query" && !direct {
		http.Error(w, "no query", http.StatusUnsupportedMediaType)
		return
	}
	s.mu.Lock()
	s.in.queries = append(s.in.queries, string(body))
	s.mu.Unlock()
	var fault *Fault
	if s.Fault != nil {
		fault = s.Fault(op, string(body))
	}
	if s.Server != "" {
		w.Header().Set("Server", s.Server)
	}
	if fault != nil && fault.Status != 0 {
		if fault.RetryAfter != "" {
			w.Header().Set("Retry-After", fault.RetryAfter)
		}
		http.Error(w, fault.Body, fault.Status)
		return
	}
	var out bytes.Buffer
	mediaType, status := "", http.StatusOK
	s.mu.Lock()
	switch {
	case op == "query":
		mediaType, err = s.query(&out, w.Header(), string(body), r.Header.Get("Accept"))
	case op == "update" && r.Header.Get("Content-Type") == "application/sparql-update; charset=utf-8":
		err, status = s.update(string(body)), http.StatusNoContent
	case op == "data":
		mediaType, status, err = s.data(&out, r, body)
	default:
		status, err = http.StatusUnsupportedMediaType, fmt.Errorf("%s of %s", r.Method, r.URL.Path)
	}
	s.mu.Unlock()
	if err != nil {
		if status < 400 {
			status = http.StatusBadRequest
		}
		http.Error(w, err.Error(), status)
		return
	}
	if s.After != nil {
		s.After(op, string(body))
	}
	content := out.Bytes()
	if s.Rewrite != nil {
		content = s.Rewrite(op, string(body), content)
	}
	if fault != nil {
		if fault.Type != "" {
			mediaType = fault.Type
		}
		if fault.Body != "" {
			content = []byte(fault.Body)
		}
	}
	if mediaType != "" {
		w.Header().Set("Content-Type", mediaType)
	}
	if fault != nil && fault.Hang {
		// Never 204: that has no body, so the client would send its next request
		// on this connection, and nobody would answer it.
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		return
	}
	if s.Longest > 0 && len(content) > s.Longest {
		content = nil
	}
	if fault != nil && fault.CutAfter > 0 && fault.CutAfter < len(content) {
		content = content[:fault.CutAfter]
		if !fault.CutClean {
			w.WriteHeader(status)
			_, _ = w.Write(content)
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}
	}
	w.WriteHeader(status)
	if status != http.StatusNoContent {
		_, _ = w.Write(content) // the client may have gone
	}
}

// data is the Graph Store Protocol.
func (s *Store) data(out *bytes.Buffer, r *http.Request, body []byte) (mediaType string, status int, err error) {
	graph := r.URL.Query().Get("graph")
	if graph == "" && !r.URL.Query().Has("default") {
		return "", http.StatusBadRequest, fmt.Errorf("no graph")
	}
	_, exists := s.in.graphs[graph]
	switch r.Method {
	case http.MethodGet:
		if !exists && graph != "" {
			return "", http.StatusNotFound, fmt.Errorf("no graph %s", graph)
		}
		rows := slices.Clone(s.at(graph).all)
		rows = slices.Compact(rows)
		s.shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
		label := s.labels()
		for _, t := range s.limit(rows) {
			t.S, t.O = label(t.S), label(t.O)
			out.Write(t.AppendLine(nil))
		}
		return "application/n-triples", http.StatusOK, nil
	case http.MethodPut, http.MethodPost:
		var ts []rdfres.Triple
		for q, err := range codec.Read(bytes.NewReader(body), rdfres.NTriples, rdfres.ReadOptions{}) {
			if err != nil {
				return "", http.StatusBadRequest, err
			}
			ts = append(ts, q.Triple)
		}
		if r.Method == http.MethodPut {
			delete(s.in.graphs, graph)
		}
		s.add(graph, ts)
		return "", http.StatusNoContent, nil
	case http.MethodDelete:
		if !exists {
			return "", http.StatusNotFound, fmt.Errorf("no graph %s", graph)
		}
		delete(s.in.graphs, graph)
		clear(s.in.index)
		return "", http.StatusNoContent, nil
	}
	return "", http.StatusMethodNotAllowed, fmt.Errorf("%s", r.Method)
}

func (s *Store) limit(ts []rdfres.Triple) []rdfres.Triple {
	if s.RowLimit > 0 && len(ts) > s.RowLimit {
		return ts[:s.RowLimit]
	}
	return ts
}

func (s *Store) shuffle(n int, swap func(i, j int)) {
	if s.Shuffle {
		s.in.rng.Shuffle(n, swap)
	}
}

// labels gives the labels of one answer.
func (s *Store) labels() func(rdfres.Term) rdfres.Term {
	if !s.Relabel {
		return func(t rdfres.Term) rdfres.Term { return t }
	}
	names := map[rdfres.Term]rdfres.Term{}
	salt := s.in.rng.IntN(1000)
	return func(t rdfres.Term) rdfres.Term {
		if t.Kind() != rdfres.KindBlank {
			return t
		}
		if names[t] == "" {
			names[t] = rdfres.NewBlank(fmt.Sprintf("b%d", (len(names)*7919+salt)%1000003))
		}
		return names[t]
	}
}

func writeTSV(out *bytes.Buffer, vars []string, rows [][]rdfres.Term) {
	w := bufio.NewWriter(out)
	for i, v := range vars {
		if i > 0 {
			_ = w.WriteByte('\t')
		}
		_, _ = w.WriteString("?" + v)
	}
	_ = w.WriteByte('\n')
	for _, row := range rows {
		for i, t := range row {
			if i > 0 {
				_ = w.WriteByte('\t')
			}
			_, _ = w.WriteString(string(t))
		}
		_ = w.WriteByte('\n')
	}
	_ = w.Flush() // into memory
}
