package apply

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/rsbridge/rsbridge/destination/keep"
	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/destination/sink"
	"github.com/rsbridge/rsbridge/internal/kv"
)

// A mirror without updates of its own is put whole, once, at the end of a run.

// PutWhole puts the single graph of a store without updates from the records of all its
// destinations.
func (pu *Putter) PutWhole(ctx context.Context) error {
	if !pu.PutsWhole() {
		return nil
	}
	foreign, err := pu.Mirror.Whole.Foreign()
	if err != nil || !pu.Meta.Ahead && !pu.Mirror.Whole.Absent() && !foreign {
		return err
	}
	if foreign {
		pu.Log.Warn("a dump that somebody has changed or replaced is written over", "dump", pu.At())
	}
	pu.SpaceLock.Lock()
	defer pu.SpaceLock.Unlock()
	var owned int64
	both, putting := errgroup.WithContext(ctx) // the end of putting waits for a disk or a store
	both.Go(func() error { return pu.putLines(putting) })
	countable := pu.Mirror.Countable()
	if countable {
		both.Go(func() (err error) {
			owned, err = pu.owned(putting)
			return err
		})
	}
	if err := both.Wait(); err != nil {
		return fmt.Errorf("put the graph: %w", err)
	}
	if countable {
		if held, err := pu.Mirror.Count(ctx); err != nil {
			pu.Log.Debug("what was put cannot be counted", "error", err)
		} else if held < owned {
			return fmt.Errorf("put the graph: %w: %d triples are not there", sink.ErrUnconfirmed, owned-held)
		}
	}
	if err := pu.CrashAt("written"); err != nil {
		return err
	}
	return pu.Checkpoint(ctx, pu.Meta.Stage, func(m *keep.Meta) { m.Ahead = false })
}

// putLines replaces the graph.
func (pu *Putter) putLines(ctx context.Context) error {
	metas, err := pu.Metas(ctx)
	if err != nil {
		return err
	}
	var authorities []string
	for _, name := range slices.Sorted(maps.Keys(metas)) {
		if m := metas[name]; m.Space == pu.Space {
			authorities = append(authorities, m.Authority)
		}
	}
	return pu.Mirror.Whole.Replace(ctx, authorities, func(put sink.PutPart) error { return pu.eachWhole(ctx, put) })
}

// partBytes are about those of the lines of a part.
const partBytes = 64 << 10

// eachWhole hands out the single graph, with its blank nodes, whole resources at a time. They
// are read beside put.
func (pu *Putter) eachWhole(ctx context.Context, put sink.PutPart) error {
	type part struct {
		authority string
		lines     []byte
	}
	ready, spent := make(chan part, 2), make(chan []byte, 4)
	both, ctx := errgroup.WithContext(ctx)
	both.Go(func() error {
		defer close(ready)
		return pu.readWhole(ctx, func(authority string, lines []byte) (empty []byte, err error) {
			select {
			case ready <- part{authority, lines}:
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
			select {
			case empty = <-spent:
			default:
			}
			return empty, nil
		})
	})
	both.Go(func() error {
		for p := range ready {
			if err := put(p.authority, p.lines); err != nil {
				return err
			}
			spent <- p.lines[:0] // there are no more than it has room for
		}
		return nil
	})
	return both.Wait()
}

// readWhole gives the lines away, for a buffer to read on into.
func (pu *Putter) readWhole(ctx context.Context, give func(authority string, lines []byte) (empty []byte, err error)) error {
	snap := pu.Store.Snapshot(ctx)
	defer snap.Close()
	var lines, one []byte
	for m, err := range ledger.All(ctx, snap) {
		if err != nil {
			return err
		}
		if m.Space != pu.Space {
			continue
		}
		prefix := ledger.Key(ledger.KindBody, m.Dest)
		for body, err := range snap.Scan(ctx, prefix, kv.PrefixEnd(prefix)) {
			if err == nil && ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			if err == nil {
				one, err = ledger.UnpackInto(one, body.Value)
			}
			if lines = append(lines, one...); err == nil && len(lines) >= partBytes {
				lines, err = give(m.Authority, lines)
			}
			if err != nil {
				return err
			}
		}
		if len(lines) > 0 {
			if lines, err = give(m.Authority, lines); err != nil {
				return err
			}
		}
	}
	return nil
}

// Missing is how many triples the graph of the mirror has less than the records
// of all destinations that write into it say; 0 where it cannot be counted.
func (pu *Putter) Missing(ctx context.Context) (int64, error) {
	if pu.Mirror.Layout.PerEntity || !pu.Mirror.Countable() {
		return 0, nil
	}
	var held, owned int64
	both, ctx := errgroup.WithContext(ctx) // the one takes the store as long as the other us
	both.Go(func() (err error) {
		held, err = pu.Mirror.Count(ctx)
		return err
	})
	both.Go(func() (err error) {
		owned, err = pu.owned(ctx)
		return err
	})
	err := both.Wait()
	return max(0, owned-held), err
}

// owned is how many triples the records say that the graph has.
func (pu *Putter) owned(ctx context.Context) (n int64, err error) {
	snap := pu.Store.Snapshot(ctx)
	defer snap.Close()
	for g, err := range pu.Groups(ctx, snap) {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return 0, err
		}
		n += int64(len(g.Owned) / 16)
	}
	return n, nil
}
