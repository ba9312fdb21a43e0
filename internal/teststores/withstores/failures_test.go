package main

import (
	"fmt"
	"strings"
	"testing"
)

// TestFailures: what failed is told once more, however the output comes in pieces.
func TestFailures(t *testing.T) {
	said := "ok  \ta/b\t1.2s\n--- FAIL: TestA (0.1s)\n    a_test.go:7: no\n    --- FAIL: TestA/part (0.0s)\npanic: test timed out after 1m0s\n\trunning tests:\n\t\tTestB (48m0s)\n" +
		strings.Repeat("goroutine 1 [select, 48 minutes]:\n", 1000) + strings.Repeat("x", 10_000) + "\nFAIL\ta/c\t60.1s\n"
	const want = "failed, once more:\n--- FAIL: TestA (0.1s)\n    --- FAIL: TestA/part (0.0s)\npanic: test timed out after 1m0s\n\t\tTestB (48m0s)\nFAIL\ta/c\t60.1s\n"
	for _, piece := range []int{1, 7, 4096} {
		f := &failures{}
		for rest := said; rest != ""; {
			n := min(piece, len(rest))
			fmt.Fprint(f, rest[:n])
			rest = rest[n:]
		}
		var told strings.Builder
		f.repeat(&told)
		if told.String() != want {
			t.Errorf("in pieces of %d: %q", piece, told.String())
		}
	}
	var told strings.Builder
	(&failures{}).repeat(&told)
	if told.String() != "" {
		t.Errorf("without a failure it says %q", told.String())
	}
}
