package bridge

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/changetrack"
)

// TestLogTimesSortAsStrings: zeros at the end of a fraction stay.
func TestLogTimesSortAsStrings(t *testing.T) {
	at := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	last := ""
	for i := range 25 {
		now := at.Add(time.Duration(i) * 100 * time.Millisecond)
		raw, err := json.Marshal(ChangeLine{Sequence: 7, Time: now, Change: "created", After: &VersionLine{Sequence: 7, Time: now}})
		if err != nil {
			t.Fatal(err)
		}
		var back struct {
			Time  string
			After struct{ Time string }
		}
		if err := json.Unmarshal(raw, &back); err != nil {
			t.Fatal(err)
		}
		if len(back.Time) != len("2026-05-01T12:00:00.000000Z") || back.Time <= last || back.After.Time != back.Time {
			t.Errorf("%s after %s: %s", back.Time, last, raw)
		}
		last = back.Time
		var line ChangeLine
		if err := json.Unmarshal(raw, &line); err != nil || !line.Time.Equal(now) || line.Sequence != 7 || !line.After.Time.Equal(now) {
			t.Errorf("%s is read as %+v (%v)", raw, line, err)
		}
	}
}

// TestBeyondRetention: who asks for what is no longer kept is told, and not given the
// rest of it.
func TestBeyondRetention(t *testing.T) {
	b := mustOpen(t, small(t.TempDir()))
	defer func() { b.Close() }()
	for _, value := range []string{"1", "2", "3", "4"} {
		fill(t, b, "source", "<http://e.example/a> <http://e.example/p> \""+value+"\" .\n")
		do[ScanReport](t, b, "scan", "data")
	}
	since := func(since string, changes int, beyond bool) {
		t.Helper()
		got, err := b.Changes(t.Context(), "data", since, 10)
		if errors.Is(err, changetrack.ErrBeyondRetention) != beyond || !beyond && err != nil || len(got.Changes) != changes {
			t.Errorf("since %s: %d changes, %v", since, len(got.Changes), err)
		}
	}
	for _, ahead := range []string{"5", "18446744073709551615"} { // a log that was set back
		if _, err := b.Changes(t.Context(), "data", ahead, 10); !errors.Is(err, ErrBeyond) {
			t.Errorf("since %s: %v", ahead, err)
		}
	}
	since("4", 0, false)
	since("1", 3, false)
	c, err := b.Changes(t.Context(), "data", "2", 1)
	if err != nil {
		t.Fatal(err)
	}
	// The first two changes go, and the first version.
	if _, err := b.Log("data").Retain(t.Context(), c.Changes[0].Time, c.Changes[0].Time); err != nil {
		t.Fatal(err)
	}
	since("", 2, false)
	since("0", 2, false)
	since("2", 2, false)
	since("1", 0, true)
	since("2020-01-01T00:00:00Z", 0, true)
}
