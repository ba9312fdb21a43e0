// Package engine answers SPARQL with goRDFlib's evaluator over any set of quads,
// within a budget.
//
// goRDFlib parses a text into a tree and evaluates the tree over a graph. In
// between this package does three things. It mends what the evaluator gets
// wrong and a tree can say better (see mend.go). It moves joins so that values
// found on one side are looked up on the other, where the evaluator would
// compute a whole side again for each row (see push.go). And it refuses, with
// [ErrRefused], what the evaluator is known to answer wrongly and no rewriting
// helps (see refuse.go): no answer is better than a wrong one.
//
// Texts are taken as already checked: goRDFlib's parser passes over much that
// is no SPARQL. DESCRIBE, SERVICE and FROM in the text are not its business;
// the dataset is given in [Options].
package engine

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/rsbridge/rsbridge/rdfres"
)

// Pattern selects quads of one graph; "" in S, P or O is anything.
type Pattern struct {
	S, P, O rdfres.Term
	G       rdfres.Term // "" is the default graph
}

// Data is what is asked: an unchanging set of quads.
type Data interface {
	// Match streams the quads that match; it ends after the first error.
	Match(Pattern) iter.Seq2[rdfres.Quad, error]
	// Graphs are the names of the named graphs.
	Graphs() ([]rdfres.Term, error)
}

// Budget bounds one evaluation. Zero fields mean the default.
type Budget struct {
	Rows        int64         // triples looked at and rows held; default 5 million
	MemoryBytes int64         // estimated from them; default 1 GiB
	Time        time.Duration // default 1 minute
}

// Options of one evaluation.
type Options struct {
	Base string // base IRI of relative references
	// Dataset tells that DefaultGraphs and NamedGraphs are the dataset (section
	// 13.2); otherwise it is the default graph and all named graphs.
	Dataset       bool
	DefaultGraphs []rdfres.Term
	NamedGraphs   []rdfres.Term
	Budget        Budget
	// Compare orders the terms of ORDER BY, "" (unbound) among them; without it
	// ORDER BY is refused.
	Compare func(a, b rdfres.Term) int

	lenient bool // tests: do not refuse what is only sometimes wrong
	noPush  bool // tests: leave the joins where they are
}

// Kind is the form of an answer.
type Kind byte

const (
	Solutions Kind = iota + 1 // SELECT
	Boolean                   // ASK
	Graph                     // CONSTRUCT
)

// Result is a complete answer, held in memory.
type Result struct {
	Kind    Kind
	Vars    []string
	Rows    [][]rdfres.Term // parallel to Vars; "" is unbound
	Bool    bool
	Triples []rdfres.Triple // without doubles
}

// ErrRefused marks queries that goRDFlib would answer wrongly or not at all.
var ErrRefused = errors.New("goRDFlib cannot be relied on for it")

func refuse(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrRefused, fmt.Sprintf(format, args...))
}

// BudgetError tells which bound an evaluation has met.
type BudgetError struct {
	What  string // "rows", "memory" or "time"
	Limit string // the bound, as a person reads it
}

func (e *BudgetError) Error() string {
	return fmt.Sprintf("the evaluation exceeds its budget of %s (%s): ask for less at once, or raise the budget", e.What, e.Limit)
}

// Query answers a SELECT, ASK or CONSTRUCT. Errors: one that wraps ErrRefused, a
// *BudgetError, the error of data or of ctx, or what the parser says. The order
// of rows is that of ORDER BY, else undefined.
func Query(ctx context.Context, data Data, text string, o Options) (r *Result, err error) {
	e, err := newEvaluation(ctx, data, text, o)
	if err != nil {
		return nil, fmt.Errorf("engine: query: %w", err)
	}
	defer e.cancel()
	defer e.recover(&err)
	if r, err = e.query(text); err != nil {
		return nil, fmt.Errorf("engine: query: %w", err)
	}
	return r, nil
}
