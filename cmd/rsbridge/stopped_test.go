package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
)

// interrupt is the cause of a context that an interrupt has ended, as os/signal makes it.
type interrupt struct{}

func (interrupt) Error() string        { return "interrupt signal received" }
func (interrupt) Is(target error) bool { return target == context.Canceled }

// stoppedBy has for every command that may wait the arguments of its tests. HANG is the
// address of a server without answers. Those with it, or with "-" for the standard input,
// are stopped while they wait; all are stopped before they begin.
var stoppedBy = map[string][]string{
	"init":     {"init --endpoint HANG -o new.yaml", "init --source HANG -o new.yaml"},
	"check":    {"check -c hang.yaml"},
	"doctor":   {"doctor HANG", "doctor o -c hang.yaml"},
	"explore":  {"explore HANG"},
	"validate": {"validate HANG", "validate --follow HANG"},
	"demo":     {"demo --once"},

	"run":    {"run -c local.yaml"},
	"expose": {"expose http://127.0.0.1:1/ --listen 127.0.0.1:0 --admin 127.0.0.1:0 --state x"},
	"mirror": {"mirror HANG --into embedded:./m --once --state m1", "mirror HANG --query HANG --update HANG --once --state m2", "mirror HANG --into dump:./d.nt --once --state m3"},

	"scan":    {"scan -c hang.yaml", "scan data -c hang.yaml --entity http://e.example/a", "scan --json -c hang.yaml"},
	"sync":    {"sync -c hang.yaml", "sync copy --full -c hang.yaml", "sync --dry-run -c hang.yaml"},
	"audit":   {"audit -c local.yaml"},
	"status":  {"status -c local.yaml"},
	"changes": {"changes data -c local.yaml"},
	"show":    {"show data http://e.example/a -c local.yaml"},
	"diff":    {"diff data http://e.example/a -c local.yaml"},
	"accept":  {"accept data -c local.yaml"},
	"rebase":  {"rebase data -c local.yaml"},
	"forget":  {"forget gone -c local.yaml"},
	"move":    {"move gone data -c local.yaml"},
	"verify":  {"verify -c local.yaml"},
	"backup":  {"backup b.tar -c local.yaml", "backup - -c local.yaml"},
	"restore": {"restore b.tar -c local.yaml", "restore b.tar --dry-run -c local.yaml"},
	"migrate": {"migrate postgres://nobody@127.0.0.1:1/none -c local.yaml"},
	"export":  {"export data site -c local.yaml"},

	"store load":   {"store load s2 --format ntriples -"},
	"store dump":   {"store dump s"},
	"store query":  {"store query s -", "store query s ASK{}"},
	"store update": {"store update s -"},
	"store serve":  {"store serve s --listen 127.0.0.1:0"},
	"simulate":     {"simulate HANG"},
}

// untilStopped are commands whose good end is a signal, where nothing was left undone.
var untilStopped = []string{"run", "expose", "store serve", "simulate"}

// TestStopped: a command that a signal stops says what it was, what stands and what to do,
// in no words of the code.
func TestStopped(t *testing.T) {
	root := (&app{in: strings.NewReader(""), out: io.Discard, err: io.Discard}).root()
	var all func(c *cobra.Command)
	all = func(c *cobra.Command) {
		name := commandName(c)
		first, _, _ := strings.Cut(name, " ")
		if c.Runnable() && !c.HasSubCommands() && !slices.Contains([]string{"version", "help", "completion", "man", "token", "actions"}, first) {
			if whenStopped[name] == (leavings{}) || stoppedBy[name] == nil {
				t.Errorf("%s: nothing tells what stands when it is stopped (whenStopped), or no test has it (stoppedBy)", name)
			}
		}
		for _, sub := range c.Commands() {
			all(sub)
		}
	}
	all(root)

	dir := t.TempDir()
	t.Chdir(dir)
	if code, _, stderr := inProcess(t, "store", "update", "s", "INSERT DATA { <http://e.example/a> <http://e.example/p> 1 }"); code != exitDone {
		t.Fatal(stderr)
	}
	for _, name := range slices.Sorted(maps.Keys(stoppedBy)) {
		for i, line := range stoppedBy[name] {
			t.Run(fmt.Sprint(name, i), func(t *testing.T) {
				stopAt(t, name, line, false)
				if strings.Contains(line, "HANG") || strings.HasSuffix(line, " -") || strings.Contains(line, "hang.yaml") {
					stopAt(t, name, line, true)
				}
			})
		}
	}
}

// stopAt runs a command line, and interrupts it while it waits, or before it begins.
func stopAt(t *testing.T, name, line string, waiting bool) {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	over := make(chan struct{})
	hang := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // the end of a client shows only then
		cancel(interrupt{})
		select {
		case <-r.Context().Done():
		case <-over:
		}
	}))
	defer hang.Close()
	defer close(over)
	state := filepath.Join(t.TempDir(), "state")
	for file, text := range map[string]string{
		"local.yaml": "state: %q\npublic: {listen: 127.0.0.1:0}\nadmin: {listen: 127.0.0.1:0}\nstores: {o: {embedded: %[3]q}, e: {embedded: %[4]q}}\nsets: {data: {store: o, schedule: \"\"}}\ndestinations: {copy: {source: %[2]q, store: e, schedule: \"\"}}\n",
		"hang.yaml":  "state: %q\npublic: {listen: 127.0.0.1:0}\nadmin: {listen: 127.0.0.1:0}\nstores: {o: {query: %[2]q}, e: {embedded: %[4]q}}\nsets: {data: {store: o, schedule: \"\"}}\ndestinations: {copy: {source: %[2]q, store: e, schedule: \"\"}}\n",
	} {
		if err := os.WriteFile(file, fmt.Appendf(nil, text+"# %[3]s\n", state, hang.URL+"/x", state+"-o", state+"-e"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var stdin io.Reader = strings.NewReader("")
	if waiting {
		r, w := io.Pipe()
		defer w.Close()
		stdin = &asked{r, func() { cancel(interrupt{}) }}
	} else {
		cancel(interrupt{})
	}
	var out, problems bytes.Buffer
	ended := make(chan int, 1)
	began := time.Now()
	go func() {
		ended <- run(ctx, strings.Fields(strings.ReplaceAll(line, "HANG", hang.URL)), stdin, &out, &problems)
	}()
	var code int
	select {
	case code = <-ended:
	case <-time.After(30 * time.Second):
		t.Fatalf("%s never ends: %s%s", line, &out, &problems)
	}
	if ctx.Err() == nil {
		t.Fatalf("%s never waited, exit code %d: %s%s", line, code, &out, &problems)
	}
	said := out.String() + problems.String()
	left := whenStopped[name]
	if strings.Contains(line, "--dry-run") {
		left = ofDryRun
	}
	want := fmt.Sprintf("rsbridge: %s was stopped by an interrupt: %s\n  next: %s\n", name, left.stands, left.next)
	good := code == exitFailed && strings.HasSuffix(problems.String(), want)
	if slices.Contains(untilStopped, name) {
		good = good || code == exitDone
	}
	for _, word := range []string{"context canceled", "signal", "closing", "closed", "operation was canceled", "also failed"} {
		good = good && !strings.Contains(strings.ReplaceAll(said, "is closed in order", ""), word)
	}
	if !good {
		t.Errorf("%s (waiting: %t) ends with %d after %v:\n%s\nwant\n%s", line, waiting, code, time.Since(began).Round(time.Millisecond), said, want)
	}
}

// asked tells of the first read from it.
type asked struct {
	io.Reader
	tell func()
}

func (a *asked) Read(p []byte) (int, error) {
	a.tell()
	return a.Reader.Read(p)
}
