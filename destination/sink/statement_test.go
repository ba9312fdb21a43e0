package sink

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/rsbridge/rsbridge/destination/ledger"
)

// Statements are sorted by their hashes, equal ones as they come, and grouped by subject,
// however many there are.
func TestSortAndGroup(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, n := range []int{0, 1, 2, 9, 31, 33, 200} {
		for _, subjects := range []int{1, 2, 8, 9, 40} {
			sts := make([]Statement, n)
			for i := range sts {
				sts[i] = Statement{Subject: ledger.Hash{byte(r.IntN(subjects))}, Hash: ledger.Hash{byte(r.IntN(n)), byte(r.IntN(3))}, Graph: fmt.Sprint(i)}
			}
			want := slices.Clone(sts)
			slices.SortStableFunc(want, func(a, b Statement) int { return bytes.Compare(a.Hash[:], b.Hash[:]) })
			if sortByHash(sts); !reflect.DeepEqual(sts, want) {
				t.Fatalf("%d of %d subjects: %v", n, subjects, sts)
			}
			groups := map[ledger.Hash][]byte{}
			for _, st := range sts {
				groups[st.Subject] = append(groups[st.Subject], st.Hash[:]...)
			}
			got := BySubject(sts)
			for _, o := range got {
				if !bytes.Equal(o.Hashes, groups[o.Subject]) {
					t.Errorf("%d of %d subjects: %x has %x, not %x", n, subjects, o.Subject, o.Hashes, groups[o.Subject])
				}
			}
			if len(got) != len(groups) {
				t.Errorf("%d groups of %d", len(got), len(groups))
			}
		}
	}
}
