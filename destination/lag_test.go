package destination

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/destination/feed"
)

// TestLag: a mirror tells how far it is behind, in changes and in seconds. Nothing is said of what
// it cannot know.
func TestLag(t *testing.T) {
	const unknown = -1
	b := newQuietBench(t)
	s := b.src
	s.ours, b.window = true, 2
	b.clock = s.now
	heard := feed.Heard{}
	lag := func(when string, changes int64, seconds float64) {
		t.Helper()
		d := b.open()
		d.opt.Heard = func() feed.Heard { return heard }
		st, err := d.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		gotChanges, gotSeconds := int64(unknown), float64(unknown)
		if st.BehindChanges != nil {
			gotChanges = int64(*st.BehindChanges)
		}
		if st.BehindSeconds != nil {
			gotSeconds = *st.BehindSeconds
		}
		if gotChanges != changes || gotSeconds != seconds {
			t.Errorf("%s: %d changes and %g seconds behind, want %d and %g: %+v", when, gotChanges, gotSeconds, changes, seconds, st)
		}
		if st.InSync && (changes > 0 || seconds > 0) {
			t.Errorf("%s: in sync, %d changes and %g seconds behind", when, changes, seconds)
		}
	}
	down := func(is bool) {
		s.hook = nil
		if is {
			s.hook = func(w http.ResponseWriter, _ *http.Request) bool {
				http.Error(w, "down", http.StatusServiceUnavailable)
				return true
			}
		}
	}
	fails := func(d *Destination) {
		t.Helper()
		if _, err := d.Sync(t.Context(), SyncOptions{}); err == nil {
			t.Fatal("the sync did not fail")
		}
	}
	lag("before the first sync", unknown, unknown)
	fill(s, 10)
	b.clock = s.now
	b.sync()
	lag("in sync", 0, 0)

	heard = feed.Heard{Position: 13, Since: b.clock.Add(-5 * time.Second)}
	lag("of what was heard of", 3, 5)
	heard = feed.Heard{}
	down(true)
	fails(b.open())
	lag("while the source is down", unknown, 60)
	heard = feed.Heard{Position: 13, Since: b.clock.Add(-5 * time.Second)}
	lag("of what was heard of before the source was down", 3, 5)
	heard = feed.Heard{}
	down(false)
	b.sync()
	lag("in sync again", 0, 0)

	first := s.now.Add(1500 * time.Millisecond) // as tick does
	for i := range 6 {
		s.put(fmt.Sprintf("e%d.nt", i), nt(fmt.Sprintf("e%d", i), "changed"))
	}
	b.clock = first.Add(100 * time.Second)
	d := b.open()
	n := 0
	d.mem.Crash = func(string) error {
		if n++; n > 3 {
			return errInjected
		}
		return nil
	}
	fails(d)
	m := d.mem.SnapshotMeta()
	at := m.At.Cursor()
	if n := at.Number(); n <= 10 || n >= 16 {
		t.Fatalf("the run was cut at %d", n)
	}
	lag("in the middle of a long run", 16-int64(at.Number()), 100-1.5*float64(at.Number()-10))
	b.sync()
	lag("after it", 0, 0)

	s.lie["e7.nt"] = true
	s.put("e7.nt", nt("e7", "lie"))
	b.clock = s.now.Add(10 * time.Second)
	b.sync()
	lag("with a pending resource", 1, 70)
	s.lie["e7.nt"] = false
	b.clock = b.clock.Add(time.Hour)
	b.sync()
	lag("without it", 0, 0)

	s.restore(5)
	b.cfg.OnGap = "stop"
	if rep := b.sync(); !strings.Contains(rep.Held, "set back") {
		t.Fatalf("%+v", rep)
	}
	lag("of a source that was set back", unknown, unknown)

	plain := newQuietBench(t)
	plain.clock = plain.src.now
	b, s = plain, plain.src
	fill(s, 3)
	b.sync()
	lag("of a source without numbers", unknown, 0)
	heard = feed.Heard{Since: b.clock.Add(-5 * time.Second)}
	lag("of what was heard of without a number", unknown, 5)
}
