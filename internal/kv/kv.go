// Package kv is the ordered, transactional key space in which the other
// packages keep their records.
//
// A [Store] holds keys in bytewise order. Writes are collected in a [Batch] and
// become visible together; a [Snapshot] is one fixed moment. [Prefix] cuts a
// store into key spaces of its own that do not see each other; [Join] lets one
// batch write into several of them, so that records of different owners change
// in one transaction.
//
// pebblekv is the embedded implementation, pgkv the one in PostgreSQL, memkv the one in memory for tests;
// kvtest is the suite that each implementation passes. What the records mean is
// the business of their owners.
package kv

import (
	"context"
	"errors"
	"fmt"
	"iter"
)

// ErrNotFound comes from Get when there is no such key.
var ErrNotFound = errors.New("key not found")

// ErrClosed comes from every use of a store or batch after Close.
var ErrClosed = errors.New("store is closed")

// ErrLocked comes from opening a store while another process, or another part of
// this one, has open. The error that wraps it names the holder.
var ErrLocked = errors.New("held by another process")

// ErrTakenOver comes from every commit after another process got the right to write.
var ErrTakenOver = errors.New("another process has taken over the state")

// ErrLost comes from every commit after the state has lost commits that it had confirmed, as a database does in
// a failover to a copy that lags behind.
var ErrLost = errors.New("the state has lost commits that it had confirmed")

// ErrUnsynced comes from every commit after a database was restarted, and has lost commits without sync. Nothing that
// was confirmed as durable is lost. The store is to be opened again (Settler).
var ErrUnsynced = errors.New("the database was restarted, and lost commits that were not synced: the state must be opened again")

// ErrNewer comes from opening records written by a newer version; nothing
// has been changed then.
var ErrNewer = errors.New("written by a newer version of rsbridge")

// ErrNotBegun comes from a commit under an ended context: it wrote nothing. The
// error has the cause of the context in it too.
var ErrNotBegun = errors.New("nothing was written")

// NotBegun is the error of a commit under an ended context, nil under a lasting one.
func NotBegun(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrNotBegun, context.Cause(ctx))
}

// Pair is a key and its value.
type Pair struct{ Key, Value []byte }

// Reader reads one consistent state. Under an ended context each reading fails
// with its cause.
type Reader interface {
	// Get returns a copy of the value, or ErrNotFound.
	Get(ctx context.Context, key []byte) ([]byte, error)
	// Scan yields the pairs with lo <= key < hi in key order, hi nil: no upper
	// bound. The slices are valid until the next step only: copy them to keep them.
	// Writes after the first step are not seen. The sequence ends after
	// the first error; the end of ctx is one, at the next step.
	Scan(ctx context.Context, lo, hi []byte) iter.Seq2[Pair, error]
	// ScanReverse is Scan from the highest key down.
	ScanReverse(ctx context.Context, lo, hi []byte) iter.Seq2[Pair, error]
}

// Snapshot is a Reader of a fixed moment. Close it: an open one keeps deleted
// records on disk. Safe for concurrent use until it is closed.
type Snapshot interface {
	Reader
	Close() error
}

// Batch collects writes that become visible together. Later writes of a batch
// win over earlier ones. Keys and values are copied. It is held in memory: a
// caller with much to write commits about every four megabytes.
type Batch interface {
	Set(key, value []byte)
	Delete(key []byte)
	// DeleteRange deletes the keys with lo <= key < hi, hi nil: no upper bound.
	DeleteRange(lo, hi []byte)
	// Grow makes room for about so many bytes in an empty batch.
	Grow(bytes int)
	// Size is about how many bytes the batch holds.
	Size() int
	// Commit makes the writes visible, all or none; with sync they are on disk
	// when it returns, and so is everything that was committed before. The batch
	// is empty afterwards and can be used again. Under an ended context
	// nothing is written (ErrNotBegun); a commit once begun goes to its end whatever
	// its context does. After any other error of a commit
	// nothing is known about its writes until the store is opened again: all of
	// them are there or none.
	Commit(ctx context.Context, sync bool) error
	// Close drops what was not committed.
	Close() error
}

// Store is an ordered key space. Keys are compared bytewise and are not empty.
// Safe for concurrent use; each Batch and iterator belongs to one goroutine.
type Store interface {
	Reader
	// Snapshot is the present moment. ctx is for taking it; each reading has its own.
	Snapshot(ctx context.Context) Snapshot
	Batch() Batch
	Close() error
}

// Loader is a Store with a way for much at once, faster than batches.
type Loader interface {
	// Load begins a load. Nothing of it is seen before its Commit.
	Load() Load
}

// Load writes much in order, in memory that does not grow with it. It is
// for keys with no other writer at the same time.
type Load interface {
	// Run begins a run of pairs with ascending keys. The ranges of two runs of a load,
	// from the first key to the last, may not overlap; what the store has there
	// already may, and is replaced. Each run belongs to one goroutine; several may
	// be written at the same time. Key and value are copied.
	Run() Run
	// Commit makes all pairs visible together, durable like a commit with sync. All
	// writing of runs has ended then; an error of one of them is an error here. The
	// context is treated as by a Commit of a Batch. After any other error nothing is known about the pairs until the store is opened again:
	// all of them are there or none.
	Commit(ctx context.Context) error
	// Close drops what was not committed.
	Close() error
}

// Run is one run of a Load.
type Run interface {
	// Set writes the next pair.
	Set(key, value []byte) error
}
