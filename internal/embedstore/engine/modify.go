package engine

import (
	"context"
	"fmt"
	"strings"

	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/tggo/goRDFlib/sparql"
)

// Modify evaluates the WHERE of one DELETE/INSERT or DELETE WHERE and gives what
// is to be deleted and then inserted; nothing is written. Labels of new blank
// nodes (they begin with "rsbnew") mean nothing beyond the answer. WITH and USING
// are given as the dataset, and then not passed over for the templates: WITH is
// refused.
func Modify(ctx context.Context, data Data, text string, o Options) (del, ins []rdfres.Quad, err error) {
	e, err := newEvaluation(ctx, data, text, o)
	if err != nil {
		return nil, nil, fmt.Errorf("engine: update: %w", err)
	}
	defer e.cancel()
	defer e.recover(&err)
	if del, ins, err = e.modify(text); err != nil {
		return nil, nil, fmt.Errorf("engine: update: %w", err)
	}
	return del, ins, nil
}

func (e *evaluation) modify(text string) (del, ins []rdfres.Quad, err error) {
	u, err := sparql.ParseUpdate(text)
	if err != nil {
		return nil, nil, err
	}
	if len(u.Operations) != 1 {
		return nil, nil, refuse("%d operations in one update: each must see what the one before has written", len(u.Operations))
	}
	n := &normalizer{e: e, prefixes: u.Prefixes, base: u.BaseURI}
	if n.base == "" {
		n.base = e.o.Base
	}
	var where sparql.Pattern
	var d, i template
	switch op := u.Operations[0].(type) {
	case *sparql.DeleteWhereOp:
		for _, q := range op.Quads {
			var p sparql.Pattern = &sparql.BGP{Triples: q.Triples}
			if q.Graph != "" {
				p = &sparql.GraphPattern{Name: graphToken(q.Graph), Pattern: p}
			}
			if where == nil {
				where = p
			} else {
				where = &sparql.JoinPattern{Left: where, Right: p}
			}
		}
		err = n.quads(&d, op.Quads)
	case *sparql.ModifyOp:
		if op.With != "" {
			return nil, nil, refuse("WITH")
		}
		where = op.Where
		if err = n.quads(&d, op.Delete); err == nil {
			err = n.quads(&i, op.Insert)
		}
	default:
		return nil, nil, refuse("an update other than DELETE/INSERT ... WHERE")
	}
	if err != nil {
		return nil, nil, err
	}
	both := template{quads: append(append([][4]string(nil), d.quads...), i.quads...)}
	for _, q := range d.quads {
		for _, x := range q {
			if strings.HasPrefix(x, "?_bnode") {
				return nil, nil, refuse("a blank node in a DELETE template")
			}
		}
	}
	s, err := e.solve(n, &sparql.ParsedQuery{Type: "SELECT", Variables: both.vars(), Where: where, Limit: -1})
	if err != nil {
		return nil, nil, err
	}
	collect := func(t template, out *[]rdfres.Quad) {
		seen := map[rdfres.Quad]bool{}
		t.each(s, func(q rdfres.Quad) {
			if !seen[q] {
				seen[q] = true
				e.spend(1)
				*out = append(*out, q)
			}
		})
	}
	collect(d, &del)
	collect(i, &ins)
	return del, ins, nil
}

// graphToken is the name of a graph as the parser of patterns has it.
func graphToken(g string) string {
	if isVar(g) || strings.HasPrefix(g, "<") {
		return g
	}
	return "<" + g + ">"
}

func (n *normalizer) quads(t *template, qs []sparql.QuadPattern) error {
	for _, q := range qs {
		graph := ""
		if q.Graph != "" {
			var err error
			if graph, err = n.position(graphToken(q.Graph)); err != nil {
				return err
			}
		}
		for _, x := range q.Triples {
			if x.PredicatePath != nil {
				return refuse("a path in a template")
			}
			if err := n.template(t, [3]string{x.Subject, x.Predicate, x.Object}, graph); err != nil {
				return err
			}
		}
	}
	return nil
}
