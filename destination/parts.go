package destination

import (
	"sync"
	"time"

	"github.com/rsbridge/rsbridge/destination/apply"
	"github.com/rsbridge/rsbridge/destination/feed"
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

// leavings weighs what would go.
type leavings struct {
	*keep.Memory
	cfg *keep.Config
}

// assemble makes the parts, without a mirror yet.
func (d *Destination) assemble(mem *keep.Memory, target string) {
	probe, _ := spaces.LoadOrStore(target+"\x00probe", &sync.Mutex{})
	d.mem = mem
	d.fates = &keep.Fates{Memory: mem, Quiet: d.planning != nil}
	d.stand = &keep.Standing{Memory: mem, Fates: d.fates, Config: d.cfg, Options: d.opt, Target: target}
	d.applier = apply.New(d.stand, func() int64 { return d.fetch.Run() }, &d.lim.apply) // records alone have no source
	d.prober = &prober{Memory: mem, stand: d.stand, opt: d.opt, probeL: probe.(*sync.Mutex)}
	d.leavings = &leavings{mem, d.cfg}
	d.putter = &apply.Putter{Standing: d.stand}
}

// useMirror gives all parts the mirror.
func (d *Destination) useMirror(m *sink.Full) {
	d.mirror, d.stand.Mirror, d.prober.mirror = m, m, m
}

// limits bound what a source can make us do. They are far above what an honest
// source sends, and each has its own message when it is met.
type limits struct {
	obtain.Limits

	apply   apply.Limits
	window  int // changes fetched and applied together
	diffCap int // triples of one subject held in memory by an audit
}

func defaultLimits() limits {
	return limits{
		Limits: obtain.Limits{Limits: feed.DefaultLimits(), Triples: 5_000_000},
		apply:  apply.Limits{RetryFirst: 2 * time.Second, RetryMax: time.Hour, FailAfter: 3, Few: 500},
		window: 2000, diffCap: 200_000,
	}
}
