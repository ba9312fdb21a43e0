package feed

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/destination/item"
)

// A list of any number of changes in any order takes the same memory, and gives them in the
// order of their times, those of one time as they stand.
func TestChangeSorter(t *testing.T) {
	src := New(Options{TempDir: t.TempDir(), MemoryBytes: 1 << 20})
	heap := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	held := func(n int) int64 {
		s, err := src.newChangeSorter(&Download{}, false)
		if err != nil {
			t.Fatal(err)
		}
		defer s.close()
		begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		r := rand.New(rand.NewPCG(1, 2))
		for i := range n {
			it := &item.Item{Loc: fmt.Sprintf("http://example.org/%d/%0200d", i, 0), Change: "updated", Blind: i%3 == 0, TimeGate: fmt.Sprint(i)}
			if i%10 > 0 {
				it.Time = begin.Add(time.Duration(r.IntN(1000)) * time.Second)
			}
			if err := s.add(it); err != nil {
				t.Fatal(err)
			}
		}
		size, got := heap(), 0
		var last *item.Item
		for it, err := range s.items() {
			if err != nil {
				t.Fatal(err)
			}
			if last != nil && (it.Time.Before(last.Time) || it.Time.Equal(last.Time) && number(t, it) < number(t, last)) {
				t.Fatalf("%+v stands behind %+v", it, last)
			}
			if it.Blind != (number(t, it)%3 == 0) {
				t.Fatalf("%+v", it)
			}
			last = it
			got++
		}
		if got != n {
			t.Fatalf("%d of %d changes", got, n)
		}
		return size
	}
	small := held(5000)
	if large := held(50_000); large > small+1<<20 {
		t.Errorf("5,000 changes take %d bytes, 50,000 take %d", small, large)
	}
	if left, err := os.ReadDir(src.Docs.opt.TempDir); err != nil || len(left) > 0 {
		t.Errorf("%v is left (%v)", left, err)
	}
}

func number(t *testing.T, it *item.Item) (n int) {
	if _, err := fmt.Sscan(it.TimeGate, &n); err != nil {
		t.Fatal(err)
	}
	return n
}
