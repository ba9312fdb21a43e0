package rdfres

import (
	"errors"
	"fmt"
)

// ErrWorkLimit tells that blank nodes were too alike to be told apart within
// the work limit: a poison graph, or a very large symmetric one. The error
// that carries it is a *WorkLimitError.
var ErrWorkLimit = errors.New("work limit of blank-node canonicalization exceeded")

// DefaultWorkLimit is the work limit that 0 stands for. A unit is one look at
// one related blank node while paths between indistinguishable blank nodes are
// compared (RDFC-1.0, section 4.8: each call of hash n-degree quads, each
// related node in it, each step along each permutation), 100 to 400 ns: the
// limit is reached in well under a second. More than 10,000 nodes on one path are
// over it too.
const DefaultWorkLimit = 1_000_000

// WorkLimitError says which graph was given up. errors.Is(err, ErrWorkLimit).
type WorkLimitError struct {
	Limit int
	Nodes int  // blank nodes that could not be told apart by their own triples
	Near  Term // an IRI that leads to one of the blank nodes, or that one of them leads to; "" when there is none
}

func (e *WorkLimitError) Error() string {
	near := ""
	if e.Near != "" {
		near = " near " + string(e.Near)
	}
	return fmt.Sprintf("rdfres: name blank nodes%s: %d of them are too alike: %v after %d steps; raise the limit, or tell them apart in the source (a poison graph never ends)",
		near, e.Nodes, ErrWorkLimit, e.Limit)
}

func (e *WorkLimitError) Unwrap() error { return ErrWorkLimit }
