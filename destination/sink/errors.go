package sink

import "errors"

var (
	// ErrUnusable marks a resource the sink cannot hold.
	ErrUnusable = errors.New("cannot stand in the mirror")
	// ErrRefused marks a triple the sink refuses, in any batch.
	ErrRefused = errors.New("the mirror refuses a triple")
	// ErrUnconfirmed marks a write, confirmed and not done.
	ErrUnconfirmed = errors.New("the mirror confirmed a write that it has not done")
)
