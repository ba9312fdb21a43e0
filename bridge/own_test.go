package bridge

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// A store that is served answers below the path of the base URL too, as documents do.
func TestServedBelowBase(t *testing.T) {
	cfg := small(t.TempDir())
	cfg.Public.BaseURL += "/r%C3%A9"
	st := cfg.Stores["source"]
	st.Serve = true
	cfg.Stores["source"] = st
	b := mustOpen(t, cfg)
	defer func() { b.Close() }()
	for path, want := range map[string]int{"": 200, "/r%C3%A9": 200, "/rs": 404} {
		rec := httptest.NewRecorder()
		b.PublicHandler().ServeHTTP(rec, httptest.NewRequest(http.MethodGet, path+"/stores/source/query?query=ASK%7B%7D", nil))
		if rec.Code != want {
			t.Errorf("%s: %d, want %d: %s", path, rec.Code, want, rec.Body)
		}
	}
}

// The description of a set leads to the endpoint of its store, where it is served, from
// /.well-known/void on; what is stored as files does not.
func TestEndpointIsNamed(t *testing.T) {
	for _, serve := range []bool{true, false} {
		cfg := small(t.TempDir())
		st := cfg.Stores["source"]
		st.Serve = serve
		cfg.Stores["source"] = st
		b := mustOpen(t, cfg)
		fill(t, b, "source", "<http://e.example/a> <http://e.example/p> \"v\" .\n")
		if err := b.Do(t.Context(), "scan", "data", nil, new(ScanReport)); err != nil {
			t.Fatal(err)
		}
		get := func(at, prefer string) *httptest.ResponseRecorder {
			rec, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, at, nil)
			r.Header.Set("Accept", "application/n-triples")
			if prefer != "" {
				r.Header.Set("Prefer", prefer)
			}
			b.PublicHandler().ServeHTTP(rec, r)
			return rec
		}
		void := get("/.well-known/void", "")
		if void.Code != 302 {
			t.Fatalf("%d %s", void.Code, void.Body)
		}
		endpoint := cfg.Public.BaseURL + "/stores/source/query"
		for _, at := range []string{void.Header().Get("Location"), cfg.Public.BaseURL + "/data/about"} {
			says := func(prefer string) bool {
				return strings.Contains(get(at, prefer).Body.String(), "<http://rdfs.org/ns/void#sparqlEndpoint> <"+endpoint+">")
			}
			if says("") != serve || says("static") {
				t.Errorf("%s: served %v: %s", at, serve, get(at, "").Body)
			}
		}
		if serve && !strings.Contains(get(endpoint, "").Body.String(), "<"+endpoint+"> <http://www.w3.org/ns/sparql-service-description#endpoint> <"+endpoint+">") {
			t.Errorf("%s", get(endpoint, "").Body)
		}
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// A state folder that is new and holds somebody's tmp is refused, and what is there stays.
func TestForeignState(t *testing.T) {
	cfg := small(t.TempDir())
	mine := filepath.Join(cfg.State, "tmp", "mine")
	if err := errors.Join(os.MkdirAll(filepath.Dir(mine), 0o700), os.WriteFile(mine, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if b, err := Open(t.Context(), cfg, Options{}); err == nil || !strings.Contains(err.Error(), "give the state a folder of its own") {
		t.Errorf("%v %v", b, err)
	}
	if err := os.Remove(mine); err != nil {
		t.Error(err)
	}
	for range 2 {
		if err := mustOpen(t, cfg).Close(); err != nil {
			t.Error(err)
		}
	}
}

// stuck is a client that takes nothing for a while.
type stuck struct {
	http.ResponseWriter
	met, on chan struct{}
}

func (s *stuck) Write(p []byte) (int, error) {
	close(s.met)
	<-s.on
	return 0, http.ErrHandlerTimeout
}

// What is being answered when a bridge is closed reads from its state to the end.
func TestCloseWhileAnswering(t *testing.T) {
	b := mustOpen(t, small(t.TempDir()))
	fill(t, b, "source", "<http://e.example/a> <http://e.example/p> \"v\" .\n")
	if err := b.Do(t.Context(), "scan", "data", nil, new(ScanReport)); err != nil {
		t.Fatal(err)
	}
	w := &stuck{httptest.NewRecorder(), make(chan struct{}), make(chan struct{})}
	go b.PublicHandler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://source.invalid/data/resourcelist.xml", nil)) // Close waits for it
	<-w.met
	closed := make(chan error, 1)
	go func() { closed <- b.Close() }()
	for waited := false; !waited; runtime.Gosched() {
		select {
		case err := <-closed:
			t.Fatalf("closed under the request: %v", err)
		default:
			waited = b.answering.Awaited()
		}
	}
	close(w.on)
	if err := <-closed; err != nil {
		t.Error(err)
	}
}
