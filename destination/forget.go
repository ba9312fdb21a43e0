package destination

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/rsbridge/rsbridge/destination/apply"
	"github.com/rsbridge/rsbridge/destination/keep"
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
	Records   int64  `json:"records"`        // in the state
	Triples   int64  `json:"triples"`        // in the mirror that this destination alone owns
	Lines     int64  `json:"lines"`          // triples in urn:rsbridge:state of the mirror
	Files     int64  `json:"files"`          // on disk
	Gone      string `json:"gone,omitempty"` // places with nothing left to remove
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
	m := d.mem.SnapshotMeta()
	rep, err = d.forgettable(ctx)
	rep.Name, rep.DryRun, rep.KeepData, rep.Store, rep.Graph, rep.Resources = d.cfg.Name, o.DryRun, o.KeepData, d.stand.At(), d.stand.GraphName(), m.Resources
	if err != nil || m.Stage == ledger.None {
		if err == nil && !o.DryRun {
			err = d.dropRecords(ctx)
		}
		return rep, err
	}
	if !o.KeepData {
		if err := d.stand.Replaced("move it away, or forget with --keep-data"); err != nil {
			return rep, err
		}
	}
	if rep.Lines, err = d.mirror.Lines(ctx); err == nil {
		err = d.countGone(ctx, &rep)
	}
	if err != nil {
		return rep, fmt.Errorf("nothing was changed: %w", err)
	}
	if o.KeepData {
		other, err := d.mem.Neighbour(ctx)
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
	if rep.Gone != "" && rep.Triples+rep.Files+rep.Lines == 0 {
		return rep, d.forgetRest(ctx, o)
	}
	if err := d.prober.ready(ctx, true); err != nil {
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
	if err := d.mem.CrashAt("lines"); err != nil {
		return rep, err
	}
	return rep, d.forgetRest(ctx, o)
}

// forgetRest ends what the mirror itself has no part in.
func (d *Destination) forgetRest(ctx context.Context, o ForgetOptions) error {
	if d.stand.Beside != nil {
		if err := d.stand.Beside.Forget(ctx, !o.KeepData); err != nil {
			return err
		}
	}
	return d.dropRecords(ctx)
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
	lim := defaultLimits()
	d := &Destination{cfg: &cfg, lim: &lim}
	d.assemble(&keep.Memory{Store: store, Ledger: ledger.New(store, log, k.dest, k.space), Dest: k.dest, Space: k.space, Log: log}, "")
	d.useMirror(sink.NewFull(&sink.Place{}, nil))
	if err := d.applier.Open(); err != nil {
		return ForgetReport{}, err
	}
	rep, err := d.forgettable(ctx)
	rep.Name, rep.DryRun, rep.KeepData, rep.Store, rep.Graph, rep.Resources = name, o.DryRun, o.KeepData, k.At(), k.GraphName(), k.Resources
	rep.Remains = fmt.Sprintf("%s of %s, and lines in its %s", k.GraphName(), k.At(), sink.StateGraph)
	rep.Triples, rep.Files = 0, 0
	switch {
	case err != nil || o.DryRun:
	case !o.KeepData:
		err = fmt.Errorf("no store of the configuration has the address %s, so the data of %s there cannot be removed; nothing was changed: name the store again, or forget with --keep-data", k.At(), name)
	default:
		err = d.dropRecords(ctx)
	}
	if err != nil {
		return rep, fmt.Errorf("forget %s: %w", name, err)
	}
	return rep, nil
}

// forgettable counts what there is of the destination.
func (d *Destination) forgettable(ctx context.Context) (rep ForgetReport, err error) {
	e, err := d.mem.Ledger.Extent(ctx)
	rep.Records, rep.Files, rep.Triples = e.Records, d.applier.CountFiles(&e), e.Triples
	return rep, err
}

// countGone counts nothing of a place that was emptied or removed.
func (d *Destination) countGone(ctx context.Context, rep *ForgetReport) error {
	gone, err := d.stand.Gone(ctx, d.mirror)
	if n := rep.Triples + rep.Files; err == nil && gone && n > 0 {
		if rep.Gone, rep.Triples = d.stand.At(), 0; d.mirror.Files != nil {
			rep.Files = 0
		}
	}
	if err != nil || d.stand.Beside == nil || rep.Files == 0 {
		return err
	}
	if gone, err = d.stand.Gone(ctx, d.stand.Beside.Full); gone {
		rep.Files, rep.Gone = 0, strings.TrimPrefix(rep.Gone+" and "+d.cfg.Files, " and ")
	}
	return err
}

// removeOwned removes every resource from the mirror. It says what may remain there.
func (d *Destination) removeOwned(ctx context.Context, m *keep.Meta) (remains string, err error) {
	if err := d.stand.SameMirror(ctx, m); err != nil {
		return "", err
	}
	if err := d.applier.Redo(ctx); err != nil {
		return "", fmt.Errorf("finish the batch that was under way: %w", err)
	}
	if err := d.mem.Ledger.LookForFaults(ctx); err != nil {
		return "", err
	}
	if err := d.mem.Ledger.LookForLeaving(ctx); err != nil {
		return "", err
	}
	if err := d.mem.SaveMeta(ctx, func(m *keep.Meta) {
		m.CompareMirror, m.CompareSource, m.InSync = keep.BeingForgotten, keep.BeingForgotten, false
	}); err != nil {
		return "", err
	}
	if err := d.removeResources(ctx); err != nil {
		return "", err
	}
	if err := d.putter.PutWhole(ctx); err != nil {
		return "", err
	}
	for _, rec := range d.mem.Ledger.Records(ctx, d.mem.Store) {
		if rec.Err == nil {
			rec.Err = fmt.Errorf("the mirror refuses to remove %s and perhaps others", clip.Middle(rec.Loc))
		}
		return "", rec.Err
	}
	if after := d.mem.SnapshotMeta().CompareMirror; after != keep.BeingForgotten {
		return "triples of resources whose records cannot be read: " + after, nil
	}
	return "", nil
}

func (d *Destination) removeResources(ctx context.Context) error {
	snap := d.mem.Store.Snapshot(ctx)
	defer snap.Close()
	var c apply.Counts
	b := d.applier.Batch(ctx, &c, false)
	defer b.Wait()
	total, done := d.mem.SnapshotMeta().Resources, int64(0)
	for loc, rec := range d.mem.Ledger.Records(ctx, snap) {
		if rec.Err != nil {
			return rec.Err
		}
		if err := b.Add(ctx, &apply.Op{Loc: loc}); err != nil {
			return err
		}
		if done++; done%1000 == 0 {
			d.opt.Progress("remove", done, total)
		}
	}
	return b.Settle(ctx)
}

// dropRecords removes the records of the destination, and those of its space if nobody else
// writes there.
func (d *Destination) dropRecords(ctx context.Context) error {
	defer ledger.LockNumbers()()
	return d.mem.Ledger.Forget(ctx, d.cfg.Name)
}
