package destination

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/internal/teststores"
)

// Descriptions that become empty count towards the ratio as deletions do.
// They are held and named. Accepted, they are taken; the right ones end the hold.
func TestEmptiedAreHeld(t *testing.T) {
	for _, layout := range []string{"single", "per-entity", "folder"} {
		for _, promised := range []bool{true, false} {
			for _, changes := range []bool{true, false} {
				for _, end := range []string{"accepted", "right again", "right again in silence", "deleted"} {
					if promised && end == "right again in silence" {
						continue // a list with promises tells it
					}
					if teststores.Unraced(t, 5) {
						continue
					}
					t.Run(fmt.Sprint(layout, " promised ", promised, " changes ", changes, " ", end), func(t *testing.T) {
						t.Parallel()
						b := newBench(t)
						s := b.src
						s.noHash, s.noLastmod, s.changes = !promised, !promised, changes
						fill(s, 40)
						open := b.open
						switch layout {
						case "per-entity":
							b.perEntity()
						case "folder":
							b.now = func() time.Time { return b.clock }
							open = b.intoFolder(t.TempDir())
						}
						poll := func(o SyncOptions) SyncReport {
							t.Helper()
							b.clock = b.clock.Add(time.Hour)
							rep, err := open().Sync(context.Background(), o)
							if err != nil {
								t.Fatal(err)
							}
							return rep
						}
						poll(SyncOptions{})
						poll(SyncOptions{})
						before := maps.Clone(s.bodies)
						for i := range 15 {
							s.put(fmt.Sprintf("e%d.nt", i), "# nothing\n")
						}
						poll(SyncOptions{})
						for range 2 {
							if rep := poll(SyncOptions{}); !strings.HasPrefix(rep.Held, "15 of 40 resources would become empty, more than the 10 ") || rep.Updated != 0 || rep.InSync {
								t.Fatalf("%+v", rep)
							}
						}
						d := open()
						h, err := d.Held(context.Background(), "", 100)
						if err != nil || h == nil || len(h.Items) != 15 || !h.Items[0].Empty {
							t.Fatalf("%+v %v", h, err)
						}
						if rep, err := d.Audit(context.Background(), AuditOptions{}); err != nil || rep.Verdict != "different" || rep.Different != 15 {
							t.Fatalf("%+v %v", rep, err)
						}
						var o SyncOptions
						switch end {
						case "accepted":
							o.Accept = h.ID
						case "right again":
							for i := range 15 {
								name := fmt.Sprintf("e%d.nt", i)
								s.put(name, string(before[name]))
							}
						case "right again in silence":
							s.mu.Lock()
							s.bodies = before
							s.mu.Unlock()
						case "deleted":
							for i := range 15 {
								s.remove(fmt.Sprintf("e%d.nt", i))
							}
							if rep := poll(o); !strings.HasPrefix(rep.Held, "15 of 40 resources would go, ") {
								t.Fatalf("%+v", rep)
							}
							return
						}
						rep := poll(o)
						if rep.Held != "" || !rep.InSync || end == "accepted" && rep.Updated != 15 {
							t.Fatalf("%+v", rep)
						}
						if rep = poll(SyncOptions{}); rep.Held != "" || !rep.InSync || rep.Updated != 0 {
							t.Fatalf("%+v", rep)
						}
						if rep, err := open().Audit(context.Background(), AuditOptions{Depth: "origin"}); err != nil || !rep.Equal {
							t.Fatalf("%+v %v", rep, err)
						}
					})
				}
			}
		}
	}
}
