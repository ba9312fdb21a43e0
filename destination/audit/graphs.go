package audit

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/destination/sink"
	"github.com/rsbridge/rsbridge/internal/extsort"
	"github.com/rsbridge/rsbridge/internal/kv"
)

// graphs compares the graphs of ours by the mirror with the records. Those without a
// record are kept as ghosts for the rest of the comparison. With Fix a lacking ownership
// is written into the mirror, and that of somebody else's graph goes.
func (c *Comparison) graphs(ctx context.Context) error {
	m := c.Mirror
	c.ghosts = 0
	if !m.Owns() {
		return nil
	}
	sorter, err := extsort.New(c.Config.TempDir, c.Config.MemoryBytes/4)
	if err != nil {
		return err
	}
	defer sorter.Close()
	err = m.EachOwned(ctx, func(graph, mark string) error {
		h := ledger.HashOf(graph)
		whose := byte('o')
		if mark == m.Mark {
			whose = 'm'
		}
		return sorter.Add(h[:], append([]byte{whose}, graph...))
	})
	if err != nil {
		return err
	}
	snap := c.Store.Snapshot(ctx)
	defer snap.Close()
	ghosts := c.Store.Batch()
	defer ghosts.Close()
	prefix := ledger.Key(ledger.KindGhost, c.Dest)
	ghosts.DeleteRange(prefix, kv.PrefixEnd(prefix))
	p := &sink.Batch{}
	flush := func(least int) error {
		if !c.Fix || len(p.OwnGraphs)+len(p.FreeGraphs) < least {
			return nil
		}
		err := c.WritePlan(ctx, p)
		p = &sink.Batch{}
		return err
	}
	nextOwned, stopOwned := iter.Pull2(sorter.Sort())
	defer stopOwned()
	nextRec, stopRec := iter.Pull2(ledger.GraphRecords(ctx, snap, c.Space))
	defer stopRec()
	o, oerr, ook := nextOwned()
	r, rerr, rok := nextRec()
	for ook || rok {
		if err := errors.Join(oerr, rerr, ctx.Err()); err != nil {
			return err
		}
		var h ledger.Hash
		if ook {
			h = ledger.Hash(o.Key)
		}
		if rok && (!ook || string(r.Hash[:]) < string(h[:])) {
			h = r.Hash
		}
		mine, others, name := false, false, ""
		for ook && oerr == nil && ledger.Hash(o.Key) == h {
			if o.Value[0] == 'm' {
				mine = true
			} else {
				others = true
			}
			name = string(o.Value[1:])
			o, oerr, ook = nextOwned()
		}
		recorded, ours := false, false
		if rok && r.Hash == h {
			recorded, ours = true, r.Dest == c.Dest
			name = r.Graph
			r, rerr, rok = nextRec()
		}
		single, err := c.SingleOf(ctx, name)
		if err != nil {
			return err
		}
		switch {
		case ours && !mine:
			if c.Fix && m.CanOwn(name) {
				p.OwnGraphs = append(p.OwnGraphs, name)
			}
		case mine && !recorded && !others && !sink.IsOwnGraph(name) && single == "" && sink.CheckIRI("<"+name+">") == nil:
			c.ghosts++
			ghosts.Set(ledger.Key(ledger.KindGhost, c.Dest, h), []byte(name))
			if ghosts.Size() > 4<<20 {
				if err := ghosts.Commit(ctx, false); err != nil {
					return err
				}
			}
		case mine && !ours:
			p.FreeGraphs = append(p.FreeGraphs, name)
		}
		if err := flush(1000); err != nil {
			return err
		}
	}
	if err := flush(1); err != nil {
		return err
	}
	return ghosts.Commit(ctx, false)
}

// ghost tells whether a graph is owned in the mirror and no record knows it.
func (c *Comparison) ghost(ctx context.Context, graph string) (bool, error) {
	if c.ghosts == 0 || graph == "" {
		return false, nil
	}
	_, err := c.Store.Get(ctx, ledger.Key(ledger.KindGhost, c.Dest, ledger.HashOf(graph)))
	if errors.Is(err, kv.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// dropGhosts removes the graphs without a record, and forgets them.
func (c *Comparison) dropGhosts(ctx context.Context) error {
	if c.ghosts == 0 {
		return nil
	}
	prefix := ledger.Key(ledger.KindGhost, c.Dest)
	if c.Fix {
		snap := c.Store.Snapshot(ctx)
		defer snap.Close()
		p := &sink.Batch{}
		flush := func() error {
			c.Log.Info("mirror: removing graphs that no resource has", "graphs", len(p.DropGraphs))
			err := c.WritePlan(ctx, p)
			c.Found.Fixed += int64(len(p.DropGraphs))
			c.Found.Dropped += int64(len(p.DropGraphs))
			p = &sink.Batch{}
			return err
		}
		for pair, err := range snap.Scan(ctx, prefix, kv.PrefixEnd(prefix)) {
			if err == nil {
				p.DropGraphs = append(p.DropGraphs, string(pair.Value))
				if len(p.DropGraphs) >= 200 {
					err = flush()
				}
			}
			if err != nil {
				return err
			}
		}
		if len(p.DropGraphs) > 0 {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	b := c.Store.Batch()
	defer b.Close()
	b.DeleteRange(prefix, kv.PrefixEnd(prefix))
	return b.Commit(ctx, false)
}

// Graphs compares the names of the graphs alone, and removes those without a resource.
func (c *Comparison) Graphs(ctx context.Context) error {
	if !c.Mirror.Owns() {
		return nil
	}
	c.SpaceLock.Lock()
	defer c.SpaceLock.Unlock()
	if err := c.graphs(ctx); err != nil {
		return fmt.Errorf("read the graphs of the mirror: %w", err)
	}
	return c.dropGhosts(ctx)
}
