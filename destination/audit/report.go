package audit

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"github.com/rsbridge/rsbridge/destination/keep"
	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/internal/clip"
	"github.com/rsbridge/rsbridge/internal/kv"
)

// faultNote is the addition about a pending or failed resource.
func faultNote(f *ledger.Fault) string {
	if f == nil {
		return ""
	}
	return fmt.Sprintf(" (%s: %s)", f.State, f.Reason)
}

// conclude makes one Difference of all events of a resource, keeps them, and
// counts.
func (a *pass) conclude(ctx context.Context, rep *keep.AuditReport) error {
	m := a.SnapshotMeta()
	rep.Resources, rep.Inventory, rep.Origins = m.Selected(), a.told.inventory, a.told.origins.Load()
	rep.Held = cmp.Or(m.Told(), m.Lost())
	if n := a.told.unasked.Load(); n > 0 {
		rep.Unasked = n
		a.Log.Warn("audit: first sources are on hosts that are not allowed, and were not asked", "resources", n, "allow_by", a.Config.Settings.Of("allow"))
	}
	beside, err := a.CutOffBeside(ctx)
	if err != nil {
		return err
	}
	b := a.Store.Batch()
	defer b.Close()
	prefix := ledger.Key(ledger.KindDiff, a.Dest)
	b.DeleteRange(prefix, kv.PrefixEnd(prefix))
	var (
		have   ledger.Hash
		first  byte
		ev     event
		lacks  int
		excess int
		more   bool // than excess
		broken bool
		some   bool
		due    bool   // the source's own difference, if any
		came   *event // another answer
		told   bool   // by a list or change
	)
	emit := func() error {
		if !some {
			return nil
		}
		diff := keep.Difference{Entity: ev.Entity, Location: ev.Location, Graph: ev.Graph, Detail: ev.Detail}
		if excess > 0 {
			diff.Detail = excessOf(excess, more, ev.Graph, ev.Detail)
		}
		if came != nil && !told {
			f, err := a.doubt(ctx, b, have, came)
			if err != nil {
				return err
			}
			due, diff.Detail = true, came.Detail+faultNote(f)
		}
		a.unexplained = a.unexplained || !due
		switch first {
		case rankMissing, rankNoFile:
			diff.Kind = "missing"
		case rankExtra, rankNoSubject:
			diff.Kind = "extra"
		case rankRewritten:
			diff.Kind = "rewritten"
		default:
			diff.Kind = "different"
			if lacks > 0 && first == rankMirrorLacks {
				diff.Detail = fmt.Sprintf("%d of its triples are not in the mirror", lacks)
				if all, err := a.StatementCount(ctx, have); err == nil && lacks >= all {
					diff.Kind, diff.Detail = "missing", "none of its triples is in the mirror"
				}
			}
			if broken {
				diff.Detail += "; what is kept of it is not as recorded"
				if a.told.silent != nil {
					diff.Detail += onlySource
				}
			}
		}
		if beside != "" && rankNoSubject <= first && first <= rankMirrorExcess {
			diff.Detail += fmt.Sprintf("; destination %q writes into the same graph, and its last batch has not ended: its next run ends it, and may settle this", beside)
		}
		switch diff.Kind {
		case "missing":
			rep.Missing++
		case "extra":
			rep.Extra++
		case "different":
			rep.Different++
		case "rewritten":
			rec, err := a.Ledger.Record(ctx, have)
			if err == nil && rec != nil && rec.Has(ledger.FlagRewritten) {
				return nil // counted with the normal form
			}
			rep.Rewritten++
		}
		if len(rep.Named) < a.Bounds.Named {
			rep.Named = append(rep.Named, diff)
		}
		raw, err := json.Marshal(diff)
		if err != nil {
			return err
		}
		b.Set(ledger.Key(ledger.KindDiff, a.Dest, have), raw)
		if b.Size() > 4<<20 {
			return b.Commit(ctx, false)
		}
		return nil
	}
	for rec, err := range a.events.Sort() {
		if err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		var loc ledger.Hash
		copy(loc[:], rec.Key)
		rank, e := rec.Key[16], event{}
		if err := json.Unmarshal(rec.Value, &e); err != nil {
			return err
		}
		ofSource := rank < rankNoSubject
		a.storeDiffers = a.storeDiffers || !ofSource && rank != rankRewritten
		if !some || loc != have {
			if err := emit(); err != nil {
				return err
			}
			have, first, lacks, excess, more, some, ev = loc, rank, 0, 0, false, true, e
			due, came, told = !ofSource, nil, false
			if first == rankMirrorLacks {
				lacks = ev.Triples
			}
			broken = ev.Broken
		} else if rank == rankMirrorLacks {
			lacks += e.Triples
			broken = broken || e.Broken
		}
		if rank == first && e.Triples > 0 && (rank == rankNoSubject || rank == rankMirrorExcess) {
			if excess == 0 {
				ev = e
			}
			excess, more = excess+e.Triples, more || e.More
		}
		due = due || e.Due
		if e.Came != "" {
			came = &e
		} else if ofSource && !e.Pending {
			told = true
		}
	}
	if err := emit(); err != nil {
		return err
	}
	rep.Rewritten += a.rewritten.n
	for _, n := range a.rewritten.named {
		if len(rep.Named) < a.Bounds.Named {
			rep.Named = append(rep.Named, n)
		}
	}
	if a.told.silent != nil || !a.Offer.Listed() {
		rep.ProvenSince = keep.OrNil(m.LostUntil)
	}
	rep.SourceOlder = a.told.older && a.told.passed > 0
	switch unproven := cmp.Or(a.told.silent, a.told.lost); {
	case unproven != nil:
		rep.SourceError = unproven.Error()
	case a.told.ahead:
		rep.SourceError = fmt.Sprintf("the source stands at change %d and publishes its changes up to %d", a.told.root.Sequence, a.told.from.Number())
		rep.ProvenUntil = keep.OrNil(a.told.from.Time())
	case rep.SourceOlder:
		rep.ProvenUntil = keep.OrNil(a.told.listAt)
	case a.told.untold > 0:
		rep.SourceError = fmt.Sprintf("of %d resources its list tells neither a hash nor an older lastmod, and it has no Change List; depth origin asks for each of them", a.told.untold)
		rep.ProvenUntil = keep.OrNil(m.AskedAll)
	}
	if rep.Depth == "inventory" { // it compares with the records, and never reads the mirror
		if rep.MirrorError = cmp.Or(a.place.lost, m.Damage); a.place.unasked != nil {
			rep.MirrorError = a.place.unasked.Error()
		}
		if rep.MirrorError != "" {
			rep.ProvenUntil, rep.ProvenSince = nil, nil
		}
	}
	rep.Judge()
	return b.Commit(ctx, true)
}

// excessOf tells of triples without an owner, one of them by its line.
func excessOf(n int, more bool, graph, line string) string {
	in, least := "", ""
	if more {
		least = "at least "
	}
	if graph != "" {
		in = " in graph " + clip.Middle(graph)
	}
	if n == 1 && !more {
		return fmt.Sprintf("the mirror has a triple%s that no resource owns: %s", in, line)
	}
	return fmt.Sprintf("the mirror has %s%d triples%s that no resource owns, one of them %s", least, n, in, line)
}
