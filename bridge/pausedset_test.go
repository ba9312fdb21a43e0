package bridge

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/rsbridge/rsbridge/internal/jobs"
)

// TestPausedSet: neither schedule nor store begins a scan of a paused set; a person does. The pause
// outlives a restart, and ends.
func TestPausedSet(t *testing.T) {
	cfg := small(t.TempDir())
	b := mustOpen(t, cfg)
	defer func() { b.Close() }()
	name := b.ConfiguredSets()[0]
	scans := func(cause string) bool {
		t.Helper()
		run, _, err := b.runner.Start("scan:"+name, cause, nil)
		if err == nil {
			run, err = b.runner.Wait(t.Context(), run.ID)
		}
		if err != nil || run.State != jobs.Done {
			t.Fatalf("%+v %v", run, err)
		}
		var rests skipped
		if err := json.Unmarshal(run.Result, &rests); err != nil {
			t.Fatal(err)
		}
		return !rests.Paused
	}
	state := func() State {
		t.Helper()
		st, err := b.SetStatus(t.Context(), name)
		if err != nil || st.Paused != (st.State == StatePaused) {
			t.Fatalf("%+v %v", st, err)
		}
		return st.State
	}
	if !scans(jobs.BySchedule) || state() != StateOK {
		t.Error("it rests before the pause")
	}
	if err := PauseSet(t.Context(), b, name, true); err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	b = mustOpen(t, cfg)
	for cause, want := range map[string]bool{jobs.BySchedule: false, "store": false, "gateway": false, "again": false, "api": true, "command": true} {
		if got := scans(cause); got != want {
			t.Errorf("%s: it scans: %t", cause, got)
		}
	}
	if state() != StatePaused {
		t.Error("it is not paused")
	}
	if err := PauseSet(t.Context(), b, name, false); err != nil {
		t.Fatal(err)
	}
	if !scans(jobs.BySchedule) || state() != StateOK {
		t.Error("it still rests")
	}
	if err := PauseSet(t.Context(), b, "none", true); !errors.Is(err, ErrUnknown) {
		t.Error(err)
	}
}
