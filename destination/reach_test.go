package destination

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/internal/teststores"
)

// The first Change Lists after a baseline are missed, and those that are offered do not tell where
// they begin: the Resource List or Dump that is newer by then has what was lost.
func TestFirstChangesAreMissed(t *testing.T) {
	for _, dialect := range []string{"0.5", "D-Lib", "no from"} {
		for _, dump := range []bool{false, true} {
			for _, later := range []bool{false, true} { // Change Lists are offered later than the Resource List
				for _, dry := range []bool{false, true} {
					if teststores.Unraced(t, 7) {
						continue
					}
					t.Run(fmt.Sprintf("%s dump %v later %v dry %v", dialect, dump, later, dry), func(t *testing.T) {
						t.Parallel()
						b := newBench(t)
						s := b.src
						if s.dialect = dialect; dialect == "no from" {
							s.dialect, s.bare = "", 3
						}
						s.list, s.dump, s.changes = !dump, dump, !later
						fill(s, 6)
						s.drop = len(s.log)
						if rep := b.sync(); !rep.InSync {
							t.Fatalf("%+v", rep)
						}
						s.now = s.now.Add(24 * time.Hour)
						s.put("e2.nt", nt("e2", "second"))
						s.remove("e5.nt")
						s.drop = len(s.log)
						s.put("e3.nt", nt("e3", "second"))
						s.changes = true
						if dry && !dump { // of a dump it is not told what differs
							rep, err := b.open().Sync(context.Background(), SyncOptions{DryRun: true})
							if err != nil || rep.InSync || rep.Deleted != 1 {
								t.Fatalf("%+v %v", rep, err)
							}
						}
						rep := b.sync()
						if !rep.InSync || !strings.Contains(rep.Why, "do not reach back") || rep.Deleted != 1 {
							t.Fatalf("%+v", rep)
						}
						b.equal()
						s.put("e1.nt", nt("e1", "second"))
						clear(s.requests)
						if rep := b.sync(); !rep.InSync || rep.Updated != 1 || rep.Mode != "incremental" {
							t.Fatalf("%+v", rep)
						}
						b.equal()
					})
				}
			}
		}
	}
}
