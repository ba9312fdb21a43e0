package engine

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/tggo/goRDFlib/graph"
	"github.com/tggo/goRDFlib/store"
	"github.com/tggo/goRDFlib/term"
)

// stop ends an evaluation from within: goRDFlib's evaluator has no errors and
// cannot be interrupted, so that the store under it panics.
type stop struct{ err error }

// evaluation is one query on its way.
type evaluation struct {
	terms
	ctx      context.Context
	cancel   context.CancelFunc
	data     Data
	o        Options
	rows     int64
	rowBytes int64 // what one row is taken to need
	names    int   // of fresh variables
	content  bool  // the query looks into literals
	nested   bool  // the text has a group that begins with a group
	def      *graph.Graph
	named    map[string]*graph.Graph
}

func newEvaluation(ctx context.Context, data Data, text string, o Options) (*evaluation, error) {
	if o.Budget.Rows <= 0 {
		o.Budget.Rows = 5_000_000
	}
	if o.Budget.MemoryBytes <= 0 {
		o.Budget.MemoryBytes = 1 << 30
	}
	if o.Budget.Time <= 0 {
		o.Budget.Time = time.Minute
	}
	if err := checkText(text, o); err != nil {
		return nil, err
	}
	e := &evaluation{data: data, o: o, rowBytes: 256, nested: doubleBrace.MatchString(text)}
	defaults := []rdfres.Term{""}
	named, err := data.Graphs()
	if err != nil {
		return nil, fmt.Errorf("list the named graphs: %w", err)
	}
	if o.Dataset {
		defaults = o.DefaultGraphs
		// A graph that holds nothing is not there, as everywhere in the store.
		named = slices.DeleteFunc(named, func(g rdfres.Term) bool { return !slices.Contains(o.NamedGraphs, g) })
	}
	defaults = slices.Sorted(slices.Values(defaults))
	e.def = e.graph(slices.Compact(defaults))
	e.named = map[string]*graph.Graph{}
	for _, g := range named {
		name := string(g)
		if g.Kind() == rdfres.KindIRI {
			name = name[1 : len(name)-1]
		}
		e.named[name] = e.graph([]rdfres.Term{g})
	}
	e.ctx, e.cancel = context.WithTimeoutCause(ctx, o.Budget.Time, &BudgetError{"time", o.Budget.Time.String()})
	return e, nil
}

func (e *evaluation) graph(of []rdfres.Term) *graph.Graph {
	return graph.NewGraphFromStore(&quads{e: e, graphs: of}, term.NewURIRefUnsafe("urn:rsbridge:engine:graph"))
}

// spend counts n rows.
func (e *evaluation) spend(n int64) {
	before := e.rows
	e.rows += n
	if e.rows > e.o.Budget.Rows {
		panic(stop{&BudgetError{"rows", fmt.Sprint(e.o.Budget.Rows)}})
	}
	if e.rows*e.rowBytes > e.o.Budget.MemoryBytes {
		panic(stop{&BudgetError{"memory", fmt.Sprintf("%d MiB", e.o.Budget.MemoryBytes>>20)}})
	}
	if before>>8 != e.rows>>8 {
		e.alive()
	}
}

func (e *evaluation) alive() {
	if e.ctx.Err() != nil {
		panic(stop{context.Cause(e.ctx)})
	}
}

// recover makes an error of a panic: of ours, or of goRDFlib's.
func (e *evaluation) recover(err *error) {
	switch p := recover().(type) {
	case nil:
	case stop:
		*err = fmt.Errorf("engine: %w", p.err)
	default:
		*err = fmt.Errorf("engine: goRDFlib's evaluator panicked: %v: please report the query\n%s", p, debug.Stack())
	}
}

// quads is the union of graphs as a store of goRDFlib, read only. It has no
// pushdown of COUNT, LIMIT and ASK: goRDFlib's would forget that a variable
// stands twice in a pattern.
type quads struct {
	e      *evaluation
	graphs []rdfres.Term
}

func (s *quads) Triples(p term.TriplePattern, _ term.Term) store.TripleIterator {
	return func(yield func(term.Triple) bool) {
		e := s.e
		e.alive()
		pat := Pattern{}
		if p.Subject != nil {
			pat.S = e.from(p.Subject)
		}
		if p.Predicate != nil {
			pat.P = e.from(*p.Predicate)
		}
		if p.Object != nil {
			pat.O = e.from(p.Object)
		}
		if pat.P != "" && pat.P.Kind() != rdfres.KindIRI {
			return
		}
		var seen map[rdfres.Triple]bool
		if len(s.graphs) > 1 {
			seen = map[rdfres.Triple]bool{}
		}
		for _, g := range s.graphs {
			pat.G = g
			for q, err := range e.data.Match(pat) {
				if err != nil {
					panic(stop{fmt.Errorf("read the store: %w", err)})
				}
				e.spend(1)
				if seen != nil {
					if seen[q.Triple] {
						continue
					}
					seen[q.Triple] = true
				}
				subject, ok := e.to(q.S).(term.Subject)
				if !ok {
					continue
				}
				predicate, ok := e.to(q.P).(term.URIRef)
				if !ok {
					continue
				}
				if !yield(term.Triple{Subject: subject, Predicate: predicate, Object: e.to(q.O)}) {
					return
				}
			}
		}
	}
}

var errReadOnly = errors.New("goRDFlib tried to write to a store that is read only")

func (s *quads) Add(term.Triple, term.Term)               { panic(stop{errReadOnly}) }
func (s *quads) AddN([]term.Quad)                         { panic(stop{errReadOnly}) }
func (s *quads) Remove(term.TriplePattern, term.Term)     { panic(stop{errReadOnly}) }
func (s *quads) Set(term.Triple, term.Term)               { panic(stop{errReadOnly}) }
func (s *quads) Bind(string, term.URIRef)                 {}
func (s *quads) Namespace(string) (term.URIRef, bool)     { return term.URIRef{}, false }
func (s *quads) Prefix(term.URIRef) (string, bool)        { return "", false }
func (s *quads) Namespaces() store.NamespaceIterator      { return func(func(string, term.URIRef) bool) {} }
func (s *quads) Contexts(*term.Triple) store.TermIterator { return func(func(term.Term) bool) {} }
func (s *quads) ContextAware() bool                       { return true }
func (s *quads) TransactionAware() bool                   { return false }
func (s *quads) Len(term.Term) (n int) {
	for range s.Triples(term.TriplePattern{}, nil) {
		n++
	}
	return n
}

var _ store.Store = (*quads)(nil)
