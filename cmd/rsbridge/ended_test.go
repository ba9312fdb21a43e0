package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/bridge"
)

// heldSource is a source of one resource. It holds each request for the resource until the
// function sent to asked is called, or the request ends.
func heldSource(t *testing.T) (source *httptest.Server, asked <-chan func()) {
	requests := make(chan func(), 100)
	source = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/list.xml":
			fmt.Fprintf(w, `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:rs="http://www.openarchives.org/rs/terms/"><rs:md capability="resourcelist" at="2026-01-01T00:00:00Z"/><url><loc>http://%s/a.ttl</loc></url></urlset>`, r.Host)
		case "/a.ttl":
			ctx, release := context.WithCancel(r.Context())
			requests <- release
			<-ctx.Done()
			w.Header().Set("Content-Type", "text/turtle")
			fmt.Fprint(w, "<http://e.example/a> <http://e.example/p> 1 .")
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(source.Close)
	return source, requests
}

// heard runs a function once a line with a text is written.
type heard struct {
	text string
	do   func()
	all  bytes.Buffer
}

func (h *heard) Write(p []byte) (int, error) {
	if strings.Contains(string(p), h.text) {
		h.do()
	}
	return h.all.Write(p)
}

// TestDaemonStopsUnderCommand: a command at a daemon hears how its run ended, though the daemon
// was stopped meanwhile, with the exit code of that end.
func TestDaemonStopsUnderCommand(t *testing.T) {
	t.Parallel() // it waits for the grace of runs
	for _, c := range []struct {
		ends       bool
		code       int
		said, then string // then by status
	}{
		{true, exitDone, "1 created", "ok"},
		{false, exitFailed, "rsbridge was stopped before the run had ended; what it finished stays: run it again", "never"},
	} {
		t.Run(fmt.Sprintf("the run ends well %t", c.ends), func(t *testing.T) {
			source, asked := heldSource(t)
			dir := t.TempDir()
			conf := filepath.Join(dir, "rsbridge.yaml")
			state, admin := filepath.Join(dir, "state"), freeAddr(t)
			if err := os.WriteFile(conf, fmt.Appendf(nil, "state: %q\nadmin: {listen: %q}\nstores: {mirror: {embedded: %q}}\ndestinations: {mirror: {store: mirror, source: %q, schedule: \"\"}}\n", state, admin, filepath.Join(dir, "m"), source.URL+"/list.xml"), 0o600); err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancelCause(t.Context())
			defer stop(nil)
			args := []string{"run", "-c", conf}
			releases := make(chan func(), 1)
			log := &heard{text: "have some time to end", do: func() { (<-releases)() }}
			command := &heard{text: "sync:mirror"}
			if !c.ends { // a mirror's own run is under way, has a second to end, and the command waits for the next one
				args = []string{"mirror", source.URL + "/list.xml", "--into", "embedded:" + filepath.Join(dir, "m"), "--state", state, "--admin", admin, "--every", "1h"}
				log.do, command.do = func() {}, func() { stop(interrupt{}) }
			}
			daemon := make(chan int, 1)
			go func() { daemon <- run(ctx, args, strings.NewReader(""), log, log) }()
			if c.ends {
				if err := poll(t.Context(), func() bool {
					res, err := http.Get("http://" + admin + "/readyz")
					if err == nil {
						res.Body.Close()
					}
					return err == nil && res.StatusCode == http.StatusOK
				}); err != nil {
					t.Fatal(err)
				}
				command.do = func() {}
				go func() { releases <- <-asked; stop(interrupt{}) }()
			} else {
				soon(t, "the first request", asked)
			}
			said := make(chan int, 1)
			go func() {
				said <- new(app).execute(t.Context(), []string{"sync", "mirror", "-c", conf}, strings.NewReader(""), command, command)
			}()
			if got := soon(t, "the end of the command", said); got != c.code || !strings.Contains(command.all.String(), c.said) {
				t.Errorf("the command ends with %d, want %d: %s", got, c.code, &command.all)
			}
			if got := soon(t, "the end of the daemon", daemon); got != exitDone {
				t.Errorf("the daemon ends with %d: %s", got, &log.all)
			}
			var now bytes.Buffer
			run(t.Context(), []string{"status", "-c", conf}, strings.NewReader(""), &now, &now)
			if !strings.Contains(now.String(), "mirror       "+c.then) {
				t.Errorf("status: %s", &now)
			}
		})
	}
}

// TestInterruptedSync: a sync that an interrupt ended has not failed.
func TestInterruptedSync(t *testing.T) {
	source, asked := heldSource(t)
	dir := t.TempDir()
	conf := filepath.Join(dir, "rsbridge.yaml")
	if err := os.WriteFile(conf, fmt.Appendf(nil, "state: %q\nstores: {mirror: {embedded: %q}}\ndestinations: {mirror: {store: mirror, source: %q, schedule: \"\"}}\n", filepath.Join(dir, "state"), filepath.Join(dir, "m"), source.URL+"/list.xml"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"state": "never"`, `"state": "ok"`} {
		ctx, stop := context.WithCancelCause(t.Context())
		go func() { <-asked; stop(interrupt{}) }()
		var said bytes.Buffer
		if code := run(ctx, []string{"sync", "-c", conf, "--full"}, strings.NewReader(""), &said, &said); code != exitFailed {
			t.Fatalf("exit code %d: %s", code, &said)
		}
		code, now, _ := inProcess(t, "status", "--json", "-c", conf)
		if code != exitPart || !strings.Contains(now, want) || !strings.Contains(now, `"last_error": ""`) || !strings.Contains(now, `"in_sync": false`) || !strings.Contains(now, "the next one goes on from there") {
			t.Errorf("status ends with %d: %s, want %s", code, now, want)
		}
		if want != `"state": "never"` {
			break
		}
		go func() { (<-asked)() }()
		if code, _, problems := inProcess(t, "sync", "-c", conf); code != exitDone {
			t.Fatal(problems)
		}
	}
}

// TestKilledSync: a sync whose process was killed is told as an interrupted one, by a command and
// by the next daemon, until a sync has ended. A sync under way is no interrupted one.
func TestKilledSync(t *testing.T) {
	processes(t)
	source, asked := heldSource(t)
	dir, admin, bin := t.TempDir(), freeAddr(t), commandPath(t)
	conf := filepath.Join(dir, "rsbridge.yaml")
	if err := os.WriteFile(conf, fmt.Appendf(nil, "state: %q\nadmin: {listen: %q}\nstores: {mirror: {embedded: %q}}\ndestinations: {mirror: {store: mirror, source: %q, schedule: \"\"}}\n", filepath.Join(dir, "state"), admin, filepath.Join(dir, "m"), source.URL+"/list.xml"), 0o600); err != nil {
		t.Fatal(err)
	}
	const cut = "the last sync was interrupted: what it wrote stays, and the next one goes on from there"
	status := func(when string, want ...any) {
		t.Helper()
		_, now, _ := inProcess(t, "status", "--json", "-c", conf)
		var st bridge.Status
		if err := json.Unmarshal([]byte(now), &st); err != nil {
			t.Fatal(err)
		}
		d := st.Destinations[0]
		if got := []any{d.State, d.Why, d.InSync, d.BehindSeconds != nil}; !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", when, got, want)
		}
	}
	killed := func() {
		t.Helper()
		p := exec.Command(bin, "sync", "--full", "-c", conf)
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		soon(t, "the request", asked)
		p.Process.Kill()
		p.Wait()
	}
	killed()
	status("killed in the first sync", bridge.StateNever, "no sync has ended yet: what was mirrored stays, and the next one goes on from there", false, false)
	go func() { (<-asked)() }()
	command(t, bin, exitDone, "sync", "-c", conf)
	status("synced", bridge.StateOK, "", true, true)
	killed()
	status("killed", bridge.StateOK, cut, false, false)
	if said := command(t, bin, exitPart, "status", "-c", conf); !strings.Contains(string(said), "no       unknown") {
		t.Errorf("status: %s", said)
	}
	newProcess(t, "http://"+admin+"/healthz", bin, "run", "-c", conf)
	status("a daemon after it", bridge.StateOK, cut, false, false)
	for _, before := range [][]any{{bridge.StateRunning, cut, false, false}, {bridge.StateRunning, "", true, true}} {
		ended := make(chan error, 1)
		go func() { ended <- exec.CommandContext(t.Context(), bin, "sync", "--full", "-c", conf).Run() }()
		release := soon(t, "the request", asked)
		status("a sync is under way", before...)
		release()
		if err := soon(t, "the end of the sync", ended); err != nil {
			t.Fatal(err)
		}
		status("it has ended", bridge.StateOK, "", true, true)
	}
}
