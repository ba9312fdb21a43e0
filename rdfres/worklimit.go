package rdfres

import (
	"errors"
	"fmt"
)

// ErrWorkLimit reports blank nodes too alike to tell apart within the work limit: a poison graph,
// or a very large symmetric one. The error around it is a *WorkLimitError.
var ErrWorkLimit = errors.New("work limit of blank-node canonicalization exceeded")

// DefaultWorkLimit is the work limit for 0. A unit is one look at one related blank node while
// paths between indistinguishable blank nodes are compared (RDFC-1.0, section 4.8: each call of
// hash n-degree quads, each related node in it, each step along each permutation), 100 to 400 ns:
// the limit is reached in well under a second. More than 10,000 nodes on one path are over it too.
const DefaultWorkLimit = 1_000_000

// WorkLimitError names the graph given up. errors.Is(err, ErrWorkLimit).
type WorkLimitError struct {
	Limit int
	Nodes int  // blank nodes not told apart by their own triples
	Near  Term // an IRI linked to one of the blank nodes, in either direction; "" when there is none
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
