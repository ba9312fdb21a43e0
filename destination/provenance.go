package destination

import (
	"context"

	"github.com/rsbridge/rsbridge/destination/keep"
	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/destination/sink"
)

// planProvenance adds the changes of the provenance to a plan.
func (pl *planner) planProvenance(p *sink.Batch, changes []*delta) error {
	source := pl.SnapshotMeta().Provenance
	if source == "" {
		return nil
	}
	for _, ch := range changes {
		o := ch.op
		if o.fault != nil || o.settle || o.rec == nil && ch.old == nil || o.rec == nil && pl.cfg.Keep == "deleted" && !o.moved {
			continue
		}
		before, after := pl.stand.ProvenanceOf(o.loc, ch.old, source), pl.stand.ProvenanceOf(o.loc, o.rec, source)
		if ch.old != nil && ch.old.Graph.IsZero() { // forgotten: the present provenance is unknown
			p.ClearSubjects = append(p.ClearSubjects, pl.stand.DescriptionOf(o.loc))
			p.Add = append(p.Add, after...)
			continue
		}
		has := map[ledger.Hash]int{}
		for i := range before {
			has[before[i].Hash]++
		}
		for i := range after {
			if has[after[i].Hash] > 0 {
				has[after[i].Hash] = -1
			} else {
				p.Add = append(p.Add, after[i])
			}
		}
		for i := range before {
			if has[before[i].Hash] > 0 {
				p.Remove = append(p.Remove, before[i])
			}
		}
	}
	return nil
}

// provenanceMoved writes the provenance of everything, or removes it, after a change of its
// setting or of the source's address.
func (r *run) provenanceMoved(ctx context.Context) error {
	d := r.d
	m := d.mem.SnapshotMeta()
	source := ""
	if d.cfg.Provenance {
		source = d.cfg.Source
	}
	if m.Provenance == source {
		return nil
	}
	if m.Stage == ledger.None || !d.mirror.Tells() {
		return d.mem.SaveMeta(ctx, func(m *keep.Meta) { m.Provenance = source })
	}
	d.mem.SpaceLock.Lock()
	defer d.mem.SpaceLock.Unlock()
	d.mem.Log.Info("mirror: the provenance of all descriptions is written anew", "source", source)
	r.why("the provenance in the mirror is made anew")
	snap := d.mem.Store.Snapshot(ctx)
	defer snap.Close()
	p := &sink.Batch{}
	flush := func(least int) error {
		if len(p.ClearSubjects)+len(p.Add) < least {
			return nil
		}
		err := d.stand.WritePlan(ctx, p)
		p = &sink.Batch{}
		return err
	}
	for loc, rec := range d.mem.Ledger.Records(ctx, snap) {
		if rec.Err != nil {
			return rec.Err
		}
		if m.Provenance != "" {
			p.ClearSubjects = append(p.ClearSubjects, d.stand.DescriptionOf(loc))
		}
		p.Add = append(p.Add, d.stand.ProvenanceOf(loc, rec.Record, source)...)
		if err := flush(2000); err != nil {
			return err
		}
	}
	if err := flush(1); err != nil {
		return err
	}
	return d.mem.SaveMeta(ctx, func(m *keep.Meta) { m.Provenance = source })
}
