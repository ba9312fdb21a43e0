package teststores

import (
	"hash/fnv"
	"os"
	"strconv"
	"sync"
	"testing"
)

// The race detector runs with -short. It needs some cases of each way of the
// goroutines; the run without -short has all.

// Histories is how many random ones a test plays, with -short and without, each drawn
// from its number. RSBRIDGE_HISTORIES sets it, for campaigns.
func Histories(short, full int) int {
	if n, err := strconv.Atoi(os.Getenv("RSBRIDGE_HISTORIES")); err == nil {
		return n
	}
	if testing.Short() {
		return short
	}
	return full
}

// Unraced tells, for each case of a test in turn, whether it is left to the run without
// -short: all but the first of each so many. The number has no factor in common with
// the lengths of the loops: each value of each loop has its turn.
func Unraced(t testing.TB, of int) bool {
	if !testing.Short() {
		return false
	}
	cases.Lock()
	defer cases.Unlock()
	n := cases.of[t.Name()]
	cases.of[t.Name()]++
	return n%of > 0
}

// Third passes over two of three tests and cases with -short, drawn from their names. It is for
// a harness whose tests have the same goroutines, and differ in what one of them does.
func Third(t testing.TB) {
	t.Helper()
	if h := fnv.New32a(); testing.Short() {
		h.Write([]byte(t.Name()))
		if h.Sum32()%3 != 0 {
			t.Skip("the race detector has the like of it in others; it runs without -short")
		}
	}
}

var cases = struct {
	sync.Mutex
	of map[string]int // by the name of a test
}{of: map[string]int{}}

// Sequential passes over a test with -short: one goroutine does it, or another process.
func Sequential(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("the race detector sees nothing in it, or no more than in others; it runs without -short")
	}
}
