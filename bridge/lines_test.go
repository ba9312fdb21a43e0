package bridge

import (
	"encoding/json"
	"testing"
	"time"
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
