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

// compare compares the records with the folder. What is missing or otherwise is
// fetched again, what nobody owns is removed, when it is to be repaired.
func (of representations) compare(ctx context.Context, c *mirrorCompare) error {
	d := of.d
	snap := d.mem.Store.Snapshot(ctx)
	defer snap.Close()
	n := int64(0)
	for loc, rec := range d.mem.Ledger.Records(ctx, snap) {
		if rec.Err != nil {
			return rec.Err
		}
		if n++; n%256 == 0 {
			d.opt.Progress("files", n, 0)
		}
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		if rec.Normal.IsZero() && rec.Has(ledger.FlagUnselected) {
			continue
		}
		if err := c.file(ctx, loc, rec.Record); err != nil {
			return err
		}
	}
	return c.strangers(ctx)
}

// file tells of a file that is not as recorded, and has it fetched again.
func (c *mirrorCompare) file(ctx context.Context, loc ledger.Hash, rec *ledger.Record) error {
	none, why, err := c.d.stand.Files.Differs(ctx, rec)
	if err != nil || why == "" {
		return err
	}
	rank := byte(rankOtherFile)
	if none {
		rank = rankNoFile
	}
	needed := !rec.Has(ledger.FlagKept) // else the source does not have it any more
	if needed && c.alone {
		why += onlySource
	}
	if err := c.event(loc, rank, event{Entity: rec.Entity, Location: rec.Loc, Detail: why}); err != nil {
		return err
	}
	if !c.fix || !needed || c.alone {
		return nil
	}
	c.refetch++
	return c.forget(ctx, loc, rec, "a file is not as recorded")
}

// onlySource ends what is told of a resource that cannot be put right without the source.
const onlySource = "; only the source can give it again, and it cannot be asked"

// strangers finds files without a resource.
func (c *mirrorCompare) strangers(ctx context.Context) error {
	d := c.d
	var extra []string
	for name, err := range d.stand.Files.All(ctx) {
		if err != nil {
			return err
		}
		owner, ok, err := d.stand.Files.Names(nil).Recorded(ctx, name)
		if err == nil && ok { // the record of a path beside a store may come first
			var rec *ledger.Record
			rec, err = d.mem.Ledger.Of(owner.Dest).Record(ctx, owner.Loc)
			ok = rec != nil
		}
		if err != nil {
			return err
		}
		if !ok {
			extra = append(extra, name)
		}
	}
	slices.Sort(extra)
	for _, name := range extra {
		if err := c.event(ledger.HashOf("entity\x00"+name), rankNoSubject, event{Entity: name, Detail: "the folder has a file that no resource owns"}); err != nil {
			return err
		}
		c.strays++
		if c.fix && !c.spare {
			if err := d.stand.Files.Remove(name); err != nil {
				return keep.MirrorError(err)
			}
		}
	}
	return nil
}
