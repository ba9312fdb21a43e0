package destination

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"iter"
	"strings"

	"github.com/rsbridge/rsbridge/destination/apply"
	"github.com/rsbridge/rsbridge/destination/item"
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
	// The deletions of the run under way take place at its end. Those after the position are counted by it.
	waiting, leaving, heard := s.Pending, false, d.opt.Heard()
	if m.HeldDeletions == nil {
		for _, l := range d.mem.Ledger.AllLeaving(ctx, d.mem.Store, nil) {
			it, err := (*item.Item)(nil), l.Err
			if err == nil {
				it, err = apply.ChangeOf(l.Leaving)
			}
			if err != nil {
				return s, fmt.Errorf("status of %s: %w", d.cfg.Name, err)
			}
			at := max(m.Newest, heard.Position) // a list that lacks it does not tell which change it was
			if it != nil {
				at = it.Sequence
			}
			if leaving = true; s.Sequence == nil || at <= *s.Sequence {
				waiting++
			}
		}
	}
	s.InSync = s.InSync && s.Pending == 0
	s.BehindSeconds, s.BehindChanges = m.LagBeside(heard, d.opt.Now(), waiting, m.LastError != "")
	s.Behind = s.InSync && (leaving || !m.Behind.IsZero() || heard.Unnumbered() || s.BehindChanges != nil && *s.BehindChanges > 0)
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
// nothing, then what the last audit found. after is the place after which to begin, "" the beginning. The
// sequence ends after the first error.
func (d *Destination) Differences(ctx context.Context, after string) iter.Seq2[keep.Difference, error] {
	return func(yield func(keep.Difference, error) bool) {
		part, place, err := placeAt(after)
		if err != nil {
			yield(keep.Difference{}, err)
			return
		}
		behind := func(this byte) (rest []ledger.Hash, due bool) {
			if this == part {
				return []ledger.Hash{place}, true
			}
			return nil, part == 0 || strings.IndexByte(differenceParts, this) > strings.IndexByte(differenceParts, part)
		}
		if rest, due := behind('f'); due {
			for loc, f := range d.mem.Ledger.Faults(ctx, rest...) {
				if f.Err != nil {
					yield(keep.Difference{}, f.Err)
					return
				}
				if !yield(keep.Difference{Place: placeOf('f', loc), Entity: f.Entity, Location: webguard.MaskedText(f.Loc), Kind: f.State, Detail: webguard.MaskedText(f.Reason)}, nil) {
					return
				}
			}
		}
		snap := d.mem.Store.Snapshot(ctx)
		defer snap.Close()
		if rest, due := behind('u'); due {
			n := d.mem.SnapshotMeta().Unmapped // at most so many are left
			for loc, rec := range d.mem.Ledger.Records(ctx, snap, rest...) {
				if n == 0 {
					break
				}
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
				if !yield(keep.Difference{Place: placeOf('u', loc), Entity: rec.Entity, Location: rec.Loc, Kind: "unmapped", Detail: "map makes nothing of its description"}, nil) {
					return
				}
				n--
			}
		}
		rest, _ := behind('d')
		prefix := ledger.Key(ledger.KindDiff, d.mem.Dest)
		for pair, err := range snap.Scan(ctx, ledger.After(ledger.KindDiff, d.mem.Dest, rest...), kv.PrefixEnd(prefix)) {
			var diff keep.Difference
			if err == nil {
				err = json.Unmarshal(pair.Value, &diff)
			}
			if err == nil {
				diff.Place = placeOf('d', ledger.Hash(pair.Key[len(prefix):]))
				err = ctx.Err()
			}
			if !yield(diff, err) || err != nil {
				return
			}
		}
	}
}

// differenceParts are the letters of the parts of Differences, in their order.
const differenceParts = "fud"

// placeOf is a place in a list: the letter of a part, and a hash.
func placeOf(part byte, at ledger.Hash) string { return string(part) + hex.EncodeToString(at[:]) }

// placeAt reads a place; part is 0 for "", the beginning.
func placeAt(place string) (part byte, at ledger.Hash, err error) {
	if place == "" {
		return 0, at, nil
	}
	raw, err := hex.DecodeString(place[1:])
	if err != nil || len(raw) != len(at) {
		return 0, at, fmt.Errorf("%q is no place in a list", place)
	}
	return place[0], ledger.Hash(raw), nil
}

func problemOf(f *ledger.Fault) Problem {
	return Problem{Location: webguard.MaskedText(f.Loc), Entity: f.Entity, State: f.State, Reason: webguard.MaskedText(f.Reason), Tries: f.Tries, Next: f.Next}
}
