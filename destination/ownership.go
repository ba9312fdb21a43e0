package destination

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

// graphs compares the graphs that the mirror says are ours with the records.
// Those that no record knows are kept as ghosts for the rest of the comparison.
// With fix the ownership of those that the mirror does not say are ours is
// written, and that of those that are somebody else's goes.
func (c *mirrorCompare) graphs(ctx context.Context) error {
	d := c.d
	m := d.mirror
	c.ghosts = 0
	if !m.Owns() {
		return nil
	}
	sorter, err := extsort.New(d.cfg.TempDir, d.cfg.MemoryBytes/4)
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
	snap := d.mem.Store.Snapshot(ctx)
	defer snap.Close()
	ghosts := d.mem.Store.Batch()
	defer ghosts.Close()
	prefix := ledger.Key(ledger.KindGhost, d.mem.Dest)
	ghosts.DeleteRange(prefix, kv.PrefixEnd(prefix))
	p := &sink.Batch{}
	flush := func(least int) error {
		if !c.fix || len(p.OwnGraphs)+len(p.FreeGraphs) < least {
			return nil
		}
		err := d.stand.WritePlan(ctx, p)
		p = &sink.Batch{}
		return err
	}
	nextOwned, stopOwned := iter.Pull2(sorter.Sort())
	defer stopOwned()
	nextRec, stopRec := iter.Pull2(ledger.GraphRecords(ctx, snap, d.mem.Space))
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
			recorded, ours = true, r.Dest == d.mem.Dest
			name = r.Graph
			r, rerr, rok = nextRec()
		}
		single, err := d.stand.SingleOf(ctx, name)
		if err != nil {
			return err
		}
		switch {
		case ours && !mine:
			if c.fix && m.CanOwn(name) {
				p.OwnGraphs = append(p.OwnGraphs, name)
			}
		case mine && !recorded && !others && !sink.IsOwnGraph(name) && single == "" && sink.CheckIRI("<"+name+">") == nil:
			c.ghosts++
			ghosts.Set(ledger.Key(ledger.KindGhost, d.mem.Dest, h), []byte(name))
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
func (c *mirrorCompare) ghost(ctx context.Context, graph string) (bool, error) {
	if c.ghosts == 0 || graph == "" {
		return false, nil
	}
	_, err := c.d.mem.Store.Get(ctx, ledger.Key(ledger.KindGhost, c.d.mem.Dest, ledger.HashOf(graph)))
	if errors.Is(err, kv.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// dropGhosts removes the graphs that no record knows, and forgets them.
func (c *mirrorCompare) dropGhosts(ctx context.Context) error {
	d := c.d
	if c.ghosts == 0 {
		return nil
	}
	prefix := ledger.Key(ledger.KindGhost, d.mem.Dest)
	if c.fix {
		snap := d.mem.Store.Snapshot(ctx)
		defer snap.Close()
		p := &sink.Batch{}
		flush := func() error {
			d.mem.Log.Info("mirror: removing graphs that no resource has", "graphs", len(p.DropGraphs))
			err := d.stand.WritePlan(ctx, p)
			c.fixed += int64(len(p.DropGraphs))
			c.dropped += int64(len(p.DropGraphs))
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
	b := d.mem.Store.Batch()
	defer b.Close()
	b.DeleteRange(prefix, kv.PrefixEnd(prefix))
	return b.Commit(ctx, false)
}

// compareGraphs compares the names of the graphs alone, and removes those that
// no resource has.
func (r *run) compareGraphs(ctx context.Context) error {
	d := r.d
	if !d.mirror.Owns() {
		return nil
	}
	d.mem.SpaceLock.Lock()
	defer d.mem.SpaceLock.Unlock()
	c := &mirrorCompare{d: d, fix: true}
	if err := c.graphs(ctx); err != nil {
		return fmt.Errorf("read the graphs of the mirror: %w", err)
	}
	if err := c.dropGhosts(ctx); err != nil {
		return err
	}
	if c.dropped > 0 {
		r.why("%d graphs that no resource has were removed", c.dropped)
	}
	return nil
}
