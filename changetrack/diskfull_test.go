package changetrack

import (
	"errors"
	"testing"

	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/internal/kv/memkv"
)

// fullStore takes some commits and refuses the rest; it counts the snapshots that
// nobody gave free.
type fullStore struct {
	kv.Store
	left, open int
}

func (s *fullStore) Snapshot() kv.Snapshot {
	s.open++
	return &countedSnapshot{s.Store.Snapshot(), s}
}

type countedSnapshot struct {
	kv.Snapshot
	s *fullStore
}

func (c *countedSnapshot) Close() error {
	c.s.open--
	return c.Snapshot.Close()
}

func (s *fullStore) Batch() kv.Batch { return &fullBatch{s.Store.Batch(), s} }

type fullBatch struct {
	kv.Batch
	s *fullStore
}

var errFull = errors.New("no space left on device")

func (b *fullBatch) Commit(sync bool) error {
	if b.s.left == 0 {
		return errFull
	}
	b.s.left--
	return b.Batch.Commit(sync)
}

// TestFullDisk refuses every commit of a scan in turn: the scan and the next Open
// fail with the cause, leave no snapshot open, and with room everything is there.
func TestFullDisk(t *testing.T) {
	for allowed := 0; ; allowed++ {
		s, clk := &fullStore{Store: memkv.New(), left: 100}, newClock()
		o := testOptions(t.TempDir(), clk)
		o.stageBytes, o.batchBytes = 1, 1000
		tr, l := mustOpen(t, s, o)
		s.left = allowed
		_, err := l.Scan(t.Context(), many(30, 1).all(), plain)
		if s.left > 0 {
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
		if !errors.Is(err, errFull) {
			t.Fatalf("after %d commits the scan ends with %v", allowed, err)
		}
		if err := tr.Close(); err != nil || s.open != 0 {
			t.Errorf("after %d commits %d snapshots stay open (%v)", allowed, s.open, err)
		}
		if tr, err := Open(t.Context(), s, o); err == nil { // nothing to finish
			tr.Close()
		} else if !errors.Is(err, errFull) {
			t.Errorf("Open ends with %v", err)
		}
		if s.open != 0 {
			t.Errorf("after %d commits Open leaves %d snapshots open", allowed, s.open)
		}
		s.left = 1000
		tr, l = mustOpen(t, s, o)
		mustScan(t, l, many(30, 1), plain)
		mustCheck(t, l)
		v := l.View()
		if seq, _, ok := v.BaselineEnd(); seq != 30 || !ok {
			t.Errorf("after %d commits and room again the baseline ends at %d", allowed, seq)
		}
		v.Close()
		tr.Close()
	}
}
