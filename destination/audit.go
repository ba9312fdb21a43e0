package destination

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/rsbridge/rsbridge/destination/apply"
	"github.com/rsbridge/rsbridge/destination/audit"
	"github.com/rsbridge/rsbridge/destination/feed"
	"github.com/rsbridge/rsbridge/destination/item"
	"github.com/rsbridge/rsbridge/destination/keep"
	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/destination/obtain"
	"github.com/rsbridge/rsbridge/destination/sink"
	"github.com/rsbridge/rsbridge/internal/kv"
)

// Audit compares the source's inventory with the records and, unless the depth is inventory, the records
// with the mirror's real triples; with the depth origin it fetches every resource again as well. Repair
// writes differing triples from the kept representations, removes extra ones, fetches resources changed at
// the source, and audits again: the report is of the second audit, Repaired of the differences gone since.
// An unreachable source ends an audit without anything else to compare. With the depth store the mirror is
// compared, and repaired, all the same, and the report says so. A mirror without Reader has depth inventory
// instead of store.
func (d *Destination) Audit(ctx context.Context, o AuditOptions) (keep.AuditReport, error) {
	rep, err := d.audit(ctx, o)
	err = errors.Join(err, d.mem.Ledger.KeepCount(ctx))
	d.obtains.Settle()
	d.src.Settle()
	d.applier.EndRun()
	d.repeats.Settle(d.mem.Log)
	if err != nil {
		return rep, fmt.Errorf("audit %s: %w", d.cfg.Name, err)
	}
	return rep, nil
}

func (d *Destination) audit(ctx context.Context, o AuditOptions) (keep.AuditReport, error) {
	start := d.opt.Now()
	rep := keep.AuditReport{Name: d.cfg.Name, Depth: cmp.Or(o.Depth, "store"), Time: start.UTC()}
	switch rep.Depth {
	case "inventory", "store", "origin":
	default:
		return rep, fmt.Errorf("depth %q: inventory, store or origin", o.Depth)
	}
	if rep.Depth == "store" && d.mirror.Files == nil && !d.mirror.Reads {
		rep.Depth = "inventory" // a queue cannot be read
	}
	d.fetch.Begin()
	if d.mem.SnapshotMeta().Stage == ledger.None {
		if err := d.stand.RefuseReplaced(); err != nil { // sync would refuse it too
			return rep, err
		}
		return rep, errors.New("nothing was mirrored yet: run sync first")
	}
	if err := d.prober.ready(ctx, o.Repair); err != nil {
		return rep, err
	}
	if err := d.applier.Redo(ctx); err != nil {
		return rep, fmt.Errorf("finish the batch that was under way: %w", err)
	}
	if err := d.mem.Ledger.LookForLeaving(ctx); err != nil {
		return rep, err
	}
	if err := d.mem.Ledger.LookForDoubts(ctx); err != nil {
		return rep, err
	}
	if err := d.mem.Ledger.LookForFaults(ctx); err != nil {
		return rep, err
	}
	offer, err := d.discover(ctx)
	return d.auditOf(offer, rep.Depth).Run(ctx, err, start, o.Repair)
}

// auditOf is an audit against the source's offer.
func (d *Destination) auditOf(o *feed.Offer, depth string) *audit.Audit {
	return &audit.Audit{Standing: d.stand, Engine: repairs{d, o}, Doubts: doubts{d.applier, d.obtains}, Feed: audit.Feed{Lists: d.src, Log: d.src}, Obtains: d.obtains, Offer: o, Depth: depth, Bounds: audit.Bounds{Named: d.lim.Named, Most: d.lim.diffCap}}
}

// doubts are the applier's, with the obtainer to ask again.
type doubts struct {
	*apply.Applier
	obtains *obtain.Obtainer
}

func (ds doubts) Confirm(ctx context.Context, snap kv.Reader, other func(it *item.Item, came *ledger.Record, err error) error) error {
	return ds.Applier.Confirm(ctx, snap, ds.obtains, other)
}

// repairs is the engine's part of an audit.
type repairs struct {
	d     *Destination
	offer *feed.Offer
}

func (e repairs) Unexplained(ctx context.Context, triples int64) (changed bool, err error) {
	return e.d.prober.unexplained(ctx, triples)
}

func (e repairs) PutWhole(ctx context.Context) error { return e.d.putter.PutWhole(ctx) }

// Repair fetches resources changed at the source. It is a run of its own, with the end of one.
func (e repairs) Repair(ctx context.Context) error {
	d := e.d
	r, began := &run{d: d, full: true, atOnce: true}, d.opt.Now()
	err := r.repair(ctx, e.offer)
	if err == nil {
		err = d.putter.PutWhole(ctx)
	}
	_, lost := r.ended(context.WithoutCancel(ctx), ending{began: began, err: err, stopped: ctx.Err() != nil})
	return errors.Join(err, lost)
}

func (r *run) repair(ctx context.Context, o *feed.Offer) (err error) {
	d := r.d
	if o.ChangeList == "" {
		if r.way.root, err = d.src.InventoryRoot(ctx, o); err != nil {
			return err
		}
	}
	if o.Listed() {
		v, err := d.src.ReadInventory(ctx, o, feed.Always)
		if err != nil {
			return err
		}
		if c := r.stands(); v.Stale(&c) {
			err = v.Close()
		} else {
			err = r.mend(ctx, o, v)
		}
		if err != nil {
			return err
		}
	}
	if err := r.increment(ctx, o, 0); err != nil {
		return err
	}
	if err := r.retry(ctx); err != nil {
		return err
	}
	if err := r.depart(ctx, d.mem.SnapshotMeta().IsPast()); err != nil {
		return err
	}
	return r.notePublished(ctx)
}

// compareMirror is the comparison of Sync if state and mirror do not stand at the same write. Files
// that the records do not know stay: only an audit was asked to remove them.
func (r *run) compareMirror(ctx context.Context) error {
	d := r.d
	c := d.comparison()
	c.Spare = true
	if err := c.Run(ctx); err != nil {
		return err
	}
	found := &c.Found
	if n := found.Fixed - found.Dropped; n > 0 {
		r.why("%d triples of the mirror were put right", n)
	}
	if found.Dropped > 0 {
		r.why("%d graphs that no resource has were removed", found.Dropped)
	}
	if found.Strays > 0 {
		r.why("files without a resource stay, %d: audit names them, and audit --repair removes them", found.Strays)
	}
	if found.Fixed > 0 && !d.mem.SnapshotMeta().Ahead { // a snapshot sink is written at the end
		again := d.comparison()
		again.Fix, again.Second = false, true
		if err := again.Run(ctx); err != nil {
			return err
		}
		if n := again.Found.Lacking; n > 0 { // writes confirmed again and again, and not done
			return fmt.Errorf("%w: %d resources lack triples that were just written", sink.ErrUnconfirmed, n)
		}
	}
	if found.Refetch > 0 {
		r.full = true
	}
	return d.stand.Checkpoint(ctx, d.mem.SnapshotMeta().Stage, func(m *keep.Meta) { m.CompareMirror, m.Damage = "", "" })
}

// comparison compares the mirror, and repairs it.
func (d *Destination) comparison() *audit.Comparison {
	return &audit.Comparison{Standing: d.stand, Doubts: doubts{d.applier, d.obtains}, Most: d.lim.diffCap, Fix: true}
}

// compareGraphs compares the names of the graphs alone, and removes those that
// no resource has.
func (r *run) compareGraphs(ctx context.Context) error {
	c := r.d.comparison()
	err := c.Graphs(ctx)
	if n := c.Found.Dropped; err == nil && n > 0 {
		r.why("%d graphs that no resource has were removed", n)
	}
	return err
}
