package jsonld

import (
	"strings"
	"testing"
)

func TestPlainLen(t *testing.T) {
	for _, bad := range []string{"\"", "\\", "\n", "\x1f", "\x00", "\x7f", "\xef"} {
		for n := range 20 {
			s := strings.Repeat("a\u00e4 ~", 9)[:n] + bad + strings.Repeat(" b", 9)
			if got := plainLen([]byte(s)); got != n {
				t.Errorf("%q: %d, want %d", s, got, n)
			}
		}
	}
}
