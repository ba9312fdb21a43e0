package rdfres

import "errors"

// maxNesting bounds nested blank nodes and collections in Turtle and TriG, and
// nested objects in JSON-LD.
const maxNesting = 10_000

// errStopped ends a reader whose user wants no more statements.
var errStopped = errors.New("the reader of the statements has stopped")
