package embedstore

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/rsbridge/rsbridge/rdfres"
)

// QueryOptions for Query.
type QueryOptions struct {
	DefaultGraphs []string // default-graph-uri of the protocol; with NamedGraphs replaces FROM and FROM NAMED
	NamedGraphs   []string // named-graph-uri
	Base          string   // base IRI of relative references
	Budget        Budget   // zero fields: the store's
}

// ErrUnsupported marks a request allowed by SPARQL 1.1 and not supported by this store.
var ErrUnsupported = errors.New("cannot be answered by the embedded store")

// ResultKind is the form of an answer.
type ResultKind byte

const (
	Solutions ResultKind = iota + 1 // SELECT
	Boolean                         // ASK
	Graph                           // CONSTRUCT, DESCRIBE
)

// Result is a streamed answer from one snapshot. Close it.
type Result struct {
	Kind ResultKind
	Vars []string // of Solutions
	Bool bool     // of Boolean

	ctx   context.Context
	q     *query
	x     *exec
	once  sync.Once
	close func()
	used  bool
}

// Query answers a SPARQL 1.1 query. A *SyntaxError, a *BudgetError (also later,
// from the rows) or an error wrapping ErrUnsupported tell why it cannot.
func (s *Store) Query(ctx context.Context, text string, o QueryOptions) (*Result, error) {
	q, err := parseQuery(text, o.Base)
	if err != nil {
		return nil, fmt.Errorf("query: %w", err)
	}
	snap, err := s.Snapshot()
	if err != nil {
		return nil, fmt.Errorf("query: %w", err)
	}
	ctx, cancel := s.bound(ctx)
	x := s.newExec(ctx, snap.v, q.slots, o.Budget.or(*s.budget.Load()))
	x.exprs.base = q.base
	r := &Result{ctx: ctx, q: q, x: x, close: func() { x.close(); cancel(); snap.Close() }}
	if err := x.setDataset(q.from, o); err != nil {
		r.Close()
		return nil, fmt.Errorf("query: %w", err)
	}
	switch q.form {
	case formSelect:
		r.Kind = Solutions
		for _, v := range q.vars {
			r.Vars = append(r.Vars, v.name)
		}
	case formAsk:
		r.Kind = Boolean
		stop := &stopSign{}
		err := x.runSelect(q, func() error { return stop })
		r.Bool = err == error(stop)
		if err != nil && !r.Bool {
			r.Close()
			return nil, fmt.Errorf("query: %w", err)
		}
	default:
		r.Kind = Graph
	}
	return r, nil
}

// setDataset chooses the graphs (section 13.2); those of the protocol win.
func (x *exec) setDataset(f fromClauses, o QueryOptions) error {
	from, named := f.graphs, f.named
	if len(o.DefaultGraphs)+len(o.NamedGraphs) > 0 {
		from, named = nil, nil
		for _, g := range o.DefaultGraphs {
			from = append(from, iriTerm(g))
		}
		for _, g := range o.NamedGraphs {
			named = append(named, iriTerm(g))
		}
	} else if !f.given {
		return nil
	}
	var err error
	if x.ds.defaults, err = x.idsOf(from); err != nil {
		return err
	}
	slices.Sort(x.ds.defaults)
	x.ds.defaults = slices.Compact(x.ds.defaults)
	ids, err := x.idsOf(named)
	if err != nil {
		return err
	}
	x.ds.named = map[id]bool{}
	for _, g := range ids {
		x.ds.named[g] = true
	}
	return nil
}

// Close gives the snapshot back. Idempotent.
func (r *Result) Close() error {
	r.once.Do(r.close)
	return nil
}

// handOut hands the terms of rows on, and does not count the reader's own time.
func (x *exec) handOut(width int, fn func(terms []string) error) *rowWalk {
	return x.terms.walk(width, func(terms []string) error {
		start := time.Now()
		err := fn(terms)
		x.meter.waited += time.Since(start)
		return err
	})
}

// rows runs a SELECT and calls fn with the terms of several rows at once, one
// after the other; the strings are valid until fn returns.
func (r *Result) rows(fn func(terms []string) error) error {
	if err := r.use(Solutions); err != nil {
		return err
	}
	x := r.x
	cols := r.q.columns()
	if len(cols) == 0 {
		// Rows without columns are still rows.
		return x.runSelect(r.q, func() error { return fn(nil) })
	}
	w := x.handOut(len(cols), fn)
	w.free = len(cols) > 1 && len(r.q.orderBy) == 0 && x.inSubjectOrder(r.q, cols[0])
	row := make([]id, len(cols))
	err := x.runSelect(r.q, func() error {
		x.exprs.solution++
		for i, c := range cols {
			row[i] = x.row[c]
		}
		return w.add(row...)
	})
	if err != nil {
		return err
	}
	return w.flush()
}

func (r *Result) use(k ResultKind) error {
	if r.Kind != k {
		return fmt.Errorf("the answer is of another form")
	}
	if r.used {
		return fmt.Errorf("the answer was read already")
	}
	r.used = true
	return nil
}

// triples runs a CONSTRUCT or DESCRIBE and calls fn with the terms of several
// triples at once; the strings are valid until fn returns.
func (r *Result) triples(fn func(terms []string) error) error {
	if err := r.use(Graph); err != nil {
		return err
	}
	w := r.x.handOut(3, fn)
	w.free = r.q.form == formConstruct && len(r.q.orderBy) == 0 && r.q.plainCopy()
	give := func(s, p, o id) error { return w.add(s, p, o) }
	var err error
	if r.q.form == formDescribe {
		err = r.x.describe(r.q, give)
	} else {
		err = r.x.construct(r.q, give)
	}
	if err != nil {
		return err
	}
	return w.flush()
}

// errStopped ends an evaluation whose reader has had enough.
var errStopped = &stopSign{}

// Rows streams the solutions, one pass; an unbound variable is "". The slice is
// valid until the next step. The sequence ends after the first error.
func (r *Result) Rows() iter.Seq2[[]rdfres.Term, error] {
	return func(yield func([]rdfres.Term, error) bool) {
		row := make([]rdfres.Term, len(r.Vars))
		err := r.rows(func(terms []string) error {
			if len(row) == 0 {
				if !yield(row, nil) {
					return errStopped
				}
				return nil
			}
			for i := 0; i < len(terms); i += len(row) {
				for k := range row {
					row[k] = rdfres.Term(terms[i+k])
				}
				if !yield(row, nil) {
					return errStopped
				}
			}
			r.keep() // the reader may keep the terms
			return nil
		})
		if err != nil && err != error(errStopped) {
			yield(nil, fmt.Errorf("query: %w", err))
		}
	}
}

// Triples streams the triples of a Graph, one pass. A CONSTRUCT of very many triples may give a
// triple more than once, unless it is a plain copy.
func (r *Result) Triples() iter.Seq2[rdfres.Triple, error] {
	return func(yield func(rdfres.Triple, error) bool) {
		err := r.triples(func(terms []string) error {
			for i := 0; i < len(terms); i += 3 {
				if !yield(rdfres.Triple{S: rdfres.Term(terms[i]), P: rdfres.Term(terms[i+1]), O: rdfres.Term(terms[i+2])}, nil) {
					return errStopped
				}
			}
			r.keep()
			return nil
		})
		if err != nil && err != error(errStopped) {
			yield(rdfres.Triple{}, fmt.Errorf("query: %w", err))
		}
	}
}

// rememberedTriples is how many triples a CONSTRUCT remembers to leave out doubles.
const rememberedTriples = 1 << 20

// construct instantiates the template (section 16.2).
func (x *exec) construct(q *query, give func(s, p, o id) error) error {
	type position struct {
		slot int
		id   id
	}
	tmpl := make([][3]position, len(q.construct.triples))
	for i, t := range q.construct.triples {
		for k, p := range [3]pterm{t.s, t.p, t.o} {
			tmpl[i][k].slot = p.slot
			if p.isVar() {
				continue
			}
			n, err := x.idOf(p.term)
			if err != nil {
				return err
			}
			tmpl[i][k].id = n
		}
	}
	var seen *rowSet
	if !q.plainCopy() {
		seen = newRowSet(3)
	}
	key := make([]id, 3)
	return x.runSelect(q, func() error {
		x.exprs.solution++
		for _, b := range q.construct.blanks {
			x.exprs.fresh++
			x.row[b] = idLocal | idFresh | id(x.exprs.fresh)<<2 | idBlank
		}
		defer func() {
			for _, b := range q.construct.blanks {
				x.row[b] = 0
			}
		}()
		for i := range tmpl {
			for k := range key {
				p := &tmpl[i][k]
				key[k] = p.id
				if p.slot >= 0 {
					key[k] = x.row[p.slot]
				}
			}
			if key[0] == 0 || key[0].kind() == idLiteral || key[1].kind() != idIRI || key[2] == 0 {
				continue
			}
			if seen != nil {
				if !seen.add(key) {
					continue
				}
				if seen.rows > rememberedTriples {
					seen = newRowSet(3)
				}
			}
			if err := give(key[0], key[1], key[2]); err != nil {
				return err
			}
		}
		return nil
	})
}

// plainCopy tells whether the query is CONSTRUCT { ?s ?p ?o } of one pattern ?s ?p ?o, so no triple
// comes twice.
func (q *query) plainCopy() bool {
	j, ok := q.where.(*joinNode)
	if !ok || len(j.parts) != 1 || len(q.construct.triples) != 1 || len(q.construct.blanks) > 0 {
		return false
	}
	if g, ok := j.parts[0].(*graphNode); ok && !g.g.isVar() {
		if j, ok = g.in.(*joinNode); !ok || len(j.parts) != 1 {
			return false
		}
	}
	t, ok := j.parts[0].(*tripleNode)
	return ok && *t == q.construct.triples[0]
}

// describe gives the concise bounded description of each resource: its triples and, recursively,
// those of the blank nodes among their objects.
func (x *exec) describe(q *query, give func(s, p, o id) error) error {
	var todo []id
	seen := map[id]struct{}{}
	add := func(n id) error {
		if n == 0 || n.isLocal() || n.kind() == idLiteral {
			return nil
		}
		if _, ok := seen[n]; ok {
			return nil
		}
		seen[n] = struct{}{}
		todo = append(todo, n)
		return x.meter.hold(1, 48)
	}
	vars := false
	for _, t := range q.describe {
		if t.isVar() {
			vars = true
			continue
		}
		n, err := lookup(x.v, t.term)
		if err != nil {
			return err
		}
		if err := add(n); err != nil {
			return err
		}
	}
	if vars {
		err := x.runSelect(q, func() error {
			for _, t := range q.describe {
				if t.isVar() {
					if err := add(x.row[t.slot]); err != nil {
						return err
					}
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	for len(todo) > 0 {
		n := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		pat := quad{posS: n}
		err := x.match(&pat, func(t *quad) error {
			if t[posO].kind() == idBlank {
				if err := add(t[posO]); err != nil {
					return err
				}
			}
			return give(t[posS], t[posP], t[posO])
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// keep lets the reader keep the terms: the next ones get room of their own.
func (r *Result) keep() {
	r.x.terms.arena = nil
}
