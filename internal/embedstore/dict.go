package embedstore

import (
	"encoding/binary"

	"github.com/cockroachdb/pebble/v2"
)

// dropTermsFrom removes the terms from number next on: a write put them into
// the dictionary and then failed or was killed before it was committed.
func (s *Store) dropTermsFrom(next uint64) error {
	b := s.db.NewBatch()
	defer func() {
		if b != nil {
			b.Close()
		}
	}()
	n := 0
	for _, space := range [...]byte{spaceTerm, spaceIRI} {
		err := eachTermFrom(pebbleView{s.db}, space, next, func(_ id, term []byte) error {
			k := hashKey(hashTerm(string(term)))
			b.Delete(k[:], nil)
			n++
			if b.Len() < 1<<20 {
				return nil
			}
			full := b
			b = s.db.NewBatch()
			return s.apply(full, pebble.NoSync)
		})
		if err != nil {
			return err
		}
	}
	if n == 0 {
		return nil
	}
	// The terms go after their hashes, so a kill in between repeats the work.
	for _, space := range [...]byte{spaceTerm, spaceIRI} {
		b.DeleteRange(appendID([]byte{space}, id(next)<<2), []byte{space + 1}, nil)
	}
	s.log.Info("removed terms of a write that was not finished", "terms", n)
	last := b
	b = nil
	return s.apply(last, pebble.Sync)
}

// eachTermFrom calls fn for the terms of a space from a number on.
func eachTermFrom(v view, space byte, number uint64, fn func(i id, term []byte) error) error {
	it, err := v.iter(space)
	if err != nil {
		return err
	}
	defer it.Close()
	c := termCursor{cursor: it}
	for err = c.seek(appendID([]byte{space}, id(number)<<2)); err == nil && c.at != 0; err = c.next() {
		if err := fn(c.at, c.term); err != nil {
			return err
		}
	}
	return err
}

func putNext(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }
