package apply

import (
	"context"

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
		if o.fault != nil || o.Settle || o.Record == nil && ch.old == nil || o.Record == nil && pl.Config.Keep == "deleted" && !o.moved {
			continue
		}
		before, after := pl.ProvenanceOf(o.Loc, ch.old, source), pl.ProvenanceOf(o.Loc, o.Record, source)
		if ch.old != nil && ch.old.Graph.IsZero() { // forgotten: the present provenance is unknown
			p.ClearSubjects = append(p.ClearSubjects, pl.DescriptionOf(o.Loc))
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

// WithFormer reads the former state of a resource beside the others.
func (ap *Applier) WithFormer(j Job, loc ledger.Hash, rec *ledger.Record) Job {
	return func(ctx context.Context) *Outcome {
		o := j(ctx)
		if o.Err == nil {
			o.was, o.Before = ap.planner.former(ctx, loc, rec, o.Before), nil
		}
		return o
	}
}

// Replacing makes a job tell what its resource replaces.
func Replacing(j Job, locs []ledger.Hash) Job {
	if len(locs) == 0 {
		return j
	}
	return func(ctx context.Context) *Outcome {
		o := j(ctx)
		o.replaces = locs
		return o
	}
}
