package apply

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
type representations struct{ ap *Applier }

func newRepresentations(ap *Applier) (content, error) {
	switch {
	case ap.Config.Map != "":
		return nil, errors.New("map is for stores and dumps; a folder has the representations as they are")
	case ap.Config.Keep == "versions":
		return nil, errors.New("keep: versions is for stores and dumps; a folder has one file for each resource")
	}
	ap.Config.Linked = nil // each file has the bytes of its own address
	return representations{ap}, nil
}

func (representations) void(_ *ledger.Record, empty bool) bool { return empty }

func (representations) ahead(context.Context, []*Op, func(ledger.Hash) bool) *worked { return nil }

func (representations) askAgain(rec *ledger.Record) {
	if !rec.Normal.IsZero() {
		rec.Forget()
		rec.Normal = rdfres.Digest{}
	}
}

func (representations) countFiles(e *ledger.Extent) int64 { return e.Files + e.Resources }

func (of representations) apply(ctx context.Context, _ *inFlight, ops []*Op, _ *worked, c *Counts, _ bool, change func(*keep.Meta)) error {
	ap := of.ap
	b := ap.Store.Batch()
	defer b.Close()
	var n Counts
	var resources, unselected int64
	written := false
	files := ap.Files.Begin(ap.Files.Names(b), len(ops))
	defer files.Close()
	named := map[ledger.Hash]bool{}
	for _, o := range ops {
		named[o.Loc] = o.fault == nil && !o.Settle // else nothing becomes of it
	}
	remove := func(loc ledger.Hash, moved bool) error {
		old, err := ap.Ledger.Record(ctx, loc)
		switch {
		case err != nil:
			return err
		case old == nil && !moved:
			n.Unchanged++
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
			n.Moved++
		case ap.Config.Keep != "deleted" || !old.Has(ledger.FlagKept):
			n.Became(old, nil, false)
		}
		if ap.Config.Keep == "deleted" && !moved {
			old.Flags |= ledger.FlagKept
			ap.Ledger.PutRecord(b, loc, old)
			return nil
		}
		removed, err := files.Remove(ctx, old.Loc)
		if err != nil {
			return keep.MirrorError(err)
		}
		written = written || removed
		ap.Ledger.Drop(b, loc)
		return nil
	}
	leave := func(o *Op) error { // former locations of its entity
		for _, loc := range o.Replaces {
			if !named[loc] {
				named[loc] = true
				if err := ap.touch(ctx, b, loc); err != nil {
					return err
				}
				if err := remove(loc, o.Record != nil); err != nil {
					return err
				}
			}
		}
		return nil
	}
	if slices.ContainsFunc(ops, func(o *Op) bool { return o.fault == nil && !o.Settle }) {
		if err := ap.Ledger.Begin(ctx, 0, intentOf(ledger.OfFiles, ops)); err != nil {
			return err
		}
	}
	if err := ap.touch(ctx, b, locsOf(ops)...); err != nil {
		return err
	}
	for _, o := range ops {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		if !ap.begin(ctx, b, o) {
			continue
		}
		if o.Record == nil {
			if err := remove(o.Loc, false); err != nil {
				return err
			}
			if err := leave(o); err != nil {
				return err
			}
			continue
		}
		old, err := ap.Ledger.Record(ctx, o.Loc)
		if err != nil {
			return err
		}
		if o.Raw == nil && old != nil && o.Record.Normal.IsZero() && !o.Record.Has(ledger.FlagUnselected) { // as recorded
			o.Record.Normal = old.Normal
		}
		same := old != nil && old.Normal == o.Record.Normal
		if !same && old != nil && o.Raw == nil { // not selected any more
			if err := remove(o.Loc, true); err != nil {
				return err
			}
			n.Moved--
			if !old.Has(ledger.FlagKept) {
				resources++
			}
			unselected += old.Unselected()
		} else if o.Raw != nil && (!same || old.Has(ledger.FlagKept)) { // whatever became of the file meanwhile
			if err := files.Put(ctx, o.Record.Loc, o.Raw, old == nil); err != nil {
				return keep.MirrorError(err)
			}
			written = true
		}
		if old != nil || len(o.Replaces) == 0 {
			n.Became(old, o.Record, same)
		}
		if old == nil || old.Has(ledger.FlagKept) {
			resources++
		}
		unselected += o.Record.Unselected() - old.Unselected()
		ap.Ledger.PutRecord(b, o.Loc, o.Record)
		if err := leave(o); err != nil {
			return err
		}
	}
	if written {
		if err := files.Flush(); err != nil {
			return keep.MirrorError(err)
		}
		if err := ap.CrashAt("written"); err != nil {
			return err
		}
		next := ap.Meta
		ap.Wrote(&next)
		if change != nil {
			change(&next)
		}
		if err := ap.Mirror.Apply(ctx, &sink.Batch{}, ap.CheckpointOf(&next)); err != nil {
			return err
		}
		if err := ap.CrashAt("checkpoint"); err != nil {
			return err
		}
	}
	if err := ap.Done(ctx, 0, b, func(m *keep.Meta) {
		if written {
			ap.Wrote(m)
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
	return ap.CrashAt("recorded")
}

// redoFiles takes back what a batch that was interrupted may have written: files of what
// is not recorded go, and what is recorded is fetched again when the change is met that
// the cursor is still before.
func (ap *Applier) redoFiles(ctx context.Context, slot byte, ops []*Op) error {
	here := ap.Files != nil && ap.SnapshotMeta().Files == ap.Config.Files // else the files of before stay
	b := ap.Store.Batch()
	defer b.Close()
	for _, o := range ops {
		for _, loc := range append(o.Replaces, o.Loc) {
			rec, err := ap.Ledger.Record(ctx, loc)
			switch {
			case err != nil:
				return err
			case rec != nil:
				ap.content.askAgain(rec)
				ap.Ledger.PutRecord(b, loc, rec)
			}
			if loc == o.Loc && o.Record != nil && here {
				if err := ap.Files.Undo(ctx, b, o.Record.Loc, rec != nil); err != nil {
					return keep.MirrorError(err)
				}
			}
		}
	}
	return ap.Done(ctx, slot, b, nil)
}
