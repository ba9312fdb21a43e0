package destination

import (
	"cmp"
	"context"
	"encoding/binary"
	"iter"
	"sync"

	"github.com/rsbridge/rsbridge/destination/feed"
	"github.com/rsbridge/rsbridge/destination/keep"
	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/destination/obtain"
	"github.com/rsbridge/rsbridge/destination/sink"
	"github.com/rsbridge/rsbridge/internal/clip"
	"github.com/rsbridge/rsbridge/internal/kv"
)

// outcome is an obtained resource on its way into a batch.
type outcome struct {
	obtain.Outcome
	sts      []sink.Statement // see prepare
	was      *former
	packed   []byte
	replaces []ledger.Hash // former locations of the entity
	doubt    *ledger.Doubt
}

// by makes a job of obtaining.
func by(obtain func(context.Context) *obtain.Outcome) job {
	return func(ctx context.Context) *outcome { return &outcome{Outcome: *obtain(ctx)} }
}

// known is the job of a resource that need not be fetched.
func known(it *feed.Item, rec *ledger.Record) job {
	return func(context.Context) *outcome { return &outcome{Outcome: obtain.Outcome{Item: it, Record: rec}} }
}

// job makes an outcome; jobs run beside each other.
type job = obtain.Task[*outcome]

// pipeline obtains resources and prepares them for a batch.
func (d *Destination) pipeline(ctx context.Context, jobs iter.Seq2[job, error], each func(*outcome) error) error {
	return obtain.InOrder(ctx, d.cfg.Concurrency, func(yield func(job, error) bool) {
		for j, err := range jobs {
			if !yield(func(ctx context.Context) *outcome {
				o := j(ctx)
				if o.Err == nil {
					d.applier.prepare(o)
				}
				return o
			}, err) {
				return
			}
		}
	}, each)
}

// prepare does the work on an outcome without a need for records, on all workers: hashes of the
// statements, compression.
func (ap *applier) prepare(o *outcome) {
	ts, err := o.Triples()
	if o.Parsed = nil; err == nil && len(ts) > 0 {
		if o.sts, err = ap.mirror.Layout.Statements(o.Record.Entity, ts); err == nil {
			o.Record.Normal = sink.DigestOf(o.sts)
		} else {
			o.sts = nil // told when the batch is made
		}
	}
	if len(o.Wire) > 0 {
		o.packed = ledger.Pack(o.Wire)
	}
}

// batcher collects ops into batches of a good size for the mirror. One batch is written while the
// next is collected. In a first baseline the one before it is recorded meanwhile. Batches never
// overtake each other. The caller ends with wait, on every path.
type batcher struct {
	d        *Destination
	c        *counts
	bulk     bool
	first    *newcomers // nothing was recorded before: most resources are new; else nil
	compacts bool       // those are kept small
	compares bool       // with all entries of a list
	unread   feed.Unread
	ops      []*op
	seen     map[ledger.Hash]bool
	triples  int
	bytes    int64
	limit    int // triples of one update, as it is while nothing is written
	most     int // triples of a batch of small ones, by how long the one before took

	recording *inFlight // the batch sent, being recorded; nil: none
	running   *inFlight // the one after it, being sent; nil: none
	held      holding

	marks kv.Batch // doubts, written before the batch; nil: none
}

// newcomers is a Bloom filter of the locations of a first baseline, with four bits for each. An
// unseen location has no record and need not be looked for. It takes 2 MiB. It has one in 500
// false positives at a million locations, two in three at ten million: those are looked for.
type newcomers [1 << 18]uint64

// add tells whether a location is certainly new.
func (n *newcomers) add(loc ledger.Hash) (fresh bool) {
	for i := 0; i < len(loc); i += 4 { // a hash: its parts are independent
		at := binary.BigEndian.Uint32(loc[i:]) >> 8
		word, bit := &n[at>>6], uint64(1)<<(at&63)
		fresh = fresh || *word&bit == 0
		*word |= bit
	}
	return fresh
}

// firstTriples are enough for the first of those batches: the mirror need not wait.
const firstTriples = 10_000

// earlyTriples are enough for a batch while none is being written: the mirror works early on beside
// the fetching. The further it falls behind, the larger are the batches.
const earlyTriples = 400

func (d *Destination) batcher(ctx context.Context, c *counts, bulk bool) *batcher {
	b := &batcher{d: d, c: c, bulk: bulk, seen: map[ledger.Hash]bool{}}
	if prefix := ledger.Key(ledger.KindResource, d.mem.Dest); bulk && d.mem.SnapshotMeta().Resources == 0 {
		b.first = &newcomers{}
		for range d.mem.Store.Scan(ctx, prefix, kv.PrefixEnd(prefix)) {
			b.first = nil // kept, or no RDF, or unreadable
			break
		}
	}
	b.compacts = b.canCompact()
	b.learnLimit()
	return b
}

// learnLimit is called while nothing is being written: a refused update makes it smaller.
func (b *batcher) learnLimit() {
	b.limit = max(b.d.mirror.Limit(), 50)
	b.learnPace()
}

// learnPace is called while nothing is being sent: a slow store makes it smaller.
func (b *batcher) learnPace() { b.most = max(b.d.mirror.Pace(), b.d.mirror.BulkTriples()) }

// outcome adds the outcome of fetching a resource.
func (b *batcher) outcome(ctx context.Context, o *outcome) error {
	if o.Item.Change == "deleted" && o.Err == nil && o.Record == nil && b.d.cfg.Keep != "deleted" {
		return b.leave(ctx, ledger.HashOf(o.Item.Loc), o.Item, ledger.Leaving{})
	}
	if err := b.weigh(ctx, o); err != nil {
		return err
	}
	p := &op{loc: ledger.HashOf(o.Item.Loc), it: o.Item, rec: o.Record, wire: o.Wire, raw: o.Raw, sts: o.sts, packed: o.packed, was: o.was, replaces: o.replaces, noValue: o.NoValue}
	switch f, err := b.d.mem.Ledger.Fault(ctx, p.loc); {
	case err != nil:
		return err
	case f != nil:
		p.replaces = ledger.Union(p.replaces, f.Replaces)
		if f.List && o.Err == nil { // what is not listed beside it may be gone now
			if err := b.d.mem.SaveMeta(ctx, func(m *keep.Meta) { m.OweSource("a list in the place of a resource is none any more") }); err != nil {
				return err
			}
			if !b.compares && len(o.Wire) == 0 { // what it names counts beside the entries only
				f.Next = b.d.opt.Now().UTC()
				return b.add(ctx, &op{loc: p.loc, it: o.Item, fault: f})
			}
		}
	}
	if o.Err != nil {
		b.d.mem.Log.Warn("resource is pending", "loc", clip.Middle(o.Item.Loc), "error", o.Err)
		p.rec, p.wire, p.was = nil, nil, nil
		p.fault = b.d.applier.planner.faults.newFault(ctx, o.Item, p.loc, o.Err, p.replaces...)
		b.unread.Fails(p.fault, b.d.opt.Now())
	}
	if leaves, err := b.empties(ctx, p, o.Empty); leaves || err != nil {
		return err
	}
	return b.add(ctx, p)
}

// add takes an op. If enough ops are collected, they go to the mirror before it: the last op stays
// for the flush with the new position, so the mirror has the position too.
func (b *batcher) add(ctx context.Context, p *op) error {
	if b.seen[p.loc] || b.full() { // one op for each resource; order is kept
		if err := b.flush(ctx, nil); err != nil {
			return err
		}
	}
	if b.early() {
		if err := b.flush(ctx, nil); err != nil {
			return err
		}
	}
	p.fresh = b.first != nil && (b.first.add(p.loc) || b.isNew(ctx, p.loc))
	if p.fresh && len(p.replaces) == 0 && b.compacts {
		p.compact(b.d.mirror)
	}
	b.collect(p)
	return nil
}

// collect counts an op to those of the next batch.
func (b *batcher) collect(p *op) {
	b.seen[p.loc] = true
	b.ops = append(b.ops, p)
	switch {
	case p.was != nil && p.rec != nil:
		b.triples += differing(p.was.sts, p.sts)
	case p.rec != nil && p.fresh:
		b.triples += int(p.rec.Triples)
	case p.rec != nil:
		b.triples += 2 * int(p.rec.Triples) // the old ones may go
	default:
		b.triples += 20 // deletions are read from the records
	}
	if b.d.cfg.Provenance {
		b.triples += keep.ProvenanceTriples
	}
	b.bytes += int64(len(p.wire) + len(p.raw))
	if p.small != nil {
		b.bytes += int64(len(p.packed)) + p.small.bytes()
	}
	if p.was != nil { // their size is not the size of the change
		b.bytes += int64(len(p.was.sts)+len(p.sts)) * statementBytes
	}
	b.triples += 20 * len(p.replaces)
}

// differing is how many statements one has and the other has not.
func differing(a, b []sink.Statement) int {
	in := make(map[ledger.Hash]bool, len(a))
	for i := range a {
		in[a[i].Hash] = true
	}
	n := len(in)
	for i := range b {
		if in[b[i].Hash] {
			n--
		} else {
			n++
		}
	}
	return n
}

// statementBytes is the rough size of a statement in memory, with its text.
const statementBytes = 250

// full tells whether no more may be collected for a batch.
func (b *batcher) full() bool {
	limit, ops, bytes := b.limit, 20_000, b.d.cfg.MemoryBytes/4
	if b.bulk && b.d.mirror.CanBulk() {
		limit = b.d.mirror.BulkTriples()
		switch {
		case b.running == nil:
			limit = firstTriples
		case b.compacts && b.d.mirror.TakesLong() && !b.idle():
			limit, ops, bytes = b.most, compactOps, b.d.cfg.MemoryBytes/2
		}
	}
	return b.triples >= limit || len(b.ops) >= ops || b.bytes > bytes
}

// early tells whether the collected ops make a batch because the mirror waits for one.
func (b *batcher) early() bool { return !b.bulk && b.triples >= earlyTriples && b.idle() }

// idle tells whether nothing is being sent to the mirror.
func (b *batcher) idle() bool {
	return b.running == nil || isClosed(b.running.sent)
}

// busy tells whether a batch with a location is being written.
func (b *batcher) busy(loc ledger.Hash) bool { return b.recording.has(loc) || b.running.has(loc) }

// flush writes the collected ops. With change it waits until everything is written, and commits
// change with the last batch, or alone without ops. Without change the writing goes on beside the
// caller, and its error comes from the next flush.
func (b *batcher) flush(ctx context.Context, change func(*keep.Meta)) error {
	if err := b.writeMarks(ctx); err != nil {
		return err
	}
	var ready *worked // of a later batch of a first baseline
	if b.running != nil && b.first != nil {
		ready = b.d.applier.content.ahead(ctx, b.ops, b.busy)
	}
	if err := b.makeWay(ready != nil && ready.posted && change == nil); err != nil {
		return err
	}
	if len(b.ops) == 0 {
		if change == nil {
			return nil
		}
		return b.d.mem.SaveMeta(ctx, change)
	}
	ops := b.ops
	f := &inFlight{locs: b.seen, before: b.recording, held: &b.held, sent: make(chan struct{}), done: make(chan struct{})}
	if f.before != nil {
		f.slot = 1 - f.before.slot
	}
	b.ops, b.triples, b.bytes, b.seen = nil, 0, 0, map[ledger.Hash]bool{}
	if change != nil {
		return b.d.applier.apply(ctx, f, ops, ready, b.c, b.bulk, change)
	}
	b.running = f
	go func() { // ends before wait returns
		defer close(f.done)
		defer f.markSent()
		f.err = b.d.applier.apply(ctx, f, ops, ready, b.c, b.bulk, nil)
	}()
	return nil
}

// makeWay waits until a batch may be written. An overlapping one may be written while the one
// before it is still being recorded, unless another destination waits for its turn.
func (b *batcher) makeWay(overlaps bool) error {
	if !overlaps || b.running == nil {
		return b.wait()
	}
	<-b.running.sent
	if b.recording != nil {
		<-b.recording.done
	}
	if isClosed(b.running.done) {
		return b.wait()
	}
	if b.recording != nil && b.recording.err != nil || b.d.mem.SpaceLock.Waiting.Load() > 0 {
		return b.wait()
	}
	b.recording, b.running = b.running, nil
	b.learnPace()
	return nil
}

// settle writes all collected ops and waits for them.
func (b *batcher) settle(ctx context.Context) error {
	if err := b.flush(ctx, nil); err != nil {
		return err
	}
	return b.wait()
}

// wait waits for the batches being written.
func (b *batcher) wait() (err error) {
	if b.running == nil && b.recording == nil {
		return nil
	}
	for _, f := range []*inFlight{b.recording, b.running} {
		if f != nil {
			<-f.done
			err = cmp.Or(err, f.err)
		}
	}
	b.recording, b.running = nil, nil
	b.learnLimit()
	return err
}

// inFlight is a batch being written.
type inFlight struct {
	slot   byte // of its intent
	locs   map[ledger.Hash]bool
	before *inFlight     // may still be being recorded while this one is sent; nil: there is none
	held   *holding      // nil: of its own
	sent   chan struct{} // closed: the mirror has done with it
	done   chan struct{} // closed: it is recorded, or err
	err    error

	told bool // sent is closed
}

func (f *inFlight) has(loc ledger.Hash) bool { return f != nil && f.locs[loc] }

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// markSent lets the next batch begin.
func (f *inFlight) markSent() {
	if !f.told && f.sent != nil {
		f.told = true
		close(f.sent)
	}
}

// inTurn waits until the batch before is recorded: nothing of this one is before it.
func (f *inFlight) inTurn(ap *applier) error {
	if f.before == nil {
		return nil
	}
	<-f.before.done
	if f.before = nil; ap.unfinished.Load() {
		return errUnfinished
	}
	return nil
}

// hold locks the space until release is called.
func (f *inFlight) hold(l *keep.SpaceLock) (release func()) {
	if f.held == nil {
		f.held = &holding{}
	}
	f.held.enter(l)
	return func() { f.held.leave(l) }
}

// holding is the lock of a space held by overlapping batches.
type holding struct {
	mu sync.Mutex
	n  int
}

func (h *holding) enter(l *keep.SpaceLock) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.n == 0 {
		l.Lock()
	}
	h.n++
}

func (h *holding) leave(l *keep.SpaceLock) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.n--; h.n == 0 {
		l.Unlock()
	}
}
