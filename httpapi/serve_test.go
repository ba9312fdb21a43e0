package httpapi_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/bridge"
	"github.com/rsbridge/rsbridge/httpapi"
)

// TestServe: both listeners serve while the bridge starts, /readyz tells when it
// has, and Serve ends with its context although a reader hangs on the events.
func TestServe(t *testing.T) {
	w := newWorld(t, httpapi.Options{})
	w.cfg.Public.Listen, w.cfg.Admin.Listen = "127.0.0.1:0", "127.0.0.1:0"
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	get := func(addr, path string) (int, string) {
		res, err := http.Get("http://" + addr + path)
		if err != nil {
			t.Error(err)
			return 0, ""
		}
		defer res.Body.Close()
		raw, _ := io.ReadAll(res.Body) // the status says enough
		return res.StatusCode, string(raw)
	}
	started, ended := make(chan httpapi.Addresses), make(chan error, 1)
	var log bytes.Buffer
	go func() {
		ended <- httpapi.Serve(ctx, w.b, "test", slog.New(slog.NewTextHandler(&log, nil)), func(at httpapi.Addresses) {
			if code, said := get(at.Admin, "/readyz"); code != 503 || said != "starting\n" {
				t.Errorf("while it starts: %d %s", code, said)
			}
			if code, _ := get(at.Public, "/.well-known/resourcesync"); code != 200 {
				t.Errorf("the documents while it starts: %d", code)
			}
			started <- at
		})
	}()
	at := <-started
	for code := 0; code != 200; { // it is ready as soon as the call above has returned
		code, _ = get(at.Admin, "/readyz")
		if t.Failed() {
			t.FailNow()
		}
	}
	events, err := http.Get("http://" + at.Admin + "/api/v1/events")
	if err != nil {
		t.Fatal(err)
	}
	defer events.Body.Close()
	unused, err := net.Dial("tcp", at.Public) // as clients do
	if err != nil {
		t.Fatal(err)
	}
	defer unused.Close()
	get(at.Public, "/") // by then it is accepted
	cancel()
	if _, err := io.ReadAll(events.Body); err != nil {
		t.Errorf("the events do not end cleanly: %v", err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if strings.Contains(log.String(), "requests under way are ended") {
		t.Errorf("it waited for a connection without a request: %s", &log)
	}
	if _, err := http.Get("http://" + at.Admin + "/healthz"); err == nil {
		t.Error("it still serves")
	}
	var held *bridge.HeldError // the state is still held, but nobody is sent to the API any more
	if _, err := bridge.Open(t.Context(), w.cfg, bridge.Options{Wait: time.Nanosecond}); !errors.As(err, &held) || held.Admin != "" || held.PID != os.Getpid() {
		t.Errorf("the state after serving: %v", err)
	}
}

// TestServeTaken: a port that is taken is an error that names it.
func TestServeTaken(t *testing.T) {
	w := newWorld(t, httpapi.Options{})
	w.cfg.Admin.Listen = strings.TrimPrefix(w.srv.URL, "http://")
	if err := httpapi.Serve(t.Context(), w.b, "test", nil, nil); err == nil || !strings.Contains(err.Error(), w.cfg.Admin.Listen+" for the administration") {
		t.Errorf("taken: %v", err)
	}
}
