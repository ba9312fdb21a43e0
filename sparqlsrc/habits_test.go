package sparqlsrc

import (
	"bytes"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/internal/embedstore"
	"github.com/rsbridge/rsbridge/internal/inproc"
	"github.com/rsbridge/rsbridge/internal/sparql"
	"github.com/rsbridge/rsbridge/internal/teststores"
	"github.com/rsbridge/rsbridge/rdfres"
)

// habits are some of the bad ones that stores and proxies before them have (docs/reference/stores.md);
// 0 and "" are none.
type habits struct {
	Server                               string
	SelectRows, ConstructRows, GraphRows int  // longer answers end there in silence
	TellRows                             bool // in a header
	BreakRows                            int  // longer answers break off there
	BrokenOf, BusyOf                     int  // one of so many answers breaks off, or is Busy
	Break                                string
	Busy                                 int
	Values, ValuesStatus                 int // more of them are refused
	Bytes, BytesStatus                   int // longer queries are refused
	GraphStore                           int // its status
	TSV, NTriples, Direct                int // the status of what asks for one, or is no form
	AtOnce                               int // more requests are refused
	Relabel                              bool
}

// breaks are how answers break off: in an error, cleanly in the middle of a line, with the
// text of an error or as a page, or cleanly between two lines, which nothing but a count tells.
var breaks = []string{"abort", "line", "text", "page", "rows"}

func newHabits(r *rand.Rand) (h habits) {
	one := func(of int) bool { return r.IntN(of) == 0 }
	pick := func(of ...int) int { return of[r.IntN(len(of))] }
	rows := func() int { return pick(7, 37, 100, 137, 200, 256, 500, 1000, 1234) }
	if one(3) {
		if h.SelectRows = rows(); one(2) {
			h.ConstructRows = h.SelectRows
		}
	}
	if one(8) {
		h.ConstructRows = rows()
	}
	if one(8) {
		h.GraphRows = rows()
	}
	h.TellRows, h.Relabel, h.Break = one(3), one(2), breaks[r.IntN(len(breaks))]
	if one(8) {
		h.BreakRows = rows()
	}
	if one(6) {
		h.BrokenOf = pick(5, 20, 50, 100)
	}
	if one(8) {
		h.BusyOf, h.Busy = pick(5, 20, 50), pick(429, 503, 502, 500, 504)
	}
	if one(6) {
		h.Values, h.ValuesStatus = pick(10, 60, 250), pick(400, 500, 413)
	}
	if one(8) {
		h.Bytes, h.BytesStatus = pick(1000, 5000, 30000), pick(400, 413, 414, 500)
	}
	for _, status := range []*int{&h.GraphStore, &h.TSV, &h.NTriples, &h.Direct} {
		if one(6) {
			*status = pick(400, 403, 404, 405, 406, 415, 500, 501)
		}
	}
	if one(6) {
		h.AtOnce = 1
	}
	if one(8) {
		h.Server = []string{"Apache Jena Fuseki (5.0)", "Blazegraph", "nginx"}[r.IntN(3)]
	}
	return h
}

// strange is a store with habits. What befalls a request follows from its text and from
// how often it came, so that a seed tells all.
type strange struct {
	habits
	store http.Handler
	seed  uint64
	edit  func() // between two answers
	open  atomic.Int32

	mu    sync.Mutex
	times map[string]int
}

var (
	valuesPattern = regexp.MustCompile(`VALUES \?\w+ \{[^}]*\}`)
	limitPattern  = regexp.MustCompile(`LIMIT (\d+)`)
	labelPattern  = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|<[^>]*>|_:\w+`)
	jsonLabel     = regexp.MustCompile(`"type":"bnode","value":"\w+"`)
)

func (s *strange) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	defer s.open.Add(-1)
	open := int(s.open.Add(1))
	if s.edit != nil {
		s.edit()
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	isForm := strings.HasPrefix(req.Header.Get("Content-Type"), "application/x-www-form-urlencoded")
	req.Body = io.NopCloser(bytes.NewReader(body))
	ofGraphs := strings.HasSuffix(req.URL.Path, "/data")
	text := req.FormValue("query")
	switch {
	case ofGraphs:
		text = req.URL.RawQuery
	case text == "":
		text = string(body)
	}
	s.mu.Lock()
	s.times[text]++
	hash := fnv.New64a()
	fmt.Fprint(hash, s.seed, text, s.times[text])
	s.mu.Unlock()
	r := rand.New(rand.NewPCG(hash.Sum64(), 1))
	accept, values := req.Header.Get("Accept"), 0
	for _, list := range valuesPattern.FindAllString(text, -1) {
		values = max(values, strings.Count(list, "<"))
	}
	for status, is := range map[int]bool{
		s.Busy: s.BusyOf > 0 && r.IntN(s.BusyOf) == 0, http.StatusServiceUnavailable: s.AtOnce > 0 && open > s.AtOnce,
		s.ValuesStatus: s.Values > 0 && values > s.Values, s.BytesStatus: s.Bytes > 0 && len(text) > s.Bytes,
		s.GraphStore: ofGraphs, s.Direct: !ofGraphs && !isForm, s.TSV: strings.HasPrefix(accept, "text/tab"), s.NTriples: strings.HasPrefix(accept, "application/n-"),
	} {
		if is && status > 0 {
			http.Error(w, "not so", status)
			return
		}
	}
	most := s.GraphRows
	if !ofGraphs {
		if most = s.SelectRows; strings.Contains(accept, "n-triples") {
			most = s.ConstructRows
		}
		if most > 0 && !strings.Contains(text, "ASK") {
			text = limited(text, most)
		}
		in := httptest.NewRequest(http.MethodPost, req.URL.Path, strings.NewReader(text))
		in.Header.Set("Content-Type", "application/sparql-query")
		in.Header.Set("Accept", accept)
		req = in.WithContext(req.Context())
	}
	rec := httptest.NewRecorder()
	s.store.ServeHTTP(rec, req)
	maps.Copy(w.Header(), rec.Header())
	w.Header().Del("Content-Length")
	if s.Server != "" {
		w.Header().Set("Server", s.Server)
	}
	answer := rec.Body.Bytes()
	lines := bytes.SplitAfter(answer, []byte("\n"))
	if ofGraphs && most > 0 {
		lines = lines[:min(most, len(lines))]
	}
	rows, head := len(lines)-1, !ofGraphs && !strings.Contains(accept, "n-triples")
	if s.TellRows && most > 0 && (rows == most || head && rows-1 == most) {
		w.Header().Set("X-SPARQL-MaxRows", strconv.Itoa(most))
	}
	broken := s.BreakRows > 0 && rows > s.BreakRows
	if broken {
		lines = lines[:1+s.BreakRows]
	} else if broken = s.BrokenOf > 0 && r.IntN(s.BrokenOf) == 0 && rows > 0; broken {
		lines = lines[:1+r.IntN(rows)]
	}
	answer = bytes.Join(lines, nil)
	if s.Relabel {
		salt := fmt.Sprintf("r%d", r.IntN(1000))
		answer = labelPattern.ReplaceAllFunc(answer, func(term []byte) []byte {
			if term[0] == '_' {
				return append([]byte("_:"+salt), term[2:]...)
			}
			return term
		})
		answer = jsonLabel.ReplaceAllFunc(answer, func(b []byte) []byte { return bytes.Replace(b, []byte(`"value":"`), []byte(`"value":"`+salt), 1) })
	}
	if broken {
		switch s.Break {
		case "abort":
			w.WriteHeader(rec.Code)
			_, _ = w.Write(answer)
			panic(http.ErrAbortHandler)
		case "line":
			answer = answer[:len(answer)-min(len(answer), 3)]
		case "text":
			answer = append(answer, "\nVirtuoso 42000 Error SR171: Transaction timed out\n"...)
		case "page":
			w.Header().Set("Content-Type", "text/html")
			answer = []byte("<!DOCTYPE html><html><body>An error occurred</body></html>")
		}
	}
	w.WriteHeader(rec.Code)
	_, _ = w.Write(answer)
}

// limited is a query that gives no more rows than so many.
func limited(query string, rows int) string {
	at := limitPattern.FindAllStringSubmatchIndex(query, -1)
	if at == nil || strings.Contains(query[at[len(at)-1][1]:], "}") { // of a part of it
		return query + " LIMIT " + strconv.Itoa(rows)
	}
	last := at[len(at)-1]
	if n, _ := strconv.Atoi(query[last[2]:last[3]]); n <= rows {
		return query
	}
	return query[:last[2]] + strconv.Itoa(rows) + query[last[3]:]
}

// TestHabits: of stores with drawn habits, which change, each scan and each description is
// what a plain reading says, or an error. RSBRIDGE_HISTORIES is the number of stores, for
// campaigns; RSBRIDGE_HISTORY that of one, whose errors are told.
func TestHabits(t *testing.T) {
	from, to := 0, teststores.Histories(1, 6)
	if n, err := strconv.Atoi(os.Getenv("RSBRIDGE_HISTORY")); err == nil {
		from, to = n, n+1
	}
	store, err := embedstore.Open(t.TempDir(), embedstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	whole, failed := 0, map[string]int{}
	for seed := from; seed < to; seed++ {
		w, f := oneStrange(t, store, uint64(seed))
		whole += w
		for _, err := range f {
			failed[err]++
		}
		if t.Failed() {
			break
		}
	}
	t.Logf("%d scans were whole", whole)
	if to-from == 1 {
		t.Log(failed)
	}
}

func oneStrange(t *testing.T, store *embedstore.Store, seed uint64) (whole int, failed []string) {
	r := rand.New(rand.NewPCG(seed, 20))
	straight := clientOf(t, sparql.Endpoint{Update: "http://s/update", Transport: store.Transport()})
	s := &strange{habits: newHabits(r), store: store.Handler(), seed: seed, times: map[string]int{}}
	w, cfg, union := newWorld(r), newConfig(r), r.IntN(4) == 0
	if union {
		s.Server = "Virtuoso/07.20"
	}
	e := sparql.Endpoint{GraphStore: "http://s/data", Transport: inproc.Transport{Handler: s}, Concurrency: r.IntN(3)}
	if r.IntN(4) == 0 {
		e.GraphStore = ""
	}
	cfg.TempDir = t.TempDir()
	src, err := New(clientOf(t, e), cfg)
	if err != nil {
		t.Fatal(err)
	}
	others := false // the store is set up otherwise now
	for round := range 3 {
		if others = round == 2 && r.IntN(2) == 0; others {
			server := s.Server
			s.habits = newHabits(r)
			s.Server = server
		}
		if query := cfg.Select.Query != "" || cfg.Describe == ownTriples; union && (query || cfg.Describe == "graph") || !union && query && slices.Equal(cfg.Graphs, []string{"*"}) {
			delete(w, "") // no query is asked over it and all others
		}
		load := func() {
			if err := w.load(t.Context(), straight, union); err != nil {
				t.Fatal(err)
			}
		}
		load()
		want := w.says(t, cfg, union)
		what := fmt.Sprintf("seed %d, round %d, union %v, graphs %q, describe %s, select %+v, strategy %s, batch %d, %+v", seed, round, union, cfg.Graphs, cfg.Describe, cfg.Select, cfg.Strategy, cfg.BatchSize, s.habits)
		writing := r.IntN(4) == 0
		if writing {
			var n atomic.Int64
			of := 1 + r.Int64N(10)
			s.edit = func() {
				if n := n.Add(1); n%of == 0 {
					_ = straight.Update(t.Context(), fmt.Sprintf("%s DATA { <http://edit.example/%d> <http://example.org/p1> \"%d\" }", []string{"INSERT", "INSERT", "DELETE"}[n%3], n%40, n%3))
				}
			}
		}
		got, err := allOf(t, src)
		s.edit = nil
		// Known: what ends between two rows, and on no limit, is seen only where all is counted.
		// So is a limit that is less than what the probe saw come whole.
		silent := s.Break == "rows" && s.BreakRows+s.BrokenOf > 0 || others && s.SelectRows+s.ConstructRows > 0
		if err != nil {
			failed = append(failed, fmt.Sprint(what, ": ", err))
		} else if whole++; !silent || cfg.Describe != ownTriples {
			for e := range got {
				if writing && strings.HasPrefix(e, "http://edit.example/") {
					delete(got, e)
				}
			}
			diff(t, what, got, want)
		}
		if writing {
			load()
		}
		if err := w.hints(t, r, src, cfg, union, want); err != nil && (silent || !errors.Is(err, errWrong)) {
			failed = append(failed, fmt.Sprint(what, ": hints: ", err))
		} else if err != nil {
			t.Error(what, ": ", err)
		}
		w.change(r)
	}
	return whole, failed
}

// clientOf asks a store of this process.
func clientOf(t *testing.T, e sparql.Endpoint) *sparql.Client {
	e.Query, e.RetryPause, e.Retries = "http://s/query", time.Microsecond, 2
	client, err := sparql.New(e)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

// allOf is a scan: it ends with the last description, before which the store is asked for
// counts still.
func allOf(t *testing.T, s *Source) (map[string][]rdfres.Triple, error) {
	sc, err := s.Scan(t.Context())
	if err != nil {
		return nil, err
	}
	defer sc.Close()
	out := map[string][]rdfres.Triple{}
	for d, err := range sc.Descriptions() {
		if err != nil {
			return nil, err
		}
		out[d.Entity] = d.Triples
	}
	for e, err := range sc.Failed() {
		return nil, fmt.Errorf("%s failed: %w", e, err)
	}
	return out, nil
}

// TestLongAnswersBreakOff: of a store or a proxy that ends long answers, however it does, a
// part that failed is narrowed and asked for again, from the probe on.
func TestLongAnswersBreakOff(t *testing.T) {
	store, err := embedstore.Open(t.TempDir(), embedstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	w := world{}
	for i := range 120 {
		e, b := rdfres.NewIRI(fmt.Sprint("http://example.org/e", i)), rdfres.NewBlank(fmt.Sprint("b", i))
		w[""] = append(w[""], rdfres.Triple{S: e, P: rdfType, O: "<http://example.org/C0>"}, rdfres.Triple{S: e, P: "<http://example.org/p>", O: b}, rdfres.Triple{S: b, P: "<http://example.org/p>", O: `"1"`})
	}
	w[""] = rdfres.SortUnique(w[""])
	if err := w.load(t.Context(), clientOf(t, sparql.Endpoint{Update: "http://s/update", Transport: store.Transport()}), false); err != nil {
		t.Fatal(err)
	}
	for _, how := range breaks {
		for _, strategy := range []string{"", "batches", "hash", "predicates"} {
			s := &strange{habits: habits{BreakRows: 100, Break: how}, store: store.Handler(), times: map[string]int{}}
			src, err := New(clientOf(t, sparql.Endpoint{GraphStore: "http://s/data", Transport: inproc.Transport{Handler: s}}), Config{Strategy: strategy, TempDir: t.TempDir()})
			if err != nil {
				t.Fatal(err)
			}
			if got, err := allOf(t, src); err != nil {
				t.Errorf("%s, strategy %q: %v", how, strategy, err)
			} else {
				diff(t, how+", strategy "+strategy, got, w.says(t, Config{}, false))
			}
			caps, err := src.Capabilities(t.Context())
			told := slices.ContainsFunc(caps.Advise(sparql.Manners{}, sparql.Limits{}).Will, func(s string) bool { return strings.HasSuffix(s, "answers of 360 triples break off in every way") })
			if err != nil || told != (how != "rows") {
				t.Errorf("%s: %+v %v", how, caps, err)
			}
		}
	}
}
