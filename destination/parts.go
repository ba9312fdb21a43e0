package destination

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rsbridge/rsbridge/destination/feed"
	"github.com/rsbridge/rsbridge/destination/fetch"
	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/destination/obtain"
	"github.com/rsbridge/rsbridge/destination/sink"
	"github.com/rsbridge/rsbridge/internal/kv"
)

// The parts of a destination, each with the fields of its own question. All of them share
// the memory; none knows the Destination.

// memory is what a destination remembers.
type memory struct {
	store kv.Store
	led   *ledger.Ledger
	dest  ledger.ID
	space ledger.ID
	log   *slog.Logger

	mu     sync.Mutex // guards meta
	meta   meta
	writer string     // of this opening: numbers of writes come again after a backup was put back
	spaceL *spaceLock // held by the writer into the graph

	crash func(point string) error // tests: an error here is a crash there
}

// fates tells the log what becomes of changes.
type fates struct {
	*memory
	quiet bool
}

// standing tells whose the mirror is, and at which write it stands.
type standing struct {
	*memory
	fates  *fates
	cfg    *Config
	opt    *Options
	mirror *sink.Full
	files  *files  // of the mirror or beside it, nil for none
	beside *beside // the folder of resources without RDF, nil for none
	target string  // the mirror's address, without an access token
}

// prober learns how the mirror's store keeps literals, and keeps the ownership index in that form.
type prober struct {
	*memory
	stand  *standing
	opt    *Options
	mirror *sink.Full
	probeL *sync.Mutex // held while the store is probed for the first time
}

// planner works batches out against the records.
type planner struct {
	*memory
	stand  *standing
	faults *faults
	cfg    *Config
	lim    *limits
	mirror *sink.Full
}

// applier writes batches, the mirror first and then the records, and ends those of a crash.
type applier struct {
	*memory
	planner *planner
	fates   *fates
	cfg     *Config
	opt     *Options
	mirror  *sink.Full
	content content // form of resources in the mirror

	unfinished atomic.Bool // a batch of this run could not be written
}

// faults remembers resources that fail, and when they are tried again.
type faults struct {
	*memory
	lim   *limits
	opt   *Options
	fetch *fetch.Client
}

// leavings weighs what would go.
type leavings struct {
	*memory
	cfg *Config
}

// putter puts mirrors whole, and counts what they should hold.
type putter struct {
	*memory
	stand  *standing
	mirror *sink.Full
}

// assemble makes the parts, without a mirror yet.
func (d *Destination) assemble(mem *memory, target string) {
	probe, _ := spaces.LoadOrStore(target+"\x00probe", &sync.Mutex{})
	d.mem = mem
	d.fates = &fates{memory: mem, quiet: d.planning != nil}
	d.stand = &standing{memory: mem, fates: d.fates, cfg: d.cfg, opt: d.opt, target: target}
	plans := &planner{memory: mem, stand: d.stand, faults: &faults{mem, d.lim, d.opt, d.fetch}, cfg: d.cfg, lim: d.lim}
	d.applier = &applier{memory: mem, planner: plans, fates: d.fates, cfg: d.cfg, opt: d.opt}
	d.prober = &prober{memory: mem, stand: d.stand, opt: d.opt, probeL: probe.(*sync.Mutex)}
	d.leavings = &leavings{mem, d.cfg}
	d.putter = &putter{memory: mem, stand: d.stand}
}

// useMirror gives all parts the mirror.
func (d *Destination) useMirror(m *sink.Full) {
	d.mirror, d.stand.mirror, d.prober.mirror, d.putter.mirror, d.applier.mirror, d.applier.planner.mirror = m, m, m, m, m, m
}

// limits bound what a source can make us do. They are far above what an honest
// source sends, and each has its own message when it is met.
type limits struct {
	obtain.Limits

	retryFirst time.Duration // before a pending resource is tried again; doubles
	retryMax   time.Duration
	failAfter  int // tries after which pending becomes failed
	window     int // changes fetched and applied together
	few        int // triples that go by an update, with the checkpoint, and not by a Graph Store POST
	diffCap    int // triples of one subject held in memory by an audit
}

func defaultLimits() limits {
	return limits{
		Limits:     obtain.Limits{Limits: feed.DefaultLimits(), Triples: 5_000_000},
		retryFirst: 2 * time.Second, retryMax: time.Hour, failAfter: 3,
		window: 2000, few: 500, diffCap: 200_000,
	}
}
