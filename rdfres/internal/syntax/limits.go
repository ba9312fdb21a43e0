package syntax

import "errors"

// MaxNesting bounds nested blank nodes and collections in Turtle and TriG, and
// nested objects in JSON-LD.
const MaxNesting = 10_000

// ErrStopped ends a reader after its user has stopped.
var ErrStopped = errors.New("the reader of the statements has stopped")
