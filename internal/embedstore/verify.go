package embedstore

import (
	"context"
	"fmt"

	"github.com/rsbridge/rsbridge/internal/kv/guardfs"
)

// Verify reads the whole store: every block has a checksum, every index the same
// triples, every graph as many as it counts, and every term of a triple its text. It
// returns how many triples there are.
func (s *Store) Verify(ctx context.Context) (triples int64, err error) {
	triples, err = s.verify(ctx)
	if err != nil {
		err = fmt.Errorf("verify store %s: %w", s.dir, err)
	}
	return triples, err
}

func (s *Store) verify(ctx context.Context) (int64, error) {
	snap, err := s.Snapshot()
	if err != nil {
		return 0, err
	}
	defer snap.Close()
	terms := newTermReader(snap.v, nil)
	defer terms.close()
	var sums [len(orders)]uint64 // of hashes of the triples: the order does not matter
	var counts [len(orders)]int64
	graphs := map[id]int64{}
	for i := range orders {
		var wrong error
		err := scan(snap.v, nil, access{i, 0}, &quad{}, false, func(q *quad) bool {
			if counts[i]++; counts[i]&1023 == 0 && ctx.Err() != nil {
				wrong = context.Cause(ctx)
			}
			sums[i] += mix(q)
			if i > 0 {
				return wrong == nil
			}
			graphs[q[posG]]++
			for _, n := range q {
				if _, err := terms.term(n); err != nil {
					wrong = err
				}
			}
			return wrong == nil
		})
		if err == nil {
			err = wrong
		}
		if err != nil {
			return 0, err
		}
		if counts[i] != counts[0] || sums[i] != sums[0] {
			return 0, guardfs.Damage(fmt.Errorf("index %d holds %d triples, and not the %d of index 0", i, counts[i], counts[0]))
		}
	}
	var wrong error
	err = graphCounts(snap.v, func(g id, n int64) bool {
		if graphs[g] != n {
			wrong = guardfs.Damage(fmt.Errorf("graph %d holds %d triples, and counts %d", uint64(g), graphs[g], n))
		}
		delete(graphs, g)
		return wrong == nil
	})
	if err == nil {
		err = wrong
	}
	if err == nil && len(graphs) > 0 {
		err = guardfs.Damage(fmt.Errorf("%d graphs are not counted", len(graphs)))
	}
	return counts[0], err
}

// mix is a hash of a quad.
func mix(q *quad) (h uint64) {
	for _, n := range q {
		h = (h ^ uint64(n)) * 0x9e3779b97f4a7c15
		h ^= h >> 29
	}
	return h
}
