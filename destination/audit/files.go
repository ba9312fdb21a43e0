package audit

import (
	"context"
	"slices"

	"github.com/rsbridge/rsbridge/destination/keep"
	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/internal/kv"
)

// files compares the records with the folder. A repair fetches missing and
// other ones again, and removes those without an owner.
func (c *Comparison) files(ctx context.Context) error {
	snap := c.Store.Snapshot(ctx)
	defer snap.Close()
	n := int64(0)
	for loc, rec := range c.Ledger.Records(ctx, snap) {
		if rec.Err != nil {
			return rec.Err
		}
		if n++; n%256 == 0 {
			c.Options.Progress("files", n, 0)
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

// file tells of a file not as recorded, and has it fetched again.
func (c *Comparison) file(ctx context.Context, loc ledger.Hash, rec *ledger.Record) error {
	none, why, err := c.Standing.Files.Differs(ctx, rec)
	if err != nil || why == "" {
		return err
	}
	rank := byte(rankOtherFile)
	if none {
		rank = rankNoFile
	}
	needed := !rec.Has(ledger.FlagKept) // else the source does not have it any more
	if needed && c.Alone {
		why += onlySource
	}
	if err := c.finding(loc, rank, event{Entity: rec.Entity, Location: rec.Loc, Detail: why}); err != nil {
		return err
	}
	if !needed || c.Alone {
		return nil
	}
	if c.Found.Refetch++; !c.Fix {
		return nil
	}
	return c.forget(ctx, loc, rec, "a file is not as recorded")
}

// onlySource ends the finding of a resource in need of the source.
const onlySource = "; only the source can give it again, and it cannot be asked"

// strangers finds files without a resource. A repair removes them, and brings files home that they
// were in the way of.
func (c *Comparison) strangers(ctx context.Context) error {
	var extra, displaced []string
	for name, err := range c.Standing.Files.All(ctx) {
		if err != nil {
			return err
		}
		owner, ok, err := c.Standing.Files.Names(nil).Recorded(ctx, name)
		if err == nil && ok { // the record of a path beside a store may come first
			var rec *ledger.Record
			rec, err = c.Ledger.Of(owner.Dest).Record(ctx, owner.Loc)
			if ok = rec != nil; ok && c.Standing.Files.Displaced(name) {
				displaced = append(displaced, rec.Loc)
			}
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
		if err := c.finding(ledger.HashOf("entity\x00"+name), rankNoSubject, event{Entity: name, Detail: "the folder has a file that no resource owns"}); err != nil {
			return err
		}
		c.Found.Strays++
		if c.Fix && !c.Spare {
			if err := c.Standing.Files.Remove(name); err != nil {
				return keep.MirrorError(err)
			}
		}
	}
	if !c.Fix || c.Spare {
		return nil
	}
	return c.bringHome(ctx, displaced)
}

func (c *Comparison) bringHome(ctx context.Context, locs []string) error {
	b := c.Store.Batch()
	defer b.Close()
	files := c.Standing.Files.Begin(c.Standing.Files.Names(b), len(locs))
	defer files.Close()
	for _, loc := range locs {
		if err := files.Home(ctx, loc); err != nil {
			return keep.MirrorError(err)
		}
	}
	if err := files.Flush(); err != nil {
		return keep.MirrorError(err)
	}
	return b.Commit(ctx, true)
}

// filesBeside compares the files beside a store with the records.
func (c *Comparison) filesBeside(ctx context.Context, snap kv.Reader) error {
	if c.Standing.Files == nil || c.SnapshotMeta().Files != c.Config.Files {
		return nil
	}
	if c.Fix {
		if _, err := c.ClaimBeside(ctx, false); err != nil {
			return err
		}
	}
	prefix := ledger.Key(ledger.KindOther, c.Dest)
	for pair, err := range snap.Scan(ctx, prefix, kv.PrefixEnd(prefix)) {
		if err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		loc := ledger.Hash(pair.Key[len(prefix):])
		rec, err := c.Ledger.Record(ctx, loc)
		if err != nil {
			return err
		}
		if rec == nil {
			continue
		}
		if err := c.file(ctx, loc, rec); err != nil {
			return err
		}
	}
	return c.strangers(ctx)
}
