package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/bridge"
)

// TestCutScan: a signal ends a scan after publishing has begun: while it looks at files, when its
// descriptions are in the log and public, or at any moment. Log, documents and status are right, and
// the next scan goes on. RSBRIDGE_KILLS and RSBRIDGE_ENTITIES make it a campaign.
func TestCutScan(t *testing.T) {
	processes(t)
	kills, entities := 8, 400
	numbers(t, map[string]*int{"RSBRIDGE_KILLS": &kills, "RSBRIDGE_ENTITIES": &entities})
	asked := make(chan func(), 1)
	var hold atomic.Bool
	hold.Store(true)
	files := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if hold.Load() {
			ctx, release := context.WithCancel(r.Context())
			asked <- release
			<-ctx.Done()
		}
		w.Header().Set("Content-Type", "application/pdf")
		w.Header().Set("Content-Length", "3")
		fmt.Fprint(w, "pdf")
	}))
	defer files.Close()
	dir, bin := t.TempDir(), commandPath(t)
	origin, conf := filepath.Join(dir, "origin"), filepath.Join(dir, "rsbridge.yaml")
	text := "state: %q\npublic: {listen: %q}\nadmin: {listen: %q}\nstores: {o: {embedded: %q}}\nsets: {data: {store: o, schedule: \"\", max_delete_ratio: 1, publish: [resourcelist, changelist, resourcedump, changedump], content: {properties: [\"http://e.example/file\"], every: 1ns, private: true, allow: [%q]}}}\n"
	if err := os.WriteFile(conf, fmt.Appendf(nil, text, filepath.Join(dir, "state"), freeAddr(t), freeAddr(t), origin, strings.TrimPrefix(files.URL, "http://")), 0o600); err != nil {
		t.Fatal(err)
	}
	command(t, bin, exitDone, "simulate", origin, "--entities", fmt.Sprint(entities))
	edit := func(n int) {
		command(t, bin, exitDone, "store", "update", origin, fmt.Sprintf("DELETE WHERE { <http://e.example/a> ?p ?o }; INSERT DATA { <http://e.example/a> <http://e.example/file> <%s/a.pdf> ; <http://e.example/n> %d . <http://e.example/new%d> <http://e.example/n> 1 }", files.URL, n, n))
	}
	resources := entities + 1
	right := func(when string) (sequence uint64) {
		t.Helper()
		command(t, bin, exitDone, "verify", "--read-data", "-c", conf)
		for line := range strings.Lines(string(command(t, bin, exitDone, "changes", "data", "-c", conf, "--since", "0", "--json"))) {
			var c bridge.ChangeLine
			if err := json.Unmarshal([]byte(line), &c); err != nil {
				t.Fatal(err)
			}
			if c.Sequence != sequence+1 {
				t.Fatalf("%s: sequence %d comes after %d", when, c.Sequence, sequence)
			}
			sequence = c.Sequence
		}
		return sequence
	}
	status := func(when string) bridge.SetStatus {
		t.Helper()
		_, said, problems := inProcess(t, "status", "--json", "-c", conf)
		var st bridge.Status
		if err := json.Unmarshal([]byte(said), &st); err != nil {
			t.Fatal(when, said, problems)
		}
		return st.Sets[0]
	}
	cut := func(sig syscall.Signal, at func()) {
		p := exec.Command(bin, "scan", "-c", conf)
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		at()
		if err := p.Process.Signal(sig); err == nil {
			_ = p.Wait()
		}
	}
	n := 0
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGKILL} {
		n++
		edit(n)
		resources++
		cut(sig, func() { soon(t, "a request for the file", asked) })
		if st := status(sig.String()); st.State != bridge.StateOK || st.Resources != int64(resources) {
			t.Errorf("%v: %s %s, %d resources of %d", sig, st.State, st.Why, st.Resources, resources)
		}
		right(sig.String())
	}
	hold.Store(false)
	r := rand.New(rand.NewPCG(uint64(kills), 5))
	for k := range kills {
		n++
		edit(n)
		resources++
		sig := []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGKILL}[k%4]
		cut(sig, func() { pause(t, time.Duration(r.IntN(600))*time.Millisecond) })
		right(fmt.Sprint(sig, " at any moment"))
		if st := status("any"); st.State != bridge.StateOK {
			t.Errorf("%v at any moment: %s %s", sig, st.State, st.Why)
		}
	}
	var rep struct{ Sets []bridge.ScanReport }
	for _, want := range []string{"the next scan", "one more"} {
		if err := json.Unmarshal(command(t, bin, exitDone, "scan", "--json", "-c", conf), &rep); err != nil {
			t.Fatal(err)
		}
		if s := rep.Sets[0]; s.Resources != int64(resources) || s.Files == nil || s.Files.Led != 1 || want == "one more" && s.Created+s.Updated+s.Deleted != 0 {
			t.Errorf("%s: %+v, want %d resources", want, s, resources)
		}
	}
	site := filepath.Join(dir, "site")
	command(t, bin, exitDone, "export", "data", site, "-c", conf)
	command(t, bin, exitDone, "validate", "--strict", filepath.Join(site, "data", "resourcelist.xml"), filepath.Join(site, "data", "changelist.xml"))
	list, err := os.ReadFile(filepath.Join(site, "data", "resourcelist.xml"))
	if err != nil || strings.Count(string(list), "<loc>") != resources+1 || !strings.Contains(string(list), "/a.pdf") {
		t.Errorf("%d entries, want %d and a file: %v", strings.Count(string(list), "<loc>"), resources, err)
	}
	t.Logf("%d changes", right("at the end"))
}
