package embedstore

import (
	"bytes"
	"cmp"
	"slices"
	"sort"

	"github.com/rsbridge/rsbridge/rdfres"
)

// memory is a view of triples in memory, its default graph; it belongs to one
// evaluation. It calls blank nodes by labels of its own.
type memory struct {
	terms  []string // by number, from 1 on; "" for a blank node
	ids    map[hash16]id
	spaces [2][]id // ids of literals, and of IRIs, as they stand in their spaces
	quads  [len(orders)][]quad
}

func newMemory(ts []rdfres.Triple) *memory {
	m := &memory{terms: []string{""}, ids: map[hash16]id{}, quads: [len(orders)][]quad{make([]quad, len(ts))}}
	known := map[rdfres.Term]id{}
	number := func(t rdfres.Term) id {
		t = rdfres.Term(inOneCase(string(t)))
		if i, ok := known[t]; ok {
			return i
		}
		i := id(len(m.terms))<<2 | kindOf(string(t))
		known[t] = i
		if i.kind() == idBlank {
			m.terms = append(m.terms, "")
			return i
		}
		m.terms = append(m.terms, string(t))
		m.ids[hashTerm(string(t))] = i
		space := termSpace(i) - spaceTerm
		m.spaces[space] = append(m.spaces[space], i)
		return i
	}
	for i, t := range ts {
		m.quads[0][i] = quad{number(t.S), number(t.P), number(t.O)}
	}
	m.sort(0)
	m.quads[0] = slices.Compact(m.quads[0])
	return m
}

// sort brings an index into its order.
func (m *memory) sort(index int) {
	o := &orders[index]
	slices.SortFunc(m.quads[index], func(a, b quad) int {
		return cmp.Or(cmp.Compare(a[o[0]], b[o[0]]), cmp.Compare(a[o[1]], b[o[1]]), cmp.Compare(a[o[2]], b[o[2]]), cmp.Compare(a[o[3]], b[o[3]]))
	})
}

func (m *memory) get(key []byte) ([]byte, bool, error) {
	switch key[0] {
	case spaceCount:
		if n := len(m.quads[0]); n > 0 && getID(key[1:]) == 0 {
			return putCount(int64(n)), true, nil
		}
	case spaceHash:
		if i := m.ids[hash16(key[1:])]; i != 0 {
			return appendID(nil, i), true, nil
		}
	}
	return nil, false, nil
}

func (m *memory) iter(space byte) (cursor, error) {
	c := &memoryCursor{}
	switch space {
	case spaceCount:
		if n := len(m.quads[0]); n > 0 {
			c.n = 1
			c.key = func([]byte, int) []byte { return countKey(0) }
			c.value = func(int) []byte { return putCount(int64(n)) }
		}
	case spaceTerm, spaceIRI:
		ids := m.spaces[space-spaceTerm]
		c.n = len(ids)
		c.key = func(dst []byte, i int) []byte { return appendID(append(dst, space), ids[i]) }
		c.value = func(i int) []byte { return []byte(m.terms[ids[i]>>2]) }
	case spaceSPOG, spacePOSG, spaceOSPG, spaceGSPO:
		index := int(space - spaceSPOG)
		if m.quads[index] == nil {
			m.quads[index] = slices.Clone(m.quads[0])
			m.sort(index)
		}
		quads := m.quads[index]
		c.n = len(quads)
		c.key = func(dst []byte, i int) []byte {
			var key [quadKeyLen]byte
			quadKey(&key, index, &quads[i])
			return append(dst, key[:]...)
		}
	}
	return c, nil
}

// memoryCursor walks n keys, made on demand.
type memoryCursor struct {
	n, at int
	key   func(dst []byte, i int) []byte
	value func(i int) []byte
	room  []byte
}

func (c *memoryCursor) SeekGE(key []byte) bool {
	c.at = sort.Search(c.n, func(i int) bool {
		c.room = c.key(c.room[:0], i)
		return bytes.Compare(c.room, key) >= 0
	})
	return c.Valid()
}

func (c *memoryCursor) First() bool {
	c.at = 0
	return c.Valid()
}

func (c *memoryCursor) Next() bool {
	c.at++
	return c.Valid()
}

func (c *memoryCursor) Valid() bool { return c.at < c.n }

func (c *memoryCursor) Key() []byte {
	c.room = c.key(c.room[:0], c.at)
	return c.room
}

func (c *memoryCursor) Value() []byte {
	if c.value == nil {
		return nil
	}
	return c.value(c.at)
}

func (c *memoryCursor) Error() error { return nil }
func (c *memoryCursor) Close() error { return nil }
