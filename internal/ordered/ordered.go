// Package ordered works on the items of an iteration with all processors, and keeps their
// order.
package ordered

import (
	"iter"
	"runtime"
	"sync"
)

// perJob is how many items go to a worker at once.
const perJob = 64

// Map yields the results of work for each item, in their order. Work runs on all
// processors at once, with a bounded number of items under way. It ends with the
// first error; all goroutines have ended when the iteration has.
func Map[A, B any](items iter.Seq2[A, error], work func(A) (B, error)) iter.Seq2[B, error] {
	return MapSome(items, func(some []A) (made []B, err error) {
		for _, a := range some {
			b, err := work(a)
			if err != nil {
				return made, err
			}
			made = append(made, b)
		}
		return made, nil
	})
}

// MapSome is Map with work for some items at once. Beside an error it gives the results before it.
func MapSome[A, B any](items iter.Seq2[A, error], work func([]A) ([]B, error)) iter.Seq2[B, error] {
	type job struct {
		items []A
		made  []B
		err   error
		done  chan struct{}
	}
	return func(yield func(B, error) bool) {
		n := runtime.GOMAXPROCS(0)
		jobs, order := make(chan *job, n), make(chan *job, 2*n)
		stop := make(chan struct{})
		var all sync.WaitGroup
		defer all.Wait()
		defer close(stop)
		for range n {
			all.Go(func() {
				for j := range jobs {
					if len(j.items) > 0 {
						j.made, j.err = work(j.items)
					}
					close(j.done)
				}
			})
		}
		all.Go(func() {
			defer close(order)
			defer close(jobs)
			j := &job{done: make(chan struct{})}
			send := func() bool {
				select {
				case order <- j:
				case <-stop:
					return false
				}
				jobs <- j
				j = &job{done: make(chan struct{})}
				return true
			}
			for a, err := range items {
				if err != nil {
					send()
					j.err = err
					break
				}
				if j.items = append(j.items, a); len(j.items) == perJob && !send() {
					return
				}
			}
			send()
		})
		for j := range order {
			<-j.done
			for _, b := range j.made {
				if !yield(b, nil) {
					return
				}
			}
			if j.err != nil {
				var none B
				yield(none, j.err)
				return
			}
		}
	}
}
