package sparqlsrc

import (
	"errors"
	"fmt"
	"testing"

	"github.com/rsbridge/rsbridge/rdfres"
)

// TestAhead: everything comes, in order; an error comes after it; who has enough,
// or panics, is not waited for, and the other side ends, also by a panic.
func TestAhead(t *testing.T) {
	broken := errors.New("broken")
	for _, c := range []struct {
		name         string
		n, stop      int // yields, and how many are taken; -1 all
		err          error
		panics, mine bool // of the producer, of the consumer
	}{
		{name: "nothing", n: 0, stop: -1},
		{name: "one", n: 1, stop: -1},
		{name: "many", n: 1000, stop: -1},
		{name: "a batch", n: aheadEntities, stop: -1},
		{name: "error", n: 10 * aheadEntities, stop: -1, err: broken},
		{name: "stopped at once", n: 10000, stop: 1},
		{name: "stopped", n: 10000, stop: 777},
		{name: "panic of the producer", n: 10 * aheadEntities, stop: -1, panics: true},
		{name: "panic of the consumer", n: 10000, stop: 100, mine: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			ended, got := false, 0
			defer func() {
				if r := recover(); (r != nil) != (c.panics || c.mine) {
					t.Errorf("panic %v", r)
				}
				if !ended {
					t.Error("the producer has not ended")
				}
				if want := c.stop; want >= 0 && got != want || want < 0 && got != c.n {
					t.Errorf("%d were taken of %d", got, c.n)
				}
			}()
			err := ahead(func(yield func(rdfres.Description, error) bool) error {
				defer func() { ended = true }()
				for i := range c.n {
					if !yield(rdfres.Description{Entity: fmt.Sprint(i), Triples: make([]rdfres.Triple, i%100)}, nil) {
						return errStopped
					}
				}
				if c.panics {
					panic("a fault")
				}
				return c.err
			}, func(d rdfres.Description, err error) bool {
				if err != nil || d.Entity != fmt.Sprint(got) {
					t.Fatalf("%d: %q, %v", got, d.Entity, err)
				}
				if got++; got == c.stop && c.mine {
					panic("enough")
				}
				return got != c.stop
			})
			want := c.err
			if c.stop >= 0 {
				want = errStopped
			}
			if !errors.Is(err, want) || (err == nil) != (want == nil) {
				t.Errorf("%v, want %v", err, want)
			}
		})
	}
}
