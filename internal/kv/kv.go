// Package kv is the ordered, transactional key space in which the other
// packages keep their records.
package kv

import (
	"errors"
	"iter"
)

// ErrNotFound comes from Get when there is no such key.
var ErrNotFound = errors.New("key not found")

// Pair is a key and its value; both are the reader's to keep.
type Pair struct{ Key, Value []byte }

// Reader reads one consistent state.
type Reader interface {
	// Get returns a copy of the value, or ErrNotFound.
	Get(key []byte) ([]byte, error)
	// Scan yields the pairs with lo <= key < hi in key order, hi nil: no upper
	// bound. The slices are valid until the next step only.
	Scan(lo, hi []byte) iter.Seq2[Pair, error]
	// ScanReverse is Scan from the highest key down.
	ScanReverse(lo, hi []byte) iter.Seq2[Pair, error]
}

// Snapshot is a Reader of a fixed moment. Close it.
type Snapshot interface {
	Reader
	Close() error
}

// Batch collects writes that become visible together.
type Batch interface {
	Set(key, value []byte)
	Delete(key []byte)
	DeleteRange(lo, hi []byte)
	// Size is about how many bytes the batch holds.
	Size() int
	// Commit makes the writes visible, all or none; with sync they are on disk
	// when it returns. The batch is empty afterwards and can be used again.
	Commit(sync bool) error
	Close() error
}

// Store is an ordered key space. Keys are compared bytewise. Safe for
// concurrent use; each Batch and iterator belongs to one goroutine.
type Store interface {
	Reader
	Snapshot() Snapshot
	Batch() Batch
	Close() error
}

// Prefix is a view of the keys below prefix; the prefix is neither seen nor
// written by the caller.
func Prefix(s Store, prefix []byte) Store { panic("stub") }

// PrefixEnd is the smallest key greater than all keys with this prefix, nil if none.
func PrefixEnd(prefix []byte) []byte { panic("stub") }
