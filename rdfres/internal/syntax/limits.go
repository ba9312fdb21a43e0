package syntax

import "errors"

// MaxNesting bounds nested blank nodes and collections in Turtle and TriG, and
// nested objects in JSON-LD.
const MaxNesting = 10_000

// ErrStopped ends a reader whose user wants no more statements.
var ErrStopped = errors.New("the reader of the statements has stopped")
