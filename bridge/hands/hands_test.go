package hands

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rsbridge/rsbridge/internal/blob"
	"github.com/rsbridge/rsbridge/internal/blob/fileblob"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/internal/kv/pgkv"
	"github.com/rsbridge/rsbridge/internal/sparql"
	"github.com/rsbridge/rsbridge/internal/sparql/sparqltest"
	"github.com/rsbridge/rsbridge/internal/teststores"
	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/sparqlsrc"
)

// world is a store with two replicas, the state in a database, and a work area.
type world struct {
	database string
	lead     int64
	files    blob.Store
	stores   [3]*sparqltest.Store
	servers  []*sparql.Client
	log      syncBuffer
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{database: teststores.Postgres(t), files: fileblob.New(t.TempDir())}
	state, err := pgkv.Open(t.Context(), w.database, kv.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { state.Close() })
	l, err := state.Leader(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w.lead = l.Number
	for i := range w.stores {
		w.stores[i] = sparqltest.New(triples()...)
		server := httptest.NewServer(w.stores[i])
		t.Cleanup(server.Close)
		c, err := sparql.New(sparql.Endpoint{Name: fmt.Sprint("server ", i), Query: server.URL + "/query", RetryPause: time.Millisecond, Timeout: time.Minute, Concurrency: 2})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		w.servers = append(w.servers, c)
	}
	return w
}

func triples() (ts []rdfres.Triple) {
	for i := range 200 {
		s := rdfres.NewIRI(fmt.Sprint("http://example.org/e", i))
		for p := range 6 {
			ts = append(ts, rdfres.Triple{S: s, P: rdfres.NewIRI(fmt.Sprint("http://example.org/p", p)), O: rdfres.NewLiteral(fmt.Sprint(i*p), "", "")})
		}
		if i%10 == 0 {
			b := rdfres.NewBlank(fmt.Sprint("b", i))
			ts = append(ts, rdfres.Triple{S: s, P: "<http://example.org/has>", O: b}, rdfres.Triple{S: b, P: "<http://example.org/is>", O: s})
		}
	}
	return append(ts, rdfres.Triple{S: "<http://example.org/odd>", P: "<http://example.org/p0>", O: `"x"@en--y`})
}

func (w *world) options(t *testing.T, files blob.Store) Options {
	return Options{Database: w.database, Files: func(context.Context) (blob.Store, error) { return files, nil }, TempDir: filepath.Join(t.TempDir(), "parts"), Logger: slog.New(slog.NewTextHandler(&w.log, nil))}
}

func (w *world) source(t *testing.T, h sparqlsrc.Hands) *sparqlsrc.Source {
	t.Helper()
	s, err := sparqlsrc.New(w.servers[0], sparqlsrc.Config{Name: "data", Strategy: "predicates", Replicas: w.servers[1:], Hands: h, TempDir: t.TempDir(), Logger: slog.New(slog.NewTextHandler(&w.log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	s.SetCapabilities(sparql.Capabilities{Readings: []sparql.Reading{sparql.ReadSelectTSV}, ValuesLimit: 5000})
	return s
}

// worker takes parts as a process that stands by.
func (w *world) worker(t *testing.T) *Worker {
	t.Helper()
	o := w.options(t, w.files)
	o.Readers = map[string]Reader{"data": {w.source(t, nil), w.servers}}
	worker, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(worker.Stop)
	return worker
}

// scan is what the leader finds; hands nil: alone.
func (w *world) scan(t *testing.T, l *Leader) (map[string][]rdfres.Triple, *sparqlsrc.Scan, error) {
	t.Helper()
	var h sparqlsrc.Hands
	if l != nil {
		h = l
	}
	s := w.source(t, h)
	if l != nil {
		l.Readers = map[string]Reader{"data": {s, w.servers}}
	}
	sc, err := s.Scan(t.Context())
	if err != nil {
		return nil, nil, err
	}
	defer sc.Close()
	got := map[string][]rdfres.Triple{}
	for d, err := range sc.Descriptions() {
		if err != nil {
			return nil, nil, err
		}
		got[d.Entity] = d.Triples
	}
	return got, sc, nil
}

func (w *world) leader(t *testing.T, files blob.Store) *Leader {
	return &Leader{Options: w.options(t, files), Set: "data", Lead: w.lead}
}

// left are the objects and jobs of ended scans.
func (w *world) left(t *testing.T) (objects []string, jobs int) {
	t.Helper()
	for info, err := range w.files.List(t.Context(), "", "") {
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, info.Name)
	}
	conn, err := pgx.Connect(t.Context(), w.database)
	if err == nil {
		defer conn.Close(t.Context())
		err = conn.QueryRow(t.Context(), `SELECT count(*) FROM river_job`).Scan(&jobs)
	}
	if err != nil {
		t.Fatal(err)
	}
	return objects, jobs
}

const told = "several processes read the scan"

// TestSeveral: a scan gives what it gives alone, whatever happens to the other processes and the objects.
func TestSeveral(t *testing.T) {
	defer func(before time.Duration) { patience = before }(patience)
	w := newWorld(t)
	want, alone, err := w.scan(t, nil)
	if err != nil || len(want) != 200 || alone.FailedCount() != 1 {
		t.Fatalf("alone: %d, %v", len(want), err)
	}
	check := func(t *testing.T, l *Leader, several bool) {
		t.Helper()
		before := strings.Count(w.log.String(), told)
		got, sc, err := w.scan(t, l)
		if err != nil {
			t.Fatal(err)
		}
		if !maps.EqualFunc(got, want, slices.Equal) || sc.Stats() != statsLike(sc, alone) || sc.FailedCount() != 1 || sc.Failed()["http://example.org/odd"] == nil {
			t.Errorf("%d descriptions, %+v, failed %v; want %d, %+v", len(got), sc.Stats(), sc.Failed(), len(want), alone.Stats())
		}
		if is := strings.Count(w.log.String(), told) > before; is != several {
			t.Errorf("read by several: %v\n%s", is, w.log.String())
		}
	}
	t.Run("alone", func(t *testing.T) { check(t, w.leader(t, w.files), false) })
	w.worker(t)
	second := w.worker(t)
	t.Run("three", func(t *testing.T) {
		check(t, w.leader(t, w.files), true)
		if objects, jobs := w.left(t); len(objects)+jobs > 0 {
			t.Errorf("left: %v, %d jobs", objects, jobs)
		}
	})
	t.Run("lost lead", func(t *testing.T) {
		l := w.leader(t, w.files)
		l.Lead--
		check(t, l, false)
	})
	t.Run("old objects", func(t *testing.T) {
		for _, name := range []string{"0/a/b/1-x", fmt.Sprintf("%d/a/b/1-x", w.lead)} {
			if err := w.files.Create(t.Context(), name, strings.NewReader("x"), 1, blob.Meta{}); err != nil {
				t.Fatal(err)
			}
		}
		check(t, w.leader(t, w.files), true)
		if objects, _ := w.left(t); len(objects) != 1 || objects[0][0] == '0' {
			t.Errorf("left: %v", objects)
		}
	})
	t.Run("a replica refuses", func(t *testing.T) {
		w.stores[1].Fault = func(string, string) *sparqltest.Fault { return &sparqltest.Fault{Status: 400, Body: "no"} }
		defer func() { w.stores[1].Fault = nil }()
		check(t, w.leader(t, w.files), true)
	})
	t.Run("damaged objects", func(t *testing.T) {
		l := w.leader(t, damaging{w.files})
		got, _, err := w.scan(t, l)
		if err != nil || !maps.EqualFunc(got, want, slices.Equal) || !strings.Contains(w.log.String(), "the store is read alone") {
			t.Errorf("%d descriptions, %v\n%s", len(got), err, w.log.String())
		}
	})
	t.Run("a silent process", func(t *testing.T) {
		patience = 300 * time.Millisecond
		hung := make(chan struct{}, 100)
		w.stores[2].Fault = func(_, q string) *sparqltest.Fault {
			if strings.Contains(q, "VALUES ?p") {
				hung <- struct{}{}
				return &sparqltest.Fault{Hang: true}
			}
			return nil
		}
		defer func() { w.stores[2].Fault = nil }()
		check(t, w.leader(t, w.files), true)
		if len(hung) > 0 && !strings.Contains(w.log.String(), "the leader reads one itself") {
			t.Errorf("nothing is told of a silent process\n%s", w.log.String())
		}
	})
	second.Stop()
	t.Run("a part that nobody can read", func(t *testing.T) {
		patience = 30 * time.Second
		for _, st := range w.stores {
			st.Fault = func(_, q string) *sparqltest.Fault {
				if strings.Contains(q, "VALUES ?p") && strings.Contains(q, "example.org/p3") {
					return &sparqltest.Fault{Status: 400, Body: "never"}
				}
				return nil
			}
		}
		_, _, err := w.scan(t, w.leader(t, w.files))
		if !errors.Is(err, sparqlsrc.ErrPart) || !strings.Contains(err.Error(), "example.org/p3") || !strings.Contains(err.Error(), "never") {
			t.Errorf("%v", err)
		}
		if objects, jobs := w.left(t); len(objects) > 1 || jobs > 0 {
			t.Errorf("left: %v, %d jobs", objects, jobs)
		}
	})
}

// statsLike are the stats of a scan with what may differ taken from another.
func statsLike(sc, other *sparqlsrc.Scan) sparqlsrc.Stats {
	want, got := other.Stats(), sc.Stats()
	want.Requests, want.Bytes = got.Requests, got.Bytes
	return want
}

// damaging changes a byte of each object that is read.
type damaging struct{ blob.Store }

func (d damaging) Open(ctx context.Context, name string, off, n int64) (io.ReadCloser, blob.Info, error) {
	r, info, err := d.Store.Open(ctx, name, off, n)
	if err != nil {
		return nil, info, err
	}
	defer r.Close()
	all, err := io.ReadAll(r)
	all[len(all)/2] ^= 1
	return io.NopCloser(bytes.NewReader(all)), info, err
}
