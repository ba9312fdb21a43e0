package embedstore

import (
	"context"
	"errors"
	"fmt"
	"iter"

	gordf "github.com/rsbridge/rsbridge/internal/embedstore/engine"
	"github.com/rsbridge/rsbridge/rdfres"
)

// goRDFlib is the engine for what the executor leaves: package engine over a
// snapshot. What that refuses stays unsupported.
type goRDFlib struct{ s *Store }

// quads shows a snapshot to the engine.
type quads struct{ n *Snapshot }

func (d quads) Match(p gordf.Pattern) iter.Seq2[rdfres.Quad, error] {
	return d.n.Match(Pattern{S: p.S, P: p.P, O: p.O, G: p.G})
}

func (d quads) Graphs() (out []rdfres.Term, err error) {
	gs, err := d.n.Graphs()
	for _, g := range gs {
		if g.Graph != "" {
			out = append(out, g.Graph)
		}
	}
	return out, err
}

func (e goRDFlib) Query(ctx context.Context, snap *Snapshot, text string, o QueryOptions) (*Result, error) {
	b := o.Budget.or(e.s.opts.Budget)
	opts := gordf.Options{
		Base:   o.Base,
		Budget: gordf.Budget{Rows: b.Rows, MemoryBytes: b.MemoryBytes, Time: b.Time},
		Compare: func(a, b rdfres.Term) int {
			va, vb := termValue(a), termValue(b)
			return orderValues(&va, &vb)
		},
	}
	from, named, has := o.DefaultGraphs, o.NamedGraphs, len(o.DefaultGraphs)+len(o.NamedGraphs) > 0
	if q, err := parseQuery(text, o.Base); err == nil && !has && q.hasFrom {
		has = true
		for _, g := range q.from {
			opts.DefaultGraphs = append(opts.DefaultGraphs, rdfres.Term(g))
		}
		for _, g := range q.fromNamed {
			opts.NamedGraphs = append(opts.NamedGraphs, rdfres.Term(g))
		}
	} else if has {
		for _, g := range from {
			opts.DefaultGraphs = append(opts.DefaultGraphs, rdfres.Term(iriTerm(g)))
		}
		for _, g := range named {
			opts.NamedGraphs = append(opts.NamedGraphs, rdfres.Term(iriTerm(g)))
		}
	}
	opts.Dataset = has
	ctx, cancel := e.s.bound(ctx)
	defer cancel()
	given, err := gordf.Query(ctx, quads{snap}, text, opts)
	var be *gordf.BudgetError
	switch {
	case errors.As(err, &be):
		return nil, &BudgetError{What: be.What, Limit: be.Limit}
	case errors.Is(err, gordf.ErrRefused):
		return nil, fmt.Errorf("%w: %w", ErrUnsupported, err)
	case err != nil:
		return nil, err
	}
	return &Result{Kind: ResultKind(given.Kind), Vars: given.Vars, Bool: given.Bool, ctx: ctx, given: given, close: func() { snap.Close() }}, nil
}

func termValue(t rdfres.Term) value {
	if t == "" {
		return value{}
	}
	return parseValue(string(t))
}

// giveRows hands on the rows of the engine.
func (r *Result) giveRows(fn func(terms []string) error) error {
	terms := make([]string, len(r.Vars))
	for _, row := range r.given.Rows {
		for i, t := range row {
			terms[i] = string(t)
		}
		if err := fn(terms); err != nil {
			return err
		}
	}
	return nil
}

func (r *Result) giveTriples(fn func(terms []string) error) error {
	for _, t := range r.given.Triples {
		if err := fn([]string{string(t.S), string(t.P), string(t.O)}); err != nil {
			return err
		}
	}
	return nil
}
