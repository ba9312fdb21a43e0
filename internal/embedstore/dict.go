package embedstore

import (
	"encoding/binary"

	"github.com/cockroachdb/pebble/v2"
)

// dropTermsFrom removes the terms from number next on: a write put them into
// the dictionary and then failed or was killed before it was committed.
func (s *Store) dropTermsFrom(next uint64) error {
	v := pebbleView{s.db}
	it, err := v.iter(spaceTerm)
	if err != nil {
		return err
	}
	defer it.Close()
	lo := termKey(id(next) << 2)
	b := s.db.NewBatch()
	defer func() {
		if b != nil {
			b.Close()
		}
	}()
	n := 0
	for ok := it.SeekGE(lo); ok; ok = it.Next() {
		k := hashKey(hashTerm(string(it.Value())))
		b.Delete(k[:], nil)
		n++
		if b.Len() > 1<<20 {
			full := b
			b = s.db.NewBatch()
			if err := s.apply(full, pebble.NoSync); err != nil {
				return err
			}
		}
	}
	if err := it.Error(); err != nil || n == 0 {
		return err
	}
	// The terms go after their hashes, so that a kill in between is repeated.
	b.DeleteRange(lo, []byte{spaceTerm + 1}, nil)
	s.log.Info("removed terms of a write that was not finished", "terms", n)
	last := b
	b = nil
	return s.apply(last, pebble.Sync)
}

func putNext(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }
