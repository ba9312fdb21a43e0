package bridge

import (
	"encoding/json"
	"testing"
	"time"
)

// TestRetentionIsTold: the status of a set has what its retention keeps, and when it has run and runs next.
func TestRetentionIsTold(t *testing.T) {
	cfg := small(t.TempDir())
	set := cfg.Sets["data"]
	set.Retention.Changes, set.Retention.Versions = Duration(time.Nanosecond), Duration(14*24*time.Hour)
	cfg.Sets["data"] = set
	b := mustOpen(t, cfg)
	defer func() { b.Close() }()
	for _, value := range []string{"1", "2", "3"} {
		fill(t, b, "source", "<http://e.example/a> <http://e.example/p> \""+value+"\" .\n")
		do[ScanReport](t, b, "scan", "data")
	}
	told := func() SetStatus {
		t.Helper()
		st, err := b.SetStatus(t.Context(), "data")
		if err != nil || st.Retention == nil {
			t.Fatalf("%+v %v", st.Retention, err)
		}
		return st
	}
	if r := told().Retention; r.Versions != "14d" || r.Archives != "365d" || r.After != 0 || r.Begins != nil || r.LastRun != nil || r.NextRun != nil {
		t.Errorf("before it ran: %+v", r)
	}
	b.Start(t.Context()) // its schedule is told now
	run, _, err := b.Runner().Start("retain:data", "test", nil)
	if err == nil {
		run, err = b.Runner().Wait(t.Context(), run.ID)
	}
	if err != nil || run.Error != "" {
		t.Fatal(err, run.Error)
	}
	st := told()
	r := st.Retention
	if r.After == 0 || r.Begins == nil || r.LastRun == nil || !r.LastRun.Equal(run.Ended) || r.Dropped == 0 || r.NextRun == nil || time.Until(*r.NextRun) > time.Hour {
		raw, _ := json.Marshal(st)
		t.Errorf("after it ran: %s", raw)
	}
}
