package destination

import (
	"net/http"
	"strings"
	"testing"
)

// TestStatusWhileLeaving: whenever a mirror says that it is in sync, it has everything up to its
// position; deletions wait for the end of a run.
func TestStatusWhileLeaving(t *testing.T) {
	b := newBench(t)
	b.src.ours = true
	fill(b.src, 20)
	b.sync()
	b.src.remove("e3.nt")
	b.src.put("e5.nt", nt("e5", "a", "new"))
	looks := 0
	b.mir.hook = func(w http.ResponseWriter, r *http.Request) bool {
		st, err := b.d.Status(t.Context())
		if err != nil {
			t.Error(err)
		}
		has := strings.Join(b.mir.lines(graphA), "\n")
		if st.InSync && st.Sequence != nil && *st.Sequence > 20 && strings.Contains(has, "e3>") {
			t.Errorf("in sync at %d with\n%s", *st.Sequence, has)
		}
		if st.BehindChanges != nil && *st.BehindChanges == 0 && *st.Sequence > 20 && strings.Contains(has, "e3>") {
			t.Errorf("behind by nothing at %d with\n%s", *st.Sequence, has)
		}
		looks++
		return false
	}
	rep := b.sync()
	b.mir.hook = nil
	if st, err := b.d.Status(t.Context()); err != nil || !st.InSync || !rep.InSync || rep.Deleted != 1 || looks == 0 {
		t.Errorf("%+v %+v %v, %d looks", st, rep, err, looks)
	}
}
