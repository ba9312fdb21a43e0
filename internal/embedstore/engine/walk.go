package engine

import (
	"slices"

	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/tggo/goRDFlib/graph"
	"github.com/tggo/goRDFlib/paths"
	"github.com/tggo/goRDFlib/term"
)

// step is a path. It gives the pairs that it joins, each end nil for anything;
// unlike goRDFlib's paths its ends may be literals.
type step func(g *graph.Graph, s, o term.Term, give func(s, o term.Term) bool) bool

// walk is a step as a path of goRDFlib.
type walk struct {
	paths.URIRefPath // for the method that is not exported
	e                *evaluation
	step             step
	literals         bool // it may lead from a literal
}

func (w *walk) Eval(g *graph.Graph, s term.Subject, o term.Term) func(func(term.Term, term.Term) bool) {
	return func(yield func(term.Term, term.Term) bool) {
		var from term.Term
		if s != nil {
			from = s
		}
		w.step(g, from, o, yield)
	}
}

func (e *evaluation) stepOf(n *normalizer, p paths.Path) (step, error) {
	switch p := p.(type) {
	case paths.URIRefPath:
		iri, err := n.iri(p.URI.Value())
		t := rdfres.NewIRI(iri)
		u := term.NewURIRefUnsafe(string(t[1 : len(t)-1]))
		return func(g *graph.Graph, s, o term.Term, give func(s, o term.Term) bool) bool {
			subject, ok := s.(term.Subject)
			if s != nil && !ok {
				return true
			}
			for t := range g.Triples(subject, &u, o) {
				if !give(t.Subject, t.Object) {
					return false
				}
			}
			return true
		}, err
	case *paths.InvPath:
		in, err := e.stepOf(n, p.Arg)
		return func(g *graph.Graph, s, o term.Term, give func(s, o term.Term) bool) bool {
			return in(g, o, s, func(a, b term.Term) bool { return give(b, a) })
		}, err
	case *paths.AlternativePath:
		var in []step
		for _, a := range p.Args {
			st, err := e.stepOf(n, a)
			if err != nil {
				return nil, err
			}
			in = append(in, st)
		}
		return func(g *graph.Graph, s, o term.Term, give func(s, o term.Term) bool) bool {
			for _, st := range in {
				if !st(g, s, o, give) {
					return false
				}
			}
			return true
		}, nil
	case *paths.SequencePath:
		first, err := e.stepOf(n, p.Args[0])
		if err != nil || len(p.Args) == 1 {
			return first, err
		}
		rest, err := e.stepOf(n, &paths.SequencePath{Args: p.Args[1:]})
		return func(g *graph.Graph, s, o term.Term, give func(s, o term.Term) bool) bool {
			if s == nil && o != nil {
				return rest(g, nil, o, func(mid, end term.Term) bool {
					return first(g, nil, mid, func(a, _ term.Term) bool { return give(a, end) })
				})
			}
			return first(g, s, nil, func(a, mid term.Term) bool {
				return rest(g, mid, o, func(_, end term.Term) bool { return give(a, end) })
			})
		}, err
	case *paths.MulPath:
		in, err := e.stepOf(n, p.Path)
		return e.repeat(in, p.Zero, p.More), err
	}
	return nil, refuse("a path with a negated set")
}

// repeat is *, + and ? (section 18.4): each pair of ends once.
func (e *evaluation) repeat(in step, zero, more bool) step {
	// reach gives what lies ahead of (or behind) a node.
	reach := func(g *graph.Graph, from term.Term, back bool, give func(term.Term) bool) bool {
		seen := map[string]bool{}
		todo := []term.Term{from}
		visit := func(t term.Term) bool {
			k := term.TermKey(t)
			if seen[k] {
				return true
			}
			seen[k] = true
			e.spend(1)
			if more {
				todo = append(todo, t)
			}
			return give(t)
		}
		if zero {
			todo = nil
			if !visit(from) {
				return false
			}
			todo = []term.Term{from}
		}
		for len(todo) > 0 {
			t := todo[len(todo)-1]
			todo = todo[:len(todo)-1]
			var ok bool
			// The pairs are taken first: what is found may be asked for again.
			var next []term.Term
			if back {
				ok = in(g, nil, t, func(a, _ term.Term) bool { next = append(next, a); return true })
			} else {
				ok = in(g, t, nil, func(_, b term.Term) bool { next = append(next, b); return true })
			}
			for _, t := range next {
				ok = ok && visit(t)
			}
			if !ok {
				return false
			}
		}
		return true
	}
	return func(g *graph.Graph, s, o term.Term, give func(s, o term.Term) bool) bool {
		switch {
		case s != nil:
			return reach(g, s, false, func(t term.Term) bool {
				return o != nil && term.TermKey(t) != term.TermKey(o) || give(s, t)
			})
		case o != nil:
			return reach(g, o, true, func(t term.Term) bool { return give(t, o) })
		}
		nodes := map[string]term.Term{}
		for t := range g.Triples(nil, nil, nil) {
			nodes[term.TermKey(t.Subject)] = t.Subject
			nodes[term.TermKey(t.Object)] = t.Object
		}
		for _, n := range nodes {
			if !reach(g, n, false, func(t term.Term) bool { return give(n, t) }) {
				return false
			}
		}
		return true
	}
}

// fromLiteral tells whether a path may lead from a literal: by no step at all,
// or by a step backwards.
func fromLiteral(p paths.Path) bool {
	switch p := p.(type) {
	case *paths.MulPath:
		return p.Zero || fromLiteral(p.Path)
	case *paths.InvPath:
		return true
	case *paths.AlternativePath:
		return slices.ContainsFunc(p.Args, fromLiteral)
	case *paths.SequencePath:
		return slices.ContainsFunc(p.Args, fromLiteral)
	}
	return false
}
