package httpapi_test

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rsbridge/rsbridge/bridge"
	"github.com/rsbridge/rsbridge/httpapi"
	"github.com/rsbridge/rsbridge/internal/jobs"
)

// TestHandover: one bridge after another answers at the same listeners, and at others,
// while clients ask all the time over new and kept connections. No request is refused; a
// run that goes on and the stream of events are not ended.
func TestHandover(t *testing.T) {
	w := newWorld(t, httpapi.Options{})
	w.srv.Close()
	free := func() string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		return l.Addr().String()
	}
	var addrs [2]atomic.Value
	w.cfg.Public.Listen, w.cfg.Admin.Listen = free(), free()
	addrs[0].Store(w.cfg.Public.Listen)
	addrs[1].Store(w.cfg.Admin.Listen)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s := httpapi.NewServer(ctx, "test", nil)
	use := func(b *bridge.Bridge) func() {
		t.Helper()
		_, left, err := s.Use(b)
		if err != nil {
			t.Fatal(err)
		}
		return left
	}
	if err := s.Listen(w.cfg, w.b, httpapi.Listeners{}); err != nil {
		t.Fatal(err)
	}
	use(w.b)
	w.b.Start(ctx)
	s.Ready()

	events, err := http.Get("http://" + w.cfg.Admin.Listen + "/api/v1/events")
	if err != nil {
		t.Fatal(err)
	}
	defer events.Body.Close()
	var asked atomic.Int64
	var clients, retired sync.WaitGroup
	ask, stop := context.WithCancel(t.Context())
	defer stop()
	for i := range 8 {
		clients.Go(func() {
			tr := &http.Transport{DisableKeepAlives: i%2 == 0}
			defer tr.CloseIdleConnections()
			client, path := &http.Client{Transport: tr}, []string{"/.well-known/resourcesync", "/api/v1/status"}[i/4]
			for ask.Err() == nil {
				res, err := client.Get(fmt.Sprintf("http://%s%s", addrs[i/4].Load(), path))
				if err != nil {
					t.Error(err)
					return
				}
				_, err = io.Copy(io.Discard, res.Body)
				res.Body.Close()
				if err != nil || res.StatusCode != 200 {
					t.Errorf("%s: %d %v", path, res.StatusCode, err)
					return
				}
				asked.Add(1)
			}
		})
	}
	next := func(change func(*bridge.Config), fault string) {
		t.Helper()
		cfg := *w.cfg
		cfg.Stores = maps.Clone(cfg.Stores)
		change(&cfg)
		if err := s.Listen(&cfg, w.b, httpapi.Listeners{}); err != nil {
			t.Fatal(err)
		}
		b, err := w.b.Reload(t.Context(), &cfg, nil)
		if b == nil || (err == nil) != (fault == "") || err != nil && !strings.Contains(err.Error(), fault) {
			t.Fatalf("%v, want %q", err, fault)
		}
		if err != nil {
			cfg = *b.Config()
			if err := s.Listen(&cfg, w.b, httpapi.Listeners{}); err != nil {
				t.Fatal(err)
			}
		}
		if b == w.b {
			return
		}
		left, old := use(b), w.b
		b.Start(ask)
		retired.Go(func() { // later: the stream of events goes on
			left()
			if err := old.Retire(b); err != nil {
				t.Error(err)
			}
		})
		w.b, w.cfg = b, &cfg
		addrs[0].Store(cfg.Public.Listen)
		addrs[1].Store(cfg.Admin.Listen)
		for n := asked.Load() + 20; asked.Load() < n && !t.Failed(); { // each kind of client has come by then
		}
	}
	same := func(*bridge.Config) {}
	for range 5 {
		next(same, "")
	}
	_, port, _ := net.SplitHostPort(w.cfg.Public.Listen)
	next(func(c *bridge.Config) { c.Public.Listen = "0.0.0.0:" + port }, "") // beside the one that is open
	next(func(c *bridge.Config) { c.Public.Listen, c.Admin.Listen = "127.0.0.1:"+port, free() }, "")
	next(func(c *bridge.Config) {
		broken := c.Stores["local"]
		broken.Embedded = t.TempDir() + "\x00"
		c.Stores["local"] = broken
	}, "local")
	next(same, "")

	// a run goes on, and the reload waits for it
	started := w.b.Runner().Watch(ask)
	if _, _, err := w.b.Begin(ask, "scan", "slow", "test", nil); err != nil {
		t.Fatal(err)
	}
	for run := range started {
		if run.Job == "scan:slow" && run.State == jobs.Running {
			break
		}
	}
	waits := make(chan []jobs.Run, 1)
	reloaded := make(chan error, 1)
	cfg := *w.cfg
	cfg.Stores = maps.Clone(cfg.Stores)
	give, giveUp := context.WithCancel(t.Context())
	go func() {
		_, err := w.b.Reload(give, &cfg, func(runs []jobs.Run) { waits <- runs })
		reloaded <- err
	}()
	// a notification may have begun a sync as well
	if runs := <-waits; !slices.ContainsFunc(runs, func(r jobs.Run) bool { return r.Job == "scan:slow" }) {
		t.Errorf("waits for %v", runs)
	}
	giveUp()
	if err := <-reloaded; err == nil {
		t.Error("a run was not waited for")
	}
	run, busy := w.b.Runner().Busy("scan:slow")
	if !busy {
		t.Error("the run was ended")
	}
	if err := w.b.Runner().Cancel(run.ID); err != nil {
		t.Error(err)
	}
	stop()
	clients.Wait()
	seen := make([]byte, 1<<10)
	n, err := events.Body.Read(seen)
	if err != nil {
		t.Errorf("the events ended: %q %v", seen[:n], err)
	}
	cancel()
	retired.Wait()
	if err := s.Wait(); err != nil {
		t.Error(err)
	}
	if asked.Load() < 100 {
		t.Errorf("%d requests", asked.Load())
	}
}
