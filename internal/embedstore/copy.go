package embedstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/cockroachdb/pebble/v2"

	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/internal/kv/guardfs"
)

// Hold keeps writers waiting until release, so that snapshots of several stores are of one moment.
func (s *Store) Hold(ctx context.Context) (release func(), err error) {
	if err := s.beginWrite(ctx); err != nil {
		return nil, err
	}
	return s.endWrite, nil
}

// Records yields the whole content of the store in the order of its keys, for Restore.
func (n *Snapshot) Records(ctx context.Context) iter.Seq2[kv.Pair, error] {
	return func(yield func(kv.Pair, error) bool) {
		it, err := n.snap.NewIter(&pebble.IterOptions{})
		if err != nil {
			yield(kv.Pair{}, guardfs.ReadError(err))
			return
		}
		defer it.Close()
		for ok := it.First(); ok; ok = it.Next() {
			v, err := it.ValueAndErr()
			switch {
			case ctx.Err() != nil:
				err = context.Cause(ctx)
			case n.s.quit.Err() != nil:
				err = ErrClosed
			}
			if !yield(kv.Pair{Key: it.Key(), Value: v}, guardfs.ReadError(err)) || err != nil {
				return
			}
		}
		if err := it.Error(); err != nil {
			yield(kv.Pair{}, guardfs.ReadError(err))
		}
	}
}

// Restore makes a store in a new folder from the records of another one, and returns their number. After an
// error, or a kill, the store is empty.
func Restore(ctx context.Context, dir string, records iter.Seq2[kv.Pair, error]) (n int64, err error) {
	s, err := Open(dir, Options{Context: ctx})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	w := newTables(s)
	defer w.discard()
	for p, err := range records {
		if err == nil && bytes.Equal(p.Key, keyVersion) {
			err = versionFault(p.Value)
		}
		if err == nil {
			err = w.set(p.Key, p.Value)
		}
		if err != nil {
			return n, fmt.Errorf("restore store %s: %w", dir, err)
		}
		n++
	}
	if err = w.finish(); err == nil {
		err = w.ingest(ctx)
	}
	return n, err
}
