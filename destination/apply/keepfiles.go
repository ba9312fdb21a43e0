package apply

import (
	"context"

	"github.com/rsbridge/rsbridge/destination/keep"
	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/internal/kv"
)

// keepFiles writes the files of a batch. By the intent the next run knows which may be
// otherwise than recorded.
func (ap *Applier) keepFiles(ctx context.Context, slot byte, ops []*Op) error {
	if ap.Files == nil {
		return nil
	}
	var some []*Op
	for _, o := range ops {
		if o.fault == nil && o.Record != nil && o.Raw != nil {
			some = append(some, o)
		}
	}
	if len(some) == 0 {
		return nil
	}
	if err := ap.Ledger.Begin(ctx, slot, intentOf(ledger.OfFiles, some)); err != nil {
		return err
	}
	b := ap.Store.Batch()
	defer b.Close()
	files := ap.Files.Begin(ap.Files.Names(b), len(ops))
	defer files.Close()
	for _, o := range some {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		if err := files.Put(ctx, o.Record.Loc, o.Raw, false); err != nil {
			return keep.MirrorError(err)
		}
		if err := ap.CrashAt("file"); err != nil {
			return err
		}
	}
	if err := files.Flush(); err != nil {
		return keep.MirrorError(err)
	}
	return b.Commit(ctx, false)
}

// rememberOther keeps the index of what is no RDF, and tells by how many it grew.
func (ap *Applier) rememberOther(ctx context.Context, b kv.Batch, ch *delta) (by int64, err error) {
	other := func(r *ledger.Record) bool { return r != nil && r.Has(ledger.FlagNotRDF) }
	loc, old, rec := ch.op.Loc, ch.old, ch.op.Record
	kept := rec == nil && old != nil && ap.Config.Keep == "deleted" && !ch.op.moved
	if other(old) && !old.Has(ledger.FlagKept) {
		by--
	}
	switch {
	case kept:
		return by, nil // not current, and its file stays
	case other(rec):
		by++
		name := ""
		if ap.Files != nil {
			if name, err = ap.Files.Find(ctx, ap.Files.Names(nil), rec.Loc); err != nil {
				return 0, err
			}
		}
		b.Set(ledger.Key(ledger.KindOther, ap.Dest, loc), []byte(name))
	case other(old):
		if ap.Files != nil {
			files := ap.Files.Begin(ap.Files.Names(b), 1)
			_, err = files.Remove(ctx, old.Loc)
			files.Close()
			if err != nil {
				return 0, keep.MirrorError(err)
			}
		}
		b.Delete(ledger.Key(ledger.KindOther, ap.Dest, loc))
	}
	return by, nil
}
