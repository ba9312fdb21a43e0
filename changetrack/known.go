package changetrack

import (
	"context"
	"iter"

	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/rdfres"
)

// Known yields all known entities, deleted ones included until they are forgotten, with lo <=
// EntityKey, and < hi unless hi is zero, in the order of EntityKey. It is Current with the deleted
// ones. History of each tells whether it existed at a past position of the log.
func (v *View) Known(ctx context.Context, lo, hi rdfres.Digest) iter.Seq2[State, error] {
	return func(yield func(State, error) bool) {
		if v.err != nil {
			yield(State{}, v.err)
			return
		}
		end := kv.PrefixEnd([]byte{kindState})
		if !hi.IsZero() {
			end = entityKey(kindState, hi)
		}
		for p, err := range v.r.Scan(ctx, entityKey(kindState, lo), end) {
			var st State
			if err == nil {
				var s *stateRecord
				if s, err = readState(p.Value); err == nil {
					st, err = v.state(ctx, rdfres.EntityKey(s.entity), s)
				}
			}
			if !yield(st, err) || err != nil {
				return
			}
		}
	}
}
