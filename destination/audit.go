package destination

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/rsbridge/rsbridge/destination/feed"
	"github.com/rsbridge/rsbridge/destination/fetch"
	"github.com/rsbridge/rsbridge/destination/keep"
	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/destination/obtain"
	"github.com/rsbridge/rsbridge/destination/pairs"
	"github.com/rsbridge/rsbridge/internal/clip"
	"github.com/rsbridge/rsbridge/internal/extsort"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/rdfres"
)

// Audit compares the source's inventory with the records and, unless the depth is inventory, the records
// with the mirror's real triples; with the depth origin it fetches every resource again as well. Repair
// writes differing triples from the kept representations, removes extra ones, fetches resources changed at
// the source, and audits again: the report is of the second audit, Repaired of the differences gone since.
// An unreachable source ends an audit without anything else to compare. With the depth store the mirror is
// compared, and repaired, all the same, and the report says so.
func (d *Destination) Audit(ctx context.Context, o AuditOptions) (keep.AuditReport, error) {
	rep, err := d.audit(ctx, o)
	err = errors.Join(err, d.mem.Ledger.KeepCount(ctx))
	d.obtains.Settle()
	d.src.Settle()
	d.twins = nil
	d.repeats.Settle(d.mem.Log)
	if err != nil {
		return rep, fmt.Errorf("audit %s: %w", d.cfg.Name, err)
	}
	return rep, nil
}

func (d *Destination) audit(ctx context.Context, o AuditOptions) (keep.AuditReport, error) {
	start := d.opt.Now()
	rep := keep.AuditReport{Name: d.cfg.Name, Depth: o.Depth, Time: start.UTC()}
	switch o.Depth {
	case "":
		rep.Depth = "store"
	case "inventory", "store", "origin":
	default:
		return rep, fmt.Errorf("depth %q: inventory, store or origin", o.Depth)
	}
	d.fetch.Begin()
	if err := d.prober.ready(ctx); err != nil {
		return rep, err
	}
	if d.mem.SnapshotMeta().Stage == ledger.None {
		return rep, errors.New("nothing was mirrored yet: run sync first")
	}
	if err := d.applier.redo(ctx); err != nil {
		return rep, fmt.Errorf("finish the batch that was under way: %w", err)
	}
	if err := d.mem.Ledger.LookForLeaving(ctx); err != nil {
		return rep, err
	}
	if err := d.mem.Ledger.LookForDoubts(ctx); err != nil {
		return rep, err
	}
	if err := d.mem.Ledger.LookForFaults(ctx); err != nil {
		return rep, err
	}
	offer, err := d.discover(ctx)
	a := &auditRun{d: d, offer: offer, depth: rep.Depth, fix: o.Repair}
	if err := a.withoutSource(ctx, err); err != nil {
		return rep, err
	}
	if o.Repair || rep.Depth != "inventory" {
		cp, err := d.mirror.Checkpoint(ctx)
		switch {
		case err != nil:
		case cp != nil:
			m := d.mem.SnapshotMeta()
			err = d.mem.NoteCompare(ctx, m.OtherWrite(cp))
		case o.Repair:
			err = d.stand.IsTheMirror(ctx)
		}
		if err != nil {
			return rep, fmt.Errorf("read the checkpoint: %w", err)
		}
	}
	if err := a.once(ctx, &rep); err != nil {
		return rep, err
	}
	switch changed, err := d.prober.unexplained(ctx, a.unseen); {
	case err != nil:
		return rep, err
	case changed:
		a = &auditRun{d: d, offer: offer, depth: rep.Depth, fix: o.Repair, silent: a.silent}
		rep = keep.AuditReport{Name: rep.Name, Depth: rep.Depth, Time: rep.Time}
		if err := a.once(ctx, &rep); err != nil {
			return rep, err
		}
	}
	if o.Repair && rep.Findings()+a.fixed > 0 {
		first := rep
		if a.silent == nil && (a.sourceDiffers || a.refetch > 0) {
			r := &run{d: d, full: true, atOnce: true}
			if err := r.repairFromSource(ctx, offer); err != nil {
				return rep, fmt.Errorf("repair: %w", err)
			}
		}
		if a.silent == nil || a.refetch == 0 { // else a snapshot sink is not proven
			if err := d.putter.putWhole(ctx); err != nil {
				return rep, fmt.Errorf("repair: %w", err)
			}
		}
		a = &auditRun{d: d, offer: offer, depth: rep.Depth, second: true, silent: a.silent}
		rep = keep.AuditReport{Name: first.Name, Depth: first.Depth, Time: first.Time}
		if err := a.once(ctx, &rep); err != nil {
			return rep, err
		}
		if rep.Repaired = max(0, first.Findings()-rep.Findings()); rep.Repaired > 0 {
			rep.Mended = first.MendedBy(&rep)
		}
	}
	rep.Bytes = d.fetch.Received()
	rep.Seconds = math.Round(d.opt.Now().Sub(start).Seconds()*1000) / 1000
	kept := rep
	kept.Named, kept.Mended = firstNamed(kept.Named), firstNamed(kept.Mended)
	return rep, d.mem.SaveMeta(context.WithoutCancel(ctx), func(m *keep.Meta) {
		m.LastAudit = &kept
		if rep.Equal && rep.Depth != "inventory" {
			m.CompareMirror = ""
		}
		if rep.Equal {
			m.Recheck.Why = ""
		}
		if rep.Equal && rep.Depth == "origin" {
			m.AskedAll = start.UTC()
		}
		if a.unexplained {
			m.Recheck.Why = "an audit found differences from the source"
		}
		if rep.Depth != "inventory" {
			m.Damage = ""
		}
		if a.storeDiffers {
			m.Damage = "an audit found the mirror changed or incomplete; audit --repair restores it"
		}
	})
}

// firstNamed are the kept differences of a report.
func firstNamed(all []keep.Difference) []keep.Difference { return all[:min(len(all), 20)] }

// repairFromSource fetches resources changed at the source.
func (r *run) repairFromSource(ctx context.Context, o *feed.Offer) error {
	d := r.d
	if o.Listed() {
		v, err := d.src.ReadInventory(ctx, o, nil)
		if err != nil {
			return err
		}
		if c := d.mem.SnapshotMeta().Cursor; v.Stale(&c) {
			err = v.Close()
		} else {
			err = r.mend(ctx, o, v)
		}
		if err != nil {
			return err
		}
	}
	if err := r.increment(ctx, o, 0); err != nil {
		return err
	}
	err := r.retry(ctx)
	if err == nil {
		err = r.depart(ctx, !d.mem.SnapshotMeta().Until.IsZero())
	}
	return err
}

// auditRun is one pass of an audit.
type auditRun struct {
	d      *Destination
	offer  *feed.Offer
	depth  string
	fix    bool  // repair the mirror while comparing
	second bool  // after a repair: remaining differences are the store's own
	silent error // why the source could not be asked, nil while it can
	lost   error // why its changes, without a list, do not tell all of it
	older  bool  // the source's list is, and its changes do not reach back to it
	passed int64 // resources not compared with it: changed since
	listAt time.Time
	from   feed.Cursor        // the mirror's position
	root   *feed.InventoryDoc // of the source as the audit begins, nil for none
	ahead  bool               // it has unpublished changes
	untold int64              // resources without a measure, of a source without changes

	silently bool // findings are counted only
	taken    bool // the mirror was made equal to this very list

	events        *extsort.Sorter
	inventory     string // see AuditReport
	through       uint64 // of an inventory with a proof of all: its last change
	origins       atomic.Int64
	unasked       atomic.Int64 // origins on hosts without permission
	sourceDiffers bool
	unexplained   bool // a difference without a change for the next run
	storeDiffers  bool // from the records
	refetch       int64
	fixed         int64
	unseen        int64
	rewritten     rewrittenOnes
}

// event is one finding on a resource or an entity; several make a Difference.
type event struct {
	Entity   string `json:"e,omitempty"`
	Location string `json:"l,omitempty"`
	Graph    string `json:"g,omitempty"` // of the mirror, of a finding there
	Detail   string `json:"d"`
	Triples  int    `json:"n,omitempty"` // that lack, or are without an owner, as the one in Detail
	Broken   bool   `json:"b,omitempty"` // its kept representation is not as recorded
	Due      bool   `json:"a,omitempty"` // the next run applies a change of it, or tries it again
	Pending  bool   `json:"p,omitempty"` // it was received and not taken
	Came     string `json:"c,omitempty"` // the digest of an answer that the source did not announce
	Item     []byte `json:"i,omitempty"` // its entry
}

// Ranks of events: the first of a resource decides its kind.
const (
	rankMissing      = 1 // the source has it, the records do not
	rankExtra        = 2 // the records have it, the source does not
	rankDifferent    = 3 // both, otherwise
	rankNoSubject    = 4 // in the mirror, of a subject without an owner
	rankMirrorLacks  = 5 // triples of it are not in the mirror
	rankMirrorExcess = 6 // its subjects have triples without an owner in the mirror
	rankRewritten    = 7
	rankNoFile       = 8 // the records have it, the folder does not
	rankOtherFile    = 9 // its file has other bytes
)

// notMirrored is the finding of an audit about a missing resource.
const notMirrored = "the source has it, it is not mirrored"

func (a *auditRun) event(loc ledger.Hash, rank byte, e event) error {
	raw, err := json.Marshal(e)
	if err != nil {
		return err
	}
	return a.events.Add(append(append(make([]byte, 0, 17), loc[:]...), rank), raw)
}

func (a *auditRun) once(ctx context.Context, rep *keep.AuditReport) error {
	d := a.d
	var err error
	if a.events, err = extsort.New(d.cfg.TempDir, d.cfg.MemoryBytes/8); err != nil {
		return err
	}
	defer a.events.Close()
	if err := a.source(ctx); err != nil {
		return err
	}
	if a.depth != "inventory" {
		mc := &mirrorCompare{d: d, fix: a.fix, second: a.second, alone: a.silent != nil, event: a.event}
		if len(a.rewritten.recast) > 0 {
			mc.saw = a.rewritten.shows
		}
		if err := mc.run(ctx); err != nil {
			return err
		}
		a.fixed, a.refetch, a.unseen = mc.fixed, mc.refetch, mc.unseen
		rep.OtherGraphs = mc.others
	}
	return a.conclude(ctx, rep)
}

// sawRewritten counts resources with literals in the store's own form.
func (a *auditRun) sawRewritten(ctx context.Context, rec *ledger.Record) {
	if !rec.Has(ledger.FlagRewritten) {
		return
	}
	w := &a.rewritten
	if w.n++; len(w.named) == 20 {
		return
	}
	w.named = append(w.named, keep.Difference{Entity: rec.Entity, Location: rec.Loc, Kind: "rewritten", Detail: ownForm})
	sts, err := a.d.stand.RecordedStatements(ctx, ledger.HashOf(rec.Loc), rec)
	if err != nil {
		return // the audit tells the error
	}
	for _, st := range sts {
		if st.Recast && len(w.recast) < maxRecast {
			if w.recast == nil {
				w.recast = map[ledger.Hash]recast{}
			}
			w.recast[st.Hash] = recast{st.Triple, len(w.named) - 1}
		}
	}
}

// rewrittenOnes are resources with literals in the store's own form.
type rewrittenOnes struct {
	n      int64
	named  []keep.Difference
	recast map[ledger.Hash]recast
}

// recast is a statement in the store's own form, of a named resource.
type recast struct {
	sent  rdfres.Triple
	named int
}

const maxRecast = 1000

// shows names the mirror's form of a literal. The normal form is for comparing only.
func (w *rewrittenOnes) shows(h ledger.Hash, t rdfres.Triple) {
	if r, ok := w.recast[h]; ok && t.O != r.sent.O && w.named[r.named].Detail == ownForm {
		w.named[r.named].Detail = rewritingOf(r.sent, t.O)
	}
}

// ownForm is the finding about a resource with literals rewritten by the store.
const ownForm = "the store keeps literals of it in its own form"

// rewritingOf tells of one literal, with its datatype.
func rewritingOf(t rdfres.Triple, kept rdfres.Term) string {
	return fmt.Sprintf("%s, as %s for %s (%s)", ownForm, clip.Middle(string(kept)), clip.Middle(string(t.O)), clip.Middle(string(t.P)))
}

// withoutSource goes on after an error of the source if there is something to compare without it.
func (a *auditRun) withoutSource(ctx context.Context, err error) error {
	var gap *unprovenError
	if err == nil || ctx.Err() != nil || a.depth != "store" && !errors.As(err, &gap) {
		return err
	}
	a.d.mem.Log.Warn("audit: the source does not tell what it has; the mirror is compared with what is recorded", "error", err)
	a.silent = err
	return nil
}

// source compares the records with the present source: by its inventory if this proves them equal, else by
// its list, for the names of the differences.
func (a *auditRun) source(ctx context.Context) error {
	d := a.d
	a.from = d.mem.SnapshotMeta().Cursor
	if a.silent == nil {
		var err error
		a.root, err = d.src.InventoryRoot(ctx, a.offer)
		if err = a.withoutSource(ctx, err); err != nil {
			return err
		}
	}
	// Whether the inventory has named the differences: it knows nothing of files.
	told := false
	if a.silent == nil && (a.depth != "origin" || !a.listed() || a.root.Beyond(&a.from)) { // with a list, it asks for everything in any case
		var err error
		told, err = a.byInventory(ctx)
		if err == nil && a.inventory != "" {
			err = a.published(ctx, false)
		}
		if err = a.withoutSource(ctx, err); err != nil || told && (a.listed() || a.depth == "inventory") {
			return err
		}
		a.rewritten = rewrittenOnes{}
	}
	snap := d.mem.Store.Snapshot(ctx)
	defer snap.Close()
	v, err := a.list(ctx)
	if err != nil {
		if err := a.withoutSource(ctx, err); err != nil {
			return err
		}
		if v, err = a.list(ctx); err != nil {
			return err
		}
	}
	defer v.Close()
	if told {
		a.lost = nil
	}
	// A stale list counts only for unchanged resources: others were changed or deleted since,
	// and the remaining changes need not tell it. A time given as a minute or a day may mean
	// all of it.
	passed := func(p pairs.Pair) bool {
		if !a.older || p.Item != nil && p.Item.Change != "" {
			return false
		}
		if !p.Here() {
			return true
		}
		since := p.Record.Since()
		told := feed.Lasts(since)
		if a.taken && since.Equal(v.At) { // the mirror was equal to that list: the difference came after it, in its very instant
			return p.Fault == nil
		}
		return since.IsZero() || since.After(v.At) || told > time.Minute && !since.Add(told).Before(v.At)
	}
	n, unseen, kept := int64(0), int64(0), false
	if err := pairs.SeeFaults(ctx, d.mem.Ledger, v, d.opt.Now()); err != nil {
		return err
	}
	partial := v.Unread.Why()
	for p, err := range pairs.WithFaults(ctx, d.mem.Ledger, pairs.Of(ctx, d.mem.Ledger, v, snap)) {
		if err != nil {
			return err
		}
		if n++; n%4096 == 0 {
			d.opt.Progress("inventory", n, 0)
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		if p.Record != nil {
			a.sawRewritten(ctx, p.Record)
		}
		switch {
		case passed(p):
			kept = kept || p.Here() && !p.There()
			if p.Disagrees() || p.Fault != nil {
				a.passed++
			}
			continue
		case told && !p.File():
			continue
		case p.There() && p.Here():
			v, why := p.Item.Differs(p.Record)
			leaves, lerr := d.mem.Ledger.Leaving(ctx, p.Loc)
			if lerr != nil {
				return lerr
			}
			if (v == feed.Unknown || v == feed.SameLength) && !(p.Record.Has(ledger.FlagUnselected) && d.obtains.Select.Outside(p.Item)) {
				unseen++
			}
			switch {
			case v == feed.Different:
				err = a.event(p.Loc, rankDifferent, event{Entity: p.Record.Entity, Location: p.Record.Loc, Detail: "the source says " + why + faultNote(p.Fault)})
			case v != feed.ProvenSame && p.Fault != nil:
				err = a.notTaken(p)
			case v != feed.ProvenSame && v != feed.SeemsSame && leaves != nil && leaves.Becomes != nil:
				err = a.event(p.Loc, rankDifferent, event{Entity: p.Record.Entity, Location: p.Record.Loc, Detail: "the source has no description of it any more, and the mirror keeps the one before"})
			default:
				continue
			}
		case p.There():
			err = a.event(p.Loc, rankMissing, event{Entity: p.Item.Entity, Location: p.Item.Loc, Detail: notMirrored + faultNote(p.Fault)})
		case p.Fault != nil && p.Item == nil && a.silent == nil && !a.listed():
			err = a.notTaken(p)
		case p.Here() && p.Item == nil && partial != "":
			a.lost = errors.New(partial)
			continue
		case p.Here() && (a.listed() || p.Item != nil) && d.cfg.Keep != "deleted":
			err = a.event(p.Loc, rankExtra, event{Entity: p.Record.Entity, Location: p.Record.Loc, Detail: "it is mirrored, the source does not have it any more"})
		default:
			continue
		}
		if err != nil {
			return err
		}
		a.sourceDiffers = true
	}
	if m := d.mem.SnapshotMeta(); kept && m.HeldDeletions != nil && a.lost == nil { // it may be among the held ones
		a.lost = errors.New(m.HeldDeletions.Reason)
	}
	if a.silent == nil && !told {
		if err := a.published(ctx, v.Hole || a.older || unseen > 0 && a.depth != "origin"); err != nil {
			if err := a.withoutSource(ctx, err); err != nil {
				return err
			}
		}
	}
	switch {
	case a.ahead: // the present answer may be of unpublished changes
	case a.depth == "origin":
		return a.origin(ctx, v, snap)
	case a.silent == nil && d.mem.SnapshotMeta().Until.IsZero():
		if m := d.mem.SnapshotMeta(); !a.offer.Followed() && !(a.offer.ResourceList == "" && v.Taken(&m.Reading.Position) && m.CompareSource == "") { // a taken dump has them
			a.untold = unseen
		}
		return a.withoutSource(ctx, a.confirmTaken(ctx, snap))
	}
	return nil
}

// notTaken makes a finding of a resource the mirror could not take. The next run tries it.
func (a *auditRun) notTaken(p pairs.Pair) error {
	e := event{Entity: p.Fault.Entity, Location: p.Fault.Loc, Detail: "what the source has could not be taken" + faultNote(p.Fault), Due: true, Pending: true}
	if p.Here() {
		e.Entity = p.Record.Entity
		return a.event(p.Loc, rankDifferent, e)
	}
	return a.event(p.Loc, rankMissing, e)
}

// confirmTaken asks again for resources taken without a promise.
func (a *auditRun) confirmTaken(ctx context.Context, snap kv.Reader) error {
	d := a.d
	b := d.batcher(ctx, &counts{}, false)
	unknown := 0
	err := obtain.InOrder(ctx, d.cfg.Concurrency, d.doubted(ctx, snap, func(g *ledger.Doubt) bool { return g.Odd || g.Asked.IsZero() }), func(o *outcome) error {
		loc := ledger.HashOf(o.Item.Loc)
		switch {
		case o.Err != nil:
			if unknown++; a.lost == nil {
				a.lost = fmt.Errorf("%s was received once, without a promise, and cannot be confirmed: %w", clip.Middle(o.Item.Loc), o.Err)
			}
			return nil
		case o.confirms(d):
			b.confirm(loc, o.doubt)
			return nil
		case o.Record == nil:
			return nil
		}
		return a.otherAnswer(o)
	})
	if unknown > 0 {
		d.mem.Log.Warn("audit: what was received without a promise cannot be confirmed", "resources", unknown, "error", a.lost)
	}
	return errors.Join(err, b.writeMarks(ctx))
}

// listed tells whether the source has named all its resources.
func (a *auditRun) listed() bool {
	return a.silent == nil && a.offer.Listed()
}

// list reads the source's resources: everything, or, without a list, the changes since; nothing of an
// unreachable source.
func (a *auditRun) list(ctx context.Context) (v *feed.Inventory, err error) {
	d := a.d
	from := d.mem.SnapshotMeta().Cursor
	if a.listed() {
		if v, err = d.src.ReadInventory(ctx, a.offer, nil); err != nil {
			return nil, err
		}
		m := d.mem.SnapshotMeta()
		if err := unproven(v, &m); err != nil {
			return nil, errors.Join(err, v.Close())
		}
		for _, why := range v.Unusable {
			a.lost = errors.New(why)
		}
		if a.older = v.Stale(&from); a.older {
			a.listAt = v.At
			a.taken = v.Taken(&m.Reading.Position) && m.CompareSource == ""
			if m.Gap != "" {
				a.lost = errors.New(m.Gap)
			}
			d.mem.Log.Warn("audit: of what is mirrored of later changes the source's list tells nothing", "why", feed.ErrStale)
		}
		return v, nil
	}
	v = &feed.Inventory{}
	if v.Sorter, err = extsort.New(d.cfg.TempDir, d.cfg.MemoryBytes/2); err != nil || a.silent != nil || !a.offer.Followed() {
		return v, err
	}
	add := func(c feed.Change) error {
		if c.Item == nil {
			return nil
		}
		return v.Add(c.Item)
	}
	err = feed.Again(func() error {
		err := d.src.EachChange(ctx, a.offer, &from, true, add)
		var gap *feed.GapError
		if errors.As(err, &gap) {
			a.lost = fmt.Errorf("gap: %w; the source has no inventory to compare with", gap)
			if gap.Missing != nil { // resources may have been changed again there
				return nil
			}
			return d.src.EachChange(ctx, a.offer, &from, false, add)
		}
		if m := d.mem.SnapshotMeta(); m.Lost() != "" {
			a.lost = errors.New(m.Lost())
		}
		return err
	})
	if err != nil {
		return nil, errors.Join(err, v.Close())
	}
	return v, nil
}

// origin fetches every recorded resource again, from its present place, and compares the graphs.
func (a *auditRun) origin(ctx context.Context, v *feed.Inventory, snap kv.Reader) error {
	d := a.d
	jobs := func(yield func(job, error) bool) {
		for p, err := range pairs.Of(ctx, d.mem.Ledger, v, snap) {
			if err != nil {
				yield(nil, err)
				return
			}
			loc, rec := p.Loc, p.Record
			if rec == nil {
				continue
			}
			if rec.Has(ledger.FlagKept) || !d.stand.Holds(rec) {
				continue
			}
			it := recordedEntry(rec)
			it.LastMod, it.Time, it.Via = time.Time{}, time.Time{}, ""
			if rec.Has(ledger.FlagWireNames) {
				it.Promise.Graph = rec.Graph
			}
			if p.There() {
				it.Promise.Type = p.Item.Promise.Type
				for _, other := range p.Item.Others {
					if other.Promise.Type != p.Item.Promise.Type { // no copy: it may be a bad one
						other.Promise = fetch.Promise{Length: -1, Type: other.Promise.Type, Encoding: other.Promise.Encoding}
					}
					it.Others = append(it.Others, other)
				}
			}
			if rec.Has(ledger.FlagUnselected) && d.obtains.Select.Outside(it) { // of this nothing is in the mirror either, and nothing is fetched
				continue
			}
			entry := p.Item
			if !p.There() || a.older { // what the list says is of an earlier state
				entry = recordedEntry(rec)
			}
			if !yield(func(ctx context.Context) *outcome {
				o := &outcome{Outcome: *d.obtains.Obtain(ctx, it)}
				is := &ledger.Record{Loc: rec.Loc, Entity: rec.Entity}
				switch {
				case o.Err != nil && (ctx.Err() != nil || errors.Is(o.Err, fetch.ErrSourceGone)):
				case o.Err != nil:
					o = &outcome{Outcome: obtain.Outcome{Wire: []byte("at the source: " + clip.Middle(o.Err.Error()))}}
				case o.Record.Graph != rec.Graph && !(rec.Has(ledger.FlagNotRDF) && (rec.Graph.IsZero() || o.Record.Graph.IsZero())):
					is.Graph, is.Normal = o.Record.Graph, o.Record.Normal
					o = &outcome{Outcome: obtain.Outcome{Item: entry, Wire: []byte(otherGraph)}}
				default:
					o = &outcome{}
					if rec.Via == "" {
						break
					}
					if err := d.obtains.PlaceAllowed(rec.Via); err != nil {
						a.unasked.Add(1)
						d.mem.Log.Debug("audit: the first source is not asked", "loc", rec.Loc, "via", rec.Via, "error", err)
						break
					}
					a.origins.Add(1)
					why, err := d.obtains.FirstSource(ctx, rec, d.mirror.Layout.NormalForm)
					if err != nil {
						o.Err = err
					}
					if why != "" {
						o.Wire = []byte(why)
					}
				}
				o.Record, o.packed = is, loc[:]
				return o
			}, nil) {
				return
			}
		}
	}
	return obtain.InOrder(ctx, d.cfg.Concurrency, jobs, func(o *outcome) error {
		switch {
		case o.Wire == nil:
			return nil
		case o.Item != nil:
			return a.otherAnswer(o)
		}
		a.sourceDiffers = true
		return a.event(ledger.Hash(o.packed), rankDifferent, event{Entity: o.Record.Entity, Location: o.Record.Loc, Detail: string(o.Wire)})
	})
}

const otherGraph = "the source gives another graph than is recorded"

// otherAnswer makes a finding of an answer that differs from the record.
func (a *auditRun) otherAnswer(o *outcome) error {
	a.sourceDiffers = true
	e := event{Entity: o.Record.Entity, Location: o.Record.Loc, Detail: otherGraph}
	if a.d.mem.SnapshotMeta().Until.IsZero() {
		e.Came, e.Item = a.d.stand.StateOf(o.Record).String(), o.Item.Encode()
	}
	return a.event(ledger.HashOf(o.Record.Loc), rankDifferent, e)
}

// doubt makes an answer pending that no list or change told of: the source may err for a moment. A repair
// in the same run does not take it.
func (a *auditRun) doubt(ctx context.Context, b kv.Batch, loc ledger.Hash, e *event) (*ledger.Fault, error) {
	d := a.d
	f, err := d.mem.Ledger.Fault(ctx, loc)
	if err != nil || f != nil {
		return f, err
	}
	it, err := feed.DecodeItem(e.Item)
	if err != nil {
		return nil, err
	}
	came, err := rdfres.ParseDigest(e.Came)
	if err != nil {
		return nil, err
	}
	it.Tried = true
	f = d.applier.planner.faults.newFault(ctx, it, loc, &doubtfulError{"differs from what is recorded, and the source tells of no change", came})
	d.mem.Ledger.PutFault(b, loc, f)
	if d.mem.SnapshotMeta().CompareSource != "" {
		return f, nil
	}
	return f, d.mem.SaveMeta(ctx, func(m *keep.Meta) { m.OweSource("an audit found another description than recorded") })
}

// conclude makes one Difference of all events of a resource, keeps them, and
// counts.
func (a *auditRun) conclude(ctx context.Context, rep *keep.AuditReport) error {
	d := a.d
	m := d.mem.SnapshotMeta()
	rep.Resources, rep.Inventory, rep.Origins = m.Selected(), a.inventory, a.origins.Load()
	rep.Held = cmp.Or(m.Told(), m.Lost())
	if n := a.unasked.Load(); n > 0 {
		rep.Unasked = n
		d.mem.Log.Warn("audit: first sources are on hosts that are not allowed, and were not asked", "resources", n, "allow_by", d.cfg.Settings.Of("allow"))
	}
	beside, err := d.mem.CutOffBeside(ctx)
	if err != nil {
		return err
	}
	b := d.mem.Store.Batch()
	defer b.Close()
	prefix := ledger.Key(ledger.KindDiff, d.mem.Dest)
	b.DeleteRange(prefix, kv.PrefixEnd(prefix))
	var (
		have   ledger.Hash
		first  byte
		ev     event
		lacks  int
		excess int
		broken bool
		some   bool
		due    bool   // the source's own difference, if any
		came   *event // an answer that differs
		told   bool   // by a list or change
	)
	emit := func() error {
		if !some {
			return nil
		}
		diff := keep.Difference{Entity: ev.Entity, Location: ev.Location, Graph: ev.Graph, Detail: ev.Detail}
		if excess > 0 {
			diff.Detail = excessOf(excess, ev.Graph, ev.Detail)
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
				if all, err := d.stand.StatementCount(ctx, have); err == nil && lacks >= all {
					diff.Kind, diff.Detail = "missing", "none of its triples is in the mirror"
				}
			}
			if broken {
				diff.Detail += "; what is kept of it is not as recorded"
				if a.silent != nil {
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
			rec, err := d.mem.Ledger.Record(ctx, have)
			if err == nil && rec != nil && rec.Has(ledger.FlagRewritten) {
				return nil // counted with the normal form
			}
			rep.Rewritten++
		}
		if len(rep.Named) < d.lim.Named {
			rep.Named = append(rep.Named, diff)
		}
		raw, err := json.Marshal(diff)
		if err != nil {
			return err
		}
		b.Set(ledger.Key(ledger.KindDiff, d.mem.Dest, have), raw)
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
			have, first, lacks, excess, some, ev = loc, rank, 0, 0, true, e
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
			excess += e.Triples
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
		if len(rep.Named) < d.lim.Named {
			rep.Named = append(rep.Named, n)
		}
	}
	rep.SourceOlder = a.older && a.passed > 0
	switch unproven := cmp.Or(a.silent, a.lost); {
	case unproven != nil:
		rep.SourceError = unproven.Error()
	case a.ahead:
		rep.SourceError = fmt.Sprintf("the source stands at change %d and publishes its changes up to %d", a.root.Sequence, a.from.Number())
		rep.ProvenUntil = keep.OrNil(a.from.Time())
	case rep.SourceOlder:
		rep.ProvenUntil = keep.OrNil(a.listAt)
	case rep.Depth == "inventory" && m.Damage != "": // it compares with the records, and never reads the mirror
		rep.SourceError = m.Damage
	case a.untold > 0:
		rep.SourceError = fmt.Sprintf("of %d resources its list tells neither a hash nor an older lastmod, and it has no Change List; depth origin asks for each of them", a.untold)
		rep.ProvenUntil = keep.OrNil(m.AskedAll)
	}
	rep.Judge()
	return b.Commit(ctx, true)
}

// excessOf tells of triples without an owner, one of them by its line.
func excessOf(n int, graph, line string) string {
	in := ""
	if graph != "" {
		in = " in graph " + clip.Middle(graph)
	}
	if n == 1 {
		return fmt.Sprintf("the mirror has a triple%s that no resource owns: %s", in, line)
	}
	return fmt.Sprintf("the mirror has %d triples%s that no resource owns, one of them %s", n, in, line)
}
