package destination

import (
	"github.com/rsbridge/rsbridge/destination/feed"
	"github.com/rsbridge/rsbridge/destination/ledger"
)

// newSource reads for d.
func (d *Destination) newSource() *feed.Source {
	o := feed.Options{Source: d.cfg.Source, Set: d.cfg.Set, Client: d.fetch, Limits: &d.lim.Limits, Settings: d.cfg.Settings, TempDir: d.cfg.TempDir, MemoryBytes: d.cfg.MemoryBytes,
		EachChange: d.cfg.Keep == "versions", Keeper: positionOf{d}, Now: d.opt.Now, Log: d.log, Progress: d.opt.Progress}
	if d.planning != nil {
		o.Plan = d.planning
	}
	return feed.New(o)
}

// positionOf keeps a position in the record of a destination.
type positionOf struct{ d *Destination }

func (p positionOf) Position() feed.Position { return p.d.snapshotMeta().position.Position }

func (p positionOf) Keep(change func(*feed.Position)) error {
	return p.d.saveMeta(func(m *meta) { change(&m.position.Position) })
}

func (p positionOf) Stage() ledger.Stage { return p.d.snapshotMeta().Stage }
