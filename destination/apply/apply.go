package apply

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strconv"

	"golang.org/x/sync/errgroup"

	"github.com/rsbridge/rsbridge/destination/fetch"
	"github.com/rsbridge/rsbridge/destination/item"
	"github.com/rsbridge/rsbridge/destination/keep"
	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/destination/obtain"
	"github.com/rsbridge/rsbridge/destination/sink"
	"github.com/rsbridge/rsbridge/internal/clip"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/rdfres"
)

// Op is the change of one resource in a batch.
type Op struct {
	Loc    ledger.Hash
	Item   *item.Item     // nil after a restart, and of small ones
	Record *ledger.Record // new state; nil: it goes
	wire   []byte
	Raw    []byte          // of a mirror of files
	fault  *ledger.Fault   // instead: it could not be had, and is remembered
	Settle bool            // instead: only forget the pending try
	leaves *ledger.Leaving // with settle: it is leaving from now on
	fresh  bool            // nothing is recorded of it

	noValue string // an expression of map that has no value for it

	Replaces []ledger.Hash // former locations of its entity: they go when it is stored
	moved    bool          // it goes because its entity has another location, delta.main

	sts    []sink.Statement // made ahead by a worker, with packed and was
	packed []byte
	was    *former
	small  *compacted // instead of sts and wire
}

// size is about how many bytes an intent and the tables get of it, without the
// ownership index.
func (o *Op) size() int {
	n := 200 + 20*len(o.Replaces)
	if o.Record != nil {
		n += o.Record.Size() + cmp.Or(len(o.packed), len(o.wire)/2)
	}
	return n
}

// former is the old state of a resource, read ahead by a worker. It is valid for the same record.
type former struct {
	Record *ledger.Record
	sts    []sink.Statement
}

// mostFormer is how many triples are read ahead for one resource.
const mostFormer = 1000

// former is nil if nothing can be read ahead: working out the batch tells the error. ts are the
// kept triples if they have been read; else nil.
func (pl *planner) former(ctx context.Context, loc ledger.Hash, rec *ledger.Record, ts []rdfres.Triple) *former {
	if rec.Triples == 0 || rec.Triples > mostFormer {
		return nil
	}
	var err error
	if ts == nil {
		if ts, err = pl.Ledger.Triples(ctx, loc, rec); err != nil {
			return nil
		}
	}
	rec.DropBody()
	sts, err := pl.Mirror.Layout.Statements(rec.Entity, ts)
	if err != nil {
		return nil
	}
	return &former{rec, sts}
}

// of tells whether it is the state of a record.
func (f *former) of(rec *ledger.Record) bool {
	return f != nil && bytes.Equal(f.Record.Encode(), rec.Encode())
}

func locsOf(ops []*Op) []ledger.Hash {
	locs := make([]ledger.Hash, len(ops))
	for i, o := range ops {
		locs[i] = o.Loc
	}
	return locs
}

// Counts of the effects of batches.
type Counts struct {
	Created, Updated, Deleted, Unchanged, Moved, refused int64
	Outside                                              int64  // of the selection, before and after
	Unmapped                                             int64  // descriptions of which map makes nothing
	Nothing                                              string // one of them
	MapErrors                                            int64  // descriptions for which an expression of map had no value
	MapError                                             string // one of them, and the expression
}

// Became counts the change of a resource, by its old and new place in the selection.
func (c *Counts) Became(old, rec *ledger.Record, same bool) {
	was, is := old != nil && !old.Has(ledger.FlagUnselected), rec != nil && !rec.Has(ledger.FlagUnselected)
	switch {
	case !was && !is:
		c.Outside++
	case same:
		c.Unchanged++
	case !was:
		c.Created++
	case !is:
		c.Deleted++
	default:
		c.Updated++
	}
}

// Changed is the number of changed resources.
func (c *Counts) Changed() int64 { return c.Created + c.Updated + c.Deleted + c.Moved }

func (c *Counts) add(n Counts) {
	c.Created += n.Created
	c.Updated += n.Updated
	c.Deleted += n.Deleted
	c.Unchanged += n.Unchanged
	c.Moved += n.Moved
	c.Outside += n.Outside
	if c.Unmapped += n.Unmapped; n.Unmapped > 0 {
		c.Nothing = n.Nothing
	}
	if c.MapErrors += n.MapErrors; n.MapErrors > 0 {
		c.MapError = n.MapError
	}
	c.refused += n.refused
}

// errOverlap is the error of two resources in one per-entity graph.
var errOverlap = errors.New("graph belongs to another resource")

// apply writes a batch: the mirror first, then the records. The intent is on disk before either: a
// crash anywhere between them is mended by redoing the batch. change moves the cursor in the same
// commit as the records. A resource refused by the mirror is taken out and remembered. ready is the
// batch worked out ahead, or nil.
func (ap *Applier) apply(ctx context.Context, f *inFlight, ops []*Op, ready *worked, c *Counts, bulk bool, change func(*keep.Meta)) error {
	defer f.hold(ap.SpaceLock)()
	if ap.unfinished.Load() {
		return errUnfinished
	}
	for i, o := range ops { // before an intent names them: what an interrupted batch wrote is removed
		if o.Raw == nil || o.Record == nil || o.fault != nil {
			continue
		}
		switch err := ap.Spares(ctx, o.Record.Loc, o.Raw); {
		case errors.Is(err, sink.ErrRefused):
			ap.Log.Warn("resource is not written", "loc", clip.Middle(o.Record.Loc), "error", err)
			ops[i], ready = ap.planner.faults.instead(ctx, o, err), nil
		case err != nil:
			return keep.MirrorError(err)
		}
	}
	err := ap.content.apply(ctx, f, ops, ready, c, bulk, change)
	if err != nil {
		ap.unfinished.Store(true)
	}
	return err
}

// errUnfinished keeps the intent of a batch, possibly in part in the mirror, until the next run has
// redone it.
var errUnfinished = errors.New("a batch before this one could not be written")

func (of descriptions) apply(ctx context.Context, f *inFlight, ops []*Op, ready *worked, c *Counts, bulk bool, change func(*keep.Meta)) error {
	ap := of.ap
	if err := ap.SameForm(ctx); err != nil {
		return err
	}
	if err := ap.keepFiles(ctx, f.slot, ops); err != nil {
		return err
	}
	err := ap.applyOnce(ctx, f, ops, ready, c, bulk, change)
	if err == nil || ctx.Err() != nil || !(ap.Mirror.Refused(err) || errors.Is(err, sink.ErrRefused)) {
		return err
	}
	// The mirror refuses something. If it refuses everything it is broken.
	if herr := ap.Mirror.Apply(ctx, &sink.Batch{}, ap.CheckpointOf(&ap.Meta)); herr != nil {
		return fmt.Errorf("the mirror takes no writes: %w", err)
	}
	writes := 0
	for _, o := range ops {
		if o.fault == nil && !o.Settle {
			writes++
		}
	}
	if err := expandAll(ops); err != nil {
		return err
	}
	if writes > 1 {
		// Parts of the whole may stand in the mirror already. Should this run end
		// between the halves, only a comparison would find them.
		before := ap.Meta.CompareMirror
		if err := ap.SaveMeta(ctx, func(m *keep.Meta) {
			m.CompareMirror = "a batch that the mirror refused was taken apart and not finished"
		}); err != nil {
			return err
		}
		half := len(ops) / 2
		if err := of.apply(ctx, f, ops[:half], nil, c, false, nil); err != nil {
			return err
		}
		return of.apply(ctx, f, ops[half:], nil, c, false, func(m *keep.Meta) {
			m.CompareMirror = before
			if change != nil {
				change(m)
			}
		})
	}
	for i, o := range ops {
		if o.fault != nil || o.Settle {
			continue
		}
		ap.Log.Warn("mirror: resource refused", "loc", ap.planner.faults.locOf(ctx, o), "error", err)
		if uerr := ap.undo(ctx, o); uerr != nil {
			return fmt.Errorf("%w (and taking it back: %w)", err, uerr)
		}
		if c.refused++; c.refused >= refusedAll && c.Created+c.Updated+c.Deleted == 0 {
			return fmt.Errorf("the mirror took none of the first %d resources, nothing more is sent: %w", c.refused, err)
		}
		refused := err
		if !errors.Is(err, sink.ErrRefused) {
			refused = fmt.Errorf("%w: %w", sink.ErrRefused, err)
		}
		ops[i] = ap.planner.faults.instead(ctx, o, refused)
	}
	return ap.applyOnce(ctx, f, ops, nil, c, false, change)
}

// refusedAll bounds the single refusals of a mirror without any accepted resource. Beyond it the
// mirror is at fault and not the resources.
const refusedAll = 5

func (fa *faults) locOf(ctx context.Context, o *Op) string {
	switch {
	case o.Record != nil:
		return o.Record.Loc
	case o.Item != nil:
		return o.Item.Loc
	}
	if r, err := fa.Ledger.Record(ctx, o.Loc); err == nil && r != nil {
		return r.Loc
	}
	return ""
}

// delta is one op worked out against the records.
type delta struct {
	op       *Op
	old      *ledger.Record
	oldSts   []sink.Statement
	newSts   []sink.Statement
	same     bool // nothing to write into the mirror
	lost     bool // the old representation cannot be read
	oldGraph string
	newGraph string
	main     *delta // of its entity's new location
	refused  bool
	leaves   int // locations going with it
}

// tellSink adds to a batch its changes by resource, and graphs as they are after it.
func (pl *planner) tellSink(p *sink.Batch, changes []*delta) {
	p.Changes = func(yield func(sink.Change) bool) {
		for _, ch := range changes {
			if ch.same || ch.op.fault != nil || ch.op.Settle {
				continue
			}
			if c, ok := ch.told(); ok && !yield(c) {
				return
			}
		}
	}
	if !pl.Mirror.PutsGraphs() {
		return
	}
	for _, ch := range changes {
		if !ch.same && ch.newGraph != "" {
			p.Put = append(p.Put, sink.Graph{IRI: ch.newGraph, Statements: ch.newSts})
		}
	}
}

// told is the change of a resource, false for a resource outside of select before and after.
func (ch *delta) told() (c sink.Change, ok bool) {
	rec := ch.op.Record
	was, is := ch.old != nil && ch.old.Unselected() == 0, rec != nil && rec.Unselected() == 0
	c = sink.Change{Kind: "updated", Old: ch.oldSts, New: ch.newSts}
	switch {
	case !was && !is:
		return c, false
	case !was:
		c.Kind = "created"
	case !is:
		c.Kind = "deleted"
	}
	if rec == nil {
		rec = ch.old
	}
	c.Location, c.Entity, c.Time = rec.Loc, rec.Entity, rec.Time
	if it := ch.op.Item; it != nil && !it.Time.IsZero() {
		c.Time = it.Time
	}
	return c, true
}

// given is the resource's old statement of a hash.
func (ch *delta) given(hash ledger.Hash) *sink.Statement {
	i, ok := slices.BinarySearchFunc(ch.oldSts, hash, func(st sink.Statement, h ledger.Hash) int { return bytes.Compare(st.Hash[:], h[:]) })
	if !ok {
		return nil
	}
	return &ch.oldSts[i]
}

// worked is a batch worked out against the records.
type worked struct {
	changes []*delta
	plan    *sink.Batch
	small   int    // small ops, without their triples in the plan
	intent  []byte // made ahead, with uploads; nil: not yet
	posted  bool   // all of it: the meta is not needed before it is recorded
	uploads any    // of the posted part
}

func (pl *planner) work(ctx context.Context, ops []*Op, c *Counts) (*worked, error) {
	small, err := pl.smallOps(ops)
	if err != nil {
		return nil, err
	}
	changes, batch, err := pl.workOutAll(ctx, ops, c)
	if err != nil {
		return nil, err
	}
	w := &worked{changes: changes, plan: &sink.Batch{}, small: small}
	if !pl.PutsWhole() {
		w.plan, err = pl.plan(ctx, changes, batch)
	}
	if err == nil {
		pl.tellSink(w.plan, changes)
	}
	return w, err
}

// The other batch must not matter to one worked out ahead: it has new resources alone, and
// nothing to report.
func (of descriptions) ahead(ctx context.Context, ops []*Op, busy func(ledger.Hash) bool) *worked {
	ap := of.ap
	if ap.Mirror.Layout.PerEntity {
		return nil
	}
	for _, o := range ops {
		if o.Record == nil || o.fault != nil || o.Settle || len(o.Replaces) > 0 || busy(o.Loc) {
			return nil
		}
	}
	var c Counts
	w, err := ap.planner.work(ctx, ops, &c)
	if err != nil || c != (Counts{}) || slices.ContainsFunc(w.changes, func(ch *delta) bool { return ch.old != nil }) {
		return nil
	}
	switch {
	case w.small > 0:
		w.intent, w.posted = intentOf(ledger.OfStore, ops), ap.planner.postsWithSmall(w.plan)
	case ap.planner.posts(w.plan):
		w.intent, w.posted, w.uploads = intentOf(ledger.OfStore, ops), true, ap.Mirror.Uploads(w.plan.Add)
	}
	return w
}

// posts tells whether a plan can go by Graph Store POST, and should.
func (pl *planner) posts(p *sink.Batch) bool { return len(p.Add) >= pl.lim.Few && pl.canPost(p) }

// postsWithSmall tells whether it can go in one POST with the triples of small ops.
func (pl *planner) postsWithSmall(p *sink.Batch) bool {
	return len(p.Add) <= pl.Mirror.BulkTriples() && pl.canPost(p)
}

func (pl *planner) canPost(p *sink.Batch) bool {
	return pl.Mirror.CanBulk() && len(p.Remove)+len(p.ClearSubjects) == 0 && pl.Mirror.Postable(p.Add)
}

func (ap *Applier) applyOnce(ctx context.Context, f *inFlight, ops []*Op, ready *worked, c *Counts, bulk bool, change func(*keep.Meta)) (err error) {
	if ready == nil {
		if ready, err = ap.planner.work(ctx, ops, c); err != nil {
			return err
		}
	}
	changes, p := ready.changes, ready.plan
	posted, written := false, false // all of it; with the checkpoint of the next generation
	if ap.PutsWhole() {
		inner := change // records run ahead
		if slices.ContainsFunc(changes, func(ch *delta) bool { return !ch.same }) {
			change = func(m *keep.Meta) {
				m.Ahead = true
				if inner != nil {
					inner(m)
				}
			}
		}
	} else if listens := ap.Mirror.Listens(p); listens || !p.Empty() || ready.small > 0 {
		if ready.intent == nil {
			ready.intent = intentOf(ledger.OfStore, ops)
		}
		if err := ap.Ledger.Begin(ctx, f.slot, ready.intent); err != nil {
			return err
		}
		ready.intent = nil // it may be as large as the rest of the batch
		if err := ap.CrashAt("intent"); err != nil {
			return err
		}
		if ready.small > 0 {
			var with []sink.Statement
			if ap.planner.postsWithSmall(p) {
				with, p = p.Add, &sink.Batch{}
			}
			err = ap.postSmall(ctx, ops, with)
			posted = p.Empty()
		}
		switch {
		case err != nil || p.Empty() && !listens:
		case bulk && ap.planner.posts(p):
			err = ap.Mirror.Bulk(ctx, p.Add, ready.uploads)
			posted = true
		default:
			written = true
			next := ap.Meta
			ap.Wrote(&next)
			if change != nil {
				change(&next)
			}
			err = ap.Mirror.Apply(ctx, p, ap.CheckpointOf(&next))
		}
		if err == nil {
			err = ap.CrashAt("written")
		}
	}
	if err == nil && posted {
		f.markSent()
		err = ap.CrashAt("sent")
	}
	if unfinished := f.inTurn(ap); err != nil || unfinished != nil {
		return cmp.Or(unfinished, err)
	}
	return ap.remember(ctx, f.slot, changes, c, func(m *keep.Meta) {
		if written {
			ap.Wrote(m)
		}
		if change != nil {
			change(m)
		}
	})
}

// workOutAll compares a batch with the records. A resource impossible in the mirror becomes a fault,
// and the locations it would have replaced stay.
func (pl *planner) workOutAll(ctx context.Context, ops []*Op, c *Counts) ([]*delta, map[ledger.Hash]bool, error) {
	changes := make([]*delta, 0, len(ops))
	batch, named := map[ledger.Hash]bool{}, map[ledger.Hash]bool{}
	stays := func(o *Op) bool { // what is deleted does, unless its entity is elsewhere
		return pl.Config.Keep == "deleted" && o.Record == nil && !o.moved && o.fault == nil && !o.Settle
	}
	ending := map[ledger.Hash]bool{} // by this batch
	for _, o := range ops {
		named[o.Loc] = o.fault == nil && !o.Settle && !stays(o) // else nothing becomes of it
		ending[o.Loc] = ending[o.Loc] || stays(o) || o.leaves != nil && o.leaves.Becomes == nil
	}
	last := slices.DeleteFunc(slices.Clone(ops), func(o *Op) bool { return !stays(o) })
	sorted := append(slices.DeleteFunc(slices.Clone(ops), stays), last...)
	known := map[ledger.Hash]*ledger.Record{}
	for i, o := range sorted {
		if i%workedOut == 0 {
			if err := pl.lookUp(ctx, sorted[i:min(i+workedOut, len(sorted))], known); err != nil {
				return nil, nil, err
			}
		}
		if stays(o) && named[o.Loc] {
			continue
		}
		if o.fault != nil || o.Settle {
			changes = append(changes, &delta{op: o, same: true})
			continue
		}
		ch, err := pl.workOut(ctx, o, known)
		if errors.Is(err, sink.ErrUnusable) {
			changes = append(changes, &delta{op: pl.faults.instead(ctx, o, fmt.Errorf("%w: %w", obtain.ErrContent, err)), same: true})
			c.refused++
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		changes = append(changes, ch)
		returned, err := pl.keptElsewhere(ctx, ch, ending)
		if err != nil {
			return nil, nil, err
		}
		for _, loc := range append(returned, o.Replaces...) {
			if named[loc] {
				continue // it has its own op in the batch
			}
			named[loc] = true
			left, err := pl.workOut(ctx, &Op{Loc: loc, moved: o.Record != nil}, known) // else its entity is gone from both
			if err != nil {
				return nil, nil, err
			}
			if left.main = ch; left.old != nil {
				ch.leaves++
			}
			changes = append(changes, left)
		}
	}
	if pl.Mirror.Layout.PerEntity {
		if err := pl.refuseOverlaps(ctx, changes, c); err != nil {
			return nil, nil, err
		}
		changes = slices.DeleteFunc(changes, func(ch *delta) bool { return ch.main != nil && ch.main.refused })
	}
	for _, ch := range changes {
		if !ch.same {
			batch[ch.op.Loc] = true
		}
	}
	return changes, batch, nil
}

// keptElsewhere finds the location of a deleted resource, kept or not gone yet, in the graph wanted
// by another one of the same entity. The entity is there again, and its kept triples go, as they
// would at the old location. ending is deleted by the same batch.
func (pl *planner) keptElsewhere(ctx context.Context, ch *delta, ending map[ledger.Hash]bool) ([]ledger.Hash, error) {
	if !pl.Mirror.Layout.PerEntity || ch.newGraph == "" || ch.newGraph == ch.oldGraph {
		return nil, nil
	}
	owner, ok, err := pl.Ledger.Ownership().GraphOwner(ctx, ch.newGraph)
	if err != nil || !ok || owner.Dest != pl.Dest {
		return nil, err
	}
	loc := owner.Loc
	rec, err := pl.Ledger.Record(ctx, loc)
	if err != nil || rec == nil || loc == ch.op.Loc || rec.Entity != ch.op.Record.Entity {
		return nil, err
	}
	if l, err := pl.Ledger.Leaving(ctx, loc); err != nil || (l == nil || l.Becomes != nil) && !rec.Has(ledger.FlagKept) && !ending[loc] {
		return nil, err
	}
	return []ledger.Hash{loc}, nil
}

// workedOut is how many resources are looked up at once.
const workedOut = 100

// lookUp reads the records of resources ahead, and the kept representations that come or go.
func (pl *planner) lookUp(ctx context.Context, ops []*Op, known map[ledger.Hash]*ledger.Record) error {
	clear(known)
	var locs []ledger.Hash
	for _, o := range ops {
		if o.small == nil && o.fault == nil && !o.Settle {
			if !o.fresh {
				locs = append(locs, o.Loc)
			}
			locs = append(locs, o.Replaces...)
		}
	}
	if len(locs) == 0 {
		return nil
	}
	recs, err := ledger.RecordsAt(ctx, pl.Ledger, locs)
	if err != nil {
		return err
	}
	for i, loc := range locs {
		known[loc] = recs[i]
	}
	wanted := map[ledger.Hash]*ledger.Record{}
	for _, o := range ops {
		for _, loc := range append([]ledger.Hash{o.Loc}, o.Replaces...) {
			rec := known[loc]
			if rec == nil || loc == o.Loc && (o.was != nil || isSame(rec, o.Record) || o.Record == nil && pl.Config.Keep == "deleted") {
				continue
			}
			wanted[loc] = rec
		}
	}
	return ledger.ReadBodies(ctx, pl.Ledger, wanted)
}

// isSame tells whether a resource is as recorded, nil for gone.
func isSame(old, rec *ledger.Record) bool {
	return rec != nil && old.Graph == rec.Graph && old.Triples == rec.Triples && old.Made == rec.Made &&
		old.Entity == rec.Entity && old.Flags&^ledger.FlagRewritten&^ledger.FlagKept&^ledger.FlagVia == rec.Flags&^ledger.FlagRewritten&^ledger.FlagVia
}

// workOut compares an op with the record.
func (pl *planner) workOut(ctx context.Context, o *Op, known map[ledger.Hash]*ledger.Record) (*delta, error) {
	ch := &delta{op: o}
	if o.small != nil { // nothing is recorded of it
		return ch, nil
	}
	old, looked := known[o.Loc]
	var err error
	if !o.fresh && !looked {
		if old, err = pl.Ledger.Record(ctx, o.Loc); err != nil {
			return nil, err
		}
	}
	ch.old = old
	if old != nil && isSame(old, o.Record) {
		ch.same = true
		o.Record.Normal = old.Normal
		o.Record.Flags |= old.Flags & ledger.FlagRewritten
		return ch, nil
	}
	if o.Record == nil && old == nil {
		ch.same = true
		return ch, nil
	}
	if o.Record == nil && pl.Config.Keep == "deleted" && !o.moved {
		ch.same = true
		return ch, nil
	}
	if old != nil && old.Triples > 0 {
		if o.was.of(old) {
			ch.oldSts = o.was.sts
		} else if ch.oldSts, err = pl.RecordedStatements(ctx, o.Loc, old); errors.Is(err, ledger.ErrDamaged) || errors.Is(err, kv.ErrNotFound) {
			// The index has its triples; only a comparison finds those to remove from the
			// mirror.
			pl.Log.Error("kept representation is damaged", "loc", old.Loc, "error", err)
			ch.lost = true
		} else if err != nil {
			return nil, err
		}
		old.DropBody()
		ch.oldGraph, _ = pl.Mirror.Layout.GraphOf(old.Entity)
	}
	if o.Record != nil {
		if ch.newSts = o.sts; ch.newSts == nil {
			ts, err := ledger.ParseWire(o.wire)
			if err != nil {
				return nil, err
			}
			if ch.newSts, err = pl.Mirror.Layout.Statements(o.Record.Entity, ts); err != nil {
				return nil, fmt.Errorf("%w: %w", sink.ErrUnusable, err)
			}
			o.Record.Normal = sink.DigestOf(ch.newSts)
		}
		if err := pl.Mirror.KeepsAll(ch.newSts); err != nil {
			return nil, fmt.Errorf("entity %s: %w", clip.Middle(o.Record.Entity), err)
		}
		if sink.AnyRecast(ch.newSts) {
			o.Record.Flags |= ledger.FlagRewritten
		}
		if len(ch.newSts) > 0 {
			if ch.newGraph, err = pl.Mirror.Layout.GraphOf(o.Record.Entity); err != nil {
				return nil, fmt.Errorf("%w: %w", sink.ErrUnusable, err)
			}
			if err := pl.Mirror.KeepsGraph(ch.newGraph); err != nil {
				return nil, err
			}
		}
	}
	return ch, nil
}

// refuseOverlaps takes out resources if their per-entity graph belongs to another resource, before
// this batch or within it, or to another destination as a whole.
func (pl *planner) refuseOverlaps(ctx context.Context, changes []*delta, c *Counts) error {
	leaves := map[string]bool{} // graphs given up in this batch
	for _, ch := range changes {
		if ch.oldGraph != "" && ch.oldGraph != ch.newGraph && pl.Ledger.Ownership().OwnsGraph(ctx, ch.oldGraph, ch.op.Loc) {
			leaves[ch.oldGraph] = true
		}
	}
	taken := map[string]ledger.Hash{}
	for _, ch := range changes {
		if ch.newGraph == "" || ch.newGraph == ch.oldGraph {
			continue
		}
		var other string
		if l, ok := taken[ch.newGraph]; ok && l != ch.op.Loc {
			other = "a resource of the same batch"
		} else if o, ok, err := pl.Ledger.Ownership().GraphOwner(ctx, ch.newGraph); err != nil {
			return err
		} else if ok && !leaves[ch.newGraph] {
			if o != (ledger.Owner{Dest: pl.Dest, Loc: ch.op.Loc}) {
				other = "another resource"
				if r, err := pl.Ledger.Of(o.Dest).Record(ctx, o.Loc); err == nil && r != nil {
					other = r.Loc
				}
			}
		} else if name, err := pl.SingleOf(ctx, ch.newGraph); err != nil {
			return err
		} else if name != "" {
			other = "destination " + strconv.Quote(name) + fmt.Sprintf(", which has everything in it (give either another %s)", pl.Config.Settings.Of("graph_iri"))
		}
		if other == "" {
			taken[ch.newGraph] = ch.op.Loc
			continue
		}
		err := fmt.Errorf("%w: %w: graph %s of entity %s is kept for %s", obtain.ErrContent, errOverlap, clip.Middle(ch.newGraph), clip.Middle(ch.op.Record.Entity), clip.Middle(other))
		*ch = delta{op: pl.faults.instead(ctx, ch.op, err), same: true, refused: true}
		c.refused++
	}
	return nil
}

// plan works out the removed and the added triples. A triple goes only if no resource owns it after
// the batch, of any destination into the same graph.
func (pl *planner) plan(ctx context.Context, changes []*delta, batch map[ledger.Hash]bool) (*sink.Batch, error) {
	p := &sink.Batch{}
	n := 0
	for _, ch := range changes {
		n += len(ch.newSts)
	}
	after, before := make([]ledger.Hash, 0, n), map[ledger.Hash]bool{}
	taken := map[string]bool{} // graphs of resources of the batch from now on
	for _, ch := range changes {
		taken[ch.newGraph] = true
		for i := range ch.newSts {
			after = append(after, ch.newSts[i].Hash)
		}
	}
	slices.SortFunc(after, ledger.Hash.Compare)
	sent := map[ledger.Hash]bool{} // of statements of several resources
	for i := 1; i < n; i++ {
		if after[i] == after[i-1] {
			sent[after[i]] = false
		}
	}
	stays := func(hash ledger.Hash) bool {
		_, found := slices.BinarySearchFunc(after, hash, ledger.Hash.Compare)
		return found
	}
	left := func(ch *delta) bool {
		return pl.Mirror.Layout.PerEntity && ch.newGraph != ch.oldGraph && !taken[ch.oldGraph] && pl.Ledger.Ownership().OwnsGraph(ctx, ch.oldGraph, ch.op.Loc)
	}
	candidates := map[ledger.Hash][]*sink.Statement{} // by subject
	asked := map[ledger.Hash]bool{}
	for _, ch := range changes {
		if ch.same {
			continue
		}
		if ch.oldGraph != "" && len(ch.oldSts) > 0 && left(ch) {
			if name, err := pl.SingleOf(ctx, ch.oldGraph); err != nil {
				return nil, err
			} else if name == "" {
				p.DropGraphs = append(p.DropGraphs, ch.oldGraph)
				continue
			}
			p.FreeGraphs = append(p.FreeGraphs, ch.oldGraph)
		}
		for i := range ch.oldSts {
			st := &ch.oldSts[i]
			before[st.Hash] = true
			if !stays(st.Hash) && !asked[st.Hash] {
				asked[st.Hash] = true
				candidates[st.Subject] = append(candidates[st.Subject], st)
			}
		}
	}
	for _, ch := range changes {
		if ch.same {
			continue
		}
		if ch.newGraph != "" && ch.newGraph != ch.oldGraph && pl.Mirror.CanOwn(ch.newGraph) {
			p.OwnGraphs = append(p.OwnGraphs, ch.newGraph)
		}
		if len(changes) == 1 && len(ch.oldSts) == 0 {
			p.Add = slices.Clip(ch.newSts) // a big resource comes alone, and is not held twice
			continue
		}
		for i := range ch.newSts {
			st := ch.newSts[i]
			if sent[st.Hash] {
				continue
			}
			if old := ch.given(st.Hash); old != nil && old.Triple != st.Triple {
				// The same for the store. It may still show the first form, the type of a
				// number for example.
				p.Remove, p.Apart = append(p.Remove, *old), true
			} else if before[st.Hash] {
				continue
			}
			if _, shared := sent[st.Hash]; shared {
				sent[st.Hash] = true
			}
			p.Add = append(p.Add, st)
		}
	}
	gone, err := pl.unowned(ctx, candidates, batch)
	if err != nil {
		return nil, err
	}
	p.Remove = append(p.Remove, gone...)
	return p, pl.planProvenance(p, changes)
}

// unowned are the candidates, by subject, without an owner outside of the batch. The owners lie all
// over the records: they are looked up in the order of records, to read neighbours once, and of many
// subjects side by side.
func (pl *planner) unowned(ctx context.Context, candidates map[ledger.Hash][]*sink.Statement, batch map[ledger.Hash]bool) ([]sink.Statement, error) {
	subjects := slices.SortedFunc(maps.Keys(candidates), ledger.Hash.Compare)
	parts := make([][]sink.Statement, min(runtime.GOMAXPROCS(0), 1+len(subjects)/unownedEach))
	var g errgroup.Group
	for i := range parts {
		g.Go(func() error {
			mine := subjects[i*len(subjects)/len(parts) : (i+1)*len(subjects)/len(parts)]
			owned := map[*sink.Statement]bool{}
			for o, err := range pl.Ledger.Ownership().Owners(ctx, mine...) {
				if err != nil {
					return err
				}
				if o.Dest == pl.Dest && batch[o.Loc] {
					continue
				}
				for _, st := range candidates[o.Subject] {
					if ledger.Holds(o.Hashes, st.Hash) {
						owned[st] = true
					}
				}
			}
			for _, subj := range mine {
				for _, st := range candidates[subj] {
					if !owned[st] {
						parts[i] = append(parts[i], *st)
					}
				}
			}
			return nil
		})
	}
	err := g.Wait()
	return slices.Concat(parts...), err
}

// unownedEach is a number of subjects worth a goroutine.
const unownedEach = 64

// remember writes the new records and the changed meta in one commit.
func (ap *Applier) remember(ctx context.Context, slot byte, changes []*delta, c *Counts, change func(*keep.Meta)) error {
	ctx = context.WithoutCancel(ctx) // the mirror has it: so have the records, and the position
	b := ap.Store.Batch()
	defer b.Close()
	size := 0
	for _, ch := range changes {
		size += ch.op.size() + len(ch.newSts)*len(ledger.Hash{})
		if ch.op.small != nil {
			size += int(ch.op.small.bytes())
		}
	}
	b.Grow(size)
	all := make([]*Op, len(changes))
	for i, ch := range changes {
		all[i] = ch.op
	}
	if err := ap.touch(ctx, b, locsOf(all)...); err != nil {
		return err
	}
	var resources, others, unselected, unmapped int64
	var n Counts
	var past uint64
	lost := false
	for _, ch := range changes {
		o := ch.op
		if !ap.begin(ctx, b, o) {
			continue
		}
		by, err := ap.rememberOther(ctx, b, ch)
		if err != nil {
			return err
		}
		others += by
		unselected += o.Record.Unselected() - ch.old.Unselected()
		unmapped += o.Record.Unmapped() - ch.old.Unmapped()
		if !ch.same && o.Record.Unmapped() > 0 {
			n.Unmapped++
			n.Nothing = o.Record.Loc
		}
		if !ch.same && o.noValue != "" {
			n.MapErrors++
			n.MapError = o.Record.Loc + ": " + o.noValue
		}
		if o.Record == nil && ap.Config.Keep == "deleted" && ch.old != nil && !o.moved {
			kept := *ch.old
			if !kept.Has(ledger.FlagKept) {
				kept.Flags |= ledger.FlagKept
				resources--
				n.Became(ch.old, nil, false)
			}
			ap.Ledger.PutRecord(b, o.Loc, &kept)
			continue
		}
		switch {
		case o.Record == nil && ch.old == nil:
			if !o.moved {
				n.Unchanged++
			}
			continue
		case ch.same:
			if err := ap.keepLeft(ctx, b, &past, ch); err != nil {
				return err
			}
			n.Became(ch.old, o.Record, true)
			if ch.old != nil && ch.old.Has(ledger.FlagKept) {
				resources++
			}
			ap.Ledger.PutRecord(b, o.Loc, o.Record)
			continue
		case ch.old == nil:
			if ch.leaves == 0 {
				n.Became(nil, o.Record, false)
			}
			resources++
		case o.Record == nil:
			if o.moved {
				n.Moved++
			} else {
				n.Became(ch.old, nil, false)
			}
			if !ch.old.Has(ledger.FlagKept) {
				resources--
			}
		default:
			n.Became(ch.old, o.Record, false)
			if ch.old.Has(ledger.FlagKept) {
				resources++
			}
		}
		next := o // the op after it
		if o.moved {
			next = ch.main.op
		}
		if left, err := ap.leftBefore(ctx, ch); err != nil {
			return err
		} else if left != nil {
			next = left
		}
		if ap.Config.Keep == "versions" && ch.old != nil && !ch.old.Has(ledger.FlagKept) && (next.Record == nil || next.Record.Graph != ch.old.Graph) {
			past++
			if err := ap.keepVersion(ctx, b, ap.Meta.Versions+past, o.Loc, next, ch.old); err != nil {
				return err
			}
		}
		if ch.lost {
			if err := ap.Ledger.Ownership().DisownAll(ctx, b, o.Loc); err != nil {
				return err
			}
			lost = true
		}
		after := sink.BySubject(ch.newSts)
		if o.small != nil {
			after = o.small.owned
		}
		before := map[ledger.Hash]bool{}
		for i := range ch.oldSts {
			before[ch.oldSts[i].Subject] = true
		}
		for _, of := range after {
			ap.Ledger.Ownership().Own(b, o.Loc, of)
			delete(before, of.Subject)
		}
		for subj := range before {
			ap.Ledger.Ownership().Disown(b, o.Loc, subj)
		}
		if ap.Mirror.Layout.PerEntity && ch.oldGraph != "" && ch.oldGraph != ch.newGraph && ap.Ledger.Ownership().OwnsGraph(ctx, ch.oldGraph, o.Loc) {
			ap.Ledger.Ownership().DropGraph(b, ch.oldGraph)
		}
		if o.Record == nil {
			ap.Ledger.Drop(b, o.Loc)
			continue
		}
		ap.Ledger.PutRecord(b, o.Loc, o.Record)
		if o.packed == nil {
			o.packed = ledger.Pack(o.wire)
		}
		ap.Ledger.PutBody(b, o.Loc, o.packed)
	}
	for _, ch := range changes { // after the deletions of moved graphs
		if ap.Mirror.Layout.PerEntity && ch.newGraph != "" && ch.newGraph != ch.oldGraph {
			ap.Ledger.Ownership().PutGraph(b, ch.newGraph, ch.op.Loc)
		}
	}
	if err := ap.Done(ctx, slot, b, func(m *keep.Meta) {
		m.Resources += resources
		m.NotRDF += others
		m.Unselected += unselected
		m.Unmapped += unmapped
		m.Versions += past
		if lost {
			m.CompareMirror = "a kept representation was damaged"
		}
		if change != nil {
			change(m)
		}
	}); err != nil {
		return err
	}
	c.add(n)
	return ap.CrashAt("recorded")
}

// undo brings the partial writes of a refused op back to the record.
func (ap *Applier) undo(ctx context.Context, o *Op) error {
	changes, batch, err := ap.planner.workOutAll(ctx, []*Op{o}, &Counts{})
	if err != nil || len(batch) == 0 {
		return err
	}
	p, err := ap.planner.plan(ctx, changes, batch)
	if err != nil {
		return err
	}
	if ap.Mirror.PutsGraphs() {
		return nil
	}
	dropped := &sink.Batch{}
	for _, ch := range changes {
		if slices.Contains(p.DropGraphs, ch.oldGraph) {
			dropped.Add = append(dropped.Add, ch.oldSts...)
			if ap.Mirror.CanOwn(ch.oldGraph) {
				dropped.OwnGraphs = append(dropped.OwnGraphs, ch.oldGraph)
			}
		}
	}
	if err := ap.Mirror.Restore(ctx, dropped); err != nil {
		return err
	}
	// Inserted triples without an owner go; deleted ones come back.
	back := &sink.Batch{Add: p.Remove}
	for i := range p.Add {
		owned, err := ap.planner.ownedByAny(ctx, p.Add[i].Subject, p.Add[i].Hash)
		if err != nil {
			return err
		}
		if !owned {
			back.Remove = append(back.Remove, p.Add[i])
		}
	}
	return ap.Mirror.TakeBack(ctx, back)
}

func (pl *planner) ownedByAny(ctx context.Context, subj, triple ledger.Hash) (bool, error) {
	for o, err := range pl.Ledger.Ownership().Owners(ctx, subj) {
		if err != nil || ledger.Holds(o.Hashes, triple) {
			return err == nil, err
		}
	}
	return false, nil
}

// instead is the fault in the place of an op.
func (fa *faults) instead(ctx context.Context, o *Op, err error) *Op {
	it := o.Item
	if it == nil {
		if it = (&item.Item{Loc: fa.locOf(ctx, o), Promise: fetch.Promise{Length: -1}}); o.Record == nil {
			it.Change = "deleted"
		}
	}
	return &Op{Loc: o.Loc, Item: it, fault: fa.newFault(ctx, it, o.Loc, err, o.Replaces...)}
}

// newFault remembers the error of a resource, and the time of the next try: the pause doubles with
// each try for the same promise. The locations in replaces stay until it succeeds.
func (fa *faults) newFault(ctx context.Context, it *item.Item, loc ledger.Hash, err error, replaces ...ledger.Hash) *ledger.Fault {
	now := fa.Options.Now().UTC()
	f := &ledger.Fault{Loc: it.Loc, Entity: it.Entity, State: "pending", Reason: clip.Middle(err.Error()), Tries: 1, First: now, Time: it.Time, Item: it.Encode(), Replaces: replaces}
	if it.Ask.Tried {
		f.Run = fa.runName()
	}
	f.List, f.Unread = errors.Is(err, obtain.ErrList), errors.Is(err, obtain.ErrMaybeList)
	f.Blocked = errors.As(err, new(*sink.ForeignFileError))
	f.Unseen = it.Change == "" && !errors.Is(err, obtain.ErrContent) && !errors.Is(err, sink.ErrRefused) && !item.IsTypeOfRDF(it.Promise.Type) && fa.Ledger.Lacks(ctx, loc)
	var doubtful *doubtfulError
	if errors.As(err, &doubtful) {
		f.Doubted, f.Came = fa.runName(), doubtful.came.String()
	}
	if old, ferr := fa.Ledger.Fault(ctx, loc); ferr == nil && old != nil {
		f.First = old.First
		if f.Came != "" && old.Came == f.Came {
			f.Doubted = old.Doubted
		}
		f.Replace(old.Replaces)
		if oit, derr := item.Decode(old.Item); derr == nil && oit.SamePromise(it) {
			f.Tries = old.Tries + 1
			if !errors.Is(err, obtain.ErrContent) || old.Unread {
				f.List, f.Unread = old.List, old.Unread
			}
			f.Unseen = f.Unseen && old.Unseen
			if f.Time.IsZero() || (!old.Time.IsZero() && old.Time.Before(f.Time)) {
				f.Time = old.Time
			}
		}
	}
	pause := fa.lim.RetryFirst << min(f.Tries-1, 20)
	f.Next = now.Add(min(max(pause, fa.lim.RetryFirst), fa.lim.RetryMax))
	if f.Tries >= fa.lim.FailAfter || errors.Is(err, obtain.ErrContent) || errors.Is(err, sink.ErrRefused) || errors.Is(err, fetch.ErrTooLarge) {
		f.State = "failed"
	}
	return f
}

// runName names the run under way.
func (fa *faults) runName() string  { return fmt.Sprint(fa.Writer, " ", fa.run()) }
func (ap *Applier) RunName() string { return ap.planner.faults.runName() }
