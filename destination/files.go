package destination

import (
	"context"
	"errors"
	"slices"

	"github.com/rsbridge/rsbridge/destination/keep"
	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/destination/sink"
	"github.com/rsbridge/rsbridge/rdfres"
)

// Files are written first, then the checkpoint, then the records: a run that was
// interrupted between them fetches and writes the same again. By the intent the next one
// knows which files may be otherwise than recorded, since the source may have gone on.

// representations are the content of a folder.
type representations struct{ d *Destination }

func newRepresentations(d *Destination) (content, error) {
	switch {
	case d.cfg.Map != "":
		return nil, errors.New("map is for stores and dumps; a folder has the representations as they are")
	case d.cfg.Keep == "versions":
		return nil, errors.New("keep: versions is for stores and dumps; a folder has one file for each resource")
	}
	d.cfg.Linked = nil // each file has the bytes of its own address
	return representations{d}, nil
}

func (representations) void(_ *ledger.Record, empty bool) bool { return empty }

func (representations) ahead(context.Context, []*op, func(ledger.Hash) bool) *worked { return nil }

func (representations) askAgain(rec *ledger.Record) {
	if !rec.Normal.IsZero() {
		rec.Forget()
		rec.Normal = rdfres.Digest{}
	}
}

func (representations) countFiles(e *ledger.Extent) int64 { return e.Files + e.Resources }

func (of representations) apply(ctx context.Context, _ *inFlight, ops []*op, _ *worked, c *counts, _ bool, change func(*keep.Meta)) error {
	d := of.d
	b := d.mem.Store.Batch()
	defer b.Close()
	var n counts
	var resources, unselected int64
	written := false
	files := d.stand.Files.Begin(d.stand.Files.Names(b), len(ops))
	defer files.Close()
	named := map[ledger.Hash]bool{}
	for _, o := range ops {
		named[o.loc] = o.fault == nil && !o.settle // else nothing becomes of it
	}
	remove := func(loc ledger.Hash, moved bool) error {
		old, err := d.mem.Ledger.Record(ctx, loc)
		switch {
		case err != nil:
			return err
		case old == nil && !moved:
			n.unchanged++
			return nil
		case old == nil:
			return nil
		}
		if !old.Has(ledger.FlagKept) {
			resources--
		}
		unselected -= old.Unselected()
		switch {
		case moved:
			n.moved++
		case d.cfg.Keep != "deleted" || !old.Has(ledger.FlagKept):
			n.became(old, nil, false)
		}
		if d.cfg.Keep == "deleted" && !moved {
			old.Flags |= ledger.FlagKept
			d.mem.Ledger.PutRecord(b, loc, old)
			return nil
		}
		removed, err := files.Remove(ctx, old.Loc)
		if err != nil {
			return keep.MirrorError(err)
		}
		written = written || removed
		d.mem.Ledger.Drop(b, loc)
		return nil
	}
	leave := func(o *op) error { // former locations of its entity
		for _, loc := range o.replaces {
			if !named[loc] {
				named[loc] = true
				if err := remove(loc, o.rec != nil); err != nil {
					return err
				}
			}
		}
		return nil
	}
	if slices.ContainsFunc(ops, func(o *op) bool { return o.fault == nil && !o.settle }) {
		if err := d.mem.Ledger.Begin(ctx, 0, intentOf(ledger.OfFiles, ops)); err != nil {
			return err
		}
	}
	for _, o := range ops {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		if !d.applier.begin(ctx, b, o) {
			continue
		}
		if o.rec == nil {
			if err := remove(o.loc, false); err != nil {
				return err
			}
			if err := leave(o); err != nil {
				return err
			}
			continue
		}
		old, err := d.mem.Ledger.Record(ctx, o.loc)
		if err != nil {
			return err
		}
		if o.raw == nil && old != nil && o.rec.Normal.IsZero() && !o.rec.Has(ledger.FlagUnselected) { // as recorded
			o.rec.Normal = old.Normal
		}
		same := old != nil && old.Normal == o.rec.Normal
		if !same && old != nil && o.raw == nil { // not selected any more
			if err := remove(o.loc, true); err != nil {
				return err
			}
			n.moved--
			if !old.Has(ledger.FlagKept) {
				resources++
			}
			unselected += old.Unselected()
		} else if o.raw != nil && (!same || old.Has(ledger.FlagKept)) { // whatever became of the file meanwhile
			if err := files.Put(ctx, o.rec.Loc, o.raw, old == nil); err != nil {
				return keep.MirrorError(err)
			}
			written = true
		}
		if old != nil || len(o.replaces) == 0 {
			n.became(old, o.rec, same)
		}
		if old == nil || old.Has(ledger.FlagKept) {
			resources++
		}
		unselected += o.rec.Unselected() - old.Unselected()
		d.mem.Ledger.PutRecord(b, o.loc, o.rec)
		if err := leave(o); err != nil {
			return err
		}
	}
	if written {
		if err := files.Flush(); err != nil {
			return keep.MirrorError(err)
		}
		if err := d.mem.CrashAt("written"); err != nil {
			return err
		}
		next := d.mem.Meta
		d.mem.Wrote(&next)
		if change != nil {
			change(&next)
		}
		if err := d.mirror.Apply(ctx, &sink.Batch{}, d.stand.CheckpointOf(&next)); err != nil {
			return err
		}
		if err := d.mem.CrashAt("checkpoint"); err != nil {
			return err
		}
	}
	if err := d.mem.Done(ctx, 0, b, func(m *keep.Meta) {
		if written {
			d.mem.Wrote(m)
		}
		m.Resources += resources
		m.Unselected += unselected
		if change != nil {
			change(m)
		}
	}); err != nil {
		return err
	}
	c.add(n)
	return d.mem.CrashAt("recorded")
}

// redoFiles takes back what a batch that was interrupted may have written: files of what
// is not recorded go, and what is recorded is fetched again when the change is met that
// the cursor is still before.
func (ap *applier) redoFiles(ctx context.Context, slot byte, ops []*op) error {
	here := ap.planner.stand.Files != nil && ap.SnapshotMeta().Files == ap.cfg.Files // else the files of before stay
	b := ap.Store.Batch()
	defer b.Close()
	for _, o := range ops {
		for _, loc := range append(o.replaces, o.loc) {
			rec, err := ap.Ledger.Record(ctx, loc)
			switch {
			case err != nil:
				return err
			case rec != nil:
				ap.content.askAgain(rec)
				ap.Ledger.PutRecord(b, loc, rec)
			}
			if loc == o.loc && o.rec != nil && here {
				if err := ap.planner.stand.Files.Undo(ctx, b, o.rec.Loc, rec != nil); err != nil {
					return keep.MirrorError(err)
				}
			}
		}
	}
	return ap.Done(ctx, slot, b, nil)
}
