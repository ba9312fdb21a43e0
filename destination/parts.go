package destination

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/rsbridge/rsbridge/destination/feed"
	"github.com/rsbridge/rsbridge/destination/fetch"
	"github.com/rsbridge/rsbridge/destination/keep"
	"github.com/rsbridge/rsbridge/destination/obtain"
	"github.com/rsbridge/rsbridge/destination/sink"
)

// The parts of a destination, each with the fields of its own question. All of them share
// the memory; none knows the Destination.

// prober learns how the mirror's store keeps literals, and keeps the ownership index in that form.
type prober struct {
	*keep.Memory
	stand  *keep.Standing
	opt    *keep.Options
	mirror *sink.Full
	probeL *sync.Mutex // held while the store is probed for the first time
}

// planner works batches out against the records.
type planner struct {
	*keep.Memory
	stand  *keep.Standing
	faults *faults
	cfg    *keep.Config
	lim    *limits
	mirror *sink.Full
}

// applier writes batches, the mirror first and then the records, and ends those of a crash.
type applier struct {
	*keep.Memory
	planner *planner
	fates   *keep.Fates
	cfg     *keep.Config
	opt     *keep.Options
	mirror  *sink.Full
	content content // form of resources in the mirror

	unfinished atomic.Bool // a batch of this run could not be written
}

// faults remembers resources that fail, and when they are tried again.
type faults struct {
	*keep.Memory
	lim   *limits
	opt   *keep.Options
	fetch *fetch.Client
}

// leavings weighs what would go.
type leavings struct {
	*keep.Memory
	cfg *keep.Config
}

// putter puts mirrors whole, and counts what they should hold.
type putter struct {
	*keep.Memory
	stand  *keep.Standing
	mirror *sink.Full
}

// assemble makes the parts, without a mirror yet.
func (d *Destination) assemble(mem *keep.Memory, target string) {
	probe, _ := spaces.LoadOrStore(target+"\x00probe", &sync.Mutex{})
	d.mem = mem
	d.fates = &keep.Fates{Memory: mem, Quiet: d.planning != nil}
	d.stand = &keep.Standing{Memory: mem, Fates: d.fates, Config: d.cfg, Options: d.opt, Target: target}
	plans := &planner{Memory: mem, stand: d.stand, faults: &faults{mem, d.lim, d.opt, d.fetch}, cfg: d.cfg, lim: d.lim}
	d.applier = &applier{Memory: mem, planner: plans, fates: d.fates, cfg: d.cfg, opt: d.opt}
	d.prober = &prober{Memory: mem, stand: d.stand, opt: d.opt, probeL: probe.(*sync.Mutex)}
	d.leavings = &leavings{mem, d.cfg}
	d.putter = &putter{Memory: mem, stand: d.stand}
}

// useMirror gives all parts the mirror.
func (d *Destination) useMirror(m *sink.Full) {
	d.mirror, d.stand.Mirror, d.prober.mirror, d.putter.mirror, d.applier.mirror, d.applier.planner.mirror = m, m, m, m, m, m
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
