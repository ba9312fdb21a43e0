package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/bridge"
	"github.com/rsbridge/rsbridge/internal/teststores"
)

// process is a program of the test that can be killed and started again.
type process struct {
	t     *testing.T
	args  []string
	ready string
	cmd   *exec.Cmd
	log   *os.File
}

func freeAddr(t *testing.T) string {
	t.Helper()
	port, err := teststores.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	return "127.0.0.1:" + port
}

func (p *process) start() {
	p.t.Helper()
	p.cmd = exec.Command(p.args[0], p.args[1:]...)
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	if _, err := p.cmd.StdinPipe(); err != nil { // at its end a program of others ends
		p.t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(p.t.Context(), 5*time.Minute)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		if res, err := http.Get(p.ready); err == nil {
			res.Body.Close()
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			said, _ := os.ReadFile(p.log.Name())
			p.t.Fatalf("%v does not answer at %s:\n%s", p.args, p.ready, said)
		}
	}
}

func (p *process) kill(sig os.Signal) {
	p.cmd.Process.Signal(sig)
	p.cmd.Wait()
}

func newProcess(t *testing.T, ready string, args ...string) *process {
	t.Helper()
	log, err := os.CreateTemp(t.TempDir(), "log")
	if err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, args: args, ready: ready, log: log}
	p.start()
	t.Cleanup(func() {
		p.kill(syscall.SIGKILL)
		log.Close()
		if t.Failed() {
			said, _ := os.ReadFile(log.Name())
			t.Logf("%v said:\n%s", args, said[max(0, len(said)-4000):])
		}
	})
	return p
}

func command(t *testing.T, bin string, want int, args ...string) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, bin, args...)
	cmd.Cancel, cmd.WaitDelay = func() error { return cmd.Process.Signal(syscall.SIGQUIT) }, 10*time.Second // it tells where it stands
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != want {
		t.Fatalf("rsbridge %v: %v, want exit status %d\n%s%s", args, err, want, out, stderr.String())
	}
	return out
}

// commandPath leads to the command: this binary by that name, as TestMain has put it into the path.
func commandPath(t *testing.T) string {
	t.Helper()
	bin, err := exec.LookPath("rsbridge")
	if err != nil {
		t.Fatal(err)
	}
	return bin
}

// numbers takes those from the environment that are there.
func numbers(t *testing.T, env map[string]*int) {
	t.Helper()
	for name, into := range env {
		if s := os.Getenv(name); s != "" {
			n, err := strconv.Atoi(s)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			*into = n
		}
	}
}

// processes is for tests of processes of their own. With -short the tests are run
// once more under the race detector, which sees nothing of those: make test has run
// them without it before.
func processes(t *testing.T) {
	if testing.Short() {
		t.Skip("a test of processes that the race detector does not see; it runs without -short")
	}
}

// TestKilled kills source and destination at random moments while changes pass;
// at the end source and mirror are equal, for an independent tool too, and the
// log has every change once. RSBRIDGE_KILLS, RSBRIDGE_ENTITIES and
// RSBRIDGE_PAUSE (the longest pause before a kill, in ms) make it a campaign.
func TestKilled(t *testing.T) {
	processes(t)
	teststores.Python(t)
	kills, entities, longest := 10, 300, 1500
	numbers(t, map[string]*int{"RSBRIDGE_KILLS": &kills, "RSBRIDGE_ENTITIES": &entities, "RSBRIDGE_PAUSE": &longest})
	dir := t.TempDir()
	bin := commandPath(t)
	origin, mirror, pub := freeAddr(t), freeAddr(t), freeAddr(t)
	newProcess(t, "http://"+origin+"/query?query=ASK%7B%7D", bin, "store", "serve", filepath.Join(dir, "origin"), "--listen", origin)
	newProcess(t, "http://"+mirror+"/query?query=ASK%7B%7D", bin, "store", "serve", filepath.Join(dir, "mirror"), "--listen", mirror)
	command(t, bin, 0, "simulate", "http://"+origin, "--entities", fmt.Sprint(entities))

	admin := [2]string{freeAddr(t), freeAddr(t)}
	conf := [2]string{filepath.Join(dir, "source.yaml"), filepath.Join(dir, "destination.yaml")}
	for i, text := range []string{
		fmt.Sprintf("state: ./s\npublic: {listen: %q}\nadmin: {listen: %q}\nstores:\n  o: {query: \"http://%s/query\", graph_store: \"http://%s/data\"}\nsets:\n  data: {store: o, schedule: \"@every 1s\", max_delete_ratio: 1}\n", pub, admin[0], origin, origin),
		fmt.Sprintf("state: ./d\npublic: {listen: \"\"}\nadmin: {listen: %q}\nstores:\n  m: {query: \"http://%s/query\", update: \"http://%s/update\", graph_store: \"http://%s/data\"}\ndestinations:\n  copy: {source: \"http://%s\", store: m, graph_iri: \"http://example.org/mirror\", schedule: \"@every 1s\"}\n", admin[1], mirror, mirror, mirror, pub),
	} {
		if err := os.WriteFile(conf[i], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var sides [2]*process
	for i := range sides {
		sides[i] = newProcess(t, "http://"+admin[i]+"/healthz", bin, "run", "-c", conf[i])
	}
	r := rand.New(rand.NewPCG(uint64(kills), 7))
	for k := range kills {
		command(t, bin, 0, "simulate", "http://"+origin, "--changes", fmt.Sprint(1+r.IntN(20)), "--seed", fmt.Sprint(k+2), "--mix", "2,6,2")
		pause(t, time.Duration(r.IntN(longest))*time.Millisecond)
		p := sides[k%2]
		p.kill(syscall.SIGKILL)
		p.start()
	}
	command(t, bin, 0, "scan", "-c", conf[0])
	command(t, bin, 0, "sync", "-c", conf[1])
	command(t, bin, 0, "audit", "-c", conf[1])
	teststores.Equal(t, fetch(t, "http://"+origin+"/data?default"), fetch(t, "http://"+mirror+"/data?graph=http://example.org/mirror"))

	t.Logf("%d kills, %d changes", kills, wholeLog(t, bin, conf[0]))
}

// wholeLog wants the log of the set data without gap or double, and the history of each entity in
// order. It returns the number of changes.
func wholeLog(t *testing.T, bin, conf string) uint64 {
	t.Helper()
	last, alive := uint64(0), map[string]bool{}
	for line := range strings.Lines(string(command(t, bin, 0, "changes", "data", "-c", conf, "--since", "0", "--json"))) {
		var c bridge.ChangeLine
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			t.Fatal(err)
		}
		if c.Sequence != last+1 {
			t.Fatalf("sequence %d comes after %d", c.Sequence, last)
		}
		last = c.Sequence
		if want := map[bool][]string{false: {"created"}, true: {"updated", "deleted"}}[alive[c.Entity]]; !slices.Contains(want, c.Change) {
			t.Fatalf("%s is %s while it is there: %t", c.Entity, c.Change, alive[c.Entity])
		}
		alive[c.Entity] = c.Change != "deleted"
	}
	return last
}

// pause lets the processes of the test work for a random while: the moment of
// the kill is what is tried.
func pause(t *testing.T, d time.Duration) {
	select {
	case <-time.After(d):
	case <-t.Context().Done():
	}
}

func fetch(t *testing.T, addr string) []byte {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, addr, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "application/n-triples")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s %v", addr, res.Status, err)
	}
	return raw
}
