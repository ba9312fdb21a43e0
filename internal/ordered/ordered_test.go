package ordered

import (
	"errors"
	"iter"
	"testing"
)

func numbers(n int, end error) iter.Seq2[int, error] {
	return func(yield func(int, error) bool) {
		for i := range n {
			if !yield(i, nil) {
				return
			}
		}
		if end != nil {
			yield(0, end)
		}
	}
}

// Results come in the order of the items, up to the first error, and an iteration can be
// left early.
func TestMap(t *testing.T) {
	broken, refused := errors.New("broken"), errors.New("refused")
	double := func(most int) func(int) (int, error) {
		return func(n int) (int, error) {
			if n >= most {
				return 0, refused
			}
			return 2 * n, nil
		}
	}
	for _, c := range []struct {
		items       int
		end         error
		most, leave int
		want        int // results
		err         error
	}{
		{0, nil, 1000, 1000, 0, nil}, {1, nil, 1000, 1000, 1, nil}, {1000, nil, 1000, 2000, 1000, nil}, {64, broken, 1000, 1000, 64, broken},
		{65, broken, 1000, 1000, 65, broken}, {1000, nil, 300, 1000, 300, refused}, {1000, broken, 1000, 7, 7, nil}, {0, broken, 1000, 1000, 0, broken},
	} {
		n := 0
		var last error
		for v, err := range Map(numbers(c.items, c.end), double(c.most)) {
			if last = err; err != nil {
				break
			}
			if v != 2*n {
				t.Fatalf("%+v: result %d is %d", c, n, v)
			}
			if n++; n == c.leave {
				break
			}
		}
		if n != c.want || last != c.err {
			t.Errorf("%+v: %d results, %v", c, n, last)
		}
	}
}
