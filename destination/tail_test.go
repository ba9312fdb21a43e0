package destination

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"
)

// A mirror that heard of changes reads the open Change List from the last one on, and the whole list
// a minute later. What the list told before is compared then, with what the parts of it have told.
func TestChangesFrom(t *testing.T) {
	for _, parts := range []int{0, 40} {
		t.Run(fmt.Sprint(parts), func(t *testing.T) {
			b := newQuietBench(t)
			b.stays, b.src.ours, b.src.exact, b.src.tails, b.src.inventory, b.src.changeParts = true, true, true, true, true, parts
			fill(b.src, 12)
			n := 0
			sync := func(wait time.Duration) (SyncReport, map[string]int) {
				t.Helper()
				b.clock = b.clock.Add(wait)
				b.src.date = b.clock
				clear(b.src.requests)
				rep, err := b.open().Sync(t.Context(), SyncOptions{Look: true})
				if err != nil || !rep.InSync {
					t.Fatalf("%+v, %v", rep, err)
				}
				b.equal()
				return rep, maps.Clone(b.src.requests)
			}
			change := func() {
				n++
				b.src.put(fmt.Sprintf("e%d.nt", n%3), nt(fmt.Sprintf("e%d", n%3), fmt.Sprint(n)))
				if n%4 == 0 {
					b.src.remove(fmt.Sprintf("e%d.nt", 3+n%5))
				}
			}
			whole := func(asked map[string]int) (n int) {
				for path, times := range asked {
					if strings.HasPrefix(path, "/set/changelist") && !strings.Contains(path, "-from-") {
						n += times
					}
				}
				return n
			}
			sync(time.Second)
			change()
			sync(time.Second)
			for range 10 {
				change()
				if rep, asked := sync(time.Second); whole(asked) > 0 || rep.Updated+rep.Created == 0 {
					t.Fatalf("it asked for %v: %+v", asked, rep)
				}
			}
			if rep, asked := sync(time.Second); whole(asked) > 0 || rep.Created+rep.Updated+rep.Deleted > 0 {
				t.Errorf("without a change it asked for %v: %+v", asked, rep)
			}
			if _, asked := sync(time.Minute); whole(asked) == 0 {
				t.Errorf("after a minute it asked for %v", asked)
			}
			// The list was wrong where it is not read again: the whole one tells.
			change()
			if _, asked := sync(time.Second); whole(asked) > 0 {
				t.Errorf("after the whole list it asked for %v", asked)
			}
			was := b.src.log[len(b.src.log)-4]
			b.src.log[len(b.src.log)-4].kind = map[string]string{"updated": "created", "created": "updated", "deleted": "updated"}[was.kind]
			change()
			if rep, _ := sync(time.Second); strings.Contains(rep.Why, "gap") {
				t.Errorf("the beginning of the list is not read: %+v", rep)
			}
			if rep, _ := sync(time.Minute); !strings.Contains(rep.Why, "tells other changes") {
				t.Errorf("an applied change is another one: %+v", rep)
			}
			// Set back behind the cursor, and on: another change has its number.
			b.src.restore(len(b.src.log) - 2)
			for range 4 {
				change()
			}
			if rep, _ := sync(time.Second); !strings.Contains(rep.Why, "gap") {
				t.Errorf("the source was set back: %+v", rep)
			}
		})
	}
}

// Lists that were read from the cursor on alone, and closed since, are as they were applied.
func TestChangesFromClosedLists(t *testing.T) {
	b := newQuietBench(t)
	b.stays, b.src.ours, b.src.exact, b.src.tails, b.src.inventory, b.src.changeParts = true, true, true, true, true, 5
	fill(b.src, 12)
	for n := range 40 {
		b.clock = b.clock.Add(time.Second)
		b.src.date = b.clock
		b.src.put(fmt.Sprintf("e%d.nt", n%3), nt(fmt.Sprintf("e%d", n%3), fmt.Sprint(n)))
		rep, err := b.open().Sync(t.Context(), SyncOptions{Look: n%2 == 0})
		if err != nil || !rep.InSync || n > 0 && rep.Mode != "incremental" {
			t.Fatalf("change %d: %+v, %v", n, rep, err)
		}
		b.equal()
	}
}
