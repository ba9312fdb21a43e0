package destination

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/rsbridge/rsbridge/destination/feed"
	"github.com/rsbridge/rsbridge/destination/keep"
	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/internal/clip"
	"github.com/rsbridge/rsbridge/internal/webguard"
)

// ending is the end of a run over the mirror.
type ending struct {
	began   time.Time
	err     error
	stopped bool // The run was stopped, and has not failed.
	synced  bool // It was a sync, and no audit.
}

// leftovers are the resources that wait or failed.
type leftovers struct {
	pending, failed int64
	problems        []Problem
	oldest          time.Time // of the oldest change among them, zero for none
}

// leftoversOf has the first ones by name, at most so many.
func leftoversOf(ctx context.Context, l *ledger.Ledger, named int) (left leftovers, err error) {
	for _, f := range l.Faults(ctx) {
		if f.Err != nil {
			return left, f.Err
		}
		if f.State == "failed" {
			left.failed++
		} else {
			left.pending++
		}
		at := f.Time
		if at.IsZero() {
			at = f.First
		}
		left.oldest = earlier(left.oldest, at)
		if len(left.problems) < named {
			left.problems = append(left.problems, problemOf(f.Fault))
		}
	}
	return left, nil
}

// earlier is the earlier of two times, of which the first may be zero for none.
func earlier(t, than time.Time) time.Time {
	if t.IsZero() || than.Before(t) {
		return than
	}
	return t
}

// ended records how a run over the mirror has ended: a sync, or the repair of an audit. Nothing else does. Held and
// InSync of the report are told. What is known of the source stays as it was after a stopped run. A dry run is told,
// and not recorded. A repaired mirror of a past time, or of another configuration, is not in sync: the next sync has
// to make it what is configured.
func (r *run) ended(ctx context.Context, e ending) (left leftovers, err error) {
	d := r.d
	if left, err = leftoversOf(ctx, d.mem.Ledger, d.lim.Named); err != nil {
		return left, err
	}
	m := d.mem.SnapshotMeta()
	r.departs.record(&m)
	oldest := left.oldest
	if m.NotPublished() != "" {
		oldest = earlier(oldest, m.Unpublished.Since)
	}
	if m.HeldDeletions != nil { // a resource missing from a list has no time
		oldest = earlier(oldest, m.HeldDeletions.Since)
	}
	r.rep.Held = cmp.Or(r.rep.Held, m.Waits())
	r.rep.InSync = e.err == nil && r.complete && m.Stage == ledger.Following && left.pending+left.failed == 0 && r.rep.Held == "" &&
		m.CompareMirror == "" && m.CompareSource == "" && m.Unpublished.Sequence == 0
	if r.dry {
		return left, nil
	}
	now := d.opt.Now()
	present := r.until.IsZero() && !m.IsPast() && m.Map == mapID(d.cfg.Map) && m.Part == d.partID() && d.follows(&m.Identity)
	return left, d.mem.SaveMeta(ctx, func(m *keep.Meta) {
		r.departs.record(m)
		m.InSync = r.rep.InSync && present
		if m.HeldDeletions == nil && now.Sub(m.Recheck.Next) >= feed.DoubtLasts {
			m.At.TrustList()
		}
		m.HasRead(e.began, oldest, d.src.Stands(), r.complete && present)
		switch m.Interrupted = e.stopped && e.err != nil; {
		case e.err == nil:
			if m.LastError = ""; e.synced {
				m.LastSync = now.UTC()
			}
		case !e.stopped:
			m.LastError = clip.Middle(webguard.MaskedText(e.err.Error()))
		}
		if m.Damage != "" && errors.As(e.err, new(*keep.ForeignPlaceError)) { // no audit repairs it
			m.Damage = keep.Damage(e.err)
		}
	})
}
