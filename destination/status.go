package destination

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"

	"github.com/rsbridge/rsbridge/destination/keep"
	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/internal/webguard"
)

// Status tells where the destination stands, from its records, and from what was heard since.
func (d *Destination) Status(ctx context.Context) (Status, error) {
	m := d.mem.SnapshotMeta()
	s := Status{InSync: m.IsInSync(), Resources: m.Selected(), NotRDF: m.NotRDF, Unmapped: m.Unmapped, Unselected: m.Unselected, Sequence: m.At.Cursor().Sequence(), LastAudit: m.LastAudit, LastError: m.LastError, Interrupted: m.Interrupted, Held: m.Waits(), Decision: m.Told() != "", Source: m.Source, Absent: m.At.Absent(), Unpublished: m.Unpublished.Sequence, Newest: m.Newest}
	s.LastPoll, s.LastSync, s.Until = keep.OrNil(m.At.LastPoll()), keep.OrNil(m.LastSync), keep.OrNil(m.At.Until())
	if s.ProvenSince = keep.OrNil(m.LostUntil); m.LastAudit != nil {
		s.ProvenUntil = m.LastAudit.ProvenUntil
	}
	var err error
	if s.Pending, err = d.mem.Ledger.CountFaults(ctx); err != nil {
		return s, fmt.Errorf("status of %s: %w", d.cfg.Name, err)
	}
	waiting := s.Pending
	if m.HeldDeletions == nil {
		for _, l := range d.mem.Ledger.AllLeaving(ctx, d.mem.Store, nil) { // the run under way is past their deletion
			if l.Err != nil {
				return s, fmt.Errorf("status of %s: %w", d.cfg.Name, l.Err)
			}
			waiting++
		}
	}
	s.InSync = s.InSync && waiting == 0
	heard := d.opt.Heard()
	s.BehindSeconds, s.BehindChanges = m.LagBeside(heard, d.opt.Now(), waiting, m.LastError != "")
	s.Behind = s.InSync && (!m.Behind.IsZero() || heard.Unnumbered() || s.BehindChanges != nil && *s.BehindChanges > 0)
	s.InSync = s.InSync && !s.Behind
	for _, f := range d.mem.Ledger.Faults(ctx) {
		if f.Err != nil {
			return s, fmt.Errorf("status of %s: %w", d.cfg.Name, f.Err)
		}
		if s.Problems = append(s.Problems, problemOf(f.Fault)); len(s.Problems) == 5 {
			break
		}
	}
	return s, ctx.Err()
}

// Differences yields pending and failed resources, then those of which map makes
// nothing, then what the last audit found. The sequence ends after the first error.
func (d *Destination) Differences(ctx context.Context) iter.Seq2[keep.Difference, error] {
	return func(yield func(keep.Difference, error) bool) {
		for _, f := range d.mem.Ledger.Faults(ctx) {
			if f.Err != nil {
				yield(keep.Difference{}, f.Err)
				return
			}
			if !yield(keep.Difference{Entity: f.Entity, Location: webguard.MaskedText(f.Loc), Kind: f.State, Detail: webguard.MaskedText(f.Reason)}, nil) {
				return
			}
		}
		prefix := ledger.Key(ledger.KindDiff, d.mem.Dest)
		snap := d.mem.Store.Snapshot(ctx)
		defer snap.Close()
		if n := d.mem.SnapshotMeta().Unmapped; n > 0 {
			for _, rec := range d.mem.Ledger.Records(ctx, snap) {
				err := rec.Err
				if err == nil {
					err = ctx.Err()
				}
				if err != nil {
					yield(keep.Difference{}, err)
					return
				}
				if rec.Unmapped() == 0 {
					continue
				}
				if !yield(keep.Difference{Entity: rec.Entity, Location: rec.Loc, Kind: "unmapped", Detail: "map makes nothing of its description"}, nil) {
					return
				}
				if n--; n == 0 {
					break
				}
			}
		}
		for pair, err := range snap.Scan(ctx, prefix, kv.PrefixEnd(prefix)) {
			var diff keep.Difference
			if err == nil {
				err = json.Unmarshal(pair.Value, &diff)
			}
			if err == nil {
				err = ctx.Err()
			}
			if !yield(diff, err) || err != nil {
				return
			}
		}
	}
}

func problemOf(f *ledger.Fault) Problem {
	return Problem{Location: webguard.MaskedText(f.Loc), Entity: f.Entity, State: f.State, Reason: webguard.MaskedText(f.Reason), Tries: f.Tries, Next: f.Next}
}
