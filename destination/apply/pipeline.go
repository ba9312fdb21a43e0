package apply

import (
	"cmp"
	"context"
	"encoding/binary"
	"iter"
	"sync"

	"github.com/rsbridge/rsbridge/destination/feed"
	"github.com/rsbridge/rsbridge/destination/item"
	"github.com/rsbridge/rsbridge/destination/keep"
	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/destination/obtain"
	"github.com/rsbridge/rsbridge/destination/sink"
	"github.com/rsbridge/rsbridge/internal/clip"
	"github.com/rsbridge/rsbridge/internal/kv"
)

// Outcome is an obtained resource on its way into a batch.
type Outcome struct {
	obtain.Outcome
	sts      []sink.Statement // see prepare
	was      *former
	packed   []byte
	replaces []ledger.Hash // former locations of the entity
	doubt    *ledger.Doubt
}

// JobOf makes a job of obtaining.
func JobOf(obtain func(context.Context) *obtain.Outcome) Job {
	return func(ctx context.Context) *Outcome { return &Outcome{Outcome: *obtain(ctx)} }
}

// Known is the job of a resource that need not be fetched.
func Known(it *item.Item, rec *ledger.Record) Job {
	return func(context.Context) *Outcome { return &Outcome{Outcome: obtain.Outcome{Item: it, Record: rec}} }
}

// Job makes an outcome; jobs run beside each other.
type Job = obtain.Task[*Outcome]

// Pipeline obtains resources and prepares them for a batch.
func (ap *Applier) Pipeline(ctx context.Context, jobs iter.Seq2[Job, error], each func(*Outcome) error) error {
	return obtain.InOrder(ctx, ap.Config.Concurrency, func(yield func(Job, error) bool) {
		for j, err := range jobs {
			if !yield(func(ctx context.Context) *Outcome {
				o := j(ctx)
				if o.Err == nil {
					ap.prepare(o)
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
func (ap *Applier) prepare(o *Outcome) {
	ts, err := o.Triples()
	if o.Parsed = nil; err == nil && len(ts) > 0 {
		if o.sts, err = ap.Mirror.Layout.Statements(o.Record.Entity, ts); err == nil {
			o.Record.Normal = sink.DigestOf(o.sts)
		} else {
			o.sts = nil // told when the batch is made
		}
	}
	if len(o.Wire) > 0 {
		o.packed = ledger.Pack(o.Wire)
	}
}

// Batcher collects ops into batches of a good size for the mirror. One batch is written while the
// next is collected. In a first baseline the one before it is recorded meanwhile. Batches never
// overtake each other. The caller ends with wait, on every path.
type Batcher struct {
	ap       *Applier
	c        *Counts
	bulk     bool
	first    *newcomers // nothing was recorded before: most resources are new; else nil
	compacts bool       // those are kept small
	compares bool       // with all entries of a list
	unread   feed.Unread
	ops      []*Op
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

func (ap *Applier) Batch(ctx context.Context, c *Counts, bulk bool) *Batcher {
	b := &Batcher{ap: ap, c: c, bulk: bulk, seen: map[ledger.Hash]bool{}}
	if prefix := ledger.Key(ledger.KindResource, ap.Dest); bulk && ap.SnapshotMeta().Resources == 0 {
		b.first = &newcomers{}
		for range ap.Store.Scan(ctx, prefix, kv.PrefixEnd(prefix)) {
			b.first = nil // kept, or no RDF, or unreadable
			break
		}
	}
	b.compacts = b.canCompact()
	b.learnLimit()
	return b
}

// learnLimit is called while nothing is being written: a refused update makes it smaller.
func (b *Batcher) learnLimit() {
	b.limit = max(b.ap.Mirror.Limit(), 50)
	b.learnPace()
}

// learnPace is called while nothing is being sent: a slow store makes it smaller.
func (b *Batcher) learnPace() { b.most = max(b.ap.Mirror.Pace(), b.ap.Mirror.BulkTriples()) }

// Take adds the outcome of fetching a resource.
func (b *Batcher) Take(ctx context.Context, o *Outcome) error {
	if o.Item.Change == "deleted" && o.Err == nil && o.Record == nil && b.ap.Config.Keep != "deleted" {
		return b.Leave(ctx, ledger.HashOf(o.Item.Loc), o.Item, ledger.Leaving{})
	}
	if err := b.weigh(ctx, o); err != nil {
		return err
	}
	p := &Op{Loc: ledger.HashOf(o.Item.Loc), Item: o.Item, Record: o.Record, wire: o.Wire, Raw: o.Raw, sts: o.sts, packed: o.packed, was: o.was, Replaces: o.replaces, noValue: o.NoValue}
	switch f, err := b.ap.Ledger.Fault(ctx, p.Loc); {
	case err != nil:
		return err
	case f != nil:
		p.Replaces = ledger.Union(p.Replaces, f.Replaces)
		if f.List && o.Err == nil { // what is not listed beside it may be gone now
			if err := b.ap.SaveMeta(ctx, func(m *keep.Meta) { m.OweSource("a list in the place of a resource is none any more") }); err != nil {
				return err
			}
			if !b.compares && (len(o.Wire) == 0 || o.Bare) { // what it names counts beside the entries only
				f.Next = b.ap.Options.Now().UTC()
				return b.Add(ctx, &Op{Loc: p.Loc, Item: o.Item, fault: f})
			}
		}
	}
	if o.Err != nil {
		b.ap.Log.Warn("resource is pending", "loc", clip.Middle(o.Item.Loc), "error", o.Err)
		p.Record, p.wire, p.was = nil, nil, nil
		p.fault = b.ap.planner.faults.newFault(ctx, o.Item, p.Loc, o.Err, p.Replaces...)
		b.unread.Fails(p.fault, b.ap.Options.Now())
	}
	if leaves, err := b.empties(ctx, p, o.Empty); leaves || err != nil {
		return err
	}
	return b.Add(ctx, p)
}

// Add takes an op. If enough ops are collected, they go to the mirror before it: the last op stays
// for the flush with the new position, so the mirror has the position too.
func (b *Batcher) Add(ctx context.Context, p *Op) error {
	if b.seen[p.Loc] || b.full() { // one op for each resource; order is kept
		if err := b.Flush(ctx, nil); err != nil {
			return err
		}
	}
	if b.early() {
		if err := b.Flush(ctx, nil); err != nil {
			return err
		}
	}
	p.fresh = b.first != nil && (b.first.add(p.Loc) || b.isNew(ctx, p.Loc))
	if p.fresh && len(p.Replaces) == 0 && b.compacts {
		p.compact(b.ap.Mirror)
	}
	b.collect(p)
	return nil
}

// collect counts an op to those of the next batch.
func (b *Batcher) collect(p *Op) {
	b.seen[p.Loc] = true
	b.ops = append(b.ops, p)
	switch {
	case p.was != nil && p.Record != nil:
		b.triples += differing(p.was.sts, p.sts)
	case p.Record != nil && p.fresh:
		b.triples += int(p.Record.Triples)
	case p.Record != nil:
		b.triples += 2 * int(p.Record.Triples) // the old ones may go
	default:
		b.triples += 20 // deletions are read from the records
	}
	if b.ap.Config.Provenance {
		b.triples += keep.ProvenanceTriples
	}
	b.bytes += int64(len(p.wire) + len(p.Raw))
	if p.small != nil {
		b.bytes += int64(len(p.packed)) + p.small.bytes()
	}
	if p.was != nil { // their size is not the size of the change
		b.bytes += int64(len(p.was.sts)+len(p.sts)) * statementBytes
	}
	b.triples += 20 * len(p.Replaces)
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

// Compares tells the batcher of a comparison with all entries of a list.
func (b *Batcher) Compares() { b.compares = true }

// IsFirst tells of a first baseline.
func (b *Batcher) IsFirst() bool { return b.first != nil }

// Lacks are the resources that could not be had.
func (b *Batcher) Lacks() feed.Unread { return b.unread }

// full tells whether no more may be collected for a batch.
func (b *Batcher) full() bool {
	limit, ops, bytes := b.limit, 20_000, b.ap.Config.MemoryBytes/4
	if b.bulk && b.ap.Mirror.CanBulk() {
		limit = b.ap.Mirror.BulkTriples()
		switch {
		case b.running == nil:
			limit = firstTriples
		case b.compacts && b.ap.Mirror.TakesLong() && !b.idle():
			limit, ops, bytes = b.most, compactOps, b.ap.Config.MemoryBytes/2
		}
	}
	return b.triples >= limit || len(b.ops) >= ops || b.bytes > bytes
}

// early tells whether the collected ops make a batch because the mirror waits for one.
func (b *Batcher) early() bool { return !b.bulk && b.triples >= earlyTriples && b.idle() }

// idle tells whether nothing is being sent to the mirror.
func (b *Batcher) idle() bool {
	return b.running == nil || isClosed(b.running.sent)
}

// busy tells whether a batch with a location is being written.
func (b *Batcher) busy(loc ledger.Hash) bool { return b.recording.has(loc) || b.running.has(loc) }

// Flush writes the collected ops. With change it waits until everything is written, and commits
// change with the last batch, or alone without ops. Without change the writing goes on beside the
// caller, and its error comes from the next flush.
func (b *Batcher) Flush(ctx context.Context, change func(*keep.Meta)) error {
	if err := b.writeMarks(ctx); err != nil {
		return err
	}
	var ready *worked // of a later batch of a first baseline
	if b.running != nil && b.first != nil {
		ready = b.ap.content.ahead(ctx, b.ops, b.busy)
	}
	if err := b.makeWay(ready != nil && ready.posted && change == nil); err != nil {
		return err
	}
	if len(b.ops) == 0 {
		if change == nil {
			return nil
		}
		return b.ap.SaveMeta(ctx, change)
	}
	ops := b.ops
	f := &inFlight{locs: b.seen, before: b.recording, held: &b.held, sent: make(chan struct{}), done: make(chan struct{})}
	if f.before != nil {
		f.slot = 1 - f.before.slot
	}
	b.ops, b.triples, b.bytes, b.seen = nil, 0, 0, map[ledger.Hash]bool{}
	if change != nil {
		return b.ap.apply(ctx, f, ops, ready, b.c, b.bulk, change)
	}
	b.running = f
	go func() { // ends before wait returns
		defer close(f.done)
		defer f.markSent()
		f.err = b.ap.apply(ctx, f, ops, ready, b.c, b.bulk, nil)
	}()
	return nil
}

// makeWay waits until a batch may be written. An overlapping one may be written while the one
// before it is still being recorded, unless another destination waits for its turn.
func (b *Batcher) makeWay(overlaps bool) error {
	if !overlaps || b.running == nil {
		return b.Wait()
	}
	<-b.running.sent
	if b.recording != nil {
		<-b.recording.done
	}
	if isClosed(b.running.done) {
		return b.Wait()
	}
	if b.recording != nil && b.recording.err != nil || b.ap.SpaceLock.Waiting.Load() > 0 {
		return b.Wait()
	}
	b.recording, b.running = b.running, nil
	b.learnPace()
	return nil
}

// Settle writes all collected ops and waits for them.
func (b *Batcher) Settle(ctx context.Context) error {
	if err := b.Flush(ctx, nil); err != nil {
		return err
	}
	return b.Wait()
}

// Wait waits for the batches being written.
func (b *Batcher) Wait() (err error) {
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
func (f *inFlight) inTurn(ap *Applier) error {
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
