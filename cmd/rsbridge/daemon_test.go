package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/rsbridge/rsbridge/internal/embedstore"
)

// daemonCmds are commands for scripts about daemons: signal NAME (to the last
// background command), until REGEXP COMMAND... (again and again until its output
// has that), answering REGEXP URL (the same for what an address answers).
func daemonCmds() map[string]func(*testscript.TestScript, bool, []string) {
	return map[string]func(*testscript.TestScript, bool, []string){
		"signal": func(ts *testscript.TestScript, _ bool, args []string) {
			sig, ok := map[string]os.Signal{"TERM": syscall.SIGTERM, "HUP": syscall.SIGHUP}[args[0]]
			all := ts.BackgroundCmds()
			if !ok || len(all) == 0 {
				ts.Fatalf("signal %s to %d commands", args[0], len(all))
			}
			ts.Check(all[len(all)-1].Process.Signal(sig))
		},
		"until": func(ts *testscript.TestScript, _ bool, args []string) {
			want := regexp.MustCompile("(?m)" + args[0])
			err := poll(context.Background(), func() bool {
				_ = ts.Exec(args[1], args[2:]...) // what it says is what counts
				return want.MatchString(ts.ReadFile("stdout") + ts.ReadFile("stderr"))
			})
			if err != nil {
				ts.Fatalf("%v never says %s", args[1:], args[0])
			}
		},
		"answering": func(ts *testscript.TestScript, _ bool, args []string) {
			want := regexp.MustCompile(args[0])
			err := poll(context.Background(), func() bool {
				res, err := http.Get(args[1])
				if err != nil {
					return false
				}
				defer res.Body.Close()
				raw, err := io.ReadAll(res.Body)
				return err == nil && want.Match(raw)
			})
			if err != nil {
				ts.Fatalf("%s never answers %s", args[1], args[0])
			}
		},
	}
}

// poll calls ready until it is true, for five minutes at most.
func poll(ctx context.Context, ready func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !ready() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
	return nil
}

// soon is what a channel gives. A test that would wait for ever fails here after three minutes.
func soon[T any](t *testing.T, what string, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(3 * time.Minute):
		t.Fatalf("%s does not come", what)
		panic("unreached")
	}
}

// TestMirrorStops: a mirror in a terminal waits for no source that hangs, and says that it
// stops.
func TestMirrorStops(t *testing.T) {
	reached := make(chan struct{})
	var once sync.Once
	source := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		once.Do(func() { close(reached) })
		<-r.Context().Done()
	}))
	defer source.Close()
	dir := t.TempDir()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go func() { <-reached; stop() }()
	var said bytes.Buffer
	if code := run(ctx, []string{"mirror", source.URL, "--into", "dump:" + filepath.Join(dir, "m.nt"), "--state", filepath.Join(dir, "state"), "--admin", ""}, strings.NewReader(""), &said, &said); code != exitDone {
		t.Errorf("exit code %d", code)
	}
	for _, want := range []string{"another signal ends it at once", "jobs=sync:mirror time=1s"} {
		if !strings.Contains(said.String(), want) {
			t.Errorf("it does not say %q:\n%s", want, said.String())
		}
	}
}

// TestStopFinishes: what runs when the daemon is told to stop ends well, and is
// in the log afterwards. (SIGTERM ends the context of run.)
func TestStopFinishes(t *testing.T) {
	dir := t.TempDir()
	s, err := embedstore.Open(filepath.Join(dir, "store"), embedstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Update(t.Context(), "INSERT DATA { <http://example.org/a> <http://example.org/p> 1 }"); err != nil {
		t.Fatal(err)
	}
	reached, gate := make(chan struct{}), make(chan struct{})
	var once sync.Once
	h := s.Handler()
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		once.Do(func() { close(reached) })
		<-gate
		h.ServeHTTP(w, r)
	}))
	defer endpoint.Close()
	pub, adm := freeAddr(t), freeAddr(t)
	conf := filepath.Join(dir, "rsbridge.yaml")
	text := fmt.Sprintf("state: ./state\npublic: {listen: %q}\nadmin: {listen: %q}\nstores: {o: {query: %q}}\nsets: {data: {store: o, schedule: \"@every 24h\"}}\n", pub, adm, endpoint.URL+"/query")
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var said bytes.Buffer
	code := make(chan int, 1)
	go func() { code <- run(ctx, []string{"run", "-c", conf}, strings.NewReader(""), &said, &said) }()
	answers := func(path string) bool {
		res, err := http.Get("http://" + adm + path)
		if err != nil {
			return false
		}
		res.Body.Close()
		return res.StatusCode == http.StatusOK
	}
	if err := poll(t.Context(), func() bool { return answers("/readyz") }); err != nil {
		t.Fatal(err)
	}
	res, err := http.Post("http://"+adm+"/api/v1/sets/data/scan", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	soon(t, "the request", reached)
	stop()
	// It answers until the run has ended, and says that it stops.
	if err := poll(t.Context(), func() bool { return !answers("/readyz") }); err != nil {
		t.Fatal("it is ready for more")
	}
	if !answers("/healthz") {
		t.Fatal("it answers no more, and a run is under way")
	}
	close(gate)
	if c := soon(t, "the end of the daemon", code); c != exitDone {
		t.Fatalf("exit code %d: %s", c, &said)
	}
	var out, problems bytes.Buffer
	if c := run(t.Context(), []string{"changes", "data", "-c", conf}, strings.NewReader(""), &out, &problems); c != exitDone || !strings.Contains(out.String(), "created\thttp://example.org/a") {
		t.Fatalf("exit code %d: %s%s\nthe daemon said: %s", c, &out, &problems, &said)
	}
}

// TestFreePort: beside a taken port stands one at an even distance, so that two listeners never meet.
func TestFreePort(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	var was, is int
	fmt.Sscanf(taken.Addr().String(), "127.0.0.1:%d", &was)
	fmt.Sscanf(freePort(taken.Addr().String()), "127.0.0.1:%d", &is)
	if is <= was || (is-was)%2 != 0 {
		t.Errorf("beside port %d: %d", was, is)
	}
	if odd := freePort("no address"); odd != "no address" {
		t.Errorf("it became %q", odd)
	}
}
