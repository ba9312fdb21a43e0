package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/internal/teststores"
)

// unsteady stands before a server and answers some of the requests badly, while
// it is in a mode: with 500 or 503, with nothing, with a part of the answer, byte by
// byte, or not at all after the server has done what was asked.
type unsteady struct {
	mu    sync.Mutex
	mode  string
	share int // of 100 requests, that are answered so
	rnd   *rand.Rand
	hits  map[string]int
}

var unsteadyModes = []string{"500", "503", "429", "nothing", "cut", "slow", "done, and nothing"}

func (u *unsteady) set(mode string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.mode, u.share = mode, 10+u.rnd.IntN(91)
}

func (u *unsteady) before(t *testing.T, up string) *httptest.Server {
	rp := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: up})
	rp.ErrorHandler = func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Read before: a store that answers at once would else have its answer cut when
		// the proxy looks once more for a rest of the request.
		body, _ := io.ReadAll(r.Body) // what is missing is the client's to notice
		r.Body = io.NopCloser(bytes.NewReader(body))
		r.ContentLength = int64(len(body))
		u.mu.Lock()
		mode := u.mode
		if mode != "" && u.rnd.IntN(100) >= u.share {
			mode = ""
		}
		if mode != "" {
			u.hits[mode]++
		}
		u.mu.Unlock()
		switch mode {
		case "":
			rp.ServeHTTP(w, r)
			return
		case "500", "503", "429":
			code, _ := strconv.Atoi(mode)
			if code != 500 {
				w.Header().Set("Retry-After", "0")
			}
			http.Error(w, "the proxy says "+mode, code)
			return
		case "nothing":
			panic(http.ErrAbortHandler)
		}
		rec := httptest.NewRecorder()
		func() {
			defer func() {
				if recover() != nil { // the server is not there
					rec = nil
				}
			}()
			rp.ServeHTTP(rec, r)
		}()
		if rec == nil || mode == "done, and nothing" {
			panic(http.ErrAbortHandler)
		}
		body = rec.Body.Bytes()
		for k, v := range rec.Header() {
			w.Header()[k] = v
		}
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		if mode == "cut" {
			w.WriteHeader(rec.Code)
			w.Write(body[:len(body)/2])
			if len(body) > 0 {
				panic(http.ErrAbortHandler)
			}
			return
		}
		w.WriteHeader(rec.Code)
		for piece := range bytes.Lines(body) { // slow
			if _, err := w.Write(piece); err != nil {
				return
			}
			http.NewResponseController(w).Flush()
			pause(t, time.Millisecond)
			if len(body) > 100_000 {
				w.Write(body[len(piece):])
				return
			}
		}
	}))
	t.Cleanup(srv.Close)
	return srv
}

// TestFaults stops, kills, freezes and disconnects source, destination and mirror
// at random moments, and lets proxies between them answer with errors, late, in part
// and not at all, while changes pass. At the end source and mirror are equal, for an
// independent tool too, and the destination's log shows every change applied once
// or superseded by a later one of the same resource. RSBRIDGE_FAULTS (moments; ten
// changes each), RSBRIDGE_PAUSE (the longest between two, in ms) and RSBRIDGE_SEED
// make it a campaign.
func TestFaults(t *testing.T) {
	processes(t)
	teststores.Python(t)
	moments, longest, seed := 10, 800, 3
	numbers(t, map[string]*int{"RSBRIDGE_FAULTS": &moments, "RSBRIDGE_PAUSE": &longest, "RSBRIDGE_SEED": &seed})
	dir := t.TempDir()
	bin := commandPath(t)
	r := rand.New(rand.NewPCG(uint64(seed), 11))
	origin, mirror, pub := freeAddr(t), freeAddr(t), freeAddr(t)
	newProcess(t, "http://"+origin+"/query?query=ASK%7B%7D", bin, "store", "serve", filepath.Join(dir, "origin"), "--listen", origin)
	store := newProcess(t, "http://"+mirror+"/query?query=ASK%7B%7D", bin, "store", "serve", filepath.Join(dir, "mirror"), "--listen", mirror)
	command(t, bin, 0, "simulate", "http://"+origin, "--entities", "300")

	var proxies [2]*unsteady
	var before [2]string // what the destination sees: the source, the mirror
	for i, up := range []string{pub, mirror} {
		proxies[i] = &unsteady{rnd: rand.New(rand.NewPCG(uint64(seed), uint64(i))), hits: map[string]int{}}
		before[i] = strings.TrimPrefix(proxies[i].before(t, up).URL, "http://")
	}
	admin := [2]string{freeAddr(t), freeAddr(t)}
	conf := [2]string{filepath.Join(dir, "source.yaml"), filepath.Join(dir, "destination.yaml")}
	for i, text := range []string{
		fmt.Sprintf("state: ./s\npublic: {listen: %q, base_url: \"http://%s\"}\nadmin: {listen: %q}\nstores:\n  o: {query: \"http://%s/query\", graph_store: \"http://%s/data\"}\nsets:\n  data: {store: o, schedule: \"@every 1s\", max_delete_ratio: 1, changelist: {entries: 50}}\n", pub, before[0], admin[0], origin, origin),
		fmt.Sprintf("state: ./d\npublic: {listen: \"\"}\nadmin: {listen: %q}\nstores:\n  m: {query: \"http://%s/query\", update: \"http://%s/update\", graph_store: \"http://%s/data\", timeout: 5s}\ndestinations:\n  copy: {source: \"http://%s\", store: m, graph_iri: \"http://example.org/mirror\", schedule: \"@every 1s\", audit: \"\"}\n", admin[1], before[1], before[1], before[1], before[0]),
	} {
		if err := os.WriteFile(conf[i], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	source := newProcess(t, "http://"+admin[0]+"/healthz", bin, "run", "-c", conf[0])
	command(t, bin, 0, "scan", "-c", conf[0])
	dest := newProcess(t, "http://"+admin[1]+"/healthz", bin, "run", "-c", conf[1], "--log-level", "debug", "--log-format", "json")
	command(t, bin, 0, "sync", "-c", conf[1]) // the baseline; changes begin now
	start := lastSequence(t, bin, conf[0])

	done := map[string]int{}
	for k := range moments {
		command(t, bin, 0, "simulate", "http://"+origin, "--changes", "10", "--seed", fmt.Sprint(1000*seed+k), "--mix", "2,6,2")
		pause(t, time.Duration(r.IntN(longest))*time.Millisecond)
		p, name := source, "source"
		switch r.IntN(3) {
		case 1:
			p, name = dest, "destination"
		case 2:
			p, name = store, "mirror"
		}
		switch what := r.IntN(10); what {
		case 0, 1, 2:
			done["kill "+name]++
			p.kill(syscall.SIGKILL)
			pause(t, time.Duration(r.IntN(longest/4+1))*time.Millisecond) // nobody is there
			p.start()
		case 3:
			done["stop "+name]++
			p.kill(syscall.SIGTERM)
			p.start()
		case 4:
			done["freeze "+name]++
			p.cmd.Process.Signal(syscall.SIGSTOP)
			pause(t, time.Duration(r.IntN(longest))*time.Millisecond)
			p.cmd.Process.Signal(syscall.SIGCONT)
		default:
			i, mode := r.IntN(2), unsteadyModes[r.IntN(len(unsteadyModes))]
			done[[]string{"source", "mirror"}[i]+" answers: "+mode]++
			proxies[i].set(mode)
			pause(t, time.Duration(longest/2+r.IntN(2*longest))*time.Millisecond)
			if r.IntN(3) > 0 { // else it goes on beside what comes next
				proxies[i].set("")
			}
		}
	}
	for _, p := range proxies {
		p.set("")
	}
	command(t, bin, 0, "scan", "-c", conf[0])
	command(t, bin, 0, "sync", "-c", conf[1])
	command(t, bin, 0, "audit", "-c", conf[1])
	teststores.Equal(t, fetch(t, "http://"+origin+"/data?default"), fetch(t, "http://"+mirror+"/data?graph=http://example.org/mirror"))
	last := lastSequence(t, bin, conf[0])
	told := appliedOnce(t, dest.log.Name(), start, last)
	t.Logf("%d moments %v, proxies %v and %v; %d changes: %s", moments, done, proxies[0].hits, proxies[1].hits, last-start, told)
}

func lastSequence(t *testing.T, bin, conf string) uint64 {
	t.Helper()
	var st struct {
		Sets []struct{ Sequence uint64 }
	}
	if err := json.Unmarshal(command(t, bin, 0, "status", "-c", conf, "--json"), &st); err != nil {
		t.Fatal(err)
	}
	return st.Sets[0].Sequence
}

// appliedOnce reads the destination's log: each change after start is applied or
// superseded, and none again once it was told that it is applied.
func appliedOnce(t *testing.T, file string, start, last uint64) string {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	seen := make([]string, last+1)
	through, again, compared := start, 0, 0
	dec := bytes.NewReader(raw)
	for {
		rest := raw[len(raw)-dec.Len():]
		i := bytes.IndexByte(rest, '\n')
		if i < 0 {
			break
		}
		dec.Seek(int64(i+1), io.SeekCurrent)
		var l struct {
			Msg            string
			Sequence, By   uint64
			After, Through uint64
			ByList         bool `json:"by_list"`
		}
		if json.Unmarshal(rest[:i], &l) != nil {
			continue // cut by a kill, or not of the log
		}
		switch l.Msg {
		case "change is applied", "change is superseded", "change is pending":
			if l.Sequence <= start || l.Sequence > last {
				continue
			}
			if l.Sequence <= through && seen[l.Sequence] != "change is pending" {
				t.Errorf("change %d comes again after all up to %d were applied", l.Sequence, through)
			}
			if seen[l.Sequence] != "" {
				again++ // what a fault or kill kept from being written
			}
			if seen[l.Sequence] = l.Msg; l.Msg == "change is superseded" && l.By <= l.Sequence && !l.ByList {
				t.Errorf("change %d is superseded by the earlier %d", l.Sequence, l.By)
			}
		case "changes are superseded by a list":
			for n := max(start, l.After) + 1; n <= min(last, l.Through); n++ {
				seen[n] = "change is superseded"
			}
			through = max(through, l.Through)
		case "changes are applied":
			through = max(through, l.Through)
		case "mirror must be compared":
			compared++
		}
	}
	applied, superseded := 0, 0
	for n := start + 1; n <= last; n++ {
		switch seen[n] {
		case "change is applied":
			applied++
		case "change is superseded":
			superseded++
		default:
			t.Errorf("change %d is not applied or superseded in the log of the destination: %q", n, seen[n])
		}
	}
	return fmt.Sprintf("%d applied, %d superseded, %d tried again after a fault, %d comparisons of the whole", applied, superseded, again, compared)
}
