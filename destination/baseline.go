package destination

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/rsbridge/rsbridge/destination/apply"
	"github.com/rsbridge/rsbridge/destination/feed"
	"github.com/rsbridge/rsbridge/destination/item"
	"github.com/rsbridge/rsbridge/destination/keep"
	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/destination/obtain"
	"github.com/rsbridge/rsbridge/destination/pairs"
	"github.com/rsbridge/rsbridge/internal/clip"
	"github.com/rsbridge/rsbridge/internal/extsort"
)

// baseline brings records and mirror to a snapshot of the source: by the dump or by comparing with the
// Resource List, whichever is cheaper. It can be interrupted anywhere; the next run goes on from there.
func (r *run) baseline(ctx context.Context, o *feed.Offer) error {
	d := r.d
	m := d.mem.SnapshotMeta()
	err := r.takeBaseline(ctx, o, m)
	if errors.Is(err, errSetsBack) && m.Stage == ledger.Following && !r.dry { // nothing was changed
		err = errors.Join(err, d.stand.Checkpoint(ctx, ledger.Following, func(n *keep.Meta) { n.ByList, n.CompareSource = m.ByList, m.CompareSource }))
	}
	return err
}

func (r *run) takeBaseline(ctx context.Context, o *feed.Offer, m keep.Meta) error {
	d := r.d
	r.mode("baseline")
	if !r.dry {
		if m.Stage != ledger.Baseline {
			if err := d.stand.Checkpoint(ctx, ledger.Baseline, func(m *keep.Meta) {
				if !d.follows(&m.Identity) {
					m.At.LeaveSource()
					m.First, m.Reach, m.Back = nil, time.Time{}, keep.Back{}
					m.LostUntil = time.Time{}
				}
				d.follow(m)
				m.ByList, m.CompareSource = false, ""
			}); err != nil {
				return err
			}
		} else if m.Resources > 0 {
			if err := d.mem.NoteCompare(ctx, "the baseline was interrupted"); err != nil {
				return err
			}
		}
	}
	v, dump, err := r.cheapest(ctx, o, &m)
	if err != nil {
		return err
	}
	if !dump && !r.dry && !m.ByList {
		if err := d.mem.SaveMeta(ctx, func(m *keep.Meta) { m.ByList = true }); err != nil {
			return err
		}
	}
	var end func(*keep.Meta)
	switch {
	case dump:
		r.why("taken from the Resource Dump")
		end, err = r.dumpIf(ctx, o, feed.Always, d.unlessBack(ctx, o, &m))
		if err != nil && !errors.Is(err, errSetsBack) && ctx.Err() == nil && o.ResourceList != "" && !d.ownFailure(err) {
			d.mem.Log.Warn("dump could not be used; the Resource List is", "error", err)
			r.why("the dump could not be used (%v), so the Resource List is", clip.Middle(err.Error()))
			r.plan = planning{}
			if !r.dry {
				err = d.mem.SaveMeta(ctx, func(m *keep.Meta) { m.ByList = true })
			}
			if r.dry || err == nil {
				end, err = r.compare(ctx, o, feed.Always)
			}
		} else if n := r.leftOut; err == nil && n > 0 && o.ResourceList != "" && !r.dry {
			r.why("the dump leaves out %d files, which are taken from the Resource List", n)
			before := r.c.Unchanged
			end, err = r.compare(ctx, o, feed.Always)
			r.c.Unchanged = before // they have just come with the dump
		}
	case v != nil:
		r.why("taken from the Resource List")
		if err = setsBack(v, &m); err != nil {
			return errors.Join(err, v.Close())
		}
		end, err = r.compareWith(ctx, o, v)
	case o.ResourceList != "":
		r.why("taken from the Resource List")
		end, err = r.compare(ctx, o, feed.Always)
	default:
		r.why("the source has neither list nor dump; its changes are applied from the first one")
		gap := ""
		if d.follows(&m.Identity) && (m.At.Cursor().HasRead() || !m.Back.Listed.IsZero()) { // only our position tells the lost changes, and they stay lost
			switch {
			case r.dry:
			case r.way.led && m.Alone:
				err = pastOf(r, o).elsewhere(ctx)
			default:
				err = r.increment(ctx, o, 0)
			}
			gap = cmp.Or(d.mem.SnapshotMeta().Gap, r.rep.Held)
			if strings.HasPrefix(r.rep.Held, "gap:") { // it is being repaired
				r.rep.Held = ""
			}
			if why, _, stop := strings.Cut(gap, gapStops); stop {
				gap = why + d.leavings.notClosed()
				if err == nil && !r.dry {
					err = r.openGap(ctx, o)
				}
			}
		}
		end = func(m *keep.Meta) {
			m.At.MoveTo(feed.Cursor{})
			m.At.ForgetList() // the cursor is behind none
			if m.Gap, m.HeldGap = gap, ""; m.Lost() == "" {
				m.Back = keep.Back{}
			}
		}
	}
	if err != nil {
		return err
	}
	if r.dry {
		if err := d.mem.SaveMeta(ctx, func(m *keep.Meta) { m.Stage, m.CompareSource = ledger.Baseline, "" }); err != nil {
			return err
		}
		return d.mem.SaveMeta(ctx, func(m *keep.Meta) {
			if end(m); !r.complete || r.plan.base {
				m.Stage = ledger.Following
			}
		})
	}
	if err := r.provedComplete(ctx); err != nil {
		return err
	}
	return d.stand.Checkpoint(ctx, ledger.Following, func(m *keep.Meta) {
		m.ByList, m.CompareSource = false, ""
		if !o.Followed() {
			m.At.DropMissing()
		}
		if end(m); o.Listed() {
			m.CloseGap()
		}
	})
}

// plans names the stages to come of a comparison. The changes end it.
func (r *run) plans(stages ...string) {
	if !r.dry {
		r.d.opt.Plan(append(stages, "changes")...)
	}
}

// ownFailure tells failures of our side: another document does not help.
func (d *Destination) ownFailure(err error) bool {
	switch {
	case d.applier.IsBroken(): // nothing else may be written
		return true
	case feed.IsOfRequest(err):
		return false
	}
	return feed.IsOwnFailure(err) || errors.Is(err, keep.ErrMirror) || errors.Is(err, errInjected)
}

// errInjected marks failures of tests.
var errInjected = errors.New("injected")

// compare makes the records and the mirror equal to the Resource List (and the changes after it), and
// fetches only differing resources. It returns the change of the meta.
func (r *run) compare(ctx context.Context, o *feed.Offer, when feed.When) (func(*keep.Meta), error) {
	d := r.d
	r.plans("resources") // a list tells of its parts as they are read
	v, err := d.src.ReadInventory(ctx, o, when)
	if err != nil {
		return nil, err
	}
	m := d.mem.SnapshotMeta()
	if err := setsBack(v, &m); err != nil {
		return nil, errors.Join(err, v.Close())
	}
	return r.compareWith(ctx, o, v)
}

// compareNewer is compare, unless the list is stale.
func (r *run) compareNewer(ctx context.Context, o *feed.Offer, when feed.When) (func(*keep.Meta), error) {
	d := r.d
	v, err := d.src.ReadInventory(ctx, o, when)
	if err != nil {
		return nil, err
	}
	if c := r.stands(); v.Stale(&c) {
		if err := d.forgetUnlisted(ctx, v); err != nil {
			return nil, errors.Join(err, v.Close())
		}
		return nil, errors.Join(feed.ErrStale, v.Close())
	}
	return r.compareWith(ctx, o, v)
}

// dumpNewer is dumpIf, unless the dump is stale.
func (r *run) dumpNewer(ctx context.Context, o *feed.Offer, when feed.When) (func(*keep.Meta), error) {
	d := r.d
	c := r.stands()
	return r.dumpIf(ctx, o, when, func(v *feed.Inventory) (bool, error) {
		if v.Hole = true; !v.Stale(&c) {
			return true, nil
		}
		on, err := d.src.LeadsOn(ctx, o, v)
		var gap *feed.GapError
		if errors.As(err, &gap) {
			return gap.Behind, nil
		}
		return on, err
	})
}

// compareWith is compare with a read inventory, and closes it.
func (r *run) compareWith(ctx context.Context, o *feed.Offer, v *feed.Inventory) (func(*keep.Meta), error) {
	d := r.d
	defer v.Close()
	r.compared = true
	snap := d.mem.Store.Snapshot(ctx)
	defer snap.Close()
	var (
		gone, told []ledger.Hash // inferred from absence, told by a change
		settled    []ledger.Hash // pending ones no longer listed, or as recorded: nothing to wait for
		faulty     bool          // entries of it fail: the list may be wrong
		held       int64
		// of those, and of gone and told, resources outside of the selection
		heldOutside, goneOutside, toldOutside int64
		unchanged                             int64
		unasked                               int64 // resources without a measure, not fetched
		outside                               int64 // of the selection, and it stays so
		planned                               apply.Counts
		now                                   = d.opt.Now()
		total                                 = v.Len()
	)
	if err := d.mem.Returned(ctx, func(waiting map[ledger.Hash]bool) (back []ledger.Hash, err error) {
		for p, err := range pairs.Of(ctx, d.mem.Ledger, v, snap) {
			if err != nil || ctx.Err() != nil {
				return nil, errors.Join(err, ctx.Err())
			}
			if p.There() && waiting[p.Loc] {
				back = append(back, p.Loc)
			}
		}
		return back, nil
	}); err != nil {
		return nil, err
	}
	moves, err := pairs.FindMoves(ctx, d.mem.Ledger, v, snap)
	if err != nil {
		return nil, err
	}
	if err := r.underWay(ctx, o); err != nil {
		return nil, err
	}
	obtains := d.obtains
	lives := newLiving(d, moves.Unlisted)
	if len(moves.Unlisted) > 0 {
		obtains = obtains.Beside(lives)
	}
	bulk := d.mem.Meta.Stage == ledger.Baseline
	b := d.applier.Batch(ctx, &r.c, bulk)
	b.Compares()
	defer b.Wait()
	jobs := func(yield func(apply.Job, error) bool) {
		for p, err := range pairs.WithFaults(ctx, d.mem.Ledger, pairs.Of(ctx, d.mem.Ledger, v, snap)) {
			if err == nil && p.There() && p.Here() {
				err = lives.see(ctx, r.list.before, &p)
			}
			if err != nil {
				yield(nil, err)
				return
			}
			f := p.Fault
			faulty = faulty || p.FailsOfList()
			if f != nil && !v.Sparing {
				settled = append(settled, p.Loc)
			}
			if r.dry && r.reselected && p.Record != nil && d.cfg.Keep != "deleted" {
				p.Record.Flags &^= ledger.FlagKept
			}
			if p.Here() {
				held++
				heldOutside += p.Record.Unselected()
			}
			if moves.Left(p.Loc) {
				continue // it goes with the new location of its entity
			}
			if f != nil && v.Sparing { // it is tried again by itself
				otherwise := p.PromisedOtherwise(v)
				if otherwise || p.Item == nil && !p.Here() && v.Unread.Why() == "" { // only a list of before named it
					settled = append(settled, p.Loc)
				}
				if !otherwise {
					p.SeeFault(v, now)
					continue
				}
			}
			replaces := moves.To(p.Loc)
			switch {
			case p.There() && p.Here():
				is, _ := p.Item.Differs(p.Record)
				doubtful := f != nil && (f.List || f.Came != "" && (is != item.ProvenSame || f.Run == d.applier.RunName()))
				sparing := v.Sparing && is != item.Different && !(p.Record.Has(ledger.FlagNotRDF) && obtains.MayBeList(p.Item)) // else it may have become a list of them
				if !doubtful && (is.Same(o.Followed()) || sparing) && !(r.dry && r.wouldAskAgain(ctx, p.Loc, p.Record)) {
					if moved := p.Item.Via != "" && p.Item.Via != p.Record.Via; (len(replaces) == 0 && !moved) || r.dry {
						unchanged += 1 - p.Record.Unselected()
						outside += p.Record.Unselected()
						if is == item.Unknown || is == item.SameLength {
							unasked++
						}
					} else {
						rec, it := p.Record, p.Item
						if moved { // its first source has it elsewhere
							rec.ComesVia(it.Via)
						}
						if !yield(apply.Replacing(apply.Known(it, rec), replaces), nil) {
							return
						}
					}
					continue // its pending try is settled
				}
				planned.Became(p.Record, d.expected(p.Item), false)
			case p.There() && len(replaces) > 0:
				planned.Moved++
			case p.There():
				planned.Became(nil, d.expected(p.Item), false)
			case p.Here():
				switch {
				case p.Item != nil:
					told = append(told, p.Loc)
					toldOutside += p.Record.Unselected()
				case !v.Untold(p.Record):
					gone = append(gone, p.Loc)
					goneOutside += p.Record.Unselected()
				}
				continue
			default:
				continue
			}
			if f != nil {
				settled = settled[:len(settled)-1]
			}
			if f != nil && (f.Came != "" && f.Run == d.applier.RunName() || !r.atOnce && d.stand.Pauses(ctx, f, d.lim.apply.RetryMax)) && len(replaces) == 0 {
				frees := false // its reason is over
				if f.Unread {
					one, err := lives.One(ctx)
					if err != nil {
						yield(nil, err)
						return
					}
					frees = one == ""
				}
				if it, err := item.Decode(f.Item); err == nil && !frees && it.SamePromise(p.Item) {
					p.SeeFault(v, now)
					continue // its pause is not over
				}
			}
			p.Item.Ask.Tried = true
			if r.dry {
				if !r.plan.base && d.needed(p.Item) {
					r.plan.Fetch(p.Item.Promise.Length)
				}
				continue
			}
			if !yield(apply.Replacing(apply.JobOf(obtains.Job(p.Item)), replaces), nil) {
				return
			}
		}
	}
	n := int64(0)
	err = d.applier.Pipeline(ctx, jobs, func(out *apply.Outcome) error {
		if n++; n%100 == 0 {
			d.opt.Progress("resources", n, total)
		}
		r.note(out)
		return b.Take(ctx, out)
	})
	if err != nil {
		return nil, errors.Join(err, flushAfter(ctx, b, err))
	}
	if n := moves.Len(); n > 0 {
		r.why("%d entities have another address", n)
	}
	v.Unread.Add(b.Lacks())
	if why := v.Unread.Hold(len(gone), "listed"); why != "" {
		r.why("%s", why)
		gone, goneOutside = nil, 0
	}
	empty := v.Listed == 0 && (v.Until.IsZero() || !v.Alone())
	if r.dry {
		r.plan.gone, r.plan.empty = int64(len(gone))-goneOutside, empty && len(gone) > 0
		for _, loc := range gone {
			how, err := lives.leaving(ctx, loc, &v.Unread)
			if err != nil {
				return nil, err
			}
			if how.Unread {
				r.plan.unread++
			}
		}
		planned.Outside += outside + goneOutside + toldOutside
		planned.Deleted += int64(len(gone)+len(told)) - goneOutside - toldOutside
		planned.Unchanged = unchanged
		r.plan.counts = planned
		total := held - heldOutside - planned.Deleted - int64(moves.Len()) + planned.Created + planned.Moved
		r.plan.total = &total
		r.complete = true
		return func(*keep.Meta) {}, nil
	}
	confirmed := n == 0 && len(told)+len(gone) == 0 && v.Listed > 0 && !faulty
	for _, loc := range told {
		if err := b.Leave(ctx, loc, nil, ledger.Leaving{}); err != nil {
			return nil, err
		}
	}
	for _, loc := range gone {
		how, err := lives.leaving(ctx, loc, &v.Unread)
		if err != nil {
			return nil, err
		}
		if how.Empty = empty; how.Unread { // asked again by each run
			v.Unread.Owed = "some resources without an entry may be in a further list"
		}
		if err := b.Leave(ctx, loc, nil, how); err != nil {
			return nil, err
		}
	}
	for _, loc := range settled {
		rec, err := d.mem.Ledger.Record(ctx, loc)
		if err == nil {
			err = b.Add(ctx, &apply.Op{Loc: loc, Record: rec, Settle: true})
		}
		if err != nil {
			return nil, err
		}
	}
	if err := b.Settle(ctx); err != nil {
		return nil, err
	}
	if err := d.leavings.stay(ctx, v, snap); err != nil {
		return nil, err
	}
	r.c.Outside += outside
	r.c.Unchanged += unchanged // not before: a batch being written counts too
	if v.Overlaid || !o.Followed() {
		r.complete = true
	}
	r.list.passed = v.Passed
	return func(m *keep.Meta) {
		m.HeldGap = ""
		proven := confirmed || !v.Until.IsZero()
		m.At.Take(v, !proven)
		m.CompareSource = v.Unread.Owed
		m.Recheck = d.recheckAfter(proven)
		if unasked == 0 && v.Until.IsZero() {
			m.AskedAll = now.UTC()
		}
	}, nil
}

// underWay forgets the list or dump of the mirror. After an interruption the mirror is of none, and the
// former list is read anew if the source has it again. With changes, part of the mirror may then be ahead
// of the cursor: the next run compares it again.
func (r *run) underWay(ctx context.Context, o *feed.Offer) error {
	d := r.d
	m := d.mem.SnapshotMeta()
	if at := m.At.ListTime(); !at.IsZero() {
		r.list.before = at
	}
	if r.dry {
		return nil
	}
	return d.mem.SaveMeta(ctx, func(m *keep.Meta) {
		m.At.ForgetList()
		if m.Stage == ledger.Following && o.Followed() {
			m.OweSource("a comparison with the source was not finished")
		}
	})
}

// note counts further numbers of a report.
func (r *run) note(o *apply.Outcome) {
	if o.NotRDF && !r.d.stand.Holds(o.Record) { // a folder has it like any other
		r.notRDF++
	}
	if o.Patched {
		r.rep.Patched++
	}
}

// flushAfter keeps the resources fetched before a run broke off, if possible.
func flushAfter(ctx context.Context, b *apply.Batcher, err error) error {
	if ctx.Err() != nil || errors.Is(err, errInjected) || !errors.Is(err, feed.ErrSourceGone) {
		return nil
	}
	return b.Settle(ctx)
}

// dumpIf loads the packages of a Resource Dump if it is wanted; else it is feed.ErrStale. A broken resource
// of a package is fetched from its own location. The inventory has only the times.
func (r *run) dumpIf(ctx context.Context, o *feed.Offer, when feed.When, wanted func(*feed.Inventory) (bool, error)) (func(*keep.Meta), error) {
	d := r.d
	began := d.opt.Now()
	dump, err := d.src.OpenDump(ctx, o, when)
	if err != nil {
		return nil, err
	}
	defer dump.Close()
	r.leftOut = dump.LeftOut
	switch ok, err := wanted(dump.Inventory); {
	case err != nil:
		return nil, err
	case !ok:
		return nil, feed.ErrStale
	}
	if err := dump.List(ctx); err != nil {
		return nil, err
	}
	packages := dump.Packages
	// Without a list the copies of the manifests say as much.
	singly := o.ResourceList == "" && dump.HasManifests()
	if i := slices.IndexFunc(packages, func(p feed.Package) bool { return !p.IsZIP() }); i >= 0 {
		if !singly {
			return nil, fmt.Errorf("Resource Dump: package %s is of type %q, and only ZIP packages are read", clip.Middle(packages[i].URL), packages[i].Promise.Type)
		}
		r.why("package %s is of type %q and no ZIP, so what its manifest tells is fetched one by one", clip.Middle(packages[i].URL), packages[i].Promise.Type)
		return r.compare(ctx, o, when)
	}
	if r.dry {
		return r.planDump(ctx, o, dump)
	}
	r.compared = true
	if err := r.underWay(ctx, o); err != nil {
		return nil, err
	}
	b := d.applier.Batch(ctx, &r.c, d.mem.Meta.Stage == ledger.Baseline) // else no write by Graph Store POST would count
	b.Compares()
	defer b.Wait()
	var listed *extsort.Sorter  // nil: all records will be from this dump, and nothing is pending
	var suspect *extsort.Sorter // new members, perhaps lists
	if !b.IsFirst() || !d.mem.Ledger.NoFaults() {
		if listed, err = extsort.New(d.cfg.TempDir, d.cfg.MemoryBytes/4); err != nil {
			return nil, err
		}
		defer listed.Close()
		if suspect, err = extsort.New(d.cfg.TempDir, 0); err != nil {
			return nil, err
		}
		defer suspect.Close()
	}
	n := int64(0)
	var bad error // of the first broken package; the others are read all the same
	inRow, read := 0, int64(0)
	if len(packages) == 1 {
		r.plans("packages", "resources")
	} else {
		r.plans("packages")
	}
	d.opt.Progress("packages", read, int64(len(packages)))
	for p, err := range dump.Open(ctx) {
		if err == nil {
			total := int64(len(p.ZIP.Names())) - 1 // without the manifest
			err = r.loadPackage(ctx, p, listed, func(out *apply.Outcome) error {
				if n++; n%1000 == 0 && len(packages) == 1 { // several are counted as packages
					if n > total { // some have no member of their own
						total = 0
					}
					d.opt.Progress("resources", n, total)
				}
				r.note(out)
				dump.Inventory.Look(out.Item)
				if listed != nil && d.obtains.Suspect(ctx, &out.Outcome) {
					loc := ledger.HashOf(out.Item.Loc)
					if err := suspect.Add(loc[:], out.Item.Encode()); err != nil {
						return err
					}
				}
				return b.Take(ctx, out)
			})
		}
		if read++; len(packages) > 1 {
			d.opt.Progress("packages", read, int64(len(packages)))
		}
		if err == nil {
			inRow = 0
			continue
		}
		err = fmt.Errorf("package %s: %w", clip.Middle(p.URL), err)
		if of := (*feed.PackageError)(nil); !errors.As(err, &of) || ctx.Err() != nil || errors.Is(err, feed.ErrSourceGone) || errors.Is(err, errInjected) {
			return nil, errors.Join(err, flushAfter(ctx, b, err))
		}
		d.mem.Log.Warn("a package of the Resource Dump cannot be used", "package", p.URL, "error", err)
		bad = cmp.Or(bad, err)
		if inRow++; inRow == badPackages {
			break
		}
	}
	if err := b.Settle(ctx); err != nil {
		return nil, errors.Join(bad, err)
	}
	if bad != nil {
		if !singly {
			return nil, bad
		}
		r.why("a package cannot be used (%v), so what is still missing is fetched one by one", bad)
		return r.compare(ctx, o, when)
	}
	if err := r.dropUnlisted(ctx, b, &dump.Inventory.Unread, listed, suspect); err != nil {
		return nil, err
	}
	if !o.Followed() {
		r.complete = true
	}
	return func(m *keep.Meta) {
		m.HeldGap = ""
		m.At.Take(dump.Inventory, true)
		m.CompareSource = dump.Inventory.Unread.Owed
		m.Recheck = d.recheckAfter(false)
		m.AskedAll = began.UTC()
	}, nil
}

// badPackages in a row end the tries.
const badPackages = 3

// loadPackage streams the manifest of a package.
func (r *run) loadPackage(ctx context.Context, p *feed.OpenedPackage, listed *extsort.Sorter, each func(*apply.Outcome) error) error {
	d := r.d
	return d.applier.Pipeline(ctx, func(yield func(apply.Job, error) bool) {
		for it, err := range p.Items() {
			if err == nil {
				err = list(listed, it)
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(apply.JobOf(d.obtains.Member(p.ZIP, it)), nil) {
				return
			}
		}
	}, each)
}

// list notes a resource of a dump, by location and entity.
func list(listed *extsort.Sorter, it *item.Item) error {
	if listed == nil {
		return nil
	}
	loc := ledger.HashOf(it.Loc)
	var entity []byte
	if it.Entity != "" {
		h := ledger.HashOf(it.Entity)
		entity = h[:]
	}
	return listed.Add(loc[:], entity)
}

// dropUnlisted lets resources leave if a fully read dump does not have them.
func (r *run) dropUnlisted(ctx context.Context, b *apply.Batcher, unread *feed.Unread, listed, suspect *extsort.Sorter) error {
	d := r.d
	if listed == nil {
		return nil
	}
	var gone pairs.Departures
	known := "" // a member
	snap := d.mem.Store.Snapshot(ctx)
	defer snap.Close()
	next, stop := pull(listed)
	defer stop()
	have, ok, err := next()
	for loc, rec := range d.mem.Ledger.Records(ctx, snap) {
		if rec.Err != nil {
			return rec.Err
		}
		for err == nil && ok && string(have[:]) < string(loc[:]) {
			have, ok, err = next()
		}
		if err != nil {
			return err
		}
		if rec.Has(ledger.FlagKept) || rec.Has(ledger.FlagFile) { // a dump has no files
			continue
		}
		if !ok || have != loc {
			gone.Add(loc, rec.Record)
		} else if known == "" {
			known = rec.Loc
		}
	}
	stop()
	gone, err = d.moveUnlisted(ctx, b, listed, gone)
	if err != nil {
		return err
	}
	lives := newLiving(d, gone)
	lives.known = func() string { return known }
	if err := r.doubt(ctx, b, suspect, lives); err != nil {
		return err
	}
	unread.Add(b.Lacks())
	if why := unread.Hold(len(gone), "in the dump"); why != "" {
		r.why("%s", why)
		gone = nil
	}
	for _, g := range gone {
		how, err := lives.leaving(ctx, g.Loc, unread)
		if err != nil {
			return err
		}
		how.Empty = listed.Len() == 0
		if err := b.Leave(ctx, g.Loc, nil, how); err != nil {
			return err
		}
	}
	if unread.Why() == "" {
		if err := d.settleUnlisted(ctx, b, listed); err != nil {
			return err
		}
	}
	return b.Settle(ctx)
}

// doubt makes the new members of a dump without RDF pending, if a resource without an entry lives.
func (r *run) doubt(ctx context.Context, b *apply.Batcher, suspect *extsort.Sorter, lives *living) error {
	if suspect.Len() == 0 {
		return nil
	}
	one, err := lives.One(ctx)
	if one == "" || err != nil {
		return err
	}
	return r.d.applier.Pipeline(ctx, func(yield func(apply.Job, error) bool) {
		for rec, err := range suspect.Sort() {
			var it *item.Item
			if err == nil {
				it, err = item.Decode(rec.Value)
			}
			if err == nil {
				it.Ask.Tried = true // in this run
			}
			if !yield(apply.JobOf(func(context.Context) *obtain.Outcome { return obtain.MaybeList(&obtain.Outcome{Item: it}, one) }), err) || err != nil {
				return
			}
		}
	}, func(out *apply.Outcome) error { return b.Take(ctx, out) })
}

// settleUnlisted forgets pending resources neither recorded nor in a dump: there is nothing to wait for.
func (d *Destination) settleUnlisted(ctx context.Context, b *apply.Batcher, listed *extsort.Sorter) error {
	next, stop := iter.Pull2(listed.Sort())
	defer stop()
	has, err, ok := next()
	for loc, f := range d.mem.Ledger.Faults(ctx) {
		for f.Err == nil && err == nil && ok && bytes.Compare(has.Key, loc[:]) < 0 {
			has, err, ok = next()
		}
		if err = cmp.Or(f.Err, err); err != nil {
			return err
		}
		if ok && bytes.Equal(has.Key, loc[:]) {
			continue
		}
		if it, err := item.Decode(f.Item); err != nil || it.File { // a dump has no files
			continue
		}
		rec, err := d.mem.Ledger.Record(ctx, loc)
		if err == nil && rec == nil {
			err = b.Add(ctx, &apply.Op{Loc: loc, Settle: true})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// pull reads the keys of a sorter one by one.
func pull(s *extsort.Sorter) (next func() (ledger.Hash, bool, error), stop func()) {
	step, stop := iter.Pull2(s.Sort())
	return func() (h ledger.Hash, ok bool, err error) {
		rec, err, ok := step()
		if ok && err == nil {
			copy(h[:], rec.Key)
		}
		return h, ok, err
	}, stop
}
