package pebblekv

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/internal/kv/guardfs"
)

// maxBatch is the size at which a batch is refused: Pebble holds it in memory and panics at
// four gigabytes.
const maxBatch = 1 << 30

// afterAll is greater than every key of ours: keys are far shorter.
var afterAll = bytes.Repeat([]byte{0xff}, 4096)

type batch struct {
	s   *Store
	b   *pebble.Batch
	err error // of a write; told by Commit
}

// Batch collects writes.
func (s *Store) Batch() kv.Batch { return &batch{s: s, b: s.db.NewBatch()} }

func (b *batch) Set(key, value []byte) {
	if b.room(len(key) + len(value)) {
		b.note(b.b.Set(key, value, nil))
	}
}

func (b *batch) Delete(key []byte) {
	if b.room(len(key)) {
		b.note(b.b.Delete(key, nil))
	}
}

func (b *batch) DeleteRange(lo, hi []byte) {
	if hi == nil {
		hi = afterAll
	}
	if bytes.Compare(lo, hi) < 0 && b.room(len(lo)+len(hi)) {
		b.note(b.b.DeleteRange(lo, hi, nil))
	}
}

func (b *batch) room(n int) bool {
	if b.b == nil {
		b.note(kv.ErrClosed)
	} else if b.b.Len()+n > maxBatch {
		b.note(fmt.Errorf("batch is larger than %d bytes", maxBatch))
	}
	return b.err == nil
}

func (b *batch) note(err error) {
	if b.err == nil {
		b.err = err
	}
}

// Grow spares the copies a growing batch makes of itself.
func (b *batch) Grow(bytes int) {
	if b.b == nil || !b.b.Empty() {
		return
	}
	b.note(b.b.Close())
	b.b = b.s.db.NewBatchWithSize(min(bytes, maxBatch))
}

func (b *batch) Size() int {
	if b.b == nil || b.b.Empty() {
		return 0
	}
	return b.b.Len()
}

func (b *batch) Commit(ctx context.Context, sync bool) error {
	if err := b.commit(ctx, sync); err != nil {
		return fmt.Errorf("write state %s: %w", b.s.dir, err)
	}
	return nil
}

func (b *batch) commit(ctx context.Context, sync bool) error {
	err := errors.Join(b.err, b.s.writable(), kv.NotBegun(ctx))
	if err == nil {
		err = b.s.guard.Room(b.s.db, b.s.dir, b.b.Len())
	}
	if err != nil {
		if b.b != nil {
			b.b.Reset()
		}
		b.err = nil
		return err
	}
	if sync && b.b.Empty() {
		// Pebble passes over an empty batch, and the commits before
		// without sync would stay only in memory.
		b.note(b.b.LogData([]byte{0}, nil))
	}
	opts := pebble.NoSync
	if sync {
		opts = pebble.Sync
	}
	pb := b.b
	_, err = b.s.guard.Do(func() error { return b.s.db.Apply(pb, opts) })
	if err == nil {
		err = b.s.guard.Failure()
	}
	if err != nil {
		if !guardfs.IsFull(err) {
			b.s.guard.Fail(err)
		}
		b.b = b.s.db.NewBatch() // the old one may still be in use
		return err
	}
	b.b.Reset()
	return nil
}

func (b *batch) Close() error {
	if b.b == nil {
		return nil
	}
	err := b.b.Close()
	b.b = nil
	return err
}
