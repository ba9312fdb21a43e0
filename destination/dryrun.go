package destination

import (
	"context"
	"errors"
	"time"

	"github.com/rsbridge/rsbridge/destination/apply"
	"github.com/rsbridge/rsbridge/destination/feed"
	"github.com/rsbridge/rsbridge/destination/item"
	"github.com/rsbridge/rsbridge/destination/keep"
	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/destination/obtain"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// A dry run is a run of a shadow: another Destination over the same records, without lasting writes. It
// reads source and mirror as any run does, and stops before the first representation. Nothing of it is left.

// Plan is the work of a sync, found by a dry run. The counts are those of the report. Facts unknown before
// the fetching are left out: lengths without a promise, and later changes.
type Plan struct {
	Store     string         `json:"store"`              // the mirror, by its name in the configuration
	Graph     string         `json:"graph"`              // to be filled: an IRI, a template of them, or "default"
	Resources *int64         `json:"resources"`          // in the mirror then; null: the source does not tell without being fetched
	Bytes     int64          `json:"bytes"`              // of packages and representations, by the source; at most, with patches or a Change Dump
	Unknown   int64          `json:"unknown,omitempty"`  // packages and representations of unknown length
	ByClass   bool           `json:"by_class,omitempty"` // selected by classes, unknown before descriptions are fetched: fewer may come
	Retry     int64          `json:"retry,omitempty"`    // pending resources to be tried again
	Triples   int64          `json:"triples,omitempty"`  // of the mirror, to be put right from the records
	Documents []PlanDocument `json:"documents"`          // to be taken, in this order
}

// PlanDocument is a list or dump with resources or changes for a sync.
type PlanDocument struct {
	Address string     `json:"address"`
	Kind    string     `json:"kind"`            // resourcedump, resourcelist, changelist, changedump (a package of it)
	At      *time.Time `json:"at,omitempty"`    // of a dump or list: when the source was so
	Entries int64      `json:"entries"`         // packages, resources, changes after the cursor
	Bytes   int64      `json:"bytes,omitempty"` // of a dump: its packages
}

// shadow is a Destination without lasting writes.
func (d *Destination) shadow(p *planning) (*Destination, error) {
	s := &Destination{planning: p, cfg: d.cfg, opt: d.opt, lim: d.lim, reads: d.reads, fetch: d.fetch, repeats: d.repeats, to: d.to, secrets: d.secrets}
	s.assemble(&keep.Memory{Store: kv.Forget(d.mem.Store), Ledger: d.mem.Ledger.Forgetful(), Dest: d.mem.Dest, Space: d.mem.Space, Log: d.mem.Log, SpaceLock: d.mem.SpaceLock, Meta: d.mem.SnapshotMeta()}, d.stand.Target)
	s.src = sourceOf(s)
	o := d.obtains.Options
	o.Packages, o.Ledger = s.src.packages, s.mem.Ledger
	s.obtains = obtain.New(o)
	place := *d.mirror.Place
	if err := s.openMirror(&place); err != nil || d.stand.Beside == nil {
		return s, err
	}
	beside := *d.stand.Beside.Place
	return s, s.useBeside(d.stand.Beside.Folder, &beside)
}

// known takes the kept probe of the mirror, and makes nothing. Probing an unknown one would write.
func (pr *prober) known(ctx context.Context) error {
	if pr.stand.Files != nil {
		if err := pr.stand.Files.Again(pr.stand.FirstFiles(), true); err != nil {
			return err
		}
	}
	if pr.mirror.Learner == nil {
		return nil
	}
	p, err := pr.probeRecord(ctx)
	if err != nil || p == nil {
		return err
	}
	return pr.mirror.Learner.Take(&p.Findings)
}

// planning fills the plan of a dry run.
type planning struct {
	Plan
	total   *int64         // resources of the mirror afterwards, nil if unknown
	base    bool           // a dump would be loaded
	at      time.Time      // of it
	whole   bool           // its counts have the changes after it
	changes map[string]int // index of a document, by address
	counts  apply.Counts
	gone    int64 // resources missing from a list
	empty   bool  // that list is empty
	unread  int64 // of them, those waiting beside a new entry without RDF
	lost    bool  // some data of the mirror can only be fetched again
}

func (p *planning) document(d PlanDocument) {
	p.Documents = append(p.Documents, d)
	p.Bytes += d.Bytes
}

// Document notes a list.
func (p *planning) Document(address string, kind resourcesync.Capability, at time.Time, entries int64) {
	p.document(PlanDocument{Address: address, Kind: string(kind), At: keep.OrNil(at), Entries: entries})
}

// Change counts a change of a list.
func (p *planning) Change(list string, kind resourcesync.Capability) {
	i, ok := p.changes[list]
	if !ok {
		if p.changes == nil {
			p.changes = map[string]int{}
		}
		i = len(p.Documents)
		p.changes[list] = i
		p.Documents = append(p.Documents, PlanDocument{Address: list, Kind: string(kind)})
	}
	p.Documents[i].Entries++
}

// planCompare compares the mirror without a repair. Resources with lost data are fetched by a baseline.
func planCompare(ctx context.Context, r *run, o *feed.Offer) error {
	d := r.d
	if err := d.stand.SameForm(ctx); errors.Is(err, keep.ErrProbedAnew) { // a sync first works out the owners of all triples
		return nil
	} else if err != nil {
		return err
	}
	c := d.comparison()
	c.Fix, c.Spare = false, true
	if err := c.Run(ctx); err != nil {
		return err
	}
	r.plan.Triples = c.Found.Fixed
	if err := d.mem.SaveMeta(ctx, func(m *keep.Meta) { m.Damage = "" }); err != nil { // of the shadow
		return err
	}
	if r.plan.lost = r.plan.lost || c.Found.Refetch > 0; c.Found.Refetch == 0 || r.compared || d.mem.SnapshotMeta().Stage != ledger.Following {
		return nil
	}
	r.full = true
	return r.baseline(ctx, o)
}

// wouldAskAgain tells whether a record would be forgotten: after a change of the configuration, or because its
// data is lost.
func (r *run) wouldAskAgain(ctx context.Context, loc ledger.Hash, rec *ledger.Record) bool {
	d := r.d
	return r.remapped || r.reselected && d.outdated(ctx, loc, rec) || r.plan.lost && d.stand.Lost(ctx, loc, rec)
}

// needed tells whether the bytes of a resource would be fetched.
func (d *Destination) needed(it *item.Item) bool {
	return d.obtains.Needed(it)
}

// Fetch counts a resource to be fetched.
func (p *planning) Fetch(length int64) {
	if length < 0 {
		p.Unknown++
	} else {
		p.Bytes += length
	}
}

// planDump plans the loading of a dump: from separate manifests, else from the Resource List. Later changes
// come from the Change Lists.
func (r *run) planDump(ctx context.Context, o *feed.Offer, dump *feed.Dump) (func(*keep.Meta), error) {
	d := r.d
	doc := PlanDocument{Address: o.ResourceDump, Kind: string(resourcesync.ResourceDump), At: keep.OrNil(dump.Inventory.At), Entries: int64(len(dump.Packages))}
	for _, p := range dump.Packages {
		if p.Promise.Length < 0 {
			r.plan.Unknown++
		} else {
			doc.Bytes += p.Promise.Length
		}
	}
	r.plan.document(doc)
	r.plan.base, r.plan.at = true, dump.Inventory.At
	v, err := dump.ReadManifests(ctx)
	if err != nil && ctx.Err() == nil {
		d.mem.Log.Info("the manifests of the dump cannot be had without its packages", "error", err)
		if v, err = nil, nil; o.ResourceList != "" {
			list := *o
			list.ChangeList, list.ChangeDump = "", ""
			v, err = d.src.ReadInventory(ctx, &list, feed.Always)
			r.plan.whole = true
		}
	}
	if err != nil {
		return nil, err
	}
	if v != nil {
		if _, err := r.compareWith(ctx, o, v); err != nil {
			return nil, err
		}
	}
	r.complete = true
	return func(m *keep.Meta) { m.At.MoveTo(feed.CursorAt(dump.Inventory.At, dump.Inventory.Sequence)) }, nil
}

// planChange counts the effect of a change.
func (r *run) planChange(ctx context.Context, it *item.Item) error {
	d := r.d
	rec, err := d.mem.Ledger.Record(ctx, ledger.HashOf(it.Loc))
	if err != nil {
		return err
	}
	if rec != nil && rec.Has(ledger.FlagKept) {
		rec = nil
	}
	there := rec != nil
	if r.plan.base { // the records are of before it
		there = it.Change != "created"
	}
	c, what, by := &r.plan.counts, (*int64)(nil), int64(0)
	if d.obtains.Select.Outside(it) || it.Change == "deleted" && rec.Unselected() > 0 {
		if c.Outside++; rec != nil && rec.Unselected() == 0 { // by another name than before
			c.Outside--
			c.Deleted++
		}
		return nil
	}
	switch {
	case r.plan.base && !it.Time.After(r.plan.at): // the dump has it
		what = &c.Unchanged
	case it.Change == "deleted" && there:
		what, by = &c.Deleted, -1
	case it.Change == "deleted":
		return nil
	case !there:
		what, by = &c.Created, 1
	default:
		what = &c.Updated
		if rec != nil && !r.plan.base {
			if v, _ := it.Differs(rec); v == item.ProvenSame {
				what = &c.Unchanged
			}
		}
	}
	if it.Change != "deleted" && what != &c.Unchanged && it.Package == "" && d.needed(it) {
		r.plan.Fetch(it.Promise.Length)
	}
	if r.plan.whole {
		return nil
	}
	*what++
	if r.plan.total != nil {
		*r.plan.total += by
	}
	return nil
}

// tellPlan puts the plan of a finished dry run into its report.
func (r *run) tellPlan() {
	d := r.d
	p := &r.plan
	p.ByClass = len(d.cfg.Select.Classes) > 0
	p.Store, p.Graph, p.Resources = d.to.Name(), d.stand.GraphName(), p.total
	if !p.base && p.total == nil {
		m := d.mem.SnapshotMeta()
		n := m.Selected() + r.plan.counts.Created - r.plan.counts.Deleted
		p.Resources = &n
	}
	if p.Documents == nil {
		p.Documents = []PlanDocument{}
	}
	r.rep.Plan, r.rep.Bytes = &p.Plan, p.Bytes
}
