package bridge

import (
	"fmt"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/bridge/storelog"
)

// TestTimesTell: an entity with a new time is described after one look, and a second change with the
// same time after the next one; a look after a pause tells of all times since.
func TestTimesTell(t *testing.T) {
	st := served(t)
	g := newGated(t, st, map[string]func(*Set){"times": func(s *Set) {
		s.Hints.Modified, s.Hints.Every, s.Hints.Overlap = []string{"http://purl.org/dc/terms/modified"}, Duration(time.Second), Duration(time.Minute)
	}})
	do[ScanReport](t, g.b, "scan", "times")
	head := func() uint64 { n, _ := g.b.sets["times"].log.Head(); return n }
	f := storeLog(g.b.sets["times"])
	feed, now := f.Feed.(*storelog.Modified), time.Now()
	feed.Now = func() time.Time { now = now.Add(time.Millisecond); return now }
	say := func(name string, when time.Time) {
		t.Helper()
		// past the gateway
		es := "INSERT DATA { <http://e.example/" + name + "> <http://purl.org/dc/terms/modified> " + at(when) + " }"
		if err := g.b.stores["source"].client.Update(t.Context(), es); err != nil {
			t.Fatal(err)
		}
	}
	for n := range 3 {
		say(fmt.Sprint("e", n), time.Now())
		before := head()
		for range 2 {
			if err := f.Step(t.Context(), 0); err != nil {
				t.Fatal(err)
			}
			due, err := g.b.sets["times"].due.Due(t.Context())
			if err != nil || len(due) > 1 {
				t.Fatalf("%d: due %s %v", n, due, err)
			}
			g.waitHints("times")
		}
		if head() != before+1 {
			t.Errorf("%d: %d changes, want 1", n, head()-before)
		}
		if err := g.b.stores["source"].client.Update(t.Context(), fmt.Sprintf("INSERT DATA { <http://e.example/e%d> <urn:p> 1 }", n)); err != nil {
			t.Fatal(err)
		}
		if err := f.Step(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		if g.waitHints("times"); head() != before+2 {
			t.Errorf("%d: a change with the same time is not found", n)
		}
	}
	now = now.Add(time.Second)
	for again, want := range []int{3, 0} {
		if told, _, err := feed.Since(t.Context(), now.Format(time.RFC3339Nano)); err != nil || len(told.Subjects) != want {
			t.Errorf("look %d a second later: %v, %v", again, told.Subjects, err)
		}
	}
}
