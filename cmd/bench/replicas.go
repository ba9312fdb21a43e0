package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/rsbridge/rsbridge/bridge"
)

// replicaRate is what each server sends, in bytes a second: some 25,000 triples. It waits, and leaves the processor to
// the others.
const replicaRate = 3 << 20

var replicasRow = row{id: "replicas", what: "first scan from a store and three replicas, 3 MiB/s each", baseline: "from the store alone", speed: true, limit: 3.6,
	measure: func(ctx context.Context, e *env) (thing, base time.Duration, err error) {
		s, err := embedded(ctx, e)
		if err != nil {
			return 0, 0, err
		}
		defer s.stop()
		if _, err := s.load(ctx, e, benchGraph); err != nil {
			return 0, 0, err
		}
		if base, err = e.besideReplicas(ctx, s, 0); err == nil {
			thing, err = e.besideReplicas(ctx, s, 3)
		}
		return thing, base, err
	}}

// besideReplicas times the first scan of a store and so many replicas. They are one server behind several doors.
func (e *env) besideReplicas(ctx context.Context, s store, replicas int) (time.Duration, error) {
	dir, err := os.MkdirTemp(e.dir, "replicas-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	to, err := url.Parse(s.query)
	if err != nil {
		return 0, err
	}
	cfg := bridge.NewConfig()
	cfg.State = filepath.Join(dir, "state")
	cfg.Public, cfg.Admin.Listen = bridge.Public{BaseURL: benchBase}, ""
	st, set := bridge.NewStore(), bridge.NewSet()
	for i := range 1 + replicas {
		door := newSlowDoor(to)
		defer door.Close()
		if at := door.URL + to.Path; i == 0 {
			st.Query = at
		} else {
			st.Replicas = append(st.Replicas, at)
		}
	}
	set.Store, set.Schedule, set.Graphs, set.Publish = "server", "", []string{benchGraph}, []string{"resourcelist", "changelist"}
	cfg.Stores["server"], cfg.Sets["data"] = st, set
	b, err := bridge.Open(ctx, cfg, bridge.Options{Command: "bench"})
	if err != nil {
		return 0, err
	}
	took, err := e.scanned(ctx, b)
	return took, errors.Join(err, b.Close())
}

// newSlowDoor opens one to the server of an address.
func newSlowDoor(to *url.URL) *httptest.Server {
	return httptest.NewServer(&slowDoor{to: httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.Out.URL.Scheme, r.Out.URL.Host = to.Scheme, to.Host
		r.Out.Header.Del("Accept-Encoding")
	}, Transport: &http.Transport{DisableCompression: true}}})
}

// slowDoor is a way to a server that lets through a fixed rate, for all requests together.
type slowDoor struct {
	to httputil.ReverseProxy

	mu   sync.Mutex // guards free
	free time.Time  // when what was sent is through
}

func (d *slowDoor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d.to.ServeHTTP(slowly{w, d}, r)
}

type slowly struct {
	http.ResponseWriter
	d *slowDoor
}

func (s slowly) Write(p []byte) (int, error) {
	s.d.mu.Lock()
	if now := time.Now(); s.d.free.Before(now) {
		s.d.free = now
	}
	s.d.free = s.d.free.Add(time.Duration(len(p)) * time.Second / replicaRate)
	wait := time.Until(s.d.free)
	s.d.mu.Unlock()
	time.Sleep(wait)
	return s.ResponseWriter.Write(p)
}
