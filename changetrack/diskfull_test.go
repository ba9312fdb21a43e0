package changetrack

import (
	"errors"
	"testing"

	"github.com/rsbridge/rsbridge/internal/kv/kvtest"
	"github.com/rsbridge/rsbridge/internal/teststores"
)

// TestFullDisk refuses every commit of a scan in turn: the scan and the next Open
// fail with the cause, leave no snapshot open, and with room everything is there.
func TestFullDisk(t *testing.T) {
	for allowed := 0; ; allowed++ {
		s, clk := &kvtest.Full{Store: teststores.Records(t), Left: 100}, newClock()
		o := testOptions(t.TempDir(), clk)
		o.stageBytes, o.batchBytes = 1, 1000
		tr, l := mustOpen(t, s, o)
		s.Left = allowed
		_, err := l.Scan(t.Context(), many(30, 1).all(), plain)
		if s.Left > 0 {
			if err != nil {
				t.Fatal(err)
			}
			if allowed < 3 {
				t.Fatalf("a scan takes %d commits: this meets no half of one", allowed)
			}
			tr.Close()
			return
		}
		if allowed > 0 && err == nil { // just enough
			tr.Close()
			continue
		}
		if !errors.Is(err, kvtest.ErrFull) {
			t.Fatalf("after %d commits the scan ends with %v", allowed, err)
		}
		if err := tr.Close(); err != nil || s.Open != 0 {
			t.Errorf("after %d commits %d snapshots stay open (%v)", allowed, s.Open, err)
		}
		if tr, err := Open(t.Context(), s, o); err == nil { // nothing to finish
			tr.Close()
		} else if !errors.Is(err, kvtest.ErrFull) {
			t.Errorf("Open ends with %v", err)
		}
		if s.Open != 0 {
			t.Errorf("after %d commits Open leaves %d snapshots open", allowed, s.Open)
		}
		s.Left = 1000
		tr, l = mustOpen(t, s, o)
		mustScan(t, l, many(30, 1), plain)
		mustCheck(t, l)
		v := l.View(t.Context())
		if seq, _, ok := v.BaselineEnd(); seq != 30 || !ok {
			t.Errorf("after %d commits and room again the baseline ends at %d", allowed, seq)
		}
		v.Close()
		tr.Close()
	}
}
