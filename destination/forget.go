package destination

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/destination/sink"
	"github.com/rsbridge/rsbridge/internal/clip"
	"github.com/rsbridge/rsbridge/internal/kv"
)

// Forgetting removes from the mirror what the destination owns, then its lines in the state
// graph, then its records. Each step may be repeated, so an interrupted Forget is finished by
// the next one; if the destination comes back instead, everything is compared with the source.

// ForgetOptions of Forget.
type ForgetOptions struct {
	DryRun   bool `json:"dry_run,omitempty"`   // DryRun only counts
	KeepData bool `json:"keep_data,omitempty"` // KeepData leaves the data in the store; records and lines in urn:rsbridge:state go
}

// ForgetReport says what goes, or would go.
type ForgetReport struct {
	Name      string `json:"name"`
	DryRun    bool   `json:"dry_run"`
	KeepData  bool   `json:"keep_data"`
	Store     string `json:"store"` // address of the mirror
	Graph     string `json:"graph"`
	Resources int64  `json:"resources"`
	Records   int64  `json:"records"` // in the state
	Triples   int64  `json:"triples"` // in the mirror that this destination alone owns
	Lines     int64  `json:"lines"`   // triples in urn:rsbridge:state of the mirror
	Files     int64  `json:"files"`   // on disk
	// Remains says what stays in the mirror although it should have gone, "" for nothing.
	Remains string `json:"remains,omitempty"`
}

// Forget removes the destination: data, lines in the state graph, records. It must not be
// used afterwards.
func (d *Destination) Forget(ctx context.Context, o ForgetOptions) (ForgetReport, error) {
	rep, err := d.forgetAll(ctx, o)
	if err != nil {
		return rep, fmt.Errorf("forget %s: %w", d.cfg.Name, err)
	}
	return rep, nil
}

func (d *Destination) forgetAll(ctx context.Context, o ForgetOptions) (rep ForgetReport, err error) {
	m := d.mem.snapshotMeta()
	rep, err = d.forgettable(ctx)
	rep.Name, rep.DryRun, rep.KeepData, rep.Store, rep.Graph, rep.Resources = d.cfg.Name, o.DryRun, o.KeepData, d.stand.at(), d.stand.graphName(), m.Resources
	if err != nil || m.Stage == ledger.None {
		if err == nil && !o.DryRun {
			err = d.dropRecords(ctx)
		}
		return rep, err
	}
	if rep.Lines, err = d.mirror.Lines(ctx); err != nil {
		return rep, fmt.Errorf("nothing was changed: %w", err)
	}
	if o.KeepData {
		other, err := d.mem.neighbour(ctx)
		if err == nil && other != "" {
			err = fmt.Errorf("destination %s writes into the same graph, and would remove triples without an owner; nothing was changed: forget without --keep-data", other)
		}
		if err != nil {
			return rep, err
		}
		rep.Triples, rep.Files = 0, 0
	}
	if o.DryRun {
		return rep, nil
	}
	if err := d.prober.ready(ctx); err != nil {
		return rep, err
	}
	if !o.KeepData {
		if rep.Remains, err = d.removeOwned(ctx, &m); err != nil {
			return rep, err
		}
	}
	if err := d.mirror.Forget(ctx, !o.KeepData); err != nil {
		return rep, fmt.Errorf("remove the lines in %s: %w", sink.StateGraph, err)
	}
	if err := d.mem.crashAt("lines"); err != nil {
		return rep, err
	}
	if d.stand.beside != nil {
		if err := d.stand.beside.Forget(ctx, !o.KeepData); err != nil {
			return rep, err
		}
	}
	return rep, d.dropRecords(ctx)
}

// ForgetRecords is Forget where the store cannot be reached: without KeepData it refuses.
func ForgetRecords(ctx context.Context, store kv.Store, name string, o ForgetOptions) (ForgetReport, error) {
	k, err := KeptAs(ctx, store, name)
	if err == nil && k == nil {
		err = errors.New("there are no records of it")
	}
	if err != nil {
		return ForgetReport{}, fmt.Errorf("forget %s: %w", name, err)
	}
	cfg, log := k.Config(), slog.New(slog.DiscardHandler)
	d := &Destination{cfg: &cfg}
	d.assemble(&memory{store: store, led: ledger.New(store, log, k.dest, k.space), dest: k.dest, space: k.space, log: log}, "")
	d.useMirror(sink.NewFull(&sink.Place{}, nil))
	d.applier.content = descriptions{d}
	rep, err := d.forgettable(ctx)
	rep.Name, rep.DryRun, rep.KeepData, rep.Store, rep.Graph, rep.Resources = name, o.DryRun, o.KeepData, k.At(), k.GraphName(), k.Resources
	rep.Remains = fmt.Sprintf("%s of %s, and lines in its %s", k.GraphName(), k.At(), sink.StateGraph)
	rep.Triples, rep.Files = 0, 0
	switch {
	case err != nil || o.DryRun:
	case !o.KeepData:
		err = fmt.Errorf("no store of the configuration has the address %s, so graph %s cannot be removed; nothing was changed: name the store again, or forget with --keep-data", k.At(), k.GraphName())
	default:
		err = d.dropRecords(ctx)
	}
	if err != nil {
		return rep, fmt.Errorf("forget %s: %w", name, err)
	}
	return rep, nil
}

// beingForgotten is why a mirror is compared after a Forget that did not end.
const beingForgotten = "it was being forgotten"

// neighbour is another destination of this state that has written into the same graph, or
// per-entity graphs, "" for none.
func (mem *memory) neighbour(ctx context.Context) (string, error) {
	for k, err := range ledger.All(ctx, mem.store) {
		if err != nil {
			return "", err
		}
		if k.Space == mem.space && k.Dest != mem.dest && k.Stage != ledger.None {
			return k.Name, nil
		}
	}
	return "", nil
}

// forgettable counts what there is of the destination.
func (d *Destination) forgettable(ctx context.Context) (rep ForgetReport, err error) {
	e, err := d.mem.led.Extent(ctx)
	rep.Records, rep.Files, rep.Triples = e.Records, d.applier.content.countFiles(&e), e.Triples
	return rep, err
}

// removeOwned removes every resource from the mirror. It says what may remain there.
func (d *Destination) removeOwned(ctx context.Context, m *meta) (remains string, err error) {
	if err := d.stand.sameMirror(ctx, m); err != nil {
		return "", err
	}
	if err := d.applier.redo(ctx); err != nil {
		return "", fmt.Errorf("finish the batch that was under way: %w", err)
	}
	if err := d.mem.led.LookForFaults(ctx); err != nil {
		return "", err
	}
	if err := d.mem.led.LookForLeaving(ctx); err != nil {
		return "", err
	}
	if err := d.mem.saveMeta(ctx, func(m *meta) { m.CompareMirror, m.CompareSource, m.InSync = beingForgotten, beingForgotten, false }); err != nil {
		return "", err
	}
	if err := d.removeResources(ctx); err != nil {
		return "", err
	}
	if err := d.putter.putWhole(ctx); err != nil {
		return "", err
	}
	for _, rec := range d.mem.led.Records(ctx, d.mem.store) {
		if rec.Err == nil {
			rec.Err = fmt.Errorf("the mirror refuses to remove %s and perhaps others", clip.Middle(rec.Loc))
		}
		return "", rec.Err
	}
	if after := d.mem.snapshotMeta().CompareMirror; after != beingForgotten {
		return "triples of resources whose records cannot be read: " + after, nil
	}
	return "", nil
}

func (d *Destination) removeResources(ctx context.Context) error {
	snap := d.mem.store.Snapshot(ctx)
	defer snap.Close()
	var c counts
	b := d.batcher(ctx, &c, false)
	defer b.wait()
	total, done := d.mem.snapshotMeta().Resources, int64(0)
	for loc, rec := range d.mem.led.Records(ctx, snap) {
		if rec.Err != nil {
			return rec.Err
		}
		if err := b.add(ctx, &op{loc: loc}); err != nil {
			return err
		}
		if done++; done%1000 == 0 {
			d.opt.Progress("remove", done, total)
		}
	}
	return b.settle(ctx)
}

// sameMirror refuses a store that holds other things than this mirror, as a new one at the
// same address. A mirror without a checkpoint may be one that was almost forgotten.
func (stand *standing) sameMirror(ctx context.Context, m *meta) error {
	cp, err := stand.mirror.Checkpoint(ctx)
	if err != nil || cp != nil || m.CompareMirror == beingForgotten {
		return err
	}
	return stand.isTheMirror(ctx)
}

// dropRecords removes the records of the destination, and those of its space if nobody else
// writes there.
func (d *Destination) dropRecords(ctx context.Context) error {
	defer ledger.LockNumbers()()
	return d.mem.led.Forget(ctx, d.cfg.Name)
}
