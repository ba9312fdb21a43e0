package embedstore

import (
	"iter"
	"sync"

	"github.com/cockroachdb/pebble/v2"
	"github.com/rsbridge/rsbridge/rdfres"
)

// Pattern selects quads; "" in S, P or O is anything.
type Pattern struct {
	S, P, O  rdfres.Term
	G        rdfres.Term // "" is the default graph
	AnyGraph bool        // G is ignored: all graphs, the default graph among them
}

// Snapshot is the store at one moment. Safe for concurrent use. Close it: it
// keeps Close of the store waiting and the space of deleted data occupied.
type Snapshot struct {
	s    *Store
	snap *pebble.Snapshot
	v    view
	once sync.Once
}

// Snapshot gives the state of now.
func (s *Store) Snapshot() (*Snapshot, error) {
	if err := s.begin(); err != nil {
		return nil, err
	}
	snap := s.db.NewSnapshot()
	return &Snapshot{s: s, snap: snap, v: pebbleView{snap}}, nil
}

// Close gives the snapshot back. Idempotent.
func (n *Snapshot) Close() (err error) {
	n.once.Do(func() {
		err = n.snap.Close()
		n.s.done()
	})
	return err
}

// pattern turns terms into ids; none is true when a term is unknown to the store.
func (n *Snapshot) pattern(p Pattern) (pat quad, none bool, err error) {
	g := p.G
	if p.AnyGraph {
		g = ""
	}
	for i, t := range [4]rdfres.Term{p.S, p.P, p.O, g} {
		if t == "" {
			continue
		}
		if pat[i], err = lookup(n.v, inOneCase(string(t))); err != nil {
			return pat, false, err
		}
		if pat[i] == 0 {
			return pat, true, nil
		}
	}
	return pat, false, nil
}

func (n *Snapshot) scan(p Pattern, fn func(q *quad) bool) error {
	pat, none, err := n.pattern(p)
	if err != nil || none {
		return err
	}
	given := [4]bool{pat[0] != 0, pat[1] != 0, pat[2] != 0, !p.AnyGraph}
	small := false
	if !p.AnyGraph {
		c, err := graphCount(n.v, pat[posG])
		if err != nil || c == 0 {
			return err
		}
		small = c <= smallGraph
	}
	return scan(n.v, nil, chooseAccess(given, small), &pat, !p.AnyGraph, fn)
}

// Match streams the matching quads, in the order of an index.
func (n *Snapshot) Match(p Pattern) iter.Seq2[rdfres.Quad, error] {
	return func(yield func(rdfres.Quad, error) bool) {
		r := newTermReader(n.v, nil)
		defer r.close()
		stopped := false
		rows := r.walk(4, func(terms []string) error {
			for i := 0; i < len(terms) && !stopped; i += 4 {
				q := rdfres.Quad{Triple: rdfres.Triple{S: rdfres.Term(terms[i]), P: rdfres.Term(terms[i+1]), O: rdfres.Term(terms[i+2])}, G: rdfres.Term(terms[i+3])}
				stopped = !yield(q, nil)
			}
			// The caller may keep these terms: the next ones get room of their own.
			r.arena = nil
			return nil
		})
		var ferr error
		err := n.scan(p, func(q *quad) bool {
			ferr = rows.add(q[:]...)
			return ferr == nil && !stopped && n.s.quit.Err() == nil
		})
		if err == nil {
			err = ferr
		}
		if err == nil && !stopped && n.s.quit.Err() != nil {
			err = ErrClosed
		}
		if err == nil && !stopped {
			err = rows.flush()
		}
		if err != nil && !stopped {
			yield(rdfres.Quad{}, err)
		}
	}
}

// Count is how many quads match.
func (n *Snapshot) Count(p Pattern) (int64, error) {
	if p.S == "" && p.P == "" && p.O == "" {
		if p.AnyGraph {
			var total int64
			err := graphCounts(n.v, func(_ id, c int64) bool { total += c; return true })
			return total, err
		}
		pat, none, err := n.pattern(p)
		if err != nil || none {
			return 0, err
		}
		return graphCount(n.v, pat[posG])
	}
	var total int64
	err := n.scan(p, func(*quad) bool { total++; return true })
	return total, err
}
