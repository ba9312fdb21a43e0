package destination

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	rs "github.com/rsbridge/rsbridge/resourcesync"
)

// A poll that finds nothing new asks for the open Change List alone, once the way to it was the same
// for a while. The way is looked at again after as long a while, and at once when something is asked
// for, is new, or is gone.
func TestIdlePolls(t *testing.T) {
	for _, parts := range []int{0, 3} {
		t.Run(fmt.Sprint(parts, " closed lists"), func(t *testing.T) {
			b := newQuietBench(t)
			b.stays, b.src.ours, b.src.inventory, b.src.changeParts, b.src.modified = true, true, true, parts, true
			fill(b.src, 12)
			poll := func(wait time.Duration, o SyncOptions) map[string]int {
				t.Helper()
				b.clock = b.clock.Add(wait)
				b.src.date = b.clock
				clear(b.src.requests)
				rep, err := b.open().Sync(t.Context(), o)
				if err != nil || !rep.InSync {
					t.Fatalf("%+v, %v", rep, err)
				}
				return maps.Clone(b.src.requests)
			}
			way := func(asked map[string]int) bool { return asked["/.well-known/resourcesync"] > 0 }
			for i := range 3 {
				if asked := poll(time.Minute, SyncOptions{}); !way(asked) && i < 2 {
					t.Fatalf("poll %d: the way is not trusted yet: %v", i, asked)
				}
			}
			poll(0, SyncOptions{Look: true})
			asked := poll(time.Second, SyncOptions{})
			open := slices.Collect(maps.Keys(asked))[0]
			if len(asked) != 1 || asked[open] != 1 || !strings.HasPrefix(open, "/set/changelist") {
				t.Errorf("an idle poll asked for %v", asked)
			}
			if asked := poll(time.Second, SyncOptions{Look: true}); !way(asked) {
				t.Errorf("a poll that looks asked for %v", asked)
			}
			if asked := poll(10*time.Minute, SyncOptions{}); !way(asked) {
				t.Errorf("after ten minutes a poll asked for %v", asked)
			}
			b.src.put("new.nt", nt("new", "1"))
			if asked := poll(time.Second, SyncOptions{}); !way(asked) || parts == 0 && asked[open] != 1 {
				t.Errorf("a poll with a change asked for %v", asked)
			}
			// The set moves, and its old Change List is there no more, or stands elsewhere.
			poll(time.Second, SyncOptions{})
			b.src.moved = map[rs.Capability]string{rs.ChangeList: "/set/elsewhere.xml"}
			gone, wait := parts == 0, time.Second
			if !gone {
				wait = 10 * time.Minute
			}
			b.src.hook = func(w http.ResponseWriter, r *http.Request) bool {
				if gone && r.URL.Path == open {
					http.NotFound(w, r)
					return true
				}
				return false
			}
			if asked := poll(wait, SyncOptions{}); !way(asked) || asked["/set/elsewhere.xml"] == 0 {
				t.Errorf("the set has moved, and a poll asked for %v", asked)
			}
			// A run that failed trusts nothing: the next one looks.
			b.src.hook = func(w http.ResponseWriter, r *http.Request) bool {
				http.Error(w, "away", http.StatusServiceUnavailable)
				return true
			}
			if _, err := b.open().Sync(context.Background(), SyncOptions{}); err == nil {
				t.Error("nothing answers, and the sync succeeds")
			}
			b.src.hook = nil
			if asked := poll(time.Second, SyncOptions{}); !way(asked) {
				t.Errorf("after a failure a poll asked for %v", asked)
			}
		})
	}
}
