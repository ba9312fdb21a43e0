package changetrack

import (
	"iter"

	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/rdfres"
)

// Known yields all entities that are known, deleted ones included as long as they
// are not forgotten, with lo <= EntityKey, and < hi unless hi is zero, in that
// order. It is Current with what is gone: what existed at a past position of the
// log is told by the History of what is known.
func (v *View) Known(lo, hi rdfres.Digest) iter.Seq2[State, error] {
	return func(yield func(State, error) bool) {
		if v.err != nil {
			yield(State{}, v.err)
			return
		}
		end := kv.PrefixEnd([]byte{kindState})
		if !hi.IsZero() {
			end = entityKey(kindState, hi)
		}
		for p, err := range v.r.Scan(entityKey(kindState, lo), end) {
			var st State
			if err == nil {
				var s *stateRecord
				if s, err = readState(p.Value); err == nil {
					st, err = v.state(rdfres.EntityKey(s.entity), s)
				}
			}
			if !yield(st, err) || err != nil {
				return
			}
		}
	}
}
