package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/bridge"
	"github.com/rsbridge/rsbridge/internal/teststores"
)

// node is one of several processes of a configuration.
type node struct {
	*process
	public, admin, conf string
	generation          uint64 // last seen of this process
}

// get reads an address; "" while it does not answer. The system takes requests of a process that stands still.
func get(ctx context.Context, address string) string {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return ""
	}
	if strings.Contains(address, "/data?") {
		req.Header.Set("Accept", "application/n-triples")
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return ""
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		return ""
	}
	return string(raw)
}

// until waits for something to come true.
func until(t *testing.T, what string, isTrue func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !isTrue() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal(what)
		}
	}
}

// TestSeveral: three processes of one configuration with records in PostgreSQL and files in a bucket. The leader is
// killed, stopped in order, and stands still for longer than its lease. At the end source and mirror are equal,
// and the log has every change once. RSBRIDGE_KILLS and RSBRIDGE_STOPS are the numbers of kills and of standstills.
func TestSeveral(t *testing.T) {
	processes(t)
	kills, stops := 2, 0
	numbers(t, map[string]*int{"RSBRIDGE_KILLS": &kills, "RSBRIDGE_STOPS": &stops})
	dir, bin := t.TempDir(), commandPath(t)
	state, bucket := teststores.Postgres(t), teststores.Versitygw(t)
	origin, mirror := freeAddr(t), freeAddr(t)
	newProcess(t, "http://"+origin+"/query?query=ASK%7B%7D", bin, "store", "serve", filepath.Join(dir, "origin"), "--listen", origin)
	newProcess(t, "http://"+mirror+"/query?query=ASK%7B%7D", bin, "store", "serve", filepath.Join(dir, "mirror"), "--listen", mirror)
	command(t, bin, 0, "simulate", "http://"+origin, "--entities", "300")

	var nodes [3]*node
	base := ""
	for i := range nodes {
		n := &node{public: freeAddr(t), admin: freeAddr(t), conf: filepath.Join(dir, fmt.Sprintf("n%d.yaml", i))}
		if i == 0 {
			base = "http://" + n.public
		}
		text := fmt.Sprintf("state: %q\npublish_to: %q\npublic: {listen: %q, base_url: %q}\nadmin: {listen: %q}\n", state, bucket, n.public, base, n.admin) +
			fmt.Sprintf("stores:\n  o: {query: \"http://%s/query\", graph_store: \"http://%s/data\"}\n  m: {query: \"http://%s/query\", update: \"http://%s/update\", graph_store: \"http://%s/data\"}\n", origin, origin, mirror, mirror, mirror) +
			"sets:\n  data: {store: o, schedule: \"@every 1s\", max_delete_ratio: 1}\n" +
			fmt.Sprintf("destinations:\n  copy: {source: %q, store: m, graph_iri: \"http://example.org/mirror\", schedule: \"@every 1s\"}\n", base)
		if err := os.WriteFile(n.conf, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		n.process = newProcess(t, "http://"+n.admin+"/healthz", bin, "run", "-c", n.conf)
		nodes[i] = n
	}
	ctx := t.Context()
	leader := func() (n *node) {
		until(t, "nobody leads", func() bool {
			for _, n = range nodes {
				if strings.HasPrefix(get(ctx, "http://"+n.admin+"/readyz"), "ready\n") {
					return true
				}
			}
			return false
		})
		return n
	}
	look := func() { // no process goes back
		for _, n := range nodes {
			var st bridge.SetStatus
			if json.Unmarshal([]byte(get(ctx, "http://"+n.admin+"/api/v1/sets/data")), &st) != nil {
				continue
			}
			if st.Generation < n.generation {
				t.Fatalf("%s goes back from generation %d to %d", n.admin, n.generation, st.Generation)
			}
			n.generation = st.Generation
		}
	}
	changed := 0
	change := func() {
		changed++
		command(t, bin, 0, "simulate", "http://"+origin, "--changes", "5", "--seed", fmt.Sprint(changed), "--mix", "2,6,2")
		look()
	}
	equal := func() {
		t.Helper()
		until(t, "not equal", func() bool {
			look()
			n := strings.Count(get(ctx, "http://"+origin+"/data?default"), "\n") // nodes without names have them in the mirror
			return n == strings.Count(get(ctx, "http://"+mirror+"/data?graph=http://example.org/mirror"), "\n")
		})
	}
	equal()
	until(t, "a process does not serve the documents", func() bool {
		lists := map[string]bool{}
		for _, n := range nodes {
			lists[get(ctx, "http://"+n.public+"/data/resourcelist.xml")] = true
		}
		return len(lists) == 1 && !lists[""]
	})
	first := leader()
	for _, n := range nodes {
		if n == first {
			continue
		}
		if said := get(ctx, "http://"+n.admin+"/readyz"); !strings.HasPrefix(said, fmt.Sprintf("standby of process %d on ", first.cmd.Process.Pid)) {
			t.Errorf("a process beside the leader says %q", said)
		}
		res, err := http.Post("http://"+n.admin+"/api/v1/sets/data/scan", "application/json", nil)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != http.StatusConflict {
			t.Errorf("a process that stands by is told to scan: %s", res.Status)
		}
	}
	r := rand.New(rand.NewPCG(uint64(kills), 36))
	for k := range kills {
		change()
		n := nodes[r.IntN(len(nodes))]
		sig := os.Signal(syscall.SIGKILL)
		if k%2 == 0 { // the leader, half of the times in order
			n = leader()
		}
		if k%4 == 1 {
			n, sig = leader(), syscall.SIGTERM
		}
		n.kill(sig)
		n.generation = 0
		change()
		n.start()
	}
	for range stops {
		change()
		n := leader()
		n.cmd.Process.Signal(syscall.SIGSTOP)
		until(t, "nobody takes over", func() bool {
			change()
			for _, other := range nodes {
				if other != n && strings.HasPrefix(get(ctx, "http://"+other.admin+"/readyz"), "ready\n") {
					return true
				}
			}
			return false
		})
		n.cmd.Process.Signal(syscall.SIGCONT)
		until(t, "a leader of before does not stand by", func() bool {
			return strings.HasPrefix(get(ctx, "http://"+n.admin+"/readyz"), "standby of ")
		})
	}
	end := leader()
	command(t, bin, 0, "scan", "-c", end.conf)
	command(t, bin, 0, "sync", "-c", end.conf)
	command(t, bin, 0, "audit", "-c", end.conf)
	teststores.Equal(t, fetch(t, "http://"+origin+"/data?default"), fetch(t, "http://"+mirror+"/data?graph=http://example.org/mirror"))
	command(t, bin, 0, "validate", base+"/.well-known/resourcesync", "--follow")
	for _, n := range nodes { // a process that stands by answers what only reads
		until(t, "a log is not whole", func() bool { return wholeLog(t, bin, n.conf) > 300 })
	}
	t.Logf("%d kills, %d standstills", kills, stops)
}
