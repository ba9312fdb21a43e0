package main

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/internal/teststores"
)

// TestKilledPush kills source, mirror and hub at random moments while changes pass. Neither has a
// schedule: the source finds changes by the commits of its store, and the mirror by notifications. A
// hub of others loses some with its process, so behind it the source is polled. RSBRIDGE_KILLS and
// RSBRIDGE_SEED make it a campaign.
func TestKilledPush(t *testing.T) {
	processes(t)
	for _, way := range []string{"websub", "websocket", "events", "another hub"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			killPush(t, way)
		})
	}
}

func killPush(t *testing.T, way string) {
	kills, seed := 6, 1
	numbers(t, map[string]*int{"RSBRIDGE_KILLS": &kills, "RSBRIDGE_SEED": &seed})
	dir, bin := t.TempDir(), commandPath(t)
	public, calls, admin, mirror := freeAddr(t), freeAddr(t), freeAddr(t), freeAddr(t)
	notify, live := "{}", "{mode: "+way+"}"
	var programs []*process
	switch way {
	case "another hub":
		python, at := teststores.Python(t), freeAddr(t)
		_, port, _ := strings.Cut(at, ":")
		programs = append(programs, newProcess(t, "http://"+at+"/", python, filepath.Join(teststores.Root(t), "bridge", "testdata", "websub-hub.py"), filepath.Join(dir, "hub.sqlite3"), port))
		notify = fmt.Sprintf("{hubs: [\"http://%s/hub\"]}", at)
		live = fmt.Sprintf("{mode: websub, callback: \"http://%s\", poll: 2s}, allow: [%q]", calls, at)
	case "websub":
		live = fmt.Sprintf("{mode: websub, callback: \"http://%s\"}", calls)
	}
	for i, text := range []string{
		fmt.Sprintf("state: ./s\npublic: {listen: %q, hub: {callbacks: [\"127.0.0.1\"]}}\nadmin: {listen: %q}\nstores: {o: {embedded: ./o}}\nsets: {data: {store: o, schedule: \"\", max_delete_ratio: 1, notify: %s}}\n", public, admin, notify),
		fmt.Sprintf("state: ./d\npublic: {listen: %q}\nadmin: {listen: %q}\nstores: {m: {embedded: ./m}}\ndestinations: {copy: {source: \"http://%s\", store: m, schedule: \"\", max_delete_ratio: 1, live: %s}}\n", calls, mirror, public, live),
	} {
		conf := filepath.Join(dir, fmt.Sprint(i, ".yaml"))
		if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			command(t, bin, exitDone, "store", "update", filepath.Join(dir, "o"), "INSERT DATA { <http://e.example/always> <http://e.example/p> 0 }")
			command(t, bin, exitDone, "scan", "-c", conf)
		}
		programs = append(programs, newProcess(t, "http://"+[]string{admin, mirror}[i]+"/healthz", bin, "run", "-c", conf))
	}
	w := &writer{T: t, r: rand.New(rand.NewPCG(uint64(seed), uint64(len(way)))), at: "http://" + admin + "/stores/o", values: map[string]int{"always": 0}}
	for k := range kills {
		p := programs[(k+seed)%len(programs)]
		within, changed := time.Duration(w.r.IntN(800))*time.Millisecond, make(chan struct{})
		go func() { // ends when all are confirmed
			defer close(changed)
			for range 10 {
				w.change()
			}
		}()
		pause(t, within)
		p.kill(syscall.SIGKILL)
		p.start()
		<-changed
	}
	want := lines(fetch(t, w.at+"/data?default"))
	if len(want) != len(w.values) {
		t.Fatalf("the store has %d entities, want %v", len(want), w.values)
	}
	for deadline := time.Now().Add(2 * time.Minute); ; pause(t, 100*time.Millisecond) {
		got := lines(fetch(t, "http://"+mirror+"/stores/m/data?default"))
		if maps.Equal(got, want) {
			break
		}
		if time.Now().After(deadline) || t.Context().Err() != nil {
			t.Fatalf("the mirror has %v\nand the source %v", got, want)
		}
	}
	command(t, bin, exitDone, "audit", "-c", filepath.Join(dir, "1.yaml"))
}

// writer changes entities in a store, and goes on until each update is confirmed.
type writer struct {
	*testing.T
	r      *rand.Rand
	at     string // of the store
	n      int
	values map[string]int
}

func (w *writer) change() {
	w.n++
	e := fmt.Sprint("e", w.r.IntN(20))
	update := fmt.Sprintf("DELETE WHERE { <http://e.example/%s> ?p ?o }", e)
	if w.r.IntN(4) > 0 {
		update += fmt.Sprintf("; INSERT DATA { <http://e.example/%s> <http://e.example/p> %d }", e, w.n)
		w.values[e] = w.n
	} else {
		delete(w.values, e)
	}
	for deadline := time.Now().Add(time.Minute); ; pause(w.T, 20*time.Millisecond) {
		res, err := http.PostForm(w.at+"/update", url.Values{"update": {update}})
		if err == nil {
			if res.Body.Close(); res.StatusCode/100 == 2 {
				return
			}
		}
		if time.Now().After(deadline) {
			w.Errorf("%s: %v %v", update, res, err)
			return
		}
	}
}

// lines are those of a document.
func lines(text []byte) map[string]bool {
	out := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		out[line] = true
	}
	return out
}
