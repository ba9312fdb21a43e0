package feed

import (
	"fmt"

	"github.com/rsbridge/rsbridge/destination/item"
	"github.com/rsbridge/rsbridge/internal/clip"
)

// said is a fully applied list with numbers, by its changes. They are never applied again, so a list
// that tells other ones under their numbers would not be noticed by anything else.
type said struct {
	First uint64 `json:"first"`
	Last  uint64 `json:"last"`
	All   tally  `json:"all"`
	Mixed bool   `json:"mixed,omitempty"` // beside some without a number
}

// repeater compares a list with the said one, and sums it up.
type repeater struct {
	was, now   said
	again      tally // the entries with the numbers of was
	unnumbered int
	grown      growth // with and without a number
}

func (r *repeater) look(it *item.Item) {
	n, digest := it.Sequence, briefly(it)
	r.grown.look(digest)
	if n == 0 {
		r.unnumbered++
		return
	}
	if r.now.All.N == 0 || n < r.now.First {
		r.now.First = n
	}
	r.now.Last = max(r.now.Last, n)
	r.now.All.add(digest)
	if r.was.First <= n && n <= r.was.Last {
		r.again.add(digest)
	}
}

// end is the memory of the list, nil for one without numbers. Of a tail it goes on from the said one.
func (r *repeater) end(tail bool) *said {
	if r.now.All.N == 0 {
		return nil
	}
	now := r.now
	now.Mixed = r.unnumbered > 0
	if tail {
		now.First, now.Mixed = r.was.First, now.Mixed || r.was.Mixed
		now.All = tally{r.was.All.N + now.All.N - r.again.N, r.was.All.Sum + now.All.Sum - r.again.Sum}
	}
	return &now
}

// contradicts is a gap: a list over all said changes tells others, or some without a number.
func (r *repeater) contradicts(list string) error {
	switch {
	case r.was.All.N == 0, r.was.Mixed && r.unnumbered > 0:
	case r.was.Mixed && r.now.All.N > 0:
		return &GapError{Why: fmt.Sprintf("Change List %s tells no changes without a number, and had some: it was wrong, or the source was set back", clip.Middle(list))}
	case r.now.All.N > 0 && r.unnumbered > 0:
		return &GapError{Why: fmt.Sprintf("Change List %s tells of changes without a number (%d) beside those with one", clip.Middle(list), r.unnumbered)}
	case r.now.First <= r.was.First && r.was.Last <= r.now.Last && r.again != r.was.All:
		return &GapError{Why: fmt.Sprintf("Change List %s tells other changes from number %d to %d than those that were applied: it was wrong, or the source was set back", clip.Middle(list), r.was.First, r.was.Last)}
	}
	return nil
}
