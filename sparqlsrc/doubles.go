package sparqlsrc

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/rsbridge/rsbridge/internal/sparql"
	"github.com/rsbridge/rsbridge/rdfres"
)

// For a count, a repeated triple makes up for a missing one: a proxy or a store repeating a
// part of its answer would make data vanish. So the number of different triples is held
// against the counts again, after the sort.

// maxDoubles bounds the examined doubles.
const maxDoubles = 100

// doubles are the repeated triples of a scan.
type doubles struct {
	n     int64
	lines []string // the first of them
}

func (d *doubles) add(line []byte) {
	if d.n++; len(d.lines) < maxDoubles {
		d.lines = append(d.lines, string(line))
	}
}

// twins tells a triple of the store, held twice or written like another, from a repeated part
// of an answer.
type twins struct {
	mu   sync.Mutex
	told map[rdfres.Triple]bool
}

// verify holds the number of different triples of a whole-graph scan against the store's
// counts: least is the smaller one of before and after.
func (s *Source) verify(ctx context.Context, sc *scope, distinct, least, slack int64, d *doubles) error {
	if d.n == 0 || sc.single() && !sc.union && distinct >= least {
		return nil
	}
	fail := func(more string) error {
		return fmt.Errorf("%w: %d triples came twice, the first is %q, and %s: a part of the answer was repeated and another was not sent (by a proxy?). Nothing was changed; scan again",
			ErrShort, d.n, clip([]byte(d.lines[0])), more)
	}
	if sc.single() && !sc.union {
		for _, line := range d.lines {
			ok, err := s.twins.isDouble(ctx, s, sc, tripleOf(line))
			if err != nil {
				return fmt.Errorf("look whether the store holds a triple twice: %w", err)
			}
			if !ok {
				return fail(fmt.Sprintf("only %d different ones where the store counts %d", distinct, least))
			}
		}
		s.log.Info("the store holds literals twice that are one here: without and with the datatype xsd:string, or different and written alike", "triples", d.n)
		return nil
	}
	// A triple may stand in several graphs: how many are there without doubles?
	n, err := s.client.Count(ctx, "SELECT (COUNT(*) AS ?n) WHERE { SELECT DISTINCT ?s ?p ?o WHERE { "+sc.all()+"} }")
	if err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		var ofStore *sparql.Error
		if !errors.As(err, &ofStore) {
			return err
		}
		s.log.Warn("the store does not count its different triples, so it is not known whether a part of its answer was repeated instead of another", "doubles", d.n, "err", err)
		return nil
	}
	if distinct >= n-slack {
		return nil
	}
	// The store may have grown since it was read.
	now, err := s.client.Count(ctx, "SELECT (COUNT(*) AS ?n) WHERE { "+sc.all()+"}")
	if err != nil {
		return fmt.Errorf("count after counting different triples: %w", err)
	}
	if slack = max(slack, now-least); distinct >= n-slack {
		return nil
	}
	twins := int64(0)
	for _, line := range d.lines {
		ok, err := s.twins.isDouble(ctx, s, sc, tripleOf(line))
		if err != nil {
			return fmt.Errorf("look whether the store holds a triple twice: %w", err)
		}
		if ok {
			twins++
		}
	}
	if distinct+twins >= n-slack || twins > 0 && d.n > int64(len(d.lines)) { // there may be more twins than were looked at
		return nil
	}
	return fail(fmt.Sprintf("only %d different ones where the store counts %d", distinct, n))
}

// isDouble tells whether the store itself gives a triple twice, and nothing is lost: by
// isTwin, or because it writes two literals alike (Virtuoso writes the xsd:double 1e400 as
// INF). A small answer shows the latter too.
func (w *twins) isDouble(ctx context.Context, s *Source, sc *scope, t rdfres.Triple) (bool, error) {
	if ok, err := w.isTwin(ctx, s, sc, t); ok || err != nil || t.O.Kind() != rdfres.KindLiteral {
		return ok, err
	}
	p, err := sparql.EscapeTerm(t.P)
	if err != nil {
		return false, nil
	}
	subject, vars, filter := "?s", "?s ?o", "FILTER(isBlank(?s) && isLiteral(?o)) "
	if t.S.Kind() == rdfres.KindIRI {
		if subject, err = sparql.EscapeTerm(t.S); err != nil {
			return false, nil
		}
		vars, filter = "?o", "FILTER(isLiteral(?o)) "
	}
	if !sc.single() || sc.union {
		return false, nil // there a triple may rightly come twice
	}
	pattern := " WHERE { " + sc.triple(subject, p, "?o") + filter + "}"
	n, err := s.client.Count(ctx, "SELECT (COUNT(*) AS ?n)"+pattern)
	if err != nil || n > maxAlike {
		return false, err
	}
	ok, err := w.repeats(ctx, s, "SELECT "+vars+pattern, t.O)
	if ok {
		w.tell(s, t)
	}
	return ok, err
}

// maxAlike bounds the answers read by isDouble.
const maxAlike = 100_000

// tell warns once of each literal.
func (w *twins) tell(s *Source, t rdfres.Triple) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.told[t] {
		return
	}
	if w.told == nil {
		w.told = map[rdfres.Triple]bool{}
	}
	w.told[t] = true
	s.log.Warn("the store holds different literals that it writes alike: they are one here", "subject", t.S, "predicate", t.P, "literal", string(clip([]byte(t.O))))
}

// isPlain tells a literal without language tag and datatype.
func isPlain(o rdfres.Term) bool { return o.Kind() == rdfres.KindLiteral && o[len(o)-1] == '"' }

// isTwin asks whether the store itself holds a triple twice: stores of RDF 1.0 (Virtuoso 7)
// tell "x" from "x"^^xsd:string, one literal in RDF 1.1.
func (w *twins) isTwin(ctx context.Context, s *Source, sc *scope, t rdfres.Triple) (bool, error) {
	if !isPlain(t.O) {
		return false, nil
	}
	p, err := sparql.EscapeTerm(t.P)
	if err != nil {
		return false, nil
	}
	lexical, _, datatype := t.O.Literal()
	subject, filter := "?s", "isBlank(?s)"
	if t.S.Kind() == rdfres.KindIRI {
		if subject, err = sparql.EscapeTerm(t.S); err != nil {
			return false, nil
		}
		filter = "isLiteral(?o)"
	}
	pattern := sc.triple(subject, p, "?o") + "FILTER(" + filter + " && isLiteral(?o) && STR(?o) = " + sparql.EscapeString(lexical) +
		" && LANG(?o) = \"\" && DATATYPE(?o) = <" + datatype + ">) "
	if subject != "?s" {
		n, err := s.client.Count(ctx, "SELECT (COUNT(*) AS ?n) WHERE { SELECT DISTINCT ?o WHERE { "+pattern+"} }")
		return n > 1, err
	}
	rows, err := s.client.Count(ctx, "SELECT (COUNT(*) AS ?n) WHERE { SELECT DISTINCT ?s ?o WHERE { "+pattern+"} }")
	if err != nil {
		return false, err
	}
	nodes, err := s.client.Count(ctx, "SELECT (COUNT(DISTINCT ?s) AS ?n) WHERE { "+pattern+"}")
	return rows > nodes, err
}
