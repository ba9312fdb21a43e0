package faces

import (
	"context"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/changetrack"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/internal/kv/memkv"
	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/rdfres/codec"
)

const testBase = "http://source.example/sync"

// clock is the time of a test; it moves when told.
type clock struct {
	mu sync.Mutex
	t  time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

// world is a log, what it should hold, and its faces.
type world struct {
	t     testing.TB
	clock *clock
	store kv.Store
	log   *changetrack.Log
	cfg   SetConfig
	faces *Faces
	h     http.Handler
	model map[string][]rdfres.Triple // what is there now
}

func newWorld(t testing.TB, cfg SetConfig) *world {
	w := &world{t: t, clock: &clock{t: time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)}, store: memkv.New(), model: map[string][]rdfres.Triple{}}
	track, err := changetrack.Open(t.Context(), kv.Prefix(w.store, []byte("log/")), changetrack.Options{Dir: t.TempDir(), Now: w.clock.now})
	w.must(err)
	t.Cleanup(func() { w.must(track.Close()) })
	cfg.Name = "data"
	if cfg.Base == nil {
		cfg.Base = func(context.Context) string { return testBase }
	}
	if cfg.Faces == nil {
		cfg.Faces = Names
	}
	w.log, err = track.Log(t.Context(), cfg.Name)
	w.must(err)
	cfg.Log = w.log
	w.cfg = cfg
	w.reopen()
	return w
}

// reopen forgets what the faces have in memory.
func (w *world) reopen() {
	w.t.Helper()
	var err error
	w.faces, err = New([]SetConfig{w.cfg}, Options{Now: w.clock.now})
	w.must(err)
	w.h = w.faces.Handler(http.NotFoundHandler())
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func entityName(i int) string { return "http://example.org/e/" + strconv.Itoa(i) }

func triplesOf(entity string, value int) []rdfres.Triple {
	s := rdfres.NewIRI(entity)
	ts := []rdfres.Triple{
		{S: s, P: rdfres.NewIRI("http://www.w3.org/2000/01/rdf-schema#label"), O: rdfres.NewLiteral("label of "+entity, "en", "")},
		{S: s, P: rdfType, O: rdfres.NewIRI("http://schema.org/Book")},
		{S: s, P: rdfres.NewIRI("http://example.org/value"), O: rdfres.NewLiteral(strconv.Itoa(value), "", nsXSD+"integer")},
	}
	if value%3 == 0 {
		b := rdfres.NewBlank("b")
		ts = append(ts, rdfres.Triple{S: s, P: rdfres.NewIRI("http://schema.org/author"), O: b},
			rdfres.Triple{S: b, P: rdfres.NewIRI("http://schema.org/name"), O: rdfres.NewLiteral("A \"quoted\"\nname "+strconv.Itoa(value%5), "", "")})
	}
	named, _, err := rdfres.NameBlanks(ts, rdfres.NameOptions{})
	if err != nil {
		panic(err)
	}
	return named
}

// scan makes the log hold the model.
func (w *world) scan() changetrack.ScanResult {
	w.t.Helper()
	entities := slices.SortedFunc(maps.Keys(w.model), func(a, b string) int {
		ka, kb := rdfres.EntityKey(a), rdfres.EntityKey(b)
		return slices.Compare(ka[:], kb[:])
	})
	res, err := w.log.Scan(w.t.Context(), func(yield func(rdfres.Description, error) bool) {
		for _, e := range entities {
			if !yield(rdfres.Description{Entity: e, Triples: w.model[e]}, nil) {
				return
			}
		}
	}, changetrack.ScanOptions{MaxDeleteRatio: -1})
	w.must(err)
	return res
}

// grow makes n entities.
func (w *world) grow(n int) {
	w.t.Helper()
	for i := range n {
		e := entityName(i)
		w.model[e] = triplesOf(e, i)
	}
	w.scan()
}

// change changes some entities of the first n at random.
func (w *world) change(r *rand.Rand, n, changes int) {
	w.t.Helper()
	for range changes {
		e := entityName(r.IntN(n))
		switch {
		case r.IntN(4) == 0:
			delete(w.model, e)
		default:
			w.model[e] = triplesOf(e, r.IntN(1000))
		}
	}
	w.scan()
}

func (w *world) retain(changes, versions time.Duration) {
	w.t.Helper()
	now := w.clock.now()
	_, err := w.log.Retain(w.t.Context(), now.Add(-changes), now.Add(-versions))
	w.must(err)
}

type answer struct {
	code   int
	header http.Header
	body   string
}

func (w *world) do(method, path string, header ...string) answer {
	w.t.Helper()
	r := httptest.NewRequestWithContext(context.Background(), method, path, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	rec := httptest.NewRecorder()
	w.h.ServeHTTP(rec, r)
	body, _ := io.ReadAll(rec.Result().Body)
	return answer{rec.Code, rec.Result().Header, string(body)}
}

// get wants 200.
func (w *world) get(path string, header ...string) answer {
	w.t.Helper()
	a := w.do(http.MethodGet, path, header...)
	if a.code != http.StatusOK {
		w.t.Fatalf("GET %s: %d %s", path, a.code, a.body)
	}
	return a
}

// quads reads an answer.
func (w *world) quads(path string, body string, f rdfres.Format) (out []rdfres.Quad) {
	w.t.Helper()
	for q, err := range codec.Read(strings.NewReader(body), f, rdfres.ReadOptions{Name: path}) {
		if err != nil {
			w.t.Fatalf("%s: %v\n%s", path, err, body)
		}
		out = append(out, q)
	}
	return out
}

// event is a member as a client of the event stream reads it.
type event struct {
	id, kind, entity, graph string
	sequence                int
	published               string
	triples                 []rdfres.Triple
}

func (e event) String() string {
	return fmt.Sprint(e.id, e.kind, e.entity, e.graph, e.sequence, e.published, e.triples)
}
