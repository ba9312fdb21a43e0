package destination

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/rsbridge/rsbridge/internal/teststores"
)

// Changes may tell no time: their position is all there is, and a resource that changes
// again has an entry that looks like the one of before.
func TestChangesWithoutTimes(t *testing.T) {
	for name, set := range map[string]func(s *testSource){
		"one list":     func(*testSource) {},
		"index":        func(s *testSource) { s.changeParts = 3 },
		"window":       func(s *testSource) { s.drop = -4 },
		"Change Dump":  func(s *testSource) { s.list, s.changes, s.changeDump, s.alone, s.packed = false, false, true, true, 3 },
		"no inventory": func(s *testSource) { s.list, s.changeParts = false, 3 },
	} {
		for seed := range uint64(teststores.Histories(1, 6)) {
			t.Run(fmt.Sprint(name, seed), func(t *testing.T) {
				t.Parallel()
				r := rand.New(rand.NewPCG(seed, 11))
				b := newBench(t)
				b.cfg.MaxDeleteRatio = 1
				s := b.src
				s.noTimes, s.noHash = true, r.IntN(2) == 0
				set(s)
				window := -s.drop
				s.drop = 0
				fill(s, 3)
				for step := range 15 {
					for n := r.IntN(4); n > 0 || s.packed > 0 && len(s.log)%s.packed > 0; n-- { // packages are full
						if name := fmt.Sprintf("e%d.nt", r.IntN(4)); r.IntN(3) == 0 {
							s.remove(name)
						} else {
							s.put(name, nt(name, fmt.Sprint(seed, len(s.log))))
						}
					}
					if window > 0 {
						s.drop = max(0, len(s.log)-window)
					}
					if rep := b.sync(); !rep.InSync {
						t.Fatalf("step %d: %+v", step, rep)
					}
					b.equal()
				}
			})
		}
	}
}
