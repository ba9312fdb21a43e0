package feed

import "testing"

// A list has grown if it begins with all that it was, or ends with it where the newest are first.
func TestGrowth(t *testing.T) {
	read := func(was heard, entries string) *growth {
		g := &growth{was: was}
		for _, e := range entries {
			g.look(hash64(string(e)))
		}
		return g
	}
	for _, c := range []struct {
		was, now         string
		shrunk, newFirst bool
	}{
		{"", "abc", false, false},
		{"abc", "abc", false, false},
		{"abc", "abcd", false, false},
		{"abc", "acbd", false, false}, // the same up to there
		{"abc", "ab", true, true},
		{"abc", "bcd", true, true},
		{"abc", "abxc", true, true},
		{"abc", "dabc", true, false},
		{"aba", "abaaba", false, false},
		{"aba", "xaba", true, false},
		{"aba", "abxaba", true, false},
		{"abc", "", true, true},
	} {
		last := read(heard{}, c.was)
		g := read(heard{All: last.now, First: last.first}, c.now)
		if got := [2]bool{g.shrunk(false), g.shrunk(true)}; got != [2]bool{c.shrunk, c.newFirst} {
			t.Errorf("%s was %s: shrunk %v, with the newest first %v", c.now, c.was, got[0], got[1])
		}
	}
}
