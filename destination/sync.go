package destination

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/rsbridge/rsbridge/destination/apply"
	"github.com/rsbridge/rsbridge/destination/feed"
	"github.com/rsbridge/rsbridge/destination/item"
	"github.com/rsbridge/rsbridge/destination/keep"
	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/internal/clip"
)

// SyncOptions of Sync. Full compares with the whole inventory at any position of the cursor,
// and tries all pending resources again. DryRun reports the plan and its cost, and changes
// nothing.
type SyncOptions struct {
	Full, DryRun bool
	Retry        bool // try pending resources at once, without their pauses
	Look         bool // discover the source, though it says that nothing was published

	// Accept is the id of held deletions (Held): these go. An id not held is ErrNotHeld.
	Accept string

	// Until makes the mirror equal to the source at this time, instead of now, from the
	// source's versions, Change Lists and archives. It stays there until the next Sync without
	// it. An error tells what the source lacks for it; single resources without their version
	// are failed.
	Until time.Time
}

// run is one Sync or Audit under way.
type run struct {
	d   *Destination // of a dry run its shadow
	rep SyncReport
	c   apply.Counts

	dry    bool // d is a shadow then
	full   bool
	atOnce bool // pending resources are tried without their pauses
	until  time.Time
	accept string // id of the accepted held deletions

	remapped   bool
	reselected bool // another part of the source is selected, or kept resources go

	plan     planning // of a dry run
	notRDF   int64
	complete bool // the source was read up to its newest change
	compared bool // with a list or dump
	departs  departing
	way      way
	gap      runGap
	leftOut  int64 // files missing from the dump that was read
	lacks    runLacks
	list     runList
}

// departing is the end of the leaving resources.
type departing struct {
	due     bool              // they are weighed at the end
	weighed bool              // they were
	held    *ledger.Deletions // those that wait for a person, nil for none
}

// record notes what is held, with the end of a sync or repair: a status before it sees deletions under way, and
// one after it sees why they wait.
func (dp *departing) record(m *keep.Meta) {
	if !dp.weighed {
		return
	}
	if m.HeldDeletions = dp.held; dp.held == nil {
		return
	}
	if m.InSync = false; m.Behind.IsZero() {
		m.Behind = dp.held.Since
	}
}

// runList is of the list or dump compared last.
type runList struct {
	before time.Time            // of the one taken before it
	passed map[ledger.Hash]bool // changes older than the list, though the cursor is before them
}

// runGap is the last gap that a run has met.
type runGap struct {
	why          string
	news         bool        // the Change Lists are not as they were
	shrunk       bool        // one of them lacks entries that it began with
	from         feed.Cursor // the cursor before it
	askedNewer   bool        // a newer list was looked for: the Change Lists may not reach back to the taken one
	nothingNewer bool        // the list or dump was asked for to close a gap, and is not newer than the mirror
}

// runLacks tells of retried resources.
type runLacks struct {
	some    bool // one is not there
	perhaps bool // one has failed for long: it may be listed no more
}

func (r *run) why(format string, a ...any) {
	s := fmt.Sprintf(format, a...)
	if r.rep.Why != "" {
		s = r.rep.Why + "; " + s
	}
	r.rep.Why = s
}

// mode keeps the most telling mode of a run.
func (r *run) mode(m string) {
	if r.rep.Mode == "" || r.rep.Mode == "none" || m == "baseline" {
		r.rep.Mode = m
	}
}

// Sync makes the mirror equal to the source: by a baseline or by the changes since the last
// run; Why tells the reason. A resource not fetched is pending and does not stop the rest.
// After an error the finished part stands, and the next run goes on from it.
func (d *Destination) Sync(ctx context.Context, o SyncOptions) (SyncReport, error) {
	start := d.opt.Now()
	r := &run{d: d, dry: o.DryRun, full: o.Full, atOnce: o.Retry || o.Full || o.Accept != "", way: way{looks: o.Look || o.Full || o.DryRun || o.Accept != "" || !o.Until.IsZero()}, until: o.Until, accept: o.Accept}
	r.rep.Name, r.rep.Store, r.rep.Files = d.cfg.Name, d.stand.At(), d.cfg.Files
	d.fetch.Begin()
	if r.dry {
		s, err := d.shadow(&r.plan)
		if err != nil {
			return r.rep, err
		}
		d, r.d = s, s
	}
	err := r.sync(ctx)
	if r.departs.due && ctx.Err() == nil && (err == nil || !d.ownFailure(err)) {
		// Nobody relies yet on the result of the first run.
		err = errors.Join(err, r.depart(ctx, !r.until.IsZero() || d.mem.SnapshotMeta().LastSync.IsZero()))
	}
	switch {
	case err != nil:
	case r.dry:
		err = r.planDepart(ctx)
	default:
		err = d.putter.PutWhole(ctx)
	}
	d.obtains.Settle()
	d.src.Settle()
	d.applier.EndRun()
	ended := context.WithoutCancel(ctx) // a run that was stopped is recorded too
	err = errors.Join(err, r.finish(ended, ending{start, err, ctx.Err() != nil, true}), d.mem.Ledger.KeepCount(ended))
	d.repeats.Settle(d.mem.Log)
	r.way.ended(d, r.rep.InSync && err == nil)
	if err != nil {
		return r.rep, fmt.Errorf("sync %s: %w", d.cfg.Name, err)
	}
	return r.rep, nil
}

func (r *run) sync(ctx context.Context) error {
	d := r.d
	if r.dry {
		if err := d.prober.known(ctx); err != nil {
			return err
		}
	} else {
		if err := d.prober.ready(ctx, true); err != nil {
			return err
		}
		if err := d.applier.Redo(ctx); err != nil {
			return fmt.Errorf("finish the batch that was under way: %w", err)
		}
		if err := d.mem.Ledger.LookForFaults(ctx); err != nil {
			return err
		}
		if err := d.mem.Ledger.LookForLeaving(ctx); err != nil {
			return err
		}
		if err := d.mem.Ledger.LookForDoubts(ctx); err != nil {
			return err
		}
		if r.accept != "" {
			if err := d.leavings.acceptHeld(ctx, r.accept); err != nil {
				return err
			}
			r.why("what was held was accepted")
		}
	}
	offer, err := r.way.find(ctx, d)
	if err != nil {
		return err
	}
	if err := d.stand.SetAuthority(ctx, offer.Authority); err != nil {
		return err
	}
	if err := d.src.StillNamed(ctx, offer); err != nil {
		return err
	}
	if offer.ChangeList == "" { // a Change List has each change as soon as the inventory
		if r.way.root, err = d.src.InventoryRoot(ctx, offer); err != nil {
			return err
		}
	}
	m := d.mem.SnapshotMeta()
	if err := r.checkMirror(ctx, &m); err != nil {
		return err
	}
	if !r.dry {
		if err := r.noteResolved(ctx, offer); err != nil {
			return err
		}
		if err := d.prober.sawServer(ctx); err != nil {
			return err
		}
	}
	if !r.dry {
		if err := r.provenanceMoved(ctx); err != nil {
			return fmt.Errorf("write the provenance of what is mirrored: %w", err)
		}
	}
	if r.until.IsZero() {
		if err := r.leaveUntil(ctx); err != nil {
			return err
		}
		if err := pastOf(r, offer).listComes(ctx); err != nil {
			return err
		}
	}
	if r.remapped, err = r.remap(ctx); err != nil {
		return err
	}
	reselected, err := r.reselect(ctx)
	if err != nil {
		return err
	}
	moved, err := r.othersMoved(ctx)
	if err != nil {
		return err
	}
	if !r.until.IsZero() {
		return r.syncUntil(ctx, offer)
	}
	r.full = r.full || r.remapped || reselected || moved
	if m = d.mem.SnapshotMeta(); m.CompareSource != "" && !r.full {
		r.why("a comparison with the source was not finished")
		r.full = true
	}
	moved = m.Stage != ledger.None && !d.follows(&m.Identity)
	switch {
	case m.Stage == ledger.None:
		r.why("nothing was mirrored yet")
		err = r.baseline(ctx, offer)
	case m.Stage == ledger.Baseline:
		r.why("the baseline was interrupted and goes on")
		err = r.baseline(ctx, offer)
	case moved:
		r.why("the source is another one than before")
		err = r.baseline(ctx, offer)
	case r.full:
		if r.rep.Why == "" {
			r.why("a full comparison was asked for")
		}
		err = r.baseline(ctx, offer)
	}
	if err != nil {
		return err
	}
	if m = d.mem.SnapshotMeta(); r.dry && m.CompareMirror != "" {
		r.why("%s: everything in the mirror would be compared", m.CompareMirror)
		if err := planCompare(ctx, r, offer); err != nil {
			return err
		}
	} else if m.CompareMirror != "" {
		r.why("%s: everything in the mirror is compared", m.CompareMirror)
		if err := r.compareMirror(ctx); err != nil {
			return err
		}
		if d.mem.SnapshotMeta().CompareSource != "" { // some kept data cannot be trusted any more
			if err := r.baseline(ctx, offer); err != nil {
				return err
			}
		}
	} else if r.full && !r.dry {
		if err := r.compareGraphs(ctx); err != nil {
			return err
		}
	}
	if r.dry && m.Stage != ledger.Following {
		return nil // compared with a list, and the changes after it
	}
	if err := r.recheckHeld(ctx, offer, &m); err != nil {
		return err
	}
	r.departs.due = !r.dry
	if err := r.increment(ctx, offer, 0); err != nil {
		return err
	}
	if m = d.mem.SnapshotMeta(); offer.Followed() && offer.Listed() && r.complete && !r.compared && r.way.root.Beyond(m.At.Cursor()) {
		if _, err := r.takeNewer(ctx, offer, &m, "the Change Dump ends before the source's newest change"); err != nil {
			return err
		}
	}
	if err := lookBack(ctx, r, offer); err != nil {
		return err
	}
	if err := r.compareDue(ctx, offer); err != nil {
		return err
	}
	if r.dry {
		return nil
	}
	inTheWay, err := d.inTheWay(ctx)
	if err == nil {
		err = r.retry(ctx)
	}
	if err == nil && (r.lacks.some || r.lacks.perhaps) && !r.full {
		err = r.unlisted(ctx, offer)
	}
	if err != nil {
		return err
	}
	if err := r.confirmTaken(ctx); err != nil || !inTheWay {
		return err
	}
	return cleared(ctx, r)
}

// inTheWay tells of foreign files in the way of resources.
func (d *Destination) inTheWay(ctx context.Context) (bool, error) {
	for _, f := range d.mem.Ledger.Faults(ctx) {
		if f.Err != nil || f.Blocked {
			return f.Blocked, f.Err
		}
	}
	return false, nil
}

// cleared compares the mirror once no file is in the way any more: an audit has told of those files as
// damage, and nothing but a comparison knows whether it was all.
func cleared(ctx context.Context, r *run) error {
	still, err := r.d.inTheWay(ctx)
	if err != nil || still || r.d.mem.SnapshotMeta().Damage == "" {
		return err
	}
	r.why("the files in the way of resources are gone: everything in the mirror is compared")
	return r.compareMirror(ctx)
}

// checkMirror compares the checkpoint in the mirror with ours, and refuses a graph with
// foreign data.
func (r *run) checkMirror(ctx context.Context, m *keep.Meta) error {
	d := r.d
	if !d.mirror.Remarks {
		return nil
	}
	cp, err := d.mirror.Checkpoint(ctx)
	if err != nil {
		return err
	}
	if err := d.stand.RefuseReplaced(); err != nil {
		return err
	}
	if m.Stage != ledger.None {
		if cp != nil {
			return d.mem.NoteCompare(ctx, cmp.Or(d.stand.MissingWhole(), m.OtherWrite(cp)))
		}
		if err := d.stand.IsTheMirror(ctx); err != nil {
			return err
		}
		return d.mem.NoteCompare(ctx, keep.LostCheckpoint)
	}
	ours, err := d.stand.OurMarks(ctx)
	if err != nil {
		return err
	}
	marks, err := d.mirror.Others(ctx, d.stand.GraphName())
	if err != nil {
		return fmt.Errorf("read the state graph of the mirror: %w", err)
	}
	var earlier, shared, foreign string // of this destination, of another one of this state, of somebody else
	for _, mark := range slices.Sorted(maps.Keys(marks)) {
		switch other := marks[mark]; {
		case other.Graph != d.stand.GraphName() && (!d.cfg.Adopt || slices.Contains(d.cfg.Names, other.Name)): // adopted only from a removed one
			return &keep.ForeignPlaceError{
				What: fmt.Sprintf("%s is the graph %s, the mirror of %q: a dump has one graph", d.stand.At(), other.Graph, other.Name),
				Todo: fmt.Sprintf("give both the same %s, or choose another file", d.cfg.Settings.Of("graph_iri")),
			}
		case slices.Contains(ours, mark):
			shared = mark
		case other.Name == d.cfg.Name && other.Source == d.cfg.Source:
			earlier = mark
		default:
			foreign = mark
		}
	}
	switch {
	case earlier != "" && d.mirror.Layout.PerEntity && !d.cfg.Adopt:
		return &keep.ForeignPlaceError{
			What: fmt.Sprintf("the graphs %s of %s were kept by a destination %q of the same source, whose records are lost or elsewhere", d.stand.GraphName(), d.stand.At(), marks[earlier].Name),
			Todo: fmt.Sprintf("bring its state back, or give %s to take the graphs over, after which those of them that the source does not have are removed", d.cfg.Settings.Of("adopt: true")),
		}
	case foreign != "" && shared == "" && !d.cfg.Adopt: // with an earlier one too: a comparison would remove its data
		return &keep.ForeignPlaceError{
			What: fmt.Sprintf("graph %s of %s is the mirror of %q (%s), kept by another rsbridge, or by this one with a state that is lost", d.stand.GraphName(), d.stand.At(), marks[foreign].Name, marks[foreign].Source),
			Todo: fmt.Sprintf("choose another %s, bring the state back, or give %s to take it over", d.cfg.Settings.Of("graph_iri"), d.cfg.Settings.Of("adopt: true")),
		}
	case earlier != "":
		if err := d.stand.TakeOver(ctx, earlier); err != nil {
			return err
		}
		r.why("the mirror was kept by an earlier state of this destination, which is lost")
		return d.mem.NoteCompare(ctx, "the mirror was written by an earlier state of this destination")
	case cp != nil: // our own, of later records
		return d.mem.NoteCompare(ctx, "the mirror was written by a later state of this destination")
	case shared != "" && d.mirror.Files != nil && !d.cfg.Adopt:
		return &keep.ForeignPlaceError{
			What: fmt.Sprintf("%s is the mirror of the destination %q: a folder is for one", d.stand.At(), marks[shared].Name),
			Todo: "choose another one",
		}
	case shared != "":
		return d.stand.SharesWith(ctx)
	case foreign != "":
		return nil // adopted
	}
	return d.stand.RefuseForeign(ctx)
}

// CheckPlace tells why the next sync would refuse the place of the mirror: it holds data of somebody
// else, or is gone. It changes nothing. A mirror that is absent has an empty place.
func (d *Destination) CheckPlace(ctx context.Context, absent bool) error {
	r := &run{dry: true}
	s, err := d.shadow(&r.plan)
	if r.d = s; err == nil && !absent {
		m := s.mem.SnapshotMeta()
		if err = s.prober.known(ctx); err == nil {
			err = r.checkMirror(ctx, &m)
		}
	}
	if err == nil {
		_, err = s.stand.IsBeside(ctx)
	}
	return err
}

// retry tries due pending resources again.
func (r *run) retry(ctx context.Context) error {
	d := r.d
	b := d.applier.Batch(ctx, &r.c, false)
	defer b.Wait()
	jobs := func(yield func(apply.Job, error) bool) {
		for _, f := range d.mem.Ledger.Faults(ctx) {
			if f.Err != nil {
				yield(nil, f.Err)
				return
			}
			if f.Run == d.applier.RunName() || !r.atOnce && d.stand.Pauses(ctx, f.Fault, d.lim.apply.RetryMax) {
				continue
			}
			it, err := item.Decode(f.Item)
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(apply.JobOf(d.obtains.Job(it)), nil) {
				return
			}
		}
	}
	n := int64(0)
	err := d.applier.Pipeline(ctx, jobs, func(o *apply.Outcome) error {
		n++
		d.opt.Progress("retry", n, 0)
		f, err := d.mem.Ledger.Fault(ctx, ledger.HashOf(o.Item.Loc))
		if err != nil {
			return err
		}
		if o.Err != nil && f != nil && f.Tries+1 >= d.lim.apply.FailAfter {
			r.lacks.some = r.lacks.some || feed.IsGone(o.Err)
			times := (f.Tries + 1) / d.lim.apply.FailAfter
			r.lacks.perhaps = r.lacks.perhaps || (f.Tries+1)%d.lim.apply.FailAfter == 0 && times&(times-1) == 0 // rarer and rarer
		}
		return b.Take(ctx, o)
	})
	if err != nil {
		return err
	}
	return b.Settle(ctx)
}

// unlisted compares with a newer list or dump, because the source lacks a resource of its
// changes: without an entry there too it is gone, with or without a change. Resources failing
// for long are looked for in the same list.
func (r *run) unlisted(ctx context.Context, o *feed.Offer) error {
	d := r.d
	m := d.mem.SnapshotMeta()
	if !o.Followed() || m.At.IsPast() || m.Told() != "" {
		return nil
	}
	if r.lacks.some {
		compared, err := r.compareAgain(ctx, o, feed.UnlessTaken, "some of what changes told of is not there: compared with what the source lists")
		if err != nil {
			return err
		}
		if compared {
			return r.increment(ctx, o, 0)
		}
	}
	if r.lacks.perhaps && !o.Listed() {
		return pastOf(r, o).untold(ctx)
	}
	if !r.lacks.perhaps || o.ResourceList == "" {
		return nil
	}
	v, err := d.src.ReadInventory(ctx, o, feed.Always)
	if err != nil {
		d.mem.Log.Warn("some of what the source told of fails, and its list cannot be had", "error", err)
		return nil
	}
	if v.Stale(m.At.Cursor()) {
		return errors.Join(d.forgetUnlisted(ctx, v), v.Close())
	}
	before := r.c
	v.Sparing = true
	err = r.mend(ctx, o, v)
	r.c.Unchanged, r.c.Outside = before.Unchanged, before.Outside // they were counted
	return err
}

// finish fills the report and remembers how the run ended.
func (r *run) finish(ctx context.Context, e ending) error {
	d := r.d
	now := d.opt.Now()
	if r.rep.Mode == "" {
		r.rep.Mode = "none"
	}
	rep := &r.rep
	rep.Created, rep.Updated, rep.Deleted, rep.Unchanged = r.c.Created, r.c.Updated, r.c.Deleted, r.c.Unchanged
	if r.dry {
		rep.Created, rep.Updated, rep.Deleted, rep.Unchanged = r.plan.counts.Created, r.plan.counts.Updated, r.plan.counts.Deleted, r.plan.counts.Unchanged
	}
	if rep.Moved, rep.Unselected = r.c.Moved, r.c.Outside; r.dry {
		rep.Moved, rep.Unselected = r.plan.counts.Moved, r.plan.counts.Outside
	}
	rep.NotRDF = r.notRDF
	if rep.Unmapped = r.c.Unmapped; rep.Unmapped > 0 {
		d.mem.Log.Warn("map makes nothing of some descriptions", "resources", rep.Unmapped, "one", r.c.Nothing)
	}
	if rep.MapErrors, rep.MapError = r.c.MapErrors, r.c.MapError; rep.MapErrors > 0 {
		d.mem.Log.Warn("an expression of map has no value for some descriptions", "resources", rep.MapErrors, "one", rep.MapError)
	}
	if !r.dry {
		rep.Bytes = d.fetch.Received()
	}
	rep.Seconds = math.Round(now.Sub(e.began).Seconds()*1000) / 1000
	if !r.until.IsZero() {
		rep.Until = &r.until
	}
	if err := r.notePublished(ctx); err != nil {
		return err
	}
	left, err := r.ended(ctx, e)
	rep.Pending, rep.Failed, rep.Problems = left.pending, left.failed, left.problems
	m := d.mem.SnapshotMeta()
	if why := m.NotPublished(); why != "" {
		r.why("%s", why)
	}
	for _, a := range m.At.Absent() {
		r.why("%s is named and not there", clip.Middle(a))
	}
	if gap := "gap: " + r.gap.why; r.gap.why != "" && strings.HasPrefix(rep.Held, gap) { // told there
		rep.Why = strings.Replace(rep.Why, gap, "a gap that stays open", 1)
	}
	if rep.Mode == "none" && rep.Held != "" {
		r.why("what is held still waits for a person")
	}
	if r.dry {
		rep.InSync = rep.InSync && rep.Created+rep.Updated+rep.Deleted == 0
		if e.err == nil {
			r.plan.Retry = rep.Pending + rep.Failed
			r.tellPlan()
		}
		return err
	}
	rep.BehindSeconds = m.Lag(now, e.err != nil && !e.stopped)
	return err
}
