package destination

import "github.com/rsbridge/rsbridge/destination/ledger"

// newSource reads for d.
func (d *Destination) newSource() *source {
	o := sourceOptions{Source: d.cfg.Source, Set: d.cfg.Set, Client: d.fetch, Limits: &d.lim.readLimits, Settings: d.cfg.Settings, TempDir: d.cfg.TempDir, MemoryBytes: d.cfg.MemoryBytes,
		EachChange: d.cfg.Keep == "versions", Keeper: positionOf{d}, Now: d.opt.Now, Log: d.log, Progress: d.opt.Progress}
	if d.planning != nil {
		o.Plan = d.planning
	}
	return newSource(o)
}

// positionOf keeps a position in the record of a destination.
type positionOf struct{ d *Destination }

func (p positionOf) Position() readPosition { return p.d.snapshotMeta().readPosition }

func (p positionOf) Keep(change func(*readPosition)) error {
	return p.d.saveMeta(func(m *meta) { change(&m.readPosition) })
}

func (p positionOf) Stage() ledger.Stage { return p.d.snapshotMeta().Stage }
