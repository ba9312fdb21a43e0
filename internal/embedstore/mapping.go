package embedstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rsbridge/rsbridge/rdfres"
)

// Mapping is a CONSTRUCT applied to graphs in memory, one at a time. Safe for concurrent use.
type Mapping struct {
	q      *query
	entity *valuesNode // of ?entity, before all else of the WHERE
	room   *Store      // without a database: an evaluation looks at its options only
}

// ParseMapping checks a CONSTRUCT of SPARQL 1.1. Its variable ?entity is bound to the IRI of the
// described entity, as by VALUES at the beginning of the WHERE. It cannot have FROM or SERVICE, nor
// functions with another result each time: NOW, RAND, UUID and STRUUID.
func ParseMapping(text string) (*Mapping, error) {
	m := &Mapping{room: &Store{opts: Options{Now: time.Now}}}
	var err error
	if m.q, m.entity, err = parseGiven(text, "entity"); err != nil {
		return nil, err
	}
	switch {
	case m.q.form != formConstruct:
		return nil, errors.New("it is no CONSTRUCT")
	case m.q.from.given:
		return nil, errors.New("it has FROM: a description has one graph")
	}
	_, _, err = m.Apply(context.Background(), "urn:example:entity", nil) // shows errors independent of the graph
	return m, err
}

// mappingBudget is the budget of one graph.
var mappingBudget = Budget{Time: time.Minute}.withDefaults()

// Apply gives the triples the CONSTRUCT makes of ts, sorted and without doubles. Blank nodes have
// labels of this call. noValue is the first expression without a value, as YEAR("soon"), for which
// a FILTER dropped a solution or a variable stayed unbound; an expression over an unbound variable
// is none.
func (m *Mapping) Apply(ctx context.Context, entity string, ts []rdfres.Triple) (made []rdfres.Triple, noValue string, err error) {
	iri := rdfres.NewIRI(entity)
	if err := rdfres.CheckIRI(string(iri)); err != nil {
		return nil, "", fmt.Errorf("mapping: %w", err)
	}
	x := m.room.newExec(ctx, newMemory(ts), m.q.slots, mappingBudget)
	defer x.close()
	x.exprs.base, x.exprs.tells = m.q.base, true
	about, err := x.idOf(string(iri))
	if err != nil {
		return nil, "", fmt.Errorf("mapping: %w", err)
	}
	x.values = map[*valuesNode]*valueRows{m.entity: {rows: [][]id{{about}}, by: map[id]int{about: 1}}}
	err = x.construct(m.q, func(s, p, o id) error {
		var t [3]string
		for i, n := range [3]id{s, p, o} {
			var err error
			if t[i], err = x.terms.term(n); err != nil {
				return err
			}
		}
		made = append(made, rdfres.Triple{S: rdfres.Term(t[0]), P: rdfres.Term(t[1]), O: rdfres.Term(t[2])})
		return x.meter.hold(1, 48)
	})
	var spent *BudgetError
	if errors.As(err, &spent) {
		return nil, "", fmt.Errorf("mapping: it takes more %s than one description may (%s)", spent.What, spent.Limit)
	}
	if err != nil {
		return nil, "", fmt.Errorf("mapping: %w", err)
	}
	return rdfres.SortUnique(made), x.exprs.noted, nil
}
