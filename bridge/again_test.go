package bridge

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/changetrack"
	"github.com/rsbridge/rsbridge/internal/jobs"
	"github.com/rsbridge/rsbridge/rdfres"
)

// TestUnblocked: a file in the place of the published folder makes the jobs with files fail. Once it
// is away, the next scan or verification begins them again, and the set is well.
func TestUnblocked(t *testing.T) {
	cfg := small(t.TempDir())
	clear(cfg.Destinations)
	set := cfg.Sets["data"]
	set.Schedule, set.Publish = "", []string{"resourcelist", "changelist", "resourcedump", "changedump"}
	set.ChangeDump.Schedule, set.ResourceList.Schedule, set.Archives.Schedule = "@yearly", "@yearly", "@yearly"
	cfg.Sets["data"] = set
	b := mustOpen(t, cfg)
	defer func() { b.Close() }()
	word := func() string {
		t.Helper()
		st, err := b.SetStatus(t.Context(), "data")
		if err != nil {
			t.Fatal(err)
		}
		return string(st.State) + " " + st.Why
	}
	runs := func(state string, kinds ...string) {
		t.Helper()
		for _, kind := range kinds {
			run, err := last(t.Context(), b.runner, kind+"data")
			if err != nil || run.State != state {
				t.Errorf("%s %s (%s), want %s: %v", kind, run.State, run.Error, state, err)
			}
		}
	}
	published, away := filepath.Join(cfg.State, "published"), filepath.Join(cfg.State, "away")
	for round, fail := range []func(){
		func() { // by their schedules
			for _, kind := range fileJobs {
				run, _, err := b.runner.Start(kind+"data", "schedule", nil)
				if err == nil {
					_, err = b.runner.Wait(t.Context(), run.ID)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
		},
		func() { // since a request met it
			s := httptest.NewRecorder()
			b.PublicHandler().ServeHTTP(s, httptest.NewRequestWithContext(t.Context(), http.MethodGet, cfg.Public.BaseURL+"/data/resourcedump.xml", nil))
			_, rest, ok := strings.Cut(s.Body.String(), "<loc>")
			if !ok {
				t.Fatal(s.Body)
			}
			part, _, _ := strings.Cut(rest, "</loc>")
			s = httptest.NewRecorder()
			b.PublicHandler().ServeHTTP(s, httptest.NewRequestWithContext(t.Context(), http.MethodGet, part, nil))
			for _, kind := range fileJobs {
				if run, ok := b.runner.Busy(kind + "data"); ok {
					if _, err := b.runner.Wait(t.Context(), run.ID); err != nil {
						t.Fatal(err)
					}
				}
			}
		},
	} {
		fill(t, b, "source", strings.Repeat("<http://e.example/a> <http://e.example/p> \"1\" .\n", 1+round))
		do[ScanReport](t, b, "scan", "data")
		if got := word(); got != "ok " {
			t.Fatalf("round %d: %s", round, got)
		}
		if err := os.Rename(published, away); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(published, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		fail()
		runs(jobs.Failed, "dump:", "list:", "archive:") // there is no Change Dump yet
		if got := word(); !strings.HasPrefix(got, "failing ") || !strings.Contains(got, "move it away") {
			t.Errorf("round %d, blocked: %s", round, got)
		}
		if err := os.Remove(published); err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(away); err != nil {
			t.Fatal(err)
		}
		if round == 0 {
			do[ScanReport](t, b, "scan", "data")
		} else {
			do[VerifyReport](t, b, "verify", "")
		}
		if got := word(); got != "ok " {
			t.Errorf("round %d, free again: %s", round, got)
		}
		runs(jobs.Done, fileJobs...)
	}

	// A job that is configured no more leaves no fault behind.
	if err := os.RemoveAll(published); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(published, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	run, _, err := b.runner.Start("archive:data", "schedule", nil)
	if err == nil {
		_, err = b.runner.Wait(t.Context(), run.ID)
	}
	if err == nil {
		err = b.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(published); err != nil {
		t.Fatal(err)
	}
	set.Archives.Schedule = ""
	cfg.Sets["data"] = set
	b = mustOpen(t, cfg)
	if got := word(); got != "ok " {
		t.Errorf("a job that is no more: %s", got)
	}
}

// TestWaitsForFirstDump: the first sync of a set of ours waits for the dump at the end of the first scan, and no longer
// than this scan.
func TestWaitsForFirstDump(t *testing.T) {
	free := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		<-free
		w.WriteHeader(http.StatusBadRequest)
	}))
	defer srv.Close()
	cfg := small(t.TempDir())
	store := NewStore()
	store.Query = srv.URL
	cfg.Stores["source"] = store
	b := mustOpen(t, cfg)
	defer b.Close()
	m := b.dests["copy"]
	waits := func(when string, want bool) {
		t.Helper()
		if m.waits() != want {
			t.Errorf("%s the mirror waits: %t", when, !want)
		}
	}
	waits("before the publication", true)
	none := func(func(rdfres.Description, error) bool) {}
	if _, err := b.sets["data"].log.Scan(t.Context(), none, changetrack.ScanOptions{Format: rdfres.JSONLD}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.pub.Publish(t.Context(), "data"); err != nil {
		t.Fatal(err)
	}
	waits("published without a dump", false)
	run, _, err := b.runner.Start("scan:data", "command", nil)
	if err != nil {
		t.Fatal(err)
	}
	waits("during the scan", true)
	close(free)
	if _, err := b.runner.Wait(t.Context(), run.ID); err != nil {
		t.Fatal(err)
	}
	waits("after a failed scan", false)
}

// TestNamesAreMade: after a scan the index of names is made, and nobody has asked.
func TestNamesAreMade(t *testing.T) {
	cfg := small(t.TempDir())
	b := mustOpen(t, cfg)
	defer b.Close()
	fill(t, b, "source", "<http://e.example/a> <http://e.example/p> \"1\" .\n")
	do[ScanReport](t, b, "scan", "data")
	for letters := []string{}; len(letters) == 0; runtime.Gosched() {
		var err error
		if letters, err = Names(b, "data").Letters(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
	}
}

// last is the last run of a job.
func last(ctx context.Context, r *jobs.Runner, job string) (run jobs.Run, err error) {
	for run, err := range r.Runs(ctx, job) {
		return run, err
	}
	return run, jobs.ErrUnknown
}
