package destination

import (
	"context"
	"errors"
	"time"

	"github.com/rsbridge/rsbridge/destination/feed"
	"github.com/rsbridge/rsbridge/destination/keep"
	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/internal/clip"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// increment brings the mirror from the cursor to the newest change. depth counts
// gaps closed in this run.
func (r *run) increment(ctx context.Context, o *feed.Offer, depth int) error {
	plan := r.plan
	if alone := o.Followed() && !o.Listed(); alone && !r.dry && !r.d.mem.SnapshotMeta().Alone {
		if err := r.d.mem.SaveMeta(ctx, func(m *keep.Meta) { m.Alone = true }); err != nil {
			return err
		}
	}
	err := feed.Again(func() error {
		if r.dry {
			r.plan = plan
		}
		return r.incrementOnce(ctx, o, depth)
	})
	if err == nil && depth == 0 {
		err = pastOf(r, o).confirmGap(ctx)
	}
	return err
}

func (r *run) incrementOnce(ctx context.Context, o *feed.Offer, depth int) error {
	d := r.d
	m := d.mem.SnapshotMeta()
	if m.At.IsPast() { // a repair while the mirror stands at a time of before
		return nil
	}
	if m.Back.Alone && o.Listed() && !r.dry {
		if err := d.leaveAlone(ctx); err != nil {
			return err
		}
		r.why("the source offers a list or dump again")
		m = d.mem.SnapshotMeta()
	}
	if !o.Followed() {
		return r.incrementBySnapshot(ctx, o, &m)
	}
	if (m.Gap != "" || m.At.Lacks() != "" && d.cfg.OnGap != "stop") && depth == 0 && o.Listed() && !r.dry && !r.gap.nothingNewer {
		// A gap that could not be closed: a newer inventory may do it now.
		var end func(*keep.Meta)
		var err error
		what := "Resource List"
		if o.ResourceList != "" {
			end, err = r.compareNewer(ctx, o, feed.UnlessTaken)
		} else {
			what = "Resource Dump"
			end, err = r.dumpNewer(ctx, o, feed.UnlessTaken)
		}
		switch {
		case errors.Is(err, feed.ErrUnchanged), errors.Is(err, feed.ErrStale):
			r.gap.nothingNewer = true
		case err != nil:
			return err
		default:
			r.mode("baseline")
			if err := d.stand.Checkpoint(ctx, ledger.Following, func(m *keep.Meta) { end(m); m.CloseGap() }); err != nil {
				return err
			}
			if m = d.mem.SnapshotMeta(); m.Lost() == "" {
				r.why("a new %s closes the gap of before", what)
			} else {
				r.why("compared with a new %s", what)
			}
			depth = 1
		}
	}
	unlisted := !m.Back.Listed.IsZero() && !o.Listed()
	if depth == 0 && !r.dry && (m.Back.Gap || unlisted) {
		closed, err := pastOf(r, o).gapClosed(ctx)
		if err != nil {
			return err
		}
		if unlisted && !closed {
			return pastOf(r, o).unlistedGap(ctx)
		}
		m = d.mem.SnapshotMeta()
	}
	from := *m.At.Cursor()
	d.fates.TellThrough(&from) // a run that was killed may not have said so
	poll, err := d.src.Poll(ctx, o, &from)
	var gap *feed.GapError
	if err == nil && !o.Listed() {
		if err = d.src.Heard(ctx, &from); err != nil && poll == nil {
			var other error
			if poll, other = d.src.Poll(ctx, o, &feed.Cursor{}); other != nil {
				return other
			}
		}
		if err != nil {
			defer poll.Close()
		}
	}
	if errors.As(err, &gap) {
		return r.closeGap(ctx, o, gap, depth, poll)
	}
	if err != nil {
		return err
	}
	if poll == nil {
		r.complete = true
		r.why("no change since the last poll")
		return nil
	}
	defer poll.Close()
	r.gap.news = true
	if m.At.Lacks() != "" && !o.Listed() {
		switch back, err := poll.Returned(ctx); {
		case err != nil:
			return err
		case back:
			r.why("Change Lists that were not there are back: everything is applied again from the first change on")
			if m := d.mem.SnapshotMeta(); m.Lost() == "" {
				before := keep.Place{Span: m.Back.Last, First: m.First}
				if n := len(m.Back.Places); n > 0 {
					before = m.Back.Places[n-1]
					before.Cursor = feed.Cursor{}
				}
				if _, err := pastOf(r, o).backTo(ctx, &before); err != nil {
					return err
				}
			}
		}
		from = r.stands()
	}
	w := r.window(o, from)
	defer w.close()
	reaches := from.ReachesBack(!r.gap.askedNewer && !r.compared && o.Listed())
	err = poll.Each(ctx, &from, true, func(c feed.Change) error {
		if err := reaches(); err != nil {
			return err
		}
		return w.add(ctx, c)
	})
	if errors.Is(err, feed.ErrUnreached) {
		r.gap.askedNewer = true
		done, err := r.takeNewer(ctx, o, &m, feed.ErrUnreached.Error())
		if done || err != nil {
			return err
		}
		return r.incrementOnce(ctx, o, depth)
	}
	if err == nil && w.ahead != nil {
		err = w.ahead.Dropped()
	}
	if errors.As(err, &gap) {
		if depth == 0 && gap.Missing == nil && !d.src.PastCaches(gap.Why) {
			w.close()
			r.plan = planning{}
			return r.incrementOnce(ctx, o, depth)
		}
		if gap.Behind && poll.IsDump() {
			if done, err := r.aheadOfDump(ctx, o, &m, poll); err != nil {
				return err
			} else if done {
				return poll.Found(ctx, &from)
			}
		}
		return r.closeGap(ctx, o, gap, depth, poll)
	}
	if err != nil {
		return err
	}
	if err := w.finish(ctx, poll); err != nil {
		return err
	}
	return poll.Found(ctx, &from)
}

// takeNewer compares with a list or dump that is newer than the one that was taken, where the changes
// may not be all. Without one nothing is done. done is for a dry run that is planned to its end.
func (r *run) takeNewer(ctx context.Context, o *feed.Offer, m *keep.Meta, why string) (done bool, err error) {
	d := r.d
	newer := func(v *feed.Inventory) (bool, error) { return v.At.IsZero() || v.At.After(m.At.Cursor().Time()), nil }
	var end func(*keep.Meta)
	if o.ResourceList != "" {
		var v *feed.Inventory
		if v, err = d.src.ReadInventory(ctx, o, feed.UnlessTaken); err == nil {
			if ok, _ := newer(v); !ok || v.Stale(m.At.Cursor()) {
				return false, v.Close()
			}
			end, err = r.compareWith(ctx, o, v)
		}
	} else {
		end, err = r.dumpIf(ctx, o, feed.UnlessTaken, newer)
	}
	switch {
	case err == nil:
	case errors.Is(err, feed.ErrUnchanged), errors.Is(err, feed.ErrStale):
		return false, nil
	case ctx.Err() != nil || d.ownFailure(err):
		return false, err
	default:
		d.mem.Log.Warn("no newer list or dump can be had", "why", why, "error", err)
		return false, nil
	}
	r.mode("baseline")
	r.why("%s: compared with a newer one", why)
	if r.dry {
		return !r.plan.base, d.mem.SaveMeta(ctx, end)
	}
	return false, d.stand.Checkpoint(ctx, ledger.Following, end)
}

// aheadOfDump is for a Change Dump that ends before the list or Resource Dump at which we
// stand, as those are made at other times: there is nothing to apply, and what such a list
// or dump has later is taken from it. If the source was set back, it is not done.
func (r *run) aheadOfDump(ctx context.Context, o *feed.Offer, m *keep.Meta, poll *feed.Poll) (done bool, err error) {
	d := r.d
	at := m.At.Cursor()
	if ends, err := poll.EndsBefore(ctx, at); !ends || err != nil {
		return false, err
	}
	there := func(v *feed.Inventory) (bool, error) { return v.Sequence != nil && *v.Sequence >= at.Number(), nil }
	var end func(*keep.Meta)
	if o.ResourceList == "" {
		end, err = r.dumpIf(ctx, o, feed.UnlessTaken, there)
	} else {
		var v *feed.Inventory
		if v, err = d.src.ReadInventory(ctx, o, feed.UnlessTaken); err == nil {
			if ok, _ := there(v); !ok {
				return false, v.Close()
			}
			end, err = r.compareWith(ctx, o, v)
		}
	}
	switch {
	case errors.Is(err, feed.ErrStale):
		return false, nil
	case errors.Is(err, feed.ErrUnchanged):
		err = nil
		r.why("the Change Dump ends before the state that is mirrored")
	case err != nil:
		return false, err
	default:
		r.mode("baseline")
		r.why("the Change Dump ends before the state that is mirrored, and a newer one was taken whole")
		if r.dry {
			err = d.mem.SaveMeta(ctx, end)
		} else {
			err = d.stand.Checkpoint(ctx, ledger.Following, end)
		}
	}
	r.complete = err == nil
	return r.complete, err
}

// closeGap does what is configured when changes are lost.
func (r *run) closeGap(ctx context.Context, o *feed.Offer, gap *feed.GapError, depth int, poll *feed.Poll) error {
	d := r.d
	d.mem.Log.Warn("changes are missing", "why", gap.Why)
	if r.gap.why != gap.Why {
		r.why("gap: %s", gap.Why)
	}
	r.gap.why = gap.Why
	r.gap.from = r.stands()
	if !o.Listed() {
		gap.Ends(d.leavings.notClosed())
	}
	if depth == 0 || gap.Missing == nil {
		r.plan = planning{}
	}
	if depth == 0 && (gap.Missing == nil || gap.Timed) {
		closed, err := r.bridgeGap(ctx, o, poll)
		if closed && err == nil && o.Listed() {
			return d.mem.SaveMeta(ctx, func(m *keep.Meta) { m.At.BridgeMissing() })
		}
		if closed || ctx.Err() != nil || err != nil && d.ownFailure(err) {
			return err
		}
		if err != nil {
			d.mem.Log.Warn("archives could not be used", "error", err)
			r.why("the archives could not be used (%v)", clip.Middle(err.Error()))
		}
		r.plan = planning{}
	}
	if gap.Missing != nil {
		if err := poll.Miss(ctx, gap); err != nil {
			return err
		}
	}
	if behind := d.mem.SnapshotMeta().Gap == gap.Told(); d.cfg.OnGap == "stop" && !behind { // sync --full went on
		then := "compare with the whole source"
		if !o.Listed() {
			then = "go on behind it with the changes that it still offers. That does not close the gap: what was lost stays lost, and no audit can tell it, until the source offers a Resource List or a Resource Dump, which only whoever runs it can do"
		}
		r.rep.Held = "gap: " + gap.Why + gapStops + then
		if r.dry {
			return nil
		}
		return d.mem.SaveMeta(ctx, func(m *keep.Meta) { m.HeldGap = r.rep.Held })
	}
	if depth == 0 && o.Listed() && (gap.Missing == nil || !r.gap.nothingNewer) {
		var end func(*keep.Meta)
		var err error
		how := "compared with the Resource List, fetching what differs"
		if o.ResourceList != "" {
			end, err = r.compareNewer(ctx, o, feed.Always)
		} else {
			how = "taken again from the Resource Dump"
			end, err = r.dumpNewer(ctx, o, feed.Always)
		}
		if errors.Is(err, feed.ErrStale) {
			return r.leaveGap(ctx, o, gap, depth, poll)
		}
		r.why("%s", how)
		if err != nil {
			return err
		}
		r.mode("baseline")
		if r.dry {
			if !r.plan.base {
				return nil
			}
			err = d.mem.SaveMeta(ctx, end)
		} else {
			err = d.stand.Checkpoint(ctx, ledger.Following, func(m *keep.Meta) { end(m); m.CloseGap() })
		}
		if err != nil {
			return err
		}
		return r.increment(ctx, o, depth+1)
	}
	return r.leaveGap(ctx, o, gap, depth, poll)
}

const gapStops = "; on_gap is stop: run sync with --full to "

// leaveGap is for a gap that nothing can close: what is there is applied, and it stays
// told. Behind an inventory that this run has taken it is only what came later. For lists that
// are missing nothing is applied where there is an inventory, whose next one closes it.
func (r *run) leaveGap(ctx context.Context, o *feed.Offer, gap *feed.GapError, depth int, poll *feed.Poll) error {
	d := r.d
	if r.dry || gap.Missing != nil && o.Listed() {
		return nil
	}
	if err := r.openGap(ctx, o); err != nil {
		return err
	}
	if gap.Missing == nil {
		if err := d.mem.SaveMeta(ctx, func(m *keep.Meta) { m.Gap = gap.Told() }); err != nil {
			return err
		}
	}
	if !o.Listed() {
		return pastOf(r, o).foldGap(ctx)
	}
	from := r.stands()
	w := r.window(o, from)
	defer w.close()
	from.Lose(depth == 0 && gap.Missing == nil)
	w.ahead = nil // told with the gap
	if err := poll.Each(ctx, &from, false, func(c feed.Change) error { return w.add(ctx, c) }); err != nil {
		return err
	}
	return w.finish(ctx, poll)
}

// openGap notes where the mirror may go back to from a gap that stays.
func (r *run) openGap(ctx context.Context, o *feed.Offer) error {
	d := r.d
	if m := d.mem.SnapshotMeta(); m.Back.Gap || m.Gap != "" {
		return nil
	}
	b := d.mem.Store.Batch()
	defer b.Close()
	return d.mem.Mark(ctx, b, r.gap.from, func(k *keep.Back) { // archives may have moved the cursor
		k.Gap, k.Since = true, d.opt.Now().UTC()
		if k.Changed, k.Alone = r.c.Changed() > 0, !o.Listed(); k.Alone {
			k.Listed = time.Time{}
		}
	})
}

// leaveAlone goes back to before a gap that was met without a list or dump, which is offered now. What was
// touched since is compared with it.
func (d *Destination) leaveAlone(ctx context.Context) error {
	m := d.mem.SnapshotMeta()
	touched, before := m.Back.Changed, keep.Place{Cursor: *m.At.Cursor()}
	if n := len(m.Back.Places); n > 0 {
		before = m.Back.Places[n-1]
	}
	for _, t := range d.mem.Ledger.Touched(ctx, d.mem.Store, before.Span) {
		if t.Err != nil {
			return t.Err
		}
		touched = true
		break
	}
	return d.mem.SaveMeta(ctx, func(m *keep.Meta) {
		m.At.MoveTo(before.Cursor)
		m.At.FoundMissing()
		if m.LeaveGap(); touched {
			m.Recheck.Why = "changes were applied while the source offered neither a list nor a dump"
		}
	})
}

// incrementBySnapshot follows a source that does not tell its changes: its list or dump is
// compared when it has changed.
func (r *run) incrementBySnapshot(ctx context.Context, o *feed.Offer, m *keep.Meta) error {
	d := r.d
	if r.complete { // the baseline of this run was that
		return nil
	}
	when := feed.UnlessTaken
	if m.HeldGap != "" || m.Recheck.Why != "" || r.accept != "" || m.Lost() != "" || m.At.Cursor().IsInList() { // changes were told for a time
		when = feed.Always
	}
	var end func(*keep.Meta)
	var err error
	switch {
	case o.ResourceList != "":
		var v *feed.Inventory
		if v, err = d.src.ReadInventory(ctx, o, when); err != nil {
			break
		}
		if v.Outdated {
			agrees, err := d.agrees(ctx, v, false)
			if err != nil {
				return errors.Join(err, v.Close())
			}
			v.Outdated = !agrees
		}
		if v.Outdated {
			return errors.Join(r.waitOlder(ctx, resourcesync.ResourceList, v), v.Close())
		}
		end, err = r.compareWith(ctx, o, v)
	case o.ResourceDump != "":
		var v *feed.Inventory
		end, err = r.dumpIf(ctx, o, when, func(of *feed.Inventory) (bool, error) { v = of; return !of.Outdated, nil })
		if v != nil && v.Outdated {
			var same *feed.Inventory
			if same, err = r.olderDump(ctx, o, m, v); err != nil {
				return err
			}
			if same == nil {
				return r.waitOlder(ctx, resourcesync.ResourceDump, v)
			}
			end, err = r.compareWith(ctx, o, same)
		}
	default:
		return errors.New("the source offers neither lists nor dumps")
	}
	if errors.Is(err, feed.ErrUnchanged) {
		r.complete = true
		r.why("the list is the one that was processed before")
		return nil
	}
	if err != nil {
		return err
	}
	r.complete = true
	r.mode("incremental")
	r.why("the source does not tell its changes: compared with its list")
	return d.mem.SaveMeta(ctx, func(m *keep.Meta) {
		end(m)
		m.At.DropMissing() // the changes that were missed are named no more
		m.CloseGap()
	})
}
