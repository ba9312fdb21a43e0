package destination

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/destination/sink"
	"github.com/rsbridge/rsbridge/internal/extsort"
	"github.com/rsbridge/rsbridge/internal/kv"
)

// A mirror without updates of its own is put whole, once, at the end of a run.

// putsWhole tells of a mirror replaced as a whole, at the end of a run.
func (d *Destination) putsWhole() bool { return d.mirror.whole != nil }

// putWhole puts the single graph of a store without updates from the records of all its
// destinations.
func (d *Destination) putWhole(ctx context.Context) error {
	if !d.putsWhole() || !d.meta.Ahead && !d.mirror.whole.Absent() {
		return nil
	}
	d.spaceL.Lock()
	defer d.spaceL.Unlock()
	var owned int64
	both, putting := errgroup.WithContext(ctx) // the end of putting waits for a disk or a store
	both.Go(func() error { return d.putLines(putting) })
	countable := d.mirror.Countable()
	if countable {
		both.Go(func() (err error) {
			owned, err = d.owned(putting)
			return err
		})
	}
	if err := both.Wait(); err != nil {
		return fmt.Errorf("put the graph: %w", err)
	}
	if countable {
		if held, err := d.mirror.Count(ctx); err != nil {
			d.log.Debug("what was put cannot be counted", "error", err)
		} else if held < owned {
			return fmt.Errorf("put the graph: %w: %d triples are not there", sink.ErrUnconfirmed, owned-held)
		}
	}
	if err := d.crashAt("written"); err != nil {
		return err
	}
	return d.checkpoint(ctx, d.meta.Stage, func(m *meta) { m.Ahead = false })
}

// putLines replaces the graph.
func (d *Destination) putLines(ctx context.Context) error {
	metas, err := d.metas(ctx)
	if err != nil {
		return err
	}
	var authorities []string
	for _, name := range slices.Sorted(maps.Keys(metas)) {
		if m := metas[name]; m.Space == d.space {
			authorities = append(authorities, m.Authority)
		}
	}
	return d.mirror.whole.Replace(ctx, authorities, func(put sink.PutPart) error { return d.eachWhole(ctx, put) })
}

// partBytes are about those of the lines of a part.
const partBytes = 64 << 10

// eachWhole hands out the single graph, with its blank nodes, whole resources at a time. They
// are read beside put.
func (d *Destination) eachWhole(ctx context.Context, put sink.PutPart) error {
	type part struct {
		authority string
		lines     []byte
	}
	ready, spent := make(chan part, 2), make(chan []byte, 4)
	both, ctx := errgroup.WithContext(ctx)
	both.Go(func() error {
		defer close(ready)
		return d.readWhole(ctx, func(authority string, lines []byte) (empty []byte, err error) {
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
func (d *Destination) readWhole(ctx context.Context, give func(authority string, lines []byte) (empty []byte, err error)) error {
	snap := d.store.Snapshot(ctx)
	defer snap.Close()
	var lines, one []byte
	for m, err := range ledger.All(ctx, snap) {
		if err != nil {
			return err
		}
		if m.Space != d.space {
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

// pull reads the keys of a sorter one by one.
func pull(s *extsort.Sorter) (next func() (ledger.Hash, bool, error), stop func()) {
	step, stop := iter.Pull2(s.Sort())
	return func() (h ledger.Hash, ok bool, err error) {
		rec, err, ok := step()
		if ok && err == nil {
			copy(h[:], rec.Key)
		}
		return h, ok, err
	}, stop
}
