package destination

import (
	"strings"
	"testing"
	"time"
)

// A list without hashes and lastmod, of a source without Change List, does not tell what changes
// behind it. EQUAL is said when all of it was asked for, else the time up to which it was.
func TestListsThatTellNoState(t *testing.T) {
	b := newBench(t)
	s := b.src
	s.noHash, s.noLastmod, s.changes = true, true, false
	fill(s, 3)
	b.poll()
	asked := b.d.mem.Meta.At.LastPoll()
	unproven := func(until time.Time) {
		t.Helper()
		for _, depth := range []string{"inventory", "store"} {
			rep := b.audited(depth)
			if st, err := b.open().Status(t.Context()); err != nil || st.ProvenUntil == nil || !st.ProvenUntil.Equal(*rep.ProvenUntil) {
				t.Errorf("status: %+v %v", st, err)
			}
			if rep.Verdict != "not proven" || rep.ProvenUntil == nil || !rep.ProvenUntil.Equal(until) || !strings.Contains(rep.SourceError, "3 resources") {
				t.Errorf("depth %s, until %s: %+v", depth, until, rep)
			}
		}
	}
	b.poll() // the list has not changed, and only the answers are confirmed
	unproven(asked)
	b.clock = b.clock.Add(time.Hour)
	s.bodies["e1.nt"] = []byte(nt("e1", "silently"))
	unproven(asked)
	if rep := b.audited("origin"); rep.Verdict != "different" {
		t.Errorf("%+v", rep)
	}
	b.poll()
	b.same(b.mir.lines(graphA), s.want())
	unproven(b.d.mem.Meta.At.LastPoll())
	b.clock = b.clock.Add(time.Hour)
	rep := b.audited("origin")
	if !rep.Equal {
		t.Errorf("%+v", rep)
	}
	unproven(rep.Time)
}
