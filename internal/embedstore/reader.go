package embedstore

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/rsbridge/rsbridge/internal/kv/guardfs"
)

// view is one state of the key space: a snapshot, or a snapshot under the
// changes of a transaction.
type view interface {
	// get returns a copy of the value; ok is false when there is no such key.
	get(key []byte) (value []byte, ok bool, err error)
	// iter walks the keys of one space (first byte). Close it.
	iter(space byte) (cursor, error)
}

// cursor walks keys upwards.
type cursor interface {
	SeekGE(key []byte) bool
	First() bool
	Next() bool
	Valid() bool
	Key() []byte
	Value() []byte
	Error() error
	Close() error
}

// pebbleView is a view of any reader of Pebble's.
type pebbleView struct{ r pebble.Reader }

func (v pebbleView) get(key []byte) ([]byte, bool, error) {
	val, c, err := v.r.Get(key)
	if err != nil {
		if errors.Is(err, pebble.ErrNotFound) {
			return nil, false, nil
		}
		return nil, false, fmt.Errorf("read the store: %w", guardfs.ReadError(err))
	}
	out := append([]byte(nil), val...)
	return out, true, c.Close()
}

func (v pebbleView) iter(space byte) (cursor, error) {
	it, err := v.r.NewIter(&pebble.IterOptions{LowerBound: []byte{space}, UpperBound: []byte{space + 1}})
	if err != nil {
		return nil, fmt.Errorf("read the store: %w", guardfs.ReadError(err))
	}
	return pebbleCursor{it}, nil
}

type pebbleCursor struct{ *pebble.Iterator }

func (c pebbleCursor) Error() error { return guardfs.ReadError(c.Iterator.Error()) }

// graphCount is the number of triples of a graph.
func graphCount(v view, g id) (int64, error) {
	val, ok, err := v.get(countKey(g))
	if err != nil || !ok {
		return 0, err
	}
	return parseCount(val)
}

func parseCount(val []byte) (int64, error) {
	if len(val) != 8 {
		return 0, guardfs.Damage(fmt.Errorf("a count of %d bytes", len(val)))
	}
	var n int64
	for _, b := range val {
		n = n<<8 | int64(b)
	}
	return n, nil
}

// graphCounts calls fn for each graph with triples, the default graph first.
func graphCounts(v view, fn func(g id, n int64) bool) error {
	it, err := v.iter(spaceCount)
	if err != nil {
		return err
	}
	defer it.Close()
	for ok := it.First(); ok; ok = it.Next() {
		n, err := parseCount(it.Value())
		if err != nil {
			return err
		}
		if !fn(getID(it.Key()[1:]), n) {
			break
		}
	}
	return it.Error()
}

// lookup is the id of a term, 0 when the store does not know it.
func lookup(v view, term string) (id, error) {
	if kindOf(term) == idBlank {
		i, _ := parseBlank(term)
		return i, nil
	}
	k := hashKey(hashTerm(term))
	val, ok, err := v.get(k[:])
	if err != nil || !ok {
		return 0, err
	}
	return getID(val), nil
}

// access is how a pattern is answered: an index, and how many of its leading
// positions are given.
type access struct {
	index  int
	prefix int
}

// smallGraph is up to how many triples a graph is rather walked than filtered
// out of an index over all graphs.
const smallGraph = 512

// chooseAccess picks the index for a pattern. given tells the known positions; small means that the
// graph is known to be small.
func chooseAccess(given [4]bool, small bool) access {
	s, p, o, g := given[posS], given[posP], given[posO], given[posG]
	switch {
	case g && (s || small || !p && !o):
		switch { // 3: g s p o
		case s && p && o:
			return access{3, 4}
		case s && o && !p && !small:
			return access{2, 2}
		case s && p:
			return access{3, 3}
		case s:
			return access{3, 2}
		}
		return access{3, 1}
	case s && o && !p:
		return access{2, 2}
	case s && p && o:
		return access{0, 3}
	case s && p:
		return access{0, 2}
	case s:
		return access{0, 1}
	case p && o:
		return access{1, 2}
	case p:
		return access{1, 1}
	case o:
		return access{2, 1}
	}
	return access{0, 0}
}

// scan calls fn for each quad equal to pat, where 0 is anything, except that pat[posG] counts only
// with oneGraph. A cur that is not nil is a cursor over the space of a's index.
func scan(v view, cur cursor, a access, pat *quad, oneGraph bool, fn func(q *quad) bool) error {
	if cur == nil {
		c, err := v.iter(spaceSPOG + byte(a.index))
		if err != nil {
			return err
		}
		defer c.Close()
		cur = c
	}
	o := &orders[a.index]
	var prefix [quadKeyLen]byte
	prefix[0] = spaceSPOG + byte(a.index)
	n := 1
	for k := range a.prefix {
		putID(prefix[n:], pat[o[k]])
		n += idBytes
	}
	// Positions beyond the prefix are compared.
	var check [4]int
	nc := 0
	for k := a.prefix; k < 4; k++ {
		if pos := o[k]; pos == posG && oneGraph || pos != posG && pat[pos] != 0 {
			check[nc] = pos
			nc++
		}
	}
	var q quad
next:
	for ok := cur.SeekGE(prefix[:n]); ok; ok = cur.Next() {
		key := cur.Key()
		if len(key) != quadKeyLen || !bytes.Equal(key[:n], prefix[:n]) {
			break
		}
		decodeQuad(key, a.index, &q)
		for _, pos := range check[:nc] {
			if q[pos] != pat[pos] {
				continue next
			}
		}
		if !fn(&q) {
			return nil
		}
	}
	return cur.Error()
}

// scanNamed calls fn for each quad of a named graph. The default graph, perhaps the largest, stands
// before them.
func scanNamed(cur cursor, fn func(q *quad) bool) error {
	var q quad
	for ok := cur.SeekGE(appendID([]byte{spaceGSPO}, 1)); ok; ok = cur.Next() {
		if decodeQuad(cur.Key(), 3, &q); !fn(&q) {
			return nil
		}
	}
	return cur.Error()
}
