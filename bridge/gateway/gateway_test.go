package gateway

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rsbridge/rsbridge/bridge/named"
	"github.com/rsbridge/rsbridge/internal/embedstore"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/internal/kv/memkv"
	"github.com/rsbridge/rsbridge/internal/kv/pebblekv"
	"github.com/rsbridge/rsbridge/internal/sparql"
)

// world is a store behind its gateway, and the queue of one set.
type world struct {
	t       testing.TB
	records kv.Store
	queue   *named.Queue
	at      string
	bare    string // the store's own address
	begun   atomic.Int32

	mu sync.Mutex
	// before is called with each request to the store, and true: the store is not to see it.
	before func(w http.ResponseWriter, r *http.Request) bool
	after  func(w http.ResponseWriter)
}

func newWorld(t testing.TB, records kv.Store) *world {
	w := &world{t: t, records: records, before: sees, after: answers}
	store, err := embedstore.Open(t.TempDir(), embedstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	behind := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/query" {
			store.Handler().ServeHTTP(rw, r)
			return
		}
		w.mu.Lock()
		before, after := w.before, w.after
		w.mu.Unlock()
		if before(rw, r) {
			return
		}
		rec := httptest.NewRecorder()
		store.Handler().ServeHTTP(rec, r)
		after(rw)
		for k, v := range rec.Header() {
			rw.Header()[k] = v
		}
		rw.WriteHeader(rec.Code)
		rw.Write(rec.Body.Bytes())
	}))
	t.Cleanup(behind.Close)
	client, err := sparql.New(sparql.Endpoint{Name: "store", Query: behind.URL + "/query", Update: behind.URL + "/update", GraphStore: behind.URL + "/data", Username: "who", Password: "what"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	if w.queue, err = named.Open(t.Context(), w.records, "data"); err != nil {
		t.Fatal(err)
	}
	g := &Gateway{Client: client, Order: new(sync.RWMutex), Log: slog.New(slog.DiscardHandler),
		Sets: named.Sets{{Queue: w.queue, By: "cbd", Begin: func() error { w.begun.Add(1); return nil }}}}
	front := httptest.NewServer(g.Before(nil))
	t.Cleanup(front.Close)
	w.at, w.bare = front.URL, behind.URL
	return w
}

// manners gives the store other manners.
func (w *world) manners(before func(http.ResponseWriter, *http.Request) bool, after func(http.ResponseWriter)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.before, w.after = before, after
}

func sees(http.ResponseWriter, *http.Request) bool { return false }

func answers(http.ResponseWriter) {}

func (w *world) send(ctx context.Context, text string) (code int, answer string) {
	w.t.Helper()
	return w.sendTo(ctx, w.at, text)
}

func (w *world) sendTo(ctx context.Context, at, text string) (code int, answer string) {
	w.t.Helper()
	r, err := http.NewRequestWithContext(ctx, "POST", at+"/update", strings.NewReader(text))
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/sparql-update")
	r.Header.Set("Authorization", "Bearer of-the-gateway")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer res.Body.Close()
	raw, _ := io.ReadAll(res.Body)
	return res.StatusCode, string(raw)
}

// due is what is to be looked at, then forgotten.
func (w *world) due(q *named.Queue) string {
	w.t.Helper()
	due, err := q.Due(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	told, err := named.Gather(due)
	if err == nil {
		err = q.Forget(w.t.Context(), due)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return fmt.Sprint(told.Entities, told.Unknown)
}

const insert = `INSERT DATA { <urn:a> <urn:p> [ <urn:q> 1 ] }`

// TestAnswers: what the store says decides what is told.
func TestAnswers(t *testing.T) {
	w := newWorld(t, memkv.New())
	said := ""
	w.manners(func(_ http.ResponseWriter, r *http.Request) bool {
		user, password, _ := r.BasicAuth()
		raw, _ := io.ReadAll(r.Body)
		said = fmt.Sprint(user, password, r.Header.Get("Content-Type"), string(raw))
		r.Body = io.NopCloser(strings.NewReader(string(raw)))
		return false
	}, answers)
	if code, answer := w.send(t.Context(), insert); code != 204 || answer != "" || said != "whowhatapplication/sparql-update"+insert {
		t.Errorf("%d %q, the store got %q", code, answer, said)
	}
	if got := w.due(w.queue); got != "[urn:a] false" || w.begun.Load() != 1 {
		t.Error("confirmed:", got, w.begun.Load())
	}
	if code, answer := w.send(t.Context(), "INSERT DATA { <urn:a> }"); code != 400 || !strings.Contains(answer, "line 1") {
		t.Errorf("the store's own answer: %d %q", code, answer)
	}
	w.due(w.queue)
	w.manners(func(rw http.ResponseWriter, _ *http.Request) bool {
		http.Error(rw, "not you", http.StatusForbidden)
		return true
	}, answers)
	if code, answer := w.send(t.Context(), insert); code != 403 || answer != "not you\n" {
		t.Error(code, answer)
	}
	if got := w.due(w.queue); got != "[] false" {
		t.Error("refused:", got)
	}
	// The store has done it, and its answer is broken, or an error.
	w.manners(sees, func(rw http.ResponseWriter) {
		conn, _, err := http.NewResponseController(rw).Hijack()
		if err == nil {
			conn.Close()
		}
	})
	if code, answer := w.send(t.Context(), insert); code != 502 || !strings.Contains(answer, "may have done") {
		t.Error(code, answer)
	}
	if got := w.due(w.queue); got != "[urn:a] true" {
		t.Error("a broken connection:", got)
	}
	w.manners(sees, func(rw http.ResponseWriter) { rw.WriteHeader(500) })
	w.send(t.Context(), insert)
	if got := w.due(w.queue); got != "[urn:a] true" {
		t.Error("an error of the server:", got)
	}
	w.manners(sees, func(rw http.ResponseWriter) {
		conn, _, err := http.NewResponseController(rw).Hijack()
		if err == nil {
			fmt.Fprint(conn, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhal")
			conn.Close()
		}
	})
	w.send(t.Context(), insert)
	if got := w.due(w.queue); got != "[urn:a] true" {
		t.Error("half an answer:", got)
	}
}

// TestUnderWay: an update is on disk before the store sees it, and looked at once it has answered;
// of a process that was killed meanwhile, after its restart. Its sender may be gone.
func TestUnderWay(t *testing.T) {
	w := newWorld(t, memkv.New())
	arrived, release := make(chan struct{}), make(chan struct{})
	w.manners(func(http.ResponseWriter, *http.Request) bool {
		arrived <- struct{}{}
		<-release
		return false
	}, answers)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); w.send(ctx, insert) }()
	<-arrived
	if got := w.due(w.queue); got != "[] false" {
		t.Error("it is looked at before it is done:", got)
	}
	again, err := named.Open(t.Context(), w.records, "data")
	if err != nil {
		t.Fatal(err)
	}
	due, err := again.Due(t.Context())
	if told, wrong := named.Gather(due); err != nil || wrong != nil || fmt.Sprint(told.Entities) != "[urn:a]" {
		t.Error("after a restart:", told, err, wrong)
	}
	cancel()
	<-done
	next := make(chan struct{})
	go func() { defer close(next); w.send(t.Context(), `DELETE WHERE { ?s <urn:p> 1 }`) }() // waits for the one under way
	release <- struct{}{}
	<-arrived
	if got := w.due(w.queue); got != "[urn:a] false" {
		t.Error("done, and its sender is gone:", got)
	}
	release <- struct{}{}
	<-next
}

// BenchmarkUpdates compares updates through the gateway with those of the bare store.
func BenchmarkUpdates(b *testing.B) {
	for class, text := range map[string]string{
		"data":    `INSERT DATA { <urn:%d> <urn:p> [ <urn:q> %[1]d ] }`,
		"where":   `DELETE { ?s <urn:n> ?o } INSERT { ?s <urn:n> %d } WHERE { VALUES ?s { <urn:one> } OPTIONAL { ?s <urn:n> ?o } }`,
		"unknown": `INSERT { ?u <urn:p> %d } WHERE { BIND(UUID() AS ?u) }`,
	} {
		for _, way := range []string{"bare", "gateway"} {
			b.Run(class+"/"+way, func(b *testing.B) {
				records, err := pebblekv.Open(b.Context(), b.TempDir(), pebblekv.Options{})
				if err != nil {
					b.Fatal(err)
				}
				defer records.Close()
				w := newWorld(b, records)
				at := w.at
				if way == "bare" {
					at = w.bare
				}
				for n := 0; b.Loop(); n++ {
					if code, answer := w.sendTo(b.Context(), at, fmt.Sprintf(text, n)); code != 204 {
						b.Fatal(code, answer)
					}
				}
			})
		}
	}
}
