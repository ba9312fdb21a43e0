package kvtest

import (
	"context"
	"errors"

	"github.com/rsbridge/rsbridge/internal/kv"
)

// ErrFull is the answer of a Full to a refused commit.
var ErrFull = errors.New("no space left on device")

// Full is a store on a disk with little room. It is not for concurrent use.
type Full struct {
	kv.Store
	Left int // commits still taken
	Open int // snapshots not yet closed
}

// Snapshot counts each snapshot it gives.
func (s *Full) Snapshot(ctx context.Context) kv.Snapshot {
	s.Open++
	return &countedSnapshot{s.Store.Snapshot(ctx), s}
}

// Batch is one with a Commit of limited number.
func (s *Full) Batch() kv.Batch { return &fullBatch{s.Store.Batch(), s} }

type countedSnapshot struct {
	kv.Snapshot
	s *Full
}

func (c *countedSnapshot) Close() error {
	c.s.Open--
	return c.Snapshot.Close()
}

type fullBatch struct {
	kv.Batch
	s *Full
}

func (b *fullBatch) Commit(ctx context.Context, sync bool) error {
	if b.s.Left == 0 {
		return ErrFull
	}
	b.s.Left--
	return b.Batch.Commit(ctx, sync)
}
