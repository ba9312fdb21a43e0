package destination

import (
	"context"

	"github.com/rsbridge/rsbridge/destination/keep"
	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/destination/sink"
)

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
