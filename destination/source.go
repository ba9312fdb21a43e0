package destination

import (
	"log/slog"
	"time"

	"github.com/rsbridge/rsbridge/destination/fetch"
	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/internal/settings"
)

// source reads one set of a source: its documents, lists, dumps and changes. It applies
// nothing, and its keeper keeps its position.
type source struct {
	opt     sourceOptions
	fetch   *fetch.Client
	lim     *limits
	log     *slog.Logger
	keeper  keeper
	plan    *planning           // of a dry run, nil of any other
	surveys map[string]surveyed // of the run under way: the lists of an index that had to be looked at
	lapses  lapses
}

type sourceOptions struct {
	Source, Set string
	Settings    settings.Names // of the settings in hints
	TempDir     string
	MemoryBytes int64
	EachChange  bool // a later change of a resource does not replace an earlier one
	Now         func() time.Time
	Progress    func(stage string, done, total int64)
}

// keeper keeps the position of a source between polls.
type keeper interface {
	position() position
	keep(change func(*position)) error // durably
	stage() ledger.Stage
}

// newSource reads for d.
func (d *Destination) newSource() *source {
	return &source{fetch: d.fetch, lim: d.lim, log: d.log, keeper: positionOf{d}, plan: d.planning,
		opt: sourceOptions{Source: d.cfg.Source, Set: d.cfg.Set, Settings: d.cfg.Settings, TempDir: d.cfg.TempDir, MemoryBytes: d.cfg.MemoryBytes,
			EachChange: d.cfg.Keep == "versions", Now: d.opt.Now, Progress: d.opt.Progress}}
}

// positionOf keeps a position in the record of a destination.
type positionOf struct{ d *Destination }

func (p positionOf) position() position { return p.d.snapshotMeta().position }

func (p positionOf) keep(change func(*position)) error {
	return p.d.saveMeta(func(m *meta) { change(&m.position) })
}

func (p positionOf) stage() ledger.Stage { return p.d.snapshotMeta().Stage }

// begins is the keeper of a source that was never read.
type begins struct{}

func (begins) position() position         { return position{} }
func (begins) keep(func(*position)) error { return nil }
func (begins) stage() ledger.Stage        { return ledger.None }
