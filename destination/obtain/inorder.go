package obtain

import (
	"context"
	"errors"
	"iter"
	"sync"

	"github.com/rsbridge/rsbridge/destination/fetch"
)

// Task makes a result; tasks run beside each other.
type Task[T any] func(context.Context) T

// Result may have failed. An implementer guarantees: Failed is nil for a result that can be used.
type Result interface{ Failed() error }

// Failed is the reason for having no resource.
func (o *Outcome) Failed() error { return o.Err }

// InOrder runs tasks on all workers and hands the results to each, in the order of the tasks. It ends
// at the first error of tasks or each, and without the source, always after all workers have ended.
func InOrder[T Result](ctx context.Context, workers int, tasks iter.Seq2[Task[T], error], each func(T) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	type slot struct {
		task Task[T]
		done chan T
	}
	work := make(chan slot)
	order := make(chan slot, 4*workers)
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for s := range work {
				s.done <- s.task(ctx)
			}
		})
	}
	var taskErr error
	wg.Go(func() {
		defer close(order)
		defer close(work)
		for t, err := range tasks {
			if err != nil {
				taskErr = err
				return
			}
			s := slot{t, make(chan T, 1)}
			select {
			case work <- s:
			case <-ctx.Done():
				return
			}
			select {
			case order <- s:
			case <-ctx.Done():
				return
			}
		}
	})
	var err error
	for s := range order {
		if err != nil {
			continue // let the workers end
		}
		select {
		case o := <-s.done:
			if failed := o.Failed(); failed != nil && (errors.Is(failed, fetch.ErrSourceGone) || ctx.Err() != nil) {
				err = failed
			} else {
				err = each(o)
			}
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
		if err != nil {
			cancel(err)
		}
	}
	wg.Wait()
	if err == nil {
		err = taskErr
	}
	if err == nil {
		err = ctx.Err()
	}
	return err
}
